"""Differences in standard errors, and what many comparisons allow."""

import numpy as np
import pytest

from statmech_attn.statistics import (
    bias_slope,
    extrapolation,
    in_standard_errors,
    limit_difference,
    linear_until,
    log_spread_error,
    power_law,
    spread_ratio,
    spread_slope,
    threshold,
)


def test_threshold_grows_with_comparisons_and_small_samples():
    assert threshold(1, level=0.05) == pytest.approx(1.959964, abs=1e-6)
    assert threshold(1000) > threshold(10)
    assert threshold(10, runs=5) > threshold(10)
    with pytest.raises(ValueError, match="at least 2 runs"):
        threshold(1, runs=1)


def test_difference_without_error_is_zero_or_infinite():
    z = in_standard_errors(np.array([0.0, 1e-15, -0.1, 0.2]), np.array([0, 0, 0, 0.1]))
    np.testing.assert_array_equal(z, [0.0, 0.0, -np.inf, 2.0])


def test_difference_of_unknown_error_is_not_known():
    assert np.isnan(in_standard_errors([0.2, np.nan], [np.nan, 0.1], 0.1)).all()
    assert np.isnan(in_standard_errors(np.nan, np.nan))


@pytest.mark.parametrize("offset", [0.0, 0.01])
def test_extrapolation_removes_the_bias_and_keeps_an_offset(offset):
    n = np.array([100, 200, 400, 800])
    difference = (offset + 3 / n - 50 / n**2)[:, None]
    value, _, used = limit_difference(
        n, difference, np.full((4, 1), 1e-4), np.ones((4, 1), bool)
    )
    assert used[0] == 4
    assert value[0] == pytest.approx(offset, abs=1e-12)


@pytest.mark.parametrize("n", [[1000, 100], [100, 100], [0, 100], [100]])
def test_sizes_that_do_not_increase_are_refused(n):
    used, ones = np.array([False, True]), np.ones(2)
    for ask in (
        lambda: extrapolation(np.array(n), used),
        lambda: limit_difference(np.array(n), ones, ones, used),
    ):
        with pytest.raises(
            ValueError, match="n_spins must increase|of the size 1 in K"
        ):
            ask()


def test_the_limit_of_two_sizes_is_that_of_a_line_in_one_over_n():
    rows = extrapolation(np.array([500, 1000]), np.ones(2, bool))
    np.testing.assert_allclose(rows, [-1, 2])


def test_spreads_follow_their_power_of_n_until_noise_is_not_linear():
    n, sizes = np.array([100, 1000]), np.array([1.0, 2.0, 3.0])
    spread = n[:, None] ** -0.5 * sizes
    slope = spread_slope(n, spread, np.ones((2, 3), bool), runs=200, axes=(1,))
    assert slope.value == pytest.approx(-0.5)
    power = power_law(np.append(n, 10_000), 3 * np.logspace(-1, -2, 3), 0.1)
    assert power.value == pytest.approx(-0.5)
    below = linear_until(np.array([1.0, 3.0, 30.0]), n * [1, 10], limit=0.2)
    assert below.tolist() == [[True, False, False], [True, True, False]]


def test_one_rare_sample_makes_the_error_of_a_log_spread_large():
    """Of Gaussian samples it is 1 / sqrt(2 S)."""
    gauss = np.random.default_rng(0).normal(size=(1, 200, 1))
    rare = np.where(np.arange(200) == 7, 10.0, gauss[0, :, 0])[None, :, None]
    of = lambda x: log_spread_error(x, np.ones((1, 1), bool), 1e-9).item()
    assert of(gauss) == pytest.approx(0.05, rel=0.1) and of(rare) > 4 * of(gauss)


def test_one_run_has_no_spread():
    with pytest.raises(ValueError, match="runs must be at least 2; got 1"):
        spread_ratio(np.array(1.1), np.array(1.0), runs=1)


def test_the_exponent_of_a_bias_needs_no_batch():
    n, used = np.array([100, 1000]), np.ones((2, 3), bool)
    bias = np.array([1.0, 2.0, 3.0]) / n[:, None]
    slope = bias_slope(n, bias, np.full((2, 3), 1e-5), used, axes=(1,))
    assert slope.value == pytest.approx(-1, abs=1e-6) and slope.value.shape == ()
    bias, used = (np.tile(x[:, None, None], (1, 2, 4, 1)) for x in (bias, used))
    slope = bias_slope(n, bias, np.full(bias.shape, 1e-5), used, axes=(3,))
    np.testing.assert_allclose(slope.value, np.full((2, 4), -1), atol=1e-6)


def test_an_error_that_all_sizes_share_is_none_of_each():
    """Of 300 exponents 14 are beyond two errors by a normal law, 3.6 its error."""
    n, of_size, of_all = np.array([1e4, 1e5]), 0.005, 3e-5
    rng = np.random.default_rng(0)
    stderr = np.broadcast_to(of_size / np.sqrt(n)[:, None, None], (2, 300, 1))
    drawn = stderr * rng.normal(size=(2, 300, 1)) + of_all * rng.normal(size=(300, 1))
    bias, used = 20 / n[:, None, None] + drawn, np.ones((2, 300, 1), bool)
    slope = bias_slope(n, bias, stderr, used, axes=(2,), shared=of_all)
    z = (slope.value + 1) / slope.stderr
    assert z.shape == (300,) and 14 - 3 * 3.6 < (abs(z) > 2).sum() < 14 + 3 * 3.6
    assert np.sqrt((z**2).mean()) == pytest.approx(1, abs=3 / np.sqrt(600))
