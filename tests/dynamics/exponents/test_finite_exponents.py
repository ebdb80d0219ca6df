"""Rank of the Jacobian of many steps, read off a program, and exponents beyond it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import classify, cycle_spectrum, lyapunov_spectrum, System
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents


W = np.random.default_rng(0).normal(size=(4, 2))
LOGISTIC = lambda x: 3.9 * x * (1 - x)


def delayed(z):
    """(x, y) -> (f(x), x)."""
    return jnp.stack([LOGISTIC(z[0]), z[0]])


@pytest.mark.parametrize(
    ("step", "dimension", "rank"),
    [
        (delayed, 2, 1),
        (lambda z: jnp.stack([LOGISTIC(z[0]), z[0], z[1]]), 3, 1),
        (lambda z: jnp.stack([1 - 1.4 * z[0] ** 2 + z[1], 0.3 * z[0]]), 2, 2),
        (lambda z: jnp.full(3, 0.2), 3, 0),
        (lambda z: jnp.floor(z) + 0.5, 2, 0),
        (lambda z: np.triu(np.ones((3, 3)), 1) @ z, 3, 0),
        (lambda z: W @ jnp.tanh(W.T @ z), 4, 2),
        (lambda z: jnp.roll(z, 1).at[0].set(jnp.sin(z[0] * z[2])), 4, 3),
        (lambda z: jnp.where(z > 0, z[::-1], -z), 3, 3),
        (lambda z: 0.9 * LOGISTIC(z) + 0.1 * jnp.roll(z, 1), 16, 16),
        (lambda z: jnp.tanh(jnp.sum(z)) * jnp.arange(1.0, 5.0), 4, 1),
        (lambda z: jax.lax.fori_loop(0, 3, lambda _, z: z + 0.1 * z[::-1], z), 2, 2),
    ],
)
def test_the_rank_of_a_program_is_its_smallest_cut(step, dimension, rank):
    state = jnp.linspace(0.1, 0.4, dimension)
    map = System(step).at()
    assert finite_exponents(map, state) == rank
    # No bound is below what the Jacobians of some states have.
    product, x = np.eye(dimension), state
    linearised = jax.jit(lambda x: (jax.jacobian(step)(x), step(x)))
    for _ in range(dimension):
        jacobian, x = linearised(x)
        product = np.asarray(jacobian) @ product
    assert np.linalg.matrix_rank(product) <= rank


def test_a_clock_and_parts_of_a_state_are_followed():
    def step(state, p):
        x, (y, clock) = state
        return p["a"] * jnp.sin(x), (x + (clock == 0), (clock + 1) % 3)

    state = (jnp.array([0.1, 0.2]), (jnp.array([0.3, 0.4]), jnp.array(0)))
    assert finite_exponents(System(step).at({"a": 1.2}), state) == 2
    rank = lambda a: jnp.array(finite_exponents(System(step).at({"a": a}), state))
    assert jax.vmap(jax.jit(rank))(jnp.array([1.0, 2.0])).tolist() == [2, 2]


@pytest.mark.slow
def test_exponents_beyond_the_rank_are_minus_infinity():
    start = jnp.array([0.3, 0.2])
    found = lyapunov_spectrum(delayed, start, steps=2000)
    assert np.isneginf(found.exponents[1]) and not np.isnan(found.weighted).any()
    assert "-∞ nat / step" in repr(found)
    verdict = classify(delayed, start, steps=2000)
    assert np.isneginf(verdict.spectrum.exponents[1])
    # On the cycle of period 2 at r = 3.2 as well.
    two = lambda z: jnp.stack([3.2 * z[0] * (1 - z[0]), z[0]])
    on_cycle = cycle_spectrum(two, jnp.array([0.5130445095326298, 0.8]), period=2)
    assert np.isneginf(on_cycle.exponents[1])
    assert float(on_cycle.exponents[0]) == pytest.approx(np.log(0.16) / 2)


def test_a_rank_that_no_program_shows_is_an_argument():
    """(x + y)/2 and its copy, written as a matrix that depends on a parameter."""
    step = lambda z, p: LOGISTIC(p["half"] @ z)
    half = {"half": jnp.full((2, 2), 0.5)}
    start = jnp.array([0.3, 0.2])
    assert finite_exponents(System(step).at(half), start) == 2
    told = lyapunov_spectrum(System(step, rank=1), start, half, steps=2000)
    assert np.isneginf(told.exponents[1]) and np.isfinite(told.exponents[0])
    assert System(step, rank=1).strobed(2).rank == 1
    assert finite_exponents(System(step, rank=-1).at(half), start) == 1
