r"""Orbits followed until they settle (docs/theory/attractors.md, section 1).

Many starts of a map, at one parameter or at many, run side by side.  Every `record`
drive periods (a look) the last stretch of each orbit, seen once per drive period,

    z_s,  s = 0, 1, ...   (d, lanes)   z_0 the start, s in drive periods

is asked whether it recurs.  An orbit that does has settled on a cycle and leaves the
batch; one that does not recur but whose weighted averages have converged (a torus)
leaves after two such looks, or two such windows, which grow (`windows`); the others go
on to the horizon.  What is kept of a cycle are its points c, of a torus `record`/2
points of the last half of the look or window, of another set as many from the second
half of the run.  The lifetime of the transient before a cycle is

    $\min \{ s : |z_{s'} - c_{s'}| \le \epsilon \text{ for all } s' \ge s \}$

with c continued backwards in its own phase.  It is exact: the look in which the orbit
came close is computed again, bit for bit, from a state that was kept, by the program
that computed it first: a sum over the coordinates of a state may be rounded otherwise
in a batch of another width.  No orbit is stored; memory is bounded by the number of
starts.
"""

import copy
import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn.batches import batches, Compiled, lanes_for, require_double, run_all
from statmech_attn.dynamics.attractors.windows import Averages, Place, place_of
from statmech_attn.dynamics.exponents.lyapunov import window_weights
from statmech_attn.dynamics.maps.starts import require_states, side_by_side
from statmech_attn.dynamics.maps.systems import as_system, count_of, System
from statmech_attn.dynamics.motion.chaos_tests import recurrence
from statmech_attn.dynamics.motion.phases import HORIZON
from statmech_attn.dynamics.options import Search
from statmech_attn.options import WholeNumbers


NARROW = 8  # lanes of a batch when few orbits are left


def take(tree: PyTree, indices: WholeNumbers) -> PyTree:
    """Some of the lanes of a tree; leaves without axes are shared by all lanes.

    Args:
        tree: tree of arrays.
        indices: of the lanes.

    Returns:
        A tree of the same structure, with these lanes only.

    Raises:
        ValueError: an index beyond the lanes.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> lanes = {"x": jnp.arange(4.0), "clock": jnp.array(2)}
        >>> take(lanes, np.array([1, 3]))["x"].tolist()
        [1.0, 3.0]
    """
    lanes = (x.shape[-1] for x in jax.tree.leaves(tree) if np.ndim(x))
    if (largest := np.max(indices, initial=-1)) >= min(lanes, default=np.inf):
        raise ValueError(f"indices must be those of lanes; got {largest}.")
    return jax.tree.map(lambda x: x[..., indices] if np.ndim(x) else x, tree)


def put(old: PyTree, new: PyTree, lanes: np.ndarray) -> PyTree:
    """Replace some lanes of a tree of arrays, in place; shared leaves as a whole."""

    def put(x, y):
        if not np.ndim(x):
            return y
        x[..., lanes] = y
        return x

    return jax.tree.map(put, old, new)


class Look(NamedTuple):
    """What one look says of each lane."""

    period: Any  # (lanes,) drive periods; 0: none
    finite: Any  # bool
    whole: Averages  # of this look
    part: Averages  # of its window, over this look
    record: Any  # (record, d, lanes)


