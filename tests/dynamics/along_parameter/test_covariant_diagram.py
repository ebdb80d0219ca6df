"""Covariant vectors along a parameter."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import covariant_vectors, CovariantDiagram, point_list
from statmech_attn.dynamics.along_parameter.covariant_diagram import SHARES
from statmech_attn.dynamics.maps.catalogue import henon


STATE = jnp.array([0.1, 0.2])
WINDOW: dict[str, Any] = {"steps": 400, "transient": 400}


@pytest.fixture(scope="module")
def along_a():
    """A cycle, chaos, and orbits that diverge."""
    grid = {"a": [1.0, 1.4, 3.0], "b": 0.3}
    return CovariantDiagram(henon, STATE, grid, **WINDOW)


@pytest.fixture(scope="module")
def angles(along_a):
    return along_a.compute()


def test_a_value_has_the_numbers_of_its_orbit(angles):
    chaos = covariant_vectors(henon, STATE, {"a": 1.4, "b": 0.3}, **WINDOW)
    row = angles.sel(a=1.4)
    np.testing.assert_array_equal(row.covariant_exponent, chaos.exponents)
    np.testing.assert_array_equal(row.covariant_exponent_stderr, chaos.stderr)
    assert row.smallest_angle == chaos.angles.min() and row.split == 1
    for share, quantile in zip(SHARES, row.angle_quantile.values, strict=True):
        # Within one of the 400 angles.
        assert abs(np.mean(chaos.angles < quantile) - share) <= 1 / 400
    power = row.tangency_exponent, row.tangency_exponent_stderr
    assert power == chaos.tangency()


def test_a_cycle_has_exponents_and_no_angle(angles):
    cycle = angles.sel(a=1.0)
    assert cycle.split == 0 and (cycle.covariant_exponent < 0).all()
    # The map contracts areas by b at every step.
    assert float(cycle.covariant_exponent.sum()) == pytest.approx(np.log(0.3))
    assert np.isnan(cycle.smallest_angle) and np.isnan(cycle.angle_quantile).all()


def test_a_value_whose_orbit_diverges_has_no_numbers(angles):
    lost = angles.sel(a=3.0)
    assert np.isnan(lost.covariant_exponent).all() and lost.split == -1
    assert angles.failure.values.astype(bool).tolist() == [False, False, True]


def test_a_file_holds_what_is_computed_in_memory(along_a, angles, tmp_path):
    stored = along_a.run(tmp_path / "angles.h5")
    for name in ("covariant_exponent", "angle_quantile", "b"):
        np.testing.assert_array_equal(stored[name], angles[name])
    assert stored.b.attrs["long_name"] == "parameter b"


def test_a_list_of_points_stands_for_a_grid(angles):
    points = point_list({"a": [1.4, 1.0], "b": [0.3, 0.3]})
    listed = CovariantDiagram(henon, STATE, points, **WINDOW).compute()
    expected = angles.covariant_exponent.sel(a=[1.4, 1.0])
    np.testing.assert_array_equal(listed.covariant_exponent, expected)
    assert listed.a.values.tolist() == [1.4, 1.0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"grid": {"a": [1.0, 1.4], "b": [0.2, 0.3]}}, "one parameter with several"),
        ({"exponents": 3}, "exponents must lie in 1..2"),
        ({"split": 2}, "split must lie in 1..1"),
        ({"steps": 0}, "steps"),
        ({"transient": -1}, "transient"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(changes, words):
    options: dict[str, Any] = {"grid": {"a": [1.0, 1.4], "b": 0.3}} | WINDOW | changes
    with pytest.raises(ValueError, match=words):
        CovariantDiagram(henon, STATE, **options)
