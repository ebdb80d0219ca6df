"""Basins on planes: labels of single orbits, refinement at borders, planes, clocks."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dynamics
from statmech_attn.dynamics import PlaneBasins, Search


SEARCH = Search(2000, record=64)


def newton(z):
    c = z[0] + 1j * z[1]
    c = c - (c**3 - 1) / (3 * c**2)
    return jnp.stack([c.real, c.imag])


def wells(z, p=None):
    """Two wells of the first of three coordinates, divided where it is zero."""
    return jnp.stack([1.5 * jnp.tanh(z[0]), z[1] / 2, z[2] / 3])


@pytest.fixture(scope="module")
def of_newton():
    x, y = np.linspace(-2, 2, 70) + 1e-3, np.linspace(-1.5, 1.5, 50)
    plane = PlaneBasins(newton, jnp.zeros(2), x, y, search=SEARCH)
    return plane, plane.compute()


def test_every_state_has_the_basin_of_its_orbit(of_newton):
    """The root that Newton's method ends at, in plain NumPy."""
    _, dataset = of_newton
    z = dataset.x.values + 1j * dataset.y.values[:, None]
    for _ in range(100):
        z = z - (z**3 - 1) / (3 * z**2)
    roots = dataset.points.values[:, 0] @ [1, 1j]
    assert roots**3 == pytest.approx(np.ones(3), abs=1e-12)
    assert (roots[dataset.basin.values] == pytest.approx(z, abs=1e-9)) is True
    count = np.bincount(dataset.basin.values.ravel())
    assert dataset.fraction.values == pytest.approx(count / 3500, rel=1e-14)
    assert dataset.basin.dims == ("y", "x")


def test_arrival_is_when_the_orbit_comes_near_for_good(of_newton):
    plane, dataset = of_newton
    for i, j in ((3, 5), (20, 40), (44, 61)):
        z = np.array([dataset.x.values[j], dataset.y.values[i]])
        k = int(dataset.basin[i, j])
        point = dataset.points.values[k, 0]
        orbit = [z := np.asarray(newton(z)) for _ in range(100)]
        near = abs(np.array(orbit) - point).max(axis=1) < plane.targets.reach[k]
        first = 1 + int(np.argmax(near))  # steps; looks are four apart
        assert int(dataset.arrival_time[i, j]) == first - 1 - (first - 1) % 4


def test_refined_at_borders_all_that_is_followed_is_the_same(of_newton):
    plane, whole = of_newton
    refined = PlaneBasins(
        newton, jnp.zeros(2), plane.x, plane.y, search=SEARCH, coarse=8
    ).compute()
    followed = refined.arrival_time.values >= 0
    assert followed.mean() < 0.75
    same = refined.basin.values == whole.basin.values
    assert same[followed].all()
    assert (refined.arrival_time.values == whole.arrival_time.values)[followed].all()
    assert same.mean() > 0.97
    inner = refined.basin.values[~followed]
    assert set(inner) <= {0, 1, 2}


def test_a_plane_may_lie_anywhere():
    """Along (1, 1, 0), (1, -2, 5) from (0.3, 7, 1): wells part at u + v = -0.3."""
    u, v = np.linspace(-1, 1, 9) + 0.01, np.linspace(-1, 1, 7) + 0.02
    along = [[1.0, 1.0, 0.0], [1.0, -2.0, 5.0]]
    state = jnp.array([0.3, 7.0, 1.0])
    dataset = PlaneBasins(wells, state, u, v, along=along, search=SEARCH).compute()
    right = u + v[:, None] > -0.3
    sides = dataset.points.values[dataset.basin.values, 0, 0] > 0
    assert (sides == right).all()
    assert "along" not in dataset.attrs


@pytest.mark.slow
def test_a_plane_may_lie_along_coordinates():
    u, v = np.linspace(-1, 1, 9) + 0.01, np.linspace(-1, 1, 7) + 0.02
    state = jnp.array([0.3, 7.0, 1.0])
    upright = PlaneBasins(wells, state, u, v, along=(2, 0), search=SEARCH).compute()
    sides = upright.points.values[upright.basin.values, 0, 0] > 0
    assert (sides == (v[:, None] > 0) | np.zeros(9, bool)).all()
    assert upright.attrs["along"].tolist() == [2, 0]


def test_clocks_parameters_and_states_that_diverge():
    """A driven map, whose clock all states share; starts beyond 3 leave it."""

    def step(state, p):
        x, clock = state["x"], state["clock"]
        kick = p["force"] * jnp.where(clock == 0, 1.0, -1.0)
        moved = jnp.where(jnp.abs(x[0]) > 3, x[0] ** 3, 1.5 * jnp.tanh(x[0] + kick))
        return {"x": jnp.stack([moved, x[1] / 2]), "clock": (clock + 1) % 2}

    system = dynamics.System(step, drive_period=2)
    state = {"x": jnp.zeros(2), "clock": jnp.array(0)}
    x, y = np.array([-4.0, -1.0, 1.0, 4.0]), np.array([-0.5, 0.5])
    dataset = PlaneBasins(
        system, state, x, y, parameters={"force": 0.1}, search=SEARCH
    ).compute()
    assert dataset.basin.values.tolist() == [[-2, 0, 1, -2], [-2, 0, 1, -2]]
    assert dataset.period.values.tolist() == [2, 2]
    assert dataset.arrival_time.values[0, 0] == -1
    with pytest.raises(ValueError, match="no attractor on which orbits stay"):
        PlaneBasins(
            system, state, [-4.0, 5.0], y, parameters={"force": 0.1}, search=SEARCH
        )


@pytest.mark.slow
def test_orbits_that_are_late_have_no_basin_and_chaos_has_one():
    """Henon's attractor; a horizon of two looks is too short to arrive."""
    henon = lambda z: jnp.stack([1 - 1.4 * z[0] ** 2 + z[1], 0.3 * z[0]])
    x, y = np.linspace(-0.5, 0.5, 12), np.array([0.0, 2.0])
    starts, search = np.zeros((8, 2)), Search(8000, record=256)
    starts[:, 0] = x[:8]
    attractors = dynamics.find_attractors(henon, starts, search=search)
    of = lambda search: PlaneBasins(
        henon, jnp.zeros(2), x, y, attractors=attractors, search=search
    )
    assert of(search).compute().basin.values.tolist() == [[0] * 12, [-2] * 12]
    late = of(Search(8, record=256)).compute()
    assert late.basin.values[0].tolist() == [-1] * 12
    assert (late.arrival_time.values == -1).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"along": (0, 3)}, r"coordinates are 0 to 2; got 3"),
        ({"along": (0,)}, "along must be two directions; got 1"),
        ({"along": np.eye(2)}, r"directions have 3 coordinates; got \(2,\)"),
        ({"coarse": 3}, "coarse must be a power of two up to 32; got 3"),
        ({"x": 1.0}, "x and y must be lists"),
    ],
)
def test_planes_that_make_no_sense_are_refused_in_a_line(changes, words):
    options = {"x": [0.5, 1.0], "y": [0.0]} | changes
    with pytest.raises(ValueError, match=words):
        PlaneBasins(wells, jnp.zeros(3), search=SEARCH, **options)
