"""The terminal: everything that the command prints passes here, and stays text.

Paths, attributes and messages come from files and users.  Control characters, which a
terminal would obey, are shown as Python writes them; square brackets are no markup.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from statmech_attn.reporting import visible


LAYOUT = "\n\t"  # control characters that lay out a text of several lines
CLOSED = 128 + 13  # exit code of a program that SIGPIPE ends, as shells state it


class Terminal(Console):
    """A console for texts of any origin."""

    def __init__(self, **options: Any):
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """The text as it is to be shown; rich calls this for every string.

        Args:
            text: any text, also of files.
        """
        return super().render_str(visible(text, kept=LAYOUT), **options)

    def say(self, text: str, style: str | None = None) -> None:
        """Print one line, whatever is in it.

        Args:
            text: the line.
            style: of rich, such as a colour.
        """
        self.print(visible(text), style=style, highlight=False, soft_wrap=True)


def write_anything() -> None:
    """Let standard streams write out what their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def nobody_reads(error: BaseException) -> bool:
    """Whether a closed pipe is the reason; click and rich make a SystemExit of it."""
    return any(isinstance(x, BrokenPipeError) for x in (error, error.__context__))


@contextmanager
def quiet_when_closed() -> Iterator[None]:
    """End without a word, with code `CLOSED`, once nobody reads what is printed.

    What is left in the buffer is written here, and not when Python ends.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as end:
        if not nobody_reads(end):
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        raise SystemExit(CLOSED) from None


out, err = Terminal(), Terminal(stderr=True)
