r"""Branches of cycles with bifurcations (docs/theory/continuation.md, sections 2-3).

`Branch` drives the continuation of one cycle of period k in one parameter: an iterator
over points that user code can stop at any time, through folds, along stable and
unstable cycles.  What it has found so far is its `solution`.
"""

from collections.abc import Iterator

import equinox as eqx
import numpy as np
from jaxtyping import ArrayLike, Bool, Complex, Float, PyTree

from statmech_attn.dynamics.continuation.arclength import (
    Curve,
    follow,
    Point,
    Settings,
)
from statmech_attn.dynamics.continuation.cycles import coordinates, multipliers
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import LEFT_RANGE, RESULTS
from statmech_attn.dynamics.continuation.special import events, SpecialPoint


class BranchPoint(eqx.Module):
    """One cycle of a branch; `tangent` and `arclength` are those of (x, value).

    `special` are the bifurcations met since the point before.
    """

    value: float
    x: Float[np.ndarray, " d"]
    multipliers: Complex[np.ndarray, " d"]
    tangent: Float[np.ndarray, " d+1"]
    arclength: float
    special: tuple[SpecialPoint, ...]

    @property
    def stable(self) -> bool:
        """All multipliers inside the unit circle."""
        return bool(np.all(np.abs(self.multipliers) < 1))


class Solution(eqx.Module):
    """A branch, point after point; `result` indexes `RESULTS`."""

    values: Float[np.ndarray, " n"]
    x: Float[np.ndarray, "n d"]
    multipliers: Complex[np.ndarray, "n d"]
    stable: Bool[np.ndarray, " n"]
    tangents: Float[np.ndarray, "n d+1"]
    arclength: Float[np.ndarray, " n"]
    special: tuple[SpecialPoint, ...]
    period: int
    free: str
    result: int

    @property
    def reason(self) -> str:
        """The result in a word."""
        return RESULTS[self.result]


class Branch(Iterator[BranchPoint]):
    """The driver of one branch; made by `follow_cycle`."""

    def __init__(self, problem: Problem, curve: Curve, within: tuple[float, float]):
        self.problem = problem
        self.points: list[BranchPoint] = []
        self._curve = curve
        self._within = within
        self._ended = False

    @property
    def result(self) -> int:
        """A code that indexes `RESULTS`; "unfinished" while there is more to come."""
        return self._curve.result

    @property
    def reason(self) -> str:
        """The result in a word."""
        return RESULTS[self.result]

    def __next__(self) -> BranchPoint:
        before = self._curve.points[-1] if self._curve.points else None
        point = next(self._curve, None) or self._edge()
        if point is None:
            raise StopIteration
        found = (
            () if before is None else events(self.problem, self._curve, before, point)
        )
        self.points.append(
            BranchPoint(
                value=float(point.u[-1]),
                x=point.u[:-1],
                multipliers=multipliers(point.jacobian),
                tangent=point.tangent,
                arclength=point.arclength,
                special=tuple(found),
            )
        )
        return self.points[-1]

    def _edge(self) -> Point | None:
        """The point at the end of the allowed range, once, where the branch leaves."""
        if self._ended or self.result != LEFT_RANGE or not self.points:
            return None
        self._ended = True
        last = self._curve.points[-1]
        edge = self._within[int(last.tangent[-1] > 0)]
        length = (edge - last.u[-1]) / last.tangent[-1]
        if abs(edge - last.u[-1]) < _padding(edge):
            return None
        across = np.append(np.zeros(last.u.size - 1), np.sign(last.tangent[-1]))
        guess = last.u + length * last.tangent
        return self._curve.onto(guess, across, last.arclength + length)

    def run(self) -> Solution:
        """Go on to the end."""
        for _ in self:
            pass
        return self.solution

    @property
    def solution(self) -> Solution:
        """What has been found so far."""
        d = self.problem.dimension
        stack = lambda values, *shape: np.array(list(values)).reshape(-1, *shape)
        return Solution(
            values=stack(p.value for p in self.points),
            x=stack((p.x for p in self.points), d),
            multipliers=stack((p.multipliers for p in self.points), d).astype(complex),
            stable=stack(p.stable for p in self.points).astype(bool),
            tangents=stack((p.tangent for p in self.points), d + 1),
            arclength=stack(p.arclength for p in self.points),
            special=tuple(s for p in self.points for s in p.special),
            period=int(self.problem.period),
            free=self.problem.free,
            result=self.result,
        )


def follow_cycle(
    problem: Problem,
    x: PyTree,
    value: float,
    *,
    direction: ArrayLike = 1,
    within: tuple[float, float] = (-np.inf, np.inf),
    settings: Settings | None = None,
    unit: float = 1.0,
) -> Branch:
    """Follow a cycle, stable or unstable, in the free parameter.

    Args:
        x: a state near the cycle, or its coordinates (d,).
        value: the free parameter there.
        direction: 1 or -1 for the parameter up or down at first, or a vector (d + 1,)
            of (x, value) along which to leave.
        within: allowed range of the parameter; the branch ends on its edge.
        unit: what counts as a unit of length in the parameter, beside 1 in x.

    Raises:
        ValueError: x of another size, or an empty range.

    Example:
        >>>         >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
        >>> found = follow_cycle(problem, jnp.array([0.6]), 2.5, within=(2, 3.2)).run()
        >>> [(s.kind, round(s.value, 9)) for s in found.special], found.reason
        ([('period_doubling', 3.0)], 'left_range')
    """
    low, high = within
    if not low < high:
        raise ValueError(f"within must be (low, high) with low < high; got {within}.")
    start = np.append(coordinates(problem, x), float(value))
    scales = np.append(np.ones(problem.dimension), unit)
    curve = follow(
        problem.residual,
        start,
        direction=direction,
        settings=settings,
        inside=lambda u: low - _padding(low) <= u[-1] <= high + _padding(high),
        scales=scales,
    )
    return Branch(problem, curve, within)


def _padding(edge: float) -> float:
    """What rounding may add to a parameter at the edge."""
    return 1e-12 * (1 + abs(edge)) if np.isfinite(edge) else 0.0
