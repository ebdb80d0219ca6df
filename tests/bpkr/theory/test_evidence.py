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
from statmech_attn.bpkr.theory.evidence import evidence


@pytest.fixture(scope="module")
def data(small):
    x, heads, y = small
    return bpkr.attentioned_inputs(x, heads)[:4, :, :4], 2 * y[:4]


def by_prior_draws(problem, draws):
    """ln p(Y) and its error from networks drawn weight by weight."""
    y, T, operator = problem.y, problem.temperature, problem.operator

    def one(key):
        weights = bpkr.draw_weights(
            key,
            n_inputs=1,
            heads=problem.heads,
            width=np.asarray(problem.widths),
            variances=np.asarray(problem.variances),
        )
        U = bpkr.order_parameters(weights)[0][0]
        return -(energy_of(operator.kernel(U), T, y) + y.size * np.log(2 * np.pi)) / 2

    keys = jax.random.split(jax.random.key(5), draws)
    logs = jax.lax.map(one, keys, batch_size=2000)
    weights = np.exp(logs - logs.max())
    error = weights.std() / weights.mean() / np.sqrt(draws)
    return float(logs.max() + np.log(weights.mean())), error


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("number, width", ((1, 3), (2, (2, 1, 3))))
def test_evidence_is_the_mean_likelihood_of_networks_from_the_prior(
    data, number, width
):
    """Also where U is singular and signs are free."""
    problem = Problem(
        *data,
        heads=(2, 2),
        width=width,
        temperature=0.3,
        variances=(1.0, 0.5, 2.0, 1.5),
    )
    expected, error = by_prior_draws(problem, 100_000)
    sample_key, bridge_key = jax.random.split(jax.random.key(number))
    draws = problem.posterior(sample_key, draws=400, chains=8)
    found = evidence(bridge_key, draws)
    # Student's law of 7 degrees of freedom: 6 errors once in 1900, of two cases.
    assert abs(found.value - expected) < 6 * np.hypot(found.stderr, error)
    assert found.stderr < 0.05


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("number, N", ((0, 1), (1, 6)))
def test_evidence_of_one_path_is_a_double_integral(number, N):
    """K = U 1 with U = u v, N u and N v of N degrees of freedom."""
    P, T, label = 5, 0.1, 1.5
    nodes, weights = np.polynomial.legendre.leggauss(2000)
    log_u = 20 * nodes - 15  # below -35 a part e^-17 of the prior at N = 1
    prior = 20 * weights * stats.chi2.pdf(N * np.exp(log_u), N) * N * np.exp(log_u)
    assert prior.sum() == pytest.approx(1, abs=1e-6)
    noise = np.exp(log_u[:, None] + log_u) + T
    likelihood = np.exp(-P / 2 * (np.log(2 * np.pi * noise) + label**2 / noise))
    expected = np.log(prior @ likelihood @ prior)
    problem = Problem(
        np.sqrt(P) * np.eye(P)[:, :, None],
        np.full(P, label),
        heads=(1,),
        width=N,
        temperature=T,
    )
    sample_key, bridge_key = jax.random.split(jax.random.key(10 + number))
    draws = problem.posterior(sample_key, draws=400, chains=8)
    found = evidence(bridge_key, draws)
    # Student's law of 7 degrees of freedom: 6 errors once in 1900, of two cases.
    assert abs(found.value - expected) < 6 * found.stderr
    assert found.stderr < 0.05


@pytest.mark.slow
@pytest.mark.statistical
def test_evidence_of_the_four_paths_is_laplaces_with_its_next_order(chains):
    problem = Problem(*chains[:2], heads=(2, 2), width=10, temperature=0.01)
    saddle = problem.solve()
    laplace = float(problem.corrections(saddle).log_evidence)
    term = float(problem.evidence_correction(saddle))
    draws = problem.posterior(jax.random.key(10), draws=1000, chains=8)
    found = evidence(jax.random.key(11), draws)
    # What is left is of order 1/N^2, as the square of the term is.
    assert abs(found.value - laplace - term) < 6 * found.stderr + term**2


def test_bad_input_is_refused(data):
    law = Problem(*data, heads=(2, 2), width=5, temperature=0.3).law()
    z = rng.normal(jax.random.key(0), (2, 10, law.dimension))
    draws = wishart.Draws(
        z,
        *law.order_parameters(z[0, 0]),
        (),
        jnp.array(0),
        jnp.ones((2, 10)),
        np.ones(2),
        law,
    )
    with pytest.raises(ValueError, match="three chains"):
        evidence(jax.random.key(0), draws)
