import jax
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.bpkr import wishart
from statmech_attn.bpkr.evidence import evidence


@pytest.fixture(scope="module")
def data(small):
    x, heads, y = small
    return bpkr.attentioned_inputs(x, heads)[:4, :, :4], 2 * y[:4]


def by_prior_draws(xi, y, width, variances, T, draws):
    """ln p(Y) and its error from networks drawn weight by weight."""
    operator = bpkr.path_kernels(xi)

    def one(key):
        weights = bpkr.draw_weights(
            key, n_inputs=1, heads=(2, 2), width=width, variances=variances
        )
        U = bpkr.order_parameters(weights)[0][0]
        return -(bpkr.energy(operator.kernel(U), T, y) + y.size * np.log(2 * np.pi)) / 2

    keys = jax.random.split(jax.random.key(5), draws)
    logs = jax.lax.map(one, keys, batch_size=2000)
    weights = np.exp(logs - logs.max())
    error = weights.std() / weights.mean() / np.sqrt(draws)
    return float(logs.max() + np.log(weights.mean())), error


@pytest.mark.statistical
@pytest.mark.parametrize("number, width", ((0, 5), (1, 3), (2, (2, 1, 3))))
def test_evidence_is_the_mean_likelihood_of_networks_from_the_prior(
    data, number, width
):
    """Also where U is singular and signs are free."""
    xi, y = data
    T, variances = 0.3, (1.0, 0.5, 2.0, 1.5)
    expected, error = by_prior_draws(xi, y, width, variances, T, 100_000)
    law = wishart.law(
        xi, y, width=width, temperature=T, heads=(2, 2), variances=variances
    )
    sample_key, bridge_key = jax.random.split(jax.random.key(number))
    draws = wishart.sample(sample_key, law, draws=400, chains=8)
    found = evidence(bridge_key, law, draws)
    # Student's law of 7 degrees of freedom: 6 errors once in 1900, of three cases.
    assert abs(found.value - expected) < 6 * np.hypot(found.stderr, error)
    assert found.stderr < 0.05


def test_bad_input_is_refused(data):
    xi, y = data
    law = wishart.law(xi, y, width=5, temperature=0.3, heads=(2, 2))
    draws = wishart.sample(jax.random.key(0), law, draws=10, warmup=5, chains=2)
    with pytest.raises(ValueError, match="three chains"):
        evidence(jax.random.key(0), law, draws)
    other = wishart.law(xi, y, width=3, temperature=0.3, heads=(2, 2))
    with pytest.raises(ValueError, match="of this law"):
        evidence(jax.random.key(0), other, draws)
