"""Summed tests of samples with correlated tokens: level, power, and each formula."""

import numpy as np
import pytest
from scipy import stats

from statmech_attn.statistics import (
    Deviations,
    in_errors,
    law,
    noise,
    POWER,
    power,
    rotated,
    smallest_visible,
    sums,
    visible_alone,
)


TOKENS = 24
SLOPES = np.stack([np.sin(np.arange(TOKENS) / 5.0), np.ones(TOKENS)])


def samples(rng, count, shift=0.0):
    """Tokens with correlation 0.9 and spreads that differ tenfold, one kind of N."""
    white = rng.normal(size=(count, TOKENS))
    u = white.copy()
    for t in range(1, TOKENS):
        u[:, t] = 0.9 * u[:, t - 1] + np.sqrt(1 - 0.81) * white[:, t]
    u = u * np.exp(np.sin(np.arange(TOKENS) / 6.0)) - shift * SLOPES[0]
    halves = [slice(0, TOKENS // 2), slice(TOKENS // 2, TOKENS)]
    return Deviations(u, halves, np.zeros(TOKENS), SLOPES)


def statistics(points):
    """The four numbers that a law bounds, and the relative error of the first."""
    found = [sums(x, x.samples.mean(0)[None]) for x in points]
    shift, information, variance = (
        np.sum([getattr(x, name)[:, 0] for x in found], axis=0)
        for name in ("shift", "information", "variance")
    )
    t = [abs(in_errors(x.shift, x.variance)).max() for x in found]
    numbers = (
        max(abs(x.z).max() for x in found),
        max(x.rms_z.max() for x in found),
        max(t),
        abs(in_errors(shift, variance)).max(),
    )
    return np.array(numbers), -shift[0] / information[0]


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(power, "ROTATIONS", 400)


@pytest.mark.parametrize("count", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_a_right_theory_is_refused_as_often_as_declared(few, count):
    """400 comparisons of two points at a level of 0.05; weights come from the data."""
    rng, trials, level = np.random.default_rng(11), 400, 0.05
    refused = np.zeros(4)
    for trial in range(trials):
        points = [samples(rng, count) for _ in range(2)]
        refused += statistics(points)[0] > law(points, level, seed=trial)
    # Binomial, of eight numbers, and of a bound from 400 rotations.
    error = np.sqrt(level * (1 - level) * (1 + 1 / 400) / trials)
    assert (abs(refused / trials - level) < 4 * error).all()


@pytest.mark.slow
def test_a_shift_of_the_smallest_visible_error_is_found_nine_times_in_ten(few):
    rng, trials = np.random.default_rng(12), 400
    visible, found = [], 0
    for trial in range(trials // 4):  # their mean is known to 2 %, a power to 0.012
        points = [samples(rng, 10) for _ in range(2)]
        bound = law(points, 0.05, seed=trial).all
        drawn = [noise(x, 400, rng) for x in points]
        shift, information, variance = (
            np.sum([x[i][0] for x in drawn], axis=0) for i in (2, 3, 4)
        )
        visible.append(smallest_visible(shift, information, variance, bound))
    shift = float(np.mean(visible))
    for trial in range(trials):
        points = [samples(rng, 10, shift) for _ in range(2)]
        found += statistics(points)[0][3] > law(points, 0.05, seed=trial).all
    # The bound is of both parameters, and visible errors scatter by a fifth.
    assert (
        abs(found / trials - POWER) < 4 * np.sqrt(POWER * (1 - POWER) / trials) + 0.03
    )


def test_a_shift_is_measured_without_bias():
    rng = np.random.default_rng(13)
    errors = [statistics([samples(rng, 10, 0.2)])[1] for _ in range(400)]
    assert abs(np.mean(errors) - 0.2) < 4 * np.std(errors) / 20


def test_one_number_follows_student():
    """The bound of one number and one sample law is Student's, to 1 % of rotations."""
    rng = np.random.default_rng(14)
    one = Deviations(
        rng.normal(size=(6, 1)), [slice(0, 1)], np.zeros(1), np.ones((1, 1))
    )
    bound = law([one], 0.05)
    student = stats.t.isf(0.025, 5)
    # A quantile of 10^4 draws has this error; the density is that of Student's law.
    error = np.sqrt(0.05 * 0.95 / 1e4) / (2 * stats.t.pdf(student, 5))
    for value in (bound.z, bound.rms_z, bound.point, bound.all):
        assert abs(value - student) < 4 * error


def test_rotated_means_have_the_covariance_of_the_mean():
    rng = np.random.default_rng(15)
    u = rng.normal(size=(5, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    drawn = rotated(u, 100_000, rng)
    np.testing.assert_allclose(np.cov(drawn.T), u.T @ u / 25, atol=0.01)


@pytest.mark.slow
def test_noise_does_not_know_the_mean():
    rng = np.random.default_rng(16)
    point = samples(rng, 10)
    moved = point._replace(samples=point.samples + 100 * SLOPES[0])
    same = [noise(x, 50, np.random.default_rng(1)) for x in (point, moved)]
    np.testing.assert_allclose(same[0].shift, same[1].shift, rtol=1e-6, atol=1e-8)


def test_errors_of_a_theory_add_to_those_of_samples():
    rng = np.random.default_rng(17)
    point = samples(rng, 10)
    worse = point._replace(error=np.full(TOKENS, 10.0))
    mean = point.samples.mean(0)[None]
    z = sums(worse, mean).z[:, 0]
    assert (abs(z) <= abs(mean[0]) / 10).all()
    shift = sums(worse, mean)
    stderr = np.sqrt(shift.variance) / shift.information
    # Fully correlated errors of 10 along a slope of 1 are an error of 10 at least.
    assert stderr[1, 0] > 9.9


def test_the_sharpest_number_alone_is_found_nine_times_in_ten():
    visible = visible_alone(
        np.array([1.0, 0.5, np.nan]), np.array([1.0, 2.0, 9.0]), 5.0
    )
    assert stats.norm.sf(5.0 - visible * 4.0) == pytest.approx(POWER)
    assert visible_alone(np.ones(2), np.zeros(2), 5.0) == np.inf


@pytest.mark.parametrize("bound", [0.0, np.nan, np.inf])
def test_what_is_not_finite_has_no_smallest_error(bound):
    ones = np.ones(9)
    with pytest.raises(ValueError, match=f"bound must be .*; got {bound}"):
        smallest_visible(ones, ones, ones, bound)
    unknown = np.array([np.nan, *ones[1:]])
    for draws in ((unknown, ones, ones), (ones, ones, unknown)):
        with pytest.raises(ValueError, match="shift, variance, bound must be"):
            smallest_visible(*draws, 2.0)
