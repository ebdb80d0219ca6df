"""Every plotting function draws on given axes, and whole figures are made of them."""

import inspect
import pathlib

import numpy as np
import pytest
from matplotlib.figure import Figure

from statmech_attn import plotting, storage


KEPT = pathlib.Path(__file__).resolve().parents[3] / "paper_figs" / "results"
PANELS = {  # of every function, for the data that it is given here
    "ablation": (1, "ablated"),
    "accuracy_against_width": (1, "learned"),
    "accuracy_on_sets": (2, "of_sets"),
    "agreement": (3, "agreeing"),
    "alignment": (1, "learned"),
    "angle_quantiles": (2, "along_angles"),
    "basin_fractions": (3, "basins"),
    "bifurcation_curves": (1, "branches"),
    "bifurcation_diagram": (3, "scan"),
    "bifurcation_points": (1, "branches"),
    "bifurcation_samples": (1, "scan"),
    "branches": (1, "branches"),
    "capacities": (2, "loads"),
    "capacities_of_spins": (2, "capacity_spins"),
    "chaos_indicators": (2, "indicated"),
    "classifier_disagreement": (4, "scan"),
    "continuation_diagram": (1, "branches"),
    "covariant_vectors": (2, "directed"),
    "critical_curves": (3, "branches"),
    "crosstalk_in_time": (2, "growing"),
    "cumulative_pruning": (2, "one_shot_pruning"),
    "differences_in_time": (4, "agreeing"),
    "error_against_examples": (2, "curve"),
    "variance_against_examples": (1, "curve"),
    "evidence_against_width": (1, "evident"),
    "evidence_and_validation": (2, "selected"),
    "entropy_map": (1, "plane"),
    "entropy_production": (1, "produced"),
    "exponent_map": (1, "plane"),
    "extensive_agreement": (2, "growing_compared"),
    "finite_series": (3, "indicated"),
    "finite_size_collapse": (3, "critical"),
    "finite_size": (4, "simulation"),
    "finite_width": (3, "side_by_side"),
    "greedy_pruning": (1, "ablated"),
    "head_interactions": (1, "ablated"),
    "head_scores": (1, "scored"),
    "heads_together": (1, "scored"),
    "hysteresis": (3, "swept"),
    "learning_curves": (2, "one_shot_training"),
    "lifetimes": (1, "basins"),
    "lyapunov_spectrum": (1, "scan"),
    "motion_against_size": (3, "crosstalk_spins"),
    "one_shot_accuracy": (3, "one_shot_theory-0"),
    "one_shot_alignment": (1, "one_shot_theory-0"),
    "one_shot_kernels": (18, "one_shot_theory-0"),
    "one_shot_matrices": (1, "one_shot_theory-0"),
    "order_parameter_matrices": (3, "learned"),
    "overlaps_in_time": (1, "growing"),
    "path_kernels": (6, "learned"),
    "phase_diagram": (2, "plane"),
    "phase_map": (1, "plane"),
    "phase_planes": (4, "orbits"),
    "phase_ribbon": (1, "scan"),
    "phases_against_load": (2, "crosstalk"),
    "plane_basins": (1, "on_plane"),
    "pruned_heads": (4, "one_shot_pruning"),
    "pruning_ranks": (2, "one_shot_pruning"),
    "response_curves": (3, "responded"),
    "running_lyapunov": (2, "measured"),
    "spectra": (6, "orbits"),
    "sweep_diagram": (5, "both_ways"),
    "training": (3, "trained"),
    "trajectory_windows": (6, "orbits"),
    "unstable_cycles": (2, "cyclic"),
    "two_times": (2, "growing"),
}


@pytest.fixture
def content(request):
    """Data for a function: a fixture or a kept result, in a list where it takes one."""

    def of(name: str):
        source = PANELS[name][1]
        kept = KEPT / f"{source}-laptop.h5"
        if not kept.exists():
            return request.getfixturevalue(source)
        found = storage.read(kept)
        if name == "one_shot_kernels":
            found = with_kernels(found)
        return [found] if name == "one_shot_accuracy" else found

    return of


def with_kernels(theory):
    """Kernels of made numbers, which the kept file lacks."""
    rng, over = np.random.default_rng(0), ("example", "example_pair")
    P, paths = theory.sizes["example"], theory.sizes["path_1"]
    points = theory.sizes["width"], theory.sizes["temperature"]
    shared = rng.normal(size=(P, P))
    everywhere = np.broadcast_to(shared, (*points, P, P))
    theory["path_kernel"] = ("path_1", *over), rng.normal(size=(paths, P, P))
    theory["kernel"] = ("width", "temperature", *over), everywhere
    theory["kernel_gp"] = over, shared
    return theory


