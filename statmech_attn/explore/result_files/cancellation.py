"""Computations that end when nobody waits for them any more."""

import threading

from statmech_attn.reporting import Silent


class Cancelled(Exception):
    """Raised in a computation that nobody waits for any more."""


class Stoppable(Silent):
    """A reporter through which a computation is ended once it is to stop."""

    def __init__(self, stop: threading.Event):
        self.stop = stop

    def advance(self, work: float) -> None:
        if self.stop.is_set():
            raise Cancelled


class Questions:
    """Questions of pages: a later one of a page ends the one before."""

    def __init__(self):
        self._guard = threading.Lock()
        self._stops: dict[int, threading.Event] = {}

    def begin(self, page: int) -> threading.Event:
        """Begin a question of a page, whose event ends it, and end the one before."""
        with self._guard:
            if page in self._stops:
                self._stops[page].set()
            self._stops[page] = threading.Event()
            return self._stops[page]

    def close(self) -> None:
        """End all computations at their next look."""
        with self._guard:
            for stop in self._stops.values():
                stop.set()


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
