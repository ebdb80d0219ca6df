"""Many starts of a system: first axis outside, last axis (lanes) inside its programs.

What users hand over and get back has the starts on the first axis of every array, as
batches of JAX have.  Programs compute with the points on the last axis, where the
vectors of a processor lie (docs/decisions/lanes.md); `take` and `put` are for these.
"""

import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn.dynamics.maps.systems import describe, lane_axes, System


def lanes_of(tree: PyTree) -> PyTree:
    """The first axis of every array as its last one, where programs have their lanes.

    Args:
        tree: arrays; those without axes are shared.

    Example:
        >>> import jax.numpy as jnp
        >>> lanes_of({"x": jnp.zeros((5, 2)), "clock": jnp.array(0)})["x"].shape
        (2, 5)
    """
    return jax.tree.map(lambda x: np.moveaxis(x, 0, -1) if np.ndim(x) else x, tree)


def starts_of(lanes: PyTree) -> PyTree:
    """The last axis of every array as its first one: the inverse of `lanes_of`.

    Args:
        lanes: arrays; those without axes are shared.

    Example:
        >>> import jax.numpy as jnp
        >>> starts_of({"x": jnp.zeros((2, 5)), "clock": jnp.array(0)})["x"].shape
        (5, 2)
    """
    return jax.tree.map(lambda x: np.moveaxis(x, -1, 0) if np.ndim(x) else x, lanes)


def start_of_each(
    start: PyTree | Callable[[PyTree], PyTree], params: PyTree, numbers: np.ndarray
) -> PyTree:
    """The starts of some points, on the last axis; integers in common (a clock) once.

    `start` is a state, or a function of JAX: parameters of one point -> its state.
    """
    shared = lambda x: x.ndim == 0 and not jnp.issubdtype(x.dtype, jnp.inexact)
    if callable(start):
        return _of_each(start, params, shared)
    count = len(numbers)
    repeat = lambda x: np.repeat(x[..., None], count, axis=-1)
    point = jax.tree.map(np.asarray, start)
    return jax.tree.map(lambda x: x if shared(x) else repeat(x), point)


def _of_each(start: Callable, params: PyTree, shared: Callable) -> PyTree:
    """The starts of points by a function of the parameters of one."""
    axes = (lane_axes(params),)
    try:
        shapes = jax.eval_shape(start, jax.tree.map(lambda x: x[..., 0], params))
        once = jax.tree.map(lambda x: None if shared(x) else -1, shapes)
        try:
            return jax.vmap(start, axes, once)(params)
        except ValueError:  # integers that depend on the point
            return jax.vmap(start, axes, -1)(params)
    except jax.errors.JAXTypeError as error:
        raise ValueError(
            "start must be a JAX function: parameters of one point -> its state; use "
            "jax.numpy, not numpy, and jnp.where, not if."
        ) from error


def side_by_side(
    system: System, starts: PyTree, parameters: PyTree = None
) -> tuple[PyTree, PyTree]:
    """Starts on the first axis of every array, and their parameters, as lanes.

    An array without axes, such as a clock, is shared by all.  A `batched` map has one
    clock: its whole numbers are shared if they agree.  `parameters` are shared numbers,
    or arrays with one entry for each start.
    """
    starts, parameters = jax.tree.map(np.asarray, (starts, parameters))
    count = _count(system, starts, parameters)
    if any(x.ndim and len(x) != count for x in jax.tree.leaves(parameters)):
        raise ValueError(
            "parameters must be numbers, or arrays with one entry for each of the "
            f"{count} starts on their first axis; got {describe(parameters)}."
        )
    return lanes_of((one_clock(system, starts), parameters))


def require_states(system: System, starts: PyTree, parameters: PyTree = None) -> None:
    """Refuse starts that the map does not take, with the shape that it does."""
    starts, parameters = jax.tree.map(np.asarray, (starts, parameters))
    count = _count(system, starts, parameters)
    try:
        _check(system, *lanes_of((one_clock(system, starts), parameters)))
    except ValueError as error:
        turned = _turned(system, starts, parameters)
        start = jax.eval_shape(lambda x: jax.tree.map(_first, x), starts)
        reading = f"The first axis counts the starts: {count} of {describe(start)}"
        raise ValueError(f"{error} ({reading}{turned}.)") from error


def warn_of_readings(system: System, starts: PyTree, parameters: PyTree) -> None:
    """Say how starts are read that are few, of many numbers, and fit both ways."""
    shapes = [np.shape(x) for x in jax.tree.leaves(starts) if np.ndim(x)]
    if not shapes or any(len(x) < 2 or x[0] >= x[-1] for x in shapes):
        return
    turned = _turned(system, starts, parameters)
    if turned:
        warnings.warn(
            f"starts {describe(starts)} are read as {shapes[0][0]} starts on the first "
            f"axis, but the step takes states of any length{turned}.",
            stacklevel=3,
        )


def _count(system: System, starts: PyTree, parameters: PyTree) -> int:
    lengths = {len(x) for x in jax.tree.leaves(starts) if x.ndim}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            "starts must be arrays with the starts on their first axis, as many in "
            f"each; got {describe(starts)}{_turned(system, starts, parameters)}. "
            "One state x is x[None]."
        )
    return lengths.pop()


def _turned(system: System, starts: PyTree, parameters: PyTree) -> str:
    """What to do where the map takes the starts with their last axis first."""
    starts, parameters = jax.tree.map(np.asarray, (starts, parameters))
    turned = starts_of(starts)
    lengths = {len(x) for x in jax.tree.leaves(turned) if x.ndim}
    if len(lengths) != 1 or 0 in lengths:
        return ""
    try:
        _check(system, one_clock(system, starts), lanes_of(parameters))
    except Exception:  # whatever functions of the user raise
        return ""
    return f"; for {lengths.pop()} starts give {describe(turned)}"


def _check(system: System, lanes: PyTree, parameters: PyTree) -> None:
    """Refuse lanes that the map does not take, by its first one."""
    first = lambda x: jnp.asarray(x[..., :1] if x.ndim else x)
    system.check(*jax.tree.map(first, (lanes, parameters)))


def _first(x):
    return x[0] if x.ndim else x


def one_clock(system: System, starts: PyTree) -> PyTree:
    """States of a `batched` map with each whole number once, which all starts share."""

    def once(x):
        if x.ndim != 1 or not np.issubdtype(x.dtype, np.integer):
            return x
        if (x != x[0]).any():
            raise ValueError(
                f"starts must have the same clock; got {np.unique(x)[:4].tolist()}."
            )
        return x[0]

    return jax.tree.map(once, starts) if system.batched else starts


def shared_by(starts: PyTree, parameters: PyTree) -> PyTree:
    """Parameters of one point for many starts: arrays are repeated for each."""
    counts = [np.shape(x)[0] for x in jax.tree.leaves(starts) if np.ndim(x)]
    repeat = lambda x: np.broadcast_to(x, (*counts[:1], *np.shape(x)))
    return jax.tree.map(lambda x: repeat(x) if np.ndim(x) else x, parameters)
