"""Variables in pieces: what is too large for memory is written in slabs.

A slab is a box of neighbouring elements that lie one behind another in C order, so the
slabs of an array are a cut of its flat sequence.  HDF5 chunks are such boxes too, and
slabs hold whole chunks: each chunk is compressed once.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


CHUNK = 2**19  # bytes; HDF5 keeps 2^20 of a variable in memory
SLAB = 2**25  # bytes that are read or written at once
GZIP_LEVEL = 4
COMPRESSED_FROM = 1000  # elements; below, the chunk index costs more than it saves

Box = tuple[slice, ...]


class Column(NamedTuple):
    """A stored variable whose values come in blocks of rows.

    Attributes:
        dims, shape: as stored; rows run over the leading dimensions in C order.
        blocks: reads the rows in order, in pieces that fit into memory.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    attrs: Mapping[str, Any]
    blocks: Callable[[], Iterator[np.ndarray]]

    def values(self) -> np.ndarray:
        """The whole column in memory."""
        return np.concatenate(list(self.blocks())).reshape(self.shape)


def storage_options(shape: Sequence[int], dtype: np.dtype) -> dict[str, Any]:
    """How h5py stores an array: large ones of numbers in compressed chunks."""
    if dtype.kind not in "biuf" or math.prod(shape) < COMPRESSED_FROM:
        return {}
    return {
        "chunks": _chunk_shape(shape, dtype.itemsize),
        "compression": "gzip",
        "compression_opts": GZIP_LEVEL,
        "shuffle": True,
    }


def _chunk_shape(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Pieces of about equal length."""
    box = list(_largest_box(shape, CHUNK // itemsize))
    for axis, (length, whole) in enumerate(zip(box, shape, strict=True)):
        if length < whole:
            box[axis] = math.ceil(whole / math.ceil(whole / length))
    return tuple(box)


def slabs(
    shape: Sequence[int], most: int, chunks: Sequence[int] | None = None
) -> Iterator[Box]:
    """Cut an array into boxes that follow one another in C order.

    A box has `most` elements, but holds whole `chunks` of this shape, at least one.
    """
    box = list(_largest_box(shape, most))
    cut = next((i for i, n in enumerate(box) if n < shape[i] and n > 1), None)
    if chunks is not None and cut is not None:
        box[cut] = max(box[cut] // chunks[cut], 1) * chunks[cut]
    starts = (range(0, n, step) for n, step in zip(shape, box, strict=True))
    for corner in itertools.product(*starts):
        yield tuple(
            slice(i, min(i + step, n))
            for i, step, n in zip(corner, box, shape, strict=True)
        )


def _largest_box(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """Whole last axes, a part of the one before them, one index of the others."""
    box, remaining = [], most
    for length in reversed(shape):
        box.append(max(min(length, remaining), 1))
        remaining = remaining // length if length and remaining >= length else 1
    return tuple(reversed(box))
