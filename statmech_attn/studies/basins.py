"""Basin studies: attractors along a parameter, their shares, lifetimes of transients.

At every value of the parameter many random starts are followed until they settle
(docs/theory/attractors.md).  The sets on which they ended get their phase from the
exponents of one orbit each, and numbers that go on along the parameter.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn import dmft
from statmech_attn.batches import batches, CPU_LANES, limited, once, seconds_of
from statmech_attn.dynamics import (
    Attractors,
    attractors,
    basins,
    diagrams,
    distinguish,
    escape_rate,
    follow_with,
    Follower,
    lanes_of,
    OBSERVABLES,
    PHASES,
    phases,
    Search,
    starts_of,
    take,
    wilson,
)
from statmech_attn.labels import STEP, Variable, Variables
from statmech_attn.scan import (
    Arrays,
    Assembled,
    Chunk,
    OneRound,
    Pilot,
    Results,
    Tick,
)
from statmech_attn.studies import build, posed
from statmech_attn.studies.basins_table import (
    BasinsRun,
    BasinsStudy,
    SystemBasinsRun,
    SystemBasinsStudy,
)
from statmech_attn.studies.matching import ATTRACTOR, matched
from statmech_attn.studies.posed import Posed
from statmech_attn.studies.tables import chosen


INEXACT = 0.1  # share of the arrivals that may have an upper bound as their lifetime
STATES = 8  # states kept of every set, a drive period apart: where it flows from
SETS = 8  # sets whose phases are found together
_SETS = "by number of starts; 0 or -1 where a value has fewer sets"
_WILSON = "end of Wilson's interval, one standard error"
# Files have the scanned parameter as the first dimension; braces stand for the unit.
_ROWS = (
    Variable(
        "count", "slot", "starts that ended on the set", "1", "n_k", group="",
        note=_SETS,
    ),
    Variable("fraction", "slot", "share of the starts", "1", "n_k/n", group=""),
    Variable("fraction_low", "slot", f"lower {_WILSON}", "1", "p", group=""),
    Variable("fraction_high", "slot", f"upper {_WILSON}", "1", "p", group=""),
    ATTRACTOR,
    Variable(
        "phase", "slot", "phase of the orbit", "1", "phase", group="", flags=PHASES
    ),
    Variable(
        "period", "slot", "period of the orbit, 0 if none", "{unit}", "p", group=""
    ),
    *(
        diagrams.VARIABLES.variable(name)._replace(dims="slot")
        for name in ("rotation_number", "rotation_error", "rotation_oriented")
    ),
    Variable("n_points", "slot", "points of the set before they repeat", "1", "n"),
    Variable(
        "lyapunov", "slot exponent",
        "Lyapunov exponents, plain average, largest first", "nat / {unit}", "λ_i",
    ),
    Variable(
        "lyapunov_stderr", "slot exponent", "standard error of the plain average",
        "nat / {unit}", "δλ_i",
    ),
    Variable(
        "label", "start", "slot of the set, -1 not settled, -2 diverged", "1", "k",
        group="", note="slots count from 0",
    ),
    Variable(
        "lifetime", "start", "steps before the neighbourhood was entered for good",
        "{unit}", "τ", group="",
    ),
    Variable(
        "lifetime_ended", "start", "False: still on the way after the lifetime", "1",
        "ended", group="",
    ),
    Variable(
        "lifetime_exact", "start", "False: settled at the lifetime or before", "1",
        "exact",
    ),
    Variable(
        "escape_rate", "", "rate at which transients end", "nat / {unit}", "κ",
        parts="_stderr", group="",
        note="NaN where it is not constant or more than 10 % of the lifetimes are "
        "inexact",
    ),
    Variable(
        "escape_events", "", "transients that ended after escape_after", "1", "e"
    ),
    Variable(
        "escape_after", "", "beginning of the exponential tail", "{unit}", "t_0",
        group="",
    ),
    Variable(
        "escape_constancy", "", "early minus late rate over its error", "1", "z"
    ),
    Variable(
        "count_unsettled", "", "starts that did not settle before the horizon", "1",
        "n", group="",
    ),
    Variable("count_diverged", "", "starts that diverged", "1", "n", group=""),
    Variable(
        "count_inexact", "", "starts with an upper bound as their lifetime", "1", "n"
    ),
    build.FAILURE,
    Variable(
        "slot", "slot", "set on which starts ended, by number of starts", "1", "k",
    ),
    Variable("start", "start", "random start", "1", "s"),
    Variable("point", "point", "point of a set", "1", "i"),
    Variable("turn", "turn", "clock periods between states on the set", "1", "i"),
    Variable("exponent", "exponent", "rank of the Lyapunov exponent", "1", "i"),
)  # fmt: skip
OF_NETWORK = (
    Variable(
        "points", "slot point pattern", "A on the set at the clock's phase 0", "1", "A"
    ),
    Variable(
        "states",
        "slot turn age pattern",
        "attention windows on the set, newest first",
        "1",
        "z",
    ),
    Variable("pattern", "pattern", "feature pattern", "1", "a"),
    Variable("age", "age", "age of the attention vector in the window", "token", "τ"),
)
OF_SYSTEM = (
    Variable(
        "points",
        "slot point observable",
        "observables on the set at the clock's phase 0",
        "1",
        "x",
    ),
    Variable("states", "slot turn coordinate", "states on the set", "1", "z"),
    Variable("coordinate", "coordinate", "number of the coordinate", "1", "i"),
    *OBSERVABLES,
)


def variables(rows: Iterable[Variable], parameters: Variables, unit: str) -> Variables:
    """What the file of a basins study holds.

    Args:
        rows: of points and states.
        parameters: of the system.
        unit: what a step is.
    """
    fill = lambda row: row._replace(units=row.units.replace("{unit}", unit))
    return Variables(*map(fill, _ROWS), *rows, parameters)


VARIABLES = variables(OF_NETWORK, dmft.PARAMETERS, "token")
SYSTEM_VARIABLES = variables(OF_SYSTEM, Variables(), STEP)
EMPTY = {
    "count": 0,
    "period": 0,
    "n_points": 0,
    "fraction": 0.0,
    "phase": -1,
    "rotation_oriented": -1,
}


class BasinsWork(OneRound):
    """Every value of the parameter with all its starts; a `scan.work.Work`.

    Args:
        batch: values whose starts are followed together, of which a chunk holds a
            multiple; a number that depends on the study alone when omitted.

    Raises:
        ValueError: an impossible setting.
    """

    title = "basins"
    empty: Mapping[str, int] = {
        "phase": EMPTY["phase"],
        "rotation_oriented": EMPTY["rotation_oriented"],
        "label": basins.NOT_SETTLED,
    }

    def __init__(
        self, study: BasinsStudy | SystemBasinsStudy, batch: int | None = None
    ):
        self.problem, self.options = posed.pose(study), study.run
        self.axes = posed.only_one(self.problem.axes, "basins")
        self.batch = batch or max(CPU_LANES // self.options.starts, 1)
        self.plan = _plan(self.options, self.problem)
        self.plan.check(self.problem.dimension, self.problem.turn)
        self.system = self.problem.system
        self.clock_period = self.system.drive_period
        rows = OF_NETWORK if isinstance(study, BasinsStudy) else OF_SYSTEM
        self.variables = variables(rows, self.problem.parameters, self.system.unit)

    @property
    def total(self) -> int:
        return self.axes.shape[0]

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        """Rows of the values: sets in as many slots as there are starts."""
        values = np.arange(chunk.first, chunk.stop)
        parts = [
            self._compute(values[first : first + self.batch], tick)
            for first in range(0, len(values), self.batch)
        ]
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        lost = np.isnan(arrays["points"]).any(axis=(2, 3)) & (arrays["count"] > 0)
        return np.any(lost, axis=1)

    def pilot(self) -> Pilot:
        """From a look: as many are needed to the end of the transient."""
        with limited(1):
            params, starts = self._starts(np.zeros(self.batch, int))
            lanes = np.arange(
                min(self.follower.lanes, self.batch * self.options.starts)
            )
            list(self.follower.look(starts, params, lanes))  # compiles
        seconds = seconds_of(lambda: [*self.follower.look(starts, params, lanes)])
        looks = self.options.transient // self.follower.steps_per_look + 1
        per_point = seconds * looks * self.options.starts / len(lanes)
        slots, dimension = self.options.starts, self.problem.dimension
        observed = self._observed
        cloud = 8 * slots * self.follower.search.record * observed
        stored = 8 * slots * (self.options.points * observed + STATES * dimension)
        memory = self.batch * (5 * cloud + stored)
        without = "starts that settle later, phases"
        without += " and matching" * (self.options.matching == "flow")
        return Pilot(per_point, memory, stored, without)

    def assemble(self, results: Results) -> Assembled:
        options, table = self.options, self.variables
        dataset = _dataset(self.axes, results, table, self.problem).assign_attrs(
            clock_period=self.clock_period,
            horizon=options.horizon,
            capture=options.capture,
        )
        dataset = posed.described(dataset, self.problem, "basins", table)
        dataset = build.with_failures(
            dataset, results.failure(), self.axes.names, results.reasons()
        )
        by_flow = self.problem if options.matching == "flow" else None
        with limited(1):  # the worker that the follower is made for
            attractors = matched(dataset, by_flow, options.furthest, self.follower)
        return Assembled(attractors)

    @once
    def follower(self) -> Follower:
        """The compiled map."""
        with limited(1):
            params, starts = self._starts(np.zeros(self.batch, int))
            search = chosen(Search, self.options)
            return Follower(self.system, search, starts_of(starts), starts_of(params))

    @once
    def scan(self) -> diagrams.Scan:
        """The compiled stages that find phases."""
        points = diagrams.Points(
            *take(self._starts(np.zeros(1, int)), np.zeros(SETS, int))
        )
        return diagrams.Scan(self.system, self.plan, points, SETS)

    @property
    def _observed(self) -> int:
        """Numbers that are observed of a state."""
        params, starts = self._starts(np.zeros(1, int))
        return jax.eval_shape(self.system.seen, starts).shape[0]

    def _starts(self, values: np.ndarray) -> tuple[Any, Any]:
        """All starts at some values, starts fastest; made for `batch` values."""
        padded = np.pad(values, (0, self.batch - len(values)), mode="edge")
        repeat = self.options.starts
        params = self.axes.at(padded[:, None], repeat)
        numbers = np.tile(np.arange(repeat), len(padded))
        starts = self.problem.starts(params, numbers)
        return take((params, starts), np.arange(len(values) * repeat))

    def _compute(self, values: np.ndarray, tick: Tick) -> Arrays:
        """Rows of at most `batch` values."""
        params, starts = self._starts(values)
        follower, repeat = self.follower, self.options.starts
        work = follower.looks * follower.steps_per_look * repeat
        done = lambda steps: tick(steps / work)
        orbits = follow_with(follower, starts_of(starts), starts_of(params), done)
        lanes = np.arange(len(values) * repeat).reshape(-1, repeat)
        attractors = [distinguish(orbits.take(row)) for row in lanes]
        leaders = np.concatenate(
            [r[x.leader] for r, x in zip(lanes, attractors, strict=True)]
        )
        sets = _sets(attractors, self.options) | self._phases(
            diagrams.Points(*take((params, lanes_of(orbits.state)), leaders)),
            attractors,
            tick,
        )
        return _rows(sets, attractors, self.clock_period)

    def _phases(
        self, points: diagrams.Points, found: list[Attractors], tick: Tick
    ) -> Arrays:
        """Phases and exponents from one orbit on every set, and states along it."""
        count = points.size
        layout = self.problem.layout
        if not count:
            example = self._starts(np.zeros(1, int))
            window = jax.eval_shape(layout.array, *example).shape[:-1]
            none = np.empty((0, self.plan.exponents))
            return {
                "phase": np.empty(0, np.int8),
                "rotation_number": np.empty(0),
                "rotation_error": np.empty(0),
                "rotation_oriented": np.empty(0, np.int8),
                "lyapunov": none,
                "lyapunov_stderr": none,
                "states": np.empty((0, STATES, *window)),
            }
        verdicts = diagrams.run(self.scan, points, lambda work: tick(0.0)).verdicts
        assert verdicts is not None
        kind, cycle, left = (
            np.concatenate([getattr(x, name) for x in found])
            for name in ("kind", "period", "transient")
        )
        phase = np.where(kind == attractors.CYCLE, phases.PERIODIC, verdicts.phase)
        phase = np.where(cycle == self.clock_period, phases.FIXED, phase)
        of_torus = lambda x: np.where(kind == attractors.CYCLE, np.nan, x)
        states = [
            np.asarray(_states(layout, points.take(chosen), self.clock_period))
            for chosen, _ in batches(np.arange(count), SETS)
        ]
        return {
            "phase": np.where(left, phases.TRANSIENT, phase).astype(np.int8),
            "rotation_number": of_torus(verdicts.rotation_number),
            "rotation_error": of_torus(verdicts.rotation_error),
            "rotation_oriented": np.asarray(verdicts.evidence.oriented, np.int8),
            "lyapunov": np.asarray(verdicts.exponents).T,
            "lyapunov_stderr": np.asarray(verdicts.stderr).T,
            "states": np.concatenate(states)[:count],
        }


def _sets(found: list[Attractors], options: BasinsRun) -> dict[str, np.ndarray]:
    """What is known of every set, those of all values one after the other."""
    pooled = lambda pick: np.concatenate([np.asarray(pick(x)) for x in found])
    low, high = wilson(pooled(lambda x: x.counts), options.starts)
    distinct = pooled(lambda x: x.orbits.distinct[x.leader])
    return {
        "count": pooled(lambda x: x.counts),
        "fraction": pooled(lambda x: x.fraction),
        "fraction_low": low,
        "fraction_high": high,
        "period": pooled(lambda x: x.period),
        "points": pooled(lambda x: _some_points(x, options.points)),
        "n_points": np.minimum(distinct, options.points),
    }


def _some_points(found: Attractors, count: int) -> np.ndarray:
    """Points of every set: all of a cycle, repeated, or evenly chosen ones."""
    clouds = np.empty((len(found.leader), count, found.orbits.points.shape[2]))
    for k, leader in enumerate(found.leader):
        points = found.orbits.set_of(leader)
        evenly = np.linspace(0, len(points) - 1, count).astype(int)
        clouds[k] = (
            points[evenly]
            if len(points) > count
            else np.resize(points, clouds[k].shape)
        )
    return clouds


def _plan(options: BasinsRun | SystemBasinsRun, problem: Posed) -> diagrams.Plan:
    """How the phase of a set is found, from one orbit on it."""
    exponents = options.exponents
    if "exponents" not in options.model_fields_set:
        exponents = min(exponents, problem.dimension)
    return chosen(
        diagrams.Plan,
        options,
        transient=0,
        exponents=exponents,
        max_doublings=2,
        section_samples=1,
        strobe_samples=1,
    )


@eqx.filter_jit
def _states(layout, points: diagrams.Points, period: int):
    """States as arrays (sets, states, ...), one clock period apart."""

    def turn(state, _):
        after = layout.advance(points.params, state, period)
        return after, layout.array(points.params, state)

    _, arrays = jax.lax.scan(turn, points.starts, None, length=STATES)
    return jnp.moveaxis(arrays, -1, 0)


OF_SETS = (
    "count",
    "fraction",
    "fraction_low",
    "fraction_high",
    "period",
    "points",
    "n_points",
    "phase",
    "rotation_number",
    "rotation_error",
    "rotation_oriented",
    "lyapunov",
    "lyapunov_stderr",
    "states",
)
OF_STARTS = ("lifetime", "lifetime_ended", "lifetime_exact", "label")
OF_VALUES = (
    "escape_rate",
    "escape_rate_stderr",
    "escape_events",
    "escape_after",
    "escape_constancy",
    "count_inexact",
    "count_unsettled",
    "count_diverged",
)


def _rows(sets: Arrays, found: list[Attractors], period: int) -> Arrays:
    """Arrays with a row for each value; those of sets are filled up with empty ones."""
    ends = np.cumsum([len(x.counts) for x in found])[:-1]
    rows = {
        name: np.stack(
            [
                _padded(part, len(attractors.label), EMPTY.get(name, np.nan))
                for part, attractors in zip(np.split(x, ends), found, strict=True)
            ]
        )
        for name, x in sets.items()
    }
    rates = [arrival_rate(x, period) for x in found]
    rows |= {name: np.array([rate[name] for rate in rates]) for name in rates[0]}
    for label, name in (
        (basins.NOT_SETTLED, "unsettled"),
        (basins.DIVERGED, "diverged"),
    ):
        rows[f"count_{name}"] = np.array([np.sum(x.label == label) for x in found])
    for name in ("lifetime", "ended", "exact"):
        stored = name if name == "lifetime" else f"lifetime_{name}"
        rows[stored] = np.array([getattr(x.orbits, name) for x in found])
    return rows | {"label": np.array([x.label for x in found])}


def _dataset(
    axes: diagrams.Axes, results: Results, table: Variables, problem: Posed
) -> xr.Dataset:
    """The slot k of a value of the parameter holds its k-th set."""
    name, values = axes.names[0], axes.values[0]
    present = results.column("count") > 0
    slots = max(int(present.sum(axis=1).max()), 1)
    variables: dict[str, Any] = {
        key: (
            (name, *(table.variable(key).dims.split() or ["slot"])),
            _first(results.blocks(key), slots),
        )
        for key in OF_SETS
    }
    variables |= {key: ((name, "start"), results.column(key)) for key in OF_STARTS}
    variables |= {key: ((name,), results.column(key)) for key in OF_VALUES}
    coordinates: dict[str, Any] = {
        dim: np.arange(1, 1 + size)
        for dim, size in _sizes(variables).items()
        if dim != name
    }
    if problem.observables:
        coordinates["observable"] = [row.name for row in problem.observables]
    return table.labelled(variables, {name: values} | coordinates)


def _first(blocks: Iterator[np.ndarray], slots: int) -> np.ndarray:
    """The first slots of all rows; the others never come together in memory."""
    return np.concatenate([rows[:, :slots].copy() for rows in blocks])


def _sizes(variables) -> dict[str, int]:
    return {
        dim: length
        for dims, x in variables.values()
        for dim, length in zip(dims, np.shape(x), strict=True)
    }


def arrival_rate(found: Attractors, period: int) -> dict[str, float]:
    """Rate at which transients end, and the evidence that there is one.

    Starts that diverged are left out, and so are those on a set that does not recur and
    that nobody was seen to leave.  A lifetime that is only an upper bound is no event;
    with more than `INEXACT` of them, and where the rate is not constant, it is NaN.
    """
    orbits = found.orbits
    was_left = np.append(found.transient, [False, False])[found.label]
    stays = (orbits.kind == attractors.IRREGULAR) & ~was_left
    on_the_way = (found.label != basins.DIVERGED) & ~stays
    known = on_the_way & orbits.exact
    inexact = int(np.sum(on_the_way & ~orbits.exact))
    lifetime, ended = orbits.lifetime[known], orbits.ended[known]
    if not known.any():
        lifetime, ended = np.zeros(1), np.array([False])
    fit = escape_rate(lifetime, ended, resolution=period)
    if abs(fit.constancy) > 2 or inexact > INEXACT * (inexact + ended.sum()):
        fit = fit._replace(rate=np.nan, stderr=np.nan)
    return {
        "escape_rate": fit.rate,
        "escape_rate_stderr": fit.stderr,
        "escape_events": fit.events,
        "escape_after": fit.after,
        "escape_constancy": fit.constancy,
        "count_inexact": inexact,
    }


def _padded(x: np.ndarray, length: int, empty) -> np.ndarray:
    return np.concatenate([x, np.full((length - len(x), *x.shape[1:]), empty, x.dtype)])
