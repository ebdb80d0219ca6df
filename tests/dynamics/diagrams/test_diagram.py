"""Diagrams of systems that are not the network, in memory and through files."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from statmech_attn import dmft, dynamics, studies
from statmech_attn.dynamics import diagram, diagrams, PHASES, System
from statmech_attn.dynamics.diagrams import Confirm, explain, Plan, WITHOUT_SECTION
from statmech_attn.dynamics.diagrams.work import GridWork
from statmech_attn.dynamics.maps.catalogue import henon
from statmech_attn.presentation import quantity
from statmech_attn.scan import jobs
from statmech_attn.scan.chunks.signals import Unfinished
from statmech_attn.storage import StorageError


PLAN = Plan(transient=1000, steps=2000, exponents=2, max_doublings=1)


def henon_diagram(plan=PLAN, **options):
    """Points with cycles of periods 1, 2 and 4, and chaos."""
    grid = {"a": [0.2, 0.4, 1.0, 1.4], "b": 0.3}
    return diagram(henon, grid, jnp.array([0.1, 0.1]), plan, **options)


@pytest.fixture(scope="module")
def in_memory():
    return henon_diagram()


def test_without_a_plan_a_map_of_one_coordinate_has_one_exponent(monkeypatch):
    uncomputed = lambda posed: SimpleNamespace(compute=lambda report: posed)
    monkeypatch.setattr(diagrams.diagram, "diagram_work", uncomputed)
    square = lambda x, p: p["a"] - x**2
    assert diagram(square, {"a": [0.2]}, jnp.array(0.1)).plan == Plan(
        exponents=1, **WITHOUT_SECTION
    )


def words(dataset):
    return [PHASES[int(code)] for code in dataset.phase.values.ravel()]


@pytest.mark.slow
def test_henon_map_goes_through_its_cascade(in_memory):
    assert words(in_memory) == ["fixed", "periodic", "periodic", "chaotic"]
    assert in_memory.period.values.tolist() == [1, 2, 4, 0]
    # The map contracts areas by b at every step.
    sums = in_memory.lyapunov.sum("exponent")
    np.testing.assert_allclose(sums, np.log(0.3), rtol=0, atol=1e-12)
    np.testing.assert_allclose(in_memory.sum_rule, 0, rtol=0, atol=1e-12)
    # The leading exponent at a = 1.4 is 0.419 (Sprott, 2003).
    chaos = in_memory.isel(a=3, exponent=0)
    assert abs(chaos.lyapunov - 0.419) < 4 * chaos.lyapunov_stderr
    # The fixed point of the first point, 0.2 x^2 + 0.7 x = 1, and its multipliers.
    x = (-0.7 + np.sqrt(0.49 + 0.8)) / 0.4
    np.testing.assert_allclose(in_memory.strobe[0], x, rtol=0, atol=1e-12)
    multipliers = np.sort(np.log(np.abs(np.roots([1, 0.4 * x, -0.3]))))[::-1]
    np.testing.assert_allclose(in_memory.lyapunov[0], multipliers, rtol=0, atol=1e-12)


def test_a_point_of_a_diagram_explains_its_phase_with_the_numbers_of_the_file(
    in_memory,
):
    fixed, cycle, chaos = (explain(in_memory, a=a) for a in (0.2, 0.99, 1.4))
    assert fixed.startswith("a = 0.2, fixed: the orbit recurs after 1 step, to ")
    assert cycle.startswith("a = 1 (nearest to 0.99), periodic: the orbit recurs ")
    assert "nat/step, of the cycle itself, is negative; decided in a window" in cycle
    assert f"lasted for {int(in_memory.horizon[2])} steps" in cycle
    value, error = in_memory.lyapunov[3, 0], in_memory.lyapunov_stderr[3, 0]
    assert f"λ_1 = {quantity(value, error)} nat/step is positive, " in chaos
    assert f"{float(value / error):.3g} standard errors" in chaos
    for values, words in (
        ({}, "takes a value of a; got none"),
        ({"c": 1.0}, "takes a value of a; got c"),
        ({"a": 2.0}, "a must lie in the scanned range, 0.2 to 1.4; got 2"),
    ):
        with pytest.raises(ValueError, match=words):
            explain(in_memory, **values)
    for left_out in ("phase", "reasons"):  # the latter of a scan that was thinned out
        with pytest.raises(ValueError, match="bifurcation or diagram, with exponents"):
            explain(in_memory.drop_vars(left_out), a=1.0)


def test_an_undecided_point_says_why_and_a_checked_one_what_it_was_put_to(in_memory):
    changed = in_memory.copy(deep=True)
    changed.phase[3], changed.reasons[3] = PHASES.index("undetermined"), 1 << 1
    changed.drift[3], changed.doubtful[3] = 7.5, 1
    changed["confirmed"] = ("a", np.full(4, 5, np.int8))
    changed.attrs |= {"confirm_starts": 8}
    told = explain(changed, a=1.4)
    assert "look like its beginning (by 7.5 standard errors)" in told
    assert "5 of 8 perturbed starts have the same phase" in told
    assert "doubtful, as other kinds of orbits" in told


@pytest.mark.slow
def test_a_cycle_that_looks_like_a_fixed_point_keeps_its_averages():
    """y -> y^3 - a y has the stable cycle +-sqrt(a - 1), whose square stands still.

    Newton's method for a fixed point goes to the unstable one at 0.
    """
    flip = System(lambda y, p: y**3 - p["a"] * y, observe=lambda y: y[None] ** 2)
    plan = Plan(transient=200, steps=512, exponents=1)
    scan = diagram(flip, {"a": [1.3]}, jnp.array(0.5), plan).isel(a=0, exponent=0)
    assert words(scan) == ["fixed"] and scan.lyapunov_source == 0
    assert scan.lyapunov == pytest.approx(np.log(0.4), abs=1e-9)


@pytest.mark.slow
def test_a_killed_diagram_goes_on_and_its_file_is_the_one_in_memory(
    in_memory, tmp_path, monkeypatch
):
    file = tmp_path / "henon.h5"

    def killed(*_):
        raise Unfinished("stopped", 130)

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_merge_once", killed)
        with pytest.raises(Unfinished):
            henon_diagram(file=file)
    assert not file.exists()
    # All chunks are there: none is computed again, nor is a file that is whole.
    monkeypatch.setattr(GridWork, "scan_compute", pytest.fail)
    for _ in range(2):
        xr.testing.assert_equal(henon_diagram(file=file), in_memory)
    with pytest.raises(StorageError, match="study"):
        henon_diagram(replace(PLAN, steps=2048), file=file)


LOGISTIC = Plan(200, 256, exponents=1, max_doublings=0, **WITHOUT_SECTION)


def logistic_diagram(file=None, plan=LOGISTIC):
    step = lambda x, p: p["r"] * x * (1 - x)
    grid = {"r": [2.5, 3.2, 4.0]}
    return diagram(step, grid, jnp.array(0.3), plan, confirm=Confirm(0), file=file)


def begun(file, patch):
    """Chunks of a diagram that was stopped before it was merged."""

    def killed(*_):
        raise Unfinished("stopped", 130)

    patch.setattr(jobs, "_merge_once", killed)
    with pytest.raises(Unfinished):
        logistic_diagram(file)
    return jobs.chunks_of(file) / jobs.MANIFEST


def test_a_map_that_llvm_cannot_take_is_computed_by_xla():
    pytest.importorskip("llvmlite", exc_type=ImportError)
    ordered = lambda x, p: jnp.sort(p["r"] * x * (1 - x))
    plan = replace(LOGISTIC, exponents=0)
    found = diagram(ordered, {"r": [2.5, 3.2]}, jnp.array([0.3, 0.4]), plan)
    assert found.attrs["compiler"] == "xla"
    assert found.attrs["compiler_reason"].endswith("it uses sort")
    with pytest.raises(ValueError, match='it uses sort; use "xla"'):
        plan = replace(plan, compiler="llvm")
        diagram(ordered, {"r": [2.5, 3.2]}, jnp.array([0.3, 0.4]), plan)


@pytest.mark.slow
def test_a_run_goes_on_with_the_compiler_that_it_was_begun_with(tmp_path, monkeypatch):
    """Begun without llvmlite, and with it; and before there was a choice."""
    pytest.importorskip("llvmlite", exc_type=ImportError)
    file = tmp_path / "without.h5"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "statmech_attn.native", None)
        begun(file, patch)
    found = logistic_diagram(file)
    assert found.attrs["compiler"] == "xla"
    assert found.attrs["compiler_reason"] == "llvmlite is not installed"
    by_name = logistic_diagram(plan=replace(LOGISTIC, compiler="xla"))
    xr.testing.assert_equal(found, by_name)

    file = tmp_path / "with.h5"
    with monkeypatch.context() as patch:
        begun(file, patch)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "statmech_attn.native", None)
        with pytest.raises(StorageError, match="cannot go on here: .* needs llvmlite"):
            logistic_diagram(file)
    assert logistic_diagram(file).attrs["compiler"] == "llvm"

    file = tmp_path / "before.h5"
    with monkeypatch.context() as patch:
        manifest = begun(file, patch)
    content = json.loads(manifest.read_text())
    del content["decisions"]
    manifest.write_text(json.dumps(content))
    assert logistic_diagram(file).attrs["compiler"] == "xla"


@pytest.mark.slow
def test_a_flow_of_two_dimensions_is_cut_where_it_crosses():
    """Van der Pol's oscillator: amplitude 2.0086 at mu = 1, near 2 for small mu."""
    field = lambda x, p: jnp.stack([x[1], p["mu"] * (1 - x[0] ** 2) * x[1] - x[0]])
    system = dynamics.flow(field, time=0.1, substeps=1)
    plan = replace(PLAN, section_tolerance=None)
    dataset = diagram(system, {"mu": [0.1, 1.0]}, jnp.array([1.0, 0.0]), plan)
    assert dataset.attrs["unit"] == "0.1 units of time"
    # v crosses 0 upward where x is least; |x''| < 2.1 there, linear between two steps.
    assert (dataset.section_count.values >= 25).all()
    amplitude = -dataset.section[:, :20].values
    np.testing.assert_allclose(amplitude[0], 2.0001, rtol=0, atol=2.1 * 0.1**2 / 8)
    np.testing.assert_allclose(amplitude[1], 2.0086, rtol=0, atol=2.1 * 0.1**2 / 8)
    # One exponent of a limit cycle is 0; the map over 0.1 turns on it.
    assert (np.abs(dataset.lyapunov_weighted[:, 0]) < 2e-5).all()


