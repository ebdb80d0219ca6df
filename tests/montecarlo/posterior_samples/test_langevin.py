"""Underdamped Langevin dynamics: its stationary law and the bias of its steps."""

import math

import equinox as eqx
import jax
import numpy as np
import pytest

from statmech_attn.batches import rng
from statmech_attn.bpkr import Problem
from statmech_attn.montecarlo import weight_space
from statmech_attn.montecarlo.posterior_samples.langevin import (
    langevin,
    stiffness,
    TIME,
)
from statmech_attn.montecarlo.posterior_samples.weight_sampling import (
    FIRST_STEP,
    sample_weights,
)
from statmech_attn.reporting import Silent


OSCILLATORS = 40_000
FREQUENCY = 4.0


def variance_of_oscillators(step_size, draws=40):
    """omega^2 <z^2> - 1 of as many oscillators as coordinates, and its error."""
    log_density = lambda z: -(FREQUENCY**2) * z @ z / 2
    sampler = langevin(log_density, step_size=step_size)

    @jax.jit
    def run(key):
        start_key, z_key = jax.random.split(key)
        z = rng.normal(z_key, (OSCILLATORS,)) / FREQUENCY
        state = sampler.start(start_key, z)

        def draw(state, _):
            state = sampler.step(state)
            return state, FREQUENCY**2 * sampler.describe(state).z ** 2

        return jax.lax.scan(draw, state, None, length=10 + draws)[1][10:].mean(0) - 1

    excess = np.asarray(run(jax.random.key(1)))  # one number per oscillator
    return excess.mean(), excess.std(ddof=1) / math.sqrt(OSCILLATORS)


@pytest.mark.slow
@pytest.mark.statistical
def test_the_bias_of_a_step_falls_with_the_third_order_or_faster():
    """Halving the step divides the excess variance by eight or more."""
    measured = [variance_of_oscillators(h / FREQUENCY) for h in (1.5, 0.75)]
    (large, small), errors = np.array(measured).T
    assert large < -20 * errors[0]  # there is a bias to follow
    slope_error = np.hypot(errors[0] / large, errors[1] / small) / np.log(2)
    assert np.log2(large / small) > 3 - 4 * slope_error


@pytest.mark.slow
@pytest.mark.statistical
def test_the_bias_of_the_default_step_is_below_a_percent():
    bias, error = variance_of_oscillators(FIRST_STEP / FREQUENCY)
    assert abs(bias) < 0.01 - 4 * error


@pytest.fixture(scope="module")
def small():
    keys = jax.random.split(jax.random.key(2), 3)
    xi = rng.normal(keys[0], (3, 6, 4))
    Y = 2 * rng.normal(keys[1], (3,))
    problem = Problem(xi, Y, heads=(2, 2), width=3, temperature=0.1)
    return weight_space.posterior(problem), xi, keys[2]


@pytest.mark.slow
def test_stiffness_is_the_largest_frequency(small):
    posterior, _, key = small
    z = posterior.draw_start(key)
    curvature = np.linalg.eigvalsh(jax.jit(jax.hessian(posterior.log_density))(z))
    expected = math.sqrt(np.abs(curvature).max())
    found = stiffness(posterior.log_density, z, jax.random.key(0))
    assert float(found) == pytest.approx(expected, rel=0.02)


def run(small, step_size, **changes):
    posterior, xi, key = small
    settings = dict(
        method="langevin", draws=20, warmup=20, chains=2, block=10, folder=None
    )
    return sample_weights(
        key,
        posterior,
        xi_test=xi,
        y_test=posterior.Y,
        study='kind = "test"',
        report=Silent(),
        step_size=step_size,
        **settings | changes,
    )


@pytest.mark.slow
def test_too_large_a_step_is_reported_with_what_to_do_about_it(small, tmp_path):
    folder = tmp_path / "out.blocks"
    # The trajectory leaves after a while, with blocks behind it.
    with pytest.raises(ValueError, match="unstable at this step size") as caught:
        run(small, 0.15, folder=folder, warmup=10, draws=10_000)
    assert any(folder.iterdir())
    message = str(caught.value)
    assert "smaller step_size than 0.143." in message and "\n" not in message


def test_a_density_that_overflows_is_refused(small):
    posterior, xi, key = small
    beyond = eqx.tree_at(lambda p: p.Y, posterior, 1e160 * posterior.Y)
    with pytest.raises(ValueError, match="Y are too large"):
        run((beyond, xi, key), None, method="langevin")


@pytest.mark.slow
def test_steps_end_where_a_draw_is_taken(small):
    found = run(small, 0.03)
    assert (found.leapfrog_steps == 2 * math.ceil(TIME / 0.03)).all()
    assert np.allclose(found.step_size, TIME / math.ceil(TIME / 0.03), rtol=1e-15)
    assert found.divergences == 0
    assert found.bfmi is None
