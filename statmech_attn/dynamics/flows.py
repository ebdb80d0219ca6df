r"""Flows as maps: the state after a fixed time (docs/theory/dynamics.md, section 2).

Exponents of the map over a time tau are tau times those of the flow,
$\lambda^{map} = \tau \lambda^{flow}$; JAX differentiates through the solver, so the
tangent dynamics is that of the numerical flow.
"""

from collections.abc import Callable

import diffrax
from jaxtyping import Array, Float


def time_map(
    field: Callable[[Float[Array, " d"]], Float[Array, " d"]],
    *,
    time: float,
    substeps: int,
) -> Callable[[Float[Array, " d"]], Float[Array, " d"]]:
    """The map x(t) -> x(t + time) of x' = field(x), Dormand-Prince 8 with fixed steps.

    Args:
        field: autonomous vector field.
        time: time of one step of the map, in the units of the flow.
        substeps: solver steps within it.

    Example:
        >>> import jax.numpy as jnp
        >>> decay = time_map(lambda x: -x, time=1.0, substeps=10)
        >>> round(float(decay(jnp.array([1.0]))[0]), 6)
        0.367879
    """
    if time <= 0 or substeps < 1:
        raise ValueError(
            f"time must be > 0 and substeps >= 1; got {time:g} and {substeps}."
        )
    term = diffrax.ODETerm(lambda t, x, args: field(x))
    solver, adjoint = diffrax.Dopri8(), diffrax.ForwardMode()
    dt = time / substeps

    def step(x):
        solution = diffrax.diffeqsolve(
            term, solver, 0.0, time, dt, x, adjoint=adjoint, max_steps=substeps + 1
        )
        assert solution.ys is not None
        return solution.ys[-1]

    return step
