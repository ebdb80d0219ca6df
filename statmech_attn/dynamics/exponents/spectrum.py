r"""A Lyapunov spectrum with its errors, and the signs of exponents by their errors.

An exponent is known as averages over a window and its halves, in nats per step
(docs/theory/dynamics.md, section 2).
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from statmech_attn import presentation
from statmech_attn.batches import add_up
from statmech_attn.dynamics.maps.systems import BatchedResult, leading_axes, of_each
from statmech_attn.dynamics.options import Criteria
from statmech_attn.labels import STEP, Variable


ZERO = Criteria.zero  # |weighted exponent| below this is zero, nats per step
BALANCED = 1e-12  # exponents that add up to less than this share add up to zero
UNCLEAR = 2
STRETCH = 0.3  # n times a zero exponent: at most 0.18 on tori, 1 and more elsewhere


def shown_exponents(place: str = "") -> tuple[Variable, ...]:
    """Rows of a result that holds a spectrum."""
    return (
        Variable(
            "lyapunov",
            "exponent",
            "Lyapunov exponents",
            "nat / {unit}",
            "λ_i",
            value=f"{place}exponents",
            error=f"{place}stderr",
        ),
        Variable(
            "lyapunov_weighted",
            "exponent",
            "Lyapunov exponents, weighted average",
            "nat / {unit}",
            "λ_i",
            value=f"{place}weighted",
            line=False,
        ),
        Variable(
            "window",
            "",
            "length of the averaging window",
            "{unit}",
            "n",
            value=f"{place}window",
        ),
    )


class Spectrum(BatchedResult):
    """Exponents in nats per step; `k` of them, sorted, largest first.

    -inf marks a direction that collapses exactly: the map has too small a rank, or
    sends the column to zero.  NaN marks one that rounding hides; `bounds` are what its
    column shrank by all the same, and rounding can only lengthen a column.  `resolved`
    counts the leading exponents that are numbers.
    Properties of a batch that plain `jax.vmap` made have its axis first, those of one
    with `out_axes=-1` last.

    Attributes:
        exponents: Lyapunov exponents: averages over the window, nats per step.
        weighted: the same as weighted averages, which converge fast on regular orbits,
            and scatter more than `exponents` in chaos.
        stderr: standard errors of the exponents, from blocks: two to six times too
            large where successive blocks compensate (logistic map at r = 4, Lorenz).
            What is left of a transient is not in them (5.6 errors next to a doubling
            after 100 steps): `halves` and `blocks` show it.
        resolved: number of leading exponents that rounding does not hide.
        halves: weighted averages over each half of the window.
        blocks: averages over each block.
        bounds: weighted averages of the window and its halves with nothing left out:
            upper bounds of exponents that are NaN.
        steps: length of the window.
        log_det: mean of ln|det DF|, where all exponents were asked for.
        dimension: of the tangent space.
        unit: unit of time of the rates.
        interval: length of a step in this unit.
    """

    exponents: Float[Array, "k *batch"]
    weighted: Float[Array, "k *batch"]
    stderr: Float[Array, "k *batch"]
    resolved: Int[Array, "*batch"]
    halves: Float[Array, "2 k *batch"]  # weighted average over each half
    blocks: Float[Array, "blocks k *batch"]  # plain average over each block
    bounds: Float[Array, "3 k *batch"]  # weighted: window, halves; nothing left out
    steps: Int[Array, ""]  # length of the window
    log_det: Float[Array, "*batch"] | None = None  # <ln|det DF|> beside all exponents
    dimension: int | None = eqx.field(static=True, default=None)  # of tangent space
    unit: str = eqx.field(static=True, default=STEP)
    interval: float = eqx.field(static=True, default=1)

    own_axes = ("blocks", 2)
    _shown = (
        *shown_exponents(),
        # Many small programs, which no text is worth.
        Variable(
            "kaplan_yorke", "", "Kaplan-Yorke dimension", symbol="D_KY", line=False
        ),
        Variable(
            "log_det",
            "",
            "average of ln|det| of the Jacobian",
            "nat / {unit}",
            "⟨ln|det J|⟩",
            line=False,
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def leading_axes(self) -> int:
        """Axes of a batch that stand first."""
        halves = (2, self._axes[1])
        return leading_axes((self.blocks, self._axes), (self.halves, halves))

    @property
    def window(self) -> Int[Array, ""] | Float[Array, ""]:
        """Length of the window in the unit of time."""
        return self.steps if self.interval == 1 else self.steps * self.interval

    @property
    @of_each
    def running(self) -> Float[Array, "blocks k *batch"]:
        """Plain average up to the end of each block."""
        counts = jnp.arange(1, self.blocks.shape[0] + 1)
        shape = (-1,) + (1,) * (self.blocks.ndim - 1)
        return jnp.cumsum(self.blocks, axis=0) / counts.reshape(shape)

    @property
    @of_each
    def sum_rule(self) -> Float[Array, "*batch"]:
        r"""$\sum_j \lambda_j - \langle \ln |\det DF| \rangle$, 0 but for rounding.

        The determinant is taken of the Jacobian of every step, without the frame.  NaN
        where an exponent is no number or the Jacobian singular.

        Raises:
            ValueError: there are not all exponents.
        """
        if self.log_det is None:
            raise ValueError(
                f"the sum rule needs all {self.dimension} exponents; "
                f"got {self.exponents.shape[0]}."
            )
        total = add_up(self.exponents)
        return jnp.where(jnp.isfinite(total), total - self.log_det, jnp.nan)

    @property
    @of_each
    def kaplan_yorke(self) -> Float[Array, "*batch"]:
        r"""Kaplan-Yorke dimension $j + \sum_{i \le j} \lambda_i / |\lambda_{j+1}|$.

        An exponent whose weighted averages over the window and both halves are zero
        to 2e-5, the zero of `classify`, counts as zero: a torus has the number of its
        zeros, whatever the sign of their noise.

        0 when the first exponent is negative.  When all k at hand add up to zero: k if
        they are all there are (a volume-preserving map) or `dimension` is None, where
        it is a lower bound; else NaN.  NaN when they add up to more: then more
        exponents are needed, or the map expands volumes.
        """
        exponents = jnp.where(zeros(self, ZERO), 0.0, self.exponents)
        sums = jnp.cumsum(exponents, axis=0)
        finite = jnp.isfinite(exponents)
        scale = 1 + jnp.sum(jnp.where(finite, jnp.abs(exponents), 0.0), axis=0)
        sums = jnp.where(jnp.abs(sums) <= BALANCED * scale, 0.0, sums)
        j = jnp.sum(jnp.cumprod(sums >= 0, axis=0), axis=0)
        pick = lambda x, i: jnp.take_along_axis(x, i[None], axis=0)[0]
        k = exponents.shape[0]
        above = jnp.where(j > 0, pick(sums, jnp.maximum(j - 1, 0)), 0.0)
        dimension = j - above / pick(exponents, jnp.minimum(j, k - 1))
        complete = self.dimension is None or self.dimension == k
        balanced = complete & (sums[-1] == 0)
        return jnp.where(j < k, dimension, jnp.where(balanced, float(k), jnp.nan))


def signs_of(spectrum: Spectrum, criteria: Criteria) -> Int[Array, "k *batch"]:
    """-1, 0, 1 or UNCLEAR for each exponent.

    -inf is negative, and so is what rounding hides below a negative bound.
    """
    values = averages(spectrum)
    error = criteria.positive_sigmas * jnp.where(
        jnp.isnan(spectrum.stderr), 0.0, spectrum.stderr
    )
    resolved = resolved_sign(spectrum, criteria.positive_sigmas)
    positive = jnp.all(values > criteria.zero, axis=0) & (spectrum.exponents > error)
    negative = jnp.all(spectrum.bounds < -criteria.zero, axis=0)
    sign = jnp.where(positive, 1, jnp.where(negative, -1, UNCLEAR))
    sign = jnp.where(resolved != 0, resolved, sign)
    zero = zeros(spectrum, criteria.zero, criteria.positive_sigmas)
    return jnp.where(zero, 0, sign)


def averages(spectrum: Spectrum) -> Float[Array, "3 k *batch"]:
    """Weighted averages over the window and its halves."""
    return jnp.concatenate([spectrum.weighted[None], spectrum.halves])


def zeros(
    spectrum: Spectrum, zero: float, sigmas: float = Criteria.positive_sigmas
) -> Bool[Array, "k *batch"]:
    """Which exponents are zero: below `zero` by size, and not known to differ from it.

    `zero` is in nats per step; an exponent beyond `sigmas` of its errors differs from
    zero, however small it is.
    """
    values = averages(spectrum)
    small = jnp.all(jnp.abs(values) <= zero, axis=0)
    return small & (resolved_sign(spectrum, sigmas) == 0)


def resolved_sign(spectrum: Spectrum, sigmas: float) -> Int[Array, "k *batch"]:
    """1 or -1 where the window and its halves lie beyond so many errors; else 0.

    The error is that of the blocks, or the difference of the halves where that is
    larger: an exponent that is still falling off towards zero does not differ from it.
    """
    values = averages(spectrum)
    change = jnp.abs(values[1] - values[2])
    error = sigmas * jnp.maximum(spectrum.stderr, change)
    above, below = (jnp.all(sign * values > error, axis=0) for sign in (1, -1))
    return above.astype(int) - below


def is_marginal(
    spectrum: Spectrum, sign, criteria: Criteria, steady
) -> Bool[Array, "*batch"]:
    """Whether the leading exponent is zero within its error, but as on no torus.

    On a torus n times a weighted average over n steps vanishes faster than any power,
    if need be that of the sum of all zero exponents, which shear leaves alone.  Where
    the approach to a cycle is algebraic, or the orbit winds around ever longer ones,
    it remains of order one.
    """
    steps = spectrum.steps * jnp.array([1.0, 0.5, 0.5])
    values = averages(spectrum)
    total = jnp.sum(jnp.where(sign == 0, values, 0.0), axis=1)
    stretch = jnp.max(jnp.abs((total.T * steps).T), axis=0)
    within = criteria.positive_sigmas * spectrum.stderr[0]
    unclear = (sign[0] == UNCLEAR) & (jnp.abs(spectrum.weighted[0]) <= within) & steady
    return unclear | ((sign[0] == 0) & (stretch > STRETCH))
