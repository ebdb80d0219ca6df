"""Branches of a bifurcation diagram: whole ones, and those born at their doublings.

`both_ways` follows a cycle to both ends of an interval, and a closed branch once;
`with_doublings` adds the branches of the doubled cycles, level by level.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np
from scipy.interpolate import CubicHermiteSpline

from statmech_attn.dynamics.continuation.branch_switching import switch
from statmech_attn.dynamics.continuation.branches import (
    Branch,
    BranchPoint,
    follow_cycle,
)
from statmech_attn.dynamics.continuation.cycles import find_cycle, iterated
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import (
    CLOSED,
    LEFT_RANGE,
    NOT_CONVERGED,
)
from statmech_attn.dynamics.continuation.special_points import SpecialPoint
from statmech_attn.dynamics.options import Settings
from statmech_attn.scan import Tick


SAME = 1e-6  # relative distance of points that are one
SAME_VALUE = 1e-9  # the same, of parameters
AMPLITUDE = 1e-3  # at which a doubled cycle is sought
SHRINK = (1.0, 0.2, 0.04)  # of amplitude and steps, one after another


class DiagramBranch(NamedTuple):
    """A branch of a diagram, its points along the arc.

    Attributes:
        problem: whose cycles they are.
        points: along the arc.
        special: bifurcations on it, likewise.
        results: why it ended before its first point and after its last one, as
            indices into `RESULTS`.
        parent: number of the special point on which it was born, -1 for the first one.
    """

    problem: Problem
    points: list[BranchPoint]
    special: list[SpecialPoint]
    results: tuple[int, int]
    parent: int


def counted(points: Iterable, tick: Tick) -> Iterator:
    """Points of a branch as they come, each reported to `tick`."""
    for point in points:
        tick(1.0)
        yield point


def both_ways(problem, x, value, within, settings, tick: Tick) -> DiagramBranch:
    """The branch through a cycle, from the lower end of the interval to the upper.

    A closed branch is followed once.
    """
    parts = {1: ([], LEFT_RANGE), -1: ([], LEFT_RANGE)}
    for direction, end in ((1, within[1]), (-1, within[0])):
        if value == end or parts[1][1] == CLOSED:
            continue
        branch = follow_cycle(
            problem,
            x,
            value,
            direction=direction,
            within=within,
            settings=settings,
            unit=within[1] - within[0],
        )
        parts[direction] = _until_it_repeats(counted(branch, tick), branch)
    (up, last), (down, first) = parts[1], parts[-1]
    if last == CLOSED:
        first = CLOSED
    points = [_backward(p) for p in down[::-1]] + (up[1:] if down else up)
    special = [_backward(s) for p in down[::-1] for s in p.special[::-1]]
    special += [s for p in up for s in p.special]
    return DiagramBranch(problem, points, special, (first, last), -1)


def _until_it_repeats(points: Iterable, branch: Branch):
    """Points of a branch, until it comes back to any point of its first cycle.

    An isola winds through all points of the cycle before the curve itself closes.
    """
    followed: list[BranchPoint] = []
    for point in points:
        closing = _passage(branch.problem, followed, point) if followed else None
        if closing is not None:
            return [*followed, closing], CLOSED
        followed.append(point)
    return followed, branch.result


def _passage(
    problem: Problem,
    points: list[BranchPoint],
    point: BranchPoint,
) -> BranchPoint | None:
    """Where the last step passes the first cycle, with the special points before.

    The parameter is monotone between special points, so that their order is exact.
    """
    first = points[0]
    nodes = [points[-1], *point.special, point]
    for number, (before, after) in enumerate(itertools.pairwise(nodes)):
        rise = after.value - before.value
        ahead = (first.value - before.value) * rise > 0
        passed = (after.value - first.value) * rise >= 0
        if not (ahead and passed and rise * first.tangent[-1] > 0):
            continue
        place, x = _crossing(before, after, first.value)
        cycle = find_cycle(problem, x, first.value)
        if cycle.converged and on_orbit(problem, cycle.x, first.x, first.value):
            length = after.arclength - before.arclength
            return BranchPoint(
                value=first.value,
                x=cycle.x,
                multipliers=cycle.multipliers,
                tangent=(1 - place) * before.tangent + place * after.tangent,
                arclength=before.arclength + place * length,
                special=point.special[:number],
            )
    return None


def _crossing(before, after, value: float):
    """Fraction of the arc at which a value is met, and x there, by Hermite's cubic."""
    length = max(after.arclength - before.arclength, 0.0)
    cubic = lambda a, b, slopes: CubicHermiteSpline(
        [0.0, 1.0], [a, b], length * np.array(slopes)
    )
    slopes = np.array([before.tangent, after.tangent])
    parameter = cubic(before.value, after.value, slopes[:, -1])
    inside = parameter.solve(value, extrapolate=False)
    place = float(inside[0]) if inside.size else 1.0
    return place, cubic(before.x, after.x, slopes[:, :-1])(place)


