"""Basins, lifetimes and hysteresis as drawn."""

import io
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from rich.console import Console

from statmech_attn import plotting
from statmech_attn.cli.texts.summary import print_summary
from statmech_attn.dynamics.along_parameter.hysteresis import intervals
from statmech_attn.plotting.dynamics.basins import basin_fractions, lifetimes
from statmech_attn.plotting.dynamics.plane_basins import plane_basins
from statmech_attn.plotting.frame import style


def test_shares_are_stacked_to_one_and_sets_keep_their_colour(basins):
    axis = basin_fractions(basins).axes[0]
    tops = {}
    for bar in axis.patches:
        left = round(bar.get_x(), 6)
        tops[left] = max(tops.get(left, 0.0), bar.get_y() + bar.get_height())
    assert len(tops) == 3
    assert list(tops.values()) == pytest.approx([1.0, 1.0, 1.0])
    texts = {text.get_text() for text in axis.texts}
    assert {"28", "32", "44"} <= texts
    colours = {bar.get_facecolor() for bar in axis.patches}
    assert len(colours) == 4  # three attractors and what did not settle


def test_sets_are_named_with_their_periods(basins):
    figure = basin_fractions(basins)
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert any(text.startswith("set 0: period ") for text in words)
    colours = [patch.get_facecolor() for patch in legend.get_patches()]
    assert len(set(colours)) == len(colours)


def test_an_attractor_has_the_colour_of_no_phase(basins, on_plane):
    phases = {to_hex(colour) for colour in style.PHASE_COLOURS.values()}
    for figure in (basin_fractions(basins), plane_basins(on_plane)):
        (legend,) = figure.legends
        pairs = zip(legend.get_texts(), legend.get_patches(), strict=True)
        colours = [
            to_hex(patch.get_facecolor())
            for text, patch in pairs
            if re.match(r"(set )?\d+: ", text.get_text())
        ]
        assert len(colours) > 1 and not phases.intersection(colours)


def test_errors_of_shares_are_the_stored_intervals(basins):
    axis = basin_fractions(basins).axes[1]
    drawn = [c for c in axis.containers]
    assert len(drawn) == int((basins["count"] > 0).sum())
    segment = drawn[0][2][0].get_segments()[0]
    low, high = segment[:, 1]
    first = basins.sortby("beta").isel(beta=0, slot=0)
    assert (low, high) == pytest.approx(
        (float(first.fraction_low), float(first.fraction_high))
    )


def test_mean_lifetimes_are_the_inverse_rates(basins):
    axis = basin_fractions(basins).axes[2]
    points = axis.containers[0][0]
    np.testing.assert_allclose(
        points.get_ydata(), 1 / basins.sortby("beta").escape_rate, equal_nan=True
    )
    assert axis.get_yscale() == "log" and "(tokens)" in axis.get_ylabel()


def test_survival_curves_fall_from_one_beside_their_fit(basins):
    figure = lifetimes(basins)
    (axis,) = figure.axes
    solid = [x for x in axis.lines if x.get_linestyle() == "-" and len(x.get_xdata())]
    dashed = [x for x in axis.lines if x.get_linestyle() == "--" and len(x.get_xdata())]
    assert len(solid) == len(dashed) == 2
    for line in solid:
        assert (np.diff(line.get_ydata()) <= 0).all() and line.get_ydata()[0] <= 1
    labels = [str(x.get_label()) for x in axis.lines]
    assert any("none settled" in label for label in labels)


def marked(axis) -> tuple[float, float]:
    """Ends of the one bar at the foot of a panel."""
    ((low, foot), (high, _)) = axis.collections[0].get_segments()[0]
    assert foot == axis.get_ylim()[0] and len(axis.collections) == 1
    return low, high


def test_sweeps_have_a_panel_each_and_marks_where_they_differ(swept):
    *samples, distance = plotting.hysteresis(swept).axes
    for axis, way in zip(samples, ("up", "down"), strict=True):
        (dots,) = axis.lines
        np.testing.assert_array_equal(
            dots.get_ydata(), np.ravel(swept[f"strobe_{way}"])
        )
        assert axis.get_title("left").endswith(f"followed {way}ward")
        assert marked(axis) == pytest.approx((0.15, 0.35))
    assert samples[0].get_ylim() == samples[1].get_ylim()
    assert marked(distance) == pytest.approx((0.15, 0.35))
    assert style.WORDS["beta"] in distance.get_xlabel()


@pytest.mark.parametrize(
    ("differ", "ends", "words"),
    [
        (
            [1, 1, 0, 0],
            (0.1, 0.25),
            "from 0.1 (the first value) to 0.2; they agree from 0.3 on",
        ),
        (
            [0, 0, 1, 1],
            (0.25, 0.4),
            "from 0.3 to 0.4 (the last value); they agree up to 0.2",
        ),
        ([1, 1, 1, 1], (0.1, 0.4), "from 0.1 (the first value) to 0.4 (the last"),
    ],
)
def test_open_stretches_reach_the_end_of_the_values(swept, differ, ends, words):
    found = intervals(swept.beta.values, np.array(differ, bool))
    swept["interval"] = swept.interval.dims, found
    assert marked(plotting.hysteresis(swept).axes[0]) == pytest.approx(ends)
    console = Console(width=200, record=True, file=io.StringIO())
    print_summary(swept, console)
    assert words in console.export_text() and "nan" not in console.export_text()
