"""Which attractor goes on as which along a parameter: pitchfork, doubling, fold."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from statmech_attn.dynamics import (
    BasinDiagram,
    BasinPlan,
    find_attractors,
    match_attractors,
    Search,
)
from statmech_attn.dynamics.along_parameter.attractor_matching import set_of_orbit


STARTS = np.array([-1.1, -0.6, -0.2, 0.3, 0.7, 1.2])
SEARCH = Search(6_000, record=128)
BY = pytest.mark.parametrize("by", ["flow", "distance"])


def along(step, starts, values, by, furthest=0.5):
    """Attractors along r of a map, in the order of the values."""
    plan = BasinPlan(steps=500, matching=by, furthest=furthest)
    basins = BasinDiagram(step, starts, {"r": values}, search=SEARCH, plan=plan)
    return basins.compute()


def numbers(basins):
    """Of the attractors of every value."""
    return [row[row >= 0].tolist() for row in basins.attractor.values]


@pytest.mark.slow
@BY
def test_through_a_pitchfork_one_branch_goes_on_and_the_other_is_new(by):
    """x' = r x - x^3: 0 until r = 1, then +-sqrt(r - 1), named as they were before."""
    step = lambda x, p: p["r"] * x - x**3
    basins = along(step, STARTS, [0.9, 1.1, 1.2, 1.3], by)
    assert [len(row) for row in numbers(basins)] == [1, 2, 2, 2]
    assert numbers(basins)[0] == [0] and sorted(numbers(basins)[1]) == [0, 1]
    x = basins.points.values[1:, :, 0, 0]
    side = [
        dict(zip(n, np.sign(row), strict=True))
        for n, row in zip(numbers(basins)[1:], x, strict=True)
    ]
    assert side[0] == side[1] == side[2]
    assert np.abs(x[-1]) == pytest.approx(np.sqrt(0.3))


@pytest.mark.slow
@BY
def test_a_doubled_cycle_is_the_same_attractor(by):
    step = lambda x, p: p["r"] * x * (1 - x)
    basins = along(step, np.linspace(0.1, 0.9, 6), [2.9, 3.1, 3.4, 3.5], by)
    assert basins.period.values.tolist() == [[1], [2], [2], [4]]
    assert numbers(basins) == [[0]] * 4


@pytest.mark.slow
@BY
def test_at_a_fold_the_attractor_that_ends_gives_its_name_to_nobody(by):
    """x' = x + 0.1 (r + x - x^3): the left one ends at r = 2/sqrt(27)."""
    step = lambda x, p: x + 0.1 * (p["r"] + x - x**3)
    basins = along(step, STARTS, [0.2, 0.35, 0.45, 0.6], by)
    assert [len(row) for row in numbers(basins)] == [2, 2, 1, 1]
    x = basins.points.values[:, :, 0, 0]
    right = [n[np.nanargmax(row)] for n, row in zip(numbers(basins), x, strict=True)]
    assert len(set(right)) == 1


@pytest.mark.slow
def test_flows_do_not_depend_on_the_order_of_the_values_in_the_file():
    step = lambda x, p: p["r"] * x - x**3
    diagram = BasinDiagram(
        step, STARTS, {"r": [0.9, 1.1, 1.2, 1.3]}, search=SEARCH, plan=BasinPlan(500)
    )
    in_order = diagram.compute()
    mixed = match_attractors(in_order.isel(r=[3, 0, 2, 1]), targets=diagram.targets)
    assert mixed.sortby("r").attractor.equals(in_order.attractor)


def test_how_far_attractors_may_move_is_part_of_the_extent_of_all_points():
    """At +-sqrt(r - 1), by hand, which are 2 sqrt(0.3) apart at most."""
    r = np.array([1.3, 1.1])
    places = (np.sqrt(r - 1)[:, None] * [-1, 1])[..., None, None]
    one = ("r", "slot"), np.ones((2, 2), int)
    points = ("r", "slot", "point", "coordinate"), places
    basins = xr.Dataset(
        {"count": one, "n_points": one, "points": points}, {"r": r}, {"kind": "basins"}
    )
    moved = (np.sqrt(0.3) - np.sqrt(0.1)) / (2 * np.sqrt(0.3))
    near, far = (match_attractors(basins, moved + d) for d in (-1e-6, 1e-6))
    assert near.attractor.values.max() == 3 and far.attractor.values.max() == 1
    assert far.attractor.values.tolist() == [[0, 1], [0, 1]]
    assert near.attractor.values.tolist() == [[2, 3], [0, 1]]  # in the order of r
    assert near.attrs["matching"] == "distance"


def test_what_is_no_file_of_basins_is_not_matched():
    basins = xr.Dataset(attrs={"kind": "basins"})
    with pytest.raises(ValueError, match="must be of kind 'basins'"):
        match_attractors(basins.assign_attrs(kind="bifurcation"))
    for furthest in (-1.0, 0.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="furthest must be"):
            match_attractors(basins, furthest)


@pytest.mark.parametrize("stored", [16, 64, 82])
def test_a_flow_arrives_on_a_cycle_of_which_some_points_are_stored(stored):
    """82 places around a circle, and the same cycle beside it or run twice."""
    angle = lambda k: 2 * jnp.pi * k / 82
    step = lambda z: jnp.stack([0.5 * z[0] + jnp.cos(angle(z[1])), (z[1] + 1) % 82])
    orbits = find_attractors(step, np.array([[0.1, 0.0]])).orbits
    points = orbits.set_of(0)
    here = points[np.linspace(0, 81, stored).astype(int)]
    beside = here + np.array([0.1, 0.0])
    arrives = lambda sets, *periods: set_of_orbit(orbits, 0, sets, np.array(periods))
    assert arrives([beside, here], 82, 82) == 1
    assert arrives([beside], 82) == -1
    assert arrives([here, here], 164, 82) == 1
