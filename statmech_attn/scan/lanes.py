"""Many points in fixed-size batches on the devices of this process.

A batch has a fixed number of lanes, the last one padded, so that everything compiles
once.  The lanes are the trailing axis of every array.  On a CPU a batch is small
enough to stay in its cache and one thread per core computes a batch each (XLA runs
compiled calls from different threads side by side); a GPU takes one wide batch.
The numbers of a point do not depend on its lane or on its neighbours.  Nor do they on
the lanes of its batch, so that few points may go into a narrower one, where no sum runs
over the coordinates of a point by a matrix product or a reduction: XLA may order its
terms by the shape of the batch.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np


# An odd multiple of 8 doubles: whole AVX-512 vectors, and rows that do not all fall
# into the same cache sets, as rows of 128 would.
CPU_LANES = 136
ACCELERATOR_LANES = 8192
NARROW = (8, 32)  # widths of batches for few points
OVERHEAD = 5  # time that a batch of any width takes, in lanes
CPU_OPTIONS = {
    "xla_cpu_prefer_vector_width": 512,
    "xla_cpu_multi_thread_eigen": False,
}


def on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def lanes_for(n_points: int) -> int:
    """Lanes of a batch: a multiple of 8, no wider than what keeps every worker busy."""
    widest = CPU_LANES if on_cpu() else ACCELERATOR_LANES
    share = -(-n_points // workers())
    return min(widest, -(-share // 8) * 8)


def workers() -> int:
    """Batches computed at once: the usable cores of a CPU, one on an accelerator."""
    if not on_cpu():
        return 1
    return max(1, min(usable_cores(), _limit.get() or os.cpu_count() or 1))


def usable_cores() -> int:
    """Cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    return len(usable(0))


@contextmanager
def limited(count: int) -> Iterator[None]:
    """Use at most so many workers in this thread."""
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)


_limit = ContextVar("limit", default=0)


class Compiled:
    """A function compiled once for fixed shapes, with the options of this device."""

    count = 0  # compilations in this process, for the log and for tests

    def __init__(self, function: Callable, *examples: Any):
        options = CPU_OPTIONS if on_cpu() else {}
        clock = time.perf_counter()
        jitted = jax.jit(function, compiler_options=options)
        self._call = jitted.lower(*examples).compile()
        self.seconds = time.perf_counter() - clock
        Compiled.count += 1

    @property
    def bytes(self) -> int:
        """Memory of one call: arguments, results and what lies between."""
        use = self._call.memory_analysis()
        parts = ("argument", "output", "temp")
        return sum(getattr(use, f"{part}_size_in_bytes", 0) for part in parts)

    def __call__(self, *args: Any) -> Any:
        return jax.block_until_ready(self._call(*args))


class Stage:
    """A function of batches: compiled for full ones, and for narrow ones where it pays.

    Few points in a full batch cost as much as a full batch of them, and a wider
    program has the same numbers: only time decides between the widths.

    Args:
        examples: the arguments for a batch of a given number of lanes.
        lanes: width of a full batch.
    """

    def __init__(
        self, function: Callable, examples: Callable[[int], tuple], lanes: int
    ):
        self._function, self._examples = function, examples
        self._lanes = lanes
        self._made = {lanes: Compiled(function, *examples(lanes))}
        self._rate = 0.0  # seconds per unit of work and lane; 0: not measured
        self._wasted = 0.0  # seconds that narrower batches would have saved so far

    @property
    def bytes(self) -> int:
        """Memory of one full batch."""
        return self._made[self._lanes].bytes

    def __call__(self, lanes: int, *args: Any) -> Any:
        return self._made[lanes](*args)

    def width(self, n_points: int, work: float) -> int:
        """Lanes of the batches for so many points, `work` units for each of them.

        A narrow width is compiled once batches of it would have saved, in all calls,
        what that takes.
        """
        time_of = lambda lanes: _rounds(n_points, lanes) * (lanes + OVERHEAD)
        narrow = [lanes for lanes in NARROW if lanes < self._lanes]
        best = min([*narrow, self._lanes], key=time_of)
        if best not in self._made:
            saved = time_of(min(self._made, key=time_of)) - time_of(best)
            self._wasted += saved * work * self._rate
            if self._wasted > self._made[self._lanes].seconds:
                self._made[best] = Compiled(self._function, *self._examples(best))
                self._wasted = 0.0
        return min(self._made, key=time_of)

    def measured(self, n_points: int, lanes: int, work: float, seconds: float) -> None:
        """Learn from a run of all batches of these points."""
        if work > 0:
            lanes_done = _rounds(n_points, lanes) * (lanes + OVERHEAD)
            self._rate = seconds / (work * lanes_done)


def _rounds(n_points: int, lanes: int) -> int:
    """How often every worker takes a batch."""
    return -(-n_points // (lanes * workers()))


def batches(indices: np.ndarray, lanes: int) -> Iterator[tuple[np.ndarray, int]]:
    """Cut indices into batches of `lanes`, padding the last one with its last index.

    Yields the padded indices and how many of them are real.
    """
    for first in range(0, len(indices), lanes):
        part = indices[first : first + lanes]
        yield np.pad(part, (0, lanes - len(part)), mode="edge"), len(part)


def run_all(
    job: Callable[[Any, threading.Event], Any], items: Sequence[Any]
) -> Iterator[tuple[Any, Any]]:
    """Run `job(item, stop)` for every item on the worker threads; yield as they finish.

    When the consumer stops early (an error, Ctrl-C), `stop` is set, so that running
    jobs can leave at their next step, and the rest are dropped.
    """
    stop = threading.Event()
    pool = ThreadPoolExecutor(workers())
    pending: dict[Future, Any] = {pool.submit(job, item, stop): item for item in items}
    try:
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED, timeout=0.5)
            for future in done:
                yield pending.pop(future), future.result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
