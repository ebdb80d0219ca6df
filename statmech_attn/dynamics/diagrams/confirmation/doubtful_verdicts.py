"""Verdicts that a longer look may change: which they are, and that look.

A chaotic transient passes for chaos in a window of any length.  What gives it away is a
neighbour: an orbit of another kind, or an exponent of another size, next to it on the
grid.  On a fine grid the rows beside it are transients as well, so that doubt goes
along the whole run of rows that look alike.  A doubtful orbit is followed again from
several slightly perturbed states, much longer, and each of them asked whether it still
is what it was said to be.  One that is not is followed until it settles.
"""

import threading
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import PyTree

from statmech_attn.dynamics.diagrams.stages.lanes import gather, Points, put, Verdicts
from statmech_attn.dynamics.diagrams.stages.outcomes import classified
from statmech_attn.dynamics.diagrams.stages.stages import Scan, Tick
from statmech_attn.dynamics.motion import phases


SIGMAS = 6.0  # differences of the largest exponent in standard errors
SHARE = 0.5  # and of the larger one, before neighbours make each other doubtful
LOOKS = (1 / 16, 1 / 4, 1)  # of the first horizon, after which orbits are asked


def edges(index: np.ndarray) -> np.ndarray:
    """Pairs (n, 2) of neighbours among points of a grid, (points, axes).

    Neighbours lie on one line along an axis with no other point between them.
    """
    pairs = []
    for axis in range(index.shape[1]):
        other_axes = np.delete(index, axis, axis=1)
        order = np.lexsort((index[:, axis], *other_axes.T))
        same_line = (other_axes[order[1:]] == other_axes[order[:-1]]).all(axis=1)
        pairs.append(np.stack([order[:-1], order[1:]], axis=1)[same_line])
    return np.concatenate(pairs)


class Beside(NamedTuple):
    """Ordered pairs of neighbours (n, 2), by what the second says of the first.

    Attributes:
        alike: both are chaotic, with exponents of one size.
        below: the first is chaotic; the second is not, or far less so.
        unlike: the second makes the first doubtful.
    """

    alike: np.ndarray
    below: np.ndarray
    unlike: np.ndarray


def beside(verdict: np.ndarray, pairs: np.ndarray) -> Beside:
    """Compare the verdicts of neighbouring points."""
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    point, neighbour = pairs.T
    phase, exponent, stderr = verdict
    chaos, torus = np.isin(phase, phases.CHAOS), phase == phases.QUASIPERIODIC
    with np.errstate(invalid="ignore"):  # -inf of two fixed points
        gap = exponent[point] - exponent[neighbour]
    error = np.hypot(stderr[point], stderr[neighbour])
    larger = np.maximum(np.abs(exponent[point]), np.abs(exponent[neighbour]))
    both_chaotic = chaos[point] & chaos[neighbour]
    jump = (
        both_chaotic & (np.abs(gap) > SIGMAS * error) & (np.abs(gap) > SHARE * larger)
    )
    bordering = chaos[point] & ~chaos[neighbour]
    edge = torus[point] & (chaos | (phase == phases.TRANSIENT))[neighbour]
    return Beside(
        pairs[both_chaotic & ~jump],
        pairs[bordering | (jump & (gap > 0))],
        pairs[bordering | jump | edge],
    )


