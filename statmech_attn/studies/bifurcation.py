"""Bifurcation studies as work in chunks: grids, refined grids, sweeps.

A point is a point of the grid with one of its starts, starts fastest.

* A grid has one round.
* A refined grid begins with the coarse one; a round holds the midpoints that the labels
  of the rounds before ask for.
* A sweep follows attractors along the first axis.  Every column (a point of the other
  axis, and a start) is followed on its own; a round goes a few values further with all
  columns, from the states that the round before ended in.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import dmft
from statmech_attn.batches import lanes_for, once
from statmech_attn.dmft import Network, State
from statmech_attn.dynamics import PHASES, phases
from statmech_attn.dynamics.diagrams import (
    Cells,
    Grid,
    Outcome,
    Plan,
    Points,
    run,
    Scan,
    Verdicts,
)
from statmech_attn.scan import (
    Arrays,
    Assembled,
    Chunk,
    COMPUTED,
    NOT_FINITE,
    Pilot,
    RAISED,
    Results,
    Tick,
)
from statmech_attn.studies import build
from statmech_attn.studies.bifurcation_file import assembled, computed, Rows, rows
from statmech_attn.studies.confirmation import Confirming, ends, NOT_RUN
from statmech_attn.studies.dmft_tables import BifurcationRun, BifurcationStudy


TURNS = 256  # of the clock that the recorded tail of a window holds at least
SWEEP_WORK = 1e8  # plain steps of a batch of columns between two stored states


def work(study: BifurcationStudy, batch: int | None = None) -> "GridWork":
    """The kind of scan that a study asks for.

    Args:
        batch: see `Work`; chosen for this device when omitted.
    """
    if study.run.refine:
        return RefinedWork(study, batch)
    if (study.run.start or "").startswith("continue"):
        return SweepWork(study, batch)
    return GridWork(study, batch)


class GridWork(Confirming):
    """Every point of a grid, each on its own; a `scan.work.Work`."""

    title = "bifurcation"
    empty: Mapping[str, int] = {
        "phase": phases.UNSETTLED, "phase_paper": phases.UNSETTLED, "stayed": NOT_RUN,
    }  # fmt: skip

    def __init__(self, study: BifurcationStudy, batch: int | None = None):
        super().__init__()
        self.made = build.model(study.network)
        self.options = study.run
        self.axes = build.axes(study.parameters, self.made.file)
        self.system = dmft.system(self.made.net, self._largest_epsilon())
        self.plan = plan(self.options, self.made.net)
        self.plan.check(self.made.net.dimension, self.made.net.context)
        free = self.system.any_width
        self.batch = batch or lanes_for(self.most, any_width=free)

    @property
    def most(self) -> int:
        """The largest number of points that may be computed."""
        return int(np.prod(self.axes.shape)) * self.options.starts

    def _largest_epsilon(self) -> float:
        scanned = dict(zip(self.axes.names, self.axes.values, strict=True))
        return float(np.max((self.axes.fixed | scanned)["epsilon"]))

    @property
    def total(self) -> int | None:
        return self.most if self.options.confirm is None else None

    def scan_points(self, round: int, earlier: Results) -> int | None:
        return self.most if round == 0 else None

    def scan_payload(self, chunk: Chunk, earlier: Results) -> Any:
        return None

    def scan_compute(self, chunk: Chunk, payload: Any, tick: Tick) -> Arrays:
        points = self._at(self.axes, np.arange(chunk.first, chunk.stop))
        return self._scanned_rows(points, run(self.scan, points, self._in_points(tick)))

    def scan_rows(self, results: Results) -> Rows:
        return self.first_rounds(results)

    def index(self) -> np.ndarray:
        return np.indices(self.axes.shape).reshape(len(self.axes.shape), -1).T

    def _scanned_rows(self, points: Points, outcome: Outcome) -> Arrays:
        found = rows(outcome)
        if self.options.confirm is not None:
            found |= ends(outcome, points.params)
        return found

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        if "finite" not in arrays:  # rows that were run again
            return np.zeros(len(arrays["stayed"]), bool)
        return ~arrays["finite"]

    def pilot(self) -> Pilot:
        lanes = self.scan.lanes
        points = self._at(self.axes, np.zeros(lanes, int))
        return Pilot(
            self.scan.pilot(points) / lanes,
            self.scan.working_memory(),
            self.scan.bytes_per_point(),
            self._without(),
        )

    def _without(self) -> str:
        """What a pilot does not see."""
        asked = self.options.confirm is not None
        words = [
            *(["extensions"] if self.plan.max_doublings else []),
            *(["doubtful points that are run again"] if asked else []),
        ]
        return " and ".join(words)

    def assemble(self, results: Results) -> Assembled:
        return assembled(self, self.judged(results))

    @once
    def scan(self) -> Scan:
        """The compiled stages."""
        points = self._at(self.axes, np.zeros(self.batch, int))
        return Scan(self.system, self.plan, points, self.batch)

    def _in_points(self, tick: Tick) -> Tick:
        each = self.scan.work_per_point()
        return lambda work: tick(work / each)

    def _at(self, axes: build.Axes, numbers: np.ndarray) -> Points:
        """Points of the grid of `axes` by their numbers, starts fastest.

        Made a batch at a time, so that one size is compiled.
        """
        index = np.stack(np.unravel_index(numbers // self.options.starts, axes.shape))
        return self._points(axes, index.T, numbers % self.options.starts)

    def _points(self, axes, index: np.ndarray, start: np.ndarray) -> Points:
        parts = []
        for first in range(0, len(index), self.batch):
            rows = np.arange(first, first + self.batch).clip(max=len(index) - 1)
            params = axes.at(index[rows])
            states = build.starts(self.options, self.made, params, start[rows])
            parts.append(jax.tree.map(np.asarray, (params, states)))
        join = lambda *xs: np.concatenate(xs, axis=-1) if xs[0].ndim else xs[0]
        return Points(*jax.tree.map(join, *parts)).take(np.arange(len(index)))


class RefinedWork(GridWork):
    """A coarse grid, and midpoints where neighbours differ, round after round."""

    def __init__(self, study: BifurcationStudy, batch: int | None = None):
        super().__init__(study, batch)
        self.grid = Grid(self.axes.shape, self.options.refine)
        self.finest = self.axes.refined(self.options.refine)
        self._cells = Cells(self.grid)
        self._rounds = [self.grid.coarse()]

    @property
    def total(self) -> None:
        return None

    def pilot(self) -> Pilot:
        return super().pilot()._replace(most=self.grid.size * self.options.starts)

    def scan_points(self, round: int, earlier: Results) -> int | None:
        while round >= len(self._rounds):
            last = len(self._rounds) - 1
            labels = earlier.column("label", last).reshape(-1, self.options.starts)
            self._cells.put(self._rounds[last], labels)
            self._rounds.append(self._cells.halve())
        return len(self._rounds[round]) * self.options.starts or None

    def scan_payload(self, chunk: Chunk, earlier: Results) -> np.ndarray:
        rows = np.arange(chunk.first, chunk.stop) // self.options.starts
        return self._rounds[chunk.round][rows]

    def scan_compute(self, chunk: Chunk, payload: np.ndarray, tick: Tick) -> Arrays:
        start = np.arange(chunk.first, chunk.stop) % self.options.starts
        points = self._points(self.finest, payload, start)
        outcome = run(self.scan, points, self._in_points(tick))
        found = self._scanned_rows(points, outcome)
        return found | {"label": labels(outcome.verdicts)}

    def index(self) -> np.ndarray:
        return np.concatenate([x for x in self._rounds if len(x)])

    def assemble(self, results: Results) -> Assembled:
        places = computed(self.grid, self.finest, self.index())
        return assembled(self, self.judged(results), places)


class SweepWork(GridWork):
    """Attractors followed along the first axis; a point is a column of the grid.

    A row holds a column at the `span` values of its round; in the last round it is
    filled up with the last value.
    """

    def __init__(self, study: BifurcationStudy, batch: int | None = None):
        super().__init__(study, batch)
        steps = self.plan.transient + self.plan.steps * (
            4 if self.plan.exponents else 1
        )
        span = int(SWEEP_WORK // (steps * max(self.batch, 8)))
        self.span = min(max(span, 1), self.axes.shape[0])
        upward = np.argsort(self.axes.values[0])
        self.along = upward if self.options.start == "continue-up" else upward[::-1]

    @property
    def most(self) -> int:
        return int(np.prod(self.axes.shape[1:])) * self.options.starts

    @property
    def total(self) -> int | None:
        return None if self.options.confirm else self.most * self.rounds

    @property
    def rounds(self) -> int:
        return -(-self.axes.shape[0] // self.span)

    def scan_points(self, round: int, earlier: Results) -> int | None:
        return self.most if round < self.rounds else None

    def scan_payload(self, chunk: Chunk, earlier: Results) -> Arrays:
        """States that the columns of a chunk start from; none in the first round."""
        if chunk.round == 0:
            return {}
        place = chunk.round - 1, chunk.first, chunk.stop
        return {name: earlier.rows(name, *place) for name in STATE}

    def scan_compute(self, chunk: Chunk, payload: Arrays, tick: Tick) -> Arrays:
        columns = np.arange(chunk.first, chunk.stop)
        tick = self._in_points(tick)
        starts = _state(payload) if payload else None
        found = []
        for place in self.along[chunk.round * self.span :][: self.span]:
            points = self._at(self.axes, place * self.most + columns)
            if starts is not None:
                points = points._replace(starts=starts)
            outcome = run(self.scan, points, lambda work: tick(work / self.span))
            starts = outcome.final
            found.append(self._scanned_rows(points, outcome))
        found += [found[-1]] * (self.span - len(found))
        together = {n: np.stack([x[n] for x in found], axis=1) for n in found[0]}
        assert starts is not None
        return together | _state_rows(starts, len(columns))

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        missing = super().not_finite(arrays)
        return np.any(missing.reshape(len(missing), -1), axis=1)

    def scan_rows(self, results: Results) -> Rows:
        return Unrolled(self.first_rounds(results), self)

    def pilot(self) -> Pilot:
        """A point is a column at `span` values."""
        one = super().pilot()
        return one._replace(
            seconds=self.span * one.seconds, stored=self.span * one.stored
        )


class Unrolled:
    """`Results` of a sweep, a row for each point of the grid."""

    def __init__(self, results: Results, work: SweepWork):
        self._results, self._work = results, work

    def column(self, name: str) -> np.ndarray:
        return self._in_order(
            [self._results.column(name, b) for b in range(self._work.rounds)]
        )

    def _in_order(self, rounds: list[np.ndarray]) -> np.ndarray:
        """Rows of all rounds, (columns, span, ...), as (points, ...)."""
        work = self._work
        along = np.concatenate(rounds, axis=1)[:, : len(work.along)]
        found = np.empty_like(along)
        found[:, work.along] = along
        return np.moveaxis(found, 1, 0).reshape(-1, *along.shape[2:])

    def blocks(self, name: str):
        yield self.column(name)

    def like(self, name: str) -> np.ndarray:
        return self._results.like(name)[:, 0]

    def failure(self) -> np.ndarray:
        """A column that raised did so as a whole; others may end on the way."""
        codes = self._results.failure().reshape(self._work.rounds, -1, 1)
        raised = self._in_order(list(np.repeat(codes, self._work.span, axis=2)))
        lost = np.where(raised == RAISED, RAISED, NOT_FINITE)
        return np.where(self.column("finite"), COMPUTED, lost).astype(np.int8)

    def reasons(self) -> list[str]:
        return self._results.reasons()


STATE = tuple(f"state_{field.name}" for field in dataclasses.fields(State))


def _state_rows(state: State, count: int) -> Arrays:
    """A state as rows of its points; what is the same for all is repeated."""
    leaves = [np.asarray(getattr(state, name.removeprefix("state_"))) for name in STATE]
    return {
        name: np.moveaxis(x, -1, 0) if x.ndim else np.repeat(x, count)
        for name, x in zip(STATE, leaves, strict=True)
    }


def _state(rows: Arrays) -> State:
    """The state of these rows; what is the same for all is 0 in those that failed."""
    back = lambda x: np.moveaxis(x, 0, -1) if x.ndim > 1 else x.max()
    return State(*(jnp.asarray(back(rows[name])) for name in STATE))


def labels(verdicts: Verdicts | None) -> np.ndarray:
    """One number for each point; neighbours with different ones are refined.

    They differ by phase, by period, and on tori by the number of zero exponents.
    """
    assert verdicts is not None
    phase, period = np.asarray(verdicts.phase), np.asarray(verdicts.period)
    zeros = np.where(phase == phases.QUASIPERIODIC, verdicts.evidence.zeros, 0)
    return (period * (1 + verdicts.exponents.shape[0]) + zeros) * len(PHASES) + phase


def plan(options: BifurcationRun, net: Network) -> Plan:
    """Numerical choices of a scan from the keys of [run]."""
    exponents = net.dimension if options.exponents == "all" else options.exponents
    return Plan(
        tail=max(Plan().tail, TURNS * net.context),
        transient=options.transient,
        steps=options.steps,
        exponents=exponents,
        max_doublings=options.max_doublings if options.extend else 0,
        section_tolerance=options.section_tolerance,
        section_samples=options.section_samples,
        strobe_samples=options.strobe_samples,
    )
