"""Bifurcation diagrams of maps of one's own: known places, their file, refusals."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from statmech_attn.dynamics import System
from statmech_attn.dynamics.continuation import diagram, DiagramPlan, Settings
from statmech_attn.dynamics.maps.catalogue import henon, logistic
from statmech_attn.storage import StorageError


EXACT = 1e-9  # Newton stops at corrections of 1e-10 of 1 + |u|, and |u| < 4
SETTINGS = Settings(first_step=0.02, largest_step=0.2)
SHORT = 2.4, 2.6


def plan(system=logistic, x=(0.6,), **changes):
    options = {
        "free": "r",
        "within": (0.5, 3.56),
        "doublings": 2,
        "settings": SETTINGS,
    } | changes
    return DiagramPlan(system, jnp.array(x), {"r": 2.5}, **options)


@pytest.fixture(scope="module")
def cycles():
    """Of periods 1, 2 and 4."""
    return plan().follow()


@pytest.fixture(scope="module")
def first_cycles():
    """Of periods 1 and 2, from where they meet the cycle at 0."""
    return plan(within=(0.9, 3.3), doublings=1).follow()


def test_the_data_set_has_cycles_of_the_map(first_cycles):
    found = first_cycles.to_dataset()
    assert found.branch_period.values.tolist() == [1, 2]
    assert found.branch_parent.values.tolist() == [-1, 1]
    for branch, period in enumerate(found.branch_period.values):
        here = found.isel(branch=branch, strobe_sample=slice(period))
        there = np.isfinite(here.r.values)
        x = here.strobe.values[there]
        after = logistic(x, {"r": here.r.values[there][:, None]})
        np.testing.assert_allclose(after, np.roll(x, -1, axis=1), atol=EXACT)
        slopes = here.r.values[there][:, None] * (1 - 2 * x)
        multiplier = here.multiplier_re.values[there, 0]
        # d(multiplier)/dx is at most r^p 2 p < 4^5 p, of an x that is known to EXACT
        np.testing.assert_allclose(multiplier, slopes.prod(axis=1), atol=4e3 * EXACT)
    assert found.special_r.attrs["long_name"] == "special point: r"
    assert found.attrs["system"] == "logistic"


@pytest.mark.slow
def test_memory_result_and_file_hold_the_same_bits(cycles, tmp_path, monkeypatch):
    in_memory, file = plan().compute(), plan().run(tmp_path / "cycles.h5")
    xr.testing.assert_identical(in_memory, cycles.to_dataset())
    for name in in_memory.variables:
        np.testing.assert_array_equal(file[name].values, in_memory[name].values)
        assert file[name].dims == in_memory[name].dims
    monkeypatch.setattr(DiagramPlan, "follow", None)  # nothing is computed again
    again = plan().run(tmp_path / "cycles.h5")
    np.testing.assert_array_equal(again.strobe.values, file.strobe.values)


def test_the_same_call_goes_on_where_another_one_ended(tmp_path, monkeypatch):
    def lost(self, tick):
        tick(1.0)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(DiagramPlan, "follow", lost)
        with pytest.raises(MemoryError):
            plan(within=SHORT).run(tmp_path / "cycles.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["cycles.h5.chunks"]
    file, expected = plan(within=SHORT).run(tmp_path / "cycles.h5"), plan(within=SHORT)
    np.testing.assert_array_equal(file.state, expected.compute().state)
    assert [path.name for path in tmp_path.iterdir()] == ["cycles.h5"]


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    path = tmp_path_factory.mktemp("short") / "cycles.h5"
    plan(within=SHORT).run(path)
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"within": (2.4, 2.7)},
        {"doublings": 1},
        {"settings": dataclasses.replace(SETTINGS, tolerance=1e-9)},
        {"system": lambda x, p: p["r"] * x * (1 - x) + 0.0},
        {"system": System(logistic, display=lambda x, p: 1 - x)},
        {"x": (0.61,)},
    ],
)
def test_the_file_of_another_diagram_is_refused(changes, short):
    with pytest.raises(StorageError, match="cycles.h5"):
        plan(**({"within": SHORT} | changes)).run(short)


@pytest.mark.slow
def test_curves_of_henons_bifurcations_are_parabolas():
    found = diagram(
        henon,
        jnp.array([0.8, 0.2]),
        {"a": 0.1, "b": 0.3},
        free="a",
        within=(-0.3, 0.5),
        second="b",
        second_within=(0.1, 0.5),
        settings=SETTINGS,
    )
    factor = {"fold": -0.25, "period_doubling": 0.75}
    assert sorted(curve.kind for curve in found.curves) == sorted(factor)
    for curve in found.curves:
        a, b = np.array([point.values for point in curve.points]).T
        np.testing.assert_allclose(a, factor[curve.kind] * (1 - b) ** 2, atol=EXACT)
        assert 0.1 <= b.min() < 0.3 < b.max() <= 0.5
    dataset = found.to_dataset()
    assert dataset.sizes["curve"] == 2 and dataset.attrs["second"] == "b"
    assert float(dataset.b) == 0.3 and "a" not in dataset.coords


@pytest.mark.slow
def test_periods_of_a_drive_are_counted_in_steps():
    def step(state, p):
        r = p["r"] + jnp.where(state["t"] % 2 == 0, 0.2, -0.2)
        x = state["x"]
        return {"x": r * x * (1 - x), "t": state["t"] + 1}

    driven = System(step, drive_period=2, unit="season")
    start = {"x": jnp.array([0.6]), "t": jnp.array(0)}
    found = diagram(
        driven, start, {"r": 2.5}, free="r", within=(2.4, 3.4), doublings=1
    ).to_dataset()
    assert found.branch_period.values.tolist() == [2, 4]
    assert found.branch_period.attrs["unit_name"] == "season"
    assert found.attrs["clock_period"] == 2
    r, x = found.r.values, found.strobe.values
    np.testing.assert_array_equal(x[..., 0], found.state.values[..., 0])
    middle = (r + 0.2)[..., None] * x * (1 - x)
    after = (r - 0.2)[..., None] * middle * (1 - middle)
    np.testing.assert_allclose(after[0, :, 0], x[0, :, 0], atol=EXACT)
    np.testing.assert_allclose(after[1], x[1, :, ::-1], atol=EXACT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"free": "q"}, r"free and second must be of \['r'\]; got 'q'"),
        ({"second": "q"}, r"free and second must be of \['r'\]; got 'q'"),
        ({"second": "r"}, "second must not be r, which is free"),
        ({"within": (3.0, 4.0)}, "interval of r must be finite and contain r = 2.5"),
        ({"within": (2.0, np.inf)}, "interval of r must be finite"),
        ({"period": 2}, "the cycle at r = 2.5 has 1 drive periods; got 2"),
        ({"x": (-1e6,)}, "no cycle of 1 drive periods near the state at r = 2.5"),
    ],
)
def test_impossible_diagrams_are_refused_in_one_line(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        plan(**changes).follow()
    assert "\n" not in str(caught.value)


def test_a_state_may_be_a_number():
    found = diagram(logistic, 0.6, {"r": 2.9}, free="r", within=(2.9, 3.1))
    assert [s.value for s in found.special] == [pytest.approx(3.0, abs=EXACT)]


def test_a_diagram_is_printed_with_its_bifurcations(first_cycles):
    lines = repr(first_cycles).splitlines()
    assert lines[0] == "BifurcationDiagram"
    assert lines[1].split()[-2:] == ["1,", "2"]
    assert "transcritical, period_doubling" in lines[2] and "1, 3" in lines[3]
