r"""Attractors at one parameter and their basins (docs/theory/attractors.md, section 2).

Starts that ended on one set are one group: cycles of one period whose points agree,
and other sets whose distance is within a few of their own scatters.  A group of n_k of
n starts has the share p = n_k/n, with Wilson's interval of one standard error,

    $\frac{1}{1 + z^2/n} \Big( p + \frac{z^2}{2n}
        \pm z \sqrt{\frac{p (1 - p)}{n} + \frac{z^2}{4n^2}} \Big), \quad z = 1,$

which is not empty for a share of 0 or 1.

Starts on an invariant plane end on the sets of this plane, saddles among them.  So
every set is left by `KICK` in random directions: it is stable if all orbits that begin
there settle on it again, unstable if one settles elsewhere or diverges.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from statmech_attn import presentation
from statmech_attn.dynamics.attractors.matching import directed_distance, set_distance
from statmech_attn.dynamics.attractors.orbit_follower import Follower, Search
from statmech_attn.dynamics.attractors.settled_orbits import (
    follow_with,
    furthest,
    IRREGULAR,
    KIND_DIVERGED,
    KINDS,
    Orbits,
    UNSETTLED,
    WIDE,
)
from statmech_attn.dynamics.attractors.transients import escape_rate, EscapeRate
from statmech_attn.dynamics.maps.starts import shared_by, warn_of_readings
from statmech_attn.dynamics.maps.systems import System
from statmech_attn.dynamics.maps.tracing import untraced
from statmech_attn.labels import CodeWords, Variable
from statmech_attn.options import Count
from statmech_attn.statistics import wilson


CLOSE = 1e-5  # distance of cycles that are one, over 1 + the largest coordinate
SCATTERS = 2.0  # distance of other sets that are one, over their scatter
NOT_SETTLED, DIVERGED = -1, -2
INEXACT = 0.1  # share of the arrivals that may have an upper bound as their lifetime
KICK = 1e-6  # of the states that ask for stability, over 1 + their size
KICKS = 64  # states that are asked at least, over all sets
ROAM = 1.5  # reach of an orbit beside a set over that of the set's own points, at most
UNSTABLE, STABLE, UNDECIDED = range(3)
STABILITY = CodeWords("unstable", "stable", "undecided")


class Attractors(NamedTuple):
    """K attractors on which n orbits ended, the most frequent first.

    Attributes:
        kind: index into `KINDS`, (K,).
        period: steps, (K,); 0 where orbits do not recur.
        counts: number of initial conditions that ended on each set, (K,).
        transient: whether orbits were seen to leave the set, (K,).
        label: set of each initial condition, (n,); -1 not settled, -2 diverged.
        leader: number of the orbit that stands for the set, (K,).
        orbits: all orbits.
        stability: index into `STABILITY`, (K,): whether orbits that begin beside the
            set settle on it; of `find_attractors`.
    """

    kind: np.ndarray
    period: np.ndarray
    counts: np.ndarray
    transient: np.ndarray
    label: np.ndarray
    leader: np.ndarray
    orbits: Orbits
    stability: np.ndarray | None = None

    _shown = (
        Variable("kind", "attractor", "kind of the set", flags=KINDS),
        Variable("stability", "attractor", "beside the set", flags=STABILITY),
        Variable(
            "period", "attractor", "period, 0 where orbits do not recur", "{unit}", "p"
        ),
        Variable(
            "fraction",
            "attractor",
            "share of the starts",
            symbol="p",
            error="fraction_stderr",
        ),
        Variable("counts", "attractor", "starts that ended there", symbol="n"),
        Variable("transient", "attractor", "orbits were seen to leave"),
        Variable(
            "label",
            "start",
            "set of each start; -1 not settled, -2 diverged",
            line=False,
        ),
        Variable(
            "points",
            "attractor point coordinate",
            "points of the set",
            symbol="x",
            line=False,
        ),
        Variable(
            "scatter",
            "attractor",
            "distance of two pieces of the orbit",
            symbol="δ",
            line=False,
        ),
        Variable("merged_within", "attractor", "nearer orbits are on it", "radius"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def unit(self) -> str:
        """What a step of the system is: a token, a unit of time, ..."""
        return self.orbits.unit

    @property
    def points(self) -> np.ndarray:
        """Points of the sets, (K, P, d)."""
        return self.orbits.points[self.leader]

    @property
    def scatter(self) -> np.ndarray:
        """Distance of two pieces of an orbit on each set, (K,)."""
        return self.orbits.scatter[self.leader]

    @property
    def merged_within(self) -> np.ndarray:
        """Distance within which orbits count as on this set, in its radii, (K,).

        The radius is the root mean square distance of its points from their centre.  0
        for cycles: those that are one agree to rounding.
        """
        away = np.zeros(len(self.leader))
        for k in np.flatnonzero(self.period == 0):
            points = self.orbits.set_of(int(self.leader[k]))
            radius = np.sqrt(points.var(axis=0).sum())
            away[k] = SCATTERS * self.orbits.scatter[self.label == k].max() / radius
        return away

    @property
    def fraction(self) -> np.ndarray:
        """Share of the starts, (K,)."""
        return self.counts / len(self.label)

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Wilson's interval of one standard error around the shares."""
        return wilson(self.counts, len(self.label))

    @property
    def fraction_stderr(self) -> np.ndarray:
        """Half of this interval."""
        low, high = self.interval
        return (high - low) / 2

    @property
    def on_the_way(self) -> np.ndarray:
        """Starts whose lifetime is that of a transient, (n,).

        Not those that diverged, nor those on a set that does not recur and that nobody
        was seen to leave.
        """
        was_left = np.append(self.transient, [False, False])[self.label]
        stays = (self.orbits.kind == IRREGULAR) & ~was_left
        return (self.label != DIVERGED) & ~stays

    @property
    def inexact(self) -> int:
        """How many of these have a lifetime that is only an upper bound."""
        return int(np.sum(self.on_the_way & ~self.orbits.exact))


