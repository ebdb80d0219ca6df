"""Basins on planes along a parameter: numbers that go on, borders, files, refusals."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import basin_entropy, PlaneBasins, PlaneDiagram, Search
from statmech_attn.dynamics.plane_diagram import OF_BORDERS


SEARCH = Search(2000, record=64)
SIDE = np.linspace(-1, 1, 40)
TILTS = [-0.1, 0.1, 2.0]


def tilted(z, p):
    """Two wells, parted where x = 1.5 tanh x + h; beyond h = 1 all states diverge."""
    wells = 1.5 * jnp.tanh(z[0]) + p["h"]
    return jnp.stack([jnp.where(p["h"] > 1, 2 * z[0] + 9, wells), p["b"] * z[1]])


def diagram(**changes):
    options = {"grid": {"h": TILTS, "b": 0.5}, "search": SEARCH}
    options |= {"furthest": 0.25} | changes
    return PlaneDiagram(tilted, jnp.zeros(2), SIDE, options.pop("y", SIDE), **options)


@pytest.fixture(scope="module")
def of_tilts(tmp_path_factory):
    path = tmp_path_factory.mktemp("planes") / "planes.h5"
    return path, diagram().run(path)


@pytest.mark.slow
def test_a_basin_keeps_its_number_where_it_becomes_the_smaller_one(of_tilts):
    """Alone, every plane has its attractors in the order of their seeds."""
    _, planes = of_tilts
    for i, h in enumerate(TILTS[:2]):
        place = np.linspace(-1, 1, 20_001)
        parted = place[np.argmin(abs(place - 1.5 * np.tanh(place) - h))]
        right = SIDE > parted
        on = planes.basin.values[i][0]
        assert len({*on[right]}) == len({*on[~right]}) == 1
        assert (planes.basin.values[i] == on).all()
        k = on[-1]
        assert planes.fraction.values[i, k] == pytest.approx(right.mean(), rel=1e-14)
        point = planes.points.values[i, k, 0]
        assert point[0] == pytest.approx(1.5 * np.tanh(point[0]) + h, abs=1e-9)
    assert planes.basin.values[0, 0, -1] == planes.basin.values[1, 0, -1]
    alone = [
        PlaneBasins(
            tilted,
            jnp.zeros(2),
            SIDE,
            SIDE,
            parameters={"h": jnp.array(h), "b": 0.5},
            search=SEARCH,
        ).compute()
        for h in TILTS[:2]
    ]
    assert alone[0].basin.values[0, -1] != alone[1].basin.values[0, -1]
    assert planes.period.values[:2].tolist() == [[1, 1], [1, 1]]


def test_borders_are_those_of_each_plane_and_nothing_is_where_all_diverge(of_tilts):
    _, planes = of_tilts
    for i in range(2):
        entropy = basin_entropy(planes.basin.values[i])
        assert planes.basin_entropy.values[i] == entropy.entropy
        assert planes.border_entropy.values[i] == entropy.border
    # A straight line: states within a distance of it are proportional to it.
    assert np.allclose(planes.uncertainty_exponent[:2], 1, atol=1e-12)
    assert np.isnan([planes[name].values[2] for name in OF_BORDERS]).all()
    assert planes.failure.values.tolist() == [False, False, True]
    assert planes.period.values[2].tolist() == [-1, -1]
    assert float(planes.b) == 0.5 and planes.attrs["along"].tolist() == [0, 1]


@pytest.mark.slow
def test_a_file_goes_on_and_is_known_by_its_plane(of_tilts):
    path, planes = of_tilts
    before = path.stat().st_mtime_ns
    assert diagram().run(path).equals(planes)
    assert path.stat().st_mtime_ns == before
    with pytest.raises(OSError, match="overwrite"):
        diagram(coarse=2).run(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": SIDE[:8]}, "x and y must be lists of 32 values or more"),
        ({"box": 1}, r"box must lie in 2..32; got 1"),
        ({"grid": {"h": TILTS, "b": [0.1, 0.2]}}, "one parameter .* got h and b"),
    ],
)
def test_planes_that_make_no_sense_are_refused_in_a_line(changes, words):
    with pytest.raises(ValueError, match=words):
        diagram(**changes)
