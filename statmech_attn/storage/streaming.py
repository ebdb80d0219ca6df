"""Writing what does not fit into memory: variables block by block, into one file.

HDF5 crashes the process when a write fails, on a full disk or by Ctrl-C.  It therefore
writes into a `_File`, which keeps the first error to itself and accepts everything
after it, and signals wait until HDF5 is out of the way.
"""

import hashlib
import io
import json
import math
import os
import signal
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import h5netcdf
import numpy as np
import xarray as xr

from statmech_attn.storage.columns import (
    Box,
    CHUNK,
    Column,
    GZIP_LEVEL,
    SLAB,
    slabs,
    storage_options,
)
from statmech_attn.storage.schema import (
    attributes_checksum,
    little_endian,
    new_checksum,
    seal,
)


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


def write_streamed(
    handle: int,
    dataset: xr.Dataset,
    encoding: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, Column],
) -> str:
    """Write the HDF5 content of a data set and its columns, and the seal.

    Args:
        handle: of an empty file, open for reading and writing; left open.
        dataset: in the form in which it is stored, with its own checksums.

    Returns:
        The attribute `checksums` of the whole.

    Raises:
        ValueError: the blocks of a column are not what the column says.
        OSError: the disk is full.
    """
    with (
        _signals_wait() as handle_signals,
        _File(handle, "r+", closefd=False) as file,
        _first_failure(file),
    ):
        bare = dataset.drop_attrs(deep=False)
        bare.to_netcdf(file, engine="h5netcdf", encoding=encoding)
        with h5netcdf.File(file, "r+") as stored:
            most = SLAB // len(columns)
            writers = [
                _Writer(name, column, _create(stored, name, column, dataset), most)
                for name, column in columns.items()
            ]
            _fill(writers, file, handle_signals)
            sums = json.loads(dataset.attrs["checksums"])
            sums |= {writer.name: writer.checksum() for writer in writers}
            attributes = with_checksums(dataset.attrs, sums)
            stored.attrs.update(attributes)
    _append_seal(handle)
    return attributes["checksums"]


def with_checksums(
    attributes: Mapping[str, Any], sums: Mapping[str, str]
) -> dict[str, Any]:
    """File attributes with the checksums of variables and of the attributes."""
    sealed = {**attributes, "checksums": json.dumps(sums, sort_keys=True)}
    return sealed | {"attributes_sha256": attributes_checksum(sealed)}


def needed(columns: Mapping[str, Column]) -> int:
    """About how many bytes columns take, by how their first blocks compress."""
    return sum(_needed(column) for column in columns.values())


def _needed(column: Column) -> int:
    size = math.prod(column.shape) * column.dtype.itemsize
    if not storage_options(column.shape, column.dtype):
        return size
    block = next(column.blocks(), None)
    return size if block is None else int(size * _compression(block))


def _compression(block: np.ndarray) -> float:
    """Share of its size that a block takes, after HDF5's byte shuffle."""
    sample = np.ascontiguousarray(block).reshape(-1)[: CHUNK // block.itemsize]
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
    variable.attrs.update(column.attrs)
    if boolean:
        variable.attrs["dtype"] = "bool"
    coordinates = [
        str(n)
        for n, x in dataset.coords.items()
        if n not in dataset.dims and set(x.dims) <= set(column.dims)
    ]
    if coordinates:
        variable.attrs["coordinates"] = " ".join(sorted(coordinates))
    return variable


def _fill(
    writers: Sequence["_Writer"], file: _File, handle_signals: Callable[[], None]
) -> None:
    """Write all columns side by side: their blocks often come from the same file.

    One block is in memory at a time, as some columns come in one.
    """
    unfinished = list(writers)
    while unfinished:
        for writer in tuple(unfinished):
            if not writer.take():
                unfinished.remove(writer)
            if file.failure is not None:
                raise file.failure
            handle_signals()


class _Writer:
    """A column on its way into the file, in slabs of about `most` bytes."""

    def __init__(
        self, name: str, column: Column, variable: h5netcdf.Variable, most: int
    ):
        self.name, self.column, self._variable = name, column, variable
        self._blocks = _on_demand(column)
        self._type = column.dtype.newbyteorder("=")
        self._digest = new_checksum(
            name, column.dims, column.shape, column.dtype.name, column.attrs
        )
        elements = max(most // column.dtype.itemsize, 1)
        self._boxes = slabs(column.shape, elements, variable.chunks)
        self._written = 0
        self._begin()

    def take(self) -> bool:
        """Write the next block; False when there is none after it."""
        block = next(self._blocks, None)
        while block is not None:
            self._add(block)
            if self._box is not None:
                return True
            block = next(self._blocks, None)  # after the last, nothing holds on to it
        return False

    def _add(self, block: np.ndarray) -> None:
        flat = self._rows(block).reshape(-1)
        while flat.size:
            if self._box is None:
                raise self._wrong("has more values than that")
            end = min(self._filled + flat.size, self._slab.size)
            taken = end - self._filled
            self._slab[self._filled : end] = flat[:taken]
            self._filled, flat = end, flat[taken:]
            if end == self._slab.size:
                self._flush()

    def checksum(self) -> str:
        """Of all values, when all have come."""
        if self._box is not None:
            raise self._wrong(f"has {self._written + self._filled} values only")
        return self._digest.hexdigest()

    def _begin(self) -> None:
        self._box, self._filled = next(self._boxes, None), 0
        if self._box is not None:
            self._slab = np.empty(math.prod(_lengths(self._box)), self._type)

    def _flush(self) -> None:
        assert self._box is not None
        self._digest.update(little_endian(self._slab))
        values = self._slab.view(np.int8) if self._type.kind == "b" else self._slab
        self._variable[self._box] = values.reshape(_lengths(self._box))
        self._written += self._slab.size
        self._begin()

    def _rows(self, block: np.ndarray) -> np.ndarray:
        leading = len(self.column.shape) - block.ndim + 1
        same = leading >= 0 and block.shape[1:] == self.column.shape[leading:]
        if not block.ndim or not same:
            raise self._wrong(f"has a block of shape {block.shape}")
        if block.dtype.newbyteorder("=") != self._type:
            raise self._wrong(f"has a block of type {block.dtype}")
        return block

    def _wrong(self, what: str) -> ValueError:
        shape, kind = self.column.shape, self._type
        return ValueError(
            f"column {self.name!r}: must be of shape {shape} and type {kind}; {what}."
        )


def _on_demand(column: Column) -> Iterator[np.ndarray]:
    yield from column.blocks()


def _lengths(box: Box) -> tuple[int, ...]:
    return tuple(part.stop - part.start for part in box)


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


def _append_seal(handle: int) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    digest = hashlib.sha256()
    while part := os.read(handle, 2**20):
        digest.update(part)
    with open(handle, "ab", closefd=False) as file:
        file.write(seal(digest.hexdigest()))
