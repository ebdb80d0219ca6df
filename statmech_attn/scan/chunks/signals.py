"""Ctrl-C and SIGTERM: end a command, or finish chunks and say how to go on.

A thread of its own hears the signals.  Python would tell the main thread, which hears
of them only when it is back from compiled code, or from a sleep that it was about to
begin; and what it raises there is dropped inside a destructor or a callback of the
collector.
"""

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from statmech_attn.reporting import Reporter


TEMPORARY_FAILURE = 75  # EX_TEMPFAIL: not finished, the same command goes on
INTERRUPTED = 130
NUMBERS = (signal.SIGINT, signal.SIGTERM)
AGAIN = 0.2  # seconds until what was dropped is raised once more
SECONDS_TO_END = 2.0  # seconds that a command has left after a second signal
DROPPING = ("__del__", "remove", "_xla_gc_callback")  # functions that lose exceptions
SHOW_CURSOR = b"\x1b[?25h"  # progress bars hide it


class Stop:
    """A request to stop, by a user or a scheduler."""

    def __init__(self) -> None:
        self.finish = threading.Event()
        self.drop = threading.Event()


class Unfinished(Exception):
    """A run was stopped; what was finished is kept and the same command goes on."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code


class Signals:
    """What came in: the first signal finishes the current chunks, the second leaves."""

    def __init__(self, stop: Stop, report: Reporter):
        self._stop, self._report = stop, report
        self.first: int | None = None

    @property
    def exit_code(self) -> int:
        return exit_code(self.first)

    def __call__(self, number: int) -> None:
        if self.first is not None:
            # Threads inside compiled code cannot be stopped; what is on disk is whole.
            os.write(2, SHOW_CURSOR if os.isatty(2) else b"")
            os.write(2, b"\nstatmech-attn: stopped; finished chunks are kept.\n")
            os._exit(self.exit_code)
        self.first = number
        self._stop.finish.set()
        threading.Thread(target=self._tell, daemon=True).start()

    def _tell(self) -> None:
        self._report.note(
            "stopping after the chunks that are being computed, or the merge; "
            "press Ctrl-C again to abort now"
        )


def exit_code(number: int | None = None) -> int:
    """What a process ends with that a signal has stopped."""
    number = number or next(iter(_came), None)
    return TEMPORARY_FAILURE if number == signal.SIGTERM else INTERRUPTED


def interrupted() -> bool:
    """Whether a signal ends this command, whatever its exceptions have become."""
    return bool(_came)


@contextmanager
def ending() -> Iterator[None]:
    """Let a signal end what the main thread does in here, however often it is dropped.

    A second signal leaves the process, should the first not have done it by then.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:  # as in here already
        yield
        return
    ended = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        _came.append(number)
        dropped = frame is not None and frame.f_code.co_name in DROPPING
        if not (dropped or ended.is_set() or _unwinding(sys.exception())):
            raise KeyboardInterrupt

    with _hearing(interrupt, lambda hears: _insist(hears, ended)):
        try:
            yield
        except (KeyboardInterrupt, SystemExit) as error:
            if _came and getattr(error, "code", 1):  # of click, which has its own codes
                raise SystemExit(exit_code()) from None
            raise
        finally:
            ended.set()
    _came.clear()


@contextmanager
def handled(stop: Stop, report: Reporter) -> Iterator[Signals]:
    """Handle signals while in the main thread; elsewhere leave them alone."""
    signals = Signals(stop, report)
    if _came:
        raise KeyboardInterrupt
    # Python writes the number of a signal only where it has a handler.
    with _hearing(lambda *_: None, lambda hears: _listen(hears, signals)):
        yield signals


@contextmanager
def _hearing(
    handler: Callable[[int, FrameType | None], None],
    listen: Callable[[socket.socket], None],
) -> Iterator[None]:
    """A handler in the main thread, and a thread that hears numbers of signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hears, says = socket.socketpair()
    says.setblocking(False)
    listener = threading.Thread(target=listen, args=(hears,), daemon=True)
    listener.start()
    wakes = signal.set_wakeup_fd(says.fileno())
    before = {number: signal.signal(number, handler) for number in NUMBERS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
        signal.set_wakeup_fd(wakes)
        says.close()
        listener.join()
        hears.close()


def _listen(hears: socket.socket, signals: Signals) -> None:
    while number := hears.recv(1):
        if number[0] in NUMBERS:
            signals(number[0])


def _insist(hears: socket.socket, ended: threading.Event) -> None:
    """Repeat the first signal in the main thread until a second one, or the end."""
    first, main = 0, threading.main_thread().ident or 0
    while number := hears.recv(1):
        if number[0] not in NUMBERS:
            continue
        if first and not ended.wait(SECONDS_TO_END):
            os.write(2, SHOW_CURSOR if os.isatty(2) else b"")
            os._exit(exit_code(first))
        first = first or number[0]
        while not select.select([hears], [], [], AGAIN)[0]:
            signal.pthread_kill(main, first)
            if select.select([hears], [], [], SECONDS_TO_END)[0]:
                hears.recv(1)  # this one


def _unwinding(error: BaseException | None) -> bool:
    """Whether an interruption is already on its way."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


_came: list[int] = []  # signals that end the command of this process
