"""Branches and curves that go on from files."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import storage
from statmech_attn.dynamics.continuation import (
    at_point,
    critical_curve,
    diagram,
    follow_cycle,
    Problem,
    Settings,
)
from statmech_attn.dynamics.maps.catalogue import logistic


SETTINGS = Settings(max_points=12)


def shifted_henon(z, p):
    return jnp.stack([p["a"] - z[0] ** 2 + p["b"] * z[1] + p["c"], z[0]])


def saved(tmp_path, branch):
    storage.write(tmp_path / "a.h5", branch.to_dataset(), study='kind = "branch"')
    return tmp_path / "a.h5"


def test_a_branch_goes_on_both_ways_from_its_file(tmp_path):
    """Beyond its last point to the doubling at 3, before its first one to 1.5."""
    problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
    branch = follow_cycle(problem, jnp.array([0.6]), 2.5, within=(2.5, 2.9)).run()
    file = saved(tmp_path, branch)
    last, first = at_point(problem, file), at_point(problem, file, 0)
    more = follow_cycle(*last[:3], direction=last.direction, within=(1.5, 3.1)).run()
    back = follow_cycle(*first[:3], direction=-first.direction, within=(1.5, 3)).run()
    assert more.values[0] == 2.9 and back.values[0] == 2.5 and back.values[-1] == 1.5
    assert [(s.kind, round(s.value, 9)) for s in more.special] == [
        ("period_doubling", 3.0)
    ]


@pytest.mark.slow
def test_a_curve_starts_at_any_point_of_a_curve():
    """Folds a + c = -(1 - b)^2 / 4: from b on one curve into c, and along a."""
    values = {"a": -0.1225, "b": 0.3, "c": 0.0}
    problem = Problem(shifted_henon, jnp.zeros(2), values, "a")
    fold = critical_curve(
        problem,
        jnp.full(2, -0.35),
        -0.1225,
        kind="fold",
        second="b",
        settings=SETTINGS,
    )
    list(fold)
    start = at_point(problem, fold.to_dataset(), 7)
    b = float(start.problem.parameters["b"])
    assert b > 0.3 and abs(start.value + (1 - b) ** 2 / 4) < 1e-9
    other = critical_curve(*start[:3], kind="fold", second="c", settings=SETTINGS)
    places = np.array([point.values for point in other])
    assert np.ptp(places[:, 1]) > 0.1
    assert np.abs(places.sum(axis=1) + (1 - b) ** 2 / 4).max() < 1e-9


@pytest.mark.slow
def test_one_branch_of_a_diagram_is_a_branch():
    found = diagram(
        logistic, jnp.array([0.6]), {"r": 2.5}, free="r", within=(2, 3.2), doublings=1
    )
    problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
    last = at_point(problem, found.to_dataset().isel(branch=0))
    assert last.value == 3.2 and abs(last.x[0] - (1 - 1 / 3.2)) < 1e-12


def test_what_holds_no_such_point_is_refused():
    problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
    branch = follow_cycle(problem, jnp.array([0.6]), 2.5, within=(2.5, 2.9)).run()
    dataset = branch.to_dataset()
    with pytest.raises(ValueError, match="point must be one of"):
        at_point(problem, dataset, 1000)
    with pytest.raises(ValueError, match="saved must hold cycles and r"):
        at_point(problem, dataset.drop_vars("r"))
