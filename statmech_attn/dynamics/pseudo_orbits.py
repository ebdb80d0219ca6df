r"""Pseudo-orbits: pieces of orbits with jumps that keep them on an unstable set.

An orbit beside a saddle leaves it; one that is moved by a little every now and then
stays (`track_edge`, `stagger_and_step`).  Tangent vectors are pushed by the Jacobians
at its states,

    $x_{n+1} = F(x_n) + \delta_n$,   $V_{n+1} = DF(x_n) V_n$          states (n, d)

so that `PseudoOrbit` is a system whose next state is a given one.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from statmech_attn.dynamics.coordinates import Coordinates
from statmech_attn.dynamics.finite_exponents import finite_exponents
from statmech_attn.dynamics.lyapunov import BLOCKS, lyapunov_spectrum
from statmech_attn.dynamics.orbit_follower import take
from statmech_attn.dynamics.systems import System, TangentSystem


LEAST = 64  # states of which exponents are taken
PIECE = 256  # steps of a record, after which it goes on with the next one


class PseudoOrbit(TangentSystem):
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


def exponents_along(
    system: System,
    start: PyTree,
    states: Float[np.ndarray, "n d"],
    parameters: PyTree = None,
    *,
    exponents: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Exponents along a pseudo-orbit, the largest first, and their standard errors.

    A fifth of it aligns the frame; of fewer than `LEAST` states there are none.

    Args:
        system: the system.
        start: the first state, whose clock counts.
        states: coordinates of its states.
        parameters: of the system.
        exponents: how many leading ones; all when omitted.
    """
    if len(states) < LEAST:
        return np.empty(0), np.empty(0)
    map = system.at(parameters)
    orbit = PseudoOrbit(map, jnp.asarray(states), finite_exponents(map, start))
    align = len(states) // 5
    spectrum = lyapunov_spectrum(
        System(map.step, tangent=lambda _: orbit),
        (jnp.array(0), start),
        steps=(len(states) - 1 - align) // BLOCKS * BLOCKS,
        exponents=exponents,
        align=align,
    )
    return np.asarray(spectrum.exponents), np.asarray(spectrum.stderr)


class Record(NamedTuple):
    """Coordinates of some orbits side by side before each step, and where they end."""

    states: Any  # (PIECE, d, lanes)
    count: Any  # steps that were made
    state: PyTree  # afterwards


class Recorder:
    """Compiled steps of a few orbits of one clock, side by side.

    Args:
        system: the system.
        parameters: of the system, shared by all.
    """

    def __init__(self, system: System, parameters: PyTree):
        self.system = system
        self.parameters = jax.tree.map(jnp.asarray, parameters)
        self.placed, self.record = jax.jit(self._placed), jax.jit(self._record)

    def vectors(self, state: PyTree) -> Float[Array, "d lanes"]:
        """Coordinates of states.

        Args:
            state: states, on the last axis.
        """
        return Coordinates(self.system, state).array(self.parameters, state)

    def _placed(self, state: PyTree, vectors: Float[Array, "d lanes"]) -> PyTree:
        """States with these coordinates, at the clock of a state."""
        template = take(state, np.zeros(1, int))
        return Coordinates(self.system, template).state(self.parameters, vectors)

    def _record(self, state: PyTree, most, far) -> Record:
        """Steps until the orbits are `far` apart, PIECE or `most` of them at most."""

        def goes_on(record: Record):
            together = separation(self.vectors(record.state)) <= far
            return together & (record.count < jnp.minimum(most, PIECE))

        def step(record: Record):
            states = record.states.at[record.count].set(self.vectors(record.state))
            state = self.system.steps(record.state, self.parameters)
            return Record(states, record.count + 1, state)

        blank = jnp.zeros((PIECE, *self.vectors(state).shape))
        return jax.lax.while_loop(goes_on, step, Record(blank, 0, state))


def separation(vectors):
    """Largest difference of a coordinate, over 1 + the largest coordinate.

    Args:
        vectors: coordinates, (..., lanes).
    """
    apart = vectors.max(axis=-1) - vectors.min(axis=-1)
    return apart.max() / (1 + abs(vectors).max())
