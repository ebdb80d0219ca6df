"""Verdicts that a longer look may change: which they are, and that look.

A chaotic transient passes for chaos in a window of any length.  What gives it away is a
neighbour: an orbit of another kind, or an exponent of another size, next to it on the
grid.  A doubtful orbit is followed again from several slightly perturbed states, much
longer, and each of them asked whether it still is what it was said to be; where one is
not, the neighbours become doubtful as well.
"""

import threading

import numpy as np

from statmech_attn.dynamics import phases
from statmech_attn.dynamics.diagrams.points import gather, Points, put, Verdicts
from statmech_attn.dynamics.diagrams.stages import Scan, Tick


CHAOS = (phases.CHAOTIC, phases.HYPERCHAOTIC)
UNDECIDED = (phases.TRANSIENT, phases.UNDETERMINED)
SIGMAS = 6.0  # differences of the largest exponent in standard errors
SHARE = 0.5  # and of the larger one, before neighbours make each other doubtful
LOOKS = (1 / 16, 1 / 4, 1)  # of the horizon, after which orbits are asked


def edges(index: np.ndarray) -> np.ndarray:
    """Pairs (n, 2) of neighbours among points of a grid, (points, axes).

    Neighbours lie on one line along an axis with no other point between them.

    Example:
        >>> import numpy as np
        >>> edges(np.array([[0, 0], [0, 2], [4, 2]])).tolist()
        [[1, 2], [0, 1]]
    """
    pairs = []
    for axis in range(index.shape[1]):
        others = np.delete(index, axis, axis=1)
        order = np.lexsort((index[:, axis], *others.T))
        same_line = (others[order[1:]] == others[order[:-1]]).all(axis=1)
        pairs.append(np.stack([order[:-1], order[1:]], axis=1)[same_line])
    return np.concatenate(pairs)


def doubtful(said: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Which points are next to one that makes their verdict doubtful.

    Chaos is doubtful next to anything else, and next to chaos with an exponent of
    another size; a torus is doubtful next to chaos.

    Args:
        said: (3, points): the phase, the largest exponent and its error.
        pairs: (n, 2) neighbours.
    """
    phase, exponent, stderr = said
    doubt = np.zeros(len(phase), bool)
    chaos = np.isin(phase, CHAOS)
    for one, other in (pairs.T, pairs.T[::-1]):
        both = chaos[one] & chaos[other]
        with np.errstate(invalid="ignore"):  # -inf of two fixed points
            gap = np.abs(exponent[one] - exponent[other])
        error = np.hypot(stderr[one], stderr[other])
        larger = np.maximum(np.abs(exponent[one]), np.abs(exponent[other]))
        jump = both & (gap > SIGMAS * error) & (gap > SHARE * larger)
        unlike = chaos[one] & ~chaos[other]
        edge = (phase[one] == phases.QUASIPERIODIC) & chaos[other]
        doubt[one[jump | unlike | edge]] = True
    return doubt


def kept(
    scan: Scan,
    points: Points,
    said: np.ndarray,
    horizon: int,
    tick: Tick,
) -> np.ndarray:
    """Which orbits (points,) are after `horizon` tokens what they were said to be.

    Chaos must stay chaos with the same largest exponent, a torus a torus.  Orbits that
    have left are followed no further.

    Args:
        scan: the compiled stages.
        points: parameters and states.
        horizon: steps of every run.
        tick: told the steps that are done.
        said: (3, points): the phase, the largest exponent and its error.
    """
    stayed, done = np.ones(points.size, bool), 0
    for look in LOOKS:
        pending = np.flatnonzero(stayed)
        if not pending.size:
            break
        tokens = int(look * horizon) - done
        done += tokens

        def job(batch: Points, real: int, stop: threading.Event, tokens=tokens):
            state = scan.advanced(batch, tokens, stop, lambda steps: tick(steps * real))
            return scan.window(Points(batch.params, state), scan.plan.max_doublings)

        state, _, verdicts = gather(scan.examine, tokens, points, pending, job)
        points = Points(points.params, put(points.starts, state, pending))
        stayed[pending] = _same(verdicts, *said[:, pending])
    return stayed


def _same(verdicts: Verdicts, phase, exponent, stderr) -> np.ndarray:
    """Whether new verdicts go with those before; an undecided torus is still one."""
    chaos = np.isin(verdicts.phase, CHAOS)
    torus = np.isin(verdicts.phase, (phases.QUASIPERIODIC, *UNDECIDED))
    gap = np.abs(verdicts.exponents[0] - exponent)
    like = gap <= SIGMAS * np.hypot(verdicts.stderr[0], stderr)
    open_chaos = (chaos | np.isin(verdicts.phase, UNDECIDED)) & like
    return np.where(np.isin(phase, CHAOS), open_chaos, torus)
