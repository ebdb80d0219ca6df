r"""Lyapunov spectrum by frame propagation (docs/theory/dynamics.md, section 2).

A frame of k tangent columns is pushed along the orbit and orthonormalised every few
steps; with $R_{jj}$ the lengths left by Gram-Schmidt, over a window of n steps

    $\lambda_j = \frac{1}{n} \sum \ln |R_{jj}|$  plain, `exponents`
    $\lambda_j = \sum_i w(s_i) \ln |R_{jj}|_i / \sum_i w(s_i) k$  weighted, `weighted`

with $w(s) = \exp(-1/(s(1-s)))$, which converges faster than any power of n on periodic
and quasi-periodic orbits.  Exponents are in nats per step.

The window is cut into blocks: their scatter gives the standard error, and quarters
and halves of the window tell whether the orbit has settled.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from statmech_attn.dynamics.systems import (
    advance,
    as_system,
    random_frame,
    require_axes,
    TangentSystem,
)
from statmech_attn.precision import require_double
from statmech_attn.sums import add_products, add_up


EPS = 2.220446049250313e-16
BLOCKS = 16
LOST = 45 * EPS  # a column this much shorter than before Gram-Schmidt is round-off
ZERO = 2e-5  # |weighted exponent| below this is zero, nats per step
BALANCED = 1e-12  # exponents that add up to less than this share add up to zero
FLAT = 4 * EPS  # a push this far below one, or below the largest, is no push at all


class Spectrum(eqx.Module):
    """Exponents in nats per step; `k` of them, sorted, largest first.

    -inf marks a direction that collapses to working precision, NaN one that is
    round-off limited; `resolved` counts the leading exponents that are numbers.
    Properties expect the batch on the last axis: under `jax.vmap` pass `out_axes=-1`,
    or take them inside; they refuse a batch on the first.
    """

    exponents: Float[Array, "k *batch"]
    weighted: Float[Array, "k *batch"]
    stderr: Float[Array, "k *batch"]
    resolved: Int[Array, "*batch"]
    halves: Float[Array, "2 k *batch"]  # weighted average over each half
    blocks: Float[Array, "blocks k *batch"]  # plain average over each block
    steps: Int[Array, ""]  # length of the window
    dimension: int | None = eqx.field(static=True, default=None)  # of tangent space
    _axes: tuple[int, ...] = eqx.field(static=True, init=False)  # blocks, k

    def __post_init__(self):
        self._axes = self.blocks.shape[:2]

    @property
    def running(self) -> Float[Array, "blocks k *batch"]:
        """Plain average up to the end of each block."""
        require_axes(self.blocks, self._axes)
        counts = jnp.arange(1, self.blocks.shape[0] + 1)
        shape = (-1,) + (1,) * (self.blocks.ndim - 1)
        return jnp.cumsum(self.blocks, axis=0) / counts.reshape(shape)

    @property
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
        require_axes(self.blocks, self._axes)
        averages = jnp.concatenate([self.weighted[None], self.halves])
        zero = jnp.all(jnp.abs(averages) <= ZERO, axis=0)
        exponents = jnp.where(zero, 0.0, self.exponents)
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


def lyapunov_spectrum(
    step: Callable[[PyTree], PyTree] | TangentSystem,
    state: PyTree,
    *,
    steps: int,
    transient: int = 0,
    exponents: int | None = None,
    reorthonormalize_every: int = 1,
    blocks: int = BLOCKS,
) -> Spectrum:
    """Lyapunov spectrum of any JAX map `state -> state`, or of a `TangentSystem`.

    Args:
        step: the map; a pure function of one pytree of float64 arrays.
        state: where the orbit starts; may be batched by `jax.vmap` around this call.
        steps: length of the window, rounded up to a multiple of
            blocks * reorthonormalize_every.
        transient: steps before the window.  One more block aligns the frame.
        exponents: how many leading exponents; all when omitted.
        reorthonormalize_every: steps between Gram-Schmidt; small enough that no
            column is lost in between (lost columns are reported, not hidden).
        blocks: number of blocks for errors and running averages, a multiple of 4.

    Raises:
        ValueError: a count that is out of range, or a state without coordinates.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x: 4 * x * (1 - x)
        >>> s = lyapunov_spectrum(logistic, jnp.array(0.3), steps=10_000)
        >>> abs(float(s.exponents[0]) - 0.6931) < 0.01
        True
    """
    require_double()
    check_counts(steps, transient, reorthonormalize_every, blocks)
    system = as_system(step)
    return _spectrum(
        system,
        state,
        per_block=jnp.asarray(-(-steps // (blocks * reorthonormalize_every))),
        transient=jnp.asarray(transient),
        every=jnp.asarray(reorthonormalize_every),
        k=frame_size(system, state, exponents),
        blocks=blocks,
    )


@eqx.filter_jit
def _spectrum(system, state, *, per_block, transient, every, k, blocks):
    state = advance(system, state, transient)
    lifted, frame = start_frame(system, state, k)
    no_observation = lambda state: jnp.zeros((0,) + frame.shape[2:])
    lifted, frame = align(system, lifted, frame, per_block=per_block, every=every)
    _, _, sums = measure(
        system, lifted, frame, no_observation,
        per_block=per_block, every=every, blocks=blocks,
    )  # fmt: skip
    return summarise(
        sums, per_block=per_block, every=every, rank=system.rank,
        dimension=frame.shape[0],
    )  # fmt: skip


def frame_size(system: TangentSystem, state: PyTree, exponents: int | None) -> int:
    """How many columns to push: `exponents`, or all of them."""
    dimension = jax.eval_shape(system.vector, state).shape[0]
    if dimension == 0:
        raise ValueError("state has no floating-point coordinates to differentiate.")
    if exponents is None:
        return dimension
    if not 1 <= exponents <= dimension:
        raise ValueError(f"exponents must lie in 1..{dimension}; got {exponents}.")
    return exponents


def start_frame(system: TangentSystem, state: PyTree, k: int):
    """The lifted state and an orthonormal frame."""
    shape = jax.eval_shape(system.vector, state).shape
    frame, _, _ = orthonormalise(random_frame(shape[0], k, shape[1:]))
    return system.lift(state), frame


def align(system, lifted, frame, *, per_block, every):
    """Push the frame for one block without averaging, so that it forgets its start."""

    def body(_, carry):
        lifted, frame = carry
        lifted, frame = _push(system, lifted, frame, every)
        return lifted, orthonormalise(frame)[0]

    return jax.lax.fori_loop(0, per_block, body, (lifted, frame))


class Sums(eqx.Module):
    """What one pass accumulates; `q` are k log-lengths followed by d observables."""

    weighted: Float[Array, "3 q *batch"]  # whole window and its two halves
    weights: Float[Array, "3"]
    blocks: Float[Array, "blocks q *batch"]  # block sums
    low: Float[Array, "blocks d *batch"]
    high: Float[Array, "blocks d *batch"]
    lost: Int[Array, "k *batch"]  # orthonormalisations that left only round-off
    shortest: Float[Array, "k *batch"]  # column length before orthonormalisation
    longest: Float[Array, "*batch"]


def measure(system, lifted, frame, observe, *, per_block, every, blocks):
    """Push the frame through the window and accumulate; constant memory.

    `observe(state)` (d, *batch) is averaged beside the exponents, once per
    orthonormalisation.  Returns the lifted state, the frame and the `Sums`.
    """
    total = per_block * blocks

    def turn(i, carry):
        lifted, frame, part = carry
        lifted, frame = _push(system, lifted, frame, every)
        frame, length, pushed = orthonormalise(frame)
        seen = observe(system.lower(lifted))
        q = jnp.concatenate([safe_log(length), seen])
        w = window_weights((i + 0.5) / total)
        part = Sums(
            weighted=part.weighted + w.reshape((3,) + (1,) * q.ndim) * q,
            weights=part.weights + w,
            blocks=part.blocks + q,
            low=jnp.minimum(part.low, seen),
            high=jnp.maximum(part.high, seen),
            lost=part.lost + (length < LOST * pushed),
            shortest=jnp.minimum(part.shortest, pushed),
            longest=jnp.maximum(part.longest, pushed[0]),
        )
        return lifted, frame, part

    def block(carry, b):
        lifted, frame, part = carry
        blank = _blank(part.blocks, part.low)
        part = eqx.tree_at(lambda s: (s.blocks, s.low, s.high), part, blank)
        carry = jax.lax.fori_loop(
            b * per_block, (b + 1) * per_block, turn, (lifted, frame, part)
        )
        part = carry[2]
        return carry, (part.blocks, part.low, part.high)

    first = _empty_sums(frame, jax.eval_shape(observe, system.lower(lifted)).shape[0])
    carry, stacked = jax.lax.scan(block, (lifted, frame, first), jnp.arange(blocks))
    lifted, frame, last = carry
    return (
        lifted,
        frame,
        eqx.tree_at(lambda s: (s.blocks, s.low, s.high), last, stacked),
    )


def summarise(
    sums: Sums, *, per_block, every, rank: int | None, dimension: int | None = None
) -> Spectrum:
    """Exponents, errors and resolution from the sums of one window."""
    k, blocks = sums.lost.shape[0], sums.blocks.shape[0]
    per_step = sums.blocks[:, :k] / (per_block * every)
    weights = sums.weights.reshape((3,) + (1,) * (per_step.ndim - 1))
    weighted = sums.weighted[:, :k] / (weights * every)
    flat = sums.shortest <= FLAT * jnp.maximum(sums.longest, 1.0)
    rank_deficient = sums.lost >= blocks * per_block
    collapsed = flat | rank_deficient | jnp.any(jnp.isneginf(per_step), axis=0)
    if rank is not None:
        collapsed = collapsed.at[rank:].set(True)
    collapsed = jnp.flip(jnp.cumprod(jnp.flip(collapsed, 0), axis=0), 0).astype(bool)
    noisy = jnp.cumsum(sums.lost > 0, axis=0) > 0
    mark = lambda x: jnp.where(collapsed, -jnp.inf, jnp.where(noisy, jnp.nan, x))
    average = mean_of(per_step)
    plain = mark(average)
    variance = mean_of((per_step - average) ** 2) / (blocks - 1)
    scatter = jnp.sqrt(variance)
    order = jnp.argsort(-jnp.where(noisy, -jnp.inf, plain), axis=0, stable=True)
    sort = lambda x: jnp.take_along_axis(x, order, axis=0)
    sort_each = jax.vmap(sort)
    marked = sort_each(jax.vmap(mark)(weighted))
    plain = sort(plain)
    return Spectrum(
        exponents=plain,
        weighted=marked[0],
        stderr=sort(jnp.where(collapsed | noisy, jnp.nan, scatter)),
        resolved=jnp.sum(jnp.cumprod(jnp.isfinite(plain), axis=0), axis=0),
        halves=marked[1:],
        blocks=sort_each(jax.vmap(mark)(per_step)),
        steps=jnp.asarray(blocks * per_block * every),
        dimension=dimension,
    )


def orthonormalise(frame: Float[Array, "dim k *batch"]):
    """Gram-Schmidt, twice, on a batch of small frames.

    Returns the orthonormal frame, the lengths R_jj (k, *batch), and the lengths of the
    columns before; a zero column stays zero.  Sums over the small axes
    are written out, so that XLA vectorises over the batch; dividing by the squared
    length inside keeps it from recomputing the projections for every row.
    """
    k = frame.shape[1]
    done, squares, pushed = [], [], []
    for j in range(k):
        v = frame[:, j]
        pushed.append(add_products(v, v))
        for _ in range(2 if j else 0):
            basis, norms = jnp.stack(done, axis=1), jnp.stack(squares)
            shares = add_products(basis, v[:, None]) / _nonzero(norms)
            v = v - add_up(basis[:, i] * shares[i] for i in range(j))
        done.append(v)
        squares.append(add_products(v, v))
    lengths = jnp.sqrt(jnp.stack(squares))
    basis = jnp.stack(done, axis=1) / _nonzero(lengths)
    return basis, lengths, jnp.sqrt(jnp.stack(pushed))


def window_weights(s: Float[Array, ""]) -> Float[Array, "3"]:
    """Weights exp(-1/(s(1-s))) of the whole window and of its halves at s in (0, 1)."""
    position = jnp.stack([s, 2 * s, 2 * s - 1])
    inside = (position > 0) & (position < 1)
    u = jnp.where(inside, position, 0.5)
    return jnp.where(inside, jnp.exp(-1 / (u * (1 - u))), 0.0)


def mean_of(x: Float[Array, "n *rest"]) -> Float[Array, "*rest"]:
    """Mean over a short first axis, added up in order.

    The same to the last bit however many points are computed side by side.
    """
    return add_up(x[i] for i in range(x.shape[0])) / x.shape[0]


def safe_log(x):
    """Natural logarithm of lengths: ln 0 = -inf, and NaN stays NaN."""
    return jnp.where(x == 0, -jnp.inf, jnp.log(jnp.where(x == 0, 1.0, x)))


def _push(system, lifted, frame, every):
    return jax.lax.fori_loop(0, every, lambda _, c: system.push(*c), (lifted, frame))


def _nonzero(x):
    return jnp.where(x > 0, x, 1.0)


def _blank(block, low):
    zeros = jnp.zeros(block.shape)
    return zeros, jnp.full(low.shape, jnp.inf), jnp.full(low.shape, -jnp.inf)


def _empty_sums(frame, n_observables: int) -> Sums:
    k, batch = frame.shape[1], frame.shape[2:]
    q, seen = jnp.zeros((k + n_observables, *batch)), jnp.zeros((n_observables, *batch))
    block, low, high = _blank(q, seen)
    return Sums(
        weighted=jnp.zeros((3, *q.shape)),
        weights=jnp.zeros(3),
        blocks=block,
        low=low,
        high=high,
        lost=jnp.zeros((k, *batch), int),
        shortest=jnp.full((k, *batch), jnp.inf),
        longest=jnp.zeros(batch),
    )


def check_counts(steps, transient, every, blocks):
    for name, value, least in (
        ("steps", steps, 1),
        ("transient", transient, 0),
        ("reorthonormalize_every", every, 1),
        ("blocks", blocks, 4),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value}.")
    if blocks % 4:
        raise ValueError(f"blocks must be a multiple of 4; got {blocks}.")
