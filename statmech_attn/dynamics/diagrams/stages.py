r"""The compiled stages of a diagram: phases, exponents and sections of many points.

Every point goes through the same stages: a transient, a window with tangent frame and
its tail (`phases.examine`), doubled while undecided, and a recorded stretch for the
bifurcation diagram: the values of one displayed coordinate where another is near or
crosses a value, and those at the clock's phase 0.  No trajectory is stored.
"""

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn.batches import (
    lanes_for,
    lanes_that_fit,
    resolve_compiler,
    seconds_of,
    Stage,
    workers,
)
from statmech_attn.dynamics import cycles, lyapunov, phases
from statmech_attn.dynamics.diagrams import cycle_exponents
from statmech_attn.dynamics.diagrams.kept_stages import origin_of
from statmech_attn.dynamics.diagrams.points import Bend, gather, Points, put, Verdicts
from statmech_attn.dynamics.diagrams.sections import Sections
from statmech_attn.dynamics.finite_exponents import finite_exponents
from statmech_attn.dynamics.options import Plan
from statmech_attn.dynamics.systems import as_system, System


SEGMENT = 1024  # steps recorded at a time in the section stage
PIECE = 8192  # steps of a transient between two looks at the stop signal
FEW = 6  # exponents that are orthonormalised at every step
READING = 3.0  # plain steps that entropy production of one costs, as measured
FEWEST = 8  # points of a sample that stand for a part of the grid
Tick = Callable[[float], None]


class Fit(NamedTuple):
    """What a system and a state of it come to."""

    dimension: int  # coordinates of a state
    displayed: int  # coordinates that a diagram may show
    turn: int  # steps after which the drive and the layout of a state repeat


def fitted(system: System, plan: Plan, point: Points) -> Fit:
    """Check that system, plan and a point go together.

    Raises:
        ValueError: a system that changes the form of its state or has a drive without
            a clock, or a plan that does not fit it.
    """
    if system.drive_period > 1 and system.clock is None:
        raise ValueError(
            "a system with a drive_period needs a clock (state -> phase) for a "
            "diagram, which records at its phase 0."
        )
    params, state = jax.tree.map(jnp.asarray, tuple(point))
    system.check(state, params)
    map = system.beside(params)
    turn = math.lcm(system.drive_period, map.layout_period)
    dimension = jax.eval_shape(map.vector, state).shape[0]
    displayed = jax.eval_shape(system.shown, state, params).shape[0]
    plan.check(dimension, turn)
    if plan.value >= displayed:
        raise ValueError(
            f"value must lie in 0..{displayed - 1}, the coordinates that the system "
            f"displays; got {plan.value}."
        )
    return Fit(dimension, displayed, turn)


def irreversible(system: System, plan: Plan) -> bool:
    """Whether a diagram averages the entropy production of a system."""
    asked = plan.exponents and plan.entropy_production
    return bool(asked) and system.entropy_production is not None


class Times(NamedTuple):
    """What a batch takes, in seconds.

    Attributes:
        batch: without extensions.
        extension: of the points whose window is doubled, in a batch.
        unsettled: share of the points whose first window leaves them undecided.
        narrow: to compile the programs for few points.
        verdicts: of the points after a short window; None without exponents.
        step: a plain step.
        tangent_step: a step with its tangent frame.
    """

    batch: float
    extension: float = 0.0
    unsettled: float = 0.0
    narrow: float = 0.0
    verdicts: Verdicts | None = None
    step: float = 0.0
    tangent_step: float = 0.0


