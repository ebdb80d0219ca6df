r"""The compiled stages of a diagram: phases, exponents and sections of many points.

Every point goes through the same stages: a transient, a window with tangent frame and
its tail, doubled while undecided, and a recorded stretch
for the bifurcation diagram: the values of one displayed coordinate where another is
near or crosses a value, and those at the clock's phase 0.  No trajectory is stored.
"""

import functools
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
    devices,
    lanes_for,
    lanes_that_fit,
    on_cpu,
    resolve_compiler,
    Stage,
)
from statmech_attn.dynamics.diagrams.stages import cycle_exponents
from statmech_attn.dynamics.diagrams.stages.lanes import Points, Verdicts
from statmech_attn.dynamics.diagrams.stages.recorded_sections import Sections
from statmech_attn.dynamics.diagrams.stages.stored_programs import origin_of
from statmech_attn.dynamics.exponents import cycles, lyapunov
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents
from statmech_attn.dynamics.maps.systems import as_system, System
from statmech_attn.dynamics.motion import classification, phases
from statmech_attn.dynamics.options import Criteria, Plan


SEGMENT = 1024  # steps recorded at a time in the section stage
PIECE = 8192  # steps of a transient between two looks at the stop signal
FEW = 6  # exponents that are orthonormalised at every step
READING = 3.0  # plain steps that entropy production of one costs, as measured
Tick = Callable[[float], None]


class SystemSizes(NamedTuple):
    """What a system and a state of it come to."""

    dimension: int  # coordinates of a state
    displayed: int  # coordinates that a diagram may show
    turn: int  # steps after which the drive and the layout of a state repeat


def fitted(system: System, plan: Plan, point: Points) -> SystemSizes:
    """Check that system, plan and a point go together."""
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
    return SystemSizes(dimension, displayed, turn)


def irreversible(system: System, plan: Plan) -> bool:
    """Whether a diagram averages the entropy production of a system."""
    averaged = plan.exponents and plan.entropy_production
    return bool(averaged) and system.entropy_production is not None


class VerdictSettings(NamedTuple):
    """What verdicts depend on besides the sums and the tail of a window."""

    criteria: Criteria
    drive_period: int
    every: int
    tail: int
    rank: int | None
    dimension: int


def _verdicts(how: VerdictSettings, spectrum, witnesses, per_block, at_cap) -> Verdicts:
    verdict = phases.decide(spectrum, witnesses, how.criteria, how.drive_period, at_cap)
    every_lane = lambda x: jnp.full(spectrum.exponents.shape[1:], x)
    volume = spectrum.log_det
    aligned = lyapunov.alignment(per_block, how.every) * how.every
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
        every_lane(aligned + spectrum.steps + how.tail),
        phases.paper_phase(spectrum),
    )


def _verdicts_of_sums(
    how: VerdictSettings, sums, series, per_block, at_cap
) -> Verdicts:
    """What is left of `Scan._windowed` after `Scan._measured`."""
    spectrum = lyapunov.summarise(
        sums,
        per_block=per_block,
        every=how.every,
        rank=how.rank,
        dimension=how.dimension,
    )
    witnesses = phases.weigh(
        spectrum, sums, series, per_block, how.drive_period, how.criteria
    )
    return _verdicts(how, spectrum, witnesses, per_block, at_cap)


@functools.lru_cache(maxsize=16)
def _verdict_function(how: VerdictSettings) -> Callable:
    """One function for all systems that are read alike: JAX traces it once."""
    return functools.wraps(_verdicts_of_sums)(partial(_verdicts_of_sums, how))


