r"""Flows as maps: the state after a fixed time (docs/theory/indicators.md, section 1).

Exponents of the map over a time tau are tau times those of the flow,
$\lambda^{map} = \tau \lambda^{flow}$; JAX differentiates through the solver, so the
tangent dynamics is that of the numerical flow.

Steps are fixed.  An adaptive solver is a map that jumps wherever its choice of steps
changes, and takes about twice as long at the same error of the Lorenz flow
(docs/theory/indicators.md, section 1).
"""

import math
from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
from jaxtyping import Array, Float

from statmech_attn.batches import add_up
from statmech_attn.dynamics.maps.systems import call, require_like, System
from statmech_attn.options import Count, Positive


UNIT_OF_TIME = "unit of time"
METHOD = diffrax.Dopri8.tableau
WEIGHTS = METHOD.b_sol[:-1].tolist()  # of the slopes; the last serves the error alone
STAGES = [(0.0, [])]  # time of each in units of the step, and weights of those before
STAGES += [(float(c), a.tolist()) for c, a in zip(METHOD.c[:-1], METHOD.a_lower)]


class Flow(eqx.Module):
    """What a `System` is the flow of, in fixed steps.

    Attributes:
        field: of (time, state, parameters).
        dt: solver step.
        driven: whether the field depends on the time.
    """

    field: Callable[..., Float[Array, " d"]]
    dt: float = eqx.field(static=True)
    driven: bool = eqx.field(static=True)


def flow(
    field: Callable[..., Float[Array, " d"]], *, time: Positive, substeps: Count
) -> System:
    """The system x(t) -> x(t + time) of x' = field(x), Dormand-Prince 8 in fixed steps.

    Args:
        field: autonomous vector field of the state, or of (state, parameters).
        time: time of one step of the map, in the units of the flow.
        substeps: solver steps within it.

    Returns:
        `System` whose step is the flow over `time`.

    Example:
        >>> import jax.numpy as jnp
        >>> decay = flow(lambda x: -x, time=1.0, substeps=10)
        >>> round(float(decay.step(jnp.array([1.0]))[0]), 6)
        0.367879
    """
    autonomous = lambda t, x, parameters: call(field, x, parameters)
    step = _steps(autonomous, 0.0, time, substeps)
    unit = UNIT_OF_TIME if time == 1 else f"{time:g} units of time"
    return System(step, unit=unit, flow=Flow(autonomous, time / substeps, False))


def driven_flow(
    field: Callable[..., Float[Array, " d"]],
    *,
    period: Positive,
    substeps: Count,
    phase: float = 0.0,
) -> System:
    """The system x(phase) -> x(phase + period) of a flow driven with that period.

    The drive's phase is no coordinate, so there is no exponent 0 of the time; periodic
    orbits of the driven flow are periodic points of this map, and an orbit of period p
    is called `periodic` with p drive periods.

    Args:
        field: vector field of (time, state), or of (time, state, parameters), of that
            period in time.
        period: period of the drive, in the units of the flow.
        substeps: solver steps within it.
        phase: time at which the state is looked at.

    Returns:
        `System` whose step is the flow over a period of the drive.

    Raises:
        ValueError: when it is followed, a field that does not take the time first.

    Example:
        >>> import jax.numpy as jnp
        >>> driven = driven_flow(lambda t, x: jnp.cos(t) - x,
        ...     period=2 * jnp.pi, substeps=40)
        >>> round(float(driven.step(jnp.array([0.5]))[0]), 9)   # (cos t + sin t)/2
        0.5
    """

    def with_time(t, x, parameters):
        try:
            return field(t, x) if parameters is None else field(t, x, parameters)
        except jax.errors.JAXTypeError:
            raise
        except (IndexError, TypeError) as error:
            message = " ".join(str(error).split())
            raise ValueError(
                "field of a driven flow takes the time first, f(t, x) or "
                f"f(t, x, parameters); it ends in {type(error).__name__}: {message}"
            ) from error

    step = _steps(with_time, phase, period, substeps)
    driven = Flow(with_time, period / substeps, True)
    return System(step, unit="period of the drive", flow=driven)


def _steps(field, start: float, time: float, substeps: int):
    if not 0 < time < math.inf or substeps < 1:
        raise ValueError(
            "time must be > 0 and finite, and substeps >= 1; "
            f"got {time:g} and {substeps}."
        )
    dt = time / substeps

    def step(x, parameters=None):
        # A step would broadcast what the field returns.
        require_like(jax.eval_shape(field, start, x, parameters), x, "field")
        substep = lambda i, x: solver_step(field, start + i * dt, x, parameters, dt)
        return jax.lax.fori_loop(0, substeps, substep, x)

    return step


def solver_step(field, t, x, parameters, h) -> Float[Array, " d"]:
    """One step of length h, of either sign, by Dormand-Prince 8.

    Its stages are written out: in a loop over them, as diffrax has it for any method,
    every stage adds up all others, and of a few coordinates a step took 18 times as
    long (docs/theory/indicators.md, section 1).  `field` is a function of (time, state,
    parameters).
    """
    slopes: list[Array] = []
    weighted = lambda row: add_up(a * k for a, k in zip(row, slopes) if a)
    for c, row in STAGES:
        moved = x + h * weighted(row) if slopes else x
        slopes.append(field(t + c * h, moved, parameters))
    return x + h * weighted(WEIGHTS)
