r"""Rotation numbers by weighted averages (docs/theory/two_parameters.md, section 1).

The mean advance of an angle per step, in turns, over a window of n steps,

    $\rho = \sum_i w(s_i) \, (\theta_{i+1} - \theta_i) / \sum_i w(s_i)$,
    $w(s) = \exp(-1/(s(1-s)))$

On a smooth quasi-periodic orbit it converges faster than any power of n (Das, Saiki,
Sander, Yorke, Nonlinearity 30, 4111 (2017)); on a cycle it is p/q to rounding.  The
stated error is the largest of

    |rho - rho_1|, |rho - rho_2|, |rho_1 - rho_2|    of the halves of the window
    2 |rho - p/q|    where n |q rho - p| < 1 and q <= n/8, 256: the orbit has not gone
                     once around beside the cycle p/q, so the halves may be wrong alike
    rounding of angles up to one turn

It is no bound: of orbits of the sine circle map at random, 0 to 3 % are farther off.

    lift        F(x, parameters) with F(x + 1) = F(x) + 1     x in turns
    series      (T, 2) points of a plane around which the curve winds
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Le
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Num, PyTree

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.exponents.lyapunov import window_weights
from statmech_attn.dynamics.maps.systems import (
    as_system,
    require_like,
    shape_of_step,
    System,
)
from statmech_attn.dynamics.maps.tracing import forward_only
from statmech_attn.dynamics.motion.chaos_tests import main_frequency
from statmech_attn.labels import CodeWords, STEP, step_unit, Variable
from statmech_attn.options import Count, MAX_COUNT, Several, WholeNumber
from statmech_attn.statistics import rounding


ROTATION_RESULTS = CodeWords(
    "converged: the error is within the tolerance",
    "unsettled: the error is larger than the tolerance",
    "ambiguous: the angle does not wind once around the center of the curve",
    "not a number: the orbit diverged",
)
CONVERGED, UNSETTLED, AMBIGUOUS, NOT_A_NUMBER = range(4)
AGREE = 1e-6  # turns per step, largest error
LARGEST, VISITS = 256, 8  # q of the cycles p/q, and its turns in the window
SHEETS = 0.1  # mean jump between neighbours over the range of radii; 1/3 at random
ROUNDING = 1e-9
NEAR_HALF = 0.45  # turns from the mean advance at which unwrapping gets ambiguous


class Rotation(eqx.Module):
    """A rotation number with its error, or why there is none (`ROTATION_RESULTS`).

    Attributes:
        number: turns per step.
        error: largest difference between the window and its halves, or between it and
            a cycle from which the window cannot tell it, turns per step.  Most numbers
            are two to four times nearer; a few per cent of short windows are farther
            off.
        result: index into `ROTATION_RESULTS`.
        unit: what a step is.
    """

    number: Float[Array, "*batch"]
    error: Float[Array, "*batch"]
    result: Int[Array, "*batch"]
    unit: str = eqx.field(static=True, default=STEP)

    _shown = (
        Variable(
            "rotation_number",
            "",
            "rotation number",
            "turn / {unit}",
            "ρ",
            value="number",
            error="error",
        ),
        Variable("result", "", "result", flags=ROTATION_RESULTS),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


@forward_only
def rotation_number(
    lift: Callable[[Array, Mapping[str, Array]], Array],
    start: float | Array | np.ndarray,
    parameters: Mapping[str, float | Array | np.ndarray],
    *,
    steps: Several,
    transient: WholeNumber = 0,
) -> Rotation:
    """Rotation number of a lift of a circle map, x in turns.

    Args:
        lift: F(x, parameters) with F(x + 1) = F(x) + 1, elementwise in x.
        start: x of the first point.
        parameters: numbers or arrays; start and parameters are broadcast together.
        steps: length of the window.
        transient: steps before the window.

    Returns:
        `Rotation`: turns per step, with an error.

    Raises:
        ValueError: a count out of range, a parameter that the lift asks for and does
            not get, or F(x + 1) is not F(x) + 1.

    Example:
        >>> turn = lambda x, p: x + p["omega"]
        >>> float(rotation_number(turn, 0.1, {"omega": 0.25}, steps=100).number)
        0.25
    """
    require_double()
    x, values = broadcast_parameters(start, parameters)
    check_lift(lift, x, values)
    counts = jnp.asarray(steps), jnp.asarray(transient)
    return _rotation_number(lift, x, values, *counts)


@eqx.filter_jit
def _rotation_number(lift, x, values, steps, transient):
    turn = lambda _, x: _whole_turns(lift(x, values))[0]
    x = jax.lax.fori_loop(0, transient, turn, _whole_turns(x)[0])

    def body(i, carry):
        x, sums, weights = carry
        after = lift(x, values)
        w = window_weights((i + 0.5) / steps)
        sums = sums + w.reshape((3,) + (1,) * x.ndim) * (after - x)
        return _whole_turns(after)[0], sums, weights + w

    empty = jnp.zeros((3, *x.shape)), jnp.zeros(3)
    _, sums, weights = jax.lax.fori_loop(0, steps, body, (x, *empty))
    averages = sums / weights.reshape((3,) + (1,) * x.ndim)
    return _verdict(averages, steps, ambiguous=jnp.zeros(x.shape, bool))


@forward_only
def curve_rotation(
    system: Callable[..., PyTree] | System,
    state: PyTree | Num[Array, "..."],
    parameters: PyTree = None,
    *,
    steps: Annotated[int, Ge(4), Le(MAX_COUNT)],
    transient: WholeNumber = 0,
    every: Count = 1,
) -> Rotation:
    """Rotation number of an orbit on a closed curve in any state space.

    The angle is that around the center of the points in a plane: the two coordinates
    that the system observes, positive from the first to the second, or the two leading
    principal components of the orbit.  The latter have
    no orientation, so rho and 1 - rho are the same to it and rho <= 1/2 is returned.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        state: where the orbit starts; `jax.vmap` around this call batches it.
        parameters: of the system, a tree of arrays; none when omitted.
        steps: length of the window, in units of `every` applications of the map.
        transient: the same before the window.
        every: applications of the map between two points (the drive period of a driven
            map, or the period of the cycle that the curves surround).

    Returns:
        `Rotation`: turns per `every` applications of the map, with an error.

    Raises:
        ValueError: a count out of range, or a map that changes its state's shape.

    Example:
        >>> import jax.numpy as jnp
        >>> turn = lambda z: z * jnp.exp(2j * jnp.pi * 0.3)
        >>> plane = lambda z: jnp.stack([z.real, z.imag])
        >>> rotation = curve_rotation(
        ...     System(turn, plane), jnp.array(1.0 + 0j), steps=1000)
        >>> round(float(rotation.number), 12)
        0.3
    """
    require_double()
    system = as_system(system)
    observe, step = system.observe, system.at(parameters).step
    require_like(shape_of_step(step, state), state)
    series = _observed(step, state, observe or vector, steps, transient, every)
    rotation = _curve_rotation(series, observe is not None)
    return replace(rotation, unit=step_unit(every, system.unit))


@eqx.filter_jit
def _observed(step, state, observe, steps, transient, every):
    advance = lambda s: jax.lax.fori_loop(0, every, lambda _, s: step(s), s)
    state = jax.lax.fori_loop(0, transient, lambda _, s: advance(s), state)
    record = lambda s, _: (advance(s), observe(s))
    return jax.lax.scan(record, state, None, length=steps)[1]


@eqx.filter_jit
def _curve_rotation(series, oriented):
    """A program of shapes, shared by all maps."""
    if oriented:
        return series_rotation(series)
    result = series_rotation(principal_plane(series))
    return eqx.tree_at(
        lambda r: r.number, result, jnp.minimum(result.number, 1 - result.number)
    )


def series_rotation(series: Float[Array, "T 2"]) -> Rotation:
    """Rotation number in [0, 1) of points that follow one another on a closed curve.

    Advances are unwrapped to within half a turn of their circular mean, and the points,
    put into the order of n rho mod 1, must follow one curve exactly once around their
    center; otherwise the result is `ambiguous`.  So it is on a cycle of one or two
    points, which surrounds nothing.

    Args:
        series: T points in the plane, in the order of time.

    Returns:
        `Rotation`: turns per sample, with an error.

    Example:
        >>> import jax.numpy as jnp
        >>> angle = 2 * jnp.pi * 0.2 * jnp.arange(300.0)
        >>> points = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
        >>> round(float(series_rotation(points).number), 12)
        0.2
    """
    w = _weights(series.shape[0])[0]
    center = jnp.sum(w[:, None] * series, axis=0) / jnp.sum(w)
    x, y = (series - center).T
    angle = jnp.arctan2(y, x) / (2 * jnp.pi)
    advance = jnp.diff(angle)
    middle = _circular_mean(advance)
    advance = middle + _to_half(advance - middle)
    weights = _weights(advance.shape[0])
    averages = weights @ advance / jnp.sum(weights, axis=1)
    far = jnp.max(jnp.abs(advance - averages[0])) > NEAR_HALF
    once = _winds_once(angle, jnp.hypot(x, y), averages[0])
    averages = averages - jnp.floor(averages[0])
    return _verdict(averages, len(advance), ambiguous=far | ~once)


def frequency_of(
    series: Float[Array, "T d"],
) -> tuple[Float[Array, ""], Float[Array, ""], Bool[Array, ""]]:
    """Rotation number of an orbit on a torus, its error, and whether it is oriented.

    Of two observables that wind once around their center it is the rotation number in
    [0, 1), positive from the first to the second.  Of others it is the strongest line
    of the spectrum in (0, 1/2], which cannot tell rho from 1 - rho.  The error is found
    as for `rotation_number`.
    """
    half = series.shape[0] // 2
    line = main_frequency(series)
    halves = jax.lax.map(main_frequency, jnp.stack([series[:half], series[-half:]]))
    error = _error(line, halves[0], halves[1], len(series), rounding(line, half))
    if series.shape[1] != 2:
        return line, error, jnp.array(False)
    winding = series_rotation(series)
    oriented = winding.result <= UNSETTLED
    pick = lambda one, other: jnp.where(oriented, one, other)
    return pick(winding.number, line), pick(winding.error, error), oriented


def principal_plane(series: Float[Array, "T d"]) -> Float[Array, "T 2"]:
    """The two leading principal components of a series, each with unit variance."""
    if series.shape[1] < 2:
        raise ValueError(
            f"a closed curve needs two coordinates or more; got {series.shape[1]}."
        )
    centered = series - jnp.mean(series, axis=0)
    variance, axes = jnp.linalg.eigh(centered.T @ centered / series.shape[0])
    scale = jnp.sqrt(jnp.maximum(variance[-2:], jnp.finfo(float).tiny))
    return centered @ axes[:, -2:] / scale


def vector(state: PyTree) -> Float[Array, " d"]:
    """All floating-point coordinates of a state."""
    return ravel_pytree(eqx.filter(state, eqx.is_inexact_array))[0]


def broadcast_parameters(start, parameters: Mapping[str, float | Array | np.ndarray]):
    """Start and parameters as float arrays of one shape."""
    names = sorted(parameters)
    arrays = [jnp.asarray(a, float) for a in (start, *(parameters[n] for n in names))]
    x, *values = jnp.broadcast_arrays(*arrays)
    return x, dict(zip(names, values, strict=True))


def check_lift(lift, x, values) -> None:
    """Refuse a function that is not the lift of a circle map of degree one.

    Numbers that JAX traces are not known yet, and not checked.
    """
    if any(isinstance(number, Tracer) for number in (x, *values.values())):
        return
    shape_of_step(lift, x, values)
    error = jnp.max(jnp.abs(lift(x + 1, values) - lift(x, values) - 1))
    if not error <= 1e-9:
        raise ValueError(
            "lift must satisfy F(x + 1) = F(x) + 1, x in turns; "
            f"it misses by {error:.3g}."
        )


def _verdict(averages, steps, *, ambiguous) -> Rotation:
    number, first, second = averages
    floor = rounding(jnp.maximum(1.0, jnp.abs(number)), steps)
    error = _error(number, first, second, steps, floor)
    result = jnp.where(error <= AGREE, CONVERGED, UNSETTLED)
    result = jnp.where(ambiguous, AMBIGUOUS, result)
    result = jnp.where(jnp.isfinite(number), result, NOT_A_NUMBER)
    return Rotation(number, error, result)


def _error(number, first, second, steps, floor):
    """Error of a rotation number from those of the halves of so many steps."""

    def beside(q, error):
        off = jnp.abs(number - jnp.round(q * number) / q)
        unresolved = (off * q * steps < 1) & (q * VISITS <= steps)
        return jnp.where(unresolved, jnp.maximum(error, 2 * off), error)

    pairs = (number, first), (number, second), (first, second)
    error = reduce(jnp.maximum, [jnp.abs(x - y) for x, y in pairs], floor)
    return jax.lax.fori_loop(1, LARGEST + 1, beside, error)


def _whole_turns(x):
    """x in [0, 1) and the turns taken off, which keeps all digits of long orbits."""
    turns = jnp.floor(x)
    return x - turns, turns


def _weights(length: int) -> Float[Array, "3 T"]:
    return jax.vmap(window_weights)((jnp.arange(length) + 0.5) / length).T


def _to_half(x):
    """The same angle in [-1/2, 1/2)."""
    return _whole_turns(x + 0.5)[0] - 0.5


def _circular_mean(turns):
    phase = 2 * jnp.pi * turns
    return jnp.arctan2(jnp.mean(jnp.sin(phase)), jnp.mean(jnp.cos(phase))) / (
        2 * jnp.pi
    )


def _winds_once(angle, radius, rho):
    """Whether points in the order of n rho mod 1 follow one curve, once around.

    A curve of several turns would jump between its sheets in that order.  Of a step of
    half a turn nobody knows on which side it passes the center: so are all of points on
    a straight line.
    """
    place = _whole_turns(jnp.arange(angle.shape[0]) * rho)[0]
    _, angle, radius = jax.lax.sort((place, angle, radius), num_keys=1)
    steps = _to_half(jnp.roll(angle, -1) - angle)
    turns = jnp.sum(steps)
    sided = jnp.max(jnp.abs(steps)) <= NEAR_HALF
    jump = jnp.mean(jnp.abs(jnp.diff(radius)))
    small = SHEETS * jnp.ptp(radius) + ROUNDING * jnp.mean(radius)
    return sided & (jnp.abs(jnp.abs(turns) - 1) < 0.5) & (jump <= small)
