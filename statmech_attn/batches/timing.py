"""Times of short calls, from which long runs are forecast."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from statmech_attn.batches.hardware import limited, on_cpu, workers


def seconds_of(call: Callable[[], Any], repeats: int = 2) -> float:
    """Seconds that a call takes on a machine with nothing else to do.

    Every worker makes the call at once: in a run they share caches and memory as well.
    The least of several: of the clock, and on a CPU of the processors, which do not
    count what other programs take.
    """
    least, count = float("inf"), workers()

    def alone(_: int) -> None:
        with limited(1):
            call()

    with ThreadPoolExecutor(count) as pool:
        for _ in range(repeats):
            clock, processors = time.perf_counter(), time.process_time()
            list(pool.map(alone, range(count)))
            least = min(least, time.perf_counter() - clock)
            if on_cpu():
                least = min(least, (time.process_time() - processors) / count)
    return least
