"""Diagrams as work in chunks: grids, refined grids, sweeps.

A point is a point of the grid with one of its starts, starts fastest.

* A grid has one round.
* A refined grid begins with the coarse one; a round holds the midpoints that the labels
  of the rounds before ask for.
* A sweep follows attractors along the first axis.  Every column (a point of the other
  axis, and a start) is followed on its own; a round goes a few values further with all
  columns, from the states that the round before ended in.
"""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from statmech_attn.batches import (
    Compiler,
    lanes_for,
    once,
    require_native,
    stored_compiler,
)
from statmech_attn.dynamics.diagrams.axes import Axes
from statmech_attn.dynamics.diagrams.confirmation.rounds import (
    ConfirmationRounds,
    ends,
    REPEATS,
)
from statmech_attn.dynamics.diagrams.refinement import Cells, Grid
from statmech_attn.dynamics.diagrams.rows import (
    assembled,
    computed,
    Diagram,
    Rows,
    rows,
    tree_names,
    tree_of,
    tree_rows,
)
from statmech_attn.dynamics.diagrams.stages.batch_times import batch_times, Times
from statmech_attn.dynamics.diagrams.stages.lanes import Points, Verdicts
from statmech_attn.dynamics.diagrams.stages.outcomes import Outcome, run
from statmech_attn.dynamics.diagrams.stages.stages import fitted, Scan
from statmech_attn.dynamics.motion import phases
from statmech_attn.dynamics.motion.phases import PHASES
from statmech_attn.dynamics.options import Plan
from statmech_attn.options import Count
from statmech_attn.scan import (
    Arrays,
    Assembled,
    Chunk,
    Computation,
    COMPUTED,
    NOT_FINITE,
    Pilot,
    RAISED,
    Results,
    Tick,
)


STATE = "state"  # of the rows that hold the state at the end of a round
HALVED = 0.8  # of the parts of a halved cell: 0.6 along lines, 0.9 in chaos
SWEEP_WORK = 1e8  # plain steps of a batch of columns between two stored states


def diagram_work(
    diagram: Diagram, batch: Count | None = None, compiler: Compiler | None = None
) -> "GridWork":
    """The kind of work that a diagram asks for.

    Args:
        diagram: system, grid and plan.
        batch: see `Work`; chosen for this device when omitted.
        compiler: of a run that was begun; found when programs are made when omitted.

    Returns:
        `GridWork`: `compute()` gives the data set, `run(path)` also writes it.

    Example:
        `diagram_work(posed).compute()` computes what a `Diagram` asks for.
    """
    kind = RefinedWork if diagram.refine else SweepWork if diagram.sweep else GridWork
    return kind(diagram, batch, compiler)


