"""A system seen once per period of its drive, in coordinates of its states."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from statmech_attn.dynamics.maps.coordinates import Coordinates
from statmech_attn.dynamics.maps.systems import System
from statmech_attn.options import WholeNumber


Shown = Callable[[Array, dict[str, Array], int], Float[Array, "turns points"]]


class Turns(NamedTuple):
    """A system seen once per period of its drive, as a diagram of its cycles needs it.

    Attributes:
        map: over one period of the drive, of the coordinates of a state at phase 0.
        steps: of that period.
        shown: coordinates (d, points), their parameters by name, a number of turns ->
            what the diagram shows of these states, a turn apart.
    """

    map: System
    steps: int
    shown: Shown


def turns_of(system: System, template: PyTree, value: WholeNumber = 0) -> Turns:
    """The turns of a system."""
    template = jax.tree.map(jnp.asarray, template)
    floats = lambda a: bool(a.ndim) or jnp.issubdtype(a.dtype, jnp.inexact)
    many = jax.tree.map(lambda a: a[..., None] if floats(a) else a, template)
    coordinates = Coordinates(system, many)

    def step(x, parameters):
        map = system.at(parameters)
        once = lambda _, state: map.step(state)
        state = map.at(template, x)
        return map.vector(jax.lax.fori_loop(0, system.drive_period, once, state))

    def shown(x, parameters, turns):
        state, samples = coordinates.state(parameters, x), []
        for turn in range(turns):
            if turn:
                state = coordinates.advance(parameters, state, system.drive_period)
            samples.append(system.shown(state, parameters)[value])
        return jnp.stack(samples)

    return Turns(System(step, unit=system.unit), system.drive_period, shown)
