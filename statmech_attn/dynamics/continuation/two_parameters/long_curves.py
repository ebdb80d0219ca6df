r"""Folds and doublings of long cycles in two parameters, all points at once.

With the equations G of all points (`multiple_shooting`) a tangent has to close,
$A_i v_i = v_{i+1}$, $v_k = \mu v_0$, with $\mu = 1$ at a fold and -1 at a period
doubling.  Newton takes the smallest singular value of these equations to zero with the
second parameter (docs/theory/continuation.md, sections 3 and 8).
"""

from collections.abc import Callable, Iterator

import numpy as np
import xarray as xr
from jaxtyping import PyTree

from statmech_attn.dynamics.continuation.arclength import Curve, follow, Point
from statmech_attn.dynamics.continuation.long_cycles import (
    LongCycle,
    points_of,
    read,
    shift_of,
)
from statmech_attn.dynamics.continuation.multiple_shooting import (
    critical_shooting,
    CriticalOrbit,
)
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import CONVERGED, RESULTS
from statmech_attn.dynamics.continuation.two_parameters.extended_systems import SIGN
from statmech_attn.dynamics.options import Settings
from statmech_attn.labels import Variable
from statmech_attn.options import Numbers


class LongCriticalCurve(Iterator[LongCycle]):
    """The driver of a curve of critical long cycles; of `long_critical_curve`.

    `points` are the cycles so far, `second` the values of the second parameter;
    `result` indexes `RESULTS`.
    """

    def __init__(self, problem: Problem, kind: str, second: str, curve: Curve):
        self.problem, self.kind = problem, kind
        self.parameters = problem.free, second
        self.points: list[LongCycle] = []
        self.second: list[float] = []
        self._curve = curve

    def __repr__(self) -> str:
        """One line for the curve."""
        places = list(zip((p.value for p in self.points), self.second))
        ends = " to ".join(f"({a:.6g}, {b:.6g})" for a, b in places[:1] + places[-1:])
        k, names = int(self.problem.period), ", ".join(self.parameters)
        return (
            f"LongCriticalCurve: {self.kind} of period {k} in ({names}) from {ends}, "
            f"{RESULTS[self.result]}"
        )

    @property
    def result(self) -> int:
        """A code that indexes `RESULTS`; "unfinished" while there is more to come."""
        return self._curve.result

    def to_dataset(self) -> xr.Dataset:
        """The cycles so far, with both parameters."""
        points = [point.to_dataset() for point in self.points]
        dataset = xr.concat(points, "point", combine_attrs="override")
        free, second = self.parameters
        words = Variable(second, "", f"parameter {second}").attributes()
        dataset[second] = ("point", self.second, words)
        return dataset.rename(value=free)

    def run(self) -> "LongCriticalCurve":
        """Follow the curve to its end."""
        for _ in self:
            pass
        return self

    def __next__(self) -> LongCycle:
        place = next(self._curve)
        point = Point(
            u=place.u[:-1],
            tangent=place.tangent[:-1],
            jacobian=place.jacobian[..., :-1],
            arclength=place.arclength,
            iterations=place.iterations,
        )
        self.second.append(float(place.u[-1]))
        values = {self.parameters[1]: self.second[-1]}
        cycle = read(self.problem.with_parameters(**values), point, CONVERGED)
        self.points.append(cycle)
        return cycle


def long_critical_curve(
    problem: Problem,
    orbit: PyTree,
    value: float,
    *,
    kind: str,
    second: str,
    shift: Numbers = 0.0,
    direction: int = 1,
    settings: Settings | None = None,
    inside: Callable[[float, float], bool] | None = None,
    scales: tuple[float, float] = (1.0, 1.0),
) -> LongCriticalCurve:
    """Follow a fold or period doubling of a long cycle in a second parameter.

    Args:
        problem: the map, its parameters with the second one at the start, and the
            period k.
        orbit: points of the critical cycle (k, d), near enough for Newton, as those of
            a bifurcation of `follow_long_cycle`.
        value: of the free parameter there.
        kind: "fold" or "period_doubling".
        second: name of the second parameter.
        shift: what is added to a state in one period.
        direction: 1 or -1, towards larger or smaller values of the second parameter.
        settings: step sizes, of root mean squares over the points, and tolerances.
        inside: whether a pair of values (free, second) may still be part of the curve.
        scales: units of length of the two parameters.

    Returns:
        A curve; iterating over it gives its cycles, from each of which a branch or
        another curve may start (`at_point` of its data set).

    Raises:
        ValueError: an unknown kind or parameter, or an orbit of another shape.

    Example:
        >>> import jax.numpy as jnp
        >>> henon = lambda z, p: jnp.stack([p["a"] - z[0]**2 + p["b"] * z[1], z[0]])
        >>> problem = Problem(henon, jnp.zeros(2), {"a": 0.37, "b": 0.3}, "a")
        >>> curve = long_critical_curve(problem, jnp.full((1, 2), 0.35), 0.37,
        ...     kind="period_doubling", second="b", inside=lambda a, b: b < 0.45).run()
        >>> bool(abs(curve.points[3].value - 0.75 * (1 - curve.second[3])**2) < 1e-9)
        True
    """
    if kind not in SIGN:
        raise ValueError(f"kind must be one of {', '.join(SIGN)}; got {kind!r}.")
    others = sorted(set(problem.parameters) - {problem.free})
    if second not in others:
        raise ValueError(f"second must be one of {others}; got {second!r}.")
    points = points_of(problem, orbit, value)
    k, d = points.shape
    values = np.array([value, problem.parameters[second]], float)
    allowed = None if inside is None else lambda u: inside(*map(float, u[-2:]))
    critical = CriticalOrbit(problem, shift_of(problem, shift), second, SIGN[kind])
    curve = follow(
        critical,
        critical.turned(np.append(points, values)),
        direction=direction,
        settings=settings,
        inside=allowed,
        scales=np.append(np.full(k * d, np.sqrt(k)), scales),
        method=critical_shooting(d),
    )
    return LongCriticalCurve(problem, kind, second, curve)
