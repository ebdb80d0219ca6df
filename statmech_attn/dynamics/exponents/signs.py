r"""Signs of Lyapunov exponents, by their errors (docs/theory/dynamics.md, section 2).

An exponent is known as averages over a window and its halves, in nats per step.
"""

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from statmech_attn.dynamics.options import Criteria


if TYPE_CHECKING:
    from statmech_attn.dynamics.exponents.lyapunov import Spectrum


UNCLEAR = 2
STRETCH = 0.3  # n times a zero exponent: at most 0.18 on tori, 1 and more elsewhere


def signs_of(spectrum: "Spectrum", criteria: Criteria) -> Int[Array, "k *batch"]:
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


def averages(spectrum: "Spectrum") -> Float[Array, "3 k *batch"]:
    """Weighted averages over the window and its halves."""
    return jnp.concatenate([spectrum.weighted[None], spectrum.halves])


def zeros(
    spectrum: "Spectrum", zero: float, sigmas: float = Criteria.positive_sigmas
) -> Bool[Array, "k *batch"]:
    """Which exponents are zero: below `zero` by size, and not known to differ from it.

    `zero` is in nats per step; an exponent beyond `sigmas` of its errors differs from
    zero, however small it is.
    """
    values = averages(spectrum)
    small = jnp.all(jnp.abs(values) <= zero, axis=0)
    return small & (resolved_sign(spectrum, sigmas) == 0)


def resolved_sign(spectrum: "Spectrum", sigmas: float) -> Int[Array, "k *batch"]:
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
    spectrum: "Spectrum", sign, criteria: Criteria, steady
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
