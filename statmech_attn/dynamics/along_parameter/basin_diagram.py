"""Attractors along a parameter, their basins, and lifetimes of transients.

At every value of the parameter many starts are followed until they settle
(docs/theory/attractors.md).  The attractors on which they ended get their phase from
the exponents of one orbit each, and numbers that go on along the parameter.

    BasinDiagram(system, starts, grid).compute()         the data set
    BasinDiagram(system, starts, grid).run("basins.h5")  the same in a file
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PyTree

from statmech_attn.batches import (
    batches,
    CPU_LANES,
    limited,
    once,
    require_double,
    seconds_of,
)
from statmech_attn.dynamics import diagrams
from statmech_attn.dynamics.along_parameter.attractor_matching import (
    match_attractors,
    scanned,
    set_of_orbit,
    sets_of,
)
from statmech_attn.dynamics.along_parameter.basin_rows import BLANK, columns_of, rows_of
from statmech_attn.dynamics.along_parameter.basin_variables import basin_variables
from statmech_attn.dynamics.attractors.basins import (
    Attractors,
    distinguish,
    most_common,
    NOT_SETTLED,
)
from statmech_attn.dynamics.attractors.orbit_follower import Follower, take
from statmech_attn.dynamics.attractors.settled_orbits import CYCLE, follow_with
from statmech_attn.dynamics.diagrams.rows import VERDICTS
from statmech_attn.dynamics.diagrams.stages.stages import fitted
from statmech_attn.dynamics.maps.coordinates import Coordinates
from statmech_attn.dynamics.maps.observables import label_observables
from statmech_attn.dynamics.maps.starts import lanes_of, side_by_side, starts_of
from statmech_attn.dynamics.maps.systems import as_system, count_of, System
from statmech_attn.dynamics.motion import phases
from statmech_attn.dynamics.options import BasinPlan, Plan, Search
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import (
    Arrays,
    Assembled,
    Chunk,
    Pilot,
    Points,
    Results,
    Tick,
)


STATES = 8  # states kept of every attractor, a drive period apart: where it flows from
LOOKS = 8  # for how long they are followed at the next value
TOGETHER = 8  # attractors whose phases are found together
OF_VERDICTS = (
    "phase",
    "rotation_number",
    "rotation_error",
    "rotation_oriented",
    "lyapunov",
    "lyapunov_stderr",
)
Starts = Callable[[PyTree, np.ndarray], PyTree]


class BasinDiagram(Points):
    """Attractors at every value of a parameter, with all starts.

    Args:
        system: a `System`, or its step (state, parameters) -> state; parameters are a
            dictionary with the names of the grid.
        starts: states, on the first axis of every array, the same at every value; an
            array without axes, such as a clock, is shared.  Or a function: parameters
            and numbers of the starts of some points -> their states, both with the
            points on the last axis.
        grid: parameters by name, one with several values, the others a number; or
            `diagrams.Axes`, such as a `point_list`.
        count: number of starts, where they are a function.
        search: horizon and tolerances of the orbits.
        plan: what is kept of an attractor, and how attractors are matched.
        layout: states as arrays, and back; their `Coordinates` when omitted.
        observables: labels of what is observed of a state; x_1, x_2, ... when omitted.
        variables: of the file, as `basin_variables` labels them.
        about: attributes of the file.

    Raises:
        ValueError: a grid, system, starts or choice that makes no sense.

    Example:
        >>> cubic = lambda x, p: p["r"] * x - x**3
        >>> starts = jnp.array([-0.6, -0.2, 0.3])
        >>> diagram = BasinDiagram(cubic, starts, {"r": [0.9, 1.1, 1.3]},
        ...                        search=Search(horizon=6000, record=128),
        ...                        plan=BasinPlan(steps=1000))
        >>> basins = diagram.compute()
        >>> basins["count"].values.tolist()
        [[3, 0], [2, 1], [2, 1]]
        >>> basins.attractor.values.tolist()
        [[0, -1], [0, 1], [0, 1]]
    """

    title = "basins"
    empty: Mapping[str, int] = {
        "phase": BLANK["phase"],
        "rotation_oriented": BLANK["rotation_oriented"],
        "label": NOT_SETTLED,
    }

    def __init__(
        self,
        system: Callable[..., PyTree] | System,
        starts: PyTree | Starts,
        grid: Mapping[str, Any] | diagrams.Axes,
        *,
        count: int | None = None,
        search: Search = Search(),
        plan: BasinPlan = BasinPlan(),
        layout: Any = None,
        observables: Sequence[Variable] | None = None,
        variables: Variables | None = None,
        about: Mapping[str, Any] | None = None,
    ):
        require_double()
        self.system, self.search = as_system(system), search
        self.grid = diagrams.one_axis_of(grid)
        self.axes = self.grid.scanned
        if not callable(starts):
            lanes, _ = side_by_side(self.system, starts)
            starts, count = partial(_same_at_all, lanes), count_of(lanes)
        elif count is None:
            raise ValueError("count must be given where starts are a function.")
        self.starts, self.count = starts, count
        self.batch = max(CPU_LANES // count, 1)
        first = take(self._starts(np.zeros(1, int)), np.zeros(1, int))
        fit = fitted(self.system, Plan(exponents=0), diagrams.Points(*first))
        self.dimension = fit.dimension
        exponents = min(2, fit.dimension) if plan.exponents is None else plan.exponents
        self.plan = replace(plan, exponents=exponents)
        self._window = Plan(
            transient=0,
            steps=plan.steps,
            exponents=exponents,
            max_doublings=2,
            section_samples=1,
            strobe_samples=1,
            compiler="xla",
        )
        self._window.check(fit.dimension, fit.turn)
        self.layout = layout or Coordinates(self.system, first[1])
        self.observed = jax.eval_shape(self.system.seen, first[1]).shape[0]
        if observables is None:
            names = [f"x_{i}" for i in range(1, self.observed + 1)]
            observables = [Variable(name, "", name, "1", name) for name in names]
        self.observables = tuple(observables)
        self.variables = variables or self._variables()
        name = getattr(self.system.step, "__name__", type(system).__name__)
        self.about = about or {
            "system": name,
            "unit": self.system.unit,
            "start": "given",
        }

    def targets(self, dataset: xr.Dataset) -> list[np.ndarray]:
        """Number of the attractor at the next value to which each one flows; -1: none.

        The states that the file keeps are followed at the next value; there are no new
        starts.

        Args:
            dataset: of this diagram.
        """
        name = scanned(dataset)
        dataset = dataset.sortby(name).transpose(name, "slot", "turn", ...)
        sets, periods = sets_of(dataset), dataset.period.values
        targets = [np.full(len(of_value), -1) for of_value in sets[:-1]]
        places = [(i, k) for i, row in enumerate(targets) for k in range(len(row))]
        if not places:
            return targets
        states = dataset.states.values
        arrays = np.concatenate([states[i, k] for i, k in places])
        turns = states.shape[2]
        after = np.repeat([i + 1 for i, _ in places], turns)
        column = lambda key: np.broadcast_to(dataset[key].values, len(sets))[after]
        params = self.grid.make({key: column(key) for key in self.grid.parameters})
        state = self.layout.state(params, jnp.moveaxis(jnp.asarray(arrays), 0, -1))
        short = self.follower.until(LOOKS * self.follower.steps_per_look)
        orbits = follow_with(short, starts_of(state), starts_of(params))
        for j, (i, k) in enumerate(places):
            lanes = range(j * turns, (j + 1) * turns)
            ends = [set_of_orbit(orbits, n, sets[i + 1], periods[i + 1]) for n in lanes]
            targets[i][k] = most_common(np.array(ends))
        return targets

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        """Rows of the values: attractors in as many slots as there are starts."""
        values = np.arange(chunk.first, chunk.stop)
        parts = [
            self._at(values[first : first + self.batch], tick)
            for first in range(0, len(values), self.batch)
        ]
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        lost = np.isnan(arrays["points"]).any(axis=(2, 3)) & (arrays["count"] > 0)
        return np.any(lost, axis=1)

    def pilot(self) -> Pilot:
        """Forecast from one look at the orbits, of which the transient needs many."""
        with limited(1):
            params, starts = self._starts(np.zeros(self.batch, int))
            lanes = np.arange(min(self.follower.lanes, self.batch * self.count))
            list(self.follower.look(starts, params, lanes))  # compiles
        seconds = seconds_of(lambda: [*self.follower.look(starts, params, lanes)])
        looks = self.search.transient // self.follower.steps_per_look + 1
        per_point = seconds * looks * self.count / len(lanes)
        cloud = 8 * self.count * self.search.record * self.observed
        of_attractor = self.plan.points * self.observed + STATES * self.dimension
        stored = 8 * self.count * of_attractor
        memory = self.batch * (5 * cloud + stored)
        without = "starts that settle later, phases"
        without += " and matching" * (self.plan.matching == "flow")
        return Pilot(per_point, memory, stored, without)

    def attributes(self) -> dict[str, Any]:
        numbers = {
            "clock_period": self.system.drive_period,
            "horizon": self.search.horizon,
            "capture": self.search.capture,
        }
        return numbers | {"kind": self.title, **self.about}

    def column(self, results: Results, name: str) -> np.ndarray:
        """A variable of the attractors, without slots that are empty at every value."""
        if not self.variables.variable(name).dims.startswith("slot"):
            return results.column(name)
        present = results.column("count") > 0
        slots = max(int(present.sum(axis=1).max()), 1)
        blocks = results.blocks(name)
        return np.concatenate([rows[:, :slots].copy() for rows in blocks])

    def assemble(self, results: Results) -> Assembled:
        dataset, table = super().assemble(results).dataset, self.variables
        sizes = {str(dim): size for dim, size in dataset.sizes.items()}
        values: dict[str, Any] = {d: np.arange(1, 1 + n) for d, n in sizes.items()}
        values["observable"] = [row.name for row in self.observables]
        dataset = dataset.assign_coords(
            {
                dim: ((dim,), values[dim], table.attributes(dim))
                for dim in sizes
                if dim not in dataset.coords
            }
        )
        others = self.grid.others()
        dataset = label_observables(dataset, self.observables, others, table)
        targets = self.targets if self.plan.matching == "flow" else None
        with limited(1):  # the worker that the follower is made for
            matched = match_attractors(dataset, self.plan.furthest, targets=targets)
        return Assembled(matched)

    @once
    def follower(self) -> Follower:
        """The compiled map that follows many orbits."""
        with limited(1):
            params, starts = self._starts(np.zeros(self.batch, int))
            return Follower(
                self.system, self.search, starts_of(starts), starts_of(params)
            )

    @once
    def scan(self) -> diagrams.Scan:
        """The compiled stages that find phases."""
        points = take(self._starts(np.zeros(1, int)), np.zeros(TOGETHER, int))
        return diagrams.Scan(
            self.system, self._window, diagrams.Points(*points), TOGETHER
        )

    def _variables(self) -> Variables:
        """Table of the file's variables, with parameters called by their names."""
        rows = self.grid.labels
        names = {row.name for row in rows}
        used = names.intersection(row.name for row in basin_variables(()))
        if used:
            raise ValueError(
                f"grid must not have {min(used)}: files of basins have a variable of "
                "this name."
            )
        return basin_variables(rows, unit=self.system.unit)

    def _starts(self, values: np.ndarray) -> tuple[Any, Any]:
        """All starts at some values, starts fastest; made for `batch` values."""
        padded = np.pad(values, (0, self.batch - len(values)), mode="edge")
        params = self.grid.at(padded[:, None], self.count)
        starts = self.starts(params, np.tile(np.arange(self.count), len(padded)))
        return take((params, starts), np.arange(len(values) * self.count))

    def _at(self, values: np.ndarray, tick: Tick) -> Arrays:
        """Rows of at most `batch` values."""
        params, starts = self._starts(values)
        follower = self.follower
        work = follower.looks * follower.steps_per_look * self.count
        tick_steps = lambda steps: tick(steps / work)
        orbits = follow_with(follower, starts_of(starts), starts_of(params), tick_steps)
        lanes = np.arange(len(values) * self.count).reshape(-1, self.count)
        of_values = [distinguish(orbits.take(row)) for row in lanes]
        pairs = zip(lanes, of_values, strict=True)
        leaders = np.concatenate([row[x.leader] for row, x in pairs])
        columns = columns_of(of_values, self.plan.points)
        if leaders.size:
            points = take((params, lanes_of(orbits.state)), leaders)
            columns |= self._phases(diagrams.Points(*points), of_values, tick)
        else:
            columns |= self._no_phases()
        return rows_of(columns, of_values, self.system.drive_period)

    def _phases(
        self, points: diagrams.Points, of_values: list[Attractors], tick: Tick
    ) -> Arrays:
        """Phases and exponents from one orbit on each, and states along it."""
        verdicts = diagrams.run(self.scan, points, lambda work: tick(0.0)).verdicts
        assert verdicts is not None
        columns = {name: np.asarray(VERDICTS[name](verdicts)) for name in OF_VERDICTS}
        kind, cycle, transient = (
            np.concatenate([getattr(x, name) for x in of_values])
            for name in ("kind", "period", "transient")
        )
        period = self.system.drive_period
        recurs, fixed = kind == CYCLE, cycle == period
        phase = np.where(recurs, phases.PERIODIC, columns["phase"])
        phase = np.where(fixed, phases.FIXED, phase)
        columns["phase"] = np.where(transient, phases.TRANSIENT, phase).astype(np.int8)
        for name in ("rotation_number", "rotation_error"):
            columns[name] = np.where(recurs, np.nan, columns[name])
        states = [
            np.asarray(_states(self.layout, points.take(chosen), period))
            for chosen, _ in batches(np.arange(points.size), TOGETHER)
        ]
        return columns | {"states": np.concatenate(states)[: points.size]}

    def _no_phases(self) -> Arrays:
        """Phases and exponents where there is no attractor."""
        params, starts = self._starts(np.zeros(1, int))
        window = jax.eval_shape(self.layout.array, params, starts).shape[:-1]
        form: dict[str, Any] = dict.fromkeys(OF_VERDICTS, ())
        form |= dict.fromkeys(("lyapunov", "lyapunov_stderr"), (self.plan.exponents,))
        form["states"] = STATES, *window
        kind = lambda name: np.int8 if name in BLANK else float
        return {name: np.empty((0, *x), kind(name)) for name, x in form.items()}


def _same_at_all(lanes: PyTree, parameters: PyTree, numbers: np.ndarray) -> PyTree:
    """Starts that do not depend on the parameters."""
    return take(lanes, numbers)


@eqx.filter_jit
def _states(layout, points: diagrams.Points, period: int):
    """States as arrays (attractors, states, ...), one clock period apart."""

    def turn(state, _):
        after = layout.advance(points.params, state, period)
        return after, layout.array(points.params, state)

    _, arrays = jax.lax.scan(turn, points.starts, None, length=STATES)
    return jnp.moveaxis(arrays, -1, 0)
