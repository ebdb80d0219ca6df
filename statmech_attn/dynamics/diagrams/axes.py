"""Scanned and fixed parameters of a diagram, and its points."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn.dynamics.diagrams.refinement import refine_axis


class Axes(NamedTuple):
    """Scanned parameters and fixed ones; points are the product, last axis fastest.

    Attributes:
        names: of the scanned parameters.
        values: of each of them.
        fixed: the other parameters by name.
        make: parameters of the system from a mapping of arrays by name.
    """

    names: tuple[str, ...]
    values: tuple[np.ndarray, ...]
    fixed: dict[str, float]
    make: Callable[[dict[str, np.ndarray]], PyTree] = dict

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
        return self.make(table)

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


def axes_of(grid: Mapping[str, Any]) -> Axes:
    """One or two scanned parameters (values) and fixed ones (numbers).

    Args:
        grid: parameters by name: lists that are scanned, numbers that are fixed.

    Returns:
        `Axes`: names and values of what is scanned, and the fixed parameters.

    Raises:
        ValueError: no dictionary, none or more than two to scan, values that are not
            finite and distinct, or more than one dimension.

    Example:
        >>> axes_of({"a": [1.0, 1.2, 1.4], "b": 0.3}).shape
        (3,)
    """
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
            f"got {len(scanned)}."
        )
    on_device = lambda table: jax.tree.map(jnp.asarray, table)
    return Axes(tuple(scanned), tuple(scanned.values()), fixed, on_device)
