"""Maps of phases over two parameters, and where two classifiers differ."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from statmech_attn import plotting
from statmech_attn.dynamics import PHASES
from statmech_attn.plotting.dynamics.phases import (
    classifier_disagreement,
    describe_phase,
    entropy_map,
    where_they_differ,
)


def test_the_first_parameter_runs_across_and_codes_keep_their_places(plane):
    left = plotting.phase_diagram(plane).axes[0]
    codes = left.collections[0].get_array()
    assert codes.shape == (3, 4)
    np.testing.assert_array_equal(codes, plane.phase.values.T)
    assert r"\beta" in left.get_xlabel() and r"\gamma" in left.get_ylabel()


def test_a_transient_has_the_phase_that_follows_it_and_a_dot(plane):
    over, settled = ("beta", "gamma"), plane.phase.values.copy()
    starts = np.full((4, 3), -1, np.int16)
    settled[2, 1], starts[2, 1] = PHASES.index("fixed"), 8
    followed = plane.assign(
        final_phase=(over, settled),
        final_starts=(over, starts),
        final_lyapunov=(over, plane.lyapunov.values[..., 0]),
    )
    axis, *_ = plotting.phase_diagram(followed).axes
    codes = axis.collections[0].get_array()
    np.testing.assert_array_equal(codes, settled.T)
    (dots,) = (x for x in axis.lines if x.get_label() == "after a transient")
    np.testing.assert_array_equal(dots.get_xydata(), [[1.3, 100.0]])


def test_the_exponent_map_is_centred_on_zero_and_has_a_unit(plane):
    figure = plotting.phase_diagram(plane)
    mesh, bar = figure.axes[1].collections[0], figure.axes[-1]
    assert mesh.norm.vcenter == 0
    np.testing.assert_array_equal(mesh.get_array(), plane.lyapunov.values[..., 0].T)
    assert "(nat/token)" in bar.get_ylabel()


@pytest.mark.parametrize(("chaotic", "scale"), [(0.5, 0.2), (0.0, 5.0)])
def test_the_scale_of_exponents_is_that_of_chaos_where_there_is_some(
    plane, chaotic, scale
):
    values = np.full(plane.lyapunov.shape, -5.0)
    first = values[..., 0]
    first[: round(chaotic * len(first))] = 0.2
    figure = plotting.phase_diagram(
        plane.assign(lyapunov=plane.lyapunov.copy(data=values))
    )
    assert figure.axes[1].collections[0].norm.halfrange == pytest.approx(scale)


def test_a_refined_plane_is_drawn_on_its_finest_grid(refined_plane):
    left, right = plotting.phase_diagram(refined_plane).axes[:2]
    fixed, chaotic = PHASES.index("fixed"), PHASES.index("chaotic")
    codes = left.collections[0].get_array()
    np.testing.assert_array_equal(codes, [[fixed] * 4 + [chaotic]] * 3)
    largest = right.collections[0].get_array()
    # Where nothing was computed: from the left and from below; in the centre: computed.
    np.testing.assert_allclose(largest[1], [-0.25, -0.15, -0.05, -0.05, 0.15])
    np.testing.assert_allclose(largest[0], [-0.25, -0.25, -0.05, -0.05, 0.15])
    produced = refined_plane.lyapunov.isel(exponent=0) + 0.25
    figure = entropy_map(refined_plane.assign(entropy_production=produced))
    drawn = figure.axes[0].collections[0].get_array()
    np.testing.assert_allclose(drawn, largest + 0.25)


def test_curves_of_bifurcations_lie_over_the_phases(plane, boundary):
    figure = plotting.phase_diagram(plane, boundary)
    drawn = figure.axes[0].lines[0].get_xydata()
    np.testing.assert_array_equal(drawn, [[1.1, 50], [1.15, 100], [1.2, 150]])
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words[-2:] == ["Neimark–Sacker", "subcritical (dashed)"]
    codes = plane.phase.copy(data=np.arange(12).reshape(plane.phase.shape) % 8)
    wide = plotting.phase_diagram(plane.assign(phase=codes), boundary)
    FigureCanvasAgg(wide).draw()
    legend = wide.legends[0].get_window_extent()
    assert legend.x0 >= 0 and legend.x1 <= wide.bbox.x1


def test_curves_in_other_parameters_are_refused(plane, boundary):
    other = boundary.assign_attrs(second="epsilon")
    with pytest.raises(ValueError, match=r"curves must be in .'beta', 'gamma'."):
        plotting.phase_diagram(plane, other)


def test_curves_of_another_network_or_at_another_third_parameter_are_refused(
    plane, boundary
):
    at = lambda scan, epsilon: scan.assign_coords(epsilon=epsilon)
    plotting.phase_diagram(at(plane, 0.1), at(boundary, 0.1))
    with pytest.raises(ValueError, match="must have epsilon = 0.1; got 0.2"):
        plotting.phase_diagram(at(plane, 0.1), at(boundary, 0.2))
    with pytest.raises(ValueError, match="of the network of the phases"):
        plotting.phase_diagram(plane, boundary.assign_attrs(network="another"))


def test_a_plane_without_exponents_has_no_phases(plane):
    with pytest.raises(ValueError, match="a phase diagram needs phases"):
        plotting.phase_diagram(plane.drop_vars(["phase", "lyapunov"]))


def test_a_phase_diagram_of_one_parameter_is_refused(scan):
    with pytest.raises(ValueError, match="two scanned parameters"):
        plotting.phase_diagram(scan)


def test_fixed_counts_as_periodic_and_undecided_as_no_disagreement(scan):
    # phases: fixed, periodic, quasiperiodic, chaotic, undetermined
    # paper:  periodic, chaotic, quasiperiodic, chaotic, chaotic
    np.testing.assert_array_equal(where_they_differ(scan).ravel(), [0, 1, 0, 0, -1])


def test_disagreements_are_marked_at_their_exponents(scan):
    axis = classifier_disagreement(scan).axes[-1]
    (marks,) = [x for x in axis.lines if "differ (1)" in str(x.get_label())]
    expected = [[1.3, float(scan.lyapunov.sel(beta=1.3, exponent=1))]]
    np.testing.assert_allclose(marks.get_xydata(), expected)


def test_the_strips_differ_exactly_where_the_third_says_so(scan):
    strips = classifier_disagreement(scan).axes[:3]
    ours, sign, differ = (np.ravel(a.collections[0].get_array()) for a in strips)
    # In order of beta: fixed, undetermined, quasiperiodic, periodic, chaotic.
    assert ours.tolist() == [0, -1, 1, 0, 2]
    assert sign.tolist() == [0, 2, 1, 2, 2]
    np.testing.assert_array_equal(differ == 1, (ours != sign) & (ours >= 0))
    np.testing.assert_array_equal(differ == -1, ours == -1)


def test_classes_are_named_as_both_classifiers_have_them(scan):
    figure = classifier_disagreement(scan)
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["fixed or periodic", "quasiperiodic", "chaotic", "no verdict"]
    labels = [axis.get_ylabel() for axis in figure.axes[:3]]
    assert labels == ["all evidence", r"sign of $\lambda_1$", "verdicts differ"]


def test_no_verdict_is_not_drawn_as_a_disagreement(scan):
    """Pale in every strip, by the share of white in black and grey that it reflects."""
    for axis in classifier_disagreement(scan).axes[:3]:
        colours = axis.collections[0].get_cmap()
        assert min(colours(0)[:3]) > 0.75  # the code of no verdict
    assert max(colours(2)[:3]) == 0.0


def test_points_that_failed_have_no_verdict(scan):
    failed = scan.assign(failure=("beta", np.ones(5, np.int8)))
    assert (where_they_differ(failed) == -1).all()
    (legend,) = classifier_disagreement(failed).legends
    assert [text.get_text() for text in legend.get_texts()] == ["no verdict"]


def test_a_phase_is_described_with_its_measured_period(scan):
    assert describe_phase(scan, beta=1.3) == "periodic, $p = 28$"
    assert describe_phase(scan, beta=1.4) == PHASES[3]
