"""nolds on series of known maps, within its known bias, and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import catalogue, orbit, timeseries
from statmech_attn.dynamics.motion.timeseries import TIMESERIES_RESULTS


LENGTH = 2000
correlation_dimension = timeseries.correlation_dimension
largest_exponent = timeseries.largest_exponent
sample_entropy = timeseries.sample_entropy


@pytest.fixture(scope="module")
def logistic():
    return np.asarray(orbit(catalogue.logistic, jnp.array(0.3), samples=LENGTH))[:, 0]


@pytest.fixture(scope="module")
def henon():
    start = jnp.array([0.1, 0.2])
    return np.asarray(orbit(catalogue.henon, start, samples=LENGTH, transient=100))[
        :, 0
    ]


def test_rosenstein_finds_ln2_in_the_logistic_map(logistic):
    """Neighbours at distance 1/T reach the size of the orbit after ln(T)/ln 2 = 11."""
    found = largest_exponent(logistic, embedding=2, horizon=6)
    assert found.value == pytest.approx(np.log(2), rel=0.02)
    assert found.change < 0.05 and found.unit == "nat/sample"
    assert not any("bends" in caveat for caveat in found.caveats)
    # Followed far beyond that, the curve saturates, and the estimate says so.
    long = largest_exponent(logistic, embedding=2, horizon=40)
    assert long.value < 0.3 and "no scaling" in TIMESERIES_RESULTS[long.result]
    assert long.caveats[-1] == TIMESERIES_RESULTS[long.result]


def test_exponents_are_per_token_whatever_the_spacing(logistic):
    one = largest_exponent(logistic, embedding=2, horizon=6)
    four = largest_exponent(logistic, embedding=2, horizon=6, spacing=4.0)
    assert four.value == pytest.approx(one.value / 4, rel=1e-12)


def test_rosenstein_finds_the_exponent_of_henon(henon):
    """0.41922 (Sprott); neighbours that part by folding bias Rosenstein by -5 %."""
    rosenstein = largest_exponent(henon, embedding=3, horizon=10)
    assert rosenstein.value == pytest.approx(0.41922, rel=0.08)


def test_a_torus_has_no_exponent_but_noise_gives_it_one():
    clean = np.cos(2 * np.pi * catalogue.GOLDEN * np.arange(LENGTH))
    noise = 1e-2 * np.random.default_rng(0).standard_normal(LENGTH)
    assert abs(largest_exponent(clean).value) < 1e-3
    found = largest_exponent(clean + noise)
    assert found.value > 0.05
    assert any("noise" in caveat and "chaos" in caveat for caveat in found.caveats)


def test_dimensions_of_henon_a_circle_and_noise(henon):
    found = correlation_dimension(henon, embedding=3)
    assert found.value == pytest.approx(1.22, abs=0.06)
    circle = np.cos(2 * np.pi * catalogue.GOLDEN * np.arange(LENGTH))
    assert correlation_dimension(circle).value == pytest.approx(1, abs=0.05)
    noise = np.random.default_rng(0).standard_normal(LENGTH)
    filled = correlation_dimension(noise, embedding=3)
    assert filled.value > 2.5
    assert any("6.6" in caveat for caveat in filled.caveats)  # 2 log10(2000)


def test_sample_entropy_of_the_logistic_map_is_its_entropy_rate(logistic):
    """ln 2 for a small tolerance; at a large one stretches agree by chance."""
    found = sample_entropy(logistic, tolerance=0.05)
    assert found.value == pytest.approx(np.log(2), rel=0.05)
    # Tolerance and radii are in standard deviations: the unit does not matter.
    for estimate in (sample_entropy, correlation_dimension):
        one, other = estimate(logistic[:500]), estimate(1e3 * logistic[:500])
        assert other.value == pytest.approx(one.value, rel=1e-9)
    noise = np.random.default_rng(0).standard_normal(LENGTH)
    assert sample_entropy(noise).value > 2


def test_unusable_series_have_a_reason(logistic):
    words = lambda found: TIMESERIES_RESULTS[found.result]
    for estimate in (largest_exponent, correlation_dimension, sample_entropy):
        constant = estimate(np.full(500, 0.7))
        assert np.isnan(constant.value) and "not vary" in words(constant)
        broken = estimate(np.append(logistic[:500], np.nan))
        assert np.isnan(broken.value) and "not finite" in words(broken)
        assert words(broken) in broken.caveats
    cycle = np.tile([0.1, 0.5, 0.9], 200)
    found = largest_exponent(cycle)
    assert "repeats itself" in words(found) and np.isnan(found.value)
    points = correlation_dimension(cycle)
    assert abs(points.value) < 1e-12 and not any("bends" in c for c in points.caveats)
    rare = sample_entropy(np.random.default_rng(0).random(150), tolerance=1e-6)
    assert "close enough" in words(rare)
    empty = correlation_dimension(logistic[:300], low=1e-9, high=1e-8)
    assert "close enough" in words(empty) and np.isnan(empty.value)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: largest_exponent(x, spacing=0.0), "spacing must be above 0"),
        (lambda x: largest_exponent(x, spacing=np.inf), "spacing must be a finite"),
        (lambda x: largest_exponent(x, lag=0), "lag must be at least 1; got 0"),
        (lambda x: largest_exponent(x, horizon=2), "horizon must be at least 3; got 2"),
        (lambda x: largest_exponent(x, embedding=1), "embedding must be at least 2"),
        (lambda x: largest_exponent(x, theiler=-1), "theiler must be at least 0"),
        (lambda x: largest_exponent(x[:50]), "at least 65 samples for these delays"),
        (lambda x: sample_entropy(x[:90]), "at least 102 samples"),
        (lambda x: sample_entropy(x, tolerance=0), "tolerance must be above 0; got 0"),
        (lambda x: correlation_dimension(x, low=1.0), "0 < low < high; got 1, 0.5"),
        (lambda x: correlation_dimension(x[:, None]), r"an array of the shape \(T\)"),
        (lambda x: sample_entropy(np.tile(x, 5)), "at most 8000 samples"),
    ],
)
def test_bad_arguments_are_refused(logistic, call, message):
    with pytest.raises(ValueError, match=message):
        call(logistic)


def test_missing_nolds_is_one_line(monkeypatch, logistic):
    timeseries._nolds.cache_clear()
    monkeypatch.setattr(timeseries.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"needs nolds: pip install .*\[time"):
        sample_entropy(logistic)
