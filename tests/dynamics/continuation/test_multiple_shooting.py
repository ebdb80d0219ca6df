"""Cycles of several segments: their equations, and multipliers that are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import rotation_number
from statmech_attn.dynamics.continuation import (
    find_cycle,
    follow_cycle,
    Point,
    Problem,
    Settings,
)
from statmech_attn.dynamics.continuation.augmented_systems import Located
from statmech_attn.dynamics.continuation.multiple_shooting import (
    determinant,
    method_of,
    solve,
)
from statmech_attn.dynamics.continuation.normal_forms import normal_form
from statmech_attn.dynamics.maps.catalogue import delayed_logistic, henon, logistic


def whole(blocks):
    """The Jacobian (k d, k d + 1) that the blocks stand for."""
    k, d, _ = blocks.shape
    matrix = np.zeros((k * d, k * d + 1))
    for i, block in enumerate(blocks):
        rows, ahead = slice(i * d, (i + 1) * d), (i + 1) % k * d
        matrix[rows, rows] += block[:, :d]
        matrix[rows, ahead : ahead + d] -= np.eye(d)
        matrix[rows, -1] = block[:, d]
    return matrix


def test_solution_kernel_and_orientation_are_those_of_the_whole_matrix():
    """Backward stable: errors are condition times rounding; signs change together."""
    rng, signs, solved = np.random.default_rng(0), [], jax.jit(solve)
    map = Problem(lambda x, p: p["a"] * x, np.zeros(3), {"a": 1.0}, "a", 4, segments=4)
    for _ in range(60):  # factors change sign in few
        blocks = rng.standard_normal((4, 3, 4)) * np.array([30.0, 1.0, 0.01, 1.0])
        values = rng.standard_normal((4, 3))
        matrix = whole(blocks)
        solution, kernel, sign = (np.asarray(a) for a in solved(blocks, values))
        rounding = 1e-14 * np.linalg.cond(matrix) * np.linalg.norm(solution)
        assert np.linalg.norm(matrix @ solution - values.ravel()) < rounding
        assert np.linalg.norm(matrix @ kernel) < 1e-14 * np.linalg.norm(matrix)
        point = Point(kernel, kernel, blocks, 0.0, 0)
        assert method_of(map).orientation(point) == sign
        signs.append(sign * np.linalg.slogdet(np.vstack([matrix, kernel]))[0])
        for multiplier in 1.0, -1.0:
            closing = np.linalg.multi_dot(blocks[::-1, :, :3]) - multiplier * np.eye(3)
            assert determinant(blocks, multiplier) * np.linalg.det(closing) > 0
    assert len(set(signs)) == 1


def circle_map(x, p):
    return x + p["omega"] - p["K"] / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * x)


def of_henon(period, a=6.0):
    """A cycle of Henon's map by its signs, from the limit of large a."""
    problem = Problem(horseshoe, jnp.zeros(2), {"a": a, "b": 0.3}, "a", period, period)
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
    problem = Problem(logistic, jnp.zeros(1), {"r": 4.0}, "r", k, segments=k)
    exact, away = full_cycle(k, numerator), full_cycle(k, numerator, 1e-5)
    cycle = find_cycle(problem, away, 4.0)
    # Rounding of an image, a few eps, is that of its point over the slope.
    distance = np.abs(cycle.x - exact).max()
    assert cycle.converged and distance < 1e-14 / np.abs(1 - 2 * exact).min()
    assert (
        abs(cycle.logarithms.moduli[0] - k * np.log(2)) < 3 * cycle.logarithms.error[0]
    )
    assert cycle.logarithms.error[0] < 1e-7 / 3
    sign = np.prod(np.sign(1 - 2 * exact))
    assert cycle.logarithms.angles[0] == (0.0 if sign > 0 else np.pi)
    one = Problem(logistic, jnp.zeros(1), {"r": 4.0}, "r", k)
    assert not find_cycle(one, away[0], 4.0).converged


@pytest.mark.slow
def test_all_multipliers_of_a_thousand_points():
    """Henon's map shrinks areas by b: logarithms of both sum to k ln b."""
    problem, start = of_henon(1000)
    cycle = find_cycle(problem, start, 6.0)
    moduli, _, error = cycle.logarithms
    assert cycle.converged and moduli[0] > 1500
    assert abs(moduli.sum() - 1000 * np.log(0.3)) < 3 * error.sum() < 3e-10


