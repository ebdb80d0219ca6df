r"""Grids that are refined where neighbouring points differ.

A coarse grid of one or two parameters is the level 0 of nested grids; each level halves
the spacing, and all of them lie on the finest, whose indices name the points:

    i = 0 .. (n - 1) 2^L     index on the finest grid, n coarse values, L levels
    cell of level l          edges of 2^(L - l) steps of the finest grid

A cell whose closed box holds two points with different labels (phases, say) is halved
along every axis: its midpoints are computed.  This goes on until every cell that is
not finest has one label only, so points and labels of the result are the least set
that is closed under this rule: they depend neither on the order nor on the batches in
which points were computed.  A point on a shared edge counts for both cells, so that a
boundary is followed into cells whose corners agree; an island inside a coarse cell
that touches no computed point remains unseen.
"""

import itertools
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Int

from statmech_attn.dynamics.diagrams.explanations import listed_parameters
from statmech_attn.labels import Variable
from statmech_attn.options import Count, Numbers


Labels = Int[np.ndarray, "n q"]


class Grid(NamedTuple):
    """Coarse shape (points along each axis, at least 2) and number of levels L."""

    shape: tuple[int, ...]
    levels: int

    @property
    def finest(self) -> tuple[int, ...]:
        """Points of the finest grid along each axis."""
        return tuple((n - 1) * 2**self.levels + 1 for n in self.shape)

    @property
    def size(self) -> int:
        """Points of the finest grid: the most that can be computed."""
        return int(np.prod(self.finest))

    def coarse(self) -> Int[np.ndarray, "n d"]:
        """Indices of the coarse points on the finest grid, last axis fastest."""
        step = 2**self.levels
        axes = [np.arange(n) * step for n in self.shape]
        return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))

    def level_of(self, index: Int[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
        """The first level whose grid holds a point."""
        steps = 2 ** np.arange(self.levels, -1, -1)
        on_level = (index[:, :, None] % steps == 0).all(axis=1)
        return on_level.argmax(axis=1)


def refine_axis(values: Annotated[Numbers, "n"], levels: Count) -> np.ndarray:
    """The finest grid of an axis; its even members are those of the level before.

    Evenly spaced values stay what `numpy.linspace` gives for the finer grid, to the
    last bit; of others the midpoints are taken, level by level.
    """
    values = np.asarray(values, float)
    even = np.linspace(values[0], values[-1], len(values))
    if np.array_equal(values, even):
        return np.linspace(values[0], values[-1], (len(values) - 1) * 2**levels + 1)
    for _ in range(levels):
        finer = np.empty(2 * len(values) - 1)
        finer[::2], finer[1::2] = values, (values[1:] + values[:-1]) / 2
        values = finer
    return values


def fill(grid: Grid, index: Int[np.ndarray, "points d"], values) -> np.ndarray:
    """Values of computed points on the finest grid, others from a neighbour.

    Points that were not computed take the value of the next computed point of a coarser
    level.  Labels filled in this way are those of the whole cell around a point.
    `values` are (points, ...) in the order of `index`.
    """
    values = np.asarray(values)
    level = grid.level_of(index)
    filled = values[level == 0]
    order = np.lexsort(index[level == 0].T[::-1])
    filled = filled[order].reshape(grid.shape + values.shape[1:])
    for current in range(1, grid.levels + 1):
        for axis in range(len(grid.shape)):
            filled = np.repeat(filled, 2, axis=axis)
            filled = np.delete(filled, -1, axis=axis)
        on_level = level <= current
        step = 2 ** (grid.levels - current)
        filled[tuple((index[on_level] // step).T)] = values[on_level]
    return filled


COMPUTED = Variable(
    "computed", "", "whether the point itself was computed", "1", "computed"
)


def on_grid(dataset: xr.Dataset, *names: str) -> xr.Dataset:
    """Variables of a refined file on its finest grid, with `computed` beside them.

    Points that were not computed have the values of a neighbour of a coarser level; the
    phase of such a point is that of every computed point around it.  The attribute
    `gridded` holds the levels of refinement that `refine` held.

    Args:
        dataset: a bifurcation file of one or two refined parameters (docs/hdf5.md).
        names: variables with a number for every point; all of them when omitted.

    Returns:
        Data set over the finest grid; points that were not computed have the numbers of
        a neighbour, and `computed` is False there.

    Raises:
        ValueError: a file that was not refined, or a name that there is not.

    Example:
        `on_grid(scan, "phase").phase.sel(beta=1.3, gamma=90, method="nearest")`
    """
    levels = int(dataset.attrs.get("refine", 0))
    listed = "point" in dataset.dims
    if not levels or not (listed or "level" in dataset):
        raise ValueError("on_grid: needs a refined scan (run.refine = 1 or more).")
    if missing := [name for name in names if name not in dataset]:
        raise ValueError(f"on_grid: there is no variable {missing[0]!r} in this scan.")
    points = "point" if listed else str(dataset.level.dims[0])
    index, along = _places(dataset) if listed else _line(dataset, points)
    axes, sizes = list(along), [len(values) for _, values, _ in along.values()]
    grid = Grid(tuple((n - 1) // 2**levels + 1 for n in sizes), levels)
    computed = np.zeros(grid.finest, bool)
    computed[tuple(index.T)] = True
    variables = {"computed": xr.Variable(axes, computed, COMPUTED.attributes())}
    for name in names or [n for n in dataset.data_vars if points in dataset[n].dims]:
        variable = dataset[str(name)].variable.transpose(points, ...)
        dims = (*axes, *variable.dims[1:])
        values = fill(grid, index, variable.values)
        variables[str(name)] = xr.Variable(dims, values, variable.attrs)
    other_axes = {
        name: coordinate
        for name, coordinate in dataset.coords.items()
        if coordinate.dims == (name,)
        and name not in axes
        and not str(name).endswith("_grid")
    }
    attributes = {k: v for k, v in dataset.attrs.items() if k != "refine"}
    attributes["gridded"] = levels
    columns = {n: dataset[n] for n in listed_parameters(dataset)}
    listed = {n: _between(column, along[points]) for n, column in columns.items()}
    return xr.Dataset(variables, along | listed | other_axes, attributes)


def _between(column: xr.DataArray, finest):
    """A parameter of a list of points at all places of the finest one."""
    (axis, index, _), computed = finest, column[column.dims[0]]
    return axis, np.interp(index, computed, column), column.attrs


def _places(dataset: xr.Dataset):
    """Places of a list of points on the finest grid, and the coordinates of that."""
    axes = [str(n).removesuffix("_grid") for n in dataset.dims if "_grid" in str(n)]
    axes.sort(key=list(dataset.coords).index)
    index = np.stack([dataset[f"{axis}_index"].values for axis in axes], axis=1)
    grids = {axis: dataset[f"{axis}_grid"] for axis in axes}
    return index, {axis: (axis, grids[axis].values, grids[axis].attrs) for axis in axes}


def _line(dataset: xr.Dataset, axis: str):
    """Places of points of one parameter on the finest grid, and that grid."""
    values, level = dataset[axis].values, dataset.level.values
    finest = refine_axis(values[level == 0], int(dataset.attrs["refine"]))
    order = np.argsort(finest)
    index = order[np.searchsorted(finest, values, sorter=order)]
    return index[:, None], {axis: (axis, finest, dataset[axis].attrs)}


class Cells:
    """Labels of the computed points on the finest grid, and what they leave to do."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self.known = np.zeros(grid.finest, bool)
        self.labels: np.ndarray | None = None

    def put(self, index: np.ndarray, labels: Labels) -> None:
        """Labels (n, q) of points with these indices (n, d)."""
        if self.labels is None:
            self.labels = np.zeros((*self.grid.finest, labels.shape[1]), np.int64)
        at = tuple(index.T)
        self.known[at], self.labels[at] = True, labels

    def halve(self) -> np.ndarray:
        """The points of all halved cells that are still to be computed."""
        requested = np.zeros(self.grid.finest, bool)
        for level, differ in enumerate(self._differ()):
            self._want_corners_of_halves(requested, np.argwhere(differ), level)
        return np.argwhere(requested & ~self.known)

    def _want_corners_of_halves(self, requested, cells, level) -> None:
        half = 2 ** (self.grid.levels - level - 1)
        for corner in itertools.product(range(3), repeat=requested.ndim):
            requested[tuple(((2 * cells + corner) * half).T)] = True

    def _differ(self) -> Iterator[np.ndarray]:
        """Whether the computed points in each closed cell differ, from level 0 on."""
        assert self.labels is not None
        both_known = self.known[..., None]
        least = np.iinfo(np.int64)
        low = self._corners(np.where(both_known, self.labels, least.max), np.minimum)
        high = self._corners(np.where(both_known, self.labels, least.min), np.maximum)
        per_level = []
        for _ in range(self.grid.levels):
            low, high = _pairs(low, np.minimum), _pairs(high, np.maximum)
            per_level.append((low < high).any(axis=-1))
        return reversed(per_level)

    @staticmethod
    def _corners(points: np.ndarray, choose: np.ufunc) -> np.ndarray:
        """The least or largest of the corners of every finest cell."""
        for axis in range(points.ndim - 1):
            points = np.moveaxis(points, axis, 0)
            points = np.moveaxis(choose(points[1:], points[:-1]), 0, axis)
        return points


def _pairs(cells: np.ndarray, choose: np.ufunc) -> np.ndarray:
    """Cells of the next coarser level from those of this one."""
    for axis in range(cells.ndim - 1):
        cells = np.moveaxis(cells, axis, 0)
        cells = np.moveaxis(choose(cells[::2], cells[1::2]), 0, axis)
    return cells