def shares_of_parts(undecided: np.ndarray, parts: int) -> np.ndarray:
    """Share of the points that need longer windows in every part of a grid.

    They are often neighbours, and share a batch, which costs less than one in each.

    Args:
        undecided: of a sample, in the order of the grid.
        parts: of the grid, at most one for every `FEWEST` points of the sample.
    """
    parts = max(min(parts, undecided.size // FEWEST), 1)
    few = 1 / parts  # one in all parts together: none is never none
    chosen = np.array_split(undecided, parts)
    return np.array([(part.sum() + few) / (part.size + few) for part in chosen])


def _untold(work: float) -> None:
    """Progress that nobody is told of."""


class Scan:
    """Compiled stages of a diagram; build once, run on any number of points.

    Args:
        points: examples, as many as will be run at once.
        lanes: points of a batch; chosen for so many points when omitted.

    Attributes:
        compiler: what made the stages, and why.

    Raises:
        ValueError: a system that changes the form of its state or has a drive without
            a clock, or a plan that does not fit it.
    """

    def __init__(
        self,
        system: Callable[..., PyTree] | System,
        plan: Plan,
        points: Points,
        lanes: int | None = None,
    ):
        self.system, self.plan = as_system(system), plan
        self.drive_period = self.system.drive_period
        first = points.take(np.zeros(1, int))
        fit = fitted(self.system, plan, first)
        self.turn, self.displayed = fit.turn, fit.displayed
        self.irreversible = irreversible(self.system, plan)
        self.rank = finite_exponents(self.system.beside(first.params), first.starts)
        self.arrays, self._system_of = self.system.split()
        self._longer = 0.0  # work of doubled windows over the rest, by the pilot
        any_width = self.system.any_width
        self.lanes = lanes or lanes_for(points.size, any_width=any_width)
        compile = partial(self._compile, points)
        self.compiler = resolve_compiler(plan.compiler, compile)
        fit = lanes_that_fit(self.lanes, self.working_memory())
        if fit < self.lanes:
            self.lanes = fit
            resolve_compiler(self.compiler.name, compile)

    def _compile(self, points: Points, native: bool) -> None:
        """Make all stages, the longest program first: it may be too long for LLVM."""
        batch = lambda lanes: (self.arrays, *points.take(np.zeros(lanes, int)))
        number, cap = jnp.asarray(1), jnp.asarray(False)
        numbers = self.plan, self.turn, self.displayed, self.rank
        origin = origin_of(self.system, *numbers)
        stage = lambda function, *rest, judge=None: Stage(
            judge if native else function,
            lambda lanes: (*batch(lanes), *rest),
            self.lanes,
            shared=1,
            any_width=self.system.any_width,
            native=function if native else None,
            origin=origin,
        )
        if self.plan.exponents:
            window = self._measured if native else self._windowed
            self.examine = stage(window, number, cap, judge=self._judged)
        self.advance = stage(self._advanced, number)
        self.record = stage(self._recorded)
        self.sections = Sections(self.plan, self.lanes, SEGMENT)
        if self.plan.exponents:
            self.cycle = cycle_exponents.stage(
                self.system, self.plan.exponents, points, self.lanes, origin
            )
        if self.irreversible:
            self.production = stage(self._produced, number)

    def _produced(self, arrays, params, state, per_block):
        system = self._system_of(arrays)
        averages, weighted = system.produced(state, params, per_block)
        mean, stderr = lyapunov.mean_of_blocks(averages, weighted)
        return mean, weighted, stderr

    def _advanced(self, arrays, params, state, steps):
        system = self._system_of(arrays)
        step = lambda _, state: system.steps(state, params)
        return jax.lax.fori_loop(0, steps, step, state)

    def _windowed(self, arrays, params, state, per_block, at_cap):
        system, plan = self._system_of(arrays), self.plan
        state, spectrum, witnesses, bend = phases.examine(
            system.beside(params),
            state,
            observe=system.seen,
            k=plan.exponents,
            per_block=per_block,
            every=self._every,
            spacing=self._spacing,
            tail=self._tail,
            drive_period=self.drive_period,
            criteria=plan.criteria,
        )
        verdicts = self._verdicts(spectrum, witnesses, per_block, at_cap)
        return state, bend, verdicts

    def _measured(self, arrays, params, state, per_block, at_cap):
        """What a native program computes of a window and its tail."""
        system = self._system_of(arrays)
        map, every, k = system.beside(params), self._every, self.plan.exponents
        middle, frame, sums = phases.measure(
            map, state, system.seen, k, per_block, every, self._spacing
        )
        state, series = phases.record(map, middle, system.seen, self._tail)
        return state, (middle, frame), sums, series, per_block, at_cap

    def _judged(self, state, bend, sums, series, per_block, at_cap):
        """What is left of `_windowed` after `_measured`."""
        criteria, drive_period = self.plan.criteria, self.drive_period
        spectrum = lyapunov.summarise(
            sums,
            per_block=per_block,
            every=self._every,
            rank=self.rank,
            dimension=bend[1].shape[0],
        )
        witnesses = phases.weigh(
            spectrum, sums, series, per_block, drive_period, criteria
        )
        verdicts = self._verdicts(spectrum, witnesses, per_block, at_cap)
        return state, bend, verdicts

    def _verdicts(self, spectrum, witnesses, per_block, at_cap) -> Verdicts:
        verdict = phases.decide(
            spectrum, witnesses, self.plan.criteria, self.drive_period, at_cap
        )
        every_lane = lambda x: jnp.full(spectrum.exponents.shape[1:], x)
        volume = spectrum.log_det
        aligned = lyapunov.alignment(per_block, self._every) * self._every
        return Verdicts(
            *verdict,
            witnesses,
            spectrum.exponents,
            spectrum.weighted,
            spectrum.stderr,
            jnp.full(spectrum.exponents.shape, cycles.SOURCES.index("average")),
            every_lane(jnp.nan) if volume is None else volume,
            every_lane(jnp.nan) if volume is None else spectrum.sum_rule,
            every_lane(spectrum.steps),
            every_lane(aligned + spectrum.steps + self._tail),
            phases.as_in_paper(spectrum),
        )

    def _recorded(self, arrays, params, state):
        system, plan = self._system_of(arrays), self.plan
        on = min(plan.on, self.displayed - 1)

        def body(state, _):
            displayed = system.shown(state, params)
            clock = jnp.array(0) if system.clock is None else system.clock(state)
            return system.steps(state, params), (
                displayed[plan.value],
                displayed[on],
                clock,
            )

        return jax.lax.scan(body, state, None, length=SEGMENT)

    @property
    def _every(self) -> int:
        """Steps between two samples: near 4, commensurate with a short turn."""
        return self.turn * (4 // self.turn) if self.turn <= 4 else 4

    @property
    def _spacing(self) -> int:
        """Steps between Gram-Schmidt.

        A larger one hides more exponents and, for few of them, saves nothing: a step
        between two of them pushes the noise as well (docs/performance.md).
        """
        return 1 if self.plan.exponents <= FEW else self._every

    @property
    def _tail(self) -> int:
        return self.plan.tail - self.plan.tail % self.turn

    def first_window(self) -> int:
        """Turns per block of the first window; a block is whole turns."""
        return phases.turns_per_block(self.plan.steps, self._every, self.turn)

    def window_work(self) -> float:
        """Cost of the first window of a point, in plain steps."""
        return self._tangent_cost() * self.window_steps(0)

    def window_steps(self, doubling: int) -> int:
        """Steps of a window that has been doubled so often.

        Args:
            doubling: number of doublings.
        """
        return self.first_window() * lyapunov.BLOCKS * self._every * 2**doubling

    def _tangent_cost(self) -> float:
        """A step with frame in plain steps, as measured (benchmarks/lyapunov.py)."""
        return 2.6 + 0.25 * self.plan.exponents if self.plan.exponents else 0.0

    def _shortest(self) -> int:
        """Fewest turns per block that keep blocks whole turns."""
        return phases.turns_per_block(1, self._every, self.turn)

    def production_work(self) -> float:
        """Cost of the entropy production of a point, in plain steps."""
        return READING * self.production_steps if self.irreversible else 0.0

    def work_per_point(self) -> float:
        """Cost of a point in plain steps (for progress)."""
        once = self.plan.transient + self.window_work() + self.plan.steps
        return (once + self.production_work()) * (1 + self._longer)

    def pilot(self, points: Points, parts: int) -> Times:
        """Times of a batch, from short runs of points that stand for all of them.

        Args:
            points: parameters and initial conditions, in the order of the grid.
            parts: batches of the whole grid.
        """
        plan, idle = self.plan, threading.Event()
        moved = self.advanced(points, PIECE, idle, _untold)
        advance = seconds_of(lambda: self.advanced(points, PIECE, idle, _untold))
        record = seconds_of(lambda: self.section(points, idle, _untold, SEGMENT))
        seconds = plan.transient / PIECE * advance + plan.steps / SEGMENT * record
        if not plan.exponents:
            return Times(seconds)
        seconds += self.production_work() / PIECE * advance
        points = Points(points.params, moved)
        short = min(self.first_window() // 4, self._turns(PIECE))
        short = max(short, self._shortest())
        state, _, few, _ = self._timed(points, short)
        settled = Points(points.params, state)
        _, bends, many, verdicts = self._timed(settled, 2 * short)
        turn = max(many - few, 0.0) / short
        window = lambda turns: few + turn * (turns - short)
        # Assumed: a doubled window decides half of the undecided points.
        first = self.first_window()
        undecided = phases.undecided(np.asarray(verdicts.phase))
        shares = shares_of_parts(undecided, parts)
        shares = np.minimum(shares * 2 * short / first, 1.0)
        extension = 0.0
        for doubling in range(1, plan.max_doublings + 1):
            pending = shares / 2 ** (doubling - 1) * points.size
            batches = np.mean([self.examine.part_of_batch(x) for x in pending])
            extension += float(batches) * window(2**doubling * first)
        seconds += window(first)
        if parts > workers():  # for fewer they take less time than this measurement
            places = self.system, points.params, bends, verdicts
            cycles = (self.cycle, *places, self.rank)
            seconds += seconds_of(lambda: cycle_exponents.with_cycles(*cycles))
        self._longer = extension / seconds
        unsettled = float(shares.mean())
        narrow = self.examine.narrow_seconds
        steps = advance / PIECE, window(first) / self.window_steps(0)
        return Times(seconds, extension, unsettled, narrow, verdicts, *steps)

    def _timed(self, points: Points, turns: int):
        """End states of a window, where it bends, its time, and what it says."""
        window = (jnp.asarray(turns), jnp.asarray(False))
        run: list[Any] = []
        call = lambda: run.append(
            self.examine(points.size, self.arrays, *points, *window)
        )
        seconds = seconds_of(call, repeats=1)
        state, bend, verdicts = run[0]
        return state, Bend(*bend), seconds, verdicts

    def _turns(self, steps: int) -> int:
        """Turns per block of a window of so many steps."""
        return max(steps // (lyapunov.BLOCKS * self._every), 1)

    def working_memory(self) -> int:
        """Bytes that one batch needs while it is computed."""
        stages = [self.advance, self.record, self.sections]
        if self.plan.exponents:
            stages += [self.examine, self.cycle]
        if self.irreversible:
            stages += [self.production]
        return max(stage.bytes for stage in stages)

    def bytes_per_point(self) -> int:
        """Bytes stored for each point."""
        numbers = self.plan.section_samples + self.plan.strobe_samples
        return 8 * (numbers + 3 * self.plan.exponents + 20)

    def advanced(
        self, points: Points, count: int, stop: threading.Event, tick: Tick
    ) -> PyTree:
        """Advance one batch by so many steps, in pieces.

        Args:
            points: parameters and states of one batch.
            count: number of steps.
            stop: set when the run is to end.
            tick: told the steps that are done.
        """
        state, remaining = points.starts, count
        while remaining > 0 and not stop.is_set():
            piece = min(PIECE, remaining)
            steps = jnp.asarray(piece)
            state = self.advance(points.size, self.arrays, points.params, state, steps)
            remaining -= piece
            tick(piece)
        return state

    def window(self, points: Points, doubling: int):
        """One window of one batch; returns end states and verdicts.

        Args:
            points: parameters and states of one batch.
            doubling: number of doublings of the window.
        """
        per_block = jnp.asarray(self.first_window() * 2**doubling)
        at_cap = jnp.asarray(doubling >= self.plan.max_doublings)
        return self.examine(points.size, self.arrays, *points, per_block, at_cap)

    @property
    def glance_steps(self) -> int:
        """Steps of a short window and its tail."""
        return self._glance() * lyapunov.BLOCKS * self._every + self._tail

    def _glance(self) -> int:
        """Turns per block of a short window: a quarter of the first one."""
        steps = max(self.plan.steps // 4, 1)
        return phases.turns_per_block(steps, self._every, self.turn)

    def glance(self, points: Points):
        """A short window of one batch; returns what `window` does.

        Args:
            points: parameters and states of one batch.
        """
        per_block, cap = jnp.asarray(self._glance()), jnp.asarray(True)
        return self.examine(points.size, self.arrays, *points, per_block, cap)

    def produced(self, points: Points) -> tuple[Any, Any, Any]:
        """Entropy production of one batch: average, weighted average and error.

        Args:
            points: parameters and states of one batch.
        """
        per_block = jnp.asarray(self._glance() * self._every)
        return self.production(points.size, self.arrays, *points, per_block)

    @property
    def production_steps(self) -> int:
        """Steps over which entropy production is averaged."""
        return self._glance() * lyapunov.BLOCKS * self._every

    def section(
        self,
        points: Points,
        stop: threading.Event,
        tick: Tick,
        steps: int | None = None,
    ):
        """Record steps of one batch (all where None) and keep what is on sections.

        Args:
            points: parameters and states of one batch.
            stop: set when the run is to end.
            tick: told the steps that are done.
            steps: that are recorded; None for all.
        """
        plan, state, lanes = self.plan, points.starts, points.size
        steps = plan.steps if steps is None else steps
        samples = self.sections.buffer(lanes)
        strobe = np.full((plan.strobe_samples, lanes), np.nan)
        for first_step in range(0, steps, SEGMENT):
            if stop.is_set():
                break
            state, observed = self.record(lanes, self.arrays, points.params, state)
            first, second, clock = observed
            length = min(SEGMENT, steps - first_step)
            samples.add(first, second, length)
            at_zero = np.asarray(clock)[:length] % self.drive_period == 0
            latest = np.flatnonzero(at_zero)[-plan.strobe_samples :]
            recent = np.concatenate([strobe, samples.rows(first, latest)])
            strobe = recent[len(recent) - plan.strobe_samples :]
            tick(length)
        return state, samples.values, samples.count, strobe


class Outcome(NamedTuple):
    """Result of a scan; points first in sections, on the last axis elsewhere.

    Attributes:
        section: samples on the section.
        section_count: number of samples that were met on the section.
        strobe: stroboscopic samples.
        verdicts: phases with their evidence; None where no exponents were asked for.
        final: states at the end.
        production: of entropy: average, weighted average and error; None where it was
            not averaged.
    """

    section: np.ndarray
    section_count: np.ndarray
    strobe: np.ndarray
    verdicts: Verdicts | None
    final: PyTree
    production: tuple[np.ndarray, np.ndarray, np.ndarray] | None


def run(scan: Scan, points: Points, tick: Tick = lambda work: None) -> Outcome:
    """Take all points through all stages, undecided ones also through longer windows.

    Args:
        scan: the compiled stages.
        points: parameters and initial conditions.
        tick: told the steps that are done.

    Returns:
        `Outcome`: the rows of all points.

    Example:
        `run(Scan(system, plan, points, batch), points)`, as `diagram` does.
    """
    everyone, plan = np.arange(points.size), scan.plan

    def transient(batch, real, stop):
        after = lambda steps: tick(steps * real)
        return scan.advanced(batch, plan.transient, stop, after)

    def section(batch, real, stop):
        return scan.section(batch, stop, lambda steps: tick(steps * real))

    def produced(batch, real, stop):
        tick(scan.production_work() * real)
        return scan.produced(batch)

    starts = gather(scan.advance, plan.transient, points, everyone, transient)
    points = Points(points.params, starts)
    verdicts = production = None
    if plan.exponents:
        points, verdicts = classified(scan, points, tick)
    if scan.irreversible:
        steps = scan.production_steps
        production = gather(scan.production, steps, points, everyone, produced)
    recorded = gather(scan.record, plan.steps, points, everyone, section)
    final, hits, count, strobe = recorded
    return Outcome(hits.T, count, strobe.T, verdicts, final, production)


class Windowed(NamedTuple):
    """Points after a window: where they are, what it said, who needs a longer one."""

    points: Points
    verdicts: Verdicts
    bends: Bend
    pending: np.ndarray


def classified(scan: Scan, points: Points, tick: Tick) -> tuple[Points, Verdicts]:
    """First window for all, doubled windows for the unsettled, until the cap.

    Args:
        scan: the compiled stages.
        points: parameters and states.
        tick: told the work that is done, in plain steps.

    Returns:
        The points where their windows ended, and the verdicts.
    """

    def window(points: Points, pending: np.ndarray, doubling: int):
        def job(batch, real, stop):
            outcome = scan.window(batch, doubling)
            work = scan.window_work() * 2**doubling
            tick(work * (scan.examine.cost(batch.size) if doubling else real))
            return outcome

        steps = scan.window_steps(doubling)
        state, bend, latest = gather(scan.examine, steps, points, pending, job)
        undecided = pending[phases.undecided(latest.phase)]
        points = Points(points.params, put(points.starts, state, pending))
        return points, latest, Bend(*bend), undecided

    def longer(before: Windowed, doubling: int) -> Windowed:
        pending = before.pending
        points, latest, bend, undecided = window(before.points, pending, doubling)
        horizon = latest.horizon + before.verdicts.horizon[pending]
        verdicts = put(before.verdicts, latest._replace(horizon=horizon), pending)
        verdicts = verdicts._replace(phase_paper=before.verdicts.phase_paper)
        bends = put(before.bends, bend, pending)
        return Windowed(points, verdicts, bends, undecided)

    points, first, bends, undecided = window(points, np.arange(points.size), 0)
    first = first._replace(horizon=first.horizon + scan.plan.transient)
    last = phases.extended(
        Windowed(points, first, bends, undecided),
        longer,
        lambda windowed: windowed.pending.size > 0,
        scan.plan.max_doublings,
        loop=phases.repeated,
    )
    verdicts = cycle_exponents.with_cycles(
        scan.cycle,
        scan.system,
        points.params,
        last.bends,
        last.verdicts,
        scan.rank,
    )
    return last.points, verdicts
