"""What a batch of a diagram takes, from short runs of its stages."""

import threading
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from statmech_attn.batches import seconds_of, workers
from statmech_attn.dynamics.diagrams.stages import cycle_exponents
from statmech_attn.dynamics.diagrams.stages.lanes import Points, Verdicts, WindowEnd
from statmech_attn.dynamics.diagrams.stages.stages import PIECE, Scan, SEGMENT
from statmech_attn.dynamics.exponents import lyapunov
from statmech_attn.dynamics.motion import phases


FEWEST = 8  # points of a sample that stand for a part of the grid
TIMED_SECONDS = 5.0  # seconds of a window from which the times of others are told


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
    `undecided` is of a sample in the order of the grid; there is a part for every
    `FEWEST` of its points at most.
    """
    parts = max(min(parts, undecided.size // FEWEST), 1)
    few = 1 / parts  # one in all parts together: none is never none
    chosen = np.array_split(undecided, parts)
    return np.array([(part.sum() + few) / (part.size + few) for part in chosen])


def batch_times(scan: Scan, points: Points, parts: int) -> Times:
    """Times of a batch, from short runs of points that stand for all of them."""
    plan, idle, untold = scan.plan, threading.Event(), lambda work: None
    moved = scan.advanced(points, PIECE, idle, untold)
    advance = seconds_of(lambda: scan.advanced(points, PIECE, idle, untold))
    record = seconds_of(lambda: scan.section(points, idle, untold, SEGMENT))
    seconds = plan.transient / PIECE * advance + plan.steps / SEGMENT * record
    if not plan.exponents:
        return Times(seconds)
    seconds += scan.production_work() / PIECE * advance
    points = Points(points.params, moved)
    first = scan.first_window()
    long = 2 * max(min(first // 4, _turns(scan, PIECE)), scan.shortest())
    short = max(long // 32, scan.shortest())
    state, _, few, _ = _timed(scan, points, short)
    long = max(min(long, int(short * TIMED_SECONDS / few)), 2 * short)
    settled = Points(points.params, state)
    _, bends, many, verdicts = _timed(scan, settled, long)
    turn = max(many - few, 0.0) / (long - short)
    window = lambda turns: few + turn * (turns - short)
    # Assumed: a doubled window decides half of the undecided points.
    undecided = phases.undecided(np.asarray(verdicts.phase))
    shares = shares_of_parts(undecided, parts)
    shares = np.minimum(shares * long / first, 1.0)
    extension = 0.0
    for doubling in range(1, plan.max_doublings + 1):
        pending = shares / 2 ** (doubling - 1) * points.size
        batches = np.mean([scan.examine.part_of_batch(x) for x in pending])
        extension += float(batches) * window(2**doubling * first)
    seconds += window(first)
    if parts > workers():  # for fewer they take less time than this measurement
        places = scan.system, points.params, bends, verdicts
        cycles = (scan.cycle, *places, scan.rank)
        seconds += seconds_of(lambda: cycle_exponents.with_cycles(*cycles))
    scan.longer = extension / seconds
    unsettled = float(shares.mean())
    narrow = scan.examine.narrow_seconds
    steps = advance / PIECE, window(first) / scan.window_steps(0)
    return Times(seconds, extension, unsettled, narrow, verdicts, *steps)


def _timed(scan: Scan, points: Points, turns: int):
    """End states of a window, where it bends, its time, and what it says."""
    window = (jnp.asarray(turns), jnp.asarray(False))
    run: list[Any] = []
    call = lambda: run.append(scan.examine(points.size, scan.arrays, *points, *window))
    seconds = seconds_of(call, repeats=1)
    state, bend, verdicts = run[0]
    return state, WindowEnd(*bend), seconds, verdicts


def _turns(scan: Scan, steps: int) -> int:
    """Turns per block of a window of so many steps."""
    return max(steps // (lyapunov.BLOCKS * scan.every), 1)
