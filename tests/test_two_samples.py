import numpy as np
import pytest


def test_two_samples_of_one_law_agree_and_a_changed_correlation_is_seen(
    two_samples,
):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 600, 2))
    same = two_samples.two_sample_test(x, y, seed=0)
    assert same.energy_p > 1e-3 and same.marginal_p > 1e-3
    tilted = y @ np.linalg.cholesky([[1, 0.6], [0.6, 1]]).T
    differs = two_samples.two_sample_test(x, tilted, seed=0)
    assert differs.energy_p == 1e-3  # none of 999 permutations is as far
    assert differs.marginal_p > 1e-3  # the marginals alone do not show it


def test_samples_of_different_dimensions_are_refused(two_samples):
    with pytest.raises(ValueError, match=r"\(n, d\)"):
        two_samples.two_sample_test(np.ones((3, 2)), np.ones((3, 1)), seed=0)
