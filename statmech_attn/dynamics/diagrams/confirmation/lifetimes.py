r"""Whether chaos that has lasted so far is a transient (docs/theory/dynamics.md, 2).

The orbits that left chaos tell for how long those beside them may pass for it.  Where
orbits leave at a constant rate, and e of them have left in T steps of all that were
watched, the likeliest mean lifetime is $\tau = T/e$, and its relative error
$e^{-1/2}$.  An orbit of the same kind lasts for t steps more with the chance

    $P = (1 + t/T)^{-e},$

which is $e^{-t/\tau}$ where many have left.  Lifetimes grow towards a crisis, so that
each row that left counts by itself.  A stretch of transients that reaches from it to a
row has to have lasted in all rows on the way, so that t is the sum of the times of
these.  No row has less than the mean of P over all rows that were ever chaotic, of t
its own time and 0 for those that last: the share of such transients among rows that
have lasted for t.

P knows nothing of lifetimes that no orbit has shown.  Where lifetimes are spread over
many decades, about as many rows leave within a factor of time as within the same factor
before (`left_late`).
"""

import numpy as np

from statmech_attn.dynamics.diagrams.confirmation.doubtful_verdicts import beside
from statmech_attn.dynamics.motion import phases


DOUBT = 0.05  # probability of a transient from which on a point is doubtful
SPAN = 16  # factor in time over which those that leave late are counted


def still_transient(
    verdict: np.ndarray,
    pairs: np.ndarray,
    horizon: np.ndarray,
    time: np.ndarray,
    departed: np.ndarray,
) -> np.ndarray:
    """Probability that the chaos of each point is a transient that has not ended yet.

    A point beside chaos that is not chaotic, or far less so, counts as one orbit that
    left at the end of its scan.  `verdict` is (3, points): the phase, the largest
    exponent and its error; `pairs` are neighbours (n, 2).  Of every point, (points,):
    `horizon` and `time` are the steps of the scan and those watched in chaos,
    `departed` how many orbits have left. Returns (points,): 1 where an orbit has left,
    NaN where there is no chaos or no orbit of all points has left.
    """
    alike, below, _ = beside(verdict, pairs)
    ended = departed > 0
    chance = np.where(verdict[0] == phases.TRANSIENT, 1.0, np.nan)
    risk, exits = np.where(ended, time, 0.0), np.where(ended, departed, 0)
    fallen = np.setdiff1d(below[:, 1], np.flatnonzero(ended))
    risk[fallen], exits[fallen] = horizon[fallen], 1
    if not exits.any():
        return chance
    with_exits = exits > 0
    nearby = _spread(alike, below, time, risk, exits)
    chaos = np.isin(verdict[0], phases.CHAOS)
    times, number = np.unique(time[chaos], return_inverse=True)
    lasting = [lasts(t, risk[with_exits], exits[with_exits]).sum() for t in times]
    share = np.array(lasting) / (chaos | with_exits).sum()
    chance[chaos] = np.maximum(nearby[chaos], share[number])
    return chance


def left_late(time: np.ndarray, departed: np.ndarray) -> np.ndarray:
    """Share of the points that lasted for a 16th of the time of a point and then left.

    Of every point, (points,): `time` has the steps watched in chaos, `departed` whether
    orbits have left; the share is that of points that left within the time of this one.
    """
    times, number = np.unique(time, return_inverse=True)
    departures, lifetimes = np.sort(time[departed]), np.sort(time)
    up_to = lambda sample, times: np.searchsorted(sample, times, side="right")
    late = up_to(departures, times) - up_to(departures, times / SPAN)
    return (late / (len(lifetimes) - up_to(lifetimes, times / SPAN)))[number]


def at_risk(chance: np.ndarray, share: float) -> np.ndarray:
    """Which points are too likely transients.

    They are the likeliest, so many that the mean over the others is at most `share`,
    and all from `DOUBT` on.  `chance` is (points,), NaN where there is no chaos;
    `share` is of transients that may be expected among the others.
    """
    likely = np.sort(chance[chance < DOUBT])
    above = likely[np.cumsum(likely) > share * np.arange(1, likely.size + 1)]
    return chance >= above.min(initial=DOUBT)


def lasts(time, risk, exits):
    """The chance to last `time` steps where `exits` orbits left in `risk` steps."""
    return (1 + time / risk) ** -exits


def _spread(alike, below, time, risk, exits) -> np.ndarray:
    """The largest chance (points,) over all ways to a point from those that left."""
    chance, weight = np.zeros(len(time)), np.zeros(len(time))
    origin = np.zeros(len(time), int)
    (row, start), length = below.T, time[below[:, 0]]
    while True:
        value = lasts(length, risk[start], exits[start])
        better = value > chance[row]
        if not better.any():
            return chance
        order = np.flatnonzero(better)[np.argsort(value[better])]  # the largest is last
        changed = np.zeros(len(time), bool)
        changed[row[order]] = True
        chance[row[order]], weight[row[order]] = value[order], length[order]
        origin[row[order]] = start[order]
        row, before = alike[changed[alike[:, 1]]].T
        start, length = origin[before], weight[before] + time[row]
