"""Curves of a bifurcation diagram: its special points in a second parameter."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from statmech_attn.dynamics.continuation.bifurcation_diagram.branches import (
    counted,
    DiagramBranch,
    on_orbit,
    SAME,
)
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import CLOSED
from statmech_attn.dynamics.continuation.special_points import SpecialPoint
from statmech_attn.dynamics.continuation.two_parameters.critical_curves import (
    CodimensionTwo,
    critical_curve,
    CriticalPoint,
)
from statmech_attn.dynamics.continuation.two_parameters.extended_systems import CRITICAL
from statmech_attn.dynamics.options import Settings
from statmech_attn.scan import Tick


class DiagramCurve(NamedTuple):
    """A curve of critical cycles in two parameters.

    Attributes:
        kind: of the bifurcation.
        origin: number of the special point from which it was followed.
        points: along the curve.
        degenerate: points of codimension two.
        unresolved: changes of sign that were not closed in on.
        results: why it ended before its first point and after its last one, as
            indices into `CURVE_RESULTS`.
    """

    kind: str
    origin: int
    points: list[CriticalPoint]
    degenerate: list[CodimensionTwo]
    unresolved: list[str]
    results: tuple[int, int]


def curves_of(
    branches: Sequence[DiagramBranch],
    second: str,
    ranges: tuple[tuple[float, float], tuple[float, float]],
    settings: Settings,
    tick: Tick,
) -> Iterator[DiagramCurve]:
    """Curves of all special points of one parameter that have one in two.

    A point that lies on the curve of an earlier one has no curve of its own.
    """
    curves: list[tuple[DiagramCurve, Problem]] = []
    specials = [(branch, special) for branch in branches for special in branch.special]
    for origin, (branch, special) in enumerate(specials):
        if special.kind not in CRITICAL:
            continue
        problem = branch.problem.with_period(special.period)
        if any(_on_curve(*curve, problem, special, second) for curve in curves):
            continue
        curve = _curve(problem, special, origin, second, ranges, settings, tick)
        curves.append((curve, problem))
        yield curve


def _curve(
    problem, special, origin, second, ranges, settings, tick: Tick
) -> DiagramCurve:
    """The curve through a special point, both ways; once where it is closed."""
    inside = lambda *point: all(
        low <= value <= high for value, (low, high) in zip(point, ranges)
    )
    follow = lambda direction: critical_curve(
        problem,
        special.x,
        special.value,
        kind=special.kind,
        second=second,
        direction=direction,
        inside=inside,
        settings=settings,
        scales=tuple(high - low for low, high in ranges),
    )
    down, up = follow(-1), follow(1)
    points = list(counted(down, tick))[::-1]
    closed = down.result == CLOSED
    if not closed:
        points += list(counted(up, tick))[1:]
    return DiagramCurve(
        special.kind,
        origin,
        points,
        down.codimension_two[::-1] + up.codimension_two,
        down.unresolved + up.unresolved,
        (down.result, CLOSED if closed else up.result),
    )


def _on_curve(
    curve: DiagramCurve,
    on: Problem,
    problem: Problem,
    special,
    second: str,
) -> bool:
    """Whether a special point is where a curve meets the held second value."""
    if curve.kind != special.kind or int(on.period) != int(problem.period):
        return False
    fixed = float(problem.parameters[second])
    for a, b in itertools.pairwise(curve.points):
        rise = b.values[1] - a.values[1]
        share = (fixed - a.values[1]) / rise if rise else -1.0
        if not 0 <= share <= 1:
            continue
        near = a.values + share * (b.values - a.values)
        x = a.state + share * (b.state - a.state)
        nearest = next(
            critical_curve(problem, x, near[0], kind=curve.kind, second=second),
            None,
        )
        if nearest is not None and _same_point(problem, nearest, special):
            return True
    return False


def _same_point(
    problem: Problem,
    point: CriticalPoint,
    special: SpecialPoint,
) -> bool:
    """Whether a critical cycle is that of a special point."""
    value = float(point.values[0])
    if abs(value - special.value) > SAME * (1 + abs(special.value)):
        return False
    return on_orbit(problem, point.state, special.x, value)