def doubtful(verdict: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Which points have a verdict that others make doubtful.

    Chaos is doubtful next to anything else, and next to chaos with an exponent of
    another size; so is all chaos that hangs together with chaos next to an orbit that
    is not chaotic, or far less so.  A torus is doubtful next to chaos.
    """
    alike, below, unlike = beside(verdict, pairs)
    doubt = np.zeros(verdict.shape[1], bool)
    doubt[unlike[:, 0]] = True
    run = components(alike, doubt.size)
    return doubt | np.isin(run, run[below[:, 0]])


def components(pairs: np.ndarray, size: int) -> np.ndarray:
    """Number of the connected part that each of `size` points belongs to."""
    from scipy.sparse import coo_array, csgraph

    joined = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(size, size))
    return csgraph.connected_components(joined, directed=False)[1]


class Watched(NamedTuple):
    """What became of orbits that were followed further; points on the last axis.

    Attributes:
        stayed: whether they are what they were said to be.
        time: steps for which they were; of one that left, half way between two looks.
        settled: phase, period, largest exponent and its error of what those that left
            settled on, (4, points); NaN for the others.
        states: where those that stayed are.
    """

    stayed: np.ndarray
    time: np.ndarray
    settled: np.ndarray
    states: PyTree


def follow_until_change(
    scan: Scan,
    points: Points,
    verdict: np.ndarray,
    horizon: int,
    tick: Tick,
    looks: Sequence[float] = LOOKS,
) -> Watched:
    """Follow orbits as long as they are what they were said to be.

    Chaos must stay chaos with the same largest exponent, a torus a torus.  Orbits that
    have left are followed until they settle, and no further.
    """
    same = partial(_same, scan.plan.criteria.zero)
    stayed, time = np.ones(points.size, bool), np.zeros(points.size)
    followed = 0
    for look in looks:
        pending = np.flatnonzero(stayed)
        if not pending.size:
            break
        tokens = max(int(look * horizon) - followed - scan.short_window_steps, 0)

        def further(batch: Points, real: int, stop: threading.Event, tokens=tokens):
            return scan.advanced(batch, tokens, stop, lambda steps: tick(steps * real))

        def short_window(batch: Points, real: int, stop: threading.Event):
            state, _, verdicts = scan.short_window(batch)
            tick(scan.short_window_steps * real)
            return state, verdicts

        state = gather(scan.advance, tokens, points, pending, further)
        points = Points(points.params, put(points.starts, state, pending))
        steps = scan.short_window_steps
        state, verdicts = gather(scan.examine, steps, points, pending, short_window)
        points = Points(points.params, put(points.starts, state, pending))
        like = same(verdicts, *verdict[:, pending])
        unsure = np.flatnonzero(like & phases.undecided(verdicts.phase))
        if unsure.size:
            verdicts = _whole_window(scan, points, pending[unsure])
            like[unsure] = same(verdicts, *verdict[:, pending[unsure]])
        before, followed = followed, followed + tokens + steps
        time[pending] = np.where(like, followed, (before + followed) / 2)
        stayed[pending] = like
    settled = np.full((4, points.size), np.nan)
    departed = np.flatnonzero(~stayed)
    if departed.size:
        _, last = classified(scan, points.take(departed), lambda work: tick(0.0))
        settled[:, departed] = (
            last.phase,
            last.period,
            last.exponents[0],
            last.stderr[0],
        )
        stayed[departed] = same(
            last, *verdict[:, departed]
        )  # it was a calm stretch of chaos
        settled[:, stayed] = np.nan
    return Watched(stayed, time, settled, points.starts)


def _whole_window(scan: Scan, points: Points, chosen: np.ndarray) -> Verdicts:
    def job(batch: Points, real: int, stop: threading.Event):
        return scan.window(batch, 0)[2]

    return gather(scan.examine, scan.window_steps(0), points, chosen, job)


def _same(rounding: float, verdicts: Verdicts, phase, exponent, stderr) -> np.ndarray:
    """Whether new verdicts go with those before; an undecided orbit may be a torus."""
    chaos = np.isin(verdicts.phase, phases.CHAOS)
    undecided = phases.undecided(verdicts.phase)
    torus = undecided | (verdicts.phase == phases.QUASIPERIODIC)
    gap = np.abs(verdicts.exponents[0] - exponent)
    like = gap <= SIGMAS * np.hypot(verdicts.stderr[0], stderr) + rounding
    like &= chaos | undecided
    same = np.where(np.isin(phase, phases.CHAOS), like, torus)
    return np.where(phase == phases.TRANSIENT, undecided, same)