def on_orbit(problem: Problem, orbit, x, value: float) -> bool:
    """Whether a cycle through one point passes another."""
    for _ in range(int(problem.period)):
        if np.linalg.norm(orbit - x) < SAME * (1 + np.linalg.norm(x)):
            return True
        orbit = np.asarray(iterated(problem, orbit, np.asarray(value), np.asarray(1)))
    return False


def _backward(point):
    """A point of a branch that is traversed backwards, its length negative."""
    return eqx.tree_at(lambda p: p.arclength, point, -point.arclength)


def with_doublings(
    first: DiagramBranch, doublings: int, within, settings, tick: Tick
) -> Iterator[DiagramBranch]:
    """The first branch, then those born at its period doublings, level by level.

    A branch that joins two doublings is followed from one of them.
    """
    yield first
    level, total = [(first, 0)], len(first.special)
    for _ in range(doublings):
        born: list[tuple[DiagramBranch, int]] = []
        ends: list[float] = []
        for parent, offset in level:
            for number, special in enumerate(parent.special):
                if special.kind != "period_doubling":
                    continue
                if np.any(np.abs(np.array(ends) - special.value) < SAME_VALUE):
                    continue
                problem, points, result = born_at(
                    parent.problem, special, within, settings, tick
                )
                specials = [s for p in points for s in p.special]
                ends += [s.value for s in specials if s.kind == "period_halving"]
                codes = (CLOSED, result)
                branch = DiagramBranch(
                    problem, points, specials, codes, offset + number
                )
                born.append((branch, total))
                total += len(specials)
                yield branch
        level = born


def born_at(
    problem: Problem,
    special,
    within,
    settings: Settings,
    tick: Tick,
    shrinks: Sequence[float] = SHRINK,
):
    """The branch born at a doubling, to where it ends on one of half its period.

    Where the old branch is near, Newton may fall back on it: then the branch is left
    closer to the doubling, with smaller steps.  Returns its problem, its points and a
    code.
    """
    shrink, *closer = shrinks
    shorter = dataclasses.replace(
        settings,
        first_step=shrink * settings.first_step,
        smallest_step=shrink * settings.smallest_step,
        largest_step=shrink * settings.largest_step,
    )
    branch = switch(
        problem,
        special,
        amplitude=AMPLITUDE * shrink,
        within=within,
        settings=shorter,
        unit=within[1] - within[0],
    )
    orbits: list[BranchPoint] = []
    for point in counted(branch, tick):
        halving = any(s.kind == "period_halving" for s in point.special)
        if not halving and is_halved(branch.problem, point):
            if closer:
                return born_at(problem, special, within, settings, tick, closer)
            return branch.problem, orbits, NOT_CONVERGED
        orbits.append(point)
        if halving:
            return branch.problem, orbits, CLOSED
    return branch.problem, orbits, branch.result


def is_halved(problem: Problem, point: BranchPoint) -> bool:
    """Whether an orbit closes after half the period."""
    x, half = point.x, int(problem.period) // 2
    value = np.asarray(point.value)  # a number would be a constant of the program
    after = np.asarray(iterated(problem, x, value, np.asarray(half)))
    return bool(np.linalg.norm(after - x) < SAME * (1 + np.linalg.norm(x)))