@pytest.fixture
def evident(learned):
    """Order parameters with their evidence, of made numbers."""
    return learned.assign(log_evidence=-10 * learned.accuracy)


@pytest.fixture
def trained(learned):
    """Two restarts at every width, that end at the saddle point."""
    step, restarts = np.arange(1, 6), 2
    repeated = learned[["U_1", "accuracy"]].expand_dims(restart=restarts)
    over = ("restart", "width", "step")
    loss = np.ones((restarts, learned.sizes["width"], len(step))) / step
    return repeated.assign(
        accuracy_train=repeated.accuracy,
        loss_data=(over, loss),
        loss_prior=(over, loss),
        step=step,
    ).squeeze(drop=True)


def drawing() -> dict[str, inspect.Signature]:
    """Public functions that draw, by what they return or take."""
    functions = {name: getattr(plotting, name) for name in plotting.__all__}
    signatures = {
        name: inspect.signature(function, eval_str=True)
        for name, function in functions.items()
        if inspect.isfunction(inspect.unwrap(function))
    }
    return {
        name: signature
        for name, signature in signatures.items()
        if signature.return_annotation is Figure
    }


def test_every_public_function_that_draws_takes_axes_by_name():
    found = drawing()
    assert set(found) == set(PANELS)
    for name, signature in found.items():
        own = {"ax", "axes"}.intersection(signature.parameters)
        assert len(own) == 1, f"{name} takes {own or 'neither ax nor axes'}"
        parameter = signature.parameters[own.pop()]
        assert parameter.kind == inspect.Parameter.KEYWORD_ONLY, name
        assert parameter.default is None, name


@pytest.mark.parametrize("name", PANELS)
def test_a_picture_fills_the_axes_that_it_is_given(name, content):
    data, count = content(name), PANELS[name][0]
    function = getattr(plotting, name)
    keyword = {"ax", "axes"}.intersection(inspect.signature(function).parameters)
    theirs = Figure()
    grid = theirs.subplots(1, count + 1, squeeze=False).ravel()
    given = grid[0] if count == 1 else grid[:count]
    assert function(data, **{keyword.pop(): given}) is theirs
    drawn = [bool(axis.get_children() and axis.has_data()) for axis in grid]
    assert drawn == [True] * count + [False]
    assert not theirs.legends and not theirs.get_supxlabel()


def test_another_number_of_axes_is_refused(scan, orbits):
    axes = Figure().subplots(1, 2)
    with pytest.raises(ValueError, match="this picture has 3 panels; got 2"):
        plotting.bifurcation_diagram(scan, axes=axes)
    with pytest.raises(ValueError, match="this picture has 6 panels; got 1"):
        plotting.trajectory_windows(orbits, axes=axes[0])


def test_a_whole_figure_has_the_panels_that_can_be_drawn_alone(scan, produced, plane):
    """The same lines and the same cells, whoever made the axes."""
    assert len(plotting.bifurcation_diagram(scan).axes) == 3
    whole = plotting.bifurcation_diagram(produced).axes
    parts = (
        plotting.phase_ribbon,
        plotting.bifurcation_samples,
        plotting.lyapunov_spectrum,
        plotting.entropy_production,
    )
    for axis, part in zip(whole, parts, strict=True):
        (alone,) = part(produced).axes
        assert len(alone.lines) == len(axis.lines)
        for one, other in zip(alone.lines, axis.lines, strict=True):
            np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
    left, right, _ = plotting.phase_diagram(plane).axes
    for axis, part in ((left, plotting.phase_map), (right, plotting.exponent_map)):
        one, other = axis.collections[0], part(plane).axes[0].collections[0]
        np.testing.assert_array_equal(one.get_array(), other.get_array())


def test_tick_labels_of_given_axes_are_left_to_the_caller(scan):
    axis = Figure().subplots()
    plotting.phase_ribbon(scan, ax=axis)
    assert all(label.get_visible() for label in axis.get_xticklabels())


def test_legends_of_given_axes_are_left_to_the_caller(scan):
    axis = Figure().subplots()
    plotting.phase_ribbon(scan, ax=axis)
    assert axis.get_legend() is None
    words = [text.get_text() for text in axis.legend().get_texts()]
    assert words == ["fixed", "periodic", "quasiperiodic", "chaotic", "undetermined"]
