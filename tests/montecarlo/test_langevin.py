"""Underdamped Langevin dynamics: its stationary law and the bias of its steps."""

import math

import jax
import numpy as np
import pytest

from statmech_attn.montecarlo import sample_weights, weight_space
from statmech_attn.montecarlo.langevin import langevin, stiffness, TIME
from statmech_attn.studies.reporting import Silent


OSCILLATORS = 40_000
FREQUENCY = 4.0


def variance_of_oscillators(step_size, draws=40):
    """omega^2 <z^2> - 1 of as many oscillators as coordinates, and its error."""
    log_density = lambda z: -(FREQUENCY**2) * z @ z / 2
    sampler = langevin(log_density, step_size=step_size)

    @jax.jit
    def run(key):
        start_key, z_key = jax.random.split(key)
        z = jax.random.normal(z_key, (OSCILLATORS,)) / FREQUENCY
        state = sampler.start(start_key, z)

        def draw(state, _):
            state = sampler.step(state)
            return state, FREQUENCY**2 * sampler.describe(state).z ** 2

        return jax.lax.scan(draw, state, None, length=10 + draws)[1][10:].mean(0) - 1

    excess = np.asarray(run(jax.random.key(1)))  # one number per oscillator
    return excess.mean(), excess.std(ddof=1) / math.sqrt(OSCILLATORS)


@pytest.mark.statistical
def test_the_bias_of_a_step_falls_with_its_square():
    """Halving the step divides the excess variance by four, and it tends to zero."""
    steps = np.array([0.25, 0.125, 0.0625])  # h omega = 1, 1/2, 1/4
    measured = [variance_of_oscillators(h) for h in steps]
    bias, error = np.array(measured).T
    assert abs(bias[0]) > 20 * error[0]  # there is a bias to follow
    slopes = np.log2(np.abs(bias[:-1] / bias[1:]))
    slope_errors = np.hypot(error[:-1] / bias[:-1], error[1:] / bias[1:]) / np.log(2)
    # The next order of the scheme changes the slope by about (h omega)^2 / 4.
    allowed = 4 * slope_errors + (steps[:-1] * FREQUENCY) ** 2 / 4
    assert (np.abs(slopes - 2) < allowed).all()
    limit = (4 * bias[2] - bias[1]) / 3
    assert abs(limit) < 4 * np.hypot(4 * error[2], error[1]) / 3


@pytest.fixture(scope="module")
def small():
    keys = jax.random.split(jax.random.key(2), 3)
    xi = jax.random.normal(keys[0], (3, 6, 4))
    posterior = weight_space.posterior(
        xi, 2 * jax.random.normal(keys[1], (3,)), width=3, temperature=0.1,
        heads=(2, 2),
    )  # fmt: skip
    return posterior, xi, keys[2]


def test_stiffness_is_the_largest_frequency(small):
    posterior, _, key = small
    z = posterior.draw_start(key)
    curvature = np.linalg.eigvalsh(jax.hessian(posterior.log_density)(z))
    expected = math.sqrt(np.abs(curvature).max())
    found = stiffness(posterior.log_density, z, jax.random.key(0))
    assert float(found) == pytest.approx(expected, rel=0.02)


def run(small, step_size, draws=20):
    posterior, xi, key = small
    return sample_weights(
        key, posterior, method="langevin", xi_test=xi, y_test=posterior.Y,
        draws=draws, warmup=20, chains=2, block=10, folder=None,
        study='kind = "test"', report=Silent(), step_size=step_size,
    )  # fmt: skip


def test_too_large_a_step_is_reported(small):
    with pytest.raises(ValueError, match="unstable at this step size"):
        run(small, 0.5)


def test_steps_end_where_a_draw_is_taken(small):
    found = run(small, 0.03)
    assert (found.leapfrog_steps == math.ceil(TIME / 0.03)).all()
    assert np.allclose(found.step_size, TIME / math.ceil(TIME / 0.03), rtol=1e-15)
    assert found.divergences == 0
