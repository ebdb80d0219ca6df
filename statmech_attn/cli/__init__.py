"""The `statmech-attn` command, and the options of figure scripts."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.cli.main import app
    from statmech_attn.cli.scripts import Script, usable
    from statmech_attn.cli.tables import Summary, titled


__all__ = [
    "app",
    "Script",
    "Summary",
    "titled",
    "usable",
]
lazy.attach(__name__)
