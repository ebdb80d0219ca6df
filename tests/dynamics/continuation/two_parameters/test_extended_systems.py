"""Critical curves of long cycles, against closed forms and branches elsewhere."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import (
    at_point,
    critical_curve,
    follow_cycle,
    Problem,
    Settings,
)


def horseshoe(z, p):
    return jnp.stack([p["a"] - z[0] ** 2 + p["b"] * z[1], z[0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "points", "place"),
    (
        ("fold", [-0.35, -0.35], lambda b: -((1 - b) ** 2) / 4),
        ("period_doubling", [1.09, -0.39], lambda b: (1 - b) ** 2 + (1 + b) ** 2 / 4),
    ),
)
def test_curves_of_henons_map_are_closed_forms(kind, points, place):
    """The first fold, and the doubling of the cycle of two; errors of rounding."""
    k, start = len(points), place(0.3) + 0.01
    problem = Problem(
        horseshoe, jnp.zeros(2), {"a": start, "b": 0.3}, "a", k, segments=k
    )
    curve = critical_curve(
        problem,
        np.stack([points, np.roll(points, 1)], axis=1),
        start,
        kind=kind,
        second="b",
        inside=lambda a, b: b < 0.5,
        settings=Settings(0.05),
    )
    a, b = np.array([point.values for point in curve]).T
    assert len(a) > 2 and np.abs(a - place(b)).max() < 1e-14
    dataset = curve.to_dataset()
    assert (dataset.b == b).all() and dataset.x.shape[1:] == (k, 2)
    angle = 0.0 if kind == "fold" else np.pi
    assert all(p.logarithms.angles[0] == angle for p in curve.points)
    assert max(abs(p.logarithms.moduli[0]) for p in curve.points) < 1e-13


def falling(period, b):
    """A branch of Henon's map from its signs at a = 6 down to the first fold."""
    problem = Problem(horseshoe, jnp.zeros(2), {"a": 6.0, "b": b}, "a", period, period)
    x = np.random.default_rng(1).choice([-1.0, 1.0], period) * np.sqrt(6)
    settings = Settings(0.1, largest_step=0.3)
    start = np.stack([x, np.roll(x, 1)], axis=1)
    branch = follow_cycle(
        problem, start, 6.0, direction=-1, within=(1, 7), settings=settings
    )
    next(cycle for cycle in branch if cycle.special)
    return branch


@pytest.mark.slow
def test_a_fold_of_sixty_points_is_that_of_branches_at_other_values():
    """The large multiplier changes its sign there: past -1 and 1 within 1e-10 of a."""
    branch = falling(60, 0.3)
    fold, doubling = sorted(branch.solution.special, key=lambda special: special.kind)
    assert [fold.kind, doubling.kind] == ["fold", "period_doubling"]
    assert abs(fold.value - doubling.value) < 1e-10
    curve = critical_curve(
        branch.problem,
        fold.x,
        fold.value,
        kind="fold",
        second="b",
        inside=lambda a, b: b < 0.303,
    )
    assert len(list(curve)) > 1
    start = at_point(branch.problem, curve.to_dataset(), 1)
    b = float(start.problem.parameters["b"])
    assert b > 0.302 and start.x.shape == (60, 2)
    others = [special.value for special in falling(60, b).solution.special]
    assert np.abs(np.array(others) - start.value).max() < 1e-10
    there = [
        follow_cycle(
            *start[:3], direction=way * start.direction, settings=Settings(max_points=4)
        ).run()
        for way in (1, -1)
    ]
    values = np.array([branch.values for branch in there])
    assert values.shape == (2, 4) and values.min() > start.value - 1e-12


def test_what_is_no_critical_curve_is_refused():
    problem = Problem(horseshoe, jnp.zeros(2), {"a": 0.3, "b": 0.3}, "a", 2, segments=2)
    orbit = jnp.full((2, 2), 0.35)
    with pytest.raises(ValueError, match="kind must be one of fold, period_doubling"):
        critical_curve(problem, orbit, 0.3, kind="neimark_sacker", second="b")
    with pytest.raises(ValueError, match=r"second must be one of \['b'\]; got 'a'"):
        critical_curve(problem, orbit, 0.3, kind="fold", second="a")
