import numpy as np
import pytest
from scipy import signal

from statmech_attn.statistics import (
    autocorrelation_time,
    block_stderr,
    estimate,
    in_standard_errors,
    limit_difference,
    threshold,
    two_sample_test,
)


def autoregressive(rng, phi, shape):
    noise = rng.normal(size=shape)
    return signal.lfilter([1.0], [1.0, -phi], noise, axis=-1)[:, 1000:]


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_autocorrelation_time_of_an_autoregressive_chain(phi):
    chains = autoregressive(np.random.default_rng(1), phi, (8, 51_000))
    expected = (1 + phi) / (1 - phi)
    # Sokal: relative error of tau is sqrt(2 (2 W + 1) / draws), window W ~ 5 tau here.
    error = expected * np.sqrt(2 * (10 * expected + 1) / chains.size)
    assert abs(autocorrelation_time(chains) - expected) < 5 * error


def test_stderr_of_a_correlated_mean_covers_it():
    rng, phi = np.random.default_rng(2), 0.8
    results = [estimate(autoregressive(rng, phi, (2, 3000))) for _ in range(300)]
    z = np.array([r.value / r.stderr for r in results])
    assert abs(z.std() - 1) < 5 / np.sqrt(2 * len(z))
    blocks = autoregressive(rng, phi, (300, 5000))
    z = blocks[:, -4000:].mean(-1) / block_stderr(blocks)
    # Student's law with 19 degrees of freedom has spread sqrt(19 / 17).
    assert abs(z.std() / np.sqrt(19 / 17) - 1) < 5 / np.sqrt(2 * len(z))


def test_two_samples_of_one_law_agree_and_a_changed_correlation_is_seen():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 600, 2))
    same = two_sample_test(x, y, seed=0)
    assert same.energy_p > 1e-3 and same.marginal_p > 1e-3
    tilted = y @ np.linalg.cholesky([[1, 0.6], [0.6, 1]]).T
    differs = two_sample_test(x, tilted, seed=0)
    assert differs.energy_p == 1e-3  # none of 999 permutations is as far
    assert differs.marginal_p > 1e-3  # the marginals alone do not show it


def test_bad_samples_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        estimate(np.full((2, 10), np.nan))
    with pytest.raises(ValueError, match="draws >= 8"):
        estimate(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"\(n, d\)"):
        two_sample_test(np.ones((3, 2)), np.ones((3, 1)), seed=0)
    with pytest.raises(ValueError, match="at least 20"):
        block_stderr(np.ones(5))


def test_threshold_grows_with_comparisons_and_small_samples():
    assert threshold(1, level=0.05) == pytest.approx(1.959964, abs=1e-6)
    assert threshold(1000) > threshold(10)
    assert threshold(10, runs=5) > threshold(10)
    with pytest.raises(ValueError, match="at least 2 runs"):
        threshold(1, runs=1)


def test_difference_without_error_is_zero_or_infinite():
    z = in_standard_errors(np.array([0.0, 1e-15, -0.1, 0.2]), np.array([0, 0, 0, 0.1]))
    np.testing.assert_array_equal(z, [0.0, 0.0, -np.inf, 2.0])


@pytest.mark.parametrize("offset", [0.0, 0.01])
def test_extrapolation_removes_the_bias_and_keeps_an_offset(offset):
    n = np.array([100, 200, 400, 800])
    difference = (offset + 3 / n - 50 / n**2)[:, None]
    value, _, used = limit_difference(
        n, difference, np.full((4, 1), 1e-4), np.ones((4, 1), bool)
    )
    assert used[0] == 4
    assert value[0] == pytest.approx(offset, abs=1e-12)
