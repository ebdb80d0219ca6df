"""Spectra and autocorrelations against series whose own are known on paper."""

import numpy as np
import pytest
from scipy import signal, stats

from statmech_attn.dynamics import autocorrelation, power_spectrum


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def autoregressive(rng, phi: float, shape: tuple[int, ...]):
    """Stationary x_{t+1} = phi x_t + unit noise along the first axis."""
    noise = rng.normal(size=shape)
    noise[0] /= np.sqrt(1 - phi**2)
    return signal.lfilter([1.0], [1.0, -phi], noise, axis=0)


@pytest.mark.parametrize("length", [2, 255, 256])
def test_power_integrates_to_the_variance(rng, length):
    x = rng.normal(3.0, 2.0, size=(length, 3))
    spectrum = power_spectrum(x)
    integral = spectrum.power.sum(axis=0) / length
    assert integral == pytest.approx(x.var(axis=0), rel=1e-12)
    assert spectrum.frequency[-1] <= 0.5


def test_windowed_power_integrates_to_the_windowed_variance(rng):
    x = rng.normal(size=1000)
    w = signal.get_window("hann", 1000)
    spectrum = power_spectrum(x, window="hann")
    windowed = np.sum(w**2 * (x - x.mean()) ** 2) / np.sum(w**2)
    assert spectrum.power.sum() / 1000 == pytest.approx(windowed, rel=1e-12)


@pytest.mark.parametrize("window", ["boxcar", "hann"])
def test_a_line_stands_half_its_squared_amplitude_high(window):
    t = np.arange(1000)
    x = 5.0 + 0.7 * np.cos(2 * np.pi * 0.123 * t + 0.4)
    spectrum = power_spectrum(x, window=window)
    w = signal.get_window(window, 1000)
    bandwidth = np.sum(w**2) / np.sum(w) ** 2
    peak = spectrum.power.argmax()
    assert spectrum.frequency[peak] == pytest.approx(0.123, abs=1e-12)
    assert spectrum.power[peak] * bandwidth == pytest.approx(0.7**2 / 2, rel=1e-10)
    assert spectrum.power[0] < 1e-4 * spectrum.power[peak]


def test_a_line_between_bins_leaks_less_with_a_hann_window():
    t = np.arange(1000)
    x = np.cos(2 * np.pi * 0.1235 * t)
    far = lambda s: s.power[s.frequency > 0.3].max() / s.power.max()
    box, hann = power_spectrum(x), power_spectrum(x, window="hann")
    # Sidelobes fall off as 1/n^2 and 1/n^6 in power, n = 176 bins away.
    assert far(box) > 1e-6
    assert far(hann) < 1e-10


def test_frequency_is_in_cycles_per_token():
    spectrum = power_spectrum(np.sin(2 * np.pi * 0.025 * np.arange(1000)))
    assert spectrum.frequency[spectrum.power.argmax()] == pytest.approx(0.025)


@pytest.mark.statistical
@pytest.mark.parametrize("phi", [-0.6, 0.8])
def test_spectrum_of_an_autoregression(rng, phi):
    runs = 400
    x = autoregressive(rng, phi, (2000, runs))
    spectrum = power_spectrum(x, window="hann")
    f = spectrum.frequency
    exact = 2 / np.abs(1 - phi * np.exp(-2j * np.pi * f)) ** 2
    inner = slice(3, -3)
    # Each bin is exponentially distributed, so its mean has error exact / sqrt(runs);
    # every third bin of a Hann window is independent.
    z = (spectrum.power.mean(axis=1) / exact - 1)[inner][::3] * np.sqrt(runs)
    assert np.abs(z).max() < stats.norm.isf(1e-3 / (2 * z.size))
    assert stats.chi2.sf(np.sum(z**2), z.size) > 1e-3


@pytest.mark.parametrize("max_lag", [0, 1, 50, 299])
def test_autocorrelation_is_the_sum_over_pairs(rng, max_lag):
    x = rng.normal(2.0, size=(300, 2)).cumsum(axis=0)
    centred = x - x.mean(axis=0)
    covariance = [
        np.mean(centred[: 300 - lag] * centred[lag:], axis=0)
        for lag in range(max_lag + 1)
    ]
    expected = np.array(covariance) / covariance[0]
    assert autocorrelation(x, max_lag=max_lag) == pytest.approx(expected, abs=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("phi", [-0.5, pytest.param(0.9, marks=pytest.mark.slow)])
def test_autocorrelation_of_an_autoregression(rng, phi):
    length, runs, max_lag = 20_000, 200, 20
    x = autoregressive(rng, phi, (length, runs))
    r = autocorrelation(x, max_lag=max_lag)
    lag = np.arange(1, max_lag + 1)
    # Bartlett's variance of r(l) for an AR(1) series, and its bias to order 1/T.
    p2 = phi**2
    variance = (1 + p2) * (1 - p2**lag) / (1 - p2) - 2 * lag * p2**lag
    mean_bias = (1 + phi) / (1 - phi) * (1 - phi**lag) + 2 * lag * phi**lag
    z = (r[1:].mean(axis=1) - phi**lag) / np.sqrt(variance / (length * runs))
    slack = mean_bias / length / np.sqrt(variance / (length * runs))
    assert np.all(np.abs(z) < stats.norm.isf(1e-3 / (2 * max_lag)) + np.abs(slack))
    assert r[1:].std(axis=1, ddof=1) == pytest.approx(
        np.sqrt(variance / length), rel=5 / np.sqrt(2 * runs)
    )


def test_a_periodic_series_returns_to_one(rng):
    x = np.tile(rng.normal(size=7), 40)
    r = autocorrelation(x, max_lag=14)
    assert r[[7, 14]] == pytest.approx([1.0, 1.0], abs=1e-12)
    assert np.abs(r[1:7]).max() < 1


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6])
def test_a_constant_series_has_no_power_and_no_autocorrelation(constant):
    x = np.full(1000, constant)
    assert power_spectrum(x).power.max() <= (1e-12 * constant) ** 2
    assert np.isnan(autocorrelation(x, max_lag=3)).all()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda x: power_spectrum(x[:1]), "2 samples"),
        (lambda x: power_spectrum(np.append(x, np.nan)), "finite"),
        (lambda x: autocorrelation(x, max_lag=10), "max_lag"),
        (lambda x: autocorrelation(x, max_lag=-1), "max_lag"),
        (lambda x: autocorrelation(np.append(x, np.inf), max_lag=1), "finite"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call(np.arange(10.0))
