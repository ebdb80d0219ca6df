"""Batches of starts have them on the first axis, as all batches that users give."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dynamics import (
    diagram,
    diagrams,
    escape_times,
    find_attractors,
    Search,
    settle,
    System,
)
from statmech_attn.dynamics.attractors.orbit_follower import Follower
from statmech_attn.dynamics.attractors.settled_orbits import follow_with
from statmech_attn.dynamics.maps.starts import start_of_each
from statmech_attn.dynamics.maps.systems import lane_axes


SEARCH = Search(2_000, record=64)
SHEAR = jnp.array([[0.5, 0.25], [0.0, 0.5]])


def doubled(z):
    """Places 1 and 2 in turns beside a sign that stays; (2,) and nothing else."""
    return jnp.stack([3 - z[0], z[1]])


def halved(x):
    return x / 2


def test_every_function_of_starts_counts_them_on_the_first_axis():
    starts = np.array([[1.0, 5.0], [2.0, 5.0], [1.0, -5.0]])
    orbits = settle(doubled, starts, search=SEARCH)
    assert orbits.state.shape == (3, 2)
    np.testing.assert_array_equal(orbits.state, starts)  # 64 n steps are even
    np.testing.assert_array_equal(orbits.take(np.array([2])).state, starts[2:])
    found = find_attractors(doubled, starts, search=SEARCH)
    assert found.label.tolist() == [0, 0, 1]
    again = settle(doubled, found.orbits.state, search=SEARCH)
    np.testing.assert_array_equal(again.points, orbits.points)
    leave = lambda z: jnp.stack([2 * z[0], z[1]])
    lifetime, _ = escape_times(leave, starts, lambda z: z[0] < 16, horizon=10)
    assert lifetime.tolist() == [4, 3, 4]


def test_a_square_of_starts_is_read_by_rows():
    orbits = settle(lambda z: SHEAR @ z, np.eye(2), search=Search(64, record=64))
    ends = np.linalg.matrix_power(np.asarray(SHEAR), 64)
    np.testing.assert_allclose(orbits.state, ends.T, rtol=1e-14)


def test_trees_of_starts_have_as_many_in_every_array():
    turn = lambda s: {"x": SHEAR @ s["x"], "y": s["y"] / 2}
    starts = {"x": np.ones((5, 2)), "y": np.ones(5)}
    state = settle(turn, starts, search=SEARCH).state
    assert {name: x.shape for name, x in state.items()} == {"x": (5, 2), "y": (5,)}


def test_parameters_are_of_all_starts_or_of_each():
    """x' = x/2 + b ends on 2 b."""
    step, starts = lambda x, b: x / 2 + b, np.zeros((3, 2))
    shared = find_attractors(step, starts, np.array([1.0, 2.0]), search=SEARCH)
    assert shared.counts.tolist() == [3]
    np.testing.assert_allclose(shared.points[0, 0], [2.0, 4.0], rtol=1e-8)
    each = np.arange(6.0).reshape(3, 2)
    orbits = settle(step, starts, each, search=SEARCH)
    np.testing.assert_allclose(orbits.points[:, 0], 2 * each, rtol=1e-8)
    follower = Follower(step, SEARCH, starts, each)
    few = follow_with(follower, starts[:2], each[:2])
    np.testing.assert_array_equal(few.points, orbits.points[:2])
    with pytest.raises(ValueError, match=r"each of the 3 starts .* float64\[2\]\.$"):
        settle(step, starts, np.zeros(2))
    lifetime, _ = escape_times(
        step, starts, lambda x: x[1] < 3, np.array([0.0, 2.0]), horizon=10
    )
    assert lifetime.tolist() == [2, 2, 2]  # 0, 2, 3


@pytest.mark.parametrize(
    "call",
    [
        lambda starts: find_attractors(doubled, starts),
        lambda starts: settle(doubled, starts),
        lambda starts: Follower(doubled, SEARCH, starts),
        lambda starts: escape_times(doubled, starts, lambda z: z[0] < 2, horizon=9),
    ],
    ids=["find_attractors", "settle", "Follower", "escape_times"],
)
def test_starts_on_the_last_axis_are_refused_with_the_shape_to_give(call):
    with pytest.raises(
        ValueError, match=r"for 7 starts give float64\[7, 2\]"
    ) as caught:
        call(np.ones((2, 7)))
    assert "counts the starts: 2 of float64[7];" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"starts: 7 of float64\[3\]\.\)$"):
        call(np.ones((7, 3)))


