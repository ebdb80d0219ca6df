"""The command that shows result files in the browser."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from statmech_attn.cli.terminal import errors
from statmech_attn.cli.terminal.arguments import AllowCode
from statmech_attn.cli.terminal.screen import out


def explore(
    files: Annotated[list[Path], typer.Argument(help="HDF5 files of any kinds.")],
    port: Annotated[
        int,
        typer.Option(
            help="The port of this computer; by default a free one.", min=0, max=65535
        ),
    ] = 0,
    browser: Annotated[
        bool,
        typer.Option(help="Open the page in the browser, or only print its address."),
    ] = True,
    export: Annotated[
        Path | None,
        typer.Option(
            help="Write the page of one file, with all that it shows, to this path "
            "instead: it needs no server."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the page that --export names.")
    ] = False,
    allow_code: AllowCode = False,
) -> None:
    """Show result files in the browser, and compute further from them.

    The page is served to this computer alone. Ctrl-C ends the server and everything
    that it computes.

    Example: statmech-attn explore scan.h5
    """
    from statmech_attn.explore import export as write_page

    if export is not None:
        if len(files) > 1:
            raise typer.BadParameter("--export takes one file.")
        with errors.of_file(files[0], "no page can be made"):
            size = write_page(files[0], export, overwrite=overwrite)
        out.say(f"wrote {export}: {size}")
        return
    try:
        from statmech_attn.explore import Explorer
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    page = Explorer(files, port=port, allow_code=allow_code)
    try:
        with page as explorer:
            out.say(f"the page is at {explorer.address}")
            out.say("Ctrl-C ends it")
            if browser and not webbrowser.open(explorer.redirect().as_uri()):
                out.say("no browser could be started: open this address in one")
            explorer.wait()
    except KeyboardInterrupt:
        out.say("ended")
        # Python would wait for threads inside compiled code, which cannot be stopped.
        sys.stdout.flush()
        os._exit(0)
