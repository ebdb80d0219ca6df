"""Points of an orbit, recorded: what indicators that look at geometry start from."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from statmech_attn.batches import require_double
from statmech_attn.dynamics.maps.systems import advance, as_system, System
from statmech_attn.dynamics.maps.tracing import forward_only
from statmech_attn.options import Count, WholeNumber


@forward_only
def orbit(
    system: Callable[..., PyTree] | System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    samples: Count,
    transient: WholeNumber = 0,
    every: Count = 1,
) -> Float[Array, "samples d *batch"]:
    """Every `every`-th point of an orbit after a transient; works under `vmap`.

    A point is what the system observes, all coordinates where it does not say.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        state: where the orbit starts.
        parameters: of the system, a tree of arrays; none when omitted.
        samples: points to record.
        transient: steps before the recorded stretch; the first point is that after
            `transient + every` steps.
        every: steps between two points.

    Raises:
        ValueError: a count out of range.

    Example:
        >>> import jax.numpy as jnp
        >>> orbit(lambda x: x / 2, jnp.array(1.0), samples=3)[:, 0].tolist()
        [0.5, 0.25, 0.125]
    """
    require_double()
    system = as_system(system)
    map = system.at(parameters)
    counts = jnp.asarray(transient), jnp.asarray(every)
    return _record(map, state, *counts, system.observe or map.vector, samples)


@eqx.filter_jit
def _record(system, state, transient, every, observe, samples):
    def one(state, _):
        state = advance(system, state, every)
        return state, observe(state)

    state = advance(system, state, transient)
    return jax.lax.scan(one, state, None, length=samples)[1]