class Scan:
    """The compiled stages of a diagram, which run on any number of points.

    Args:
        points: examples, as many as will be run at once.
        lanes: points of a batch; chosen for so many points when omitted.

    Attributes:
        compiler: what made the stages, and why.
        longer: work of doubled windows over the rest, where `batch_times` has told.

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
        self.dimension = fit.dimension
        self.irreversible = irreversible(self.system, plan)
        self.rank = finite_exponents(self.system.beside(first.params), first.starts)
        self.arrays, self._system_of = self.system.split()
        self.longer = 0.0
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
        # Verdicts are one program for all systems, after one of the steps of a system.
        # It would have to be traced for the shapes of a program that is kept.
        apart = native or (origin is None and on_cpu() and len(devices()) == 1)

        def stage(function, *rest, judge=None):
            return Stage(
                judge if native or judge else function,
                lambda lanes: (*batch(lanes), *rest),
                self.lanes,
                shared=1,
                any_width=self.system.any_width,
                native=function if native else None,
                first=function if judge and not native else None,
                passed=2 if judge else 0,
                origin=origin,
            )

        if apart and self.plan.exponents:
            judge = _verdict_function(self._reading())
            self.examine = stage(self._measured, number, cap, judge=judge)
        elif self.plan.exponents:
            self.examine = stage(self._windowed, number, cap)
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

    def _windowed(self, *arguments):
        """A window, its tail and the verdicts on them, as one program."""
        state, bend, *window = self._measured(*arguments)
        return state, bend, _verdicts_of_sums(self._reading(), *window)

    def _measured(self, arrays, params, state, per_block, at_cap):
        """What is computed of a window and its tail by steps of the system."""
        system = self._system_of(arrays)
        map, every, k = system.beside(params), self.every, self.plan.exponents
        middle, frame, sums = classification.measure(
            map, state, system.seen, k, per_block, every, self._spacing
        )
        state, series = classification.record(map, middle, system.seen, self._tail)
        return state, (middle, frame), sums, series, per_block, at_cap

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

    def _reading(self) -> VerdictSettings:
        return VerdictSettings(
            self.plan.criteria,
            self.drive_period,
            self.every,
            self._tail,
            self.rank,
            self.dimension,
        )

    @property
    def every(self) -> int:
        """Steps between two samples: near 4, commensurate with a short turn."""
        return self.turn * (4 // self.turn) if self.turn <= 4 else 4

    @property
    def _spacing(self) -> int:
        """Steps between Gram-Schmidt.

        A larger one hides more exponents and, for few of them, saves nothing: a step
        between two of them pushes the noise as well (docs/performance.md).
        """
        return 1 if self.plan.exponents <= FEW else self.every

    @property
    def _tail(self) -> int:
        return self.plan.tail - self.plan.tail % self.turn

    def first_window(self) -> int:
        """Turns per block of the first window; a block is whole turns."""
        return classification.turns_per_block(self.plan.steps, self.every, self.turn)

    def window_work(self) -> float:
        """Cost of the first window of a point, in plain steps."""
        return self._tangent_cost() * self.window_steps(0)

    def window_steps(self, doubling: int) -> int:
        """Steps of a window that has been doubled so often.

        Args:
            doubling: number of doublings.
        """
        return self.first_window() * lyapunov.BLOCKS * self.every * 2**doubling

    def _tangent_cost(self) -> float:
        """A step with frame in plain steps, as measured (benchmarks/lyapunov.py)."""
        return 2.6 + 0.25 * self.plan.exponents if self.plan.exponents else 0.0

    def shortest(self) -> int:
        """Fewest turns per block that keep blocks whole turns."""
        return classification.turns_per_block(1, self.every, self.turn)

    def production_work(self) -> float:
        """Cost of the entropy production of a point, in plain steps."""
        return READING * self.production_steps if self.irreversible else 0.0

    def work_per_point(self) -> float:
        """Cost of a point in plain steps (for progress)."""
        once = self.plan.transient + self.window_work() + self.plan.steps
        return (once + self.production_work()) * (1 + self.longer)

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
    def short_window_steps(self) -> int:
        """Steps of a short window and its tail."""
        return self._short_window() * lyapunov.BLOCKS * self.every + self._tail

    def _short_window(self) -> int:
        """Turns per block of a short window: a quarter of the first one."""
        steps = max(self.plan.steps // 4, 1)
        return classification.turns_per_block(steps, self.every, self.turn)

    def short_window(self, points: Points):
        """A short window of one batch; returns what `window` does.

        Args:
            points: parameters and states of one batch.
        """
        per_block, cap = jnp.asarray(self._short_window()), jnp.asarray(True)
        return self.examine(points.size, self.arrays, *points, per_block, cap)

    def produced(self, points: Points) -> tuple[Any, Any, Any]:
        """Entropy production of one batch: average, weighted average and error.

        Args:
            points: parameters and states of one batch.
        """
        per_block = jnp.asarray(self._short_window() * self.every)
        return self.production(points.size, self.arrays, *points, per_block)

    @property
    def production_steps(self) -> int:
        """Steps over which entropy production is averaged."""
        return self._short_window() * lyapunov.BLOCKS * self.every

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
