"""Basins of attraction on a plane of initial states (docs/theory/attractors.md).

The attractors are found first, from some of the states.  Every state of a grid is then
followed until it stays in the neighbourhood of one of them, which takes far fewer steps
than to see that an orbit recurs.  A tile of the grid is a point of the computation.
Where `coarse` is above 1, a lattice of its states is followed first, and on every finer
lattice those states around which the one before has two basins.

    basins = PlaneBasins(system, state, x, y)
    basins.compute()            the data set
    basins.run("plane.h5")      the same in a file, in chunks
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from statmech_attn.batches import require_double
from statmech_attn.dynamics.attractors.arrivals import STAYS, steps_of_look, Targets
from statmech_attn.dynamics.attractors.basins import (
    Attractors,
    DIVERGED,
    find_attractors,
    NOT_SETTLED,
)
from statmech_attn.dynamics.attractors.settled_orbits import KINDS
from statmech_attn.dynamics.maps.coordinates import Coordinates
from statmech_attn.dynamics.maps.starts import start_of_each, starts_of
from statmech_attn.dynamics.maps.systems import as_system, System
from statmech_attn.dynamics.options import Search
from statmech_attn.labels import STEP, Variable, Variables
from statmech_attn.options import require_least
from statmech_attn.scan import Arrays, Assembled, Chunk, FAILURE, Points, Results, Tick


TILE = 32  # states along the edge of a tile
LOOKS = 8  # after which orbits that have arrived make room for others
LANES = 1024  # orbits side by side
UNKNOWN = -3  # basin of a state that was not followed yet

# States, looks, of these how many in one neighbourhood, and whose that is.
Orbits = tuple[PyTree, Array, Array, Array]


ROWS = (
    Variable(
        "basin",
        "y x",
        "attractor of the initial state",
        symbol="k",
        group="",
        note="-1: on none of them within the horizon, -2: diverged",
    ),
    Variable(
        "arrival_time",
        "y x",
        "time before the orbit stays beside its attractor",
        "{unit}",
        "t",
        group="",
        note="-1 where it does not arrive, or was not followed, its basin being "
        "that of all states around",
    ),
    Variable("fraction", "attractor", "share of the plane", symbol="p", group=""),
    Variable("kind", "attractor", "kind of the set", flags=KINDS, group=""),
    Variable(
        "period",
        "attractor",
        "period, 0 where orbits do not recur",
        "{unit}",
        "p",
        group="",
    ),
    Variable(
        "points",
        "attractor point observable",
        "points of the set",
        symbol="x",
        group="",
    ),
    FAILURE,
    Variable("x", "x", "first coordinate of the plane"),
    Variable("y", "y", "second coordinate of the plane"),
)


def plane_variables(unit: str = STEP) -> Variables:
    """Labels of the variables of a file; `unit` is that of time."""
    return Variables(*(row.in_steps(unit) for row in ROWS))


VARIABLES = plane_variables()


class PlaneBasins(Points):
    """Basins on a plane of initial states of any system.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        state: a state of the plane, where both coordinates are 0.
        x, y: values of the two coordinates of the plane.
        along: the directions of the plane: two vectors of all coordinates of the state,
            or two numbers of coordinates, from 0, whose values x and y then are.
        parameters: of the system, shared by all states.
        attractors: as `find_attractors` finds them, which begins in `seeds` states of
            the grid when they are omitted.  Sets that orbits leave are none.
        seeds: number of these states.
        search: how they are followed; every state is followed for its horizon at most.
        coarse: step of the lattice of states that are followed first, a power of two;
            1 follows all.  An island of a basin that lies between its states is missed.

    Raises:
        ValueError: a plane, system or choice that makes no sense, or no attractor.

    Example:
        >>> import jax, jax.numpy as jnp, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> two = lambda z: jnp.stack([1.5 * jnp.tanh(z[0]), z[1] / 2])
        >>> x, y = np.linspace(-1, 1, 4), np.linspace(-1, 1, 2)
        >>> plane = PlaneBasins(two, jnp.zeros(2), x, y).compute()
        >>> plane.basin.values.tolist(), plane.points.sel(point=0)[:, 0].values.round(2)
        ([[0, 0, 1, 1], [0, 0, 1, 1]], array([-1.29,  1.29]))
    """

    title = "plane-basins"

    def __init__(
        self,
        system: Callable[..., PyTree] | System,
        state: PyTree,
        x: Sequence[float] | np.ndarray,
        y: Sequence[float] | np.ndarray,
        *,
        along: Sequence[Any] = (0, 1),
        parameters: PyTree = None,
        attractors: Attractors | None = None,
        seeds: int = 256,
        search: Search = Search(),
        coarse: int = 1,
    ):
        require_double()
        require_least(1, seeds=seeds, coarse=coarse)
        if coarse & (coarse - 1) or coarse > TILE:
            raise ValueError(
                f"coarse must be a power of two up to {TILE}; got {coarse}."
            )
        self.system, self.search, self.coarse = as_system(system), search, coarse
        self.state, self.parameters = jax.tree.map(jnp.asarray, (state, parameters))
        self.x, self.y = (np.asarray(values, float) for values in (x, y))
        if self.x.ndim != 1 or self.y.ndim != 1 or not (self.x.size and self.y.size):
            raise ValueError("x and y must be lists of values.")
        self.origin, self.directions = self._plane(along)
        if attractors is None:
            cells = np.random.default_rng(0).permutation(self.x.size * self.y.size)
            states = starts_of(self._states(cells[:seeds]))
            attractors = find_attractors(
                self.system, states, self.parameters, search=search
            )
        self.targets = Targets.of(attractors, search)
        self.kinds = attractors.kind[self.targets.number]
        self.period = attractors.period[self.targets.number]
        self._tiles = -(-self.y.size // TILE), -(-self.x.size // TILE)
        self.axes = {"tile": np.arange(self._tiles[0] * self._tiles[1])}
        self.variables = plane_variables(self.system.unit)

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        """Basins and times of the states of some tiles."""
        tiles = np.arange(chunk.first, chunk.stop)
        cells = self._cells(tiles)
        basin = np.full(cells.shape, UNKNOWN, np.int16)
        time = np.full(cells.shape, -1, np.int32)
        step = self.coarse
        while step:
            i, j = _lattice(step, edge=self.coarse > 1)
            unknown = basin[:, i, j] == UNKNOWN
            if step < self.coarse:
                around = _around(basin, i, j, 2 * step)
                inside = (around == around[0]).all(axis=0)
                basin[:, i, j] = np.where(unknown & inside, around[0], basin[:, i, j])
                unknown &= ~inside
            of_tile, place = np.nonzero(unknown)
            where = of_tile, i[place], j[place]
            if place.size:
                basin[where], time[where] = self._followed(cells[where])
            step //= 2
            tick(len(tiles) / (2 * self.coarse))
        of_tiles = np.s_[:, :TILE, :TILE]
        return {"basin": basin[of_tiles], "arrival_time": time[of_tiles]}

    def assemble(self, results: Results) -> Assembled:
        size = self.y.size, self.x.size
        image = {
            name: _image(results.column(name), self._tiles)[: size[0], : size[1]]
            for name in ("basin", "arrival_time")
        }
        count = [(image["basin"] == k).sum() for k in range(len(self.kinds))]
        contents = {
            **{name: (("y", "x"), values) for name, values in image.items()},
            "fraction": (("attractor",), np.array(count) / image["basin"].size),
            "kind": (("attractor",), self.kinds.astype(np.int8)),
            "period": (("attractor",), self.period),
            "points": (("attractor", "point", "observable"), self.targets.points),
        }
        dataset = self.variables.labelled(contents, {"x": self.x, "y": self.y})
        name = getattr(self.system.step, "__name__", type(self.system).__name__)
        about = {"system": name, "unit": self.system.unit, "coarse": self.coarse}
        shown = self.system.observe is None and (self.directions.sum(axis=1) == 1).all()
        about |= {"along": self.directions.argmax(axis=1)} if shown else {}
        return Assembled(dataset.assign_attrs({"kind": self.title, **about}))

    def _plane(self, along: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """The state of the plane's origin, and its two directions in rows."""
        origin = np.array(self.system.at(self.parameters).vector(self.state))
        if len(along) != 2:
            raise ValueError(f"along must be two directions; got {len(along)}.")
        if all(np.ndim(direction) == 0 for direction in along):
            for number in along:
                if number not in range(len(origin)):
                    raise ValueError(
                        f"along: coordinates are 0 to {len(origin) - 1}; got {number}."
                    )
            origin[list(along)] = 0.0
            return origin, np.eye(len(origin))[list(along)]
        directions = np.array(along, float)
        if directions.shape != (2, len(origin)):
            raise ValueError(
                f"along: directions have {len(origin)} coordinates; got "
                f"{directions.shape[1:]}."
            )
        return origin, directions

    def _states(self, cells: np.ndarray) -> PyTree:
        """States of the grid, on the last axis."""
        row, column = np.divmod(cells, self.x.size)
        along = np.stack([self.x[column], self.y[row]])
        vectors = self.origin[:, None] + self.directions.T @ along
        template = start_of_each(self.state, None, np.zeros(1, int))
        layout = Coordinates(self.system, template)
        return layout.state(self.parameters, jnp.asarray(vectors))

    def _cells(self, tiles: np.ndarray) -> np.ndarray:
        """Numbers of the states of tiles with their far edges; the last ones repeat."""
        row, column = np.divmod(tiles, self._tiles[1])
        place = np.arange(TILE + 1)
        i = np.minimum(row[:, None] * TILE + place, self.y.size - 1)
        j = np.minimum(column[:, None] * TILE + place, self.x.size - 1)
        return i[:, :, None] * self.x.size + j[:, None, :]

    def _followed(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Basins of states and times of arrival; lanes that are done take others."""
        cells, back = np.unique(cells, return_inverse=True)
        basin = np.full(len(cells), NOT_SETTLED, np.int16)
        time = np.full(len(cells), -1, np.int32)
        lane = np.full(LANES, -1)  # number of the state that it follows; -1: of none
        begun, orbits = 0, self._begun(cells[np.zeros(LANES, int)])
        while begun < len(cells) or (lane >= 0).any():
            free = np.flatnonzero(lane < 0)[: len(cells) - begun]
            lane[free] = np.arange(begun, begun + free.size)
            begun += free.size
            if free.size:
                fresh = np.isin(np.arange(LANES), free)
                others = self._begun(cells[np.maximum(lane, 0)])
                orbits = jax.tree.map(
                    lambda new, old: jnp.where(fresh, new, old) if new.ndim else old,
                    others,
                    orbits,
                )
            orbits = self._later(orbits)
            _, looks, stays, nearest = orbits
            looks, stays, nearest = map(np.asarray, (looks, stays, nearest))
            arrived, gone = stays >= STAYS, nearest == DIVERGED
            over = (lane >= 0) & (arrived | gone | (looks >= self._most))
            known, there = over & (arrived | gone), over & arrived
            basin[lane[known]] = nearest[known]
            time[lane[there]] = (looks[there] - STAYS) * steps_of_look(self.system)
            lane[over] = -1
        return basin[back], time[back]

    def _begun(self, cells: np.ndarray) -> Orbits:
        """Orbits that begin in some states, on every lane."""
        counts = jnp.zeros(LANES, int)
        return self._states(cells), counts, counts, counts + NOT_SETTLED

    @property
    def _most(self) -> int:
        """Looks at an orbit at most."""
        return self.search.horizon // steps_of_look(self.system)

    @property
    def _later(self) -> Callable[[Orbits], Orbits]:
        """Some looks at orbits; what is known of those that arrived stays."""
        between = steps_of_look(self.system)
        fixed = self.system, self.parameters, self.targets, between, self._most
        return partial(_later, *fixed)


@eqx.filter_jit
def _later(system, parameters, sets, between, most, orbits: Orbits) -> Orbits:
    step = lambda _, state: system.steps(state, parameters)

    def look(_, orbits: Orbits) -> Orbits:
        state, looks, stays, basin = orbits
        live = (stays < STAYS) & (basin != DIVERGED) & (looks < most)
        state = jax.lax.fori_loop(0, between, step, state)
        nearest = sets.nearest(system.seen(state))
        same = (nearest >= 0) & (nearest == basin)
        after = looks + 1, jnp.where(same, stays + 1, nearest >= 0), nearest
        if_live = lambda new, old: jnp.where(live, new, old)
        looks, stays, basin = map(if_live, after, (looks, stays, basin))
        return state, looks, stays, basin

    return jax.lax.fori_loop(0, LOOKS, look, orbits)


def _lattice(step: int, edge: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of a tile on a lattice, with those of its far edges or not."""
    places = np.arange(0, TILE + edge, step)
    i, j = np.meshgrid(places, places, indexing="ij")
    return i.ravel(), j.ravel()


def _around(basin: np.ndarray, i, j, step: int) -> np.ndarray:
    """Basins of the four points of a coarser lattice around places of tiles."""
    low = lambda x: x // step * step
    high = lambda x: -(-x // step) * step
    return np.stack([basin[:, a(i), b(j)] for a in (low, high) for b in (low, high)])


def _image(tiles: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Tiles (n, TILE, TILE) side by side."""
    rows = tiles.reshape(*shape, TILE, TILE).swapaxes(1, 2)
    return rows.reshape(shape[0] * TILE, shape[1] * TILE)
