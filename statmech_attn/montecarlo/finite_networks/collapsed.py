r"""Exact collapsed simulation: class counts instead of spins (docs/theory/dmft.md, 5).

Spins of one class are exchangeable and every overlap depends on class sums only, so
the number of up spins of class c in the next token is

    $n_c \sim \mathrm{Binomial}(N_c, (1 + \tanh h_c)/2),$  $N_c = w_c N$

with the field h_c = beta sum_b W^o_{b,c} A_b.  The law is that of N separate spins at a
cost that does not depend on N.  Where spins are redrawn with probability Delta and else
copied, those that change side are counted among the up and the down spins before:

    $\mathrm{Binomial}(n_c, \Delta (1 - \tanh h_c)/2)$ down,
    $\mathrm{Binomial}(N_c - n_c, \Delta (1 + \tanh h_c)/2)$ up

    N_c      (S,)           spins per class, whole numbers      `counts`
    h_c      (S, *batch)    fields                              `fields`
    <x>_c    (S, *batch)    sampled class means                 returned
"""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn.dmft import Patterns
from statmech_attn.montecarlo.finite_networks.binomial import (
    any_count,
    LIMIT,
    rare_count,
)
from statmech_attn.montecarlo.finite_networks.randomness import address, uniform, Words
from statmech_attn.options import Count


MAX_DENOMINATOR = 10**6
ROUNDING = 2e-15  # of fractions that were normalised in double precision


def class_counts(patterns: Patterns, n_spins: Count) -> Int[np.ndarray, " S"]:
    """Spins per site class, N_c = w_c N."""
    if (
        isinstance(n_spins, bool)
        or n_spins != int(n_spins)
        or not 1 <= n_spins <= LIMIT
    ):
        raise ValueError(f"n_spins must be a whole number in 1..2^53; got {n_spins}.")
    n_spins = int(n_spins)
    shares = [_as_fraction(w) for w in patterns.fractions]
    if sum(shares) != 1:
        raise ValueError(
            "fractions: their nearest ratios of whole numbers do not sum to 1."
        )
    unit = math.lcm(*(share.denominator for share in shares))
    if n_spins % unit:
        nearest = max(1, (n_spins + unit // 2) // unit) * unit
        raise ValueError(
            f"n_spins must be a multiple of {unit}, so that every site class has a "
            f"whole number of spins; got {n_spins}, the nearest is {nearest}."
        )
    return np.array([int(share * n_spins) for share in shares])


def draw_counts(lanes: Words, fields, counts) -> Float[Array, "S *batch"]:
    """Class means of a sampled token, one binomial number per class.

    The rarer orientation is counted, so that a nearly saturated class keeps its tail.
    Cipher keys have words (*batch), `fields` h_c are (S, *batch) and `counts` N_c (S,).
    """
    lanes, n = by_class(lanes, fields, counts)
    rare = rare_count(lanes, n, jax.nn.sigmoid(-2 * jnp.abs(fields)))
    return class_means(fields, rare, n)


def redraw_counts(
    lanes: Words, fields, counts, before, redrawn
) -> Float[Array, "S *batch"]:
    """Class means of a sampled token of which spins are redrawn, else copied.

    `before` are class means (S, *batch) of whole numbers of spins, `redrawn` is the
    probability Delta (*batch); the others as in `draw_counts`.
    """
    lanes, n = by_class(lanes, fields, counts)
    up = jnp.round(n * (1 + before) / 2)
    lost = any_count(address(lanes, 0), up, redrawn * jax.nn.sigmoid(-2 * fields))
    won = any_count(address(lanes, 1), n - up, redrawn * jax.nn.sigmoid(2 * fields))
    return (2 * (up - lost + won) - n) / jnp.maximum(n, 1.0)


def whole_spins(lanes: Words, means, counts) -> Float[Array, "S *batch"]:
    """Class means of whole numbers of spins with the same expectation.

    `means` are in [-1, 1], (S, *batch); the others as in `draw_counts`.
    """
    lanes, n = by_class(lanes, means, counts)
    up = jnp.minimum(jnp.floor(n * (1 + means) / 2 + uniform(lanes, 0)), n)
    return (2 * up - n) / jnp.maximum(n, 1.0)


def by_class(lanes: Words, fields, counts):
    """Cipher keys (S, *batch) and counts (S, 1, ...) for fields (S, *batch)."""
    column = (-1,) + (1,) * (fields.ndim - 1)
    index = jnp.arange(fields.shape[0]).reshape(column)
    return address(lanes, index), jnp.asarray(counts, float).reshape(column)


def class_means(fields, rare, n):
    """<x>_c when `rare` of n spins point against their field; 0 for an empty class."""
    return jnp.where(fields >= 0, 1.0, -1.0) * (n - 2 * rare) / jnp.maximum(n, 1.0)


def _as_fraction(w: float) -> Fraction:
    share = Fraction(float(w)).limit_denominator(MAX_DENOMINATOR)
    if abs(float(share) - w) > ROUNDING:
        raise ValueError(
            f"fractions: {w!r} is no ratio of whole numbers up to {MAX_DENOMINATOR}, "
            "so no N gives every site class a whole number of spins."
        )
    return share