@pytest.mark.slow
def test_twenty_points_as_from_one():
    """All find x to 1e-10; from one point |mu| = 2^20 has 2^20 times its rounding."""
    one, parts, every = (
        Problem(logistic, jnp.zeros(1), {"r": 4.0}, "r", 20, segments=m)
        for m in (1, 5, 20)
    )
    start = full_cycle(20, 3**12, 1e-9)
    long, some = find_cycle(every, start, 4.0), find_cycle(parts, start[::4], 4.0)
    one = find_cycle(one, start[0], 4.0, Settings(tolerance=1e-14))
    assert one.converged and np.abs(one.x - long.x[0]).max() < 1e-10
    assert some.converged and np.abs(some.x - long.x[::4]).max() < 1e-12
    for cycle in long, some:
        (modulus,), _, (error,) = cycle.logarithms
        assert abs(np.log(np.abs(one.multipliers[0])) - modulus) < 1e-7
        assert abs(modulus - 20 * np.log(2)) < 3 * error < 1e-8


def test_a_held_angle_finds_the_parameter_of_a_rotation_number():
    """55/89 of the circle map, whose tongue is narrower than rounding."""
    p, q = 55, 89
    values = {"omega": 0.0, "K": 0.8}
    problem = Problem(circle_map, jnp.zeros(1), values, "omega", q, q, shift=p)
    start = np.arange(q)[:, None] * p / q
    cycle = find_cycle(problem, start, p / q, held=0)
    turns = rotation_number(
        circle_map, 0.0, {"omega": cycle.value, "K": 0.8}, steps=20_000
    )
    assert cycle.converged and abs(cycle.x[0, 0]) < 1e-30
    assert abs(float(turns.number) - p / q) < 1e-12
    slopes = 1 - 0.8 * np.cos(2 * np.pi * cycle.x)
    assert abs(np.log(slopes).sum() - cycle.logarithms.moduli[0]) < 1e-11


@pytest.mark.slow
def test_folds_doublings_and_tori_are_located():
    """Closed forms, as branches of single points find them."""
    problem = Problem(logistic, jnp.zeros(1), {"r": 3.84}, "r", 3, segments=3)
    x = jnp.array([0.1494])
    down = follow_cycle(problem, x, 3.84, direction=-1, within=(3, 3.86)).run()
    up = follow_cycle(problem, x, 3.84, within=(3, 3.86)).run()
    problem = Problem(delayed_logistic, jnp.zeros(2), {"a": 1.9}, "a", 2, segments=2)
    torus = follow_cycle(problem, np.full(2, 0.5), 1.9, within=(1, 2.1)).run()
    problem = Problem(henon, jnp.zeros(2), {"a": 0.6, "b": 0.3}, "a", 2, segments=2)
    doubled = follow_cycle(problem, np.array([1.0, -0.1]), 0.6, within=(0.5, 1)).run()
    branches = down, up, torus, doubled
    ((fold,), (_,), (circle,), (doubling,)) = [branch.special for branch in branches]
    assert [s.kind for branch in branches for s in branch.special] == [
        "fold",
        "period_doubling",
        "neimark_sacker",
        "period_doubling",
    ]
    places = [s.value for s in (fold, circle, doubling)]
    assert np.abs(np.array(places) - [1 + np.sqrt(8), 2, 0.9125]).max() < 1e-10
    # The fixed point as a cycle of two: twice the angle of its multipliers.
    assert abs(abs(circle.logarithms.angles[0]) - 2 * np.pi / 3) < 1e-9
    assert [branch.values[-1] for branch in branches] == [3.86, 3.86, 2.1, 1]
    assert [branch.smallest_period for branch in branches] == [3, 3, 1, 2]


@pytest.mark.slow
def test_a_branch_that_one_point_loses_is_followed_by_all():
    """Period 100, |mu| from e^153; signs of points tell that it is the same cycle."""
    problem, start = of_henon(100)
    branch = follow_cycle(
        problem, start, 6.0, direction=-1, within=(4.5, 7), settings=Settings(0.1)
    ).run()
    assert branch.reason == "left_range" and not branch.special
    assert branch.values[-1] == 4.5 and branch.logarithms.moduli[-1, 0] > 100
    assert (np.sign(branch.x[-1]) == np.sign(start)).all()
    one = Problem(horseshoe, jnp.zeros(2), {"a": 6.0, "b": 0.3}, "a", 100)
    one = follow_cycle(one, branch.x[0, 0], 6.0, direction=-1).run()
    assert one.reason not in ("left_range", "max_points")


def test_what_segments_cannot_do_is_refused():
    posed = lambda **segments: Problem(
        logistic, jnp.zeros(1), {"r": 3.2}, "r", **segments
    )
    several = posed(period=2, segments=2)
    with pytest.raises(ValueError, match="segments must divide 6; got 4"):
        posed(period=6, segments=4)
    with pytest.raises(ValueError, match="shift must be .* zero of one segment; got 1"):
        posed(period=6, shift=1)
    with pytest.raises(ValueError, match="problem must have one segment; got 2"):
        normal_form(several, 1, Located(np.array([0.5, 0.8, 3.2]), np.pi, 0.0))
    assert several.with_parameters(r=3.3).segments == 2
