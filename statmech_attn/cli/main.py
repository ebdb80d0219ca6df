"""`statmech-attn`: run studies, compare, draw and describe their files.

Whatever goes wrong is one line on stderr (`errors`); `--debug` shows where it arose.
Packages come to be when they are first asked for (`lazy`), and what else is slow to
import is imported by the commands: a bad study is refused before JAX is there.
"""

import atexit
import gc
import inspect
import logging
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from statmech_attn import __version__
from statmech_attn.cli.commands import exploring, resources, results, runs, scoring
from statmech_attn.cli.terminal import errors
from statmech_attn.cli.terminal.screen import (
    err,
    nobody_reads,
    quiet_when_closed,
    write_anything,
)
from statmech_attn.scan import signals


# Loggers of JAX that print the traceback of an error which is raised afterwards.
TRACEBACKS = ("jax._src.callback", "jax._src.debugging")


class _Commands(TyperGroup):
    """The commands, and what is said when one ends with an exception."""

    def main(self, *args: Any, **options: Any) -> Any:
        write_anything()
        atexit.register(gc.freeze)  # all ends with the process: looking takes 0.6 s
        with signals.ending(), quiet_when_closed(), warnings.catch_warnings():
            warnings.showwarning = _say
            return super().main(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        for name in TRACEBACKS:
            logging.getLogger(name).disabled = not ctx.params["debug"]
        try:
            return super().invoke(ctx)
        except BaseException as error:  # SystemExit too: 0 means that all is done
            if nobody_reads(error) or errors.of_the_command_line(error):
                raise
            if ctx.params["debug"]:
                err.print(traceback.format_exc(), highlight=False, soft_wrap=True)
            line, code = errors.described(error)
            err.say(f"statmech-attn: {line}")
            raise typer.Exit(code) from None


def _say(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning in one line."""
    err.say(f"statmech-attn: {message}")


app = typer.Typer(
    cls=_Commands,
    help="Compute the statistical mechanics of attention networks.\n\n"
    "Example: statmech-attn new bifurcation --output study.toml",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _paragraphs(text: str) -> str:
    """A docstring with each paragraph in one line, which the terminal wraps."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"statmech-attn {__version__}")
        raise typer.Exit()


@app.callback()
def _main(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error occurred.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    pass


GROUPS = {
    "Compute": (
        resources.new,
        runs.run,
        runs.status,
        runs.merge,
        runs.repair,
        runs.slurm,
    ),
    "Look at results": (
        results.info,
        results.figure,
        exploring.explore,
        results.export,
    ),
    "Compare": (results.compare, results.hysteresis, scoring.score, resources.validate),
    "Files": (results.grid, resources.download, resources.schema),
}
for group, commands in GROUPS.items():
    for command in commands:
        words = _paragraphs(command.__doc__ or "")
        app.command(help=words, rich_help_panel=group)(command)