class Follower:
    """A compiled program that follows many starts of one map until they settle.

    Starts, and parameters of their own, are on the first axis of every array.  What it
    computes is on the last one, lanes of its programs: `look` and `see` take lanes.
    """

    def __init__(
        self,
        system: Callable[..., PyTree] | System,
        search: Search,
        starts: PyTree,
        parameters: PyTree = None,
    ):
        require_double()
        self.system, self.search = as_system(system), search
        require_states(self.system, starts, parameters)
        lanes = side_by_side(self.system, starts, parameters)
        self.one = take(lanes, np.zeros(1, int))
        self.lanes = lanes_for(count_of(lanes[0]))
        example = _on_device(take((*lanes, *Place(0, 1)), np.zeros(self.lanes, int)))
        self._compiled = {self.lanes: Compiled(self._looked, *example)}
        self._see = Compiled(lambda state: self.system.seen(state), example[0])

    @property
    def steps_per_look(self) -> int:
        """Steps between two looks."""
        return self.search.record * self.system.drive_period

    @property
    def looks(self) -> int:
        """Looks up to the horizon, at least one."""
        return -(-self.search.horizon // self.steps_per_look)

    def _looked(self, state, parameters, before, looks):
        system, length = self.system, self.search.record
        step = lambda _, state: system.steps(state, parameters)

        def turn(carry, weight):
            state, sums = carry
            state = jax.lax.fori_loop(0, system.drive_period, step, state)
            observed = system.seen(state)
            return (state, sums + weight[:, None, None] * observed), observed

        s = (jnp.arange(length) + 0.5) / length
        places = jnp.concatenate([s, (before + s) / looks])
        weights = jax.vmap(window_weights)(places).reshape(2, length, 3)
        weights = jnp.moveaxis(weights, 0, 1).reshape(length, 6)
        shape = jax.eval_shape(system.seen, state).shape
        sums = jnp.zeros((6, *shape))
        (state, sums), record = jax.lax.scan(turn, (state, sums), weights)
        mass = jnp.broadcast_to(jnp.sum(weights, axis=0)[:, None], (6, shape[-1]))
        parts = [(sums[of], mass[of]) for of in (slice(3), slice(3, 6))]
        return state, parts, record

    def width(self, count: int) -> int:
        """Lanes of the batches in which so many are looked at."""
        return self.lanes if lanes_for(count) > NARROW else NARROW

    def look(
        self,
        state: PyTree,
        parameters: PyTree,
        indices: np.ndarray,
        width: int | None = None,
        number: int = 0,
    ) -> Iterator[tuple[np.ndarray, PyTree, Look]]:
        """One look at some lanes, in batches: who, their states after it, the look."""
        if not len(indices):
            return
        width = self.width(len(indices)) if width is None else width
        if width not in self._compiled:
            narrow = take((state, parameters, *Place(0, 1)), np.zeros(NARROW, int))
            self._compiled[width] = Compiled(self._looked, *_on_device(narrow))
        look, items = self._compiled[width], list(batches(indices, width))
        place = place_of(number, self.looks)

        def job(item, stop: threading.Event):
            chosen, real = item
            lanes = _on_device(take((state, parameters, *place), chosen))
            after, parts, record = look(*lanes)
            period, finite, *ranges = _judged(record, self.search.recurrence)
            whole, part = (Averages(*sums, *ranges) for sums in parts)
            looked = after, Look(period, finite, whole, part, record)
            real_ones = take(jax.tree.map(np.asarray, looked), np.arange(real))
            return chosen[:real], *real_ones

        for _, result in run_all(job, items):
            yield result

    def until(self, horizon: int) -> "Follower":
        """The same compiled map with another horizon, steps."""
        copied = copy.copy(self)
        copied.search = dataclasses.replace(self.search, horizon=horizon)
        return copied

    def see(self, state: PyTree) -> np.ndarray:
        """Observables (d, n) of any number of states."""
        parts = [
            np.asarray(self._see(_on_device(take(state, chosen))))[:, :real]
            for chosen, real in batches(np.arange(count_of(state)), self.lanes)
        ]
        return np.concatenate(parts, axis=-1)


@jax.jit
def _judged(record, tolerance):
    """Periods, whether all is finite, and ranges of the quarters of (R, d, lanes).

    A program of the shapes alone, which is compiled once for all maps.
    """
    recurs = lambda x: recurrence(x, multiple=1, tolerance=tolerance)
    period, _ = jax.vmap(recurs, in_axes=-1)(record)
    finite = jnp.all(jnp.abs(record) < HORIZON, axis=(0, 1))
    length = len(record)
    quarters = record[: length - length % 4].reshape((4, -1) + record.shape[1:])
    low, high = jnp.min(quarters, axis=1), jnp.max(quarters, axis=1)
    return jnp.where(finite, period, 0), finite, low, high


def _on_device(tree: PyTree) -> PyTree:
    return jax.device_put(tree)
