r"""Windows that grow while orbits are followed (docs/theory/attractors.md, section 1).

A look of R drive periods may hold a small part of one turn of an orbit that passes
slowly by a saddle.  Look k = 0, 1, ... is part of a window of L looks as well,

    L = 1, 1, 2, 2, 4, 4, 4, 4, ...

of which the last ends at the horizon, whatever its length.  Over the two halves of a
window with n = R L points, weighted averages of

    an orbit on a torus      differ by less than any power of 1/n
    a chaotic orbit          differ by some n^(-1/2)

so what they may differ by falls as L^(-1/2): longer windows call no chaos regular that
one look does not.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool


STEADY = 0.01  # largest change of the range between quarters of a regular window
CONSTANT = 1e-9  # range below which a coordinate does not vary, over 1 + its size


class Averages(NamedTuple):
    """Sums over a look, or over the looks of a window, with orbits on the last axis.

    Attributes:
        sums: weighted sums of the observables over the whole and both halves.
        mass: sums of the weights.
        low: smallest value of the observables in every quarter.
        high: largest value.
    """

    sums: Any  # (3, d, n)
    mass: Any  # (3, n)
    low: Any  # (4, d, n)
    high: Any  # (4, d, n)

    def take(self, lanes: np.ndarray) -> "Averages":
        """The averages of some orbits."""
        return Averages(*(x[..., lanes] for x in self))


class Place(NamedTuple):
    """Place of a look in its window.

    Attributes:
        before: looks of the window before this one.
        looks: looks of the window.
    """

    before: int
    looks: int

    @property
    def is_last(self) -> bool:
        """Whether the window ends with this look."""
        return self.before + 1 == self.looks


def place_of(number: int, looks: int) -> Place:
    """Place of look `number`, from 0, of so many up to the horizon, in its window."""
    if not number:
        return Place(0, 1)
    begin = 1 << (number.bit_length() - 1)
    return Place(number - begin, min(begin, looks - begin))


def witnesses(
    averages: Averages, digits: float, looks: int = 1
) -> tuple[Bool[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Whether averages over the halves agree, and ranges of the quarters.

    The halves of one look agree to so many `digits` of the range; `looks` is the length
    of the window.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        means = averages.sums / averages.mass[:, None]
        low, high = averages.low.min(axis=0), averages.high.max(axis=0)
        size = np.maximum(np.abs(low), np.abs(high)).max(axis=0)
        spread = np.maximum(high - low, CONSTANT * (1 + size))
        gap = (np.abs(means[1] - means[2]) / spread).max(axis=0)
        ranges = averages.high - averages.low
        change = ((ranges.max(axis=0) - ranges.min(axis=0)) / spread).max(axis=0)
    return gap <= 10.0**-digits / np.sqrt(looks), change <= STEADY


def sample(points: np.ndarray, lanes, record, place: Place, even=False) -> None:
    """Keep a few points of a look, so that its window leaves as many as fit.

    `points` are of all orbits, (n, points, d), NaN where there is none yet; `record` is
    the look (R, d, lanes) of the orbits `lanes`.  With `even`, points of successive
    looks are as far apart as those of one; else its first and last are among them.
    """
    room = points.shape[1]
    per_look, every = max(room // place.looks, 1), -(-place.looks // room)
    if place.before == 0:
        points[lanes] = np.nan
    if place.before % every == 0:
        stop = len(record) if even else len(record) - 1
        chosen = np.linspace(0, stop, per_look, endpoint=not even).astype(int)
        first = place.before // every * per_look
        looks = np.moveaxis(record[chosen], -1, 0)
        points[lanes, first : first + per_look] = looks


def last_pieces(points: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """The last two of so many equal parts of the points (P, d) of one orbit."""
    points = points[np.isfinite(points).all(axis=1)]
    size = len(points) // parts
    return points[-2 * size : -size], points[-size:]


class Windows:
    """What the windows say of n orbits."""

    def __init__(self, n: int, d: int, record: int, digits: float):
        self.digits = digits
        self.points = np.full((n, record, d), np.nan)
        self.is_regular = np.zeros(n, bool)  # of the latest whole window
        self.total = Averages(
            np.zeros((3, d, n)), np.zeros((3, n)), *np.zeros((2, 4, d, n))
        )

    def add(self, lanes, part: Averages, record, place: Place) -> None:
        """Add a look of some orbits, (R, d, lanes), to their window."""
        total = self.total
        if place.before == 0:
            for x, empty in zip(total, (0.0, 0.0, np.inf, -np.inf), strict=True):
                x[..., lanes] = empty
        total.sums[..., lanes] += part.sums
        total.mass[..., lanes] += part.mass
        for quarter in range(4):
            q = (4 * place.before + quarter) // place.looks
            for x, new, further in (
                (total.low, part.low, np.minimum),
                (total.high, part.high, np.maximum),
            ):
                x[q][..., lanes] = further(x[q][..., lanes], new[quarter])
        sample(self.points, lanes, record, place, even=True)

    def ended(self, lanes, looks: int):
        """Whether whole windows of some orbits are regular, and those before were."""
        smooth, steady = witnesses(self.total.take(lanes), self.digits, looks)
        before, now = self.is_regular[lanes], smooth & steady
        self.is_regular[lanes] = now
        return now, before
