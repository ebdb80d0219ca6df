r"""Edge tracking: orbits on the border of two basins (docs/theory/attractors.md, 8).

The stable manifold of an edge state divides the basins of two attractors: orbits on one
side go to one, on the other side to the other, and orbits on it stay beside the edge
state, a fixed point, a cycle or a chaotic set.  A segment between two states with
different labels crosses this manifold.  It is cut until its ends are `near` each other,
both are followed until they are `far` apart, and the segment between them is cut again
(Skufca, Yorke, Eckhardt, Phys. Rev. Lett. 96, 174101, 2006; Battelino et al., Physica D
32, 296, 1988).  A pseudo-orbit with jumps below `far` remains, along which tangent
vectors grow as on the edge state,

    $x_{n+1} = F(x_n) + \delta_n$,   $V_{n+1} = DF(x_n) V_n$
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.attractors.arrivals import STAYS, steps_of_look, Targets
from statmech_attn.dynamics.attractors.basins import Attractors, DIVERGED, NOT_SETTLED
from statmech_attn.dynamics.attractors.orbit_follower import take
from statmech_attn.dynamics.attractors.settled_orbits import (
    CYCLE,
    IRREGULAR,
    KINDS,
    REGULAR,
)
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents
from statmech_attn.dynamics.exponents.lyapunov import BLOCKS, lyapunov_spectrum
from statmech_attn.dynamics.maps.coordinates import Coordinates
from statmech_attn.dynamics.maps.starts import start_of_each
from statmech_attn.dynamics.maps.systems import (
    as_system,
    count_of,
    describe,
    lane_axes,
    System,
    TangentSystem,
)
from statmech_attn.dynamics.maps.tracing import untraced
from statmech_attn.dynamics.options import Search
from statmech_attn.labels import CodeWords, STEP, Variable
from statmech_attn.options import Count, Positive, WholeNumber


LEAST = 64  # states of which exponents are taken
PIECE = 256  # steps of a record, after which it goes on with the next one
PARTS = 16  # pieces into which a segment is cut at once
SIGMAS = 3.0  # standard errors below which an exponent is zero
CLOSED = 10.0  # distance of a return over `far`, below which the orbit recurs
EDGE_RESULTS = CodeWords(
    "tracked for all steps",
    "the two sides no longer go to their labels",
    "an orbit between the sides has no label within the horizon",
    "a third basin lies between the sides",
    "the sides are one number to rounding in a coordinate",
)
TRACKED, LEFT, UNDECIDED, ANOTHER, ROUNDED = range(len(EDGE_RESULTS))


class Edge(NamedTuple):
    """A pseudo-orbit on the edge of two basins, and the edge state where it ended.

    Attributes:
        states: coordinates of its states after the transient, (n, d).
        separation: distance of its two sides, over 1 + the largest coordinate, (n,).
        state: the last state, with its clock.
        labels: of the two sides.
        cuts: how often the segment was cut anew.
        period: steps after which the edge state recurs; 0: it does not, or not yet.
        exponents: of the edge state, the largest first; none of too few states.
        stderr: their standard errors.
        result: index into `EDGE_RESULTS`.  Where chaos along the edge parts the sides
            faster than the way across it, they become one number to rounding across:
            no horizon helps.
        unit: what a step is.
    """

    states: np.ndarray
    separation: np.ndarray
    state: PyTree
    labels: tuple[int, int]
    cuts: int
    period: int
    exponents: np.ndarray
    stderr: np.ndarray
    result: int
    unit: str = STEP

    _shown = (
        Variable("result", "", "result", flags=EDGE_RESULTS),
        Variable("kind", "", "kind of the edge state", flags=KINDS),
        Variable("period", "", "period, 0 where it does not recur", "{unit}", "p"),
        Variable(
            "lyapunov",
            "exponent",
            "Lyapunov exponents of the edge state",
            "nat / {unit}",
            "λ_i",
            value="exponents",
            error="stderr",
        ),
        Variable("cuts", "", "cuts of the segment", symbol="n"),
        Variable(
            "states", "time coordinate", "states on the edge", symbol="x", line=False
        ),
        Variable(
            "separation", "time", "distance of the two sides", symbol="δ", line=False
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def kind(self) -> int:
        """Index into `KINDS`: periodic, regular with a zero exponent, or irregular."""
        if self.period:
            return CYCLE
        zero = np.abs(self.exponents) <= SIGMAS * self.stderr
        return REGULAR if zero.any() else IRREGULAR


@untraced
def track_edge(
    system: Callable[..., PyTree] | System,
    first: PyTree,
    second: PyTree,
    parameters: PyTree = None,
    *,
    label: Callable[[PyTree], Any] | Attractors,
    steps: Count = 2000,
    transient: WholeNumber = 1000,
    near: Positive = 1e-9,
    far: Positive = 1e-6,
    horizon: Count = 10_000,
    exponents: WholeNumber | None = None,
) -> Edge:
    """Follow the edge between the basins of two states, and find its edge state.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        first, second: states whose orbits have different labels; one clock.
        parameters: of the system.
        label: function of JAX, state -> label of an orbit that is there, and -1 as long
            as it is not decided; or attractors as `find_attractors` finds them, whose
            labels are their numbers.  An orbit that diverges has the label -2.
        steps: of the edge orbit, after the transient.  Exponents need 64; a fifth of
            them aligns the frame.  80 are enough for a fixed point (1e-7 of `far` 1e-6
            for Henon's map), while on chaos errors are statistical: 0.04 nat per step
            of 100 and 0.014 of 1000, where the edge state is Henon's attractor.
        transient: steps before that.
        near: distance of the two sides to which the segment is cut, over 1 + the
            largest coordinate.
        far: distance from which on it is cut again, likewise.
        horizon: steps within which orbits have labels.
        exponents: how many of the edge state, all when omitted.

    Returns:
        `Edge`: the pseudo-orbit, period and exponents of the edge state, and whether it
        was tracked for so long.

    Raises:
        ValueError: both states have one label, one has none within the horizon, clocks
            that differ, a number that is not finite, or distances that make no sense.

    Example:
        >>> import jax.numpy as jnp
        >>> flow = lambda x: x + 0.1 * (x - x**3)  # its edge is the fixed point 0
        >>> side = lambda x: jnp.where(abs(x) > 0.9, x > 0, -1)
        >>> edge = track_edge(flow, jnp.array(-0.7), jnp.array(1.2), label=side)
        >>> edge.period, bool(abs(edge.exponents[0] - jnp.log(1.1)) < 1e-10)
        (1, True)
    """
    require_double()
    if not 1e-14 <= near < far:
        raise ValueError(f"near must lie in 1e-14..far; got {near:g}, far {far:g}.")
    system = as_system(system)
    sides = _Sides(system, parameters, label, horizon)
    state = sides.between(first, second)
    goals = _different(sides.labels(state), horizon)
    edge = _Track(sides, goals, near, far)
    state = edge.follow(state, transient)
    begin, edge.states, edge.separation = edge.last, [], []
    state = edge.follow(state, steps)
    states = np.array(edge.states).reshape(-1, sides.vectors(state).shape[0])
    multiple = np.lcm(system.drive_period, system.at(parameters).layout_period)
    return Edge(
        states,
        np.array(edge.separation),
        edge.last,
        goals,
        edge.cuts,
        _period(states, int(multiple), CLOSED * far),
        *_exponents(system, begin, states, parameters, exponents),
        edge.result,
        system.unit,
    )


class _PseudoOrbit(TangentSystem):
    """A map whose state is replaced by the next one of a list after every step.

    Its states are pairs: the number of a state of the list, and this state.
    """

    map: TangentSystem
    states: Float[Array, "n d"]
    known_rank: int | None = eqx.field(static=True, default=None)

    @property
    def rank(self):
        return self.known_rank

    def lift(self, state):
        return state[0], self.map.lift(state[1])

    def lower(self, lifted):
        return lifted[0], self.map.lower(lifted[1])

    def step(self, state):
        return self._moved(state[0], self.map.step(state[1]))

    def vector(self, state):
        return self.map.vector(state[1])

    def at(self, state, vector):
        return state[0], self.map.at(state[1], vector)

    def push(self, lifted, frame):
        number, inside = lifted
        after, frame = self.map.push(inside, frame)
        return self.lift(self._moved(number, self.map.lower(after))), frame

    def _moved(self, number, state):
        return number + 1, self.map.at(state, self.states[number + 1])


def _exponents(
    system: System,
    start: PyTree,
    states: Float[np.ndarray, "n d"],
    parameters: PyTree,
    exponents: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Exponents along a pseudo-orbit, the largest first, and their standard errors.

    A fifth of it aligns the frame; of fewer than `LEAST` states there are none.
    """
    if len(states) < LEAST:
        return np.empty(0), np.empty(0)
    map = system.at(parameters)
    orbit = _PseudoOrbit(map, jnp.asarray(states), finite_exponents(map, start))
    align = len(states) // 5
    spectrum = lyapunov_spectrum(
        System(map.step, tangent=lambda _: orbit),
        (jnp.array(0), start),
        steps=(len(states) - 1 - align) // BLOCKS * BLOCKS,
        exponents=exponents,
        align=align,
    )
    return np.asarray(spectrum.exponents), np.asarray(spectrum.stderr)


class _Record(NamedTuple):
    """Coordinates of some orbits side by side before each step, and where they end."""

    states: Any  # (PIECE, d, lanes)
    count: Any  # steps that were made
    state: PyTree  # afterwards


class _Sides:
    """Two states side by side, those on the segment between them, and their labels."""

    def __init__(self, system: System, parameters: PyTree, label, horizon: int):
        self.system = system
        self.parameters = jax.tree.map(jnp.asarray, parameters)
        self.placed, self.record = jax.jit(self._placed), jax.jit(self._record)
        if isinstance(label, Attractors):
            sets = Targets.of(label, Search(horizon=horizon))
            numbers = jnp.append(jnp.asarray(sets.number), jnp.array([DIVERGED, -1]))
            self._label = lambda state: numbers[sets.nearest(system.seen(state))]
            self._stays, self._look = STAYS, steps_of_look(system)
        else:
            label_each = lambda state: jax.vmap(label, in_axes=(lane_axes(state),))(
                state
            )
            self._label, self._stays, self._look = label_each, 1, 1
        self._looks = -(-horizon // self._look)
        self._labels = jax.jit(self._arrived)

    def between(self, first: PyTree, second: PyTree) -> PyTree:
        """Both states, on the last axis."""
        both = [start_of_each(x, None, np.zeros(1, int)) for x in (first, second)]
        if describe(both[0]) != describe(both[1]):
            raise ValueError(
                "first and second must be states of one shape; "
                f"got {describe(first)} and {describe(second)}."
            )
        for x in both:
            self.system.check(x, self.parameters)
        floats, others = zip(*(eqx.partition(x, eqx.is_inexact_array) for x in both))
        if not eqx.tree_equal(*others):
            raise ValueError(
                "the two states must have one clock, and differ in floats."
            )
        vectors = jnp.concatenate([self.vectors(x) for x in both], axis=-1)
        if not jnp.isfinite(vectors).all():
            raise ValueError("the two states must hold finite numbers.")
        return self.placed(both[0], vectors)

    def labels(self, state: PyTree) -> np.ndarray:
        """Where the orbits of some states go; -1: nowhere within the horizon."""
        return np.asarray(self._labels(state))

    def _arrived(self, state: PyTree):
        step = lambda _, state: self.system.steps(state, self.parameters)

        def goes_on(carry):
            _, looks, stays, label = carry
            return jnp.any((stays < self._stays) & (label != DIVERGED)) & (
                looks < self._looks
            )

        def look(carry):
            state, looks, stays, label = carry
            live = (stays < self._stays) & (label != DIVERGED)
            now = self._labelled(state)
            more = jnp.where(now == label, stays + 1, 1) * (now >= 0)
            state = jax.lax.fori_loop(0, self._look, step, state)
            if_live = lambda new, old: jnp.where(live, new, old)
            return state, looks + 1, if_live(more, stays), if_live(now, label)

        nothing = jnp.zeros(count_of(state), int)
        carry = state, 0, nothing, nothing + NOT_SETTLED
        _, _, stays, label = jax.lax.while_loop(goes_on, look, carry)
        settled = (stays >= self._stays) | (label == DIVERGED)
        return jnp.where(settled, label, NOT_SETTLED)

    def _labelled(self, state: PyTree):
        finite = jnp.isfinite(self.vectors(state)).all(axis=0)
        return jnp.where(finite, self._label(state), DIVERGED)

    def vectors(self, state: PyTree) -> Float[Array, "d lanes"]:
        """Coordinates of states, which lie on the last axis."""
        return Coordinates(self.system, state).array(self.parameters, state)

    def _placed(self, state: PyTree, vectors: Float[Array, "d lanes"]) -> PyTree:
        """States with these coordinates, at the clock of a state."""
        template = take(state, np.zeros(1, int))
        return Coordinates(self.system, template).state(self.parameters, vectors)

    def _record(self, state: PyTree, most, far) -> _Record:
        """Steps until the orbits are `far` apart, PIECE or `most` of them at most."""

        def goes_on(record: _Record):
            together = _separation(self.vectors(record.state)) <= far
            return together & (record.count < jnp.minimum(most, PIECE))

        def step(record: _Record):
            states = record.states.at[record.count].set(self.vectors(record.state))
            state = self.system.steps(record.state, self.parameters)
            return _Record(states, record.count + 1, state)

        blank = jnp.zeros((PIECE, *self.vectors(state).shape))
        return jax.lax.while_loop(goes_on, step, _Record(blank, 0, state))


class _Track:
    """An edge while it is tracked."""

    def __init__(self, sides: _Sides, goals: tuple[int, int], near: float, far: float):
        self.sides, self.goals, self.near, self.far = sides, goals, near, far
        self.states: list[np.ndarray] = []
        self.separation: list[float] = []
        self.cuts, self.result = 0, TRACKED
        self.last: PyTree = None

    def follow(self, state: PyTree, steps: int) -> PyTree:
        """Both sides so many steps later, or where the edge was lost."""
        end = len(self.states) + steps
        while self.result == TRACKED:
            vectors = np.asarray(self.sides.vectors(state))
            if not self.cuts or not _separation(vectors) <= self.far:
                state = self._cut(state, vectors)
            self.last = jax.tree.map(lambda x: x[..., 0] if x.ndim else x, state)
            if len(self.states) == end or self.result != TRACKED:
                break
            record = self.sides.record(state, end - len(self.states), self.far)
            state, states = record.state, np.asarray(record.states)[: int(record.count)]
            self.states += list(states[..., 0])
            self.separation += [float(_separation(x)) for x in states]
        return state

    def _cut(self, state: PyTree, vectors: np.ndarray) -> PyTree:
        """The two ends of a short piece of the segment between both sides."""
        self.cuts += 1
        while self.result == TRACKED and not _separation(vectors) <= self.near:
            share = np.linspace(0, 1, PARTS + 1)
            points = vectors[:, :1] * (1 - share) + vectors[:, 1:] * share
            labels = self.sides.labels(self.sides.placed(state, jnp.asarray(points)))
            change = (labels[:-1] == self.goals[0]) & (labels[1:] == self.goals[1])
            if (labels[0], labels[-1]) != self.goals:
                self.result = LEFT
            elif not change.any():
                self.result = UNDECIDED if (labels == NOT_SETTLED).any() else ANOTHER
            if self.result != TRACKED and _rounded(points):
                self.result = ROUNDED
            i = int(np.argmax(change))
            vectors = points[:, i : i + 2]
        return self.sides.placed(state, jnp.asarray(vectors))


def _separation(vectors):
    """Largest difference of a coordinate, over 1 + the largest coordinate."""
    apart = vectors.max(axis=-1) - vectors.min(axis=-1)
    return apart.max() / (1 + abs(vectors).max())


def _rounded(points: np.ndarray) -> bool:
    """Whether a coordinate (d, n) changes by so little that a map may round it away."""
    change = np.abs(points[:, -1] - points[:, 0])
    least = PARTS**2 * np.spacing(np.abs(points).max(axis=1))
    return bool(((change > 0) & (change <= least)).any())


def _period(states: np.ndarray, multiple: int, tolerance: float) -> int:
    """Steps after which the last third of an edge state recurs; 0: it does not."""
    last = states[-(len(states) // 3) :]
    for period in range(multiple, len(last) // 2 + 1, multiple):
        if _separation(np.stack([last[period:], last[:-period]], axis=-1)) <= tolerance:
            return period
    return 0


def _different(labels: np.ndarray, horizon: int) -> tuple[int, int]:
    """The labels of both sides of an edge, which must differ."""
    first, second = map(int, labels)
    if first == second or NOT_SETTLED in (first, second):
        raise ValueError(
            "the two states must have different labels, none of them -1 (undecided "
            f"within the horizon of {horizon} steps); got {first} and {second}."
        )
    return first, second
