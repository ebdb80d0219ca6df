"""Pictures of patterns growing with N."""

import pathlib

import numpy as np
import pytest
import xarray as xr

from statmech_attn import plotting, storage
from statmech_attn.plotting.network import extensive
from statmech_attn.plotting.network.extensive import (
    crosstalk_in_time,
    flat,
    overlaps_in_time,
    two_times,
)


KEPT = pathlib.Path(__file__).resolve().parents[3] / "paper_figs" / "results"


def labelled_lines(axis):
    return {line.get_label(): line for line in axis.lines}


def test_spins_lie_on_the_theory_of_their_own_load(growing, spins_of_growing):
    (axis,) = overlaps_in_time(growing, spins_of_growing).axes
    line = labelled_lines(axis)[r"$\alpha = 0.4$"]
    np.testing.assert_array_equal(line.get_ydata(), growing.m_o_se[1, :, 0])
    bars = axis.containers[1]
    assert bars[0].get_color() == line.get_color()
    np.testing.assert_array_equal(bars[0].get_ydata(), growing.m_o_se[1, :, 0] + 0.01)
    note = axis.figure.get_supxlabel()
    assert r"$\beta = \infty$" in note and "$N = 400$, 20 samples" in note


def test_one_pattern_of_a_generator_is_not_called_after_it(growing):
    """A cycle of one pattern beside patterns of identical kinds is none."""
    study = '[network]\npatterns = "cycle"\nn_patterns = 1\n'
    alone = growing.assign_attrs(study=study, context=2)
    note = overlaps_in_time(alone).axes[0].figure.get_supxlabel()
    assert "beside them: one pattern, $C = 2$" in note and "cycle" not in note


def test_every_age_has_its_dashes_and_every_load_its_colour(growing):
    noise, weights = crosstalk_in_time(growing).axes
    lines = labelled_lines(noise)
    np.testing.assert_array_equal(
        lines[r"$\alpha = 0.1$"].get_ydata(), growing.noise_std[0]
    )
    drawn = {(line.get_color(), line.get_linestyle()) for line in weights.lines[:4]}
    assert len(drawn) == 4


def test_two_times_have_a_panel_for_every_load_and_one_scale(growing):
    figure = two_times(growing)
    images = [axis.collections[0] for axis in figure.axes[:2]]
    for image, C in zip(images, growing.C, strict=True):
        np.testing.assert_array_equal(image.get_array(), C)
        assert image.get_clim() == (0.0, 1.0)
    with pytest.raises(ValueError, match="no order parameter 'S'.*this file has C"):
        two_times(growing, "S")


def test_capacities_are_drawn_against_gamma_or_else_the_temperature(loads):
    axes = plotting.capacities(loads).axes
    assert axes[0].get_xlabel().startswith("attention inverse temperature")
    titles = [axis.get_title(loc="right") for axis in axes]
    assert titles == [r"$\beta = 2$", r"$\beta = \infty$"]
    words = [text.get_text() for text in axes[0].figure.legends[0].get_texts()]
    assert words == ["$C = 1$", "$C = 2$"]
    (axis,) = plotting.capacities(loads.isel(gamma=0)).axes
    np.testing.assert_array_equal(axis.containers[0][0].get_xdata(), [0.5, 0.0])


def test_spins_stop_to_retrieve_beside_the_lines_of_their_context(loads):
    """At C = 2 and the first of two temperatures, N = 400 and 1600."""
    values = np.array([0.21, 0.22, 0.23])
    both = np.stack([values - 0.1, values], -1)[None, None]
    over = ("context", "beta", "gamma")
    spins = xr.Dataset(
        {
            "threshold": ((*over, "n_spins"), both),
            "threshold_error": ((*over, "n_spins"), 0 * both + 0.01),
            "after": (over, values[None, None] + 0.005),
        },
        {"context": [2], "beta": [2.0], "gamma": loads.gamma, "n_spins": [400, 1600]},
        {"samples": 24, "steps": 40},
    )
    axis, cold = plotting.capacities(loads, spins).axes
    assert len(cold.containers) == 2
    markers, *_ = axis.containers[-1]
    np.testing.assert_array_equal(markers.get_ydata(), values)
    line = axis.containers[1][0]  # C = 2 at the same temperature
    assert markers.get_color() == line.get_color()
    bars = [x for x in axis.lines if x.get_marker() == "_" and len(x.get_xdata())]
    np.testing.assert_array_equal(bars[0].get_ydata(), values + 0.005)
    (warm,) = plotting.capacities(loads.isel(gamma=0), spins.isel(gamma=[0])).axes
    np.testing.assert_array_equal(warm.containers[-1][0].get_xdata(), [0.5])
    assert "24 samples" in warm.figure.get_supxlabel()


