"""Code of users runs in here: whatever it raises, prints or starts, the run knows.

It may not fork, which would leave a second process that computes the same study, and it
has `LONGEST` seconds.  What it prints stays text.  Threads that it starts are held to
the same, but for the time, which ends with the command.  Python cannot end code that
does not come back from a call of another language, nor see a fork in such a call.
"""

import concurrent.futures.thread
import ctypes
import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from statmech_attn.reporting import visible


LONGEST = 600.0  # seconds of one call, which builds a function or traces it
LAYOUT = "\n\t"  # control characters of a printed text that stay
GRACE = 10.0  # seconds that threads have at the end of a command
FORKS = ("os.fork", "os.forkpty")  # events of Python's audit


class TooLong(BaseException):
    """Code of a user took longer than `LONGEST`."""

    def __str__(self) -> str:
        return f"it took longer than {LONGEST:g} s"


class StillRunning(BaseException):
    """A thread of a user's code ran when the command had ended."""

    def __str__(self) -> str:
        return f"it still ran {GRACE:g} s after the end of the command"


class Forked(RuntimeError):
    """Code of a user tried to fork."""


class _Call:
    """A call of users' code, and the errors that end threads which it starts."""

    def __init__(self, refuse: Callable[[BaseException], Exception]):
        self.refuse = refuse
        self._errors: list[BaseException] = []
        self._returned = False

    def returns(self) -> None:
        """Raise what has ended a thread; later errors are printed."""
        with _lock:
            self._returned = True
        for error in self._errors:
            raise self.refuse(error) from error

    def take(self, error: BaseException) -> None:
        """An error has ended a thread."""
        with _lock:
            if not self._returned:
                self._errors.append(error)
                return
        sys.stderr.write(f"{visible(str(self.refuse(error)))}\n")


class _Thread(threading.local):
    depth = 0  # calls of users' code in this thread, one inside another
    call: _Call | None = None  # the innermost


_thread = _Thread()
_started: weakref.WeakSet[threading.Thread] = weakref.WeakSet()  # by users' code
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
    this = _Call(refuse)
    try:
        with limit, _screens_up(), _counted(this):
            result = function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise refuse(error) from error
    this.returns()
    return result


@contextmanager
def screened() -> Iterator[None]:
    """Print plain text in here, whichever thread does, as JAX's callbacks do later.

    The attribute `bare` of the standard streams takes what stays as it is.  Threads of
    users' code end with the block, but for daemons, which end with the process.
    """
    global _screened
    with _screens_up():
        _screened += 1
        try:
            yield
            _end_threads()
        finally:
            _screened -= 1


def _end_threads() -> None:
    """Wait for threads of users' code, which Python would do without an end.

    Workers of pools idle until Python itself ends them.
    """
    pools = concurrent.futures.thread._threads_queues
    running = [x for x in _started if not x.daemon and x not in pools]
    last = time.monotonic() + GRACE
    for thread in running:
        thread.join(max(0.0, last - time.monotonic()))
    for thread in running:
        if thread.is_alive():
            _raise_in(thread.ident, StillRunning)


def _raise_in(thread: int | None, error: type[BaseException]) -> None:
    """Raise an error in a thread, once it is back in Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread or 0), ctypes.py_object(error)
    )


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `TooLong` in this thread after `LONGEST` seconds."""
    thread, lock, done = threading.get_ident(), threading.Lock(), threading.Event()

    def end() -> None:
        with lock:
            if not done.is_set():
                _raise_in(thread, TooLong)

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
def _counted(call: _Call) -> Iterator[None]:
    """Code of a user runs in this thread, and may not fork."""
    global _hooked
    if not _hooked:
        sys.addaudithook(_refuse_forks)
        threading.Thread.start = _watching(threading.Thread.start)
        _hooked = True
    outer, _thread.call = _thread.call, call
    _thread.depth += 1
    try:
        yield
    finally:
        _thread.depth -= 1
        _thread.call = outer


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


def _watching(start: Callable) -> Callable:
    """`Thread.start`, of which Python 3.11 audits no event."""

    @functools.wraps(start)
    def watching(thread: threading.Thread) -> None:
        if _thread.call is not None:
            _watch(thread, _thread.call)
        start(thread)

    return watching


def _watch(thread: threading.Thread, call: _Call) -> None:
    """Hold a thread that is being started to what its starter is held to."""
    run = thread.run

    def watched() -> None:
        try:
            with _counted(call):
                run()
        except BaseException as error:  # Python passes over SystemExit without a word
            call.take(error)

    thread.run = watched
    _started.add(thread)


class _Screen:
    """A stream to which users' code writes plain text only."""

    def __init__(self, stream: Any):
        self.bare = stream

    def write(self, text: str) -> int:
        plain = _thread.depth or _screened
        return self.bare.write(visible(text, LAYOUT) if plain else text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bare, name)
