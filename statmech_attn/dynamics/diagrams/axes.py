"""Scanned and fixed parameters of a diagram, and its points."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from statmech_attn.dynamics.diagrams.diagram_variables import INDEX
from statmech_attn.dynamics.diagrams.refinement import refine_axis
from statmech_attn.labels import Variable


Contents = dict[str, tuple[tuple[str, ...], Any]]


class Axes(NamedTuple):
    """Scanned parameters and fixed ones; points are the product, last axis fastest.

    Attributes:
        names: of the scanned parameters; "index" of a list of points.
        values: of each of them.
        fixed: the other parameters by name.
        make: parameters of the system from a mapping of arrays by name.
        columns: parameters of a list of points by name, in the order of the list.
    """

    names: tuple[str, ...]
    values: tuple[np.ndarray, ...]
    fixed: dict[str, float]
    make: Callable[[dict[str, np.ndarray]], PyTree] = dict
    columns: Mapping[str, np.ndarray] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(v) for v in self.values)

    def points(self, repeat: int = 1) -> Any:
        """Parameters of every point, each repeated (for several starts).

        Args:
            repeat: number of rows for each point.
        """
        index = np.argwhere(np.ones(self.shape, bool))
        return self.at(index, repeat)

    def at(self, index: np.ndarray, repeat: int = 1) -> Any:
        """Parameters of the points with these indices (points, axes).

        Args:
            index: numbers of the points along each axis, (points, axes).
            repeat: number of rows for each point.
        """
        size = repeat * len(index)
        table = {name: np.full(size, value) for name, value in self.fixed.items()}
        for column, (name, values) in zip(index.T, self.scanned.items(), strict=True):
            table[name] = np.repeat(values[column], repeat)
        if self.columns:
            table |= self.listed(table.pop(INDEX.name))
        return self.make(table)

    def listed(self, index: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters of a list by name, on straight lines between its points.

        Args:
            index: numbers in the list, from 0.
        """
        along = lambda column: np.interp(index, np.arange(len(column)), column)
        return {name: along(column) for name, column in self.columns.items()}

    def others(self, along: np.ndarray | None = None) -> Contents:
        """Dimensions and values of all parameters but those that are scanned.

        Args:
            along: values of the first axis; its own when omitted.
        """
        listed = self.listed(self.values[0] if along is None else along)
        columns = {name: (self.names, column) for name, column in listed.items()}
        return columns | {name: ((), value) for name, value in self.fixed.items()}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters of the system."""
        return *(self.columns or self.names), *self.fixed

    @property
    def labels(self) -> list[Variable]:
        """Labels of all parameters, and of the number in a list."""
        called = lambda name: Variable(name, "", f"parameter {name}", "1", name)
        return [*map(called, self.parameters), *([INDEX] if self.columns else [])]

    @property
    def scanned(self) -> dict[str, np.ndarray]:
        """Values of the scanned parameters by name."""
        return dict(zip(self.names, self.values, strict=True))

    def refined(self, levels: int) -> "Axes":
        """The finest of nested grids, each level with half the spacing.

        Args:
            levels: how often the spacing is halved.

        Raises:
            ValueError: fewer than two values of a parameter, or values that are not in
                order.
        """
        for name, values in self.scanned.items():
            steps = np.sign(np.diff(values))
            if not steps.size or abs(steps.sum()) < steps.size:
                raise ValueError(
                    f"refine: needs at least two values of {name}, in order."
                )
        finest = tuple(refine_axis(values, levels) for values in self.values)
        return self._replace(values=finest)


def axes_of(grid: Mapping[str, Any] | Axes) -> Axes:
    """One or two scanned parameters (values) and fixed ones (numbers)."""
    if isinstance(grid, Axes):
        return grid
    if not isinstance(grid, Mapping):
        raise ValueError(
            'grid must be a dictionary of parameters by name, such as {"a": values, '
            f'"b": 0.3}}; got {type(grid).__name__}.'
        )
    scanned, fixed = {}, {}
    for name, value in grid.items():
        values = np.asarray(value, float)
        if values.ndim > 1 or not np.isfinite(values).all():
            raise ValueError(
                f"{name} must be a finite number or one list of them; got {value}."
            )
        if values.ndim == 0:
            fixed[name] = float(values)
        elif len(np.unique(values)) < len(values) or not len(values):
            raise ValueError(
                f"{name} must hold distinct values, at least one; got {value}."
            )
        else:
            scanned[name] = values
    if len(scanned) not in (1, 2):
        raise ValueError(
            "grid must hold one or two parameters with several values; "
            f"got {len(scanned)}.  A point_list takes any number."
        )
    return Axes(tuple(scanned), tuple(scanned.values()), fixed, on_device)


def one_axis_of(grid: Mapping[str, Any] | Axes) -> Axes:
    """The same of exactly one scanned parameter, or of a list of points."""
    axes = axes_of(grid)
    if len(axes.names) != 1:
        raise ValueError(
            "grid must have one parameter with several values; got "
            f"{' and '.join(axes.names)}."
        )
    return axes


def on_device(table: dict[str, np.ndarray]) -> dict[str, jax.Array]:
    """Parameters of a system that takes them as a dictionary."""
    return jax.device_put(table)
