"""The terminal: everything that the command prints passes here, and stays text.

Paths, attributes and messages come from files and users.  Control characters, which a
terminal would obey, are shown as Python writes them; square brackets are no markup.
"""

import io
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from statmech_attn.reporting import visible


LAYOUT = "\n\t"  # control characters that lay out a text of several lines


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


out, err = Terminal(), Terminal(stderr=True)
