"""Points of an orbit, recorded: what indicators that look at geometry start from."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from statmech_attn.batches import require_double
from statmech_attn.dynamics.systems import advance, as_system, TangentSystem


def orbit(
    step: Callable[[PyTree], PyTree] | TangentSystem,
    state: PyTree,
    *,
    samples: int,
    transient: int = 0,
    every: int = 1,
    observe: Callable[[PyTree], Float[Array, "d *batch"]] | None = None,
) -> Float[Array, "samples d *batch"]:
    """Every `every`-th point of the orbit after the transient; works under `vmap`.

    Args:
        step: the map, or a `TangentSystem`.
        state: where the orbit starts.
        samples: points to record.
        transient: steps before the recorded stretch; the first point is that after
            `transient + every` steps.
        every: steps between two points.
        observe: what is recorded, state -> (d,); the coordinates when omitted.

    Raises:
        ValueError: a count out of range.

    Example:
        >>> import jax.numpy as jnp
        >>> orbit(lambda x: x / 2, jnp.array(1.0), samples=3)[:, 0].tolist()
        [0.5, 0.25, 0.125]
    """
    require_double()
    for name, value, least in (
        ("samples", samples, 1),
        ("transient", transient, 0),
        ("every", every, 1),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value}.")
    system = as_system(step)
    counts = jnp.asarray(transient), jnp.asarray(every)
    return _record(system, state, *counts, observe or system.vector, samples)


@eqx.filter_jit
def _record(system, state, transient, every, observe, samples):
    def one(state, _):
        state = advance(system, state, every)
        return state, observe(state)

    state = advance(system, state, transient)
    return jax.lax.scan(one, state, None, length=samples)[1]
