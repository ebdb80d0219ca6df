r"""All cycles of a map up to a period, unstable or not (docs/theory/indicators.md, 8).

A cycle of p steps is a closed orbit $x_{t+1} = F(x_t)$, $x_p = x_0$.  Starts are

*recurrences*: pieces of p steps of a long orbit whose ends are closest; and
*stabilising transformations*: points x of the orbit and of shorter cycles, from where
the flow $dx/ds = C\,(F^p(x) - x)$ is followed by steps

    $x' = x - (G + \beta |g| Q)^{-1} g$      $g = F^p(x) - x$, $G = DF^p(x) - 1$

(Davidchack & Lai, PRE 60, 6172, 1999; Schmelcher & Diakonos, PRL 78, 4733, 1997), which
are Newton's where g vanishes.  $C = -Q^T$ makes a cycle attract where Q is the
orthogonal factor of its G.  At the start G is known: Q is taken of G with the signs of
the expanding directions of $DF^p$ chosen in all $2^k$ ways (Crofts & Davidchack, SIAM
J. Sci. Comput. 28, 1275, 2006), of which there are few in any dimension.

Both end in Newton's method for all p points at once.  Its equations
$J_t \delta_t - \delta_{t+1} = x_{t+1} - F(x_t)$ are eliminated from point to point by
orthogonal transformations (Wright, SIAM J. Sci. Stat. Comput. 13, 742, 1992): no
product of Jacobians is formed, and long cycles lose no digits.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, PyTree
from scipy.spatial import KDTree

from statmech_attn import presentation
from statmech_attn.batches import batches, require_double
from statmech_attn.dynamics.exponents import cycles
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents
from statmech_attn.dynamics.exponents.frames import start_frame
from statmech_attn.dynamics.exponents.lyapunov import frame_size
from statmech_attn.dynamics.maps.orbit_equations import (
    eliminate,
    newton,
    OnOrbit,
    restore,
)
from statmech_attn.dynamics.maps.orbits import orbit
from statmech_attn.dynamics.maps.systems import as_system, System, TangentSystem
from statmech_attn.dynamics.maps.tracing import untraced
from statmech_attn.labels import CodeWords, STEP, Variable, Variables
from statmech_attn.options import Count, WholeNumber


LANES = 64  # starts that are followed side by side
SPREAD = 4  # recurrences for one start of a flow on the orbit
SIGNED = 3  # expanding directions whose signs are chosen in all ways
SHORTEST = 0.3, 1.3  # step where Q rules, of the attractor's size, and its base in p
FLOW_STEPS = 50  # of a stabilised flow
NEWTON_STEPS = 12
LEAST = 0.01  # size of an attractor, of its distance from the origin
LONGEST = 0.3  # step of Newton's method, of the attractor's size
CLOSED = 1e-10  # last correction, of the attractor's size: Newton's squares it
SAME = 1e-7  # distance of two orbits that are one, and of a point that has returned
ALIGNED = 64  # steps that turn a frame before it is read, at least
ROUNDS_TO_HALVE = 4  # further ones in which it gains a factor of two

CYCLE_RESULTS = CodeWords(
    "a cycle of this period",
    "a cycle of a part of the period",
    "not converged",
    "the orbit became infinite or not a number",
)
CYCLE, SHORTER, NOT_CONVERGED, NOT_FINITE = range(len(CYCLE_RESULTS))
COMPLETENESS = CodeWords(
    "nothing shows that a cycle is missing", "may be incomplete", "not known"
)
NONE_MISSING, INCOMPLETE, NOT_KNOWN = range(len(COMPLETENESS))
SIGMAS = 3.0  # standard errors below which an exponent has no sign
ROUNDS, STAYS = 8, 2  # further searches at most, and without a new cycle
NEIGHBOURS = 8  # points of cycles between which further starts lie

_ROWS = (
    Variable("cycles", "period", "number of cycles", symbol="M_p", value="counts"),
    Variable(
        "starts",
        "period result",
        "starts by how they ended",
        value="outcomes",
        line=False,
    ),
    Variable("result", "result", "how a start ended", value="results", line=False),
    Variable("period", "period", "period", "{unit}", "p", value="periods", line=False),
    Variable("length", "cycle", "period of a cycle", "{unit}", "p", line=False),
    Variable(
        "lyapunov",
        "cycle exponent",
        "Lyapunov exponents of a cycle",
        "nat / {unit}",
        "λ_i",
        value="exponents",
        error="stderr",
        line=False,
    ),
    Variable(
        "sign",
        "cycle exponent",
        "sign of a multiplier, 0 of a complex one",
        symbol="sgn μ",
        value="signs",
        line=False,
    ),
    Variable(
        "point",
        "cycle place coordinate",
        "points of a cycle, NaN after its period",
        symbol="x",
        value="points",
        line=False,
    ),
    Variable("hits", "cycle", "starts that ended in a cycle", symbol="n", line=False),
    Variable(
        "distance",
        "cycle",
        "largest distance of its points from the orbit",
        symbol="δ",
        line=False,
    ),
)
_CHECKS = (
    Variable("completeness", "", "list", flags=COMPLETENESS),
    Variable(
        "index_sum",
        "period",
        "sum of the indices of points that return",
        symbol="L_p",
        value="index_sums",
    ),
    Variable("stayed", "", "last searches, from more starts, without a new cycle"),
)
VARIABLES = Variables(*(row._replace(group="") for row in _ROWS), *_CHECKS)


class UnstableCycles(eqx.Module):
    """Cycles of a map, each once and of its smallest period, shortest first.

    Attributes:
        length: period of each cycle, steps.
        points: NaN after the period; a cycle begins where a generic sum of its
            coordinates is largest.
        exponents: ln |mu| / p of each multiplier, largest first, nats per step; -inf
            where the map sends a direction to zero, NaN where rounding hides it.
        stderr: what rounding does to them.
        signs: of the multipliers; 0 of a complex pair.
        hits: starts that ended in the cycle.
        distance: of the point of the cycle that is farthest from the orbit, relative to
            the size of the attractor; small for cycles in the attractor.
        outcomes: starts of every period 1, 2, ... by how they ended, in the order of
            `CYCLE_RESULTS`.
        stayed: how many searches at the end found no new cycle, each from twice as many
            starts as the one before; None where there was one search.
        unit: what a step is.
    """

    length: Int[np.ndarray, " n"]
    points: Float[np.ndarray, "n longest d"]
    exponents: Float[np.ndarray, "n k"]
    stderr: Float[np.ndarray, "n k"]
    signs: Int[np.ndarray, "n k"]
    hits: Int[np.ndarray, " n"]
    distance: Float[np.ndarray, " n"]
    outcomes: Int[np.ndarray, "periods results"]
    stayed: int | None = None
    unit: str = eqx.field(static=True, default=STEP)

    _shown = _ROWS + _CHECKS
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def periods(self) -> Int[np.ndarray, " periods"]:
        """Periods that were searched for."""
        return np.arange(1, len(self.outcomes) + 1)

    @property
    def results(self) -> Int[np.ndarray, " results"]:
        """Codes of the ends of starts, `CYCLE_RESULTS`."""
        return np.arange(len(CYCLE_RESULTS))

    @property
    def counts(self) -> Int[np.ndarray, " periods"]:
        """Number of cycles of each period."""
        return np.bincount(self.length, minlength=len(self.outcomes) + 1)[1:]

    @property
    def index_sums(self) -> Float[np.ndarray, " periods"]:
        """Sum of sign det(1 - DF^n) over the points that return after n = 1, 2, ...

        NaN where a sign is not known: there must be a contracting exponent or all of
        them, and none within three standard errors of zero.
        """
        expands = self.exponents > 0
        real, left = expands & (self.signs != 0), expands & (self.signs < 0)
        marginal = np.abs(self.exponents) <= SIGMAS * self.stderr
        every = self.exponents.shape[1] == self.points.shape[2]
        ends = (self.exponents < 0).any(axis=1) | (
            every & ~np.isnan(self.exponents).any(axis=1)
        )
        pairs = np.sum(expands & (self.signs == 0), axis=1) % 2 == 0
        known = ends & pairs & ~marginal.any(axis=1)
        even, odd = (1.0 - 2 * (np.sum(x, axis=1) % 2) for x in (real, real & ~left))
        turns, rest = np.divmod(self.periods[:, None], self.length)
        index = np.where(known, np.where(turns % 2, odd, even), np.nan)
        return np.where(rest == 0, self.length * index, 0.0).sum(axis=1)

    @property
    def completeness(self) -> int:
        """Index into `COMPLETENESS`: whether one number is the sum at all periods."""
        sums = self.index_sums
        if self.stayed == 0 or (np.abs(sums - sums[0]) > 0).any():
            return INCOMPLETE
        return NONE_MISSING if np.isfinite(sums).all() and len(sums) > 1 else NOT_KNOWN

    def explain(self) -> str:
        """What speaks for a complete list or against it, in a sentence or two."""
        sums = self.index_sums
        other = np.append(np.flatnonzero(sums != sums[0]), 0)[0]
        if not (np.isfinite(sums).all() and len(sums) > 1):
            told = (
                "Indices do not tell whether a cycle is missing: they need two periods "
                "and exponents whose signs are known, down to a negative one."
            )
        elif other:
            told = (
                f"The indices of points that return after {1 + other} steps sum to "
                f"{sums[other]:g}, those of fixed points to {sums[0]:g}: cycles are "
                "missing, unless the map is torn, or stretches a circle or a torus or "
                "turns the plane over itself."
            )
        else:
            told = (
                f"The indices of points that return after n steps sum to {sums[0]:g} "
                "at every n, as those of a complete list do."
            )
        if self.stayed is None:
            return told
        last = (
            f"the last {self.stayed} found none" if self.stayed else "the last did too"
        )
        return f"{told} Further searches were made for more cycles; {last}."

    @presentation.knows_given
    def where(self, chosen: np.ndarray) -> "UnstableCycles":
        """Some of the cycles.

        Args:
            chosen: whether each is one of them, or their numbers.
        """
        of_each = (
            "length",
            "points",
            "exponents",
            "stderr",
            "signs",
            "hits",
            "distance",
        )
        parts = {name: getattr(self, name)[chosen] for name in of_each}
        return dataclasses.replace(self, **parts)


@untraced
def unstable_cycles(
    system: Callable[..., PyTree] | System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    period: Count,
    steps: Count = 20_000,
    transient: WholeNumber = 1000,
    starts: Count = 1000,
    exponents: WholeNumber | None = None,
    near: Float[ArrayLike, "d n"] | None = None,
    until_complete: bool = False,
) -> UnstableCycles:
    """All cycles of a map up to a period, by recurrences and stabilised flows.

    Whether one is missing is told by their indices (`explain`).  The signs of
    det(1 - DF^n), summed over the points that return after n steps, give the Lefschetz
    number of F^n.  It is 1 at every n where a continuous map takes a ball into itself,
    0 for horseshoes as Henon's, and one number wherever the region of the cycles is not
    stretched over itself by F as a circle, a torus or the plane by z^2 + c are; maps
    that are torn have none.
    A cycle of p steps that is missing changes it by p, and so does any odd number of
    them.  Not seen are two of opposite index (a pair that is born in a fold, say), and
    a missing fixed point that changes all sums alike.  `hits` tell less: starts that
    are neighbours end alike.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state; a section, say.
        state: where the orbit starts.
        parameters: of the system, a tree of arrays; none when omitted.
        period: the longest one.
        steps: of the orbit.
        transient: steps before it.
        starts: recurrences of every period; a quarter as many points of the orbit are
            starts of stabilised flows, beside all points of shorter cycles.
        exponents: how many leading exponents of each; all when omitted.
        near: coordinates of further starts, in the region of cycles that no orbit
            comes near; needed where the orbit escapes.
        until_complete: whether the search goes on between the points of the cycles so
            far, each time from twice as many starts, until it finds no more and indices
            sum to one number, or finds no more twice in a row, at most eight times.

    Returns:
        `UnstableCycles`; periods without cycles have none.

    Raises:
        ValueError: a count below 1, a system that is driven, no start, or starts of
            another shape.

    Example:
        >>> import jax.numpy as jnp
        >>> cycles = unstable_cycles(
        ...     lambda x: 4 * x * (1 - x), jnp.array(0.3), period=4, steps=1000)
        >>> cycles.counts.tolist()
        [2, 1, 2, 3]
    """
    require_double()
    system = as_system(system)
    if system.drive_period > 1:
        raise ValueError(
            "a driven map is seen once per period of its drive: give "
            f"system.strobed({system.drive_period})."
        )
    state = jax.tree.map(jnp.asarray, state)
    search = _Search(
        system, state, parameters, period, steps, transient, starts // SPREAD, near
    )
    for p in range(1, period + 1):
        search.take(p, search.recurrences(p, starts))
        search.take(p, search.stabilised(p, search.first))
    k = frame_size(search.map, state, exponents)
    if until_complete:
        search.go_on(max(starts // SPREAD, 1), k)
    return search.cycles(k)


class _Search:
    """Cycles so far, and how further starts are followed."""

    def __init__(
        self, system, state, parameters, period, steps, transient, spread, near
    ):
        self.map, self.state = system.at(parameters), state
        self.unit, self.longest = system.unit, period
        self.dimension = frame_size(self.map, state, None)
        whole = dataclasses.replace(system, observe=None)
        points = orbit(whole, state, parameters, samples=steps, transient=transient)
        stays = np.isfinite(points).all()
        self.orbit = np.asarray(points)[: steps if stays else 0]
        further = np.empty((self.dimension, 0)) if near is None else np.asarray(near)
        if further.ndim != 2 or len(further) != self.dimension:
            raise ValueError(
                f"near must have the coordinates of starts as columns, "
                f"({self.dimension}, n); got shape {further.shape}."
            )
        spaced = self.orbit[:: 1 + steps // (1 + spread)]
        self.first = np.concatenate([spaced, further.T])
        if not len(self.first):
            raise ValueError("the orbit escapes: give starts near the cycles by near.")
        least = LEAST * np.abs(self.first).max(axis=0)
        size = np.maximum(np.std(self.first, axis=0), least)
        self.size = np.where(size > 0, size, 1.0)
        weights = 0.5 + np.sqrt(np.arange(2, self.dimension + 2)) % 1
        self.weights = weights / self.size
        self.known: list[_Orbits] = [
            _Orbits(self.size, self.weights, p) for p in range(period + 1)
        ]
        self.outcomes = np.zeros((period, len(CYCLE_RESULTS)), int)
        self.stayed: int | None = None

    def recurrences(self, p: int, most: int) -> Float[np.ndarray, "n p d"]:
        """Pieces of p steps whose ends are closest."""
        if len(self.orbit) <= p:
            return np.empty((0, p, self.dimension))
        gaps = np.abs((self.orbit[p:] - self.orbit[:-p]) / self.size).max(axis=1)
        starts = np.argsort(gaps, kind="stable")[:most]
        return self.orbit[starts[:, None] + np.arange(p)]

    def go_on(self, starts: int, k: int) -> None:
        """Further searches, each from twice as many starts, until none is found."""
        rng, self.stayed = np.random.default_rng(0), 0
        for doubled in range(ROUNDS):
            before = [len(x.hits) for x in self.known]
            points = [x.points.reshape(-1, self.dimension) for x in self.known[1:]]
            pool = np.concatenate(points) / self.size
            pool = pool if len(pool) > 1 else self.first / self.size
            ends = rng.integers(len(pool), size=starts * 2**doubled)
            others = KDTree(pool).query(pool[ends], k=min(NEIGHBOURS, len(pool)))[1]
            others = rng.permuted(others.reshape(len(ends), -1), axis=1)[:, 0]
            share = rng.uniform(size=(len(ends), 1))
            between = pool[ends] + share * (pool[others] - pool[ends])
            for p in range(1, self.longest + 1):
                self.take(p, self.stabilised(p, between * self.size))
            same = [len(x.hits) for x in self.known] == before
            self.stayed = self.stayed + 1 if same else 0
            if self.stayed == STAYS:
                break
            if self.stayed and self.cycles(k).completeness == NONE_MISSING:
                break

    def stabilised(self, p: int, seeds) -> Float[np.ndarray, "n p d"]:
        """Pieces of p steps from the ends of stabilised flows."""
        shorter = [x.points for q, x in enumerate(self.known) if q and p % q]
        seeds = np.concatenate(
            [seeds, *(x.reshape(-1, self.dimension) for x in shorter)]
        )
        directions = min(self.dimension, SIGNED)
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=directions)))
        ones = np.ones((len(signs), self.dimension - directions))
        signs = np.concatenate([signs, ones], axis=1)
        arrays = np.repeat(seeds, len(signs), axis=0), np.tile(signs, (len(seeds), 1))
        shortest = SHORTEST[0] / SHORTEST[1] ** p
        fixed = (self.map, self.state, self.size, p, shortest)
        flow = lambda *lanes: _flow(*_arrays(fixed), *lanes, longest=self.longest)
        return _in_batches(flow, *arrays)[:, :p]

    def take(self, p: int, pieces: Float[np.ndarray, "n p d"]) -> None:
        """Newton's method from pieces of p steps; cycles that are new are kept."""
        ended = np.isfinite(pieces).all(axis=(1, 2))
        self.outcomes[p - 1, NOT_CONVERGED] += np.sum(~ended)
        pieces = pieces[ended]
        if not len(pieces):
            return
        padding = ((0, 0), (0, self.longest - p), (0, 0))
        fixed = self.map, self.state, self.size, p
        newton = lambda *lanes: _newton(*_arrays(fixed), *lanes)
        orbits, changes = _in_batches(newton, np.pad(pieces, padding, mode="edge"))
        orbits = orbits[:, :p]
        finite = np.isfinite(orbits).all(axis=(1, 2))
        closed = finite & (changes <= CLOSED)
        periods = self._smallest(orbits)
        codes = np.where(finite, np.where(closed, CYCLE, NOT_CONVERGED), NOT_FINITE)
        codes = np.where(closed & (periods < p), SHORTER, codes)
        self.outcomes[p - 1] += np.bincount(codes, minlength=len(CYCLE_RESULTS))
        self.known[p].add(orbits[codes == CYCLE])

    def _smallest(self, orbits: Float[np.ndarray, "n p d"]) -> Int[np.ndarray, " n"]:
        """Smallest periods of closed orbits."""
        p = orbits.shape[1]
        periods = np.full(len(orbits), p)
        for q in (q for q in range(p - 1, 0, -1) if p % q == 0):
            away = np.abs((np.roll(orbits, -q, axis=1) - orbits) / self.size)
            periods[away.max(axis=(1, 2)) < SAME] = q
        return periods

    def cycles(self, k: int) -> UnstableCycles:
        """All cycles, with their k largest multipliers."""
        known = self.known[1:]
        length = np.repeat(np.arange(1, len(known) + 1), [len(x.hits) for x in known])
        points = np.full((len(length), self.longest, self.dimension), np.nan)
        for p, orbits in enumerate(known, 1):
            points[length == p, :p] = orbits.points
        hits = np.concatenate([x.hits for x in known])
        exponents, stderr, signs = self._spectra(length, points, k)
        return UnstableCycles(
            length=length,
            points=points,
            exponents=exponents,
            stderr=stderr,
            signs=signs,
            hits=hits,
            distance=self._distance(points),
            outcomes=self.outcomes,
            stayed=self.stayed,
            unit=self.unit,
        )

    def _distance(self, points) -> Float[np.ndarray, " n"]:
        """Largest distances of points of cycles from the orbit."""
        distances = np.full(points.shape[:2], -np.inf)
        real = np.isfinite(points).all(axis=2)
        if real.any() and len(self.orbit):
            tree = KDTree(self.orbit / self.size)
            distances[real] = tree.query(points[real] / self.size)[0]
        return np.where(len(self.orbit), distances.max(axis=1), np.nan)

    def _spectra(self, length, points, k: int):
        """Exponents, errors and signs of the multipliers of all cycles."""
        if not len(length):
            return np.empty((0, k)), np.empty((0, k)), np.empty((0, k), int)
        columns = min(k + 1, self.dimension)
        frame = np.asarray(start_frame(self.map, self.state, columns)[1])
        signs = np.zeros((columns, len(length)), int)
        padded = np.where(np.isnan(points), points[:, :1], points)

        def once(which, vectors, frames, periods, kicks):
            fixed = self.map, self.state, kicks
            go_round = lambda *lanes: _go_round(*_arrays(fixed), *lanes)
            lanes = padded[which], length[which], vectors.T
            lanes = *lanes, np.moveaxis(frames, -1, 0), periods
            after = cycles.Round(
                *(np.moveaxis(x, 0, -1) for x in _in_batches(go_round, *lanes))
            )
            if not kicks.any():
                turned = np.einsum("dkn,dkn->kn", frames, after.frame)
                signs[:, which] = np.where(np.abs(turned) > 0.99, np.sign(turned), 0)
            return after

        every = np.arange(len(length))
        quiet = np.zeros((cycles.SPREAD, self.dimension, 1 + columns))
        vectors, frames = points[:, 0].T, np.repeat(frame[..., None], len(every), 2)
        rounds = -(-ALIGNED // length)
        frames = once(every, vectors, frames, rounds * length, quiet).frame
        spectrum = cycles.spectra(
            once,
            vectors,
            frames,
            length,
            k,
            rank=finite_exponents(self.map, self.state),
            patience=ROUNDS_TO_HALVE,
        )
        return spectrum.exponents.T, spectrum.stderr.T, signs[:k].T


class _Orbits:
    """Different cycles of one period, and how often each was come to."""

    def __init__(self, size, weights, p: int):
        self.size, self.weights = size, weights
        self.points = np.empty((0, p, len(size)))
        self.hits = np.empty(0, int)

    def add(self, orbits: Float[np.ndarray, "n p d"]) -> None:
        """Count cycles that are known, and keep others."""
        first = np.argmax(orbits @ self.weights, axis=1)
        p = orbits.shape[1]
        turned = (first[:, None] + np.arange(p)) % p
        orbits = np.take_along_axis(orbits, turned[..., None], axis=1)
        together = np.concatenate([self.points, orbits])
        hits = np.concatenate([self.hits, np.ones(len(orbits), int)])
        # One number of each: equal where orbits are, and rarely otherwise.
        generic = 0.5 + np.sqrt(np.arange(2, p + 2)) % 1
        marks = (together @ self.weights) @ (generic / generic.sum())
        order = np.argsort(marks, kind="stable")
        parts = np.split(order, 1 + np.flatnonzero(np.diff(marks[order]) > SAME))
        distinct = []
        for part in parts if len(order) else []:
            rest = np.sort(part)
            while len(rest):
                away = np.abs(together[rest] - together[rest[0]]) / self.size
                same = away.max(axis=(1, 2)) < SAME
                hits[rest[0]] = hits[rest[same]].sum()
                distinct.append(rest[0])
                rest = rest[~same]
        distinct = np.sort(np.array(distinct, int))
        self.points, self.hits = together[distinct], hits[distinct]


def _arrays(tree):
    """Numbers as arrays, which programs do not hold fixed."""
    number = lambda x: isinstance(x, (int, float, np.ndarray))
    return jax.tree.map(lambda x: jnp.asarray(x) if number(x) else x, tree)


def _in_batches(function: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """Results of a function of `LANES` rows, of all rows; the last are repeated."""
    parts = []
    for rows, real in batches(np.arange(len(arrays[0])), LANES):
        results = function(*(jnp.asarray(x[rows]) for x in arrays))
        parts.append(jax.tree.map(lambda x, real=real: np.asarray(x)[:real], results))
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def _pushed(map: TangentSystem, state, x, times):
    """Coordinates so many steps later and the Jacobian."""
    push = lambda _, carry: map.push(*carry)
    lifted = map.lift(map.at(state, x))
    lifted, jacobian = jax.lax.fori_loop(0, times, push, (lifted, jnp.eye(x.size)))
    return map.vector(map.lower(lifted)), jacobian


@eqx.filter_jit
def _flow(map, state, size, p, shortest, starts, signs, *, longest):
    """Pieces of orbits from where stabilised flows end; NaN where they do not."""

    def image(x):
        after, jacobian = _pushed(map, state, x, p)
        return (after - x) / size, jacobian * size / size[:, None]

    def one(x, signs):
        left, stretch, right = jnp.linalg.svd(image(x)[1])
        chosen = (left * (signs * stretch)) @ right - jnp.eye(x.size)
        left, _, right = jnp.linalg.svd(chosen)
        turn = left @ right

        def improve(x):
            gap, jacobian = image(x)
            length = jnp.linalg.norm(gap)
            slope = jacobian - jnp.eye(x.size) + length / shortest * turn
            step = jnp.linalg.solve(slope, gap)
            return x - size * step, jnp.linalg.norm(step)

        x, change, _ = newton(improve, x, SAME, FLOW_STEPS)
        return _piece(map, state, jnp.where(change <= SAME, x, jnp.nan), longest)

    return jax.vmap(one)(starts, signs)


def _piece(map: TangentSystem, state, x, length: int) -> Float[Array, "length d"]:
    """Points of an orbit from x on."""

    def step(state, _):
        return map.step(state), map.vector(state)

    return jax.lax.scan(step, map.at(state, x), None, length=length)[1]


@eqx.filter_jit
def _newton(map, state, size, p, pieces):
    """Closed orbits near pieces of p steps, and the last correction."""

    def step_of(x):
        return _pushed(map, state, x, 1)

    def one(points):
        after = jnp.arange(len(points)) + 1
        after = jnp.where(after < p, after, 0)

        def improve(points):
            images, jacobians = jax.vmap(step_of)(points)
            step = _closing(jacobians, points[after] - images, p)
            change = jnp.max(jnp.abs(step / size))
            return points + step * jnp.minimum(1, LONGEST / change), change

        points, change, _ = newton(improve, points, CLOSED, NEWTON_STEPS)
        bounded = jnp.isfinite(points).all()
        return jnp.where(bounded, points, jnp.nan), change

    return jax.vmap(one)(pieces)


def _closing(jacobians, gaps, p):
    """The steps s with J_t s_t - s_{t+1} = gap_t and s_p = s_0; zero after p."""
    (first, last, right), taken = eliminate(jacobians, gaps[..., None], p)
    start = jnp.linalg.solve(first + last, right[:, 0])
    return restore(taken, start, start, jnp.ones(1))


@eqx.filter_jit
def _go_round(map, state, kicks, points, lengths, vectors, frames, steps):
    """Frames that went round cycles."""

    def one(points, period, vector, frame, steps):
        on_cycle = OnOrbit(map, state, points, period)
        start = (jnp.asarray(0), vector)
        return cycles.go_round(on_cycle, start, vector, frame, kicks, steps)

    return jax.vmap(one)(points, lengths, vectors, frames, steps)
