"""Evidence from a stored stretch of an orbit, against definitions and known lines."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.batches import rng
from statmech_attn.dynamics import catalogue, flow, orbit
from statmech_attn.dynamics.motion import chaos_tests


main_frequency = jax.jit(chaos_tests.main_frequency)
recurrence = jax.jit(lambda x: chaos_tests.recurrence(x, multiple=1, tolerance=1e-9))


def correlation(series, c, shifts):
    """K of the 0-1 test at one frequency, summed as Gottwald and Melbourne write it."""
    turn = np.exp(1j * c * np.arange(1, len(series) + 1))
    walk = np.cumsum(series * turn)
    n = len(series) - shifts[-1]
    moved = [np.mean(np.abs(walk[s : s + n] - walk[:n]) ** 2) for s in shifts]
    waves = (1 - np.cos(shifts * c)) / (1 - np.cos(c))
    return np.corrcoef(shifts, moved - np.mean(series) ** 2 * waves)[0, 1]


@pytest.mark.slow
def test_zero_one_test_is_its_definition():
    # The Fourier transforms lose 1e-16 of squares that are 1e4 times the displacements.
    shifts = np.arange(1, 101)
    spread = np.arange(chaos_tests.ZERO_ONE_FREQUENCIES) * chaos_tests.GOLDEN % 1
    chaos = orbit(catalogue.logistic, jnp.array(0.3), samples=1000)
    wave = np.cos(np.sqrt(2) * np.arange(1000))[:, None]
    for x in (chaos, jnp.asarray(wave)):
        series = np.asarray(x[:, 0] - x.mean())
        series = series / series.std()
        each = [correlation(series, np.pi * (1 + 3 * c) / 5, shifts) for c in spread]
        np.testing.assert_allclose(chaos_tests.zero_one(x), np.median(each), atol=1e-11)


@pytest.mark.slow
def test_chaos_that_is_sampled_too_finely_looks_regular():
    """Lorenz' flow every 0.01 units of time, and every unit."""
    step = flow(catalogue.lorenz, time=0.01, substeps=1)
    fine, coarse = (
        orbit(step, jnp.array([1.0, 1.0, 20.0]), samples=1000, transient=1000, every=n)
        for n in (1, 100)
    )
    assert chaos_tests.zero_one(fine) < 0.5 < 0.9 < chaos_tests.zero_one(coarse)


@pytest.mark.slow
def test_main_frequency_of_a_line_has_all_digits():
    # 1e-14 of a line is 100 roundings of the frequency; far from 0 and 1/2 the line's
    # own image does not matter.
    for f in (0.1234, 0.25, 0.31 / np.sqrt(2), 0.4):
        line = jnp.cos(2 * jnp.pi * f * jnp.arange(768) + 1.0)[:, None]
        assert abs(chaos_tests.main_frequency(line) - f) < 1e-14


@pytest.mark.parametrize("period", (1, 3, 28, 112))
def test_recurrence_finds_the_smallest_period(period):
    t = np.arange(1200)
    x = np.stack([np.sin(2 * np.pi * t / period), np.cos(4 * np.pi * t / period)], 1)
    found, error = recurrence(jnp.asarray(x, float))
    assert int(found) == period and float(error) < 1e-11


def test_what_is_conserved_hides_no_recurrence_and_no_decay():
    """A column of 1e11 that does not vary beside a cycle, and beside one that decays.

    Errors are of the size of what varies, and the strongest line is that of the other.
    """
    t = np.arange(1200)
    x = np.cos(2 * np.pi * t / 28)
    for amplitude, period in ((np.ones(1200), 28), (0.9995**t, 0)):
        alone = np.stack([amplitude * x, np.zeros(1200)], 1)
        beside = alone + np.array([0.0, 1e11])
        found, expected = (recurrence(jnp.asarray(seen)) for seen in (beside, alone))
        assert int(found[0]) == int(expected[0]) == period
        assert float(found[1]) == float(expected[1])


def test_a_closing_spiral_is_not_yet_periodic():
    """Amplitude 1e-5, rotation almost 1/7: it comes back within tolerance by chance."""
    t = np.arange(1200)
    angle = 2 * np.pi * t * (1 / 7 + 1e-7)
    x = 1e-5 * np.stack([np.sin(angle), np.cos(angle)], 1)
    found, _ = recurrence(jnp.asarray(x, float))
    assert int(found) == 0


def test_an_orbit_that_alternates_about_a_cycle_has_not_twice_its_period():
    """Period 2 with a multiplier of -0.9976; after 4 steps it is 1e-9 from itself."""
    t = np.arange(1200)
    beside, twice = 1e-7 * (-0.9976) ** (t // 2), 1e-3 * (-1.0) ** (t // 2)
    for off, period in ((beside, 0), (twice, 4), (1e-4 * beside, 2)):
        found, _ = recurrence(jnp.asarray((-1.0) ** t + off)[:, None])
        assert int(found) == period


@pytest.mark.parametrize("frequency", (0.12345678, chaos_tests.GOLDEN / 2, 0.31))
def test_main_frequency_is_found_between_the_bins(frequency):
    t = np.arange(1000.0)
    x = np.cos(2 * np.pi * frequency * t) + 0.3 * np.cos(4 * np.pi * frequency * t + 1)
    assert float(main_frequency(jnp.asarray(x[:, None], float))) == pytest.approx(
        frequency, abs=1e-8
    )


@pytest.mark.slow
def test_zero_one_and_spectrum_separate_noise_from_lines():
    noise = rng.normal(jax.random.key(1), (1000, 1))
    t = jnp.arange(1000.0)
    lines = jnp.stack([jnp.cos(2 * jnp.pi * chaos_tests.GOLDEN * t), 0 * t], 1)
    assert float(chaos_tests.zero_one(noise)) > 0.9
    assert abs(float(chaos_tests.zero_one(lines))) < 0.2
    assert float(chaos_tests.broadband(noise)) > 0.1
    assert float(chaos_tests.broadband(lines)) < 1e-8
