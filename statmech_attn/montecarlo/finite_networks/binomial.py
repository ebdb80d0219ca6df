r"""Exact binomial numbers in double precision, for counts up to 2^53.

With p <= 1/2 (the rarer outcome is counted, the other is its complement):

* n p < 10: inversion, walking up the distribution from k = 0 with one uniform number;
* n p >= 10: transformed rejection (W. Hoermann, J. Stat. Comput. Simul. 46, 101 (1993),
  algorithm BTRS) without its squeeze, which saves nothing when lanes run together.

The acceptance test needs f(k)/f(m), m the mode, whose factorials cancel to all digits
at large n.  With j = k - m, x = m + 1, y = n - m + 1, s(x) the remainder of Stirling's
series of ln Gamma(x), and phi(t) = (1 + t) ln(1 + t) - t,

    $-\ln\frac{f(k)}{f(m)} = x \phi(j/x) + y \phi(-j/y)
       + j \ln\!\Big[1 + \frac{m - n p + 1 - 2 p}{y p}\Big]
       - \tfrac12 \ln\big[(1 + j/x)(1 - j/y)\big] + \Delta s_x + \Delta s_y$

in which nothing cancels.  `jax.random.binomial` subtracts logarithms of size n 10^-16
here, an error of 10^-4 in ln f at n = 10^12.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn.montecarlo.finite_networks.randomness import (
    uniform,
    Words,
)


LIMIT = 2**53  # beyond it not every count is a double
SMALL_MEAN = 10.0  # BTRS is proven above it
MAX_ATTEMPTS = 200  # each accepts with probability > 0.6
MAX_SMALL = 200  # P(k > 200) < 1e-170 for n p < 10


def any_count(lanes: Words, n, p) -> Float[Array, "*batch"]:
    """Binomial(n, p), one cipher key per lane; for use inside jit."""
    k = rare_count(lanes, n, jnp.minimum(p, 1 - p))
    return jnp.where(p <= 0.5, k, n - k)


def rare_count(lanes: Words, n, p) -> Float[Array, "*batch"]:
    """Binomial(n, p) for p <= 1/2, one cipher key per lane; for use inside jit.

    NaN marks a lane whose bounded loop ran out (probability below 1e-80).
    """
    shape = jnp.broadcast_shapes(lanes[0].shape, jnp.shape(n), jnp.shape(p))
    n, p = jnp.broadcast_to(n, shape), jnp.broadcast_to(p, shape)
    large = n * p >= SMALL_MEAN
    small = _inversion(lanes, jnp.where(large, 0.0, n), jnp.where(large, 0.0, p))
    n, p = jnp.where(large, n, 100.0), jnp.where(large, p, 0.5)
    return jnp.where(large, _rejection(lanes, n, p, large), small)


def _inversion(lanes, n, p):
    """Walk up f(0), f(1), ... until the uniform number is used up."""
    remainder = uniform(lanes, 0, 2) * jnp.ones_like(p)
    odds = p / (1 - p)

    def going(carry):
        k, _, _, settled = carry
        return ~settled.all() & (k < MAX_SMALL)

    def up(carry):
        k, f, remainder, settled = carry
        remainder = jnp.where(settled, remainder, remainder - f)
        reached = ~settled & ((remainder <= 0) | (k >= n))
        count = jnp.where(reached, k.astype(float), f)
        f = jnp.where(settled | reached, count, f * odds * (n - k) / (k + 1))
        return k + 1, jnp.where(settled, carry[1], f), remainder, settled | reached

    start = (
        jnp.array(0),
        jnp.exp(n * jnp.log1p(-p)),
        remainder,
        jnp.zeros(p.shape, bool),
    )
    _, count, _, settled = jax.lax.while_loop(going, up, start)
    return jnp.where(settled, count, jnp.nan)


def _rejection(lanes, n, p, needed):
    """Transformed rejection; lanes that are not wanted cost nothing."""
    hat = _Hat(n, p)

    def going(carry):
        attempt, _, settled = carry
        return ~settled.all() & (attempt < MAX_ATTEMPTS)

    def attempt_once(carry):
        attempt, j, settled = carry
        u, v = uniform(lanes, attempt, 0) - 0.5, uniform(lanes, attempt, 1)
        proposed, height = hat.propose(u)
        inside = (proposed >= -hat.mode) & (proposed <= n - hat.mode)
        proposed = jnp.where(inside, proposed, 0.0)
        accept = inside & (jnp.log(v * height) <= hat.log_ratio(proposed))
        return attempt + 1, jnp.where(~settled & accept, proposed, j), settled | accept

    start = (jnp.array(0), jnp.full(p.shape, jnp.nan), ~needed)
    return hat.mode + jax.lax.while_loop(going, attempt_once, start)[1]


class _Hat:
    """Hoermann's table mountain over the binomial distribution of (n, p), n p >= 10."""

    def __init__(self, n, p):
        spread = jnp.sqrt(n * p * (1 - p))
        self.b = 1.15 + 2.53 * spread
        self.a = -0.0873 + 0.0248 * self.b + 0.01 * p
        self.alpha = (2.83 + 5.1 / self.b) * spread
        self.mode = jnp.floor((n + 1) * p)
        self.below = n * p - self.mode  # in about [-1, 1]
        self.x, self.y = self.mode + 1, n - self.mode + 1
        self.tilt = jnp.log1p((1 - 2 * p - self.below) / (self.y * p))

    def propose(self, u):
        """Offset from the mode for u in (-1/2, 1/2), and the hat's height there."""
        edge = 0.5 - jnp.abs(u)
        offset = jnp.floor((2 * self.a / edge + self.b) * u + (self.below + 0.5))
        return offset, self.alpha / (self.a / edge**2 + self.b)

    def log_ratio(self, j):
        """ln f(m + j) / f(m); see the module docstring."""
        x, y = self.x, self.y
        bulk = x * _phi(j / x) + y * _phi(-j / y) + j * self.tilt
        width = 0.5 * (jnp.log1p(j / x) + jnp.log1p(-j / y))
        return (
            width
            - bulk
            - (_stirling(x + j) - _stirling(x))
            - (_stirling(y - j) - _stirling(y))
        )


def _phi(t):
    """(1 + t) ln(1 + t) - t for t > -1, to rounding also at small t."""
    near = jnp.abs(t) < 0.1
    v = jnp.where(near, t / (2 + t), 0.0)
    square = v * v
    series = 1.0 / 15
    for odd in (13, 11, 9, 7, 5, 3):
        series = 1.0 / odd + square * series
    small = 2 * square * (1 + (1 + v) * v * series) / (1 - v)
    return jnp.where(near, small, (1 + t) * jnp.log(1 + t) - t)


def _remainder(x: int) -> float:
    return math.lgamma(x) - ((x - 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi))


TABLE = np.array([0.0] + [_remainder(x) for x in range(1, 16)])


def _stirling(x):
    """Remainder of Stirling's series, ln Gamma(x) - ..., for whole x >= 1."""
    r = 1 / (jnp.maximum(x, 16.0) ** 2)
    series = 1 / 12 + r * (-1 / 360 + r * (1 / 1260 + r * (-1 / 1680 + r / 1188)))
    small = jnp.asarray(TABLE)[jnp.minimum(x, 15.0).astype(jnp.int32)]
    return jnp.where(x < 16, small, series / jnp.maximum(x, 16.0))
