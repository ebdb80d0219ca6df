"""What a long computation tells its user while it runs."""

import unicodedata
from datetime import datetime, UTC
from typing import Protocol, runtime_checkable


LONGEST = 1000  # characters of an error's line
CALLBACK = "CpuCallback error"  # of XLA, where Python that a program calls has raised


@runtime_checkable
class Reporter(Protocol):
    """Receives notes and progress; the command line draws them."""

    def note(self, text: str) -> None: ...

    def begin(self, description: str, points: int, work: float) -> None: ...

    def advance(self, work: float) -> None: ...

    def finish(self) -> None: ...


class Silent:
    """Says nothing; the default in Python."""

    def note(self, text: str) -> None:
        pass

    def begin(self, description: str, points: int, work: float) -> None:
        pass

    def advance(self, work: float) -> None:
        pass

    def finish(self) -> None:
        pass


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"


def moment(stamp: str) -> str:
    """A time of ISO 8601 to the second; a text that is none, as it is."""
    try:
        at = datetime.fromisoformat(stamp).astimezone(UTC)
    except ValueError:
        return stamp
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def span(started: str | None, finished: str) -> str:
    """From when to when something was computed; of an unknown beginning, the end."""
    if started is None:
        return f"until {moment(finished)}"
    return f"{moment(started)} to {moment(finished)}"


def size(n_bytes: float) -> str:
    """A number of bytes in words, as MiB or GiB."""
    mib = n_bytes / 2**20
    return f"{mib / 1024:.2f} GiB" if mib >= 1024 else f"{mib:.3g} MiB"


def line_of(error: BaseException) -> str:
    """One line of what an exception says; of a callback of JAX, what it ended in."""
    first, *others = [line for line in str(error).splitlines() if line] or [""]
    if CALLBACK in first:  # a traceback follows
        last = next((line for line in others if not line.startswith(" ")), first)
        return f"a callback ends in {last}"
    half = LONGEST // 2
    return first if len(first) <= LONGEST else f"{first[:half]} … {first[-half:]}"


def visible(text: str, kept: str = "") -> str:
    """A text whose control characters are written out."""
    return "".join(c if c in kept or not _obeyed(c) else _escape(c) for c in text)


def _obeyed(character: str) -> bool:
    """Whether terminals may act on it: control and format characters, line ends."""
    category = unicodedata.category(character)
    return category.startswith("C") or category in ("Zl", "Zp")


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
