"""Gradient descent ends at the maximum of the posterior of all weights."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from statmech_attn.batches import rng
from statmech_attn.bpkr import Problem
from statmech_attn.montecarlo import weight_space
from statmech_attn.reporting import Silent
from statmech_attn.storage.writers.blocks import BlockFolder, BlockMemory
from statmech_attn.training import Descent, DIVERGED
from statmech_attn.training.descent import Trainer
from statmech_attn.training.results import CONVERGED, RUNNING


TERMS = weight_space.WeightPosterior.loss_terms
STEEPEST = Descent(
    learning_rate=4e-3, steps=100_000, block=10_000, optimiser="gd", tolerance=1e-8
)


def network(temperature, heads=(2, 2), examples=3, width=6):
    keys = jax.random.split(jax.random.key(3), 3)
    paths = int(np.prod(heads))
    xi = rng.normal(keys[0], (examples, 5, paths)) * 2
    Y = 4 * rng.normal(keys[1], (examples,))
    problem = Problem(xi, Y, heads=heads, width=width, temperature=temperature)
    found = weight_space.posterior(problem, reduced=False)
    return found.with_traced_temperature(), found.draw_prior(keys[2])


@pytest.fixture(scope="module")
def steepest():
    return Trainer(TERMS, STEEPEST, *network(0.1))


def trained(trainer, problem, start, **options):
    return trainer.run(problem, start, BlockMemory(warmup=0), **options)


def layers(problem, z):
    """Squared norms of the whitened weights of every layer."""
    ends = np.cumsum([np.prod(shape) for shape in problem.shapes])
    return [float(part @ part) for part in jnp.split(z, ends[:-1])]


@pytest.mark.slow
def test_the_loss_is_minus_the_log_density():
    problem, z = network(0.1)
    sums = [problem.log_density(x) + sum(TERMS(problem, x)) for x in (z, 0.3 * z)]
    assert float(sums[0]) == pytest.approx(float(sums[1]), rel=1e-12)
    loss = lambda z: sum(TERMS(problem, z))
    along = jnp.cos(jnp.arange(z.size))
    slope, h = jax.jit(jax.grad(loss))(z) @ along, 1e-5
    # Central differences: h^2 from the third derivative, 1e-16 L / h from rounding.
    difference = (loss(z + h * along) - loss(z - h * along)) / (2 * h)
    assert float(difference) == pytest.approx(float(slope), rel=1e-6)


@pytest.mark.slow
def test_a_short_step_gains_the_squared_gradient_and_a_cosine_half_of_many():
    problem, z = network(0.1)
    gradient = jax.jit(jax.grad(lambda z: sum(TERMS(problem, z))))(z)
    rate, moved = 1e-9, []
    for schedule in ("constant", "cosine"):
        descent = Descent(
            learning_rate=rate, steps=10, block=10, optimiser="gd", schedule=schedule
        )
        found = trained(Trainer(TERMS, descent, problem, z), problem, z)
        moved.append(jnp.linalg.norm(found.weights - z))
        if schedule == "constant":
            loss = found.data + found.prior
            gained = (loss[0] - loss[1]) / rate
            assert gained == pytest.approx(float(gradient @ gradient), rel=1e-3)
            assert found.result == RUNNING and found.steps == 10
    # sum of (1 + cos(pi t / n)) / 2 over t < n is (n + 1) / 2.
    assert float(moved[1] / moved[0]) == pytest.approx(11 / 20, rel=1e-4)


@pytest.mark.slow
def test_every_layer_has_the_same_norm_at_the_end(steepest):
    """f is linear in each layer: z_l . dL/dz_l = |z_l|^2 - sum (Y - f) f / T = 0."""
    problem, start = network(0.1)
    found = trained(steepest, problem, start)
    assert found.result == CONVERGED and found.gradient_norm <= 1e-8
    f = problem.training_outputs(found.weights)
    virial = float(((problem.Y - f) * f).sum() / 0.1)
    assert virial > 1
    np.testing.assert_allclose(layers(problem, found.weights), virial, rtol=1e-7)
    # The loss fell on the way, and is told at the end.
    loss = found.data + found.prior
    assert (np.diff(loss) <= 1e-12 * loss[:-1]).all() and found.steps < 100_000
    assert found.prior[-1] == pytest.approx(4 * virial / 2, rel=1e-7)


@pytest.mark.slow  # in the fast tests: the same norm of every layer
def test_one_path_and_one_example_have_their_minimum_in_closed_form():
    """Norms q of three layers: L(q) = (c q^(3/2) - Y)^2 / 2 T + 3 q / 2."""
    T = 0.1
    problem, start = network(T, heads=(1,), examples=1)
    trainer = Trainer(TERMS, STEEPEST, problem, start)
    found = trained(trainer, problem, start)
    assert found.result == CONVERGED
    Y, x = abs(float(problem.Y[0])), float(jnp.linalg.norm(problem.inputs))
    c = x / problem.shapes[0][0]  # 1 / sqrt(N_1 N_a)
    slope = lambda q: 1.5 * (1 + (c * q**1.5 - Y) * c * np.sqrt(q) / T)
    fitted = (Y / c) ** (2 / 3)  # where slope > 0; the minimum lies just below
    q = optimize.brentq(slope, 0.5 * fitted, fitted, xtol=1e-14)
    np.testing.assert_allclose(layers(problem, found.weights), q, rtol=1e-7)
    # No weights at all are a minimum too, with a basin of its own.
    found = trained(trainer, problem, 0.05 * start)
    assert found.result == CONVERGED and max(layers(problem, found.weights)) < 1e-15
    assert found.data[-1] == pytest.approx(float(problem.Y[0] ** 2 / (2 * T)))


@pytest.mark.slow
@pytest.mark.parametrize("stopped_at", (1, 3))
def test_a_run_that_is_stopped_goes_on_with_the_same_bits(tmp_path, stopped_at):
    problem, start = network(0.1)
    descent = Descent(learning_rate=0.01, steps=100, block=20, schedule="cosine")
    trainer = Trainer(TERMS, descent, problem, start)
    store = lambda: BlockFolder(
        tmp_path, warmup=0, study='kind = "test"', run="run", report=Silent()
    )
    blocks = []

    def stop(steps):
        blocks.append(steps)
        if len(blocks) == stopped_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.run(problem, start, store(), stop)
    resumed = trainer.run(problem, start, store(), blocks.append)
    assert blocks == [20] * 5
    straight = trained(trainer, problem, start)
    for one, other in zip(resumed, straight, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_step_that_is_too_long_is_told():
    problem, start = network(0.1, heads=(1,))
    descent = Descent(learning_rate=10.0, steps=100, block=10, optimiser="gd")
    found = trained(Trainer(TERMS, descent, problem, start), problem, start)
    assert found.result == DIVERGED and found.steps < 100
    assert np.isnan(found.data[-1]) and np.isfinite(found.data[0])
    assert not np.isinf(found.data).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be above 0; got 0.0."),
        ({"tolerance": float("nan")}, "tolerance must be a finite number; got nan."),
        ({"block": 15}, "block of 10; got 100 and 15"),
        ({"steps": 50}, "steps must be a multiple of block.* got 50 and 20"),
    ],
)
def test_impossible_choices_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        Descent(**({"learning_rate": 0.1, "steps": 100, "block": 20} | changes))


def test_without_optax_training_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ValueError, match=r"needs optax: pip install .*\[training\]"):
        Trainer(TERMS, Descent(learning_rate=0.1, steps=100, block=20), *network(0.1))


def test_a_long_block_is_not_run_for_its_time():
    """1000 steps of 0.02 s: told from one of them, as 100 000 steps at N = 1000 are."""

    def wait(z):
        time.sleep(0.02)
        return z

    def terms(y, z):
        slow = jax.pure_callback(wait, z, jax.lax.stop_gradient(z))
        return (((z - y) ** 2).sum() / 2, (z @ z) / 2 + 0 * slow.sum())

    descent = Descent(learning_rate=1e-3, steps=10_000, optimiser="gd")
    y, z = jnp.ones(2), jnp.zeros(2)
    trainer = Trainer(terms, descent, y, z)
    begin = time.perf_counter()
    told = trainer.block_seconds(y, z)
    assert told >= 1000 * 0.02 and time.perf_counter() - begin < 10
