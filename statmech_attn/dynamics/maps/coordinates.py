"""States of many points as arrays of their coordinates, and back."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from statmech_attn.dynamics.maps.systems import System


class Coordinates(eqx.Module):
    """States of points as arrays that a file can hold, and back.

    Attributes:
        system: whose states they are.
        template: a state of one point, on the last axis.
    """

    system: System
    template: PyTree

    def advance(self, params: PyTree, state: PyTree, steps: int) -> PyTree:
        """States so many steps later."""
        return advance(self.system, params, state, steps)

    def array(self, params: PyTree, state: PyTree) -> Float[Array, "dim points"]:
        """Coordinates of states."""
        return self.system.beside(params).vector(state)

    def state(self, params: PyTree, array: Float[Array, "dim points"]) -> PyTree:
        """States with these coordinates, at the clock of the template."""
        count = array.shape[-1]
        repeat = lambda a: jnp.repeat(a, count, axis=-1) if jnp.ndim(a) else a
        template = jax.tree.map(repeat, self.template)
        return self.system.beside(params).at(template, array)


def advance(system: System, params: PyTree, state: PyTree, steps: int) -> PyTree:
    """States of many points, on the last axis, so many steps later."""
    return _advanced(system, params, state, jnp.asarray(steps))


@eqx.filter_jit
def _advanced(system: System, params: PyTree, state: PyTree, steps) -> PyTree:
    step = lambda _, state: system.steps(state, params)
    return jax.lax.fori_loop(0, steps, step, state)
