"""Every plotting function draws on given axes, and whole figures are made of them."""

import inspect
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from statmech_attn import kinds, plotting, storage
from statmech_attn.plotting.frame.drawing import of_modules


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
    "bifurcation_samples": (1, "scan"),
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
    "trajectories": (4, "observed"),
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


@pytest.fixture
def observed():
    """Two numbers of a system of one's own at two values of its parameter."""
    orbit = np.random.default_rng(0).normal(size=(2, 30, 2))
    words = {"symbol": ["x", "y"], "words": ["x", "y"], "unit": ["1", "1"]}
    of_each = {f"observable_{name}": ("observable", x) for name, x in words.items()}
    return xr.Dataset(
        {"observed": (("a", "time", "observable"), orbit)},
        {"a": ("a", [0.1, 0.2], {"symbol": "a"}), **of_each},
        {"unit": "step"},
    )


def drawing() -> dict[str, Callable[..., Any]]:
    """Functions that draw a picture of a file, and those of the face that draw."""
    named = [row for row in kinds.KINDS if isinstance(row.pictures, str)]
    rows = [x for row in named for x in of_modules(row.name, row.pictures)]
    functions = {row.function: row.draw for row in rows}
    for name in plotting.__all__:
        function = inspect.unwrap(getattr(plotting, name))
        if inspect.isfunction(function) and name != "figure":
            result = inspect.signature(function, eval_str=True).return_annotation
            functions |= {name: function} if result is Figure else {}
    return functions


DRAWING = drawing()


def test_every_function_that_draws_takes_axes_by_name():
    assert set(DRAWING) == set(PANELS)
    for name, function in DRAWING.items():
        parameters = inspect.signature(function).parameters
        own = {"ax", "axes"}.intersection(parameters)
        assert len(own) == 1, f"{name} takes {own or 'neither ax nor axes'}"
        parameter = parameters[own.pop()]
        assert parameter.kind == inspect.Parameter.KEYWORD_ONLY, name
        assert parameter.default is None, name


@pytest.mark.parametrize("name", PANELS)
def test_a_picture_fills_the_axes_that_it_is_given(name, content):
    data, count = content(name), PANELS[name][0]
    function = DRAWING[name]
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


def test_a_whole_figure_has_the_panels_that_can_be_drawn_alone(scan, produced):
    """The same lines, whoever made the axes."""
    assert len(plotting.bifurcation_diagram(scan).axes) == 3
    *whole, production = plotting.bifurcation_diagram(produced).axes
    parts = (
        plotting.phase_ribbon,
        plotting.bifurcation_samples,
        plotting.lyapunov_spectrum,
    )
    for axis, part in zip(whole, parts, strict=True):
        (alone,) = part(produced).axes
        assert len(alone.lines) == len(axis.lines)
        for one, other in zip(alone.lines, axis.lines, strict=True):
            np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
    values = [y for x in production.lines[1:] for y in x.get_ydata() if np.isfinite(y)]
    assert {*values} <= {*produced.entropy_production.values}


def test_one_picture_is_drawn_by_its_name(basins):
    alone, among = (
        plotting.figure(basins, "lifetimes"),
        dict(plotting.pictures(basins, ["lifetimes"]))["lifetimes"],
    )
    for one, other in zip(alone.axes[0].lines, among.axes[0].lines, strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
    given = plotting.pictures(basins, options={"lifetimes": {"ax": alone.axes[0]}})
    assert dict(given)["lifetimes"] is alone
    with pytest.raises(ValueError, match="name must be 'basins' or 'lifetimes'; got"):
        plotting.figure(basins, "shares")


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
