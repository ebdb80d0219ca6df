"""What a diagram computes of its points, taken through all stages batch by batch."""

from typing import NamedTuple

import numpy as np
from jaxtyping import PyTree

from statmech_attn.dynamics.diagrams.stages import cycle_exponents
from statmech_attn.dynamics.diagrams.stages.lanes import (
    gather,
    Points,
    put,
    Verdicts,
    WindowEnd,
)
from statmech_attn.dynamics.diagrams.stages.stages import Scan, Tick
from statmech_attn.dynamics.motion import classification, phases


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
    bends: WindowEnd
    pending: np.ndarray


def classified(scan: Scan, points: Points, tick: Tick) -> tuple[Points, Verdicts]:
    """First window for all, doubled windows for the unsettled, until the cap.

    `tick` is told the work that is done, in plain steps. Returns the points where their
    windows ended, and the verdicts.
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
        return points, latest, WindowEnd(*bend), undecided

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
    last = classification.extended(
        Windowed(points, first, bends, undecided),
        longer,
        lambda windowed: windowed.pending.size > 0,
        scan.plan.max_doublings,
        loop=classification.repeated,
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
