r"""Curves of fold, period-doubling and Neimark-Sacker points in two parameters.

The zeros of an extended system (`extended_systems`; docs/theory/two_parameters.md, 2)
are followed by pseudo-arclength.  Every point carries the normal-form coefficient and
the multipliers of its cycle; between points, changes of sign of the test functions
(`codimension_two`) are closed in on along the curve, and named.

    p_1     the free parameter of the problem             `values[0]`
    p_2     the second parameter                          `values[1]`
    rho     theta / 2 pi, turns per period of the cycle   `rotation_number`
"""

from collections.abc import Callable, Iterator

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Complex, Float, PyTree

from statmech_attn import presentation
from statmech_attn.dynamics.continuation.arclength import (
    Curve,
    follow,
    interpolate,
    Point,
    zero_of,
)
from statmech_attn.dynamics.continuation.cycles import (
    Logarithms,
    logarithms_shown,
    multipliers_of,
    points_shown,
)
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import CLOSED, RESULTS, UNFINISHED
from statmech_attn.dynamics.continuation.two_parameters import (
    codimension_two,
    extended_systems,
)
from statmech_attn.dynamics.continuation.two_parameters.codimension_two import Linear
from statmech_attn.dynamics.continuation.two_parameters.extended_systems import (
    Extended,
    NEIMARK_SACKER,
    Parts,
)
from statmech_attn.dynamics.options import Settings
from statmech_attn.presentation import quantity, Variable


CURVE_RESULTS = (*RESULTS, "resonance")  # a Neimark-Sacker curve ends at 1:1 or 1:2
RESONANCE = len(RESULTS)
AT_END = 1e-6  # error of an end; two multipliers that meet there have its root
AROUND = (-0.4, -0.2, 0.2, 0.4)  # of a step, from where a singular end is reached


