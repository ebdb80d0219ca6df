r"""Where many orbits end, and when they arrive (docs/theory/attractors.md, section 1).

`settle` looks at all starts that are still on the way; those that have settled leave,
until nobody is left or the horizon is reached.

    s      time in drive periods, 0 at the start; look k holds s = kR + 1 ... (k + 1)R
    c      points of a cycle (q, d), one drive period apart, the last one at s = `end`
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree
from scipy.spatial import KDTree

from statmech_attn import presentation
from statmech_attn.dynamics.attractors.matching import resolution, set_distance
from statmech_attn.dynamics.attractors.orbit_follower import (
    Follower,
    put,
    Search,
    take,
)
from statmech_attn.dynamics.attractors.windows import (
    last_pieces,
    Place,
    place_of,
    sample,
    Windows,
    witnesses,
)
from statmech_attn.dynamics.maps.starts import side_by_side, starts_of, warn_of_readings
from statmech_attn.dynamics.maps.systems import count_of, describe, System
from statmech_attn.dynamics.maps.tracing import untraced
from statmech_attn.dynamics.motion.phases import EXACT, HORIZON
from statmech_attn.labels import CodeWords, STEP, Variable


KINDS = CodeWords("periodic", "regular", "irregular", "unsettled", "diverged")
CYCLE, REGULAR, IRREGULAR, UNSETTLED, KIND_DIVERGED = range(len(KINDS))
WIDE = 4.0  # neighbourhood of a set of points over their scatter, at least
DRIFT = 3.0  # distance of two pieces of an orbit at rest over their resolution
FILLED = 1.0  # the same of pieces that cover one set; near a resonance it is more
Tick = Callable[[float], None]


class Orbits(NamedTuple):
    """Where n orbits ended, with P = record / 2 points each and d coordinates.

    Attributes:
        kind: index into `KINDS`, (n,).
        period: steps, (n,); 0 where the orbit does not recur.
        points: of the set that the orbit ended on, once per drive period, (n, P, d).
        distinct: number of points before they repeat, (n,).
        scatter: distance between two pieces of the orbit, (n,).
        state: states at the end, with the orbits on the first axis.
        lifetime: steps before the set was entered for good, (n,).
        ended: False where the orbit was still on its way after `lifetime` steps, (n,).
        exact: False where `lifetime` is an upper bound only, (n,).
        before: points of the look before the orbit arrived or diverged, (n, P, d); NaN
            where there is none.
        unit: what a step is.
    """

    kind: np.ndarray
    period: np.ndarray
    points: np.ndarray
    distinct: np.ndarray
    scatter: np.ndarray
    state: PyTree
    lifetime: np.ndarray
    ended: np.ndarray
    exact: np.ndarray
    before: np.ndarray
    unit: str = STEP

    _shown = (
        Variable("kind", "start", "where the start went", flags=KINDS),
        Variable(
            "period", "start", "period, 0 where the orbit does not recur", "{unit}", "p"
        ),
        Variable(
            "lifetime",
            "start",
            "steps before the set was entered for good",
            "{unit}",
            "t",
        ),
        Variable("ended", "start", "arrived or diverged"),
        Variable("exact", "start", "the lifetime is exact", line=False),
        Variable(
            "scatter",
            "start",
            "distance of two pieces of the orbit",
            symbol="δ",
            line=False,
        ),
        Variable(
            "points",
            "start point coordinate",
            "points of the set",
            symbol="x",
            line=False,
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    def set_of(self, i: int) -> np.ndarray:
        """The points that orbit i ended on, without repetitions.

        Args:
            i: number of the orbit.
        """
        return self.points[i, : self.distinct[i]]

    def take(self, indices: np.ndarray) -> "Orbits":
        """Some of the orbits.

        Args:
            indices: numbers of the orbits.
        """
        rows = {name: getattr(self, name)[indices] for name in ROWS}
        some = lambda x: x[indices] if np.ndim(x) else x
        return self._replace(state=jax.tree.map(some, self.state), **rows)


ROWS = tuple(name for name in Orbits._fields if name not in ("state", "unit"))


@untraced
def settle(
    system: Callable[..., PyTree] | System,
    starts: PyTree,
    parameters: PyTree = None,
    search: Search = Search(),
    tick: Tick = lambda steps: None,
) -> Orbits:
    """Follow every start until it settles, diverges or reaches the horizon.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        starts: tree of arrays with the starts on the first axis; arrays without axes
            (a clock) are shared by all.  All starts have the same phase of the drive.
        parameters: numbers shared by all, or arrays with one entry for each start.
        search: horizon and tolerances.
        tick: told the steps that are done or no longer needed, summed over starts.

    Returns:
        What each orbit ended on, and when.

    Raises:
        ValueError: a map that changes its state's shape, starts that are not as many
            in every array, a choice of `search` that makes no sense.

    Example:
        >>> import jax.numpy as jnp
        >>> starts = jnp.linspace(0.1, 0.9, 8)
        >>> logistic = lambda x: 3.2 * x * (1 - x)
        >>> orbits = settle(logistic, starts, search=Search(horizon=500))
        >>> orbits.period.tolist()
        [2, 2, 2, 2, 2, 2, 2, 2]
    """
    follower = Follower(system, search, starts, parameters)
    warn_of_readings(follower.system, starts, parameters)
    return follow_with(follower, starts, parameters, tick)


@presentation.knows_given
def follow_with(
    follower: Follower,
    starts: PyTree,
    parameters: PyTree = None,
    tick: Tick = lambda steps: None,
) -> Orbits:
    """Follow initial conditions as `settle` does, with a map that is compiled."""
    run = _Run(follower, starts, parameters)
    for number in range(follower.looks):
        remaining = follower.looks - number
        before = run.pending.size
        run.look(number, last=remaining == 1)
        after = run.pending.size
        tick(follower.steps_per_look * (after + (before - after) * remaining))
        if not after:
            break
    return run.orbits()


class _Cycle(NamedTuple):
    """A cycle and its neighbourhood, continued to all times in its own phase."""

    points: np.ndarray  # (q, d)
    end: int
    reach: float

    def outside(self, s: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Which of some points (m, d) at times s are not near the cycle."""
        at_cycle = self.points[(s - self.end - 1) % len(self.points)]
        return np.abs(points - at_cycle).max(axis=1) > self.reach


