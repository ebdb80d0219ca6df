r"""Branches of cycles with bifurcations (docs/theory/continuation.md, sections 2-3).

`Branch` drives the continuation of one cycle of period k in one parameter: an iterator
over points that user code can stop at any time, through folds, along stable and
unstable cycles.  What it has found so far is its `solution`.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import numpy as np
import xarray as xr
from jaxtyping import Bool, Complex, Float, PyTree
from scipy.optimize import brentq

from statmech_attn import presentation
from statmech_attn.dynamics.continuation.arclength import (
    Curve,
    follow,
    interpolate,
    LARGEST_TURN,
    place_on_step,
    Point,
)
from statmech_attn.dynamics.continuation.cycles import (
    first_guess,
    Logarithms,
    logarithms_shown,
    minimal_period,
    multipliers_of,
    points_shown,
)
from statmech_attn.dynamics.continuation.multiple_shooting import method_of
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import LEFT_RANGE, RESULTS
from statmech_attn.dynamics.continuation.special_points import (
    events,
    point_at,
    SpecialPoint,
)
from statmech_attn.dynamics.options import Settings
from statmech_attn.labels import Variable
from statmech_attn.options import Interval, Numbers, Positive


HALVINGS = 12  # of the step on which a branch leaves its range


class BranchPoint(eqx.Module):
    """One cycle of a branch; `tangent` and `arclength` are those of (x, value).

    `special` are the bifurcations met since the point before.

    Attributes:
        value: of the free parameter.
        x: coordinates of a point of the cycle, or of those of all segments.
        multipliers: eigenvalues of the Jacobian of one period.
        tangent: unit tangent of the branch at (x, value).
        arclength: length of the branch up to this point.
        special: bifurcations met since the point before.
        logarithms: of the multipliers, of several segments; None of one.
    """

    value: float
    x: Float[np.ndarray, "*m d"]
    multipliers: Complex[np.ndarray, " d"]
    tangent: Float[np.ndarray, " n+1"]
    arclength: float
    special: tuple[SpecialPoint, ...]
    logarithms: Logarithms | None = None

    @property
    def stable(self) -> bool:
        """All multipliers inside the unit circle."""
        return bool(np.all(np.abs(self.multipliers) < 1))


class Solution(eqx.Module):
    """A branch, point after point; `result` indexes `RESULTS`.

    `period` is the number of iterates that was asked for, `smallest_period` the one
    after which the orbits do close (away from a `period_halving`).

    Attributes:
        values: of the free parameter, in the order in which the branch was followed.
        x: coordinates of a point of each cycle, or of those of all segments.
        multipliers: eigenvalues of the Jacobian of one period.
        stable: whether all multipliers lie inside the unit circle.
        tangents: unit tangents of the branch at (x, value).
        arclength: length of the branch up to each point.
        special: bifurcations on the branch.
        period: number of iterates that was asked for.
        smallest_period: number of iterates after which the orbits close.
        free: name of the free parameter.
        result: how the branch ended, index into `RESULTS`.
        logarithms: of the multipliers, of several segments; None of one.
    """

    values: Float[np.ndarray, " n"]
    x: Float[np.ndarray, "n *m d"]
    multipliers: Complex[np.ndarray, "n d"]
    stable: Bool[np.ndarray, " n"]
    tangents: Float[np.ndarray, "n d+1"]
    arclength: Float[np.ndarray, " n"]
    special: tuple[SpecialPoint, ...]
    period: int
    smallest_period: int
    free: str
    result: int
    logarithms: Logarithms | None = None

    @property
    def _shown(self):
        of = lambda read: lambda branch: np.array([read(s) for s in branch.special])
        form = lambda s: s.form.coefficient if s.form else np.nan
        turned = lambda s: (s.form.criticality if s.form else "") or "none"
        return (
            Variable("result", "", "result", flags=RESULTS),
            Variable("period", "", "iterates after which the orbit closes", symbol="k"),
            Variable(self.free, "point", f"parameter {self.free}", value="values"),
            Variable("stable", "point", "stable"),
            *points_shown("point", line=False),
            Variable(
                "multiplier",
                "point coordinate",
                "multipliers",
                symbol="μ",
                value="multipliers",
                line=False,
            ),
            *logarithms_shown("point"),
            Variable("arclength", "point", "arclength", symbol="s", line=False),
            Variable(
                "special_kind", "special", "bifurcations", value=of(lambda s: s.kind)
            ),
            Variable(
                f"special_{self.free}",
                "special",
                f"{self.free} of the bifurcations",
                value=of(lambda s: s.value),
                error="special_error",
            ),
            Variable(
                "special_coefficient",
                "special",
                "coefficients of their normal forms",
                value=of(form),
            ),
            Variable(
                "special_criticality", "special", "their criticality", value=of(turned)
            ),
        )

    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def special_error(self) -> np.ndarray:
        """Error of every special point: of the last Newton step and of rounding."""
        return np.array([special.error for special in self.special])

    @property
    def reason(self) -> str:
        """How the continuation ended, in a word."""
        return RESULTS[self.result]


class Branch(Iterator[BranchPoint]):
    """A branch of cycles in one parameter; made by `follow_cycle`.

    It ends where it first leaves its range, be that only to turn in a fold beyond.
    """

    def __init__(self, problem: Problem, curve: Curve, within: Interval):
        self.problem = problem
        self.points: list[BranchPoint] = []
        self._curve = curve
        self._within = within
        self._ended = False

    def __repr__(self) -> str:
        return f"Branch, so far:\n{self.solution!r}"

    def _repr_html_(self) -> str:
        return self.solution._repr_html_()

    def to_dataset(self) -> xr.Dataset:
        """What has been found so far."""
        return self.solution.to_dataset()

    @property
    def result(self) -> int:
        """A code that indexes `RESULTS`; "unfinished" while there is more to come."""
        return self._curve.result

    @property
    def reason(self) -> str:
        """How the continuation ended, in a word."""
        return RESULTS[self.result]

    def __next__(self) -> BranchPoint:
        before = self._curve.points[-1] if self._curve.points else None
        place = next(self._curve, None)
        point = self._read(before, place)
        out = lambda special: not in_range(special.value, *self._within)
        beyond = next(filter(out, point.special), None) if point else None
        if place is not None and beyond is not None:
            self._curve.leave(point_at(beyond, place))
        if point is None or beyond is not None:
            point = self._read(before, self._edge())
        if point is None:
            raise StopIteration
        self.points.append(point)
        return point

    def _read(self, before: Point | None, place: Point | None) -> BranchPoint | None:
        """The cycle at a point, with the special points since the one before."""
        if place is None:
            return None
        values, logarithms = multipliers_of(self.problem, place.u, place.jacobian)
        point = BranchPoint(
            value=float(place.u[-1]),
            x=place.u[:-1].reshape(self.problem.shape),
            multipliers=values,
            tangent=place.tangent,
            arclength=place.arclength,
            special=(),
            logarithms=logarithms,
        )
        if before is None:
            return point
        ends = [p.logarithms for p in (*self.points[-1:], point)]
        found = events(self.problem, self._curve, before, place, ends)
        return dataclasses.replace(point, special=tuple(found))

    def _edge(self) -> Point | None:
        """The point at the end of the allowed range, once, where the branch leaves."""
        outside = self._curve.outside
        if self._ended or self.result != LEFT_RANGE or outside is None:
            return None
        self._ended, last = True, self._curve.points[-1]
        edge = self._within[int(outside.u[-1] > self._within[1])]
        if abs(edge - last.u[-1]) < _padding(edge):
            return None
        return _crossing(self._curve, last, outside, edge)

    def run(self) -> Solution:
        """Follow the branch to its end."""
        for _ in self:
            pass
        return self.solution

    @property
    def solution(self) -> Solution:
        """What has been found so far."""
        d, points = self.problem.dimension, self._curve.points
        smallest = (minimal_period(self.problem, point.u) for point in points[:1])
        stack = lambda values, *shape: np.array(list(values)).reshape(-1, *shape)
        logarithms = [p.logarithms for p in self.points if p.logarithms]
        return Solution(
            values=stack(p.value for p in self.points),
            x=stack((p.x for p in self.points), *self.problem.shape),
            multipliers=stack((p.multipliers for p in self.points), d).astype(complex),
            stable=stack(p.stable for p in self.points).astype(bool),
            tangents=stack(
                (p.tangent for p in self.points), np.prod(self.problem.shape) + 1
            ),
            arclength=stack(p.arclength for p in self.points),
            special=tuple(s for p in self.points for s in p.special),
            period=int(self.problem.period),
            smallest_period=next(smallest, int(self.problem.period)),
            free=self.problem.free,
            result=self.result,
            logarithms=Logarithms(*map(np.stack, zip(*logarithms)))
            if logarithms
            else None,
        )


def follow_cycle(
    problem: Problem,
    x: PyTree,
    value: float,
    *,
    direction: Numbers = 1,
    within: Interval = (-np.inf, np.inf),
    settings: Settings | None = None,
    unit: Positive = 1.0,
) -> Branch:
    """Follow a cycle, stable or unstable, in the free parameter.

    Args:
        problem: the map, its parameters and the free one.
        x: a state near the cycle, or its coordinates (d,); or points of all segments,
            (m, d).
        value: the free parameter there.
        direction: 1 or -1 for the parameter up or down at first, or a vector (n + 1,)
            of (x, value) along which to leave.
        within: allowed range of the parameter; the branch ends on its edge.
        settings: step sizes, of root mean squares over points, and tolerances.
        unit: what counts as a unit of length in the parameter, beside 1 in x.

    Returns:
        A branch; `run()` computes it, and iterating over it gives one point after
        another.

    Raises:
        ValueError: x of another size, or a range that does not hold `value`.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
        >>> branch = follow_cycle(problem, jnp.array([0.6]), 2.5, within=(2, 3.2)).run()
        >>> [(s.kind, round(s.value, 9)) for s in branch.special], branch.reason
        ([('period_doubling', 3.0)], 'left_range')
    """
    if not in_range(value, *within) or not within[0] < within[1]:
        raise ValueError(
            "within must be (low, high) with low < high, and hold the value where the "
            f"branch starts; got {within} and {float(value):g}."
        )
    start, scales = first_guess(problem, x, value, unit)
    curve = follow(
        problem.residual,
        start,
        direction=direction,
        settings=settings,
        inside=lambda u: in_range(u[-1], *within),
        scales=scales,
        method=method_of(problem),
    )
    return Branch(problem, curve, within)


def _crossing(curve: Curve, a: Point, b: Point, edge: float) -> Point | None:
    """The point where the parameter passes `edge` between two; None if it is lost.

    Newton at the parameter's value may find another branch, as steps of the curve may:
    what it finds must pass for a step from a to b, or the step is halved.
    """
    across = np.append(np.zeros(a.u.size - 1), np.sign(b.u[-1] - edge))
    for _ in range(HALVINGS):
        short_of = lambda s: interpolate(a, b, s)[-1] - edge
        place: Any = brentq(short_of, 0, 1)
        guess = np.append(interpolate(a, b, place)[:-1], edge)
        arclength = a.arclength + place * (b.arclength - a.arclength)
        point = curve.onto(guess, across, arclength)
        if point is not None and _is_between(curve, a, b, point):
            return point
        middle = curve.between(a, b, 0.5)
        if middle is None:
            return None
        beyond = (middle.u[-1] - edge) * across[-1] > 0
        a, b = (a, middle) if beyond else (middle, b)
    return None


def _is_between(curve: Curve, a: Point, b: Point, candidate: Point) -> bool:
    """Whether a point lies on the step from a to b, and in the branch's direction."""
    turn = np.linalg.norm((candidate.tangent - a.tangent) / curve.scales)
    place = place_on_step(a, b, candidate.u, curve.scales)
    return place is not None and bool(turn < LARGEST_TURN)


def in_range(value: float, low: float, high: float) -> bool:
    return bool(low - _padding(low) <= value <= high + _padding(high))


def _padding(edge: float) -> float:
    """What rounding may add to a parameter at the edge."""
    return 1e-12 * (1 + abs(edge)) if np.isfinite(edge) else 0.0
