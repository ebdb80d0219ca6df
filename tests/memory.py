"""A limit on the memory that a worker of the tests holds while a test runs.

Resident memory is what counts: XLA reserves far more addresses than it uses, so that a
limit of virtual memory (RLIMIT_AS) would stop tests that need little.  Linux keeps the
peak of a process and forgets it when asked, so that every test answers for its own.
"""

import ctypes
import gc
import pathlib
import re

import jax
import pytest


PROCESS = pathlib.Path("/proc/self")
LIMIT = 4 * 2**30


def forget_peak() -> None:
    """Begin a new peak, from what the process holds now."""
    (PROCESS / "clear_refs").write_text("5")


def peak() -> int:
    """The most bytes that the process held since the last peak was forgotten."""
    return _bytes("VmHWM")


def held() -> int:
    """Bytes that the process holds now."""
    return _bytes("VmRSS")


def give_back() -> None:
    """Return what nobody uses to the system, programs in JAX's caches included.

    They are most of it: where they stay, every test begins with a search for garbage
    among all that hangs on them, which took three quarters of the time of the tests.
    """
    jax.clear_caches()
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)


def _bytes(name: str) -> int:
    (kilobytes,) = re.findall(rf"{name}:\s+(\d+) kB", (PROCESS / "status").read_text())
    return int(kilobytes) * 1024


class Limit:
    """A plugin of pytest: a test during which the peak was beyond the limit fails."""

    def __init__(self, limit: int = LIMIT):
        self._limit = limit
        self._kept = 0  # by what cannot be given back, the last time it was tried

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self):
        if held() > max(self._limit / 2, self._kept + self._limit / 8):
            give_back()
            self._kept = held()
        forget_peak()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self):
        result = yield
        if peak() > self._limit:
            gigabytes = f"{peak() / 2**30:.2f} GiB; at most {self._limit / 2**30:.2f}"
            pytest.fail(f"the worker held {gigabytes} are allowed", pytrace=False)
        return result
