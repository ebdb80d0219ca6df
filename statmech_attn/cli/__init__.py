"""The `statmech-attn` command, and the options of figure scripts."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.cli.main import app
    from statmech_attn.cli.progress import Bar
    from statmech_attn.cli.scripts import Script, usable
    from statmech_attn.cli.summary import print_summary
    from statmech_attn.cli.tables import Summary, titled
    from statmech_attn.cli.terminal import Terminal


__all__ = [
    "app",
    "Bar",
    "print_summary",
    "Script",
    "Summary",
    "Terminal",
    "titled",
    "usable",
]
lazy.attach(__name__)
