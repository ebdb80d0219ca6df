"""Attractors along a parameter of a map of one's own, in memory and in files."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from statmech_attn.dynamics import (
    BasinDiagram,
    BasinPlan,
    find_attractors,
    PHASES,
    point_list,
    Search,
    System,
)


SEARCH = Search(6_000, record=128)
PLAN = BasinPlan(steps=500, points=32)
STARTS = np.linspace(-1.2, 1.3, 12)


def wells(x, p):
    """x + (x - x^3)/10 + c: beyond a fold the left of two fixed points is lost."""
    return p["a"] * x - p["b"] * x**3 + p["c"]


def growing(x, p):
    """Every start goes to 0 below c = 1, and to infinity above it."""
    return p["c"] * x


def diagram(system=wells, starts: Any = STARTS, values=(-0.02, 0.01, 0.05), **changes):
    grid = {"a": 1.1, "b": 0.1, "c": values}
    return BasinDiagram(
        system, starts, grid, **({"search": SEARCH, "plan": PLAN} | changes)
    )


@pytest.fixture(scope="module")
def basins():
    return diagram().compute()


@pytest.mark.slow
def test_every_value_has_the_attractors_that_are_found_there_alone(basins):
    for i, c in enumerate(basins.c.values):
        grid = {"a": 1.1, "b": 0.1, "c": c}
        alone = find_attractors(wells, STARTS, grid, search=SEARCH)
        here = basins.isel(c=i)
        present = here["count"].values > 0
        np.testing.assert_array_equal(here["count"].values[present], alone.counts)
        np.testing.assert_array_equal(here.period.values[present], alone.period)
        np.testing.assert_array_equal(here.label, alone.label)
        np.testing.assert_array_equal(here.lifetime, alone.orbits.lifetime)
        np.testing.assert_array_equal(here.fraction_high[present], alone.interval[1])
        np.testing.assert_array_equal(
            here.points.values[present, 0], alone.points[:, 0]
        )
    assert (basins["count"] > 0).sum("slot").values.tolist() == [2, 2, 1]
    assert basins.sizes["slot"] == 2  # of 12, one for each start


@pytest.mark.slow
def test_attractors_have_their_phase_and_exponents(basins):
    """A fixed point x has the multiplier 1.1 - 0.3 x^2."""
    present = basins["count"].values > 0
    assert {PHASES[i] for i in basins.phase.values[present]} == {"fixed"}
    x = basins.points.values[present, 0, 0]
    exact = np.log(1.1 - 0.3 * x**2)
    np.testing.assert_allclose(basins.lyapunov.values[present, 0], exact, rtol=1e-6)
    assert (basins.phase.values[~present] == -1).all()


@pytest.mark.slow
def test_memory_and_file_hold_the_same_bits_however_it_is_cut(basins, tmp_path):
    file = diagram().run(tmp_path / "basins.h5", points_per_chunk=1)
    for name in basins.variables:
        np.testing.assert_array_equal(file[name].values, basins[name].values)
        assert file[name].dims == basins[name].dims
    xr.testing.assert_identical(diagram().compute(), basins)


def from_a_function(factor=lambda params: 1.0):
    starts = lambda params, numbers: factor(params) * jnp.asarray(STARTS)[numbers]
    return diagram(starts=starts, count=len(STARTS))


def test_starts_may_be_a_function_of_points_and_numbers():
    """A file is known by the function, and by what it uses."""
    scaled = from_a_function(lambda params: params["c"])
    assert from_a_function().identity() != scaled.identity()


@pytest.mark.slow
def test_starts_of_a_function_end_where_the_same_starts_do(basins):
    xr.testing.assert_identical(from_a_function().compute(), basins)
    other = from_a_function(lambda params: params["c"]).compute()
    assert not other.lifetime.equals(basins.lifetime)


@pytest.mark.slow
def test_a_value_at_which_no_start_settles_is_empty_whatever_is_beside():
    """It had no numbers where all values of its batch were so, and else had them."""
    gone = diagram(growing, values=[1.5, 2.0]).compute()
    assert gone.count_diverged.values.tolist() == [12, 12]
    assert "failure" not in gone and (gone["count"] == 0).all()
    assert (gone.attractor == -1).all() and np.isnan(gone.points).all()
    beside = diagram(growing, values=[0.5, 2.0]).compute()
    for name in ("label", "lifetime", "count", "phase", "period"):
        np.testing.assert_array_equal(beside[name][1], gone[name][1])


@pytest.mark.slow
def test_states_of_a_driven_map_are_kept_at_one_phase_of_its_clock():
    """x' = c x + cos(2 pi t / 3): one cycle of three steps for every c < 1."""

    def step(state, p):
        x, clock = state
        return p["c"] * x + jnp.cos(2 * jnp.pi * clock / 3), (clock + 1) % 3

    system = System(step, drive_period=3, clock=lambda state: state[1], unit="hour")
    found = diagram(system, (STARTS, np.array(0)), values=[0.4, 0.5]).compute()
    assert found.period.values.tolist() == [[3], [3]]
    assert found.attrs["clock_period"] == 3 and found.attrs["unit"] == "hour"
    c = np.cos(2 * np.pi / 3)
    for a, states in zip((0.4, 0.5), found.states.values[:, 0], strict=True):
        fixed = (a**2 + a * c + c) / (1 - a**3)
        np.testing.assert_allclose(states, fixed, atol=1e-8)
    assert found.lifetime.attrs["units"] == "hour"


@pytest.mark.slow
def test_kept_states_go_round_a_cycle_from_its_last_point():
    logistic = lambda x, p: p["c"] * x * (1 - x)
    found = diagram(logistic, np.array([0.3, 0.4]), values=[3.5]).compute()
    assert found.n_points.values.tolist() == [[4]]
    cycle = found.points.values[0, 0, :4, 0]
    np.testing.assert_allclose(
        found.states.values[0, 0, :, 0], np.resize(np.roll(cycle, 1), 8), atol=1e-8
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"starts": lambda params, numbers: numbers}, "count must be given"),
        ({"starts": np.array(1.0)}, "starts must be arrays with the starts on"),
        ({"plan": BasinPlan(exponents=2)}, "exponents must lie in 0..1"),
        ({"system": lambda x, p: jnp.stack([x, x])}, "step must"),
        ({"values": 0.5}, "grid must hold one or two parameters with several values"),
    ],
)
def test_impossible_diagrams_are_one_clear_line(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        diagram(**changes)
    assert "\n" not in str(caught.value)


def test_a_second_parameter_with_several_values_is_refused():
    with pytest.raises(ValueError, match="one parameter with several values; got a an"):
        BasinDiagram(wells, STARTS, {"a": [0.0, 0.1], "b": [1.0, 2.0]})


def test_a_parameter_with_the_name_of_a_variable_is_refused():
    with pytest.raises(ValueError, match="must not have phase: files of basins have a"):
        BasinDiagram(wells, STARTS, {"a": [0.0, 0.1], "b": 1.0, "c": 0.0, "phase": 0.0})


def test_basins_along_another_list_are_of_another_identity():
    lists = ({"r": [0.9, 1.1], "h": [0.0, h]} for h in (0.0, 0.1))
    push = lambda x, p: p["r"] * x - x**3 + p["h"]
    one, other = (BasinDiagram(push, STARTS, point_list(x)) for x in lists)
    assert one.identity() != other.identity()
