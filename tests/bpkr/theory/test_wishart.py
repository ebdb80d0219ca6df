import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from statmech_attn import bpkr
from statmech_attn.batches import rng
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory import wishart
from statmech_attn.bpkr.theory.action import energy as energy_of


@pytest.fixture(scope="module")
def data(small):
    x, heads, y = small
    xi = bpkr.attentioned_inputs(x, heads)
    return xi[:3, :, :4], 2 * y[:3]


def drawn_order_parameters(width, heads, variances, draws):
    """U_1 of networks drawn from the prior, weight by weight."""

    def one(key):
        weights = bpkr.draw_weights(
            key, n_inputs=1, heads=heads, width=width, variances=variances
        )
        return bpkr.order_parameters(weights)[0][0]

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), draws))


def posed(data, width, temperature, heads=(2, 2), variances=None):
    return Problem(
        *data, heads=heads, width=width, temperature=temperature, variances=variances
    )


def weighted(U, problem):
    """Mean of draws from the prior weighted by the labels, and its squared error."""
    kernel, T = problem.operator.kernel, problem.temperature
    energies = jax.lax.map(
        lambda u: energy_of(kernel(u), T, problem.y), U, batch_size=2000
    )
    weight = jax.nn.softmax(-energies / 2)
    mean = jnp.einsum("s,sab->ab", weight, U)
    return mean, jnp.einsum("s,sab->ab", weight**2, (U - mean) ** 2)


@pytest.mark.parametrize("k", (1, 2, 9))
def test_the_prior_of_a_diagonal_entry_is_normalised(k):
    z = np.linspace(-60, 20, 200_001)
    density = np.exp(wishart.log_diagonal(jnp.asarray(z), np.array(float(k))))
    # The trapezoidal rule is exact to round-off for smooth decaying functions; the
    # left tail e^{z sqrt(k/2)} at -60 is below 1e-18.
    assert np.trapezoid(density, z) == pytest.approx(1, abs=1e-9)


@pytest.mark.slow
@pytest.mark.statistical
def test_many_paths_are_sampled_in_short_trees_without_a_learned_covariance():
    """16 paths, N = 10: rank ten, 126 coordinates, a warm-up too short to learn them.

    A covariance of 126 coordinates from dozens of steps is singular but for what
    regularises it, and trees of hundreds of gradients follow.
    """
    xi_key, y_key = jax.random.split(jax.random.key(4))
    xi = rng.normal(xi_key, (4, 5, 16))
    xi, y = xi + xi[:, :, :1], rng.normal(y_key, (4,))
    problem = posed((xi, y), 10, 0.5, heads=(4, 4))
    assert problem.law().dimension == 126
    found = problem.posterior(jax.random.key(5), draws=300, warmup=150, chains=2)
    assert float(found.steps.mean()) < 32
    assert float(found.r_hat.max()) < 1.05
    U = drawn_order_parameters(10, (4, 4), None, 20_000)
    expected, variance = weighted(U, problem)
    mean = found.U[0].mean(axis=(0, 1))
    error = jnp.sqrt(variance + found.U[0].var(axis=(0, 1)) / found.n_eff)
    # Of 136 entries one is beyond 4.5 errors once in a thousand times.
    assert (np.abs(mean - expected) < 4.5 * error).all()


def test_ranks_are_limited_by_the_width(data):
    posterior = posed(data, 3, 0.1).law()
    z = rng.normal(jax.random.key(4), (posterior.dimension,))
    (U_1, U_2), U_a = posterior.order_parameters(z)
    assert np.linalg.matrix_rank(U_1) == 3 and np.linalg.matrix_rank(U_2) == 2
    assert U_a.shape == (1, 1)


