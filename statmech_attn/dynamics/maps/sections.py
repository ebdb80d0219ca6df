r"""Poincaré maps of flows, returns of maps (docs/theory/indicators.md, section 1).

With $\Phi_t$ the flow of x' = f(x), $\tau(x)$ the time to the next crossing of
g(x) = 0, and n the gradient of g where it is crossed, the map and its derivative are

    P(x) = Phi_tau(x),      DP = (1 - f n^T / (n . f)) DPhi_tau

(Parker & Chua, *Practical Numerical Algorithms for Chaotic Systems*, 1989, ch. 2 and
D).  The flow takes the fixed steps of `flows`, and the crossing is the root h of
g(Phi_h(y)) for the last state y before it, by one step of length h of the same solver:
a point on the section is as accurate as any other.  Two steps of Newton's method along
the flow from there, whose length is 0, give h its derivatives up to the third.  States
keep all coordinates, so that one multiplier is 0: DP f = 0.

The first step after a start never crosses, so that a point of the section, and points
that rounding has put on either side of it, go on to the next crossing.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.maps.flows import solver_step, UNIT_OF_TIME
from statmech_attn.dynamics.maps.orbit_equations import newton
from statmech_attn.dynamics.maps.systems import (
    advance,
    as_system,
    call,
    require_like,
    System,
)
from statmech_attn.dynamics.maps.tracing import forward_only
from statmech_attn.labels import CodeWords, Variable
from statmech_attn.options import Count, Positive, WholeNumber
from statmech_attn.statistics import block_stderr


RETURN = "return"  # unit of the map
TURN = 2 * np.pi
SIGNS = {"up": (1,), "down": (-1,), "both": (1, -1)}
TANGENT = 1e-8  # sine of the angle to the section below which it is not crossed
ITERATIONS = 40  # of bracketed Newton steps; half of them halve a bracket to rounding
NEARLY = 1e-8  # of a step: Newton's method squares what is left
STILL = 1e-9  # motion in a step of the solver, over 1 + the largest coordinate

RETURN_RESULTS = CodeWords(
    "returned",
    "not back within the longest time",
    "the state became infinite or not a number",
    "tangent to the section",
    "no return: the state is an equilibrium of the flow",
)
RETURNED, NOT_BACK, NOT_FINITE, TANGENTIAL, AT_REST = range(len(RETURN_RESULTS))

Where = Callable[..., Any] | tuple[Any, float]


class Return(NamedTuple):
    """The next point of an orbit on a section.

    Attributes:
        state: of the system; NaN where it did not return.
        time: until then, in the units of a flow or steps of a map.
        result: index into `RETURN_RESULTS`.
    """

    state: PyTree
    time: Float[Array, ""]
    result: Int[Array, ""]


def section(
    system: Callable[..., PyTree] | System,
    where: Where,
    *,
    direction: Literal["up", "down", "both"] = "up",
    longest: Positive = 1000.0,
    angles: tuple[int, ...] = (),
) -> System:
    """The Poincaré map of a flow, or the map of first returns of a map, as a `System`.

    A step goes to the next crossing of the section g(x) = 0.  A limit cycle is a
    periodic orbit of this map, a torus a closed curve.  A map does not stop at the
    section: its state is the first one beyond it.  An orbit that does not come back,
    begins at rest, or touches the section without crossing it, becomes NaN, which is
    `diverged` to `classify` and to basins; `returns` says why.

    Args:
        system: what `flow` returns, or a map without a drive of its own.
        where: g, a function of the state, or of (state, parameters); or a pair, the
            number of a coordinate or the normal of a plane (d,), and the value of that
            coordinate or of the product with the normal.
        direction: of the crossings: g increases (`up`), decreases (`down`), or both.
        longest: time after which an orbit is not waited for any more, in the units of
            the flow or steps of the map.
        angles: numbers of the coordinates of a flow that are angles modulo 2 pi.  They
            are brought to [-pi, pi) after a return; a section in one of them is
            crossed once in a turn.

    Returns:
        `System` whose states are those of the system; of a section in a coordinate of
        a flow the other coordinates are observed.

    Raises:
        ValueError: an unknown direction, a time that is not positive, a section that
            the state does not have, or a system that has a drive.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn.dynamics import flow
        >>> spiral = flow(lambda x: jnp.stack([-0.1 * x[0] - x[1], x[0] - 0.1 * x[1]]),
        ...     time=1.0, substeps=10)
        >>> back = section(spiral, (1, 0.0))
        >>> back.step(jnp.array([1.0, 0.0])).round(6).tolist()   # exp(-0.2 pi)
        [0.533488, 0.0]
    """
    system = as_system(system)
    if isinstance(where, tuple) and np.ndim(where[0]) and not np.any(where[0]):
        raise ValueError(f"where must hold a normal that is not zero; got {where[0]}.")
    if system.drive_period > 1 or system.batched:
        raise ValueError(
            "section takes a system of one state without a drive: see it once per "
            "period by strobed(drive_period), or make the phase a coordinate."
        )
    crosses = _Crosses(where, angles, SIGNS[direction])
    if system.flow is None:
        if angles:
            raise ValueError("angles are those of a flow: a map reduces its own.")
        first_return = _MapReturn(system, crosses, math.ceil(longest))
        return System(
            _of_state(first_return),
            system.observe,
            unit=RETURN,
            display=system.display,
            first_return=first_return,
        )
    if system.flow.driven:
        raise ValueError(
            "a driven flow is seen once per period of its drive, as it stands; for "
            "another section make the phase a coordinate of a flow."
        )
    first_return = _FlowReturn(system.flow, crosses, longest)
    return System(
        _of_state(first_return),
        system.observe or crosses.observe,
        unit=RETURN,
        display=system.display,
        rank=-1,
        first_return=first_return,
    )


def _of_state(first_return):
    return lambda state, parameters=None: first_return(state, parameters).state


class _Crosses(eqx.Module):
    """Where orbits cross a section, and in which direction."""

    where: Any  # `Where`
    angles: tuple[int, ...]
    signs: tuple[int, ...]

    def value(self, state: PyTree, parameters: PyTree) -> Float[Array, ""]:
        """g, of one state."""
        if not isinstance(self.where, tuple):
            value = jnp.asarray(self._surface(state, parameters))
            if value.shape or not jnp.issubdtype(value.dtype, jnp.floating):
                raise ValueError(
                    "where must return one number for a state; "
                    f"got {value.dtype}{list(value.shape)}."
                )
            return value
        normal, level = self.where
        vector = _vector(state)
        (d,) = vector.shape
        if self.coordinate is not None:
            if not 0 <= normal < d:
                raise ValueError(
                    f"where must name a coordinate in 0..{d - 1}; got {normal}."
                )
            distance = vector[normal] - level
            return distance / TURN if self.winds else distance
        if np.shape(normal) != (d,):
            raise ValueError(
                f"where must hold a normal of {d} numbers, as the state has; "
                f"got {list(np.shape(normal))}."
            )
        return jnp.asarray(normal) @ vector - level

    def _surface(self, state, parameters):
        """g, which need not take the parameters."""
        given = (state,) if parameters is None else (state, parameters)
        for arguments in (given, given[:1]):
            try:
                inspect.signature(self.where).bind(*arguments)
            except TypeError:
                continue
            return self.where(*arguments)
        raise ValueError(
            "where must be a function of the state, or of the state and the "
            "parameters, which are given after it."
        )

    def rung(self, value):
        """What increases where a value crosses the section upwards."""
        return jnp.floor(value) if self.winds else jnp.where(value >= 0, 0.0, -1.0)

    def sign(self, before, after):
        """+1, -1: crossed upwards, downwards between two values; 0: not crossed."""
        up = lambda s: self.rung(s * after) > self.rung(s * before)
        return sum(jnp.where(up(s), s, 0) for s in self.signs)

    @property
    def winds(self) -> bool:
        """In an angle: values are turns, and whole numbers on the section."""
        return self.coordinate in self.angles

    @property
    def coordinate(self) -> int | None:
        """The one that the section holds fixed; None of another section."""
        pair = isinstance(self.where, tuple)
        return self.where[0] if pair and np.ndim(self.where[0]) == 0 else None

    def put(self, vector: Float[Array, " d"]) -> Float[Array, " d"]:
        """A state that is on the section but for rounding."""
        if self.coordinate is None:
            return vector
        return vector.at[self.coordinate].set(self.where[1])

    def observe(self, state: Float[Array, " d"]) -> Float[Array, " k"]:
        """The coordinates that vary on the section."""
        fixed = self.coordinate
        return state if fixed is None or state.size < 2 else jnp.delete(state, fixed)


class _MapReturn(NamedTuple):
    """First returns of a map."""

    system: System
    crosses: _Crosses
    longest: int

    @property
    def unit(self) -> str:
        return self.system.unit

    def __call__(self, state: PyTree, parameters: PyTree = None) -> Return:
        value = lambda state: self.crosses.value(state, parameters)

        def goes_on(carry):
            state, _, sign, steps = carry
            return (sign == 0) & (steps < self.longest) & _finite(state)

        def step(carry):
            state, before, _, steps = carry
            state = call(self.system.step, state, parameters)
            after = value(state)
            return state, after, self.crosses.sign(before, after), steps + 1

        state = jax.tree.map(jnp.asarray, state)
        carry = (state, value(state), jnp.asarray(0), jnp.asarray(0))
        state, _, sign, steps = jax.lax.while_loop(goes_on, step, carry)
        result = jnp.where(sign == 0, NOT_BACK, RETURNED)
        result = jnp.where(_finite(state), result, NOT_FINITE)
        return _returned(state, steps, result)


class _FlowReturn(NamedTuple):
    """First returns of a flow."""

    flow: Any  # `flows.Flow`
    crosses: _Crosses
    longest: float
    unit: str = UNIT_OF_TIME

    def __call__(self, state: Float[Array, " d"], parameters: PyTree = None) -> Return:
        crosses, dt = self.crosses, self.flow.dt
        field = lambda x: self.flow.field(0.0, x, parameters)
        state = jnp.asarray(state)
        require_like(jax.eval_shape(field, state), state, "field")
        if not all(0 <= i < state.size for i in crosses.angles):
            raise ValueError(
                f"angles must be in 0..{state.size - 1}; got {list(crosses.angles)}."
            )
        value = lambda x: crosses.value(x, parameters)
        step = lambda *at: solver_step(self.flow.field, 0.0, *at)
        largest = lambda x: jnp.max(jnp.abs(x))
        rests = largest(field(state)) * dt <= STILL * (1 + largest(state))
        most = jnp.where(rests, 0, math.ceil(self.longest / dt))

        def goes_on(carry):
            x, _, sign, _, steps = carry
            return (sign == 0) & (steps < most) & _finite(x)

        def go(carry):
            x, before, _, _, steps = carry
            y = step(x, parameters, dt)
            after = value(y)
            sign = jnp.where(steps > 0, crosses.sign(before, after), 0)
            stay = lambda old, new: jnp.where(sign == 0, new, old)
            return stay(x, y), stay(before, after), sign, after, stay(steps, steps + 1)

        height = value(state)
        carry = (state, height, jnp.asarray(0), height, jnp.asarray(0))
        x, _, sign, after, steps = jax.lax.while_loop(goes_on, go, carry)
        level = crosses.rung(sign * after) if crosses.winds else 0.0

        def rate(x, parameters):
            """What is left to the section, and how fast it grows along the flow."""
            value = lambda x: crosses.value(x, parameters)
            gap, slope = jax.jvp(value, (x,), (self.flow.field(0.0, x, parameters),))
            return sign * gap - level, sign * slope

        still = jax.lax.stop_gradient((x, parameters))
        h = _bracketed(lambda h: rate(step(*still, h), still[1]), dt, sign != 0)
        x = step(x, parameters, h)
        crossed = (sign != 0) & _crossing(value, field, x)
        for _ in range(2):  # each doubles the order of what Newton's method neglects
            gap, slope = rate(x, parameters)
            rest = jnp.where(crossed, -gap / slope, 0.0)
            x, h = _short_step(field, x, rest), h + rest
        result = jnp.where(sign == 0, NOT_BACK, TANGENTIAL)
        result = jnp.where(crossed, RETURNED, result)
        result = jnp.where(_finite(x), result, NOT_FINITE)
        result = jnp.where(rests, AT_REST, result)
        for i in crosses.angles:
            x = x.at[i].add(-TURN * jnp.floor(x[i] / TURN + 0.5))
        return _returned(crosses.put(x), steps * dt + h, result)


def _bracketed(rate, dt: float, asked):
    """Newton's method on [0, dt], where a function crosses zero upwards."""

    def improve(bracket):
        low, high, h = bracket
        value, slope = rate(h)
        low, high = jnp.where(value < 0, h, low), jnp.where(value < 0, high, h)
        step = h - value / slope
        inside = (step >= low) & (step <= high)
        after = jnp.where(inside, step, (low + high) / 2)
        return (low, high, after), abs(after - h)

    start = tuple(jnp.asarray(part * dt) for part in (0.0, 1.0, 0.5))
    tolerance = jnp.where(asked, NEARLY * dt, jnp.inf)
    return newton(improve, start, tolerance, ITERATIONS)[0][2]


