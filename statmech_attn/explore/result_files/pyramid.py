"""Counts of samples in any window of a bifurcation diagram, fast and exact.

The samples of a scan are kept as 32-bit numbers on several levels. Level 0 has a row
for every point; level l has a row for 4^l neighbouring points, sorted, so that a column
of a picture is counted by looking up the edges of its cells. Levels of large scans are
kept in a file beside the scan, `SCAN.h5.pyramid`, which can be removed at any time. A
seal over its content, which only the user who made it can set, tells whether it may be
believed: a file that was cut, changed, or made by somebody else is made anew.

    samples  (rows, samples of a row)   float32, NaN where there is none
"""

import hmac
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np

from statmech_attn import kept_files
from statmech_attn.explore.result_files import private_files


SHIFT = 2
FACTOR = 1 << SHIFT  # rows of a level that are one of the next
IN_MEMORY = 2**20  # samples of scans that have no levels
DIRECT = 2**19  # samples that are counted one by one
COLUMNS = 1024  # of a picture that a level is made for
AT_ONCE = 2**25  # samples that are sorted at once
SCHEMA = "statmech_attn pyramid 3"
Read = Callable[[int, int], np.ndarray]  # rows of points, (points, samples)


class Pyramid:
    """Samples of a scan in the order of its parameter.

    Attributes:
        levels: arrays (rows, samples of a row), the points first.
        low, high: range of the samples; NaN where there are none.
    """

    def __init__(self, levels: list[np.ndarray]):
        self.levels = levels
        self.low, self.high = _range(levels[0])

    @property
    def points(self) -> int:
        """Number of points."""
        return len(self.levels[0])

    def counts(self, first: int, stop: int, width: int, edges: np.ndarray):
        """Samples of columns of `width` points in cells, (columns, cells).

        Points are first to stop - 1, where `first` is a multiple of the width, a power
        of two; a cell holds its lower edge.
        """
        edges = np.asarray(edges, np.float32)
        samples = self.levels[0]
        columns = -(-(stop - first) // width)
        if (stop - first) * samples.shape[1] <= DIRECT or len(self.levels) == 1:
            return _binned(samples[first:stop], width, columns, edges)
        level = min(len(self.levels) - 1, (width.bit_length() - 1) // SHIFT)
        block = FACTOR**level
        if not level:
            return _binned(samples[first:stop], width, columns, edges)
        rows = self.levels[level][first // block : -(-stop // block)]
        below = np.zeros((columns * (width // block), len(edges)), np.uint32)
        for number, row in enumerate(rows):
            below[number] = row.searchsorted(edges)
        below = below.reshape(columns, width // block, len(edges)).sum(1)
        return np.diff(below).astype(np.uint32)


def width_for(first: int, stop: int, columns: int) -> tuple[int, int]:
    """Points of a column, a power of two, and the first point of the first column."""
    least = -(-(stop - first) // max(columns, 1))
    width = 1 << (max(least, 1) - 1).bit_length()
    return width, first - first % width


def pyramid(
    points: int,
    samples: int,
    read: Read,
    place: Path,
    source: str,
    tell: Callable[[float], None] = lambda share: None,
) -> Pyramid:
    """The pyramid of a scan: in memory where it is small, else from a file.

    `read` gives rows of points in the order of the parameter; `source` identifies the
    scan: a file `place` of another one, or one without the seal of this user, is
    written anew.
    """
    if points * samples <= IN_MEMORY:
        return Pyramid([np.asarray(read(0, points), np.float32)])
    levels = _sealed(place, points, samples, source)
    if levels is None:
        place = _write(points, samples, read, place, source, tell)
        levels = _levels(place, points, samples)
    return Pyramid(levels)


def _sealed(place: Path, points: int, samples: int, source: str):
    """The levels of a file that this user has made of this scan; None of any other."""
    try:
        with h5py.File(place, "r") as file:
            if file.attrs["schema"] != SCHEMA:
                return None
            seal = str(file.attrs["seal"])
        levels = _levels(place, points, samples)
    except (OSError, KeyError, ValueError, TypeError):
        return None
    content = [_digest() for _ in levels]
    for level, digest in zip(levels, content, strict=True):
        rows = max(AT_ONCE // level.shape[1], 1)
        for first in range(0, len(level), rows):
            digest.update(level[first : first + rows].tobytes())
    return levels if hmac.compare_digest(seal, _seal(source, content)) else None


def _digest() -> hmac.HMAC:
    return hmac.new(kept_files.secret(), digestmod="sha256")


def _seal(source: str, content: list[hmac.HMAC]) -> str:
    """Digest of the scan and of the content of every level."""
    checksum = _digest()
    checksum.update(source.encode())
    for digest in content:
        checksum.update(digest.digest())
    return checksum.hexdigest()


def _levels(place: Path, points: int, samples: int) -> list[np.ndarray]:
    """The levels of a file, mapped into memory."""
    with h5py.File(place, "r") as file:
        offsets = []
        for level, shape in enumerate(_shapes(points, samples)):
            stored = file[f"level_{level}"]
            if not isinstance(stored, h5py.Dataset):
                raise ValueError(f"{place}: level {level} is no array.")
            offset = stored.id.get_offset()  # none of an array that is not in one piece
            if not offset or stored.shape != shape or stored.dtype != np.dtype("<f4"):
                raise ValueError(f"{place}: level {level} is not of this scan.")
            offsets.append(offset)
    return [
        np.memmap(place, np.float32, "r", offset, shape)
        for offset, shape in zip(offsets, _shapes(points, samples), strict=True)
    ]


def _write(points: int, samples: int, read: Read, place: Path, source: str, tell):
    """Write the pyramid beside the scan, or until this process ends elsewhere."""
    folder = place.parent
    if not os.access(folder, os.W_OK) or (place.exists() and not _is_pyramid(place)):
        folder = private_files.temporary_folder()
    handle, part = tempfile.mkstemp(".part", f".{place.name}.", folder)
    os.close(handle)
    try:
        _fill(Path(part), points, samples, read, source, tell)
        target = Path(folder, place.name)
        os.replace(part, target)
        return target
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def _is_pyramid(place: Path) -> bool:
    try:
        with h5py.File(place, "r") as file:
            return str(file.attrs.get("schema", "")).startswith("statmech_attn pyramid")
    except OSError:
        return False


def _fill(part: Path, points: int, samples: int, read: Read, source: str, tell) -> None:
    with h5py.File(part, "w", libver="latest") as file:
        sets = [
            file.create_dataset(f"level_{level}", shape, np.float32)
            for level, shape in enumerate(_shapes(points, samples))
        ]
        content = [_digest() for _ in sets]
        largest = FACTOR ** (len(sets) - 1)
        step = max(AT_ONCE // (samples * largest), 1) * largest
        for first in range(0, points, step):
            rows = np.asarray(read(first, min(first + step, points)), np.float32)
            for level, target in enumerate(sets):
                block = FACTOR**level
                count = -(-len(rows) // block)
                padded = np.full((count * block, samples), np.nan, np.float32)
                padded[: len(rows)] = rows
                sorted_rows = padded.reshape(count, -1)
                if level:
                    sorted_rows.sort(axis=1)
                target[first // block : first // block + count] = sorted_rows
                content[level].update(sorted_rows.tobytes())
            tell(min(first + step, points) / points)
        file.attrs.update(schema=SCHEMA, seal=_seal(source, content))


def _shapes(points: int, samples: int) -> Iterator[tuple[int, int]]:
    """Rows of every level, and samples of a row."""
    block = 1
    while block == 1 or points // block >= COLUMNS // 2:
        yield -(-points // block), samples * block
        block *= FACTOR


def _binned(samples: np.ndarray, width: int, columns: int, edges: np.ndarray):
    """Samples counted in cells, one by one."""
    cells = len(edges) - 1
    inside = (samples >= edges[0]) & (samples < edges[-1])
    points, _ = np.nonzero(inside)
    values = samples[inside]
    scale = np.float32(cells / (edges[-1] - edges[0]))
    cell = ((values - edges[0]) * scale).astype(np.int32).clip(0, cells - 1)
    cell -= values < edges[cell]
    cell += values >= edges[cell + 1]
    flat = np.bincount(points // width * cells + cell, minlength=columns * cells)
    return flat.reshape(columns, cells).astype(np.uint32)


def _range(samples: np.ndarray) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    step = max(AT_ONCE // max(samples.shape[1], 1), 1)
    for first in range(0, len(samples), step):
        part = samples[first : first + step]
        part = part[np.isfinite(part)]
        if part.size:
            low, high = min(low, part.min()), max(high, part.max())
    if low > high:
        return float("nan"), float("nan")
    return float(low), float(high)
