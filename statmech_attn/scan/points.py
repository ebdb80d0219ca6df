"""Points on a grid with a row of numbers each: what most computations are.

A subclass of `Points` says what its axes are, what the variables of its file mean, and
what the numbers of one point are.  The rest follows from these three: how many points
there are, what shape the arrays have, which points have no numbers and why, and how all
this is computed in chunks that survive a kill.

    points.compute()            the data set, computed in memory
    points.run("scan.h5")       the same in a file; the same call goes on after a kill
"""

import copy
from abc import ABC
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn import storage
from statmech_attn.labels import Variables
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan import jobs
from statmech_attn.scan.chunks.work import (
    Arrays,
    Assembled,
    Chunk,
    Contents,
    OneRound,
    Pilot,
    Results,
    Tick,
)
from statmech_attn.scan.engines import local
from statmech_attn.scan.fingerprints import described


class Computation(ABC):
    """A computation in memory, or in chunks beside a file."""

    title: str
    batch: int

    def identity(self) -> Mapping[str, Any]:
        """What makes this computation another one, as a table of TOML.

        Kind, class, and all public attributes of the instance but `batch`, on which no
        number depends, and what is computed from others once.

        Raises:
            TypeError: an attribute that cannot be told from another one.
        """
        known = lambda n: isinstance(getattr(type(self), n, None), cached_property)
        given = {
            name: value
            for name, value in vars(self).items()
            if not (name.startswith("_") or name == "batch" or known(name))
        }
        return described({"kind": self._kind, "type": type(self)} | given)

    @property
    def _kind(self) -> str:
        return self.title

    def with_batch(self, batch: int | None) -> Any:
        """The same computation with so many points at once.

        Args:
            batch: for which chunks were cut; its own when omitted.
        """
        if batch is None or batch == self.batch:
            return self
        cut = copy.copy(self)
        cut.batch = batch
        return cut

    def compute(self, report: Reporter = Silent()) -> xr.Dataset:
        """The result, computed in memory by all cores.

        Args:
            report: told of the progress.
        """
        return local.in_memory(self, report)  # pyright: ignore[reportArgumentType]

    def run(
        self, path: str | Path, report: Reporter = Silent(), **how: Any
    ) -> xr.Dataset:
        """The result, computed in chunks beside a file that then holds it.

        The same call goes on where a killed one ended, and reads a finished file.

        Args:
            path: HDF5 file to be written.
            report: told of the progress.
            how: `overwrite`, `engine`, `points_per_chunk`, as in `scan.jobs.compute`.

        Raises:
            StorageError: the file is another one's, or cannot be written.
        """
        text = storage.toml.dumps(dict(self.identity()))
        job = jobs.Job(text, text, self.with_batch)
        jobs.compute(job, Path(path), report, **how)
        return storage.read(path)