class GridWork(ConfirmationRounds, Computation):
    """Every point of a grid, each on its own; a `scan.Work`.

    Attributes:
        empty: what integer columns hold for points that were not computed.
    """

    title = "diagram"
    empty: Mapping[str, int] = {
        "phase": phases.UNDETERMINED,
        "phase_paper": phases.UNDETERMINED,
    }

    def __init__(
        self,
        diagram: Diagram,
        batch: int | None = None,
        compiler: Compiler | None = None,
    ):
        super().__init__()
        self.diagram, self._compiler = diagram, compiler
        if self.plan.compiler == "llvm":
            require_native()
        free = diagram.system.any_width
        self.batch = batch or lanes_for(self.most, any_width=free)
        assert self.dimension  # a system that does not fit is refused here

    @property
    def axes(self) -> Axes:
        return self.diagram.axes

    @property
    def plan(self) -> Plan:
        """That of the diagram, with the compiler of a run that was begun."""
        plan, compiler = self.diagram.plan, self._compiler
        return replace(plan, compiler=compiler.name) if compiler else plan

    @property
    def lost(self) -> str:
        name = self.diagram.attributes.get("system")
        return f"{name} diverges" if name else super().lost

    @once
    def example(self) -> Points:
        """The first point."""
        numbers = np.zeros(1, int)
        first = self.axes.at(np.zeros((1, len(self.axes.shape)), int))
        return Points(first, self.diagram.start(first, numbers))

    @once
    def dimension(self) -> int:
        """Coordinates of a state."""
        return fitted(self.diagram.system, self.plan, self.example).dimension

    def with_batch(self, batch: int | None) -> "GridWork":
        return diagram_work(self.diagram, batch)

    @property
    def compiler(self) -> Compiler:
        """What makes the programs; found by making them, unless a run was begun."""
        return self._compiler or self.scan.compiler

    @property
    def decisions(self) -> dict[str, str]:
        return self.compiler.stored()

    def with_decisions(self, decisions: Mapping[str, str]) -> "GridWork":
        compiler = stored_compiler(self.diagram.plan.compiler, decisions)
        return diagram_work(self.diagram, self.batch, compiler)

    @property
    def most(self) -> int:
        """The largest number of points that may be computed."""
        return self._most_points()

    @property
    def total(self) -> int | None:
        return self.most

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
        arrays = rows(outcome)
        if self.diagram.again is not None:
            arrays |= ends(outcome, points)
        return arrays

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        if "finite" not in arrays:  # rows that were run again
            return np.zeros(len(arrays[REPEATS]), bool)
        return ~arrays["finite"]

    def pilot(self) -> Pilot:
        lanes = self.scan.lanes
        sample = self._at(self.axes, self._sample(lanes))
        times = batch_times(self.scan, sample, -(-self.most // lanes))
        assumes = f"{times.unsettled:.2g} of the points need longer windows"
        again, points = self.diagram.again, self._most_points()
        return Pilot(
            (times.batch + times.extension) / lanes,
            self.scan.working_memory(),
            self.scan.bytes_per_point(),
            "doubtful points that are run again" if again else "",
            fixed=times.narrow if times.extension else 0.0,
            assumes=assumes if self.plan.max_doublings else "",
            by=self.compiler.text,
            expected=self._expected(times),
            later=self.expected_again(times, points) if again else 0.0,
            more=self.longest(times, points) if again else 0.0,
        )

    def _most_points(self) -> int:
        """Points of the grid, each with its starts."""
        return int(np.prod(self.axes.shape)) * self.diagram.starts

    def _sample(self, count: int) -> np.ndarray:
        """Numbers of points that stand for all of them."""
        return np.linspace(0, self.most - 1, count).round().astype(int)

    def _expected(self, times: Times) -> int | None:
        """Points of all rounds, as far as the sample tells."""
        return None

    def assemble(self, results: Results) -> Assembled:
        rows = self.judged(results)
        return assembled(self.diagram, self.dimension, rows, self.compiler)

    def at(self, *values: np.ndarray) -> "GridWork":
        """The same scan at other values of its parameters, with compiled programs."""
        assert self.scan  # compiled before it is shared
        copied = copy.copy(self)
        ConfirmationRounds.__init__(copied)
        axes = self.axes._replace(values=values)
        copied.diagram = self.diagram._replace(axes=axes)
        return copied

    def lanes(self) -> Points:
        """The first point in every lane of a batch."""
        return self._at(self.axes, np.zeros(self.batch, int))

    @once
    def scan(self) -> Scan:
        """The compiled stages that every point goes through."""
        return Scan(self.diagram.system, self.plan, self.lanes(), self.batch)

    def _in_points(self, tick: Tick) -> Tick:
        per_point = self.scan.work_per_point()
        return lambda work: tick(work / per_point)

    def _at(self, axes: Axes, numbers: np.ndarray) -> Points:
        """Points of the grid of `axes` by their numbers, starts fastest.

        Made a batch at a time, so that one size is compiled.
        """
        index = np.stack(np.unravel_index(numbers // self.diagram.starts, axes.shape))
        return self._points(axes, index.T, numbers % self.diagram.starts)

    def _points(self, axes, index: np.ndarray, start: np.ndarray) -> Points:
        parts = []
        for first in range(0, len(index), self.batch):
            rows = np.arange(first, first + self.batch).clip(max=len(index) - 1)
            params = axes.at(index[rows])
            states = self.diagram.start(params, start[rows])
            parts.append(jax.tree.map(np.asarray, (params, states)))
        join = lambda *xs: np.concatenate(xs, axis=-1) if xs[0].ndim else xs[0]
        return Points(*jax.tree.map(join, *parts)).take(np.arange(len(index)))


class RefinedWork(GridWork):
    """A coarse grid, and midpoints where neighbours differ, round after round."""

    def __init__(self, diagram: Diagram, *choices: Any):
        super().__init__(diagram, *choices)
        self._grid = Grid(self.axes.shape, self.diagram.refine)
        self._finest = self.axes.refined(self.diagram.refine)
        self._cells = Cells(self._grid)
        self._rounds = [self._grid.coarse()]

    @property
    def total(self) -> None:
        return None

    def pilot(self) -> Pilot:
        most = self._grid.size * self.diagram.starts
        assumes = "boundaries of phases are as in a sample of neighbours"
        window = super().pilot()
        words = ", ".join(filter(None, (window.assumes, assumes)))
        return window._replace(most=most, assumes=words)

    def _sample(self, count: int) -> np.ndarray:
        """Pairs of neighbours along the last axis."""
        last = self.most - 1 - self.diagram.starts
        first = np.linspace(0, max(last, 0), count // 2).round().astype(int)
        columns = np.stack([first, first + self.diagram.starts], axis=1).ravel()
        return columns.clip(max=self.most - 1)

    def _expected(self, times: Times) -> int:
        """Expected points of all levels, from the neighbouring points that differ."""
        pairs = labels(times.verdicts).reshape(-1, 2)
        dims = len(self.axes.shape)
        differ = min(dims * float(np.mean(pairs[:, 0] != pairs[:, 1])), 1.0)
        cells = float(np.prod(np.subtract(self.axes.shape, 1)))
        points = float(np.prod(self.axes.shape))
        for _ in range(self.diagram.refine):
            cells *= differ
            points += (3**dims - 1) / 2 * cells  # its share of those on its edges
            cells, differ = 2**dims * cells, HALVED
        return int(min(points, self._grid.size)) * self.diagram.starts

    def scan_points(self, round: int, earlier: Results) -> int | None:
        while round >= len(self._rounds):
            last = len(self._rounds) - 1
            labels = earlier.column("label", last).reshape(-1, self.diagram.starts)
            self._cells.put(self._rounds[last], labels)
            self._rounds.append(self._cells.halve())
        return len(self._rounds[round]) * self.diagram.starts or None

    def scan_payload(self, chunk: Chunk, earlier: Results) -> np.ndarray:
        rows = np.arange(chunk.first, chunk.stop) // self.diagram.starts
        return self._rounds[chunk.round][rows]

    def scan_compute(self, chunk: Chunk, payload: np.ndarray, tick: Tick) -> Arrays:
        start = np.arange(chunk.first, chunk.stop) % self.diagram.starts
        points = self._points(self._finest, payload, start)
        outcome = run(self.scan, points, self._in_points(tick))
        arrays = self._scanned_rows(points, outcome)
        return arrays | {"label": labels(outcome.verdicts)}

    def index(self) -> np.ndarray:
        return np.concatenate([x for x in self._rounds if len(x)])

    def assemble(self, results: Results) -> Assembled:
        places = computed(self._grid, self._finest, self.index())
        rows = self.judged(results)
        return assembled(self.diagram, self.dimension, rows, self.compiler, places)


class SweepWork(GridWork):
    """Attractors followed along the first axis; a point is a column of the grid.

    A row holds a column at the `span` values of its round; in the last round it is
    filled up with the last value.
    """

    @once
    def span(self) -> int:
        """Values of a round."""
        steps = self.plan.transient + self.plan.steps * (
            4 if self.plan.exponents else 1
        )
        span = int(SWEEP_WORK // (steps * max(self.batch, 8)))
        return min(max(span, 1), self.axes.shape[0])

    @once
    def along(self) -> np.ndarray:
        """Places of the values in the order in which they are followed."""
        upward = np.argsort(self.axes.values[0])
        return upward if self.diagram.sweep == "up" else upward[::-1]

    @property
    def most(self) -> int:
        return int(np.prod(self.axes.shape[1:])) * self.diagram.starts

    @property
    def total(self) -> int | None:
        return self.most * self.rounds

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
        names = tree_names(STATE, self.example.starts)
        return {name: earlier.rows(name, *place) for name in names}

    def scan_compute(self, chunk: Chunk, payload: Arrays, tick: Tick) -> Arrays:
        columns = np.arange(chunk.first, chunk.stop)
        tick = self._in_points(tick)
        starts = None
        if payload:  # on the host, where parts of them are taken
            states = tree_of(STATE, payload, self.example.starts)
            starts = jax.tree.map(np.asarray, states)
        swept = []
        for place in self.along[chunk.round * self.span :][: self.span]:
            points = self._at(self.axes, place * self.most + columns)
            if starts is not None:
                points = points._replace(starts=starts)
            outcome = run(self.scan, points, lambda work: tick(work / self.span))
            starts = outcome.final
            swept.append(self._scanned_rows(points, outcome))
        swept += [swept[-1]] * (self.span - len(swept))
        together = {n: np.stack([x[n] for x in swept], axis=1) for n in swept[0]}
        return together | tree_rows(STATE, starts, len(columns))

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        missing = super().not_finite(arrays)
        return np.any(missing.reshape(len(missing), -1), axis=1)

    def scan_rows(self, results: Results) -> Rows:
        return Unrolled(self.first_rounds(results), self)

    def pilot(self) -> Pilot:
        """A point is a column at `span` values."""
        point = super().pilot()
        return point._replace(
            seconds=self.span * point.seconds, stored=self.span * point.stored
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
        ordered = np.empty_like(along)
        ordered[:, work.along] = along
        return np.moveaxis(ordered, 1, 0).reshape(-1, *along.shape[2:])

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


def labels(verdicts: Verdicts | None) -> np.ndarray:
    """One number for each point; neighbours with different ones are refined.

    They differ by phase, by period, and on tori by the number of zero exponents.
    """
    assert verdicts is not None
    phase, period = np.asarray(verdicts.phase), np.asarray(verdicts.period)
    zeros = np.where(phase == phases.QUASIPERIODIC, verdicts.evidence.zeros, 0)
    return (period * (1 + verdicts.exponents.shape[0]) + zeros) * len(PHASES) + phase