class _Set(NamedTuple):
    """The points of an orbit that does not recur, and their neighbourhood."""

    points: np.ndarray  # (R, d)
    reach: float

    def outside(self, s: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Which of some points (m, d) are not near the set."""
        return KDTree(self.points).query(points, p=np.inf)[0] > self.reach


class _LookStart(NamedTuple):
    """All states at the start of a look, with which it can be done again."""

    number: int
    width: int  # lanes of the batches of that look
    state: PyTree
    seen: np.ndarray  # (d, n)


class _Run:
    """State of `settle`: the orbits so far, and those that have not settled."""

    def __init__(self, follower: Follower, starts: PyTree, parameters: PyTree):
        self.follower, system = follower, follower.system
        lanes, self.parameters = side_by_side(system, starts, parameters)
        one = take((lanes, self.parameters), np.zeros(1, int))
        if describe(one) != describe(follower.one):
            raise ValueError(
                "starts and parameters must be like those of the follower, "
                f"{describe(follower.one)}; got {describe(one)}."
            )
        self.state = jax.tree.map(lambda x: np.array(x, order="C"), lanes)
        self.record, n = follower.search.record, count_of(lanes)
        self.seen = follower.see(self.state)
        self.look_starts: deque[_LookStart] = deque(maxlen=follower.search.memory)
        self.pending, self.was_regular = np.arange(n), np.zeros(n, bool)
        self.kind, self.period = np.full(n, UNSETTLED), np.zeros(n, int)
        cloud = (n, self.record // 2, len(self.seen))
        self.sampled = np.full((n, self.record, cloud[2]), np.nan)
        self.windows = Windows(n, cloud[2], self.record, follower.search.digits)
        self.by_window = np.zeros(n, bool)
        self.points, self.before = np.full(cloud, np.nan), np.full(cloud, np.nan)
        self.distinct = np.full(n, cloud[1])
        self.scatter, self.lifetime = np.full(n, np.nan), np.zeros(n, int)
        self.ended, self.exact = np.zeros(n, bool), np.ones(n, bool)

    def orbits(self) -> Orbits:
        return Orbits(
            self.kind,
            self.period,
            self.points,
            self.distinct,
            self.scatter,
            starts_of(self.state),
            self.lifetime * self.follower.system.drive_period,
            self.ended,
            self.exact,
            self.before,
            self.follower.system.unit,
        )

    def look(self, number: int, last: bool) -> None:
        """One look at all that are pending; those that settle are no longer."""
        start = jax.tree.map(np.copy, self.state)
        width = self.follower.width(self.pending.size)
        self.look_starts.append(_LookStart(number, width, start, self.seen.copy()))
        reached: dict[int, tuple[_Cycle | _Set, np.ndarray]] = {}
        pending, diverged = [], []
        for lanes, after, looked in self.follower.look(
            start, self.parameters, self.pending, width, number
        ):
            self.state = put(self.state, after, lanes)
            self.seen[:, lanes] = looked.record[-1]
            run = Place(number, self.follower.looks)
            sample(self.sampled, lanes, looked.record, run)
            kinds = self._judge(lanes, looked, number, last)
            pending.append(lanes[kinds < 0])
            for i in np.flatnonzero(kinds >= 0):
                lane, record = int(lanes[i]), np.array(looked.record[..., i])
                self.kind[lane] = kinds[i]
                goal = self._settle(lane, record, int(looked.period[i]), number)
                if goal is not None:
                    reached[lane] = goal, record
                elif kinds[i] == KIND_DIVERGED:
                    diverged.append(lane)
        self.pending = np.sort(np.concatenate(pending))
        self._enter(reached, diverged, number)

    def _judge(self, lanes, look, number: int, last: bool) -> np.ndarray:
        """Kind of each lane, or -1 while it is on the way."""
        search, place = self.follower.search, place_of(number, self.follower.looks)
        late = (number + 1) * self.follower.steps_per_look >= search.transient or last
        smooth, steady = witnesses(look.whole, search.digits)
        was, self.was_regular[lanes] = self.was_regular[lanes], smooth & steady
        # One look in some 2000 agrees by chance on a chaotic orbit.
        by_look = smooth & steady & late & (was | (self.follower.looks == 1))
        # Near a resonance a look holds arcs of a set, and two orbits seem two sets.
        most, arcs = DRIFT if last else FILLED, np.zeros(len(lanes), bool)
        for i in np.flatnonzero(by_look):
            arcs[i] = drifts(np.split(np.asarray(look.record[..., i]), 2), most)
        by_look &= ~arcs
        by_window = np.zeros(len(lanes), bool)
        self.windows.add(lanes, look.part, look.record, place)
        if place.is_last:
            regular_now, before = self.windows.ended(lanes, place.looks)
            by_window = regular_now & before & late & ~by_look
        self.by_window[lanes] = by_window
        regular = by_look | by_window
        kinds = np.where(regular, REGULAR, IRREGULAR if last else -1)
        kinds = np.where(look.finite, kinds, KIND_DIVERGED)
        for i in np.flatnonzero(look.finite & ((look.period > 0) | regular | last)):
            record, period = np.asarray(look.record[..., i]), int(look.period[i])
            still = arcs[i] or smooth[i] and not steady[i]
            if period and left_to_go(record, period) <= search.recurrence / 2:
                kinds[i] = CYCLE
            elif (
                period
                or still
                and not by_window[i]
                or by_window[i]
                and drifts(self._halves(lanes[i], record), most)
            ):
                kinds[i] = UNSETTLED if last else -1
            elif last and not regular[i] and drifts(self._late(lanes[i]), DRIFT):
                kinds[i] = UNSETTLED
        return kinds

    def _halves(self, lane: int, record) -> list[np.ndarray] | tuple[np.ndarray, ...]:
        """Halves of the stretch of orbit by which a lane was judged regular."""
        if self.by_window[lane]:
            return last_pieces(self.windows.points[lane], 2)
        return np.split(record, 2)

    def _late(self, lane: int) -> tuple[np.ndarray, np.ndarray]:
        """Points of a lane from the third and from the last quarter of the run."""
        return last_pieces(self.sampled[lane], 4)

    def _settle(self, lane: int, record, q: int, number: int) -> _Cycle | _Set | None:
        """What a lane ended on; the neighbourhood that ends a transient, if any."""
        end, half, kind = (number + 1) * self.record, self.record // 2, self.kind[lane]
        self.lifetime[lane], self.ended[lane] = (
            end,
            kind in (CYCLE, REGULAR, KIND_DIVERGED),
        )
        if kind == KIND_DIVERGED:
            near = (np.abs(record) < HORIZON).all(axis=1)
            self.lifetime[lane] = end - self.record + 1 + np.argmin(near)
            return None
        reach = self.follower.search.capture * (1 + np.abs(record[-half:]).max())
        if kind == CYCLE:
            self.points[lane] = np.resize(record[-q:], self.points[lane].shape)
            self.distinct[lane], self.scatter[lane] = q, 0.0
            self.period[lane] = q * self.follower.system.drive_period
            return _Cycle(record[-q:], end, reach)
        pieces = self._halves(lane, record) if kind == REGULAR else self._late(lane)
        cloud = pieces[1] if kind == REGULAR else np.concatenate(pieces)
        self.points[lane] = np.resize(cloud, self.points[lane].shape)
        self.distinct[lane] = min(len(cloud), half)
        self.scatter[lane] = max(set_distance(*pieces), resolution(pieces[1]))
        wide = max(reach, WIDE * self.scatter[lane])
        if self.by_window[lane]:  # fast passages leave few points
            wide = max(wide, WIDE * furthest(*pieces), WIDE * furthest(*pieces[::-1]))
            pairs = combinations(np.array_split(cloud, 4), 2)
            spread = max(set_distance(*pair) for pair in pairs)
            self.scatter[lane] = max(self.scatter[lane], spread)
        return _Set(np.concatenate(pieces), wide) if kind == REGULAR else None

    def _enter(self, reached: dict, diverged: list[int], number: int) -> None:
        """When neighbourhoods were entered for good, and what was before that.

        And what was before the orbits that `diverged` did.
        """
        early: dict[int, _Cycle | _Set] = {}
        keep: dict[int, list[int]] = defaultdict(list, {number - 1: diverged})
        for lane, (goal, record) in reached.items():
            s = self._last_outside(goal, record, number)
            if s is None:
                early[lane] = goal
            else:
                self._entered(lane, s, keep)
        self._walk_back(early, keep)
        for look in list(self.look_starts):
            for lane, record in self._again(look, keep[look.number]):
                self.before[lane] = record[-self.points.shape[1] :]

    def _walk_back(self, early: dict, keep) -> None:
        """Do looks again, the latest first, until all that entered early are found."""
        for look in list(self.look_starts)[-2::-1]:
            for lane, record in self._again(look, list(early)):
                s = self._last_outside(early[lane], record, look.number)
                if s is not None:
                    self._entered(lane, s, keep)
                    del early[lane]
        oldest = self.look_starts[0]
        begin = oldest.number * self.record
        for lane, goal in early.items():
            if goal.outside(np.array([begin]), oldest.seen[None, :, lane])[0]:
                self._entered(lane, begin, keep)
            else:
                self.lifetime[lane], self.exact[lane] = begin, begin == 0

    def _last_outside(self, goal: _Cycle | _Set, record, number: int) -> int | None:
        s = number * self.record + 1 + np.arange(self.record)
        outside = np.flatnonzero(goal.outside(s, record))
        return int(s[outside[-1]]) if outside.size else None

    def _entered(self, lane: int, last_outside: int, keep) -> None:
        """The lifetime; the look before the one it ended in is to be kept."""
        self.lifetime[lane] = last_outside + 1
        keep[(last_outside - 1) // self.record - 1].append(lane)

    def _again(self, look: _LookStart, lanes: list[int]):
        """Do a look of some lanes again, bit for bit: lane and record of each."""
        for some, _, looked in self.follower.look(
            look.state, self.parameters, np.array(lanes, int), look.width, look.number
        ):
            for i, lane in enumerate(some):
                yield int(lane), looked.record[..., i]


def drifts(pieces: Sequence[np.ndarray], most: float) -> bool:
    """Whether two pieces of an orbit are farther apart than `most` resolutions."""
    earlier, later = pieces
    return set_distance(earlier, later) > most * resolution(later)


def furthest(a: np.ndarray, b: np.ndarray) -> float:
    """Largest distance of a point of a (n, d) to the nearest one of b."""
    return float(KDTree(b).query(a, p=np.inf)[0].max())


def left_to_go(record: np.ndarray, q: int) -> float:
    """Distance of an orbit (T, d) that recurs after q points from its limit, relative.

    From the rate at which |z_{s+q} - z_s| falls, at the time from which on the orbit
    has been asked whether it recurs.  An orbit that closes in on a cycle of period q/2
    from both sides in turn recurs after q before it does after q/2.
    """
    size = 1 + np.abs(record).max()
    gaps = np.abs(record[q:] - record[:-q]).max(axis=1) / size
    turns = max(1, (len(record) // 3 - 1) // q)
    late, early = gaps[-q:].max(), gaps[-q * (turns + 1) : -q * turns].max()
    if early <= EXACT:
        return float(early)
    if late >= early:
        return np.inf
    return float(early / (1 - (late / early) ** (1 / turns)))
