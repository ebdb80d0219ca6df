"""The page of all commands and options, written from the functions behind them."""

import enum
import inspect
import re
import typing
from pathlib import Path

from typer.models import ArgumentInfo


TEXT = """# Every command

`statmech-attn COMMAND --help` prints the same. [The command line](../cli.md) explains
how the commands work together.
"""
WORDS = {int: "integer", float: "number", str: "text", Path: "path", bool: ""}


def kind_of(annotation: typing.Any) -> str:
    """The type of an option, in a word, or its choices."""
    inner = [x for x in typing.get_args(annotation) if x is not type(None)]
    if typing.get_origin(annotation) is typing.Literal:
        return ", ".join(f"`{x}`" for x in inner)
    if inner:
        return kind_of(inner[0])
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return ", ".join(f"`{x.value}`" for x in annotation)
    return WORDS.get(annotation, "text")


def one_line(text: str | None) -> str:
    line = " ".join((text or "").split()).replace("|", r"\|")
    return re.sub(r"(?<![\w`-])(--[a-z-]+)", r"`\1`", line)


def options_of(command: typing.Any) -> tuple[list[str], list[str]]:
    """The words of a command's arguments, and the rows of a table of its options."""
    hints = typing.get_type_hints(command, include_extras=True)
    arguments, rows = [], []
    for name, parameter in inspect.signature(command).parameters.items():
        annotation, info = typing.get_args(hints[name])[:2]
        default = parameter.default
        required = default is inspect.Parameter.empty or default is ...
        if isinstance(info, ArgumentInfo):
            word = info.metavar or name.upper()
            arguments.append(word if required else f"[{word}]")
            words = f"`{word}`"
        else:
            long = f"--{name.rstrip('_').replace('_', '-')}"
            # Within Annotated the first name is taken for a default.
            flags = [info.default, *(info.param_decls or ())]
            flags = [x for x in flags if isinstance(x, str) and x.startswith("-")]
            words = ", ".join(f"`{x}`" for x in flags or [long])
        stated = f"`{default}`" if default not in (None, False, "", [], ()) else ""
        stated = "required" if required else stated
        kind = info.metavar if info.metavar else kind_of(annotation)
        rows.append(f"| {words} | {kind} | {stated} | {one_line(info.help)} |")
    return arguments, rows


def page() -> str:
    from statmech_attn.cli import app

    functions = {
        command.name or command.callback.__name__.replace("_", "-"): command.callback
        for command in app.registered_commands
        if command.callback
    }
    lines = [TEXT]
    for name, function in sorted(functions.items()):
        arguments, rows = options_of(function)
        usage = " ".join(["statmech-attn", name, *arguments, "[OPTIONS]"])
        text = (inspect.getdoc(function) or "").replace("\b\n", "").replace("[", r"\[")
        text = re.sub(r"(?m)^Example: (.*)$", r"Example: `\1`", text)
        lines += [f"## {name}", "", "```", usage, "```", "", text, ""]
        if rows:
            lines += ["| | type | default | |", "| --- | --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def setup(app) -> None:
    """Sphinx calls this when it loads the extension."""
    path = Path(__file__).resolve().parent / "generated" / "commands.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = page()
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")