class CriticalPoint(eqx.Module):
    """A cycle with a critical multiplier, at one point of the plane of parameters.

    `coefficient` is the normal form's: b of a fold, c of a period doubling (positive:
    supercritical), Re d of a Neimark-Sacker point (negative: supercritical).

    Attributes:
        values: of the two parameters, the free one first.
        state: coordinates of a point of the cycle, or of those of all segments.
        multipliers: eigenvalues of the Jacobian of one period.
        coefficient: of the normal form.
        rotation_number: turns per period of the cycle.
        arclength: length of the curve up to this point.
        tests: functions that change their signs at points of codimension two, by name;
            none of several segments.
        logarithms: of the multipliers, of several segments; None of one.
    """

    values: Float[np.ndarray, " 2"]
    state: Float[np.ndarray, "*m d"]
    multipliers: Complex[np.ndarray, " d"]
    coefficient: float
    rotation_number: float
    arclength: float
    tests: dict[str, float]
    logarithms: Logarithms | None = None

    _shown = (
        Variable("value", "parameter", "both parameters", symbol="p", value="values"),
        Variable("coefficient", "", "coefficient of the normal form"),
        Variable("rotation_number", "", "turns per period of the cycle", symbol="ρ"),
        Variable(
            "multiplier", "coordinate", "multipliers", symbol="μ", value="multipliers"
        ),
        *logarithms_shown(),
        *points_shown(of="state", line=False),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


class CodimensionTwo(eqx.Module):
    """A point where a second condition holds, by name; see `codimension_two`.

    Attributes:
        name: of the degeneracy, one of `CODIMENSION_TWO`.
        point: the cycle at which it occurs.
    """

    name: str = eqx.field(static=True)
    point: CriticalPoint


class CriticalCurve(Iterator[CriticalPoint]):
    """A curve of bifurcations in two parameters: iterate to go on, stop any time.

    `points` and `codimension_two` are what was found so far; `result` indexes
    `CURVE_RESULTS`.
    """

    def __init__(self, system: Extended, parameters: tuple[str, str], curve: Curve):
        self.system = system
        self.parameters = parameters  # names of the free and of the second one
        self.points: list[CriticalPoint] = []
        self.codimension_two: list[CodimensionTwo] = []
        self.unresolved: list[str] = []  # changes of sign that were not closed in on
        self.result: int = UNFINISHED
        self._curve = curve
        self._last: tuple[Point, Linear] | None = None
        self._signed: dict[str, tuple[Point, Linear, float]] = {}  # last with a sign

    def __repr__(self) -> str:
        first, second = self.parameters
        where = [f"({quantity(a)}, {quantity(b)})" for a, b in self._ends_of_points()]
        lines = [f"CriticalCurve: {self.kind} in ({first}, {second}), {self.reason}"]
        if where:
            lines.append(f"  {len(self.points)} points from {where[0]} to {where[-1]}")
        for place in self.codimension_two:
            a, b = place.point.values
            lines.append(f"  {place.name} at ({quantity(a)}, {quantity(b)})")
        return "\n".join(lines)

    def _ends_of_points(self):
        return [point.values for point in (*self.points[:1], *self.points[-1:])]

    def to_dataset(self) -> xr.Dataset:
        """The points that were found so far."""
        points = [point.to_dataset() for point in self.points]
        dataset = xr.concat(points, "point", combine_attrs="override")
        for name, values in zip(self.parameters, dataset["value"].values.T):
            words = Variable(name, "", f"parameter {name}").attributes()
            dataset[name] = ("point", values, words)
        return dataset

    @property
    def reason(self) -> str:
        """How the continuation ended, in a word."""
        return CURVE_RESULTS[self.result]

    @property
    def kind(self) -> str:
        """Kind of bifurcation that the curve consists of."""
        return self.system.kind

    def __next__(self) -> CriticalPoint:
        if self.result != UNFINISHED:
            raise StopIteration
        place = next(self._curve, None)
        if place is None:
            self.result = self._curve.result
            raise StopIteration
        if self._last is not None and self._ends(self._last[0], place):
            raise StopIteration
        if self._last is not None and self._closes_reversed(self._last[0], place):
            place, self.result = self._reversed_start(self._last[0]), CLOSED
        point, linear = self._read(place, self._last and self._last[1])
        self._compare(place, linear, point)
        self._last = (place, linear)
        self.points.append(point)
        return point

    def _read(self, place: Point, previous: Linear | None):
        """The cycle at a point of the curve."""
        parts = self.system.parts(place.u)
        if self.system.problem.segments > 1:
            second = {self.parameters[1]: float(parts.values[1])}
            problem, jacobian = self.system.problem, place.jacobian[..., :-1]
            at_second = problem.with_parameters(**second)
            values, logs = multipliers_of(at_second, place.u[:-1], jacobian)
            linear = Linear(jacobian, values, np.empty(0))
            return _point(parts, linear, place.arclength, logarithms=logs), linear
        linear = codimension_two.linearise(self.system, parts, previous)
        coefficient = codimension_two.coefficient(self.system, parts)
        tests = codimension_two.tests(self.system, parts, linear, coefficient)
        angle = float(parts.angle) if self.kind == NEIMARK_SACKER else np.nan
        point = _point(
            parts, linear, place.arclength, coefficient, _turns(angle), tests
        )
        return point, linear

    def _compare(self, place: Point, linear: Linear, point: CriticalPoint):
        """Close in on every test function that has changed its sign.

        Where a function is zero or not a number it has no sign; the last one counts.
        """
        for name, value in point.tests.items():
            if not abs(value) > 0:
                continue
            last = self._signed.get(name)
            self._signed[name] = (place, linear, value)
            if last is not None and last[2] * value < 0:
                self._name(name, last[0], place, last[1])

    def _name(self, name: str, before: Point, after: Point, linear: Linear):
        """The point of codimension two at a change of sign."""
        title = codimension_two.NAMES[self.kind][name]
        test = lambda place: self._read(place, linear)[0].tests[name]
        place = self._curve.zero(test, before, after)
        if place is None:
            self.unresolved.append(title)
            return
        at, linear_there = self._read(place, linear)
        if name in codimension_two.POLES:
            at = eqx.tree_at(lambda p: p.coefficient, at, np.nan)
        angle = angle_of(self.system, place.u)
        if codimension_two.confirmed(name, linear_there, self.kind, angle):
            self.codimension_two.append(CodimensionTwo(title, at))

    def _closes_reversed(self, last: Point, point: Point) -> bool:
        """Whether the last step passes the first point with the critical vector -v.

        v may come back reversed once around, as on a Moebius strip; the extended system
        would then be followed a second time.
        """
        several = self.system.problem.segments > 1
        if several or self.kind == NEIMARK_SACKER or len(self.points) < 2:
            return False
        return self._curve.passes(self._reversed_start(last), last, point)

    def _reversed_start(self, last: Point) -> Point:
        """The first point of the curve, with the critical vector -v, after the last."""
        first, d = self._curve.points[0], self.system.problem.dimension
        turn = np.ones(first.u.size)
        turn[d : 2 * d] = -1.0
        u = first.u * turn
        length = last.arclength + np.linalg.norm((u - last.u) / self._curve.scales)
        return Point(u, first.tangent * turn, first.jacobian, float(length), 0)

    def _ends(self, before: Point, after: Point) -> bool:
        """A Neimark-Sacker curve turns back on itself where sin theta changes sign."""
        if self.kind != NEIMARK_SACKER:
            return False
        angle = lambda place: angle_of(self.system, place.u)
        if np.sin(angle(before)) * np.sin(angle(after)) > 0:
            return False

        point = self._resonance(before, after, angle)
        near_one = np.cos(angle(before)) > 0
        name = "resonance_1_1" if near_one else "resonance_1_2"
        if point is None:
            self.unresolved.append(name)
        else:
            self.points.append(point)
            self.codimension_two.append(CodimensionTwo(name, point))
        self.result = RESONANCE
        return True

    def _resonance(self, before: Point, after: Point, angle) -> CriticalPoint | None:
        """The end of the curve, where its extended system is singular.

        The cycle and the parameters are even functions of the angle from there, unless
        cycles meet; then what is found is no end, and None is returned.
        """
        at = lambda fraction: angle_of(
            self.system, interpolate(before, after, fraction)
        )
        middle = zero_of(lambda f: np.sin(at(f)))
        places = [self._curve.between(before, after, middle + f) for f in AROUND]
        places = [place for place in places if place is not None]
        if len(places) < 3:
            return None
        end = np.pi * round(angle(places[0]) / np.pi)
        square = np.array([(angle(place) - end) ** 2 for place in places])
        u = np.polyfit(square / square.max(), [place.u for place in places], 2)[-1]
        parts = self.system.parts(u)._replace(angle=end)
        linear = codimension_two.linearise(self.system, parts, None)
        if not self._is_end(parts, linear):
            return None
        arclength = before.arclength + middle * (after.arclength - before.arclength)
        turns = _turns(end % (2 * np.pi))
        return _point(parts, linear, arclength, rotation_number=turns)

    def _is_end(self, parts: Parts, linear: Linear) -> bool:
        """Whether this is a cycle with two multipliers at e^{i theta} = +-1.

        An error of the point moves their mean in proportion, and each by its root.
        """
        image = self.system.image(jnp.asarray(parts.state), jnp.asarray(parts.values))
        off = np.linalg.norm(np.asarray(image) - parts.state)
        away = linear.multipliers - np.exp(1j * float(parts.angle))
        pair = away[np.argsort(np.abs(away))[:2]]
        closed = off < AT_END * (1 + np.linalg.norm(parts.state))
        met = abs(pair.mean()) < AT_END and np.abs(pair).max() < np.sqrt(AT_END)
        return bool(closed and met)


def critical_curve(
    problem: Problem,
    state: PyTree,
    value: float,
    *,
    kind: str,
    second: str,
    direction: int = 1,
    settings: Settings | None = None,
    inside: Callable[[float, float], bool] | None = None,
    scales: tuple[float, float] = (1.0, 1.0),
) -> CriticalCurve:
    """Follow a fold, period-doubling or Neimark-Sacker point in a second parameter.

    Args:
        problem: the cycle, with the free parameter and the value of the second one at
            the start.
        state: a point of the critical cycle, near enough for Newton; or points of all
            segments, (m, d).
        value: of the free parameter there.
        kind: "fold", "period_doubling" or, of one segment, "neimark_sacker".
        second: name of the second parameter.
        direction: 1 or -1, towards larger or smaller values of the second parameter.
        settings: step sizes and tolerances.
        inside: whether a pair of values (free, second) may still be part of the curve.
        scales: units of length of the two parameters; arclengths are measured in
            these, in units of the state, and in the critical vector of unit length.

    Returns:
        A curve; iterating over it gives its points, and `codimension_two` those where
        it degenerates.

    Raises:
        ValueError: an unknown kind or parameter, a state of another size, or
            multipliers that cannot be of the kind.

    Example:
        >>> import jax.numpy as jnp
        >>> cubic = lambda x, p: p["p"] + p["q"] * x - x**3
        >>> fixed = Problem(cubic, jnp.zeros(1), {"p": 0.25, "q": 1.75}, "p")
        >>> curve = critical_curve(
        ...     fixed, jnp.array([-0.5]), 0.25, kind="fold", second="q", direction=-1,
        ...     inside=lambda p, q: q < 2.0)
        >>> points = list(curve)
        >>> [found.name for found in curve.codimension_two]
        ['cusp']
    """
    system, start = extended_systems.start_of(problem, state, value, kind, second)
    units = np.full(start.size - 2, np.sqrt(problem.segments))
    allowed = None if inside is None else lambda u: inside(*map(float, u[-2:]))
    curve = follow(
        system,
        start,
        direction=direction,
        settings=settings,
        inside=allowed,
        scales=np.append(units, scales),
        method=system.method,
    )
    return CriticalCurve(system, (problem.free, second), curve)


def _point(
    parts: Parts,
    linear: Linear,
    arclength: float,
    coefficient: float = np.nan,
    rotation_number: float = np.nan,
    tests: dict[str, float] | None = None,
    logarithms: Logarithms | None = None,
) -> CriticalPoint:
    return CriticalPoint(
        values=np.asarray(parts.values),
        state=np.asarray(parts.state),
        multipliers=linear.multipliers,
        coefficient=coefficient,
        rotation_number=rotation_number,
        arclength=arclength,
        tests=tests or {},
        logarithms=logarithms,
    )


def angle_of(system: Extended, u) -> float:
    """Angle of the critical multiplier, radians."""
    return float(system.parts(u).angle)


def _turns(angle: float) -> float:
    return float(angle / (2 * np.pi))