def _short_step(field, x, h):
    """Runge-Kutta 4."""
    first = field(x)
    second = field(x + h / 2 * first)
    third = field(x + h / 2 * second)
    last = field(x + h * third)
    return x + h / 6 * (first + 2 * second + 2 * third + last)


def _crossing(value, field, x):
    """Whether the field leads through the section at x and not along it."""
    normal, direction = jax.jacfwd(value)(x), field(x)
    size = jnp.linalg.norm(normal) * jnp.linalg.norm(direction)
    return abs(normal @ direction) > TANGENT * size


def _returned(state: PyTree, time, result) -> Return:
    blank = lambda x: jnp.where(result == RETURNED, x, jnp.nan)
    floats, rest = eqx.partition(state, eqx.is_inexact_array)
    return Return(eqx.combine(jax.tree.map(blank, floats), rest), time, result)


def _vector(state: PyTree) -> Float[Array, " d"]:
    return ravel_pytree(eqx.filter(state, eqx.is_inexact_array))[0]


def _finite(state: PyTree):
    return jnp.all(jnp.isfinite(_vector(state)))


class Returns(eqx.Module):
    """Points of an orbit on a section and the times between them.

    Attributes:
        points: coordinates of the states.
        times: since the crossing before, in the units of the flow or steps of the map.
        result: index into `RETURN_RESULTS`; an orbit that did not return is over.
        unit: of time.
    """

    points: Float[Array, "samples d"]
    times: Float[Array, " samples"]
    result: Int[Array, " samples"]
    unit: str = eqx.field(static=True, default=UNIT_OF_TIME)

    _shown = (
        Variable("mean", "", "mean time of a return", "{unit}", "⟨τ⟩", error="stderr"),
        Variable("points", "sample coordinate", "states on the section", symbol="x"),
        Variable("times", "sample", "times of the returns", "{unit}", "τ"),
        Variable("result", "sample", "result", flags=RETURN_RESULTS),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def mean(self) -> Float[Array, ""]:
        """Mean time of a return; NaN where the orbit did not return to the end."""
        whole = jnp.all(self.result == RETURNED)
        return jnp.where(whole, jnp.mean(self.times), jnp.nan)

    @property
    def stderr(self) -> np.ndarray:
        """Standard error of the mean time, from 20 blocks."""
        return block_stderr(np.asarray(self.times))


@forward_only
def returns(
    section: System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    samples: Count,
    transient: WholeNumber = 0,
) -> Returns:
    """Points of an orbit on a section, with the times between them and result codes.

    Args:
        section: what `section` returns.
        state: where the orbit starts, on the section or elsewhere.
        parameters: of the system, a tree of arrays; none when omitted.
        samples: returns to record.
        transient: returns before the recorded ones.

    Returns:
        `Returns`: points, times and results.

    Raises:
        ValueError: a count out of range, or a system that is no section.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn.dynamics import flow
        >>> circle = flow(lambda x: jnp.stack([-x[1], x[0]]), time=1.0, substeps=20)
        >>> back = section(circle, (1, 0.0))
        >>> orbit = returns(back, jnp.array([1.0, 0.0]), samples=20)
        >>> round(float(orbit.mean), 6)
        6.283185
    """
    require_double()
    if section.first_return is None:
        raise ValueError("returns takes a section: what dynamics.section returns.")
    recorded = _record(section, parameters, state, jnp.asarray(transient), samples)
    return Returns(*recorded, section.first_return.unit)


@eqx.filter_jit
def _record(section, parameters, state, transient, samples):
    def one(state, _):
        after = section.first_return(state, parameters)
        return after.state, (_vector(after.state), after.time, after.result)

    state = advance(section.at(parameters), state, transient)
    return jax.lax.scan(one, state, None, length=samples)[1]
