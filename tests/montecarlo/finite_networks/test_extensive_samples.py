"""Samples of spins over a grid: each with a key of its own, and their moments."""

import jax
import numpy as np
import pytest

from statmech_attn import dmft, montecarlo
from statmech_attn.dmft import extensive
from statmech_attn.scan import in_memory
from statmech_attn.scan.chunks.work import Chunk


PATTERNS = dmft.site_classes(np.ones((4, 1, 1)))
NET = dmft.network(PATTERNS, context=2)
KEY = jax.random.key(5)


def spins(kind=montecarlo.ExtensiveSamples, *, n_spins=(100, 50), steps=3, samples=3):
    options = montecarlo.SampledRecall(steps=steps, samples=samples)
    parameters = {"alpha": 0.1, "beta": [4.0, 2.0], "gamma": 2.0}
    ensemble = extensive.cycle()
    return kind(
        NET, PATTERNS, ensemble, options, n_spins=n_spins, **parameters, key=KEY
    )


def rows(points, first, stop):
    return points.rows(Chunk(0, 0, first, stop), None, lambda _: None, None)


@pytest.fixture(scope="module")
def sampled():
    return in_memory(spins())


def test_samples_do_not_depend_on_the_chunk(sampled):
    of_largest = rows(spins(), 6, 12)
    m = of_largest["m_o_se_samples"].reshape(2, 3, 4, 1)
    large = sampled.sel(n_spins=100)
    assert sampled.n_spins.values.tolist() == [50, 100]
    np.testing.assert_array_equal(large.m_o_se_mean, m.mean(1))
    np.testing.assert_array_equal(large.m_o_se_spread, m.std(1, ddof=1))
    assert np.allclose(large.m_o_se_stderr * np.sqrt(3), large.m_o_se_spread)
    assert len(np.unique(of_largest["S_samples"][:, 0, 0])) == 6


def test_a_point_fails_with_one_of_its_samples():
    """Sample 1 at the second beta and the smallest N is lost."""

    class Lossy(montecarlo.ExtensiveSamples):
        def row(self, number, tick, folder):
            lost = np.nan if number == 4 else 0.0
            return {n: x + lost for n, x in super().row(number, tick, folder).items()}

    dataset = in_memory(spins(Lossy))
    assert dataset.failure.dims == ("n_spins", "beta")
    assert dataset.failure.values.tolist() == [[0, 1], [0, 0]]
    assert np.isnan(dataset.m_o_se_mean).any(["time", "pattern"]).sum() == 1


def test_a_sample_is_that_of_its_plan():
    problem = extensive.loaded_network(
        NET, extensive.cycle(), alpha=0.1, beta=4.0, gamma=2.0
    )
    key = KEY
    for place in (0, 0, 2):
        key = jax.random.fold_in(key, place)
    plan = montecarlo.extensive_plan(problem, PATTERNS, [1.0], n_spins=50, steps=3)
    C = rows(spins(), 2, 3)["C_samples"][0]
    assert np.allclose(C, plan.sample(key).C, atol=1e-6)


def test_bad_input_is_refused_in_one_line():
    with pytest.raises(ValueError, match="alpha N must be a whole number; got 10.2"):
        spins(n_spins=[102])
    with pytest.raises(ValueError, match="samples must be at least 2; got 1"):
        spins(samples=1)
    with pytest.raises(ValueError, match="needs .* of memory, more than 4.00 GiB"):
        spins(steps=900, samples=100)
