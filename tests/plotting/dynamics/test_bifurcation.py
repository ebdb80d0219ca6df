"""A bifurcation diagram shows every sample, every exponent and every phase."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from statmech_attn import plotting
from statmech_attn.dynamics import PHASES
from statmech_attn.plotting.dynamics.phases import classifier_disagreement
from statmech_attn.plotting.frame.style import PHASE_COLOURS, SERIES


def panels(figure):
    ribbon, diagram, spectrum = figure.axes
    return ribbon, diagram, spectrum


def points(axis):
    """All markers of an axis, (n, 2), by legend entry."""
    return {line.get_label(): line.get_xydata() for line in axis.lines}


def test_every_section_sample_is_drawn_once_at_its_beta(scan):
    _, diagram, _ = panels(plotting.bifurcation_diagram(scan))
    (drawn,) = [xy for name, xy in points(diagram).items() if "m^" in name]
    beta, _ = np.broadcast_arrays(scan.beta.values[:, None], scan.section.values)
    there = np.isfinite(scan.section.values)
    expected = np.stack([beta[there], scan.section.values[there]], axis=1)
    assert len(drawn) == int(scan.section_count.sum())
    assert set(map(tuple, drawn)) == set(map(tuple, expected))


def test_the_strobe_is_drawn_behind_and_can_be_left_out(scan):
    _, diagram, _ = panels(plotting.bifurcation_diagram(scan))
    strobe, section = diagram.lines
    assert len(strobe.get_xdata()) == scan.strobe.size
    _, diagram, _ = panels(plotting.bifurcation_diagram(scan, strobe=False))
    assert len(diagram.lines) == 1


def test_exponents_keep_their_values_and_lost_directions_are_not_drawn(scan):
    _, _, spectrum = panels(plotting.bifurcation_diagram(scan))
    ordered = scan.sortby("beta").lyapunov.values
    for i in range(3):
        (line,) = [
            line
            for line in spectrum.lines
            if line.get_color() == SERIES[i] and line.get_marker() == "None"
        ]
        drawn, expected = line.get_ydata(), ordered[:, i]
        drawn, expected = (x[np.isfinite(x)] for x in (drawn, expected))
        np.testing.assert_array_equal(drawn, expected)
    assert spectrum.get_ylim()[0] < 0 < ordered[:, 0].max() < spectrum.get_ylim()[1]


def test_no_line_of_exponents_goes_from_one_phase_or_period_to_another(scan):
    ordered = scan.sortby("beta")
    ordered["phase"] = ("beta", np.array([1, 1, 1, 3, 3], np.int8))
    ordered["period"] = ("beta", np.array([4, 4, 8, 0, 0]))
    ordered["lyapunov"] = ordered.lyapunov * 0 + 0.1
    (axis,) = plotting.lyapunov_spectrum(ordered).axes
    (line,) = [
        x for x in axis.lines if x.get_color() == SERIES[0] and x.get_marker() == "None"
    ]
    ends = np.flatnonzero(np.isnan(line.get_ydata()))
    np.testing.assert_array_equal(ends, [2, 4])
    alone = [x.get_xdata().tolist() for x in axis.lines if x.get_marker() == "."]
    assert alone[-1] == [1.2]


def test_no_line_of_exponents_crosses_a_jump_within_a_phase(scan):
    del scan["phase"], scan["period"]
    chaotic = [0.14, 0.13, 0.01, 0.14, 0.13]
    scan["lyapunov"] = ("beta", "exponent"), np.repeat(chaotic, 3).reshape(5, 3)
    scan = scan.assign_coords(beta=np.arange(5.0))
    (axis,) = plotting.lyapunov_spectrum(scan).axes
    (line,) = [
        x for x in axis.lines if x.get_color() == SERIES[0] and x.get_marker() == "None"
    ]
    expected = [0.14, 0.13, np.nan, 0.01, np.nan, 0.14, 0.13]
    np.testing.assert_array_equal(line.get_ydata(), expected)


def test_the_band_of_an_exponent_is_one_standard_error_on_each_side(scan):
    del scan["phase"], scan["period"]
    scan["lyapunov"] = scan.lyapunov * 0 + 0.3
    (axis,) = plotting.lyapunov_spectrum(scan).axes
    largest = axis.collections[-1].get_paths()[0].vertices
    at = largest[np.isclose(largest[:, 0], 1.4), 1]
    assert at.min() == pytest.approx(0.29)
    assert at.max() == pytest.approx(0.31)


def test_a_line_marks_zero(scan):
    _, _, spectrum = panels(plotting.bifurcation_diagram(scan))
    assert any(np.all(np.asarray(x.get_ydata()) == 0) for x in spectrum.lines)


def test_the_ribbon_has_the_colour_of_each_phase_in_the_order_of_beta(scan):
    ribbon, _, _ = panels(plotting.bifurcation_diagram(scan))
    mesh = ribbon.collections[0]
    mesh.update_scalarmappable()
    expected = [
        to_rgba(PHASE_COLOURS[PHASES[int(code)]]) for code in scan.sortby("beta").phase
    ]
    np.testing.assert_allclose(mesh.get_facecolor().reshape(-1, 4), expected)


def test_the_legend_names_the_phases_found_and_no_others(scan):
    (legend,) = plotting.bifurcation_diagram(scan).legends
    named = {text.get_text() for text in legend.get_texts()} & set(PHASES)
    assert named == {PHASES[int(code)] for code in scan.phase}


def test_axes_carry_symbols_and_units(scan):
    _, diagram, spectrum = panels(plotting.bifurcation_diagram(scan))
    assert r"\beta" in spectrum.get_xlabel()
    assert "(nat/token)" in spectrum.get_ylabel()
    assert "m^{o" in diagram.get_ylabel() and "_1" in diagram.get_ylabel()


def test_a_scan_without_exponents_is_a_single_panel(scan):
    names = [v for v in scan if v.startswith(("lyapunov", "phase"))]
    figure = plotting.bifurcation_diagram(scan.drop_vars(names))
    assert len(figure.axes) == 1


def test_a_scan_of_two_parameters_is_refused_with_the_way_out(plane):
    with pytest.raises(ValueError, match="select one value"):
        plotting.bifurcation_diagram(plane)
    figure = plotting.bifurcation_diagram(
        plane.isel(gamma=0).assign(lyapunov_stderr=plane.lyapunov.isel(gamma=0) * 0)
    )
    assert len(figure.axes) == 4


def test_a_scan_that_collapses_everywhere_is_still_drawn(scan):
    lost = scan.assign(lyapunov=scan.lyapunov * 0 - np.inf)
    _, _, spectrum = panels(plotting.bifurcation_diagram(lost))
    assert np.isfinite(spectrum.get_ylim()).all()
    assert len(classifier_disagreement(lost).axes) == 4


def test_points_that_failed_are_left_white(scan):
    shown = plotting.bifurcation_diagram(scan)
    beta = float(scan.beta[scan.phase == PHASES.index("undetermined")][0])
    failed = (scan.beta == beta).astype(np.int8)
    figure = plotting.bifurcation_diagram(scan.assign(failure=failed))
    codes = panels(figure)[0].collections[0].get_array()
    assert (
        codes.mask.ravel().tolist()
        == (scan.sortby("beta").beta == beta).values.tolist()
    )
    words = lambda found: [text.get_text() for text in found.legends[0].get_texts()]
    assert set(words(shown)) - set(words(figure)) == {"undetermined"}
