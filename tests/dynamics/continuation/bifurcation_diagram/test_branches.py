"""Diagrams of cycles: closed branches once and whole, doublings level by level, curves.

The maps have closed forms or come back to known bifurcations from every start; places
are those of `locate`, at rounding.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import (
    CLOSED,
    find_cycle,
    NOT_CONVERGED,
    Problem,
    Settings,
)
from statmech_attn.dynamics.continuation.bifurcation_diagram.branches import (
    born_at,
    both_ways,
    is_halved,
    with_doublings,
)
from statmech_attn.dynamics.continuation.bifurcation_diagram.curves import curves_of


SETTINGS = Settings(first_step=0.02, largest_step=0.1)
EXACT = 1e-9
SILENT = lambda points: None


def circle(z, p):
    """The sine circle map at K = 1.6 on the unit circle of the plane."""
    angle = jnp.arctan2(z[1], z[0])
    angle = angle + 2 * jnp.pi * p["omega"] - 1.6 * jnp.sin(angle)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])


ISOLA = Problem(circle, jnp.zeros(2), {"omega": 0.32}, "omega", period=3)


def track_from(x, omega):
    return both_ways(ISOLA, jnp.asarray(x), omega, (0.2, 0.5), SETTINGS, SILENT)


@pytest.fixture(scope="module")
def isola():
    """The tongue 1/3 as one closed branch, started from a stable cycle."""
    x = ISOLA.with_period(3000).image(jnp.array([1.0, 0.1]), 0.32)
    return track_from(find_cycle(ISOLA, x, 0.32).x, 0.32)


@pytest.mark.slow
def test_the_bifurcations_of_a_closed_branch_do_not_depend_on_the_start(isola):
    known = sorted((s.kind, s.value) for s in isola.special)
    assert [kind for kind, _ in known] == ["fold"] * 2 + ["period_doubling"] * 2
    # Next to a bifurcation the last step, which closes the branch, may hold it.
    values = np.array([point.value for point in isola.points])
    near = [np.abs(values - value).argsort()[:3] for _, value in known]
    for start in np.unique(near):
        point = isola.points[start]
        again = track_from(point.x, point.value)
        assert again.results == (CLOSED,) * 2
        found = sorted((s.kind, s.value) for s in again.special)
        assert [kind for kind, _ in found] == [kind for kind, _ in known], point.value
        np.testing.assert_allclose(
            [value for _, value in found], [value for _, value in known], atol=EXACT
        )


@pytest.mark.slow
def test_a_closed_branch_ends_on_the_cycle_it_began_with(isola):
    first, last = isola.points[0], isola.points[-1]
    assert last.value == first.value
    orbit = [first.x, circle(first.x, {"omega": first.value})]
    orbit.append(circle(orbit[1], {"omega": first.value}))
    assert min(np.linalg.norm(x - last.x) for x in orbit) < EXACT
    np.testing.assert_allclose(
        np.sort_complex(last.multipliers), np.sort_complex(first.multipliers), atol=1e-7
    )
    length = [point.arclength for point in isola.points]
    assert (np.diff(length) > 0).all()


def hump(x, p):
    """The logistic map with r = 3.5 - p^2, whose doublings open and close again."""
    return (3.5 - p["p"] ** 2) * x * (1 - x)


@pytest.fixture(scope="module")
def bubbles():
    problem = Problem(hump, jnp.zeros(1), {"p": -0.9}, "p")
    within, x = (-0.9, 0.9), jnp.array([1 - 1 / (3.5 - 0.81)])
    first = both_ways(problem, x, -0.9, within, SETTINGS, SILENT)
    return list(with_doublings(first, 3, within, SETTINGS, SILENT))


@pytest.mark.slow
def test_branches_of_doubled_cycles_are_found_level_by_level(bubbles):
    assert [int(track.problem.period) for track in bubbles] == [1, 2, 4]
    assert [track.parent for track in bubbles] == [-1, 0, 2]
    # r = 3 and r = 1 + sqrt(6)
    outer, inner = np.sqrt(0.5), np.sqrt(2.5 - np.sqrt(6))
    exact = [
        [("period_doubling", outer)],
        [("period_halving", outer), ("period_doubling", inner)],
        [("period_halving", inner)],
    ]
    for track, kinds in zip(bubbles, exact, strict=True):
        found = [(s.kind, s.value) for s in track.special]
        for kind, place in kinds:
            same = sorted(value for name, value in found if name == kind)
            ends = [place] if kind == "period_halving" else [-place, place]
            np.testing.assert_allclose(np.abs(same), np.abs(ends), atol=EXACT)


@pytest.mark.slow
def test_a_doubled_branch_holds_cycles_of_its_full_period_alone(bubbles):
    for parent, track in zip(bubbles, bubbles[1:], strict=False):
        assert not any(is_halved(track.problem, point) for point in track.points[1:-1])
        point = parent.points[len(parent.points) // 2]
        assert is_halved(track.problem, point)


@pytest.mark.slow
def test_a_doubled_branch_that_is_lost_says_so_and_holds_no_old_cycles(bubbles):
    # In units of which x is a hundredth, steps are long enough to fall back on the old
    # branch; only the shortest ones come this near to the other doubling.
    small = lambda x, p: hump(100 * x, p) / 100
    problem = Problem(small, jnp.zeros(1), {"p": -0.9}, "p")
    doubling = bubbles[0].special[0]
    start = eqx.tree_at(lambda s: s.x, doubling, doubling.x / 100)
    doubled, points, result = born_at(problem, start, (-0.9, 0.9), SETTINGS, SILENT)
    assert result == NOT_CONVERGED and 0.702 < points[-1].value < 0.7072
    assert not any(is_halved(doubled, point) for point in points)


def cubic(x, p):
    return p["p"] + p["q"] * x - x**3


def lines_of(map, x, parameters, reach):
    """Curves of everything on the branch through x, in a square around the origin."""
    ends = (-reach, reach)
    problem = Problem(map, jnp.zeros(len(x)), parameters, "p")
    track = both_ways(problem, jnp.array(x), parameters["p"], ends, SETTINGS, SILENT)
    kinds = [special.kind for special in track.special]
    settings = dataclasses.replace(SETTINGS, max_points=400)
    return kinds, list(curves_of([track], "q", (ends, ends), settings, SILENT))


@pytest.mark.slow
def test_two_bifurcations_on_one_curve_give_one_curve():
    kinds, lines = lines_of(cubic, [-1.2], {"p": -0.828, "q": 1.75}, 2.5)
    assert sorted(kinds) == ["fold"] * 2 + ["period_doubling"] * 2
    assert sorted(line.kind for line in lines) == ["fold", "period_doubling"]
    found = {line.kind: [two.name for two in line.degenerate] for line in lines}
    assert found["fold"] == ["cusp"]
    assert found["period_doubling"] == ["generalized_flip"] * 2


def ring(x, p):
    """Multipliers -r and 1/2, r^2 = p^2 + q^2; c = (p - 3/10) |v|^4 at r = 1."""
    a, b = p["p"], p["q"]
    r = jnp.hypot(a, b)
    turn = jnp.array([[a, b], [b, -a]]) / r
    matrix = (0.5 - r) / 2 * jnp.eye(2) - (r + 0.5) / 2 * turn
    return matrix @ x + (a - 0.3) * (x @ x) * x


@pytest.mark.slow
def test_a_closed_curve_is_followed_once_from_one_of_its_points():
    kinds, lines = lines_of(ring, [0.0, 0.0], {"p": -1.5, "q": 0.3}, 1.8)
    assert kinds == ["period_doubling"] * 2
    (line,) = lines
    assert line.results == (CLOSED,) * 2
    p, q = np.array([point.values for point in line.points]).T
    turns = np.ptp(np.unwrap(np.arctan2(q, p))) / (2 * np.pi)
    assert turns == pytest.approx(1.0, abs=EXACT)
    assert [two.name for two in line.degenerate] == ["generalized_flip"] * 2
