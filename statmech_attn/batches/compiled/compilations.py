"""How often XLA made programs ready in this process, whoever asked for them.

JAX reports every compilation to listeners (`jax.monitoring`), also those of functions
that it compiles on the way, and every program that it reads from its persistent cache
instead.  They are counted from the import of this module on.
"""

import threading
from typing import NamedTuple

import jax.monitoring


READY = "/jax/core/compile/backend_compile_duration"  # compiled or read, seconds
READ = "/jax/compilation_cache/cache_hits"


class Count(NamedTuple):
    """Programs made ready since the import, or between two counts."""

    compiled: int = 0
    read: int = 0  # from the persistent cache instead
    seconds: float = 0.0  # that both took

    def since(self, earlier: "Count") -> "Count":
        """What was added after an earlier count."""
        return Count(
            self.compiled - earlier.compiled,
            self.read - earlier.read,
            self.seconds - earlier.seconds,
        )

    def __str__(self) -> str:
        read = f", {self.read} from the cache" if self.read else ""
        return f"compiled {self.compiled} programs{read} in {self.seconds:.1f} s"


_lock = threading.Lock()
_ready, _read, _seconds = 0, 0, 0.0


def count() -> Count:
    """Programs that were compiled, or read from the store, so far in this process."""
    with _lock:
        return Count(_ready - _read, _read, _seconds)


def _on_duration(event: str, duration_secs: float, **_) -> None:
    global _ready, _seconds
    if event == READY:
        with _lock:
            _ready, _seconds = _ready + 1, _seconds + duration_secs


def _on_event(event: str, **_) -> None:
    global _read
    if event == READ:
        with _lock:
            _read += 1


jax.monitoring.register_event_duration_secs_listener(_on_duration)
jax.monitoring.register_event_listener(_on_event)