@untraced
def find_attractors(
    system: Callable[..., PyTree] | System,
    starts: PyTree,
    parameters: PyTree = None,
    *,
    search: Search = Search(),
) -> Attractors:
    """Distinct attractors of any system, and the starts that go to each.

    Sets that do not recur are one where they are nearer than twice the distance of two
    pieces of an orbit: `merged_within`, in radii of the set.  Where it is not far below
    the distance of sets that may coexist, as of limit cycles that are seen once per
    unit of time in short looks, a longer `record` of the search tells them apart, and
    so does a `section` of a flow, on which limit cycles are cycles.

    Sets are compared at one phase of the drive.  Orbits on one cycle that differ by
    whole drive periods are on one attractor; those that differ by a part of it are on
    two attractors of the driven map.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        starts: states, on the first axis of every array; an array without axes, such
            as a clock, is shared.  All have one phase of the drive.
        parameters: of the system, shared by all starts.
        search: horizon and tolerances.

    Returns:
        `Attractors`: the sets, the initial conditions that go to each, and all orbits.

    Raises:
        ValueError: a map that changes its state's shape, starts that are not as many
            in every array, or a choice that makes no sense.

    Example:
        >>> import numpy as np
        >>> wells = lambda x: 1.5 * x - 0.5 * x**3   # diverges beyond sqrt(5)
        >>> attractors = find_attractors(wells, np.array([-0.5, 1.0, 0.3, 5.0]))
        >>> attractors.counts.tolist(), attractors.period.tolist()
        ([2, 1], [1, 1])
        >>> STABILITY[attractors.stability].tolist(), attractors.label.tolist()
        (['stable', 'stable'], [1, 0, 0, -2])
    """
    shared = shared_by(starts, parameters)
    follower = Follower(system, search, starts, shared)
    warn_of_readings(follower.system, starts, shared)
    attractors = distinguish(follow_with(follower, starts, shared))
    if not attractors.leader.size:
        return attractors._replace(stability=np.empty(0, int))
    rows = max(KICKS, 4 * attractors.leader.size)
    sets = np.arange(rows) % attractors.leader.size
    kicked = _kicked(attractors.orbits.state, attractors.leader[sets])
    beside = follow_with(follower, kicked, shared_by(kicked, parameters))
    return attractors._replace(stability=_stability(attractors, beside, sets))


@presentation.knows_given
def distinguish(orbits: Orbits) -> Attractors:
    """Group orbits by the attractor on which they ended.

    The groups do not depend on the order of the orbits.
    """
    order = _canonical(orbits)
    label = np.where(orbits.kind == KIND_DIVERGED, DIVERGED, NOT_SETTLED)
    leaders: list[int] = []
    for i in order:
        same = (
            k for k, leader in enumerate(leaders) if is_same(orbits, i, orbits, leader)
        )
        label[i] = next(same, len(leaders))
        if label[i] == len(leaders):
            leaders.append(int(i))
    count = np.array([np.sum(label == k) for k in range(len(leaders))], int)
    rank = np.argsort(-count, kind="stable")
    place = np.append(np.argsort(rank), [DIVERGED, NOT_SETTLED])
    leader = np.array(leaders, int)[rank]
    kinds = (np.bincount(orbits.kind[label == k]) for k in rank)
    kind = np.array([np.argmax(counted) for counted in kinds], int)
    transient = [_orbit_left_set(orbits, i) for i in leader]
    return Attractors(
        kind,
        orbits.period[leader],
        count[rank],
        np.array(transient, bool),
        place[label],
        leader,
        orbits,
    )


