"""Chunks that are done, read as columns; and a store of them in memory."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from statmech_attn.scan.chunks.chunk_file import Stored
from statmech_attn.scan.chunks.work import Arrays, Chunk, COMPUTED, Work


REASONS = 16  # that are told of points without numbers
KEPT = 512 * 2**20  # bytes of columns that are read in one pass over all chunks


class Store(Protocol):
    """Where finished chunks are kept: a `folder.Folder`, or `Memory`."""

    def listing(self) -> tuple[set[int], set[int]]: ...

    def read(self, chunk: Chunk, names: Sequence[str] | None = None) -> Stored: ...

    def write(self, stored: Stored, writer: str) -> None: ...

    def blocks(self, number: int) -> Path | None: ...


class Memory:
    """Chunks of a study that is computed and used in one process."""

    def __init__(self) -> None:
        self._chunks: dict[int, Stored] = {}

    def listing(self) -> tuple[set[int], set[int]]:
        return set(self._chunks), set()

    def read(self, chunk: Chunk, names: Sequence[str] | None = None) -> Stored:
        return self._chunks[chunk.number]

    def write(self, stored: Stored, writer: str) -> None:
        self._chunks[stored.chunk.number] = stored

    def blocks(self, number: int) -> None:
        return None


class Results:
    """`work.Results` of the chunks in a store."""

    def __init__(self, store: Store, chunks: Sequence[Chunk], work: Work):
        self._store, self._chunks, self._work = store, tuple(chunks), work
        self._like: dict[str, np.ndarray] = {}
        self._kept: dict[str, np.ndarray] = {}
        self._headers: dict[int, Stored] = {}  # by chunk, without arrays

    def before(self, round: int) -> "Results":
        chunks = [chunk for chunk in self._chunks if chunk.round < round]
        return Results(self._store, chunks, self._work)

    def column(self, name: str, round: int | None = None) -> np.ndarray:
        if round is None:
            blocks = list(self.blocks(name))
            return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        chunks = [c for c in self._chunks if c.round == round]
        return np.concatenate([self._rows(c, name) for c in chunks])

    def rows(self, name: str, round: int, first: int, stop: int) -> np.ndarray:
        parts = [
            self._rows(c, name)[max(first - c.first, 0) : stop - c.first]
            for c in self._chunks
            if c.round == round and c.first < stop and c.stop > first
        ]
        return np.concatenate(parts)

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        if not self._kept:
            self._keep_small()
        if name in self._kept:
            return iter([self._kept[name]])
        return (self._rows(chunk, name) for chunk in self._chunks)

    def elapsed_and_busy(self) -> tuple[float, float]:
        """Seconds in which any worker computed a chunk, and those of all workers."""
        headers = [self._header(chunk) for chunk in self._chunks]
        spans = [(h.finished - h.seconds, h.finished) for h in headers]
        busy = sum(h.seconds for h in headers)
        return min(covered(spans), busy), busy  # places in time are rounded

    def _keep_small(self) -> None:
        """Read all small arrays in one pass over the chunks."""
        whole = self._whole()
        points, room = sum(c.size for c in self._chunks), KEPT
        for name, rows in sorted(whole.items(), key=lambda item: item[1][:1].nbytes):
            room -= rows[:1].nbytes * points
            if room < 0:
                break
            self._kept[name] = np.empty((points, *rows.shape[1:]), rows.dtype)
        first = 0
        for chunk in self._chunks:
            arrays = self._read(chunk, list(self._kept)).arrays
            for name, column in self._kept.items():
                rows = arrays.get(name)
                column[first : first + chunk.size] = (
                    self._blank(name, chunk.size) if rows is None else rows
                )
            first += chunk.size

    def like(self, name: str) -> np.ndarray:
        if name not in self._like:
            self._like = {n: rows[:0] for n, rows in self._whole().items()}
        return self._like[name]

    def names(self) -> list[str]:
        return list(self._whole())

    def failure(self) -> np.ndarray:
        return np.concatenate([self._codes(chunk) for chunk in self._chunks])

    def require_numbers(self) -> None:
        """Refuse results without a single number."""
        if self.failure().all():
            raise self._no_numbers()

    def _no_numbers(self) -> ValueError:
        return ValueError(f"no point could be computed: {self.reasons()[0]}.")

    def reasons(self) -> list[str]:
        """Why points were not computed, with how many, the most frequent first."""
        counts: dict[str, int] = {}
        for chunk in self._chunks:
            for _, reason in self._header(chunk).failures.values():
                counts[reason] = counts.get(reason, 0) + 1
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [f"{reason} ({count} points)" for reason, count in ordered[:REASONS]]

    def _read(self, chunk: Chunk, names: Sequence[str] | None) -> Stored:
        stored = self._store.read(chunk, names)
        self._headers[chunk.number] = stored._replace(arrays={})
        return stored

    def _header(self, chunk: Chunk) -> Stored:
        return self._headers.get(chunk.number) or self._read(chunk, ())

    def _rows(self, chunk: Chunk, name: str) -> np.ndarray:
        arrays = self._read(chunk, [name]).arrays
        if name in arrays:
            return arrays[name]
        return self._blank(name, chunk.size)

    def _blank(self, name: str, count: int) -> np.ndarray:
        return blank(self.like(name), count, self._work.empty.get(name, 0))

    def _codes(self, chunk: Chunk) -> np.ndarray:
        codes = np.full(chunk.size, COMPUTED, np.int8)
        for row, (code, _) in self._header(chunk).failures.items():
            codes[row] = code
        return codes

    def _whole(self) -> Arrays:
        """The arrays of the first chunk with a computed point."""
        for chunk in self._chunks:
            if arrays := self._read(chunk, None).arrays:
                return arrays
        raise self._no_numbers()


def blank(like: np.ndarray, count: int, empty: int) -> np.ndarray:
    """Rows of points that were not computed: NaN where the type has it."""
    fill = np.nan if like.dtype.kind == "f" else empty
    return np.full((count, *like.shape[1:]), fill, like.dtype)


def first_round(work: Work) -> int:
    """Points of a study, or of its first round."""
    return work.points(0, Results(Memory(), (), work)) or 0


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    total, end = 0.0, -math.inf
    for first, last in sorted(spans):
        total += max(last - max(first, end), 0.0)
        end = max(end, last)
    return total
