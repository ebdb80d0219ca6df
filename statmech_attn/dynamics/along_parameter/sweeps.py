r"""Sweeps up and down a parameter, and the hysteresis they show.

An attractor is followed upward and downward: at every value the orbit starts where it
ended at the value before (docs/theory/attractors.md, section 5).  Where the two sweeps
end on different sets, the system remembers where it came from.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, PyTree

from statmech_attn import presentation
from statmech_attn.dynamics.attractors.basins import CLOSE, SCATTERS
from statmech_attn.dynamics.attractors.matching import set_distance
from statmech_attn.dynamics.attractors.orbit_follower import Follower, Search
from statmech_attn.dynamics.attractors.settled_orbits import (
    follow_with,
    GONE,
    Orbits,
    ROWS,
)
from statmech_attn.dynamics.maps.systems import System
from statmech_attn.dynamics.maps.tracing import untraced
from statmech_attn.labels import Variable
from statmech_attn.options import Numbers


class Hysteresis(NamedTuple):
    """Two sweeps over the same n values, in the order of the values.

    Attributes:
        values: of the parameter.
        up: the orbits of the sweep with increasing parameter.
        down: those of the sweep with decreasing parameter.
        distance: between the sets of the two sweeps; NaN where one of them diverged.
        differ: whether the sets are different ones.
        interval: where the sweeps differ, one row for each interval, see `intervals`.
    """

    values: Float[np.ndarray, " n"]
    up: Orbits
    down: Orbits
    distance: Float[np.ndarray, " n"]
    differ: Bool[np.ndarray, " n"]
    interval: Float[np.ndarray, "k 4"]

    _shown = (
        Variable(
            "value", "value", "value of the parameter", symbol="p", value="values"
        ),
        Variable(
            "distance", "value", "distance of the sets of both sweeps", symbol="d"
        ),
        Variable("differ", "value", "whether they differ"),
        Variable(
            "interval",
            "interval edge",
            "where they differ; see sweeps.intervals",
            symbol="p",
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


@untraced
def hysteresis(
    system: Callable[..., PyTree] | System,
    start: PyTree,
    values: Numbers,
    *,
    search: Search = Search(),
) -> Hysteresis:
    """Sweep a parameter of any system up and down, and compare.

    Args:
        system: a `System` with one parameter, or its step (state, value) -> state.
        start: one state, where both sweeps begin.  A sweep that diverges at a value
            goes on from the last state that did not.
        values: values of the parameter; sorted before use.
        search: horizon and tolerances.

    Returns:
        `Hysteresis`: both sweeps and the intervals in which they differ.

    Raises:
        ValueError: fewer than two values, one that is not finite, or what
            `find_attractors` refuses.

    Example:
        >>> import numpy as np
        >>> from jax import numpy as jnp
        >>> cubic = lambda x, r: x + 0.1 * (r + x - x**3)
        >>> sweeps = hysteresis(cubic, jnp.array(-1.0), np.linspace(-1, 1, 21))
        >>> sweeps.interval.round(1).tolist()
        [[-0.4, -0.3, 0.3, 0.4]]
    """
    values = np.sort(np.asarray(values, float).ravel())
    if values.size < 2 or not np.isfinite(values).all():
        raise ValueError(f"values must hold at least two, all finite; got {values}.")
    state = jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], 2, 0), start)
    pairs = np.stack([values, values[::-1]], axis=-1)
    follower = Follower(system, search, state, pairs[0])
    orbits = []
    for pair in pairs:
        settled = follow_with(follower, state, pair)
        well = settled.kind != GONE
        state = jax.tree.map(partial(_replaced, well), state, settled.state)
        orbits.append(settled)
    up = _joined([o.take(np.array([0])) for o in orbits])
    down = _joined([o.take(np.array([1])) for o in orbits[::-1]])
    distance = np.array([_distance(up, down, i) for i in range(values.size)])
    differ = np.array([_differs(up, down, i, d) for i, d in enumerate(distance)], bool)
    return Hysteresis(values, up, down, distance, differ, intervals(values, differ))


def intervals(
    values: Float[np.ndarray, " n"], differ: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, "k 4"]:
    """Where sweeps differ: last value before, first and last in it, first after.

    NaN where the interval reaches the end of the values.

    Args:
        values: of the parameter, in order.
        differ: whether the sweeps differ at each value.

    Example:
        >>> import numpy as np
        >>> intervals(np.array([0.0, 1, 2, 3]), np.array([False, True, True, False]))
        array([[0., 1., 2., 3.]])
    """
    inside = np.concatenate([[False], differ, [False]]).astype(int)
    first = np.flatnonzero(np.diff(inside) == 1)
    last = np.flatnonzero(np.diff(inside) == -1) - 1
    padded = np.concatenate([[np.nan], values, [np.nan]])
    rows = [padded[first], padded[first + 1], padded[last + 1], padded[last + 2]]
    return np.stack(rows, axis=1)


def sets_differ(distance, scatter: float, size: float, recurs: bool) -> bool:
    """Whether two sets of this distance, scatter and size are different attractors."""
    return bool(distance > (10 * CLOSE * (1 + size) if recurs else SCATTERS * scatter))


def _replaced(which: np.ndarray, before, after) -> np.ndarray:
    """An array of starts, some of them replaced."""
    which = which.reshape(-1, *[1] * (np.ndim(before) - 1))
    return np.where(which, after, before)


def _joined(parts: list[Orbits]) -> Orbits:
    join = lambda *xs: np.concatenate(xs) if np.ndim(xs[0]) else xs[0]
    rows = {name: join(*[getattr(o, name) for o in parts]) for name in ROWS}
    state = jax.tree.map(join, *[o.state for o in parts])
    return Orbits(state=state, unit=parts[0].unit, **rows)


def _distance(up: Orbits, down: Orbits, i: int) -> float:
    if GONE in (up.kind[i], down.kind[i]):
        return np.nan
    return set_distance(up.set_of(i), down.set_of(i))


def _differs(up: Orbits, down: Orbits, i: int, distance: float) -> Any:
    if np.isnan(distance):
        return up.kind[i] != down.kind[i]
    recurs = bool(up.period[i] and down.period[i])
    size = float(np.abs(up.set_of(i)).max())
    return sets_differ(distance, max(up.scatter[i], down.scatter[i]), size, recurs)
