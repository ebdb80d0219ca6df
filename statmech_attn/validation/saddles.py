"""Rows on edges of basins and on chaotic saddles."""

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.dynamics import (
    escape_rate,
    escape_times,
    lyapunov,
    stagger_and_step,
    track_edge,
)
from statmech_attn.validation import systems
from statmech_attn.validation.rows import Measurement, Row


SLOPES = np.array([2.5, 5.0])  # of a tent that orbits leave
FAR = 1e-6  # of the two sides of an edge


def _open_tent(x):
    return jnp.where(x < 0.5, SLOPES[0] * x, SLOPES[1] * (1 - x))


def _saddle():
    """Escape rate, exponent and dimension of the orbits that stay in [0, 1]."""
    inside = lambda x: (x >= 0) & (x <= 1)
    starts = np.random.default_rng(0).uniform(0, 1, 20_000)
    times = escape_times(_open_tent, starts, inside, horizon=100)
    rate = escape_rate(*times, after=0)
    saddle = stagger_and_step(
        _open_tent,
        jnp.array(0.3),
        inside,
        steps=4000,
        lifetime=25,
        key=jax.random.key(0),
    )
    dimension, error = saddle.dimension(rate)
    return Measurement(
        [rate.rate, float(saddle.exponents[0]), dimension],
        [rate.stderr, float(saddle.stderr[0]), error],
        lyapunov.BLOCKS,
    )


def _edge():
    """Exponents of the edge state between Henon's attractor and infinity."""
    gone = lambda z: jnp.where(jnp.abs(z[0]) > 10, 1, -1)
    settled = lambda z: jnp.where(jnp.abs(z[0] - 0.6) < 0.1, 0, gone(z))
    edge = track_edge(
        systems.henon,
        jnp.array([0.1, 0.1]),
        jnp.array([-2.0, 0.1]),
        label=settled,
        far=FAR,
        steps=200,
        transient=50,
    )
    return Measurement(edge.exponents.tolist())


STAYS = (1 / SLOPES).sum()  # share of uniform starts, at each step
SHARES = 1 / SLOPES / STAYS
GROWTH = float((SHARES * np.log(SLOPES)).sum())
FIXED = (-0.7 - np.sqrt(0.49 + 5.6)) / 2.8  # x = 1 - 1.4 x^2 + 0.3 x, its lower root
ROOT = np.sqrt(1.96 * FIXED**2 + 0.3)
MULTIPLIERS = -1.4 * FIXED + ROOT, -1.4 * FIXED - ROOT
ROWS = (
    Row("open skew tent", ("escape rate", "λ_1 on the saddle", "its dimension"),
        _saddle, (-np.log(STAYS), GROWTH, 1 + np.log(STAYS) / GROWTH),
        "uniform starts; D = 1 - κ/λ_1"),
    # The sides are FAR from the edge at most, over 1 + 1.13, where ln|2.8 x| changes by
    # 1/1.13 of it; ten times that for the second exponent, of a product with 0.3.
    Row("Henon, edge to infinity", ("λ_1", "λ_2"), _edge,
        tuple(np.log(np.abs(MULTIPLIERS))), "the saddle of its fixed points",
        tolerance=10 * FAR),
)  # fmt: skip
