"""Times of short calls, from which long runs are forecast."""

import time
from collections.abc import Callable
from typing import Any

from statmech_attn.batches.lanes import on_cpu


def seconds_of(call: Callable[[], Any], repeats: int = 2) -> float:
    """Seconds that a call takes on a machine with nothing else to do.

    The least of several: of the clock, and on a CPU of the processors, which do not
    count what other programs take.

    Args:
        call: function without arguments.
        repeats: number of calls.

    Example:
        >>> import time
        >>> seconds_of(lambda: time.sleep(0.01)) <= 0.1
        True
    """
    least = float("inf")
    for _ in range(repeats):
        clock, processors = time.perf_counter(), time.process_time()
        call()
        least = min(least, time.perf_counter() - clock)
        if on_cpu():
            least = min(least, time.process_time() - processors)
    return least
