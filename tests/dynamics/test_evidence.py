"""Evidence from a stored stretch of an orbit, against definitions and known lines."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import evidence, orbit
from statmech_attn.validation import systems


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
    spread = np.arange(evidence.ZERO_ONE_FREQUENCIES) * evidence.GOLDEN % 1
    chaos = orbit(systems.logistic(4.0), jnp.array(0.3), samples=1000)
    wave = np.cos(np.sqrt(2) * np.arange(1000))[:, None]
    for x in (chaos, jnp.asarray(wave)):
        series = np.asarray(x[:, 0] - x.mean())
        series = series / series.std()
        each = [correlation(series, np.pi * (1 + 3 * c) / 5, shifts) for c in spread]
        np.testing.assert_allclose(evidence.zero_one(x), np.median(each), atol=1e-11)


@pytest.mark.slow
def test_main_frequency_of_a_line_has_all_digits():
    # 1e-14 of a line is 100 roundings of the frequency; far from 0 and 1/2 the line's
    # own image does not matter.
    for f in (0.1234, 0.25, 0.31 / np.sqrt(2), 0.4):
        line = jnp.cos(2 * jnp.pi * f * jnp.arange(768) + 1.0)[:, None]
        assert abs(evidence.main_frequency(line) - f) < 1e-14
