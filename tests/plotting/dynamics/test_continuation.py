"""Continuation diagrams: every branch, its stability, its bifurcations, every curve."""

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from statmech_attn import plotting
from statmech_attn.dynamics.continuation import CODIMENSION_TWO, diagram, KINDS
from statmech_attn.plotting.dynamics import continuation


def test_solid_lines_end_at_the_bifurcation_and_dashed_ones_begin_there(branches):
    (axis,) = plotting.continuation_diagram(branches).axes
    solid, dashed = ([], [])
    for line in axis.lines:
        xy = np.column_stack([line.get_xdata(), line.get_ydata()])
        if line.get_marker() in ("None", "") and np.isfinite(xy[:, 1]).any():
            kept = xy[np.isfinite(xy[:, 1])]
            (solid if line.get_linestyle() == "-" else dashed).append(kept)
    assert solid[0][-1].tolist() == [1.2, 0.1] == dashed[0][0].tolist()
    assert solid[0][0].tolist() == [1.0, 0.0]
    assert [1.35, 0.1] in dashed[0].tolist(), "through the fold"
    doubled = [line for line in solid if line[0, 0] == 1.21]
    assert sorted(line[-1, 1] for line in doubled) == [0.05, 0.16]


def test_bifurcations_are_marked_by_kind_and_hollow_where_subcritical(branches):
    (axis,) = plotting.continuation_diagram(branches).axes
    marks = {line.get_marker(): line for line in axis.lines}
    assert marks["D"].get_xdata()[0] == 1.2 and marks["v"].get_xdata()[0] == 1.35
    assert to_rgba(marks["D"].get_markerfacecolor()) == to_rgba("white")
    assert to_rgba(marks["v"].get_markerfacecolor()) != to_rgba("white")


def test_a_scan_lies_behind_with_its_range_and_a_panel_may_zoom_in(branches, scan):
    figure = plotting.continuation_diagram(branches, scan=scan, zoom=(1.1, 1.3))
    whole, part = figure.axes
    assert whole.get_xlim() == (1.0, 1.4) and part.get_xlim() == (1.1, 1.3)
    for axis in figure.axes:
        cloud = axis.lines[0]
        assert len(cloud.get_xdata()) == scan.strobe.size
        assert cloud.get_zorder() < min(line.get_zorder() for line in axis.lines[1:])


def test_curves_can_be_drawn_on_a_phase_diagram_either_way(branches, plane):
    figure = plotting.phase_diagram(plane)
    axis = figure.axes[0]
    plotting.bifurcation_curves(branches, ax=axis)
    words = axis.get_legend_handles_labels()[1][-3:]
    assert words == ["period doubling", "fold", "subcritical (dashed)"]
    rim = axis.lines[0]
    np.testing.assert_array_equal(rim.get_xdata(), branches.curve_beta[0])
    other = Figure().subplots()
    plotting.bifurcation_curves(branches, x="gamma", names=False, ax=other)
    np.testing.assert_array_equal(other.lines[0].get_xdata(), branches.curve_gamma[0])
    assert not other.texts
    with pytest.raises(ValueError, match="x must be 'beta' or 'gamma'; got 'epsilon'"):
        plotting.bifurcation_curves(branches, x="epsilon")


def test_curves_are_dashed_where_subcritical_and_folds_never(branches):
    axis = plotting.critical_curves(branches).axes[0]
    shown = [np.isfinite(line.get_ydata()).tolist() for line in axis.lines[:6]]
    assert shown[1] == [True, True, True, False, False, False], "up to c = 0"
    assert shown[2] == [False, True, True, True, True, True]
    zero = axis.lines[1].get_xydata()[2]
    between = (branches.curve_beta[0, 1:3].mean(), branches.curve_gamma[0, 1:3].mean())
    np.testing.assert_allclose(zero, between)
    assert all(shown[4]) and not any(shown[5])


def test_a_coefficient_that_a_resonance_leaves_out_is_not_taken_for_subcritical(
    branches,
):
    branches.curve_coefficient[0] = [2.0, np.nan, np.nan, np.nan, 1.0]
    axis = plotting.critical_curves(branches).axes[0]
    solid, dashed = (np.isfinite(axis.lines[i].get_ydata()) for i in (1, 2))
    assert solid.all() and not dashed.any()


@pytest.mark.parametrize(("largest", "scale"), [(0.5, "linear"), (300.0, "symlog")])
def test_coefficients_of_one_size_have_an_even_axis(branches, largest, scale):
    branches.curve_coefficient[0, 0] = largest
    assert plotting.critical_curves(branches).axes[-1].get_yscale() == scale


def test_curves_of_cycles_of_several_periods_say_which(branches):
    words = lambda: {
        t.get_text() for t in plotting.bifurcation_curves(branches).axes[0].texts
    }
    assert not any("p =" in text for text in words())
    branches.special_period[1] = 8
    assert {"$p = 4$", "$p = 8$"} < words()


def test_points_of_codimension_two_are_named(branches):
    axis = plotting.critical_curves(branches).axes[0]
    assert {"cusp"} < {text.get_text() for text in axis.texts}
    assert set(continuation.DEGENERATE) == set(CODIMENSION_TWO)
    assert set(continuation.KINDS) == set(KINDS)


def test_a_file_without_curves_is_refused_with_the_reason(branches):
    with pytest.raises(ValueError, match="holds no curves"):
        plotting.critical_curves(branches.drop_vars("curve_kind"))
    with pytest.raises(ValueError, match="one free parameter"):
        plotting.continuation_diagram(branches, branches.assign_attrs(free="gamma"))


def test_bifurcations_outside_of_the_sweeps_are_not_in_their_legend(
    both_ways, branches
):
    def words(continuation):
        (legend,) = plotting.sweep_diagram(both_ways, [continuation]).legends
        return {text.get_text() for text in legend.get_texts()}

    assert "fold" in words(branches)
    beyond = branches.assign(special_beta=branches.special_beta + 10)
    assert "stable" in words(beyond) and not {"fold", "period doubling"} & words(beyond)


@pytest.mark.slow
def test_the_diagram_of_a_map_of_ones_own_has_the_pictures_of_a_study():
    cubic = lambda x, p: p["p"] + p["q"] * x - x**3
    ends = {"within": (-2.0, 2.0), "second_within": (1.5, 2.0), "curve_points": 20}
    values = {"p": -0.828, "q": 1.75}
    found = diagram(cubic, jnp.array([-1.2]), values, free="p", second="q", **ends)
    figures = dict(plotting.pictures(found.to_dataset()))
    assert [*figures] == ["continuation", "critical_curves"]
    axis = figures["continuation"].axes[0]
    assert axis.get_xlabel() == "$p$"
    assert axis.get_ylabel() == "displayed coordinate $x$"
    marked = [line for line in axis.lines if line.get_marker() in ("v", "D")]
    places = sorted(x for line in marked for x in np.ravel(line.get_xdata()))
    np.testing.assert_allclose(places, sorted(s.value for s in found.special))
