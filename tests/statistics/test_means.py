"""Errors of means and shares, and the rounding that they cannot be smaller than."""

import math

import numpy as np
import pytest
from scipy import signal

from statmech_attn.statistics import (
    block_stderr,
    mean_of_known,
    paired_error,
    rounding,
    share_error,
    standard_error,
    wilson,
)


def autoregressive(rng, phi, shape):
    noise = rng.normal(size=shape)
    return signal.lfilter([1.0], [1.0, -phi], noise, axis=-1)[:, 1000:]


def test_block_means_cover_the_error_of_a_correlated_mean():
    blocks = autoregressive(np.random.default_rng(2), 0.8, (300, 5000))
    z = blocks[:, -4000:].mean(-1) / block_stderr(blocks)
    # Student's law with 19 degrees of freedom has spread sqrt(19 / 17).
    assert abs(z.std() / np.sqrt(19 / 17) - 1) < 5 / np.sqrt(2 * len(z))


def test_a_series_shorter_than_its_blocks_is_refused():
    with pytest.raises(ValueError, match="at least 20"):
        block_stderr(np.ones(5))


@pytest.mark.parametrize("terms", (3, 30, 300))
def test_rounding_is_that_of_a_running_sum(terms):
    """A rounding is u of a partial sum at most, a third of that as a mean square."""
    random, errors = np.random.default_rng(0), []
    for _ in range(200):
        values = random.uniform(0.5, 1, terms)
        total = np.float64(0)
        for value in values:
            total += value
        errors.append((total - math.fsum(values)) / terms)
    ratio = np.sqrt(np.mean(np.square(errors))) / rounding(1.0, terms)
    assert 0.2 < ratio < 1 / np.sqrt(3)


def test_a_share_of_all_or_none_has_an_error():
    """Half of Wilson's interval: 0.0098 at 1/2, which is sqrt(1/4n) to 1 in 2n."""
    assert share_error(0.0, 49) == share_error(1.0, 49) == pytest.approx(0.01)
    shares = np.array([0.1, 0.5, 1.0])
    low, high = wilson(shares * 2000, 2000)
    np.testing.assert_allclose(share_error(shares, 2000), (high - low) / 2)
    plain = np.sqrt(shares * (1 - shares) / 2000)[:2]
    np.testing.assert_allclose(share_error(shares, 2000)[:2], plain, rtol=2e-3)
    assert share_error(0.3, np.inf) == 0 and np.isnan(share_error(np.nan, 5))


def test_answers_that_agree_have_the_error_of_a_share_of_none():
    answers = np.array([[0.0] * 49, [1.0] + [0.0] * 48, [np.nan] * 49])
    error = paired_error(answers)
    assert error[0] == pytest.approx(0.01)
    assert error[1] == pytest.approx(1 / 49)  # one of 49, ddof = 1
    assert np.isnan(error[2])


def test_a_standard_error_is_no_smaller_than_rounding():
    one = 1e-3 + 1e-20 * np.arange(10)
    values = np.array([one, 1e-3 * (1 + np.spacing(1.0) * (np.arange(10) == 0))])
    assert (values.std(1, ddof=1) / np.sqrt(10) < rounding(1e-3, 10)).all()
    assert standard_error(values)[1] == rounding(values[1].max(), 10)
    assert standard_error(np.ones(4)) == 0
    assert np.isnan(standard_error(np.ones((1, 2)), axis=0)).all()


def test_means_of_what_is_known():
    values = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan], [8.0, 4.0, np.nan]])
    mean, error = mean_of_known(values)
    assert np.array_equal(mean, [4.0, 3.0, np.nan], equal_nan=True)
    assert (
        np.abs(error[:2] - [np.std([1, 3, 8], ddof=1) / np.sqrt(3), 1.0]).max() < 1e-15
    )
    assert np.isnan(error[2])
