"""Edges of basins against maps whose edge states are known exactly."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dynamics
from statmech_attn.dynamics import track_edge
from statmech_attn.dynamics.attractors import edges


def cubic(x):
    return x + 0.1 * (x - x**3)


def well(x):
    """-1 until an orbit is in one of the two wells of the cubic map."""
    return jnp.where(jnp.abs(x[0]) > 0.9, (x[0] > 0).astype(int), -1)


def driven(x):
    """Wells beside a logistic map of r = 4: the edge is chaos, and repels faster."""
    return jnp.stack([3 * jnp.tanh(x[0]), 4 * x[1] * (1 - x[1])])


def deep(x):
    """-1 until an orbit is in one of the two wells of this map."""
    return jnp.where(jnp.abs(x[0]) > 2, (x[0] > 0).astype(int), -1)


def test_the_edge_state_of_two_wells_is_the_fixed_point_between_them():
    """Jumps are below `far`, and so is the distance from the exact edge x = 0."""
    edge = track_edge(
        driven, jnp.array([-0.7, 0.2]), jnp.array([1.2, 0.3]), label=deep, steps=4000
    )
    assert edge.result == edges.TRACKED
    assert edge.states.shape == (4000, 2) and edge.labels == (0, 1)
    assert np.abs(edge.states[:, 0]).max() < 2e-6
    assert edge.separation.max() < 1.01e-6
    assert abs(edge.exponents[0] - np.log(3)) < 1e-9
    assert abs(edge.exponents[1] - np.log(2)) < 4 * edge.stderr[1]
    assert edge.period == 0 and edge.kind == edges.IRREGULAR


@pytest.mark.slow
def test_the_edge_to_infinity_of_henons_map_is_its_saddle():
    henon = lambda z: jnp.stack([1 - 1.4 * z[0] ** 2 + z[1], 0.3 * z[0]])
    attractors = dynamics.find_attractors(henon, np.array([[0.1, 0.1], [0.2, 0.1]]))
    edge = track_edge(
        henon,
        jnp.array([0.1, 0.1]),
        jnp.array([-2.0, 0.1]),
        label=attractors,
        steps=200,
        transient=50,
    )
    x = (-0.7 - np.sqrt(0.49 + 4 * 1.4)) / 2.8
    multipliers = np.linalg.eigvals([[-2.8 * x, 1], [0.3, 0]])
    assert edge.labels == (0, -2) and edge.period == 1
    assert np.abs(edge.states - [x, 0.3 * x]).max() < 4e-6  # `far` of 1 + 1.13
    expected = np.sort(np.log(np.abs(multipliers)))[::-1]
    np.testing.assert_allclose(edge.exponents, expected, atol=1e-5)


@pytest.mark.slow
def test_an_edge_state_may_be_a_cycle():
    flip = lambda x: jnp.stack([cubic(x[0]), -1.2 * x[1] + 0.2 * x[1] ** 3])
    starts = jnp.array([[-0.5, 0.4], [0.8, 0.4]])
    edge = track_edge(flip, *starts, label=well)
    # y' = -y has y^2 = 1, of multiplier (-1.2 + 0.6)^2 over two steps.
    assert edge.period == 2 and edges.KINDS[edge.kind] == "periodic"
    assert np.abs(np.abs(edge.states[:, 1]) - 1).max() < 2e-6
    np.testing.assert_allclose(edge.exponents, np.log([1.1, 0.6]), atol=1e-6)


def test_states_of_one_label_are_refused_and_a_lost_edge_has_a_code():
    start = lambda x: jnp.array([x, 0.2])
    with pytest.raises(ValueError, match="must have different labels.*got 1 and 1"):
        track_edge(driven, start(0.5), start(0.7), label=deep)
    with pytest.raises(ValueError, match="got 1 and -1"):
        track_edge(driven, start(0.95), start(1e-4), label=deep, horizon=3)
    with pytest.raises(ValueError, match=r"near must lie in 1e-14\.\.far"):
        track_edge(driven, start(-1.0), start(1.0), label=deep, near=1e-3)
    with pytest.raises(ValueError, match="first must be a tree of finite real"):
        track_edge(driven, start(np.nan), start(1.2), label=deep)
    clock = lambda x: {"x": jnp.array([x]), "t": jnp.array(int(x > 0))}
    with pytest.raises(ValueError, match="one clock"):
        track_edge(lambda s: s, clock(-1.0), clock(1.0), label=lambda s: s["t"])
    # Nothing within 0.1 of the edge comes out of it within 10 steps.
    edge = track_edge(driven, start(-1.2), start(1.2), label=deep, horizon=10)
    assert edge.result == edges.UNDECIDED and "within the horizon" in repr(edge)
    assert edge.states.shape[0] == 0 and edge.exponents.size == 0


def test_sides_that_are_one_to_rounding_have_a_code():
    """Across the edge x = 0.3 distances grow by 1.1 a step, along it by 4 at most, and
    every cut divides both: the distance across comes down to floats' 6e-17."""
    slow = lambda x: jnp.stack([0.3 + 1.1 * (x[0] - 0.3), 4 * x[1] * (1 - x[1])])
    side = lambda x: jnp.where(jnp.abs(x[0] - 0.3) > 0.5, (x[0] > 0.3).astype(int), -1)
    sides = jnp.array([0.1, 0.2]), jnp.array([0.7, 0.21])
    edge = track_edge(slow, *sides, label=side, horizon=1000)
    assert edge.result == edges.ROUNDED and "one number to rounding" in repr(edge)


@pytest.mark.slow
def test_labels_that_are_no_basins_of_two_have_a_code():
    start = lambda x: jnp.array([x, 0.2])
    # Between the wells is a third one, of the label 2.
    third = lambda x: jnp.where(jnp.abs(x[0]) < 0.1, 2, deep(x))
    edge = track_edge(driven, start(-1.2), start(1.2), label=third, horizon=10)
    assert edge.result == edges.ANOTHER
    assert edge.states.shape[0] == 0 and edge.exponents.size == 0
    # Chaos on both sides: a label that is not that of a basin changes with the orbit.
    logistic = lambda x: 4 * x * (1 - x)
    parity = lambda x: jnp.where((x > 0.2) & (x < 0.8), -1, (x > 0.5).astype(int))
    lost = track_edge(logistic, jnp.array(0.1), jnp.array(0.9), label=parity)
    assert lost.result in (edges.LEFT, edges.UNDECIDED, edges.ROUNDED)


def test_an_edge_between_orbits_that_end_in_nan_is_lost():
    step = lambda x: jnp.where(x < 5, 2 * x, jnp.nan)
    side = lambda x: jnp.where(x > 1, 1, 0)
    edge = track_edge(step, jnp.array(0.1), jnp.array(2.0), label=side, transient=0)
    assert edge.result == edges.LEFT
