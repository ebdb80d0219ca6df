"""A study of no physics for tests of engines: quick, slow, raising or deadly points.

Imported by worker processes, hence a module of its own.
"""

import os
import time
from pathlib import Path

import numpy as np

from statmech_attn.scan.work import Assembled, Chunk


class Toy:
    """Two rounds; a value of the second follows from one of the first.

    Args:
        seconds: that a chunk takes.
        raising, deadly: points that cannot be computed, and that end their process.
        seen: folder where each chunk leaves the process that began it.
    """

    title, batch, unit, keeps_blocks, empty = "toy", 4, 2, False, {}

    def __init__(
        self, points: int, seconds: float = 0.0, raising=(), deadly=(), seen=None
    ):
        self._points, self._seconds = points, seconds
        self._raising, self._deadly = set(raising), set(deadly)
        self._seen = seen and Path(seen)

    @property
    def total(self) -> int:
        return 2 * self._points

    def points(self, round, earlier):
        return self._points if round < 2 else None

    def payload(self, chunk: Chunk, earlier):
        if chunk.round == 0:
            return np.zeros(chunk.count)
        return earlier.column("x", 0)[chunk.first : chunk.stop]

    def compute(self, chunk: Chunk, payload, tick, folder):
        if self._seen:
            name = f"{chunk.number}-{os.getpid()}-{time.monotonic_ns()}"
            (self._seen / name).touch()
        time.sleep(self._seconds)
        numbers = np.arange(chunk.first, chunk.stop)
        if self._deadly.intersection(numbers.tolist()):
            os._exit(1)
        if found := self._raising.intersection(numbers.tolist()):
            raise ValueError(f"no value at {min(found)}")
        return {"x": np.sin(numbers + payload), "n": numbers}

    def not_finite(self, arrays):
        return ~np.isfinite(arrays["x"])

    def pilot(self):
        return None

    def assemble(self, results) -> Assembled:
        raise NotImplementedError
