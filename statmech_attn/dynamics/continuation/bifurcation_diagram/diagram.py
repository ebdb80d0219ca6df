"""Bifurcation diagrams of cycles: what is born on a branch is found and followed too.

Newton finds the cycle next to a state, and its branch is followed to both ends of an
interval of the free parameter, stable or not; so are the branches of the doubled
cycles, and the special points in a second parameter (docs/theory/continuation.md,
docs/theory/two_parameters.md).

    diagram(...)                        branches and curves
    DiagramPlan(...).compute()          its data set
    DiagramPlan(...).run("cycles.h5")   the same in a file, which is read if it is there
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PyTree

from statmech_attn import presentation
from statmech_attn.dynamics.continuation.bifurcation_diagram import (
    labels,
)
from statmech_attn.dynamics.continuation.bifurcation_diagram.branches import (
    both_ways,
    DiagramBranch,
    with_doublings,
)
from statmech_attn.dynamics.continuation.bifurcation_diagram.curves import (
    curves_of,
    DiagramCurve,
)
from statmech_attn.dynamics.continuation.bifurcation_diagram.turns import (
    Turns,
    turns_of,
)
from statmech_attn.dynamics.continuation.cycles import find_cycle
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.special_points import SpecialPoint
from statmech_attn.dynamics.maps.systems import as_system, System
from statmech_attn.dynamics.options import Settings
from statmech_attn.labels import Variable, Variables
from statmech_attn.options import Interval
from statmech_attn.scan import Arrays, Assembled, Points, Results, Tick


SHOWN = Variable("strobe", "", "displayed coordinate", "1", "x")
POINT_OF_CYCLE = "coordinates of a point of the cycle at the clock's phase 0"


class DiagramPlan(Points):
    """The bifurcation diagram of a cycle: one point, for `compute` and `run`.

    Every step along a branch needs the one before, and a curve is followed only where
    no earlier one passes, so that nothing of it could be computed side by side.

    Args:
        system: a `System`, or its step (state, parameters) -> state; or its `Turns`.
        x: a state near the cycle, at phase 0 of the drive; for `Turns` its coordinates,
            or a function that computes them when they are needed.
        values: of all parameters by name; that of the free one belongs to x.
        free: name of the parameter in which branches are followed.
        within: its interval.
        period: of the cycle, in periods of the drive.
        doublings: period doublings that are followed one after another.
        second: name of the parameter in which special points are followed; they are
            not when omitted.
        second_within: its interval, which contains its value.
        settings: step sizes and tolerances.
        curve_points: points of a curve at most; as of a branch when omitted.
        variables: of the file, as `diagram_variables` labels them.
        about: attributes of the file.

    Raises:
        ValueError: an unknown parameter, or a value outside its interval.
    """

    title = "continuation"
    alone = True
    axes: Mapping[str, Any] = {}

    def __init__(
        self,
        system: Callable[..., PyTree] | System | Turns,
        x: PyTree | Callable[[], Any],
        values: Mapping[str, float],
        *,
        free: str,
        within: Interval,
        period: int = 1,
        doublings: int = 0,
        second: str = "",
        second_within: Interval = (-np.inf, np.inf),
        settings: Settings = Settings(),
        curve_points: int | None = None,
        variables: Variables | None = None,
        about: Mapping[str, Any] | None = None,
    ):
        self.values = {name: float(value) for name, value in values.items()}
        self.free, self.second = free, second
        self.within, self.second_within = within, second_within
        self.period, self.doublings = period, doublings
        self.settings = settings
        self.curve_points = curve_points or settings.max_points
        self._check()
        name = type(system).__name__
        if not isinstance(system, Turns):
            self.system = system = as_system(system)
            name = getattr(system.step, "__name__", name)
            x = jax.tree.map(jnp.asarray, x)
            x, system = system.at(self.values).vector(x), turns_of(system, x)
        self.turns, self.x = system, x
        unit = system.map.unit
        self.variables = variables or labels.diagram_variables(
            Variables(*(Variable(n, "", n, "1", n) for n in values)),
            unit=unit,
            state=POINT_OF_CYCLE,
            shown=SHOWN,
        )
        start = f"given, at {free} = {self.values[free]!r}"
        self.about = about or {"system": name, "unit": unit, "start": start}

    def follow(self, tick: Tick = lambda points: None) -> "BifurcationDiagram":
        """The cycle, its doublings and the curves of its bifurcations.

        Args:
            tick: told of every point of a branch or curve.

        Raises:
            ValueError: there is no cycle of this period near the state.
        """
        x = self.x() if callable(self.x) else self.x
        problem = Problem(self.turns.map, x, self.values, self.free, self.period)
        value, within = self.values[self.free], self.within
        x = _cycle(problem, problem.ravel(problem.template), value)
        first = both_ways(problem, x, value, within, self.settings, tick)
        branches = tuple(
            with_doublings(first, self.doublings, within, self.settings, tick)
        )
        if not self.second:
            return BifurcationDiagram(self, branches, ())
        settings = dataclasses.replace(self.settings, max_points=self.curve_points)
        ranges = within, self.second_within
        curves = curves_of(branches, self.second, ranges, settings, tick)
        return BifurcationDiagram(self, branches, tuple(curves))

    def row(self, number: int, tick: Tick, folder: Path | None) -> Arrays:
        return self.follow(_in_points(tick, self.settings.max_points)).columns

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        return np.isnan(arrays[self.free][:, 0, 0])

    def attributes(self) -> dict[str, Any]:
        second = {"second": self.second} if self.second else {}
        kind = {"kind": self.title, "free": self.free, "clock_period": self.turns.steps}
        return second | kind | dict(self.about)

    def assemble(self, results: Results) -> Assembled:
        names = results.names()
        return Assembled(self.dataset({n: results.column(n)[0] for n in names}))

    def dataset(self, columns: Arrays) -> xr.Dataset:
        """The labelled data set of a diagram.

        Args:
            columns: by name.
        """
        dims = labels.dimensions(self.free, self.second)
        stored = {n: (dims[n], columns[n]) for n in dims if n in columns}
        labelled = self.variables.labelled(stored, {"end": np.arange(2)})
        fixed = {
            name: ((), value, self.variables.attributes(name))
            for name, value in self.values.items()
            if name != self.free
        }
        return labelled.assign_coords(fixed).assign_attrs(self.attributes())

    def _check(self) -> None:
        """Every parameter is there, and its value in its interval."""
        ranges = {self.free: self.within}
        if self.second:
            if self.second == self.free:
                raise ValueError(f"second must not be {self.free}, which is free.")
            ranges[self.second] = self.second_within
        for name, (low, high) in ranges.items():
            if name not in self.values:
                raise ValueError(
                    f"free and second must be of {sorted(self.values)}; got {name!r}."
                )
            value = self.values[name]
            if not (low <= value <= high and 0 < high - low < np.inf):
                raise ValueError(
                    f"the interval of {name} must be finite and contain {name} = "
                    f"{value:g}, at which the cycle is sought; got {low:g} to {high:g}."
                )


@dataclasses.dataclass(frozen=True)
class BifurcationDiagram:
    """Branches of cycles, their bifurcations and the curves of these.

    Attributes:
        plan: that was followed.
        branches: the one through the first cycle, then those born at doublings, level
            by level.
        curves: of the bifurcations in the second parameter.
    """

    plan: DiagramPlan
    branches: tuple[DiagramBranch, ...]
    curves: tuple[DiagramCurve, ...]

    @property
    def special(self) -> list[SpecialPoint]:
        """Bifurcations of all branches, in the order of the file."""
        return [special for branch in self.branches for special in branch.special]

    @property
    def columns(self) -> Arrays:
        """Variables of the data set, by name."""
        plan = self.plan
        given = plan.turns, plan.free, plan.second, self.branches, self.curves
        return labels.columns(*given)

    @property
    def _shown(self):
        of = lambda read: [read(s) for s in self.special] or None
        periods = [self.plan.turns.steps * int(b.problem.period) for b in self.branches]
        kinds = [curve.kind for curve in self.curves] or None
        free = self.plan.free
        return (
            Variable(
                "period", "branch", "periods of branches", value=lambda _: periods
            ),
            Variable("kind", "s", "bifurcations", value=lambda _: of(lambda s: s.kind)),
            Variable(free, "s", f"their {free}", value=lambda _: of(lambda s: s.value)),
            Variable("curve", "curve", "curves", value=lambda _: kinds),
        )

    __repr__, _repr_html_, _ = presentation.METHODS

    def to_dataset(self) -> xr.Dataset:
        """All branches and curves, as a file holds them (docs/hdf5.md)."""
        return self.plan.dataset(self.columns)


def diagram(
    system: Callable[..., PyTree] | System | Turns,
    x: PyTree | Callable[[], Any],
    values: Mapping[str, float],
    *,
    free: str,
    within: Interval,
    **choices: Any,
) -> BifurcationDiagram:
    """The bifurcation diagram of a cycle: branches, and curves of bifurcations.

    Args:
        system: a `System`, or its step (state, parameters) -> state; or its `Turns`.
        x: a state near the cycle, at phase 0 of the drive.
        values: of all parameters by name; that of the free one belongs to x.
        free: name of the parameter in which branches are followed.
        within: its interval.
        choices: others of `DiagramPlan`, such as `doublings` and `second`.

    Returns:
        `BifurcationDiagram`: `branches`, `curves` and `special`, the bifurcations;
        `to_dataset()` gives what figures and files take.

    Raises:
        ValueError: an impossible setting, or no cycle near the state.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> cycles = diagram(logistic, jnp.array([0.6]), {"r": 2.5}, free="r",
        ...                  within=(2.0, 3.5), doublings=1)
        >>> [(s.kind, round(s.value, 6)) for s in cycles.special]
        [('period_doubling', 3.0), ('period_doubling', 3.44949)]
        >>> cycles.to_dataset().branch_period.values.tolist()
        [1, 2]
    """
    plan = DiagramPlan(system, x, values, free=free, within=within, **choices)
    return plan.follow()


def _in_points(tick: Tick, most: int) -> Tick:
    """Points of branches as parts of the one point of a study, never more than it."""
    remaining = 1.0

    def count(points: float) -> None:
        nonlocal remaining
        share = min(points / most, remaining)
        remaining -= share
        tick(share)

    return count


def _cycle(problem: Problem, x, value: float):
    """The cycle near a state, or one line that says why there is none."""
    cycle = find_cycle(problem, x, value)
    place = f"at {problem.free} = {value:g}"
    if not cycle.converged:
        raise ValueError(
            f"period: no cycle of {cycle.asked} drive periods near the state {place} "
            f"({cycle.reason}); begin at another value, period or after a longer "
            "transient."
        )
    if cycle.period != cycle.asked:
        raise ValueError(
            f"period: the cycle {place} has {cycle.period} drive periods; "
            f"got {cycle.asked}."
        )
    return cycle.x