def test_arrays_of_unequal_length_that_agree_at_the_end_are_told_so():
    turn = lambda s: (SHEAR @ s[0], s[1] / 2)
    with pytest.raises(ValueError, match=r"give float64\[7, 2\], float64\[7\]\. One"):
        find_attractors(turn, (np.ones((2, 7)), np.ones(7)))


def test_few_starts_of_a_map_of_any_length_are_told_how_they_are_read():
    starts = np.full((2, 7), 0.5)
    with pytest.warns(UserWarning, match="read as 2 starts on the first axis") as said:
        found = find_attractors(halved, starts, search=SEARCH)
    assert found.counts.tolist() == [2] and found.points.shape[2] == 7
    assert "for 7 starts give float64[7, 2]" in str(said[0].message)
    with pytest.warns(UserWarning, match="read as 2 starts"):
        escape_times(halved, starts, lambda x: x[0] > 0.1, horizon=10)


@pytest.mark.slow
def test_nothing_is_said_where_there_is_one_reading_or_as_many_starts():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        several = find_attractors(halved, np.ones((7, 2)), search=SEARCH)
        settle(halved, np.ones(7), search=SEARCH)
        settle(doubled, np.ones((1, 2)), search=SEARCH)
        seven = System(halved, observe=lambda x: x.reshape(7))
        two = find_attractors(seven, np.ones((2, 7)), search=SEARCH)
    assert several.counts.tolist() == [7] and two.counts.tolist() == [2]


@pytest.fixture(scope="module")
def network():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=2)
    at = dmft.parameters(1.3, file.gamma, file.epsilon)
    return net, at, np.random.default_rng(0).uniform(-0.3, 0.3, (5, 2, 3))


@pytest.mark.slow
def test_states_of_the_network_are_made_by_vmap(network):
    """Each brings a clock; the network has one."""
    net, at, windows = network
    make = lambda window, clock: dmft.from_window(net, at, window, clock)
    starts = jax.vmap(make, (0, None))(windows, 0)
    orbits = settle(dmft.system(net), starts, at, search=SEARCH)
    assert orbits.state.attention.shape == windows.shape
    for i in (0, 4):
        one = jax.tree.map(lambda x, i=i: x[i : i + 1], starts)
        alone = settle(dmft.system(net), one, at, search=SEARCH)
        np.testing.assert_array_equal(
            alone.state.attention[0], orbits.state.attention[i]
        )
    with pytest.raises(ValueError, match=r"the same clock; got \[0, 1\]"):
        mixed = eqx.tree_at(lambda s: s.clock, starts, np.array([0, 0, 1, 0, 0]))
        settle(dmft.system(net), mixed, at, search=SEARCH)


PLAN = diagrams.Plan(transient=200, steps=500, exponents=0, max_doublings=0)


def test_a_diagram_starts_where_a_function_of_one_point_says():
    """x' = x + (x - x^3)/10 goes to the side on which it starts."""
    step = lambda x, p: x + 0.1 * (x - x**3) + 0 * p["side"]
    scan = diagram(step, {"side": [-0.3, 0.2, 0.4]}, lambda p: p["side"], PLAN)
    np.testing.assert_allclose(scan.strobe[:, 0], [-1, 1, 1], atol=1e-9)


@pytest.mark.parametrize("clock", [0, lambda p: (p["r"] > 0.2).astype(int)])
def test_whole_numbers_of_starts_are_shared_or_of_each_point(clock):
    """x' = r x + n mod 2: n goes on from 0, or from where the point says."""
    step = System(
        lambda s, p: (p["r"] * s[0] + s[1] % 2, s[1] + 1),
        lambda s: s[0],
        drive_period=2,
    )
    first = clock if callable(clock) else lambda p: clock
    params = {"r": np.array([0.1, 0.3])}
    x, n = start_of_each(lambda p: (p["r"], first(p)), params, np.arange(2))
    np.testing.assert_array_equal(x, params["r"])
    assert np.array_equal(n, [0, 1]) if callable(clock) else np.shape(n) == ()
    step.check((jnp.asarray(x), jnp.asarray(n)), params)


def test_a_start_that_jax_cannot_trace_is_refused_in_one_line():
    start = lambda p: np.full(2, float(p["r"]))
    with pytest.raises(ValueError, match="start must be a JAX function") as caught:
        diagram(lambda x, p: p["r"] * x, {"r": [0.1, 0.2]}, start, PLAN)
    assert "\n" not in str(caught.value)


def test_leaves_without_axes_are_shared_by_points():
    assert lane_axes({"x": jnp.zeros((2, 5)), "clock": jnp.array(0)}) == {
        "x": -1,
        "clock": None,
    }
