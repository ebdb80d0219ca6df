"""The `statmech-attn` command."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.cli.main import app as app
    from statmech_attn.cli.terminal.progress import Bar as Bar, reporter as reporter
    from statmech_attn.cli.terminal.screen import Terminal as Terminal
    from statmech_attn.cli.texts.summary import print_summary as print_summary
    from statmech_attn.cli.texts.tables import Summary as Summary, tabled as tabled


lazy.attach(__name__)
