"""The `statmech-attn` command."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.cli.main import app as app
    from statmech_attn.cli.progress import Bar as Bar, reporter as reporter
    from statmech_attn.cli.summary import print_summary as print_summary
    from statmech_attn.cli.tables import Summary as Summary, titled as titled
    from statmech_attn.cli.terminal import Terminal as Terminal


lazy.attach(__name__)
