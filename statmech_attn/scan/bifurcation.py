r"""Bifurcation scans of the mean-field map: phases, exponents and sections by point.

Every point goes through the same stages: a transient, a window with tangent frame and
its tail (`dynamics.phases.examine`), doubled while unsettled, and a recorded stretch
for the bifurcation diagram: the values of m^{o,SE}_1 where |m^{o,SE}_2| is below the
section tolerance, and those at the clock's phase 0.  No trajectory is stored.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.batches import lanes_for, lanes_that_fit, Stage, WRITTEN_OUT
from statmech_attn.dmft import advance, Network, observe, State, TangentMap
from statmech_attn.dynamics import cycles, lyapunov, phases
from statmech_attn.scan import of_cycles
from statmech_attn.scan.points import Bend, gather, Points, put, Verdicts


SEGMENT = 1024  # tokens recorded at a time in the section stage
PIECE = 8192  # tokens of a transient between two looks at the stop signal
FEW = 6  # exponents that are orthonormalised at every step
Tick = Callable[[float], None]


class Plan(NamedTuple):
    """Numerical choices of a scan; counts are token steps."""

    transient: int = 20_000
    steps: int = 20_000
    exponents: int = 4  # 0: no exponents, no phases
    max_doublings: int = 4  # of the window of an unsettled point; 0: never
    section_tolerance: float = 1e-3
    section_samples: int = 128
    strobe_samples: int = 64
    tail: int = 3072
    criteria: phases.Criteria = phases.Criteria()

    def check(self, net: Network) -> None:
        """Raise `ValueError` for counts that make no sense for this network."""
        for name, least in (
            ("transient", 0), ("steps", 1), ("exponents", 0), ("max_doublings", 0),
            ("section_samples", 1), ("strobe_samples", 1), ("tail", 30 * net.context),
        ):  # fmt: skip
            if getattr(self, name) < least:
                raise ValueError(
                    f"{name} must be at least {least}; got {getattr(self, name)}."
                )
        if self.exponents > net.dimension:
            raise ValueError(
                f"exponents must lie in 0..{net.dimension} (M C); got {self.exponents}."
            )


def any_width(net: Network) -> bool:
    """Whether all sums over the coordinates of a point are written out."""
    return max(net.n_classes, net.dimension) <= WRITTEN_OUT


class Scan:
    """Compiled stages of a scan; build once, run on any number of points.

    Args:
        points: examples, as many as will be run at once.
        lanes: points of a batch; chosen for so many points when omitted.
    """

    def __init__(
        self,
        net: Network,
        plan: Plan,
        points: Points,
        drive_period: int,
        lanes: int | None = None,
    ):
        plan.check(net)
        self.net, self.plan = net, plan
        self.drive_period = drive_period
        self.lanes = lanes or lanes_for(points.count, any_width=any_width(net))
        self._compile(points)
        fit = lanes_that_fit(self.lanes, self.working_memory())
        if fit < self.lanes:
            self.lanes = fit
            self._compile(points)

    def _compile(self, points: Points) -> None:
        batch = lambda lanes: (self.net, *points.take(np.zeros(lanes, int)))
        number, cap = jnp.asarray(1), jnp.asarray(False)
        stage = lambda function, *rest: Stage(
            function, lambda lanes: (*batch(lanes), *rest), self.lanes, shared=1,
            any_width=any_width(self.net),
        )  # fmt: skip
        self.advance = stage(advance, number)
        self.record = stage(self._recorded)
        if self.plan.exponents:
            self.examine = stage(self._windowed, number, cap)
            self.cycle = of_cycles.stage(
                self.net, self.plan.exponents, points, self.lanes,
                any_width=any_width(self.net),
            )  # fmt: skip

    def _windowed(self, net, params, state, per_block, at_cap):
        system, plan = TangentMap(net, params), self.plan
        state, spectrum, witnesses, bend = phases.examine(
            system, state, observe=lambda s: s.newest, k=plan.exponents,
            per_block=per_block, every=self._every, spacing=self._spacing,
            tail=self._tail, drive_period=self.drive_period, criteria=plan.criteria,
        )  # fmt: skip
        verdict = phases.decide(
            spectrum, witnesses, plan.criteria, self.drive_period, at_cap
        )
        every_lane = lambda x: jnp.full(params.beta.shape, x)
        volume = spectrum.log_det
        aligned = lyapunov.alignment(per_block, self._every) * self._every
        return state, bend, Verdicts(
            *verdict, witnesses, spectrum.exponents, spectrum.weighted, spectrum.stderr,
            jnp.full(spectrum.exponents.shape, cycles.SOURCES.index("average")),
            every_lane(jnp.nan) if volume is None else volume,
            every_lane(jnp.nan) if volume is None else spectrum.sum_rule,
            every_lane(spectrum.steps),
            every_lane(aligned + spectrum.steps + self._tail),
            phases.as_in_paper(spectrum),
        )  # fmt: skip

    def _recorded(self, net, params, state):
        def body(state, _):
            clock = state.clock
            state, seen = observe(net, params, state)
            return state, (
                seen.m_o_se[0],
                seen.m_o_se[min(1, net.n_patterns - 1)],
                clock,
            )

        return jax.lax.scan(body, state, None, length=SEGMENT)

    @property
    def _every(self) -> int:
        """Steps between two samples: near 4, commensurate with a short clock."""
        context = self.net.context
        return context * (4 // context) if context <= 4 else 4

    @property
    def _spacing(self) -> int:
        """Steps between Gram-Schmidt.

        A larger one hides more exponents and, for few of them, saves nothing: a step
        between two of them pushes the noise as well (docs/performance.md).
        """
        return 1 if self.plan.exponents <= FEW else self._every

    @property
    def _tail(self) -> int:
        return self.plan.tail - self.plan.tail % self.net.context

    def first_window(self) -> int:
        """Turns per block of the first window; a block is whole clock periods."""
        return phases.turns_per_block(self.plan.steps, self._every, self.net.context)

    def window_work(self) -> float:
        """Cost of the first window of a point, in plain steps."""
        return self._tangent_cost() * self.window_steps(0)

    def window_steps(self, doubling: int) -> int:
        """Token steps of a window that has been doubled so often."""
        return self.first_window() * lyapunov.BLOCKS * self._every * 2**doubling

    def _tangent_cost(self) -> float:
        """A step with frame in plain steps, as measured (benchmarks/lyapunov.py)."""
        return 2.6 + 0.25 * self.plan.exponents if self.plan.exponents else 0.0

    def _shortest(self) -> int:
        """Fewest turns per block that keep blocks whole clock periods."""
        return phases.turns_per_block(1, self._every, self.net.context)

    def work_per_point(self) -> float:
        """Cost of a point without extension, in plain steps (for progress)."""
        return self.plan.transient + self.window_work() + self.plan.steps

    def pilot(self, points: Points) -> float:
        """Seconds that a batch will take without extensions, from short runs of it."""
        plan, net = self.plan, self.net
        lanes, piece = points.count, jnp.asarray(PIECE)
        advance = self._seconds(lambda: self.advance(lanes, net, *points, piece))
        record = self._seconds(lambda: self.record(lanes, net, *points))
        seconds = plan.transient / PIECE * advance + plan.steps / SEGMENT * record
        if plan.exponents:
            short, long = self._shortest(), 4 * self._shortest()
            cap = jnp.asarray(True)
            window = lambda n: self.examine(lanes, net, *points, jnp.asarray(n), cap)
            few = self._seconds(lambda: window(short))
            many = self._seconds(lambda: window(long))
            turn = max(many - few, 0.0) / (long - short)
            seconds += few + turn * (self.first_window() - short)
        return seconds

    @staticmethod
    def _seconds(call: Callable[[], Any]) -> float:
        """Time of a second call; the first one warms up."""
        call()
        clock = time.perf_counter()
        call()
        return time.perf_counter() - clock

    def working_memory(self) -> int:
        """Bytes that one batch needs while it is computed."""
        stages = [self.advance, self.record]
        if self.plan.exponents:
            stages += [self.examine, self.cycle]
        return max(stage.bytes for stage in stages)

    def bytes_per_point(self) -> int:
        """Bytes stored for each point."""
        numbers = self.plan.section_samples + self.plan.strobe_samples
        return 8 * (numbers + 3 * self.plan.exponents + 20)

    def advanced(
        self, points: Points, tokens: int, stop: threading.Event, tick: Tick
    ) -> State:
        """Advance one batch by so many tokens, in pieces."""
        state, left = points.starts, tokens
        while left > 0 and not stop.is_set():
            piece = min(PIECE, left)
            steps = jnp.asarray(piece)
            state = self.advance(points.count, self.net, points.params, state, steps)
            left -= piece
            tick(piece)
        return state

    def window(self, points: Points, doubling: int):
        """One window of one batch; returns end states and verdicts."""
        per_block = jnp.asarray(self.first_window() * 2**doubling)
        at_cap = jnp.asarray(doubling >= self.plan.max_doublings)
        return self.examine(points.count, self.net, *points, per_block, at_cap)

    def section(self, points: Points, stop: threading.Event, tick: Tick):
        """Record `steps` tokens of one batch and keep what lies on the sections."""
        plan, state, lanes = self.plan, points.starts, points.count
        hits = SectionBuffer(plan.section_samples, lanes)
        strobe = np.full((plan.strobe_samples, lanes), np.nan)
        for first_step in range(0, plan.steps, SEGMENT):
            if stop.is_set():
                break
            state, seen = self.record(lanes, self.net, points.params, state)
            first, second, clock = seen
            length = min(SEGMENT, plan.steps - first_step)
            first, second = np.asarray(first)[:length], np.asarray(second)[:length]
            hits.add(first, np.abs(second) < plan.section_tolerance)
            at_zero = np.asarray(clock)[:length] % self.drive_period == 0
            recent = np.concatenate([strobe, first[at_zero]])
            strobe = recent[len(recent) - plan.strobe_samples :]
            tick(length)
        return state, hits.values, hits.count, strobe


class Outcome(NamedTuple):
    """Result of a scan; points on the last axis of the verdicts, first elsewhere."""

    section: np.ndarray  # (points, samples), NaN-padded
    section_count: np.ndarray
    strobe: np.ndarray  # (points, samples)
    verdicts: Verdicts | None
    final: State


def run(scan: Scan, points: Points, tick: Tick = lambda work: None) -> Outcome:
    """All points through all stages; extension rounds take only the unsettled ones."""
    everyone, plan = np.arange(points.count), scan.plan

    def transient(batch, real, stop):
        after = lambda steps: tick(steps * real)
        return scan.advanced(batch, plan.transient, stop, after)

    def section(batch, real, stop):
        return scan.section(batch, stop, lambda steps: tick(steps * real))

    starts = gather(scan.advance, plan.transient, points, everyone, transient)
    points = Points(points.params, starts)
    verdicts = None
    if plan.exponents:
        points, verdicts = _classify(scan, points, tick)
    found = gather(scan.record, plan.steps, points, everyone, section)
    final, hits, count, strobe = found
    return Outcome(hits.T, count, strobe.T, verdicts, final)


def _classify(scan: Scan, points: Points, tick: Tick) -> tuple[Points, Verdicts]:
    """First window for all, doubled windows for the unsettled, until the cap."""
    pending = np.arange(points.count)
    verdicts: Any = None
    bends: Any = None
    for doubling in range(scan.plan.max_doublings + 1):

        def job(batch, real, stop, doubling=doubling):
            outcome = scan.window(batch, doubling)
            tick(0.0 if doubling else scan.window_work() * real)
            return outcome

        steps = scan.window_steps(doubling)
        state, bend, latest = gather(scan.examine, steps, points, pending, job)
        points = Points(points.params, put(points.starts, state, pending))
        if verdicts is None:
            latest = latest._replace(horizon=latest.horizon + scan.plan.transient)
            verdicts, bends = latest, Bend(*bend)
        else:
            first = verdicts.phase_paper
            sooner = verdicts.horizon[pending]
            latest = latest._replace(horizon=latest.horizon + sooner)
            verdicts = put(verdicts, latest, pending)._replace(phase_paper=first)
            bends = put(bends, Bend(*bend), pending)
        undecided = (phases.UNSETTLED, phases.TRANSIENT)
        pending = pending[np.isin(verdicts.phase[pending], undecided)]
        if pending.size == 0:
            break
    verdicts = of_cycles.with_cycles(
        scan.cycle, scan.net, points.params, bends, verdicts
    )
    return points, verdicts


class SectionBuffer:
    """The first `samples` values of each lane, NaN-padded, and how many there were."""

    def __init__(self, samples: int, lanes: int):
        self.values = np.full((samples, lanes), np.nan)
        self.count = np.zeros(lanes, int)

    def add(self, values: np.ndarray, hit: np.ndarray) -> None:
        """Append the values (time, lane) where `hit`."""
        times, lanes = np.nonzero(hit)
        rank = np.cumsum(hit, axis=0)[times, lanes] - 1 + self.count[lanes]
        fits = rank < len(self.values)
        self.values[rank[fits], lanes[fits]] = values[times[fits], lanes[fits]]
        self.count += hit.sum(axis=0)
