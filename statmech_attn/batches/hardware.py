"""Where batches are computed: the devices of this process, and its threads.

On a CPU one thread per core computes a batch each (XLA runs compiled calls from
different threads side by side); an accelerator takes one batch at a time.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax

from statmech_attn.batches.lapack import one_at_a_time
from statmech_attn.options import require_least


one_at_a_time()
_limit = ContextVar("limit", default=0)  # of workers in a thread; 0: none


def devices() -> tuple[Any, ...]:
    """What the lanes of a batch are on: all local devices, or the one chosen.

    `jax.default_device` chooses a device, or all of a platform by its name.
    """
    chosen = getattr(jax.config, "jax_default_device", None)
    if chosen is None or isinstance(chosen, str):
        return tuple(jax.local_devices(backend=chosen))
    return (chosen,)


def on_cpu() -> bool:
    """Whether batches are computed by the threads of one CPU."""
    available = devices()
    return available[0].platform == "cpu" and len(available) == 1


def has_cuda(device: Any) -> bool:
    """Whether a device of JAX is an NVIDIA GPU."""
    return "cuda" in device.client.platform_version.lower()


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
    require_least(1, count=count)
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)


def run_all(
    job: Callable[[Any, threading.Event], Any], items: Sequence[Any]
) -> Iterator[tuple[Any, Any]]:
    """Run `job(item, stop)` for every item on the worker threads; yield as they finish.

    When the consumer stops early (an error, Ctrl-C), `stop` is set, so that running
    jobs can leave at their next step, and the rest are dropped.  With one worker the
    jobs run in this thread, each when its result is asked for.
    """
    stop = threading.Event()
    if workers() == 1:
        yield from ((item, job(item, stop)) for item in items)
        return
    pool = ThreadPoolExecutor(workers())
    pending: dict[Future, Any] = {pool.submit(job, item, stop): item for item in items}
    try:
        while pending:
            finished, _ = wait(pending, return_when=FIRST_COMPLETED, timeout=0.5)
            for future in finished:
                yield pending.pop(future), future.result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
