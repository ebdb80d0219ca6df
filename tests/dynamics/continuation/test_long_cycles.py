"""Cycles of up to a thousand points whose multipliers are known."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import rotation_number
from statmech_attn.dynamics.continuation import (
    find_cycle,
    find_long_cycle,
    follow_cycle,
    follow_long_cycle,
    Problem,
    Settings,
)
from statmech_attn.dynamics.maps.catalogue import delayed_logistic, henon, logistic


def circle_map(x, p):
    return x + p["omega"] - p["K"] / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * x)


def of_henon(period, a=6.0):
    """A cycle of Henon's map by its signs, from the limit of large a."""
    problem = Problem(horseshoe, jnp.zeros(2), {"a": a, "b": 0.3}, "a", period)
    x = np.random.default_rng(1).choice([-1.0, 1.0], period) * np.sqrt(a)
    return problem, np.stack([x, np.roll(x, 1)], axis=1)


def horseshoe(z, p):
    return jnp.stack([p["a"] - z[0] ** 2 + p["b"] * z[1], z[0]])


def full_cycle(period, numerator, away=0.0):
    """x = sin^2(pi angle) of logistic r = 4, angles doubled as exact fractions."""
    turn = 2**period - 1
    angles = [numerator * 2**i % turn / turn for i in range(period)]
    shifted = np.array(angles) + away * np.cos(np.arange(period))
    return np.sin(np.pi * shifted)[:, None] ** 2


@pytest.mark.slow
def test_a_thousand_points_of_the_logistic_map_at_its_end():
    """Every cycle of r = 4 has |mu| = 2^k: e^693, of which one point knows nothing."""
    k, numerator = 1000, 3**630
    problem = Problem(logistic, jnp.zeros(1), {"r": 4.0}, "r", period=k)
    exact, away = full_cycle(k, numerator), full_cycle(k, numerator, 1e-5)
    cycle = find_long_cycle(problem, away, 4.0)
    # Rounding of an image, a few eps, is that of its point over the slope.
    distance = np.abs(cycle.orbit - exact).max()
    assert cycle.converged and distance < 1e-14 / np.abs(1 - 2 * exact).min()
    assert abs(cycle.log_moduli[0] - k * np.log(2)) < 3 * cycle.error[0] < 1e-7
    sign = np.prod(np.sign(1 - 2 * exact))
    assert cycle.angles[0] == (0.0 if sign > 0 else np.pi)
    assert not find_cycle(problem, away[0], 4.0).converged


@pytest.mark.slow
def test_all_multipliers_of_a_thousand_points():
    """Henon's map shrinks areas by b: logarithms of both sum to k ln b."""
    problem, start = of_henon(1000)
    cycle = find_long_cycle(problem, start, 6.0)
    assert cycle.converged and cycle.log_moduli[0] > 1500
    assert abs(cycle.log_moduli.sum() - 1000 * np.log(0.3)) < 3 * cycle.error.sum()
    assert cycle.error.sum() < 1e-10


@pytest.mark.slow
def test_twenty_points_as_from_one():
    """Both find x to 1e-10; from one point |mu| = 2^20 has 2^20 times its rounding."""
    problem = Problem(logistic, jnp.zeros(1), {"r": 4.0}, "r", period=20)
    start = full_cycle(20, 3**12, 1e-9)
    long = find_long_cycle(problem, start, 4.0)
    one = find_cycle(problem, start[0], 4.0, Settings(tolerance=1e-14))
    assert one.converged and np.abs(one.x - long.orbit[0]).max() < 1e-10
    assert abs(np.log(np.abs(one.multipliers[0])) - long.log_moduli[0]) < 1e-7
    assert abs(long.log_moduli[0] - 20 * np.log(2)) < 3 * long.error[0] < 1e-8


def test_a_held_angle_finds_the_parameter_of_a_rotation_number():
    """55/89 of the circle map, whose tongue is narrower than rounding."""
    p, q = 55, 89
    problem = Problem(circle_map, jnp.zeros(1), {"omega": 0.0, "K": 0.8}, "omega", q)
    start = np.arange(q)[:, None] * p / q
    cycle = find_long_cycle(problem, start, p / q, shift=p, held=0)
    turns = rotation_number(
        circle_map, 0.0, {"omega": cycle.value, "K": 0.8}, steps=20_000
    )
    assert cycle.converged and abs(cycle.orbit[0, 0]) < 1e-30
    assert abs(float(turns.number) - p / q) < 1e-12
    slopes = 1 - 0.8 * np.cos(2 * np.pi * cycle.orbit)
    assert abs(np.log(slopes).sum() - cycle.log_moduli[0]) < 1e-11


@pytest.mark.slow
def test_folds_doublings_and_tori_are_located():
    """Closed forms, as branches of single points find them."""
    problem = Problem(logistic, jnp.zeros(1), {"r": 3.84}, "r", period=3)
    x = find_cycle(problem, jnp.array([0.5]), 3.84).x
    down = follow_long_cycle(problem, x, 3.84, direction=-1, within=(3, 3.86)).run()
    up = follow_long_cycle(problem, x, 3.84, within=(3, 3.86)).run()
    problem = Problem(delayed_logistic, jnp.zeros(2), {"a": 1.9}, "a")
    torus = follow_long_cycle(problem, np.full(2, 0.5), 1.9, within=(1, 2.1)).run()
    problem = Problem(henon, jnp.zeros(2), {"a": 0.6, "b": 0.3}, "a", period=2)
    doubled = follow_long_cycle(problem, np.array([1.0, -0.1]), 0.6, within=(0.5, 1))
    branches = down, up, torus, doubled.run()
    ((fold,), (_,), (circle,), (doubling,)) = [branch.special for branch in branches]
    assert [s.kind for branch in branches for s in branch.special] == [
        "fold",
        "period_doubling",
        "neimark_sacker",
        "period_doubling",
    ]
    places = [s.cycle.value for s in (fold, circle, doubling)]
    assert np.abs(np.array(places) - [1 + np.sqrt(8), 2, 0.9125]).max() < 1e-10
    assert abs(abs(circle.cycle.angles[0]) - np.pi / 3) < 1e-9
    assert [branch.points[-1].value for branch in branches] == [3.86, 3.86, 2.1, 1]


@pytest.mark.slow
def test_a_branch_that_one_point_loses_is_followed_by_all():
    """Period 100, |mu| from e^153; signs of points tell that it is the same cycle."""
    problem, start = of_henon(100)
    branch = follow_long_cycle(
        problem, start, 6.0, direction=-1, within=(4.5, 7), settings=Settings(0.1)
    ).run()
    assert branch.reason == "left_range" and not branch.special
    last = branch.points[-1]
    assert last.value == 4.5 and last.log_moduli[0] > 100
    assert (np.sign(last.orbit) == np.sign(start)).all()
    one = follow_cycle(problem, branch.points[0].orbit[0], 6.0, direction=-1).run()
    assert one.reason not in ("left_range", "max_points")
