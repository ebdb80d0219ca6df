"""A chunk with every point that can be computed, whatever the others do."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from statmech_attn.reporting import CALLBACK, line_of
from statmech_attn.scan.chunks.results import blank
from statmech_attn.scan.chunks.work import Arrays, Chunk, NOT_FINITE, RAISED, Tick, Work


ERRORS = (ValueError, ArithmeticError, RuntimeError)  # see `Work.rows`


class Computed(NamedTuple):
    """Rows of a chunk, why some have no numbers, and the seconds it took."""

    arrays: Arrays
    failures: dict[int, tuple[int, str]]
    seconds: float


def compute(
    work: Work,
    chunk: Chunk,
    payload: Callable[[Chunk], Any],
    tick: Tick,
    folder: Path | None,
) -> Computed:
    """Compute a chunk; points that raise are marked and leave the others as they are.

    `payload` is also called for parts of the chunk.
    """
    clock = time.perf_counter()
    several = chunk.size > work.unit
    result = together(work, chunk, payload, tick, folder) if several else None
    if result is None:
        result = one_by_one(work, chunk, payload, tick, folder)
    return result._replace(seconds=time.perf_counter() - clock)


def together(
    work: Work, chunk: Chunk, payload: Callable[[Chunk], Any], tick: Tick, folder
) -> Computed | None:
    """Compute all points of a chunk at once; None if that raises."""
    clock = time.perf_counter()
    try:
        arrays = work.rows(chunk, payload(chunk), tick, folder)
    except ERRORS as error:
        _not_of_the_machine(error)
        return None
    return _marked(work, arrays, {}, clock)


def one_by_one(
    work: Work, chunk: Chunk, payload: Callable[[Chunk], Any], tick: Tick, folder
) -> Computed:
    """Compute the `units` of a chunk, and mark those that raise."""
    clock = time.perf_counter()
    parts: list[Arrays | None] = []
    failures: dict[int, tuple[int, str]] = {}
    cut = units(chunk, work.unit)
    for unit in cut:
        try:
            parts.append(work.rows(unit, payload(unit), tick, folder))
        except ERRORS as error:
            _not_of_the_machine(error)
            if work.total == 1:
                raise  # the setting of the whole study
            parts.append(None)
            reason = line_of(error) or type(error).__name__
            for row in range(unit.first - chunk.first, unit.stop - chunk.first):
                failures[row] = (RAISED, reason)
    return _marked(work, _joined(parts, cut, work), failures, clock)


def _not_of_the_machine(error: Exception) -> None:
    """Raise what says nothing of the points: no memory, a device that failed."""
    failed = isinstance(error, jax.errors.JaxRuntimeError)
    if failed and CALLBACK not in str(error):
        raise error


def units(chunk: Chunk, size: int) -> list[Chunk]:
    """The parts of a chunk that are computed on their own, see `Work.unit`."""
    return [
        chunk._replace(first=low, stop=min(low + size, chunk.stop))
        for low in range(chunk.first, chunk.stop, size)
    ]


def _joined(parts: Sequence[Arrays | None], units: Sequence[Chunk], work: Work):
    """Rows of the parts, blank where one is missing; nothing if all are."""
    whole = next((part for part in parts if part is not None), {})

    def rows(name: str, part: Arrays | None, unit: Chunk) -> np.ndarray:
        if part is not None:
            return part[name]
        return blank(whole[name], unit.size, work.empty.get(name, 0))

    pairs = list(zip(parts, units, strict=True))
    return {
        name: np.concatenate([rows(name, *pair) for pair in pairs]) for name in whole
    }


def _marked(work: Work, arrays: Arrays, failures, clock: float) -> Computed:
    """A chunk with rows that lack numbers marked as failures."""
    if arrays:
        lost = getattr(work, "lost", "not finite")
        for row in np.flatnonzero(work.not_finite(arrays)).tolist():
            failures.setdefault(row, (NOT_FINITE, lost))
    return Computed(arrays, failures, time.perf_counter() - clock)
