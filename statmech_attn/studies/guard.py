"""Code of users runs in here: whatever it raises, prints or starts, the run knows.

It may not fork, which would leave a second process that computes the same study, and it
has `LONGEST` seconds.  What it prints stays text.  Python cannot end code that does
not come back from a call of another language, nor see a fork in such a call.
"""

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from statmech_attn.reporting import visible


LONGEST = 600.0  # seconds of one call, which builds a function or traces it
LAYOUT = "\n\t"  # control characters of a printed text that stay
FORKS = ("os.fork", "os.forkpty")  # events of Python's audit


class TooLong(BaseException):
    """Code of a user took longer than `LONGEST`."""

    def __str__(self) -> str:
        return f"it took longer than {LONGEST:g} s"


class Forked(RuntimeError):
    """Code of a user tried to fork."""


class _Thread(threading.local):
    depth = 0  # calls of users' code in this thread, one inside another


_thread = _Thread()
_lock = threading.Lock()
_screens: list[tuple[str, Any, Any]] = []
_running = 0
_screened = 0  # blocks in which everything that is printed is plain text
_hooked = False


def call(
    refuse: Callable[[BaseException], Exception],
    function: Callable[..., Any],
    *arguments: Any,
) -> Any:
    """What a function of a user returns.

    Args:
        refuse: the exception that is raised for one of the code, which may be any but
            KeyboardInterrupt.
        function: of the user.
        arguments: that it is called with.

    Example:
        >>> call(lambda error: ValueError(f"ends in {type(error).__name__}"), sys.exit)
        Traceback (most recent call last):
        ValueError: ends in SystemExit
    """
    limit = nullcontext() if _thread.depth else _limited()
    try:
        with _screens_up(), _counted(), limit:
            return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise refuse(error) from error


@contextmanager
def screened() -> Iterator[None]:
    """Print plain text in here, whichever thread does, as JAX's callbacks do later.

    The attribute `bare` of the standard streams takes what stays as it is.
    """
    global _screened
    with _screens_up():
        _screened += 1
        try:
            yield
        finally:
            _screened -= 1


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `TooLong` in this thread after `LONGEST` seconds."""
    thread, lock, done = threading.get_ident(), threading.Lock(), threading.Event()

    def end() -> None:
        with lock:
            if not done.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread), ctypes.py_object(TooLong)
                )

    timer = threading.Timer(LONGEST, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            done.set()
        timer.cancel()


@contextmanager
def _counted() -> Iterator[None]:
    """Code of a user runs in this thread, and may not fork."""
    global _hooked
    if not _hooked:
        sys.addaudithook(_refuse_forks)
        _hooked = True
    _thread.depth += 1
    try:
        yield
    finally:
        _thread.depth -= 1


@contextmanager
def _screens_up() -> Iterator[None]:
    """Put a screen before each standard stream, as long as anybody needs them."""
    global _running
    with _lock:
        if not _running:
            for name in ("stdout", "stderr"):
                stream = getattr(sys, name)
                screen = _Screen(stream)
                setattr(sys, name, screen)
                _screens.append((name, stream, screen))
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running:
                for name, stream, screen in _screens:
                    if getattr(sys, name) is screen:
                        setattr(sys, name, stream)
                _screens.clear()


def _refuse_forks(event: str, _: tuple) -> None:
    if event in FORKS and _thread.depth:
        raise Forked("code of a study may not fork")


class _Screen:
    """A stream to which users' code writes plain text only."""

    def __init__(self, stream: Any):
        self.bare = stream

    def write(self, text: str) -> int:
        plain = _thread.depth or _screened
        return self.bare.write(visible(text, LAYOUT) if plain else text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bare, name)