class Points(Computation, OneRound):
    """Points on the product of some axes, each on its own.

    What the numbers of a point depend on are public attributes of the instance: by
    them a file is known to be of the same points.  What is kept only for speed has a
    leading underscore.

    Attributes:
        title: a word or two for the progress bar.
        variables: of the file.  Those of their dimensions that are no axes are those of
            the row of one point, in this order.
        axes: values by dimension, the last one fastest.
        numbers: variables in which every computed point has finite numbers.
        single: axes of one value that the file has as a number.

    Example:
        >>> from statmech_attn.labels import Variable
        >>> class Squares(Points):
        ...     title, axes, numbers = "squares", {"x": [1.0, 2.0, 3.0]}, ("square",)
        ...     variables = Variables(
        ...         Variable("x", "x", "argument"), Variable("square", "x", "square"))
        ...     def row(self, number, tick, folder):
        ...         return {"square": self.axes["x"][number] ** 2}
        >>> Squares().compute().square.values.tolist()
        [1.0, 4.0, 9.0]
    """

    variables: Variables
    axes: Mapping[str, Sequence | np.ndarray]
    batch = 1
    numbers: Sequence[str] = ()
    single: Sequence[str] = ()

    def row(self, number: int, tick: Tick, folder: Path | None) -> Mapping[str, Any]:
        """Numbers of a point, by the name of the variable; all points have the same.

        A class whose points are computed side by side defines `rows` in its place.

        Args:
            number: of the point.
            tick: called with the share of the point that is done since its last call;
                it raises to drop the point.
            folder: where a point may keep blocks of its own, if anywhere.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither row nor rows.")

    def derived(self, columns: Contents) -> Contents:
        """Variables of the file from those of the points, once all are there.

        Args:
            columns: dimensions and values by name, those of the axes first.
        """
        return columns

    def coordinates(self) -> Mapping[str, Any]:
        """Values of dimensions that are no axes; those that no variable has may be."""
        return {}

    def attributes(self) -> Mapping[str, Any]:
        """Attributes of the file."""
        return {"kind": self.title}

    @property
    def _kind(self) -> str:
        return self.attributes()["kind"]

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis."""
        return tuple(map(len, self.axes.values()))

    @property
    def total(self) -> int:
        return int(np.prod(self.shape))

    def index(self, number: int) -> dict[str, int]:
        """Where a point stands on each axis.

        Args:
            number: of the point.
        """
        return dict(zip(self.axes, map(int, np.unravel_index(number, self.shape))))

    def rows(
        self, chunk: Chunk, payload: None, tick: Tick, folder: Path | None
    ) -> Arrays:
        rows = []
        for number in range(chunk.first, chunk.stop):
            beside = folder and folder / f"point_{number:05d}"
            ticking = _Ticking(tick)
            rows.append(self.row(number, ticking, beside))
            ticking.rest()
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def pilot(self) -> Pilot | None:
        """How long a point takes, only a whole one can tell."""

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        return lacking(arrays, *self.numbers)

    def assemble(self, results: Results) -> Assembled:
        columns: Contents = {}
        for name in sorted(results.names(), key=self.variables.place):
            rows = self.column(results, name)
            columns[name] = (
                (*self.axes, *self.inner_dims(name, rows)),
                rows.reshape(self.shape + rows.shape[1:]),
            )
        attributes = dict(self.attributes())
        if (failure := results.failure()).any():
            columns["failure"] = tuple(self.axes), failure.reshape(self.shape)
            attributes["failure_reasons"] = results.reasons()
        contents = self.derived(columns)
        used = {dimension for dims, _ in contents.values() for dimension in dims}
        coordinates = {**self.axes, **self.coordinates()}
        named = {row.name for row in self.variables if "{" not in row.name}
        known = lambda d: d in named or d.startswith("path_")
        coordinates = {d: x for d, x in coordinates.items() if d in used and known(d)}
        dataset = self.variables.labelled(contents, coordinates).assign_attrs(
            attributes
        )
        return Assembled(dataset.isel(dict.fromkeys(self.single, 0)))

    def column(self, results: Results, name: str) -> np.ndarray:
        """Rows of a variable of all points, or the part of them that is kept.

        Args:
            results: of all points.
            name: of the variable.
        """
        return results.column(name)

    def inner_dims(self, name: str, rows: np.ndarray) -> tuple[str, ...]:
        """Dimensions of the row of a point.

        Args:
            name: of the variable; what is none has dimensions of its own.
            rows: of all points.

        Raises:
            ValueError: a row that has not the dimensions of its variable.
        """
        try:
            dims = [d for d in self.variables.dims(name) if d not in self.axes]
        except KeyError:
            dims = [f"{name}_{axis}" for axis in range(1, rows.ndim)]
        if len(dims) != rows.ndim - 1:
            raise ValueError(
                f"{name} has the dimensions {dims or 'of a number'} at a point, but "
                f"its row has the shape {rows.shape[1:]}."
            )
        return tuple(dims)


class _Ticking:
    """A tick of the points of a chunk that ends every point at a whole one."""

    def __init__(self, tick: Tick):
        self._tick, self._done = tick, 0.0

    def __call__(self, share: float) -> None:
        self._done += share
        self._tick(share)

    def rest(self) -> None:
        """What was not told of a point."""
        if self._done < 1.0:
            self(1.0 - self._done)


def lacking(arrays: Arrays, *names: str) -> np.ndarray:
    """Rows in which a number of one of these arrays is not finite."""
    if not arrays or not {*names} <= arrays.keys():
        raise ValueError(f"arrays must hold rows of {names}; got {[*arrays]}.")
    lost = np.zeros(len(next(iter(arrays.values()))), bool)
    for name in names:
        finite = np.isfinite(arrays[name].reshape(len(lost), -1))
        lost |= ~finite.all(axis=1)
    return lost
