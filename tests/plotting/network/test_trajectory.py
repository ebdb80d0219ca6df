"""Trajectory windows, planes, spectra and running exponents show the right numbers."""

import numpy as np
import pytest
import xarray as xr

from statmech_attn import plotting
from statmech_attn.plotting.dynamics.lyapunov import running_lyapunov
from statmech_attn.plotting.frame.style import BLUE


def test_windows_show_the_first_tokens_of_one_overlap(orbits):
    figure = plotting.trajectory_windows(orbits, windows=(50, 400), pattern=2)
    assert len(figure.axes) == 4
    first, second = figure.axes[2:]
    series = orbits.m_o_se.sel(beta=1.3, pattern=2).values
    np.testing.assert_array_equal(first.lines[0].get_ydata(), series[:50])
    np.testing.assert_array_equal(second.lines[0].get_ydata(), series[:400])
    assert "_{2}" in first.get_ylabel() and "token" in first.get_xlabel()


def test_windows_show_any_observable_of_the_file(orbits):
    figure = plotting.trajectory_windows(orbits, windows=(50,), observable="A")
    first = orbits.A.isel(beta=0).sel(pattern=1).values[:50]
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), first)


def test_a_window_longer_than_the_file_shows_all_of_it_once(orbits):
    figure = plotting.trajectory_windows(orbits, windows=(5000, 10_000))
    assert len(figure.axes) == 2
    assert len(figure.axes[0].lines[0].get_xdata()) == 1000


def test_a_window_too_long_for_a_line_has_the_tokens_of_one_phase_of_the_clock(orbits):
    twice = xr.concat([orbits, orbits.assign_coords(time=orbits.time + 1000)], "time")
    dataset = twice.assign_attrs(orbits.attrs | {"context": 4})
    figure = plotting.trajectory_windows(dataset, windows=(1000, 2000))
    (line,), (dots,) = (axis.lines for axis in figure.axes[:2])
    assert (line.get_linestyle(), dots.get_linestyle()) == ("-", "None")
    np.testing.assert_array_equal(dots.get_xdata(), np.arange(0, 2000, 4))
    assert "mod $4$" in figure.get_supxlabel()


def test_tokens_have_their_entropy_production_beside_the_windows(orbits):
    """Which has a scale of its own; windows of a beta share one."""
    rates = 0.1 + orbits.A.isel(pattern=0, drop=True) ** 2
    rates.attrs = {"units": "1", "unit_name": "nat / (token spin)"}
    dataset = orbits.assign(entropy_production=rates)
    axes = plotting.trajectory_windows(dataset, windows=(50, 400)).axes
    assert len(axes) == 6
    np.testing.assert_array_equal(axes[5].lines[0].get_ydata(), rates[1, :50])
    assert axes[3].get_ylim() == axes[4].get_ylim() != axes[5].get_ylim()
    assert axes[5].get_title(loc="right") == "nat / (token spin)"


def test_titles_say_the_measured_phase_and_only_that(orbits, measured):
    titles = lambda phases: [
        axis.get_title(loc="left")
        for axis in plotting.trajectory_windows(orbits, phases=phases).axes[::3]
    ]
    words = titles(measured)
    assert "chaotic" in words[0] and "1.2" in words[0]
    assert "periodic, $p = 28$" in words[1]
    assert not any("periodic" in text or "chaotic" in text for text in titles(None))


def test_planes_pair_the_overlaps_and_the_attention_as_published(orbits):
    figure = plotting.phase_planes(orbits)
    overlap, attention = figure.axes[0], figure.axes[2]
    m, A = orbits.m_o_se.sel(beta=1.2), orbits.A.sel(beta=1.2)
    np.testing.assert_array_equal(overlap.lines[0].get_xydata(), m.values[:, :2])
    np.testing.assert_array_equal(attention.lines[0].get_xydata(), A.values[:, ::2])
    assert "_{3}" in attention.get_ylabel() and "A_{1}" in attention.get_xlabel()
    assert np.ptp(overlap.get_xlim()) == pytest.approx(np.ptp(overlap.get_ylim()))


def test_a_single_pattern_has_no_plane(orbits):
    with pytest.raises(ValueError, match="at least 2 patterns"):
        plotting.phase_planes(orbits.isel(pattern=[0]))


def test_spectra_peak_at_the_frequency_of_the_orbit(orbits):
    figure = plotting.spectra(orbits, max_lag=60)
    for row, period in ((0, 10), (1, 25)):
        linear, log, correlation = figure.axes[3 * row : 3 * row + 3]
        for axis in (linear, log):
            frequency, power = axis.lines[0].get_data()
            assert frequency[np.nanargmax(power)] == pytest.approx(1 / period, abs=1e-3)
        assert log.get_yscale() == "log" and linear.get_yscale() == "linear"
        lag, r = correlation.lines[1].get_data()
        assert r[0] == 1 and lag[1 + np.argmax(r[1:40] > 0.999)] == period
    assert (
        "cycles/token" in linear.get_xlabel() and "tokens" in correlation.get_xlabel()
    )


def test_a_constant_orbit_has_an_empty_spectrum_and_no_warning(orbits):
    constant = orbits.isel(beta=[0]) * 0 + 0.25
    figure = plotting.spectra(constant)
    assert np.isnan(figure.axes[1].lines[0].get_ydata()).all()


def test_running_averages_end_at_the_exponents_with_shrinking_bands(measured):
    axis = running_lyapunov(measured).axes[0]
    (line,) = [
        x for x in axis.lines if x.get_color() == BLUE and len(x.get_xdata()) > 2
    ]
    np.testing.assert_allclose(
        line.get_ydata(), measured.lyapunov_running.values[0, :, 0]
    )
    band = axis.collections[0].get_paths()[0].vertices
    width = lambda t: np.ptp(band[np.isclose(band[:, 0], t), 1])
    assert width(800) == pytest.approx(2 * 0.004)
    assert width(200) == pytest.approx(2 * width(800))
    assert "(nat/token)" in axis.get_ylabel() and "tokens" in axis.get_xlabel()
    assert "chaotic" in axis.get_title(loc="left")