def _kicked(states: PyTree, rows: np.ndarray) -> PyTree:
    """Some of the states, each moved in a direction of its own; clocks are not."""
    rng = np.random.default_rng(0)

    def moved(x: np.ndarray) -> np.ndarray:
        x = x[rows] if x.ndim else x
        if not x.ndim or not np.issubdtype(x.dtype, np.floating):
            return x
        return x + KICK * (1 + np.abs(x)) * rng.standard_normal(x.shape)

    return jax.tree.map(moved, jax.tree.map(np.asarray, states))


def _stability(attractors: Attractors, beside: Orbits, sets: np.ndarray) -> np.ndarray:
    """What became of orbits that began beside the sets, from their numbers.

    An orbit that comes back to chaos after bursts far from it has left it: beyond a
    blowout most points are on the set still.
    """
    code = np.full(attractors.leader.size, STABLE)
    same, roams = np.zeros((2, sets.size))
    for i, k in enumerate(sets):
        leader = int(attractors.leader[k])
        if beside.kind[i] < UNSETTLED:
            same[i] = is_same(beside, i, attractors.orbits, leader)
        if same[i] and attractors.kind[k] == IRREGULAR:
            members = attractors.orbits.set_of(leader)
            even, odd = members[::2], members[1::2]
            holes = max(furthest(even, odd), furthest(odd, even))
            roams[i] = furthest(beside.set_of(i), members) / holes
    back = (same > 0) & (roams <= ROAM)
    lost = ~back & (beside.kind != UNSETTLED) & ((same == 0) | (roams > WIDE))
    code[np.unique(sets[~back])] = UNDECIDED
    code[np.unique(sets[lost])] = UNSTABLE
    return code


def is_same(first: Orbits, i: int, second: Orbits, j: int) -> bool:
    """Whether orbit i of `first` and orbit j of `second` ended on one set."""
    if first.period[i] != second.period[j] or UNSETTLED in (
        first.kind[i],
        second.kind[j],
    ):
        return False
    a, b = first.set_of(i), second.set_of(j)
    if first.period[i]:
        return set_distance(a, b) <= CLOSE * (1 + np.abs(a).max())
    return set_distance(a, b) <= SCATTERS * max(first.scatter[i], second.scatter[j])


def _canonical(orbits: Orbits) -> np.ndarray:
    """Orbits that settled, in an order that depends on where they ended alone."""
    settled = np.flatnonzero(orbits.kind < UNSETTLED)
    means = orbits.points[settled].mean(axis=1)
    keys = (*means.T[::-1], orbits.scatter[settled], orbits.period[settled])
    return settled[np.lexsort(keys)]


def _orbit_left_set(orbits: Orbits, leader: int) -> bool:
    """Whether an orbit that ended elsewhere was on this set a look before."""
    if orbits.kind[leader] != IRREGULAR:
        return False
    reach, points = SCATTERS * orbits.scatter[leader], orbits.set_of(leader)
    return any(
        directed_distance(before, points) <= reach
        for before in orbits.before[orbits.ended]
        if np.isfinite(before).all()
    )


@presentation.knows_given
def arrival_rate(attractors: Attractors, resolution: Count = 1) -> EscapeRate:
    """Rate at which the transients before attractors end.

    A lifetime that is only an upper bound is no event.  The rate is NaN where it is not
    constant, and where more than 10 % of the lifetimes are upper bounds.

    Args:
        attractors: of one parameter, with their orbits.
        resolution: of the lifetimes, steps: the period of the drive.

    Returns:
        `EscapeRate`: the rate in nats per step, its standard error, and how far it is
        constant.

    Example:
        >>> import numpy as np
        >>> import jax.numpy as jnp
        >>> from statmech_attn.dynamics import Search
        >>> tent = lambda x: jnp.where(x > 1, 1 + x / 2, 2.2 * jnp.minimum(x, 1 - x))
        >>> starts = np.random.default_rng(0).uniform(0, 1, 400)
        >>> attractors = find_attractors(tent, starts, search=Search(4000, record=128))
        >>> rate = arrival_rate(attractors)
        >>> bool(abs(rate.rate - np.log(1.1)) < 4 * rate.stderr)
        True
    """
    orbits, inexact = attractors.orbits, attractors.inexact
    exact = attractors.on_the_way & orbits.exact
    lifetime, ended = orbits.lifetime[exact], orbits.ended[exact]
    if not exact.any():
        lifetime, ended = np.zeros(1), np.array([False])
    rate = escape_rate(lifetime, ended, resolution=resolution, unit=attractors.unit)
    if abs(rate.constancy) > 2 or inexact > INEXACT * (inexact + ended.sum()):
        rate = rate._replace(rate=np.nan, stderr=np.nan)
    return rate


def most_common(arrived: np.ndarray) -> int:
    """Number of the set that most orbits arrived on; -1 if none arrived."""
    arrived = arrived[arrived >= 0]
    return int(np.argmax(np.bincount(arrived))) if arrived.size else -1
