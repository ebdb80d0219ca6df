"""A function of one point, over a grid: any computation becomes a scan.

scan.over(function, {"a": values, "b": 0.3}).compute()      the data set
scan.over(function, {"a": values, "b": 0.3}).run("a.h5")    the same in a file
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from statmech_attn import presentation
from statmech_attn.arguments import shown
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan.chunks.work import (
    Arrays,
    Assembled,
    Chunk,
    COMPUTED,
    Contents,
    FAILURE,
    Results,
    Tick,
)
from statmech_attn.scan.points import Points


Columns = Mapping[Variable, np.ndarray]
ASKED = "number", "tick", "folder"  # what a function may ask for by keyword


@runtime_checkable
class PointList(Protocol):
    """Points that are no product, such as those of a `dynamics.point_list`."""

    @property
    def scanned(self) -> Mapping[str, np.ndarray]: ...

    @property
    def fixed(self) -> Mapping[str, float]: ...


def over(
    function: Callable[..., Any],
    grid: Mapping[str, Any] | PointList,
    *,
    variables: Iterable[Variable] = (),
    keep: Collection[str] | None = None,
    numbers: Collection[str] | Callable[[Arrays], np.ndarray] = (),
    coordinates: Mapping[str, Any] = {},
    derive: Callable[[Contents], Contents] | None = None,
    batch: int = 1,
    kind: str = "scan",
    about: Mapping[str, Any] = {},
    **work: Any,
) -> "Scan":
    """A function at every point of a grid, in memory or in chunks beside a file.

    A file is known by the function, with all that it uses, and by the other arguments:
    the same call goes on where a killed one ended, another one is refused.

    Args:
        function: of a dictionary of parameters, one number each.  Its result is one of
            the package, which says what its numbers are, or a dictionary of numbers
            that `variables` label, of equal shapes at all points.  It may take the
            keywords `number` of the point, `tick` and `folder`, as `Points.row` does.
            A point at which it raises `ValueError`, `ArithmeticError` or
            `RuntimeError` has no numbers, and the file says why (`failure`).
        grid: parameters by name: several values, of which points are the product, the
            last fastest, or a number; or a `dynamics.point_list`.
        variables: labels of parameters, and of what results do not label themselves.
        keep: names of the variables that are kept of a result; all when omitted.
        numbers: names of variables that are finite wherever a point is computed; or a
            function of the arrays of some points that says which are not.
        coordinates: values of dimensions of a point by name, if results have none.
        derive: what the file has, of dimensions and values by name.
        batch: points that the function takes at once: its parameters are arrays
            (batch,) and its results those of a batch.  One by one when omitted.
        kind: attribute of the file, by which figures and `info` know it.
        about: further attributes.
        work: attributes of `scan.Work`, such as `empty`, `alone` and `keeps_blocks`.

    Returns:
        The scan: `compute()` gives its data set, `run(path)` that of a file.

    Raises:
        ValueError: a parameter without values, with one twice or with more than one
            dimension.
        TypeError: in a run, the function returns something else.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> from statmech_attn import dynamics, scan
        >>> henon = lambda x, p: jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], 0.3 * x[0]])
        >>> exponents = lambda p: dynamics.lyapunov_spectrum(
        ...     henon, jnp.zeros(2), p, steps=1000, transient=100)
        >>> along = scan.over(exponents, {"a": [1.0, 1.4]}).compute()
        >>> along.lyapunov.dims, (along.lyapunov[:, 0] > 0).values
        (('a', 'exponent'), array([False,  True]))
    """
    self = Scan()
    labels, listed = getattr(grid, "labels", ()), getattr(grid, "columns", {})
    if not isinstance(grid, Mapping):
        grid = {**grid.scanned, **grid.fixed}
    self.axes = {name: _values(name, x) for name, x in grid.items()}
    self.single = tuple(name for name, x in grid.items() if np.ndim(x) == 0)
    self.listed = {name: np.asarray(x) for name, x in listed.items()}
    wanted = inspect.signature(function).parameters
    self._asked = [name for name in ASKED if name in wanted]
    self.function, self.given = function, {}
    if isinstance(function, partial) and not function.args:
        self.function, self.given = function.func, function.keywords
    self.table, self.keep = Variables(*variables, *labels), keep and tuple(keep)
    self.numbers, self.batch = numbers, batch
    self.given_coordinates, self.derive = coordinates, derive
    self.title, self.about = kind, about
    vars(self).update(work)
    return self


def _values(name: str, given: Any) -> np.ndarray:
    """Values of a parameter, each of them once."""
    values = np.atleast_1d(np.asarray(given))
    distinct = values.ndim == 1 and 0 < len({*values.tolist()}) == values.size
    if not distinct or (values.dtype.kind in "fc" and np.isnan(values).any()):
        raise ValueError(
            f"{name} must be a number or a list of distinct ones; got {shown(given)}."
        )
    return values


class Scan(Points):
    """What `over` makes; see there.

    What results say of their numbers is kept of the first one that this process has.

    Attributes:
        function, given: of a point, and keywords that it has at every point.
        listed: parameters of a list of points by name.
        table, numbers, keep, given_coordinates, derive, about: arguments of `over`.
    """

    function: Callable[..., Any]
    given: Mapping[str, Any]
    listed: Mapping[str, np.ndarray]
    table: Variables
    numbers: Any
    keep: Collection[str] | None
    given_coordinates: Mapping[str, Any]
    derive: Callable[[Contents], Contents] | None
    about: Mapping[str, Any]
    _asked: Collection[str]
    _declared: tuple[Columns, Mapping[str, Any]] | None = None

    def parameters(self, number: Any) -> dict[str, Any]:
        """Parameters of a point by name, or of several points, (points,) each.

        Args:
            number: of the point, or of all.
        """
        places = dict(zip(self.axes, np.unravel_index(number, self.shape)))
        lists = {name: x[places["index"]] for name, x in self.listed.items()}
        known = {n: x[places[n]] for n, x in self.axes.items()}
        return lists | {n: x for n, x in known.items() if not lists or n != "index"}

    def row(self, number: Any, tick: Tick, folder: Path | None) -> Mapping[str, Any]:
        asked = {"number": number, "tick": tick, "folder": folder}
        asked = {name: asked[name] for name in self._asked}
        result = self.function(self.parameters(number), **self.given, **asked)
        of_table = isinstance(result, Mapping)
        place, end = self.table.place, len(self.table.rows)
        if of_table and (self.derive or all(place(name) < end for name in result)):
            return result
        if not hasattr(result, "_shown"):
            got = f"{[*result]}" if of_table else type(result).__name__
            raise TypeError(
                "function must return a result of the package, or a dictionary of "
                f"what variables label; got {got}."
            )
        rows, declared = {}, {}
        for row, x in presentation.columns(result, self.keep):
            alone = row._replace(dims=row.dims.removeprefix("batch").strip())
            declared[alone] = x
            if row.dims != row.name and x.dtype.kind not in "UO":
                shared = self.batch > 1 and alone == row
                rows[row.name] = np.stack([x] * self.batch) if shared else x
        self._declared = self._declared or (declared, presentation.about(result))
        return rows

    def rows(
        self, chunk: Chunk, payload: None, tick: Tick, folder: Path | None
    ) -> Arrays:
        if self.batch == 1:
            return super().rows(chunk, payload, tick, folder)
        parts = []
        for first in range(chunk.first, chunk.stop, self.batch):
            count = min(self.batch, chunk.stop - first)
            numbers = np.minimum(np.arange(first, first + self.batch), chunk.stop - 1)
            columns = self.row(numbers, tick, folder)
            parts.append({name: np.asarray(x)[:count] for name, x in columns.items()})
            tick(count)
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    @property
    def declared(self) -> tuple[Columns, Mapping[str, Any]]:
        """What a result says of its numbers, and attributes of the file."""
        return self._declared or ({}, {})

    @property
    def variables(self) -> Variables:  # pyright: ignore
        known = {row.name for row in self.table}
        parameters = {*self.axes, *self.listed} - known
        called = (Variable(n, "", f"parameter {n}", "1", n) for n in parameters)
        return Variables(self.table, *self.declared[0], FAILURE, *called)

    def coordinates(self) -> dict[str, Any]:
        named = {r.name: x for r, x in self.declared[0].items() if r.dims == r.name}
        return named | dict(self.given_coordinates)

    def attributes(self) -> dict[str, Any]:
        scanned = [name for name in self.axes if name not in self.single]
        alone = self._declared and len(scanned) == 1
        words = {"parameter": scanned[0]} if alone else {}
        return {"kind": self.title, **words, **self.declared[1], **self.about}

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        if callable(self.numbers):
            return np.asarray(self.numbers(arrays))
        return super().not_finite(arrays)

    def derived(self, columns: Contents) -> Contents:
        return self.derive(columns) if self.derive else columns

    def assemble(self, results: Results) -> Assembled:
        """A point is computed again if another process had all that have numbers."""
        try:
            dataset = super().assemble(results).dataset
        except KeyError:  # no label
            first = int(np.flatnonzero(results.failure() == COMPUTED)[0])
            places = np.full(self.batch, first) if self.batch > 1 else first
            self.row(places, lambda _: None, None)
            dataset = super().assemble(results).dataset
        table = self.variables
        lists = {
            name: (("index",), values, table.attributes(name))
            for name, values in self.listed.items()
        }
        return Assembled(dataset.assign_coords(lists))
