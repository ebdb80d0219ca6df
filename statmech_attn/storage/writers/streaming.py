"""Writing the content of a file: a data set, and variables that come block by block.

HDF5 crashes the process when a write fails, on a full disk or by Ctrl-C.  It therefore
writes into a `_File`, which keeps the first error to itself and accepts everything
after it, and signals wait until HDF5 is out of the way.
"""

import io
import math
import os
import signal
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import h5netcdf
import h5py
import numpy as np
import xarray as xr
from xarray.backends import H5NetCDFStore

from statmech_attn.storage.columns import (
    Box,
    CHUNK,
    Column,
    GZIP_LEVEL,
    SLAB,
    slabs,
    storage_options,
)
from statmech_attn.storage.schema import StorageError


DIFFERS = "it reads back differently from what was written"
LONGEST = 60_000  # bytes of a text in an attribute of HDF5, which has 64 KiB


class _File(io.FileIO):
    """A file that never fails while HDF5 looks; `failure` is what happened instead."""

    failure: BaseException | None = None

    def write(self, data: Any, /) -> int:
        remaining = memoryview(data).cast("B")
        length = len(remaining)
        try:
            while self.failure is None and remaining:
                remaining = remaining[os.write(self.fileno(), remaining) :]
        except BaseException as error:
            self.failure = error
        return length

    def truncate(self, size: int | None = None, /) -> int:
        try:
            if self.failure is None:
                return super().truncate(size)
        except BaseException as error:
            self.failure = error
        return size or 0


class _Store(H5NetCDFStore):
    """Writes texts of attributes as netCDF's characters, which all its readers know."""

    def encode_attribute(self, a: Any) -> Any:
        return _characters(a)

    def encode_variable(self, variable: xr.Variable, name: Any = None) -> xr.Variable:
        encoded = super().encode_variable(variable, name=name).copy(deep=False)
        encoded.attrs = {key: _characters(x) for key, x in encoded.attrs.items()}
        return encoded


def _characters(value: Any) -> Any:
    """A text as HDF5 keeps it at a fixed length, which is netCDF's NC_CHAR.

    h5netcdf makes a NC_STRING of it, which Octave, older MATLAB, Fortran and NCO do not
    read.  Longer texts than fit stay that.
    """
    if not isinstance(value, str) or len(value.encode()) > LONGEST:
        return value
    encoding = "ascii" if value.isascii() else "utf-8"
    characters = value.encode()
    if not characters:
        return h5py.Empty("S1")
    return np.array(characters, h5py.string_dtype(encoding, len(characters)))


def write_content(
    handle: int,
    dataset: xr.Dataset,
    encoding: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, Column],
) -> None:
    """Write the HDF5 content of a data set and its columns.

    The data set is in the form in which it is stored.  `handle` is of an empty file,
    open for reading and writing; it stays open.  Blocks that are not what their column
    says are a `ValueError`, and a column that reads back differently from what was
    written a `StorageError`.
    """
    with (
        _signals_wait() as handle_signals,
        _File(handle, "r+", closefd=False) as file,
        _first_failure(file),
        h5netcdf.File(file, "w") as stored,
    ):
        dataset.dump_to_store(_Store(stored), encoding=encoding)
        most = SLAB // max(len(columns), 1)
        unfinished = [
            _written(name, column, _create(stored, name, column, dataset), most)
            for name, column in columns.items()
        ]
        while unfinished:  # side by side: blocks often come from the same file
            for steps in tuple(unfinished):
                if next(steps, None) is None:
                    unfinished.remove(steps)
                if file.failure is not None:
                    raise file.failure
                handle_signals()


def needed(dataset: xr.Dataset, columns: Mapping[str, Column]) -> int:
    """About how many bytes a file takes, by how its first values compress."""
    small = [_needed(x, lambda x=x: x.values) for x in dataset.variables.values()]
    large = [_needed(x, lambda x=x: next(x.blocks(), None)) for x in columns.values()]
    return sum(small + large)


def _needed(x: xr.Variable | Column, first: Callable[[], np.ndarray | None]) -> int:
    size = math.prod(x.shape) * x.dtype.itemsize
    block = first() if storage_options(x.shape, x.dtype) else None
    return size if block is None else int(size * _compression(block))