@pytest.mark.slow
def test_the_network_has_the_bits_of_its_study():
    parameters = {"beta": [1.2, 1.4, 1.5], "gamma": 120.0, "epsilon": 0.02}
    study = studies.parse(
        {
            "kind": "bifurcation",
            "network": {
                "patterns": "cycle",
                "n_patterns": 3,
                "n_bits": 6,
                "context": 2,
                "seed": 1,
            },
            "parameters": parameters,
            "run": {
                "transient": 40,
                "steps": 200,
                "exponents": 1,
                "max_doublings": 1,
                "section_samples": 8,
                "strobe_samples": 4,
                "start": "token",
            },
        }
    )
    planned = studies.work(study).diagram
    expected = studies.run(study)
    net = planned.system.step.net
    start = lambda p: dmft.from_row(net, dmft.parameters(**p), 0)
    dataset = diagram(planned.system, parameters, start, planned.plan)
    assert set(dataset.variables) == set(expected.variables)
    for name in expected.variables:
        np.testing.assert_array_equal(dataset[name], expected[name])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: diagram(henon, {"a": 1.0, "b": 0.3}, jnp.ones(2)), "one or two"),
        (
            lambda: diagram(henon, {"a": [1.0, 1.0]}, jnp.ones(2)),
            "a must hold distinct values",
        ),
        (
            lambda: diagram(henon, {"a": [np.nan]}, jnp.ones(2)),
            "a must be a finite number",
        ),
        (
            lambda: henon_diagram(replace(PLAN, exponents=3)),
            r"exponents must lie in 0..2",
        ),
        (lambda: henon_diagram(replace(PLAN, value=2)), r"value must lie in 0..1"),
        (lambda: henon_diagram(sweep="left"), 'sweep must be "up" or "down"'),
        (
            lambda: diagram(
                System(lambda x, p: p["r"] * x, drive_period=2),
                {"r": [0.1, 0.2]},
                jnp.ones(1),
                replace(PLAN, exponents=1),
            ),
            "needs a clock",
        ),
        (
            lambda: diagram(lambda x, p: x[:1], {"r": [0.1]}, jnp.ones(2)),
            "step must return a state like the one it takes",
        ),
    ],
)
def test_what_makes_no_sense_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
