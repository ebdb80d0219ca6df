"""Ctrl-C and SIGTERM: finish what is being computed, and say how to go on.

A thread of its own hears the signals.  Python would tell the main thread, which hears
of them only when it is back from compiled code, or from a sleep that it was about to
begin.
"""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from statmech_attn.reporting import Reporter


TEMPORARY_FAILURE = 75  # EX_TEMPFAIL: not finished, the same command goes on
INTERRUPTED = 130
NUMBERS = (signal.SIGINT, signal.SIGTERM)
SHOW_CURSOR = b"\x1b[?25h"  # progress bars hide it


class Stop:
    """A request to stop, by a user or a scheduler.

    Attributes:
        finish: begin no other chunk.
        drop: leave the chunks that are being computed as well.
    """

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
        return TEMPORARY_FAILURE if self.first == signal.SIGTERM else INTERRUPTED

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


@contextmanager
def handled(stop: Stop, report: Reporter) -> Iterator[Signals]:
    """Handle signals while in the main thread; elsewhere leave them alone."""
    signals = Signals(stop, report)
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    hears, says = socket.socketpair()
    says.setblocking(False)
    listener = threading.Thread(target=_listen, args=(hears, signals), daemon=True)
    listener.start()
    wakes = signal.set_wakeup_fd(says.fileno())
    # Python writes the number of a signal only where it has a handler.
    before = {number: signal.signal(number, lambda *_: None) for number in NUMBERS}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakes)
        says.close()
        listener.join()
        hears.close()


def _listen(hears: socket.socket, signals: Signals) -> None:
    while number := hears.recv(1):
        if number[0] in NUMBERS:
            signals(number[0])