def test_spins_with_crosstalk_have_a_panel_for_every_load():
    """Against their number, with a bar of theory at the right where it moves."""
    phases, over = storage.read(KEPT / "crosstalk-laptop.h5"), ("alpha", "beta")
    theory = np.array([[0.1, 0.2], [0.0, 0.3]])
    both = np.stack([theory + 0.1, theory + 0.01], -1)
    spins = xr.Dataset(
        {
            "motion": (over, theory),
            "motion_spins": ((*over, "n_spins"), both),
            "motion_spins_stderr": ((*over, "n_spins"), 0 * both + 0.01),
        },
        {"alpha": [0.01, 0.05], "beta": [1.255, 1.4], "n_spins": [3000, 12000]},
        {"window": [4000, 6000]},
    )
    _, lines, *motion = plotting.phases_against_load(phases, spins).axes
    for k, axis in enumerate(motion):
        assert axis.get_ylim() == motion[0].get_ylim()
        markers = [container[0] for container in axis.containers]
        for i, (beta, marker) in enumerate(zip((1.255, 1.4), markers, strict=True)):
            np.testing.assert_array_equal(marker.get_xdata(), [3000, 12000])
            np.testing.assert_array_equal(marker.get_ydata(), both[k, i])
            same = phases.beta.values.tolist().index(beta)
            of_exponents = lines.containers[same][0]
            assert marker.get_marker() == of_exponents.get_marker()
            np.testing.assert_array_equal(marker.get_color(), of_exponents.get_color())
        bars = [
            x.get_segments()[0] for x in axis.collections if len(x.get_paths()) == 1
        ]
        drawn = [bar for bar in bars if np.ptp(bar[:, 1]) == 0]
        assert [bar[0, 1] for bar in drawn] == [x for x in theory[k] if x]
        assert all(bar[0, 0] > 12000 for bar in drawn)


def test_loads_are_to_scale_and_lines_join_those_of_one_phase():
    phases = storage.read(KEPT / "crosstalk-laptop.h5")
    rows, lines = plotting.phases_against_load(phases).axes
    edges = rows.collections[0].get_coordinates()[0, :, 0]
    loads = phases.alpha.values
    assert (edges[:-1] < loads).all() and (loads < edges[1:]).all()
    np.testing.assert_allclose(edges[-3], np.sqrt(0.3 * 0.35))  # half way in decades
    assert rows.get_xscale() == lines.get_xscale() == "symlog"
    joined = [line for line in lines.lines if line.get_linestyle() == "-"]
    for line, beta in zip(joined, phases.beta.values, strict=False):
        codes = phases.phase.sel(beta=beta).values
        x = np.ma.filled(line.get_xdata(), np.nan)
        for one, other in zip(x, x[1:]):
            if np.isfinite(one) and np.isfinite(other):
                ends = np.searchsorted(loads, [one, other])
                assert codes[ends[0]] == codes[ends[1]]


def test_many_points_are_spread_over_pages(growing):
    many = growing.isel(alpha=[0, 1] * 4)
    suffixes, parts = zip(*extensive.pages(many), strict=True)
    assert suffixes == ("_1", "_2")
    assert [part.sizes["point"] for part in parts] == [6, 2]


def test_points_of_a_file_lie_along_one_dimension():
    data = xr.Dataset({"A": (("alpha", "beta"), np.zeros((2, 3)))})
    data = flat(data.assign_coords(alpha=[0.1, 0.2], beta=[1.0, 2.0, 3.0]))
    assert data.A.dims == ("point",)
    assert data.alpha.values.tolist() == [0.1, 0.1, 0.1, 0.2, 0.2, 0.2]