@pytest.mark.slow
@pytest.mark.statistical
def test_ranks_of_networks_from_the_prior_are_uniform(data):
    """Simulation-based calibration: truth drawn from the prior, labels from it."""
    xi, _ = data
    repeats, kept, T = 96, 15, 0.2
    blank = posed((xi[:2], jnp.zeros(2)), 3, T)

    def rank(key):
        weight_key, noise_key, sample_key = jax.random.split(key, 3)
        weights = bpkr.draw_weights(
            weight_key, n_inputs=xi.shape[1], heads=(2, 2), width=3
        )
        f = bpkr.forward_paths(weights, xi)
        y = f[:2] + np.sqrt(T) * rng.normal(noise_key, (2,))
        draws = blank.at(Y=y).posterior(
            sample_key, draws=20 * kept, warmup=100, chains=1
        )
        U = bpkr.order_parameters(weights)[0][0]
        truth = jnp.stack([U[0, 0], U[0, 1], U[1, 3]])
        drawn = draws.U[0][0, ::20]
        values = jnp.stack([drawn[:, 0, 0], drawn[:, 0, 1], drawn[:, 1, 3]])
        return (values < truth[:, None]).sum(axis=1)

    ranks = np.stack([rank(k) for k in jax.random.split(jax.random.key(6), repeats)])
    counts = np.stack([np.bincount(r // 2, minlength=8) for r in ranks.T])
    statistic = ((counts - repeats / 8) ** 2).sum(axis=1) / (repeats / 8)
    # Three tests of eight bins: each below 1e-4 under the null.
    assert (stats.chi2.sf(statistic, 7) > 1e-4).all()


@pytest.mark.slow
def test_predictions_do_not_depend_on_the_memory_they_may_take(data, monkeypatch):
    """Path-path kernels or inputs, draws together or alone; two outputs."""
    xi, y = data[0][:, :4], data[1]
    Y = jnp.stack([y, y[::-1] ** 2], axis=1)
    test = rng.normal(jax.random.key(9), (200, 4, 4))
    law = posed((xi, Y), 4, 0.3).law()
    z = rng.normal(jax.random.key(10), (2, 20, law.dimension))
    U, U_a = jax.vmap(jax.vmap(law.order_parameters))(z)
    draws = wishart.Draws(
        z, U, U_a, (), jnp.array(0), jnp.ones((2, 20)), np.ones(2), law
    )
    together = draws.predict(test)
    (linear,) = draws.means([test])
    np.testing.assert_allclose(linear, together.mean, atol=1e-10)
    there = law.problem.theory(draws.U[0][1, 2]).predict(test)
    assert np.abs(there.mean - together.means[1, 2]).max() < 1e-10
    monkeypatch.setattr(wishart, "BLOCK_MEMORY", 1)
    # Path-path kernels, held twice, need 50 kB more than one call from the inputs.
    small = 8 * 4 * (200 * 4 * 4 + 3 * (3 * 200 + 6 * 3))
    alone = draws.predict(test, memory_limit=small)
    assert np.abs(alone.mean - together.mean).max() < 1e-10
    assert np.abs(alone.variance - together.variance).max() < 1e-10
    with pytest.raises(ValueError, match="fewer at a time"):
        draws.predict(test, memory_limit=small - 1)


@pytest.mark.slow
def test_one_neuron_has_its_mode_away_from_zero(data):
    """At N = 1 all factors may vanish together, where the likelihood is flat."""
    posterior = posed(data, 1, 1e-3).law()
    mode, root = wishart.whitening(posterior)
    assert float(jnp.trace(posterior.order_parameters(mode)[0][0])) > 0.1
    assert np.linalg.matrix_rank(root) == posterior.dimension


@pytest.mark.slow
def test_a_law_without_a_mode_is_refused(data):
    """At T = 1e-300 one neuron leaves K + T singular to round-off."""
    xi, y = data
    twice = jnp.concatenate([xi, xi]), jnp.concatenate([y, -y])
    with pytest.raises(RuntimeError, match="mode of the exact law was not found"):
        posed(twice, 1, 1e-300).posterior(jax.random.key(0))


def test_bad_input_is_refused(data):
    with pytest.raises(ValueError, match="whole"):
        posed(data, 2.5, 0.1).law()
    with pytest.raises(ValueError, match="temperature"):
        posed(data, 2, 0.0).law()
    with pytest.raises(ValueError, match="draws"):
        posed(data, 3, 0.1).posterior(jax.random.key(0), draws=0)