def _compression(block: np.ndarray) -> float:
    """Share of its size that a block takes, after HDF5's byte shuffle."""
    sample = block.flat[: CHUNK // block.itemsize]
    planes = sample.view(np.uint8).reshape(-1, block.itemsize).T.tobytes()
    return len(zlib.compress(planes, GZIP_LEVEL)) / max(len(planes), 1)


def _create(
    stored: h5netcdf.File, name: str, column: Column, dataset: xr.Dataset
) -> h5netcdf.Variable:
    """A variable as xarray would make it."""
    for dim, size in zip(column.dims, column.shape, strict=True):
        if dim not in stored.dimensions:
            stored.dimensions[dim] = size
    boolean = column.dtype.kind == "b"
    variable = stored.create_variable(
        name,
        column.dims,
        np.dtype("int8") if boolean else column.dtype.newbyteorder("="),
        **storage_options(column.shape, column.dtype),
    )
    attributes = dict(column.attrs) | ({"dtype": "bool"} if boolean else {})
    coordinates = [
        str(n)
        for n, x in dataset.coords.items()
        if n not in dataset.dims and set(x.dims) <= set(column.dims)
    ]
    if coordinates:
        attributes["coordinates"] = " ".join(sorted(coordinates))
    variable.attrs.update({key: _characters(x) for key, x in attributes.items()})
    return variable


def _written(
    name: str, column: Column, variable: h5netcdf.Variable, most: int
) -> Iterator[int]:
    """Write a column in slabs of about `most` bytes, a block at every step.

    Between two steps nothing holds on to a block, as some columns come in one.
    """
    kind, count, filled = column.dtype.newbyteorder("="), 0, 0
    boxes = slabs(column.shape, max(most // kind.itemsize, 1), variable.chunks)
    box = next(boxes, None)
    slab = np.empty(0 if box is None else _size(box), kind)
    for block in column.blocks():
        rest = _values(name, column, block)
        while rest.size:
            if box is None:
                raise _wrong(name, column, "has more values than that")
            taken = min(rest.size, _size(box) - filled)
            slab[filled : filled + taken] = rest[:taken]
            rest, count, filled = rest[taken:], count + taken, filled + taken
            if filled == _size(box):
                _store(variable, box, slab[:filled])
                box, filled = next(boxes, None), 0
        del block, rest
        if box is not None:
            yield count
    if box is not None:
        raise _wrong(name, column, f"has {count} values only")


def _store(variable: h5netcdf.Variable, box: Box, slab: np.ndarray) -> None:
    """Write a slab and read it back."""
    values = slab.view(np.int8) if slab.dtype.kind == "b" else slab
    values, bits = values.reshape(_lengths(box)), f"u{values.itemsize}"
    variable[box] = values
    if not np.array_equal(variable[box].view(bits), values.view(bits)):
        raise StorageError(DIFFERS)


def _values(name: str, column: Column, block: np.ndarray) -> np.ndarray:
    leading = len(column.shape) - block.ndim + 1
    same = leading >= 0 and block.shape[1:] == column.shape[leading:]
    if not block.ndim or not same:
        raise _wrong(name, column, f"has a block of shape {block.shape}")
    if block.dtype.newbyteorder("=") != column.dtype.newbyteorder("="):
        raise _wrong(name, column, f"has a block of type {block.dtype}")
    return block.reshape(-1)


def _wrong(name: str, column: Column, what: str) -> ValueError:
    kind = column.dtype.newbyteorder("=")
    return ValueError(
        f"column {name!r}: must be of shape {column.shape} and type {kind}; {what}."
    )


def _lengths(box: Box) -> tuple[int, ...]:
    return tuple(part.stop - part.start for part in box)


def _size(box: Box) -> int:
    return math.prod(_lengths(box))


@contextmanager
def _signals_wait() -> Iterator[Callable[[], None]]:
    """Let the handlers of signals run at the end, or when what is yielded is called."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None  # handlers run in the main thread only
        return
    numbers = signal.valid_signals()
    handlers: dict[int, Any] = {
        n: h for n in numbers if callable(h := signal.getsignal(n))
    }
    came: list[int] = []
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))

    def handle() -> None:
        while came:
            number = came.pop(0)
            handlers[number](number, None)

    try:
        yield handle
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        handle()


@contextmanager
def _first_failure(file: _File) -> Iterator[None]:
    """Raise what went wrong first, not what HDF5 made of it."""
    try:
        yield
    except Exception:
        if file.failure is None:
            raise
    if file.failure is not None:
        raise file.failure
