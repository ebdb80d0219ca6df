"""Commands about what comes with the package: data, schema, presets, validation."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from statmech_attn import batches, kinds, storage, studies, validation
from statmech_attn.cli.terminal.arguments import Data, output_option, Replace
from statmech_attn.cli.terminal.screen import err, out


def download(
    names: Annotated[
        list[str],
        typer.Argument(
            help="The data sets: omniglot, omniglot-small, mnist, fashion-mnist."
        ),
    ],
    data: Data = None,
) -> None:
    """Download published images into a folder and verify their checksums.

    Files that exist are not downloaded again.

    Example: statmech-attn download omniglot mnist fashion-mnist --data images
    """
    from statmech_attn.tasks import downloads, images

    downloads.check(names)
    folder = data if data is not None else images.data_folder()
    for name in names:
        with err.status(f"{name}, of up to 55 MB"):
            files = downloads.fetch(name, folder)
        for path, new in files:
            out.say(f"wrote {path}" if new else f"{path}: already there")


_OWN = {  # what a first study is about that is none of the network's
    "your own map or flow": kinds.SYSTEM,
    "transformer blocks of your own": kinds.BLOCK,
    "your own data and attention": "arrays",
}


def _kinds(typed: str) -> list[str]:
    return [name for name in kinds.studied() if name.startswith(typed)]


def new(
    kind: Annotated[
        str, typer.Argument(help="The kind of study.", autocompletion=_kinds)
    ] = "",
    output: Annotated[
        Path | None,
        output_option("The study file to be written; by default it is printed."),
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            help="The task of a study of learning, such as one-shot, or else system "
            "or block."
        ),
    ] = "",
) -> None:
    """Write a commented study file with every key, or list the kinds of studies.

    The name of a task instead of a kind gives the study of its order parameters, or of
    the attractors of a "system" or "block".  With --output, "arrays", "system" and
    "block" write an example of the file that they name too.

    Example: statmech-attn new bifurcation --output study.toml
    """
    if not kind:
        for what, name in _OWN.items():
            out.say(f"{what}: statmech-attn new {name} --output study.toml")
        for name, sentence in studies.templates.sentences().items():
            out.say(f"{name}: {sentence}")
        return
    if kind in kinds.TASKS.names():
        kind, task = "order-parameter", kind
    if kind in (kinds.SYSTEM, kinds.BLOCK):
        kind, task = "bifurcation", kind
    text = studies.templates.template(kind, task)
    if output is None:
        typer.echo(text, nl=False)
        return
    if storage.check_place(output):
        raise ValueError(f"{output}: already exists; choose another name.")
    examples = [kinds.TASKS.part(row, "example") for row in kinds.TASKS.named(task)]
    if task == kinds.SYSTEM:
        examples = [studies.templates.write_system]
    if task == kinds.BLOCK:
        examples = [studies.templates.write_block]
    for example in filter(None, examples):
        out.say(_example(example, output.parent))
    storage.write_text(output, text)
    named = shlex.quote(str(output))
    out.say(f"wrote {output}; edit it, then: statmech-attn run {named} --dry-run")


def _example(write: Callable[[Path], Path], folder: Path) -> str:
    """Write an example beside its study, unless there is a file; what to say."""
    try:
        return f"wrote {write(folder)}, an example to replace"
    except FileExistsError as error:
        return f"{error.filename} exists and is kept"


def schema(
    output: Annotated[
        Path | None,
        output_option("The JSON file to be written; by default it is printed."),
    ] = None,
    overwrite: Replace = False,
) -> None:
    """Write the JSON schema of study files, with which editors complete and check them.

    A study refers to it in its first line: #:schema FILE

    Example: statmech-attn schema --output study.schema.json
    """
    text = json.dumps(studies.reference.schema(), indent=1, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
        return
    storage.require_replaceable(output, overwrite, _is_schema, "schema")
    storage.check_place(output)
    storage.write_text(output, text)
    out.say(f"wrote {output}")


def _is_schema(path: Path) -> bool:
    return '"$schema"' in storage.begins(path)


def validate(
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Check only systems whose name contains this. This option may be "
            "repeated."
        ),
    ] = None,
) -> None:
    """Compute known quantities of reference systems and compare them with their values.

    The exit code is 2 if a deviation is larger than chance allows.

    Example: statmech-attn validate --only henon
    """
    from statmech_attn.cli.texts import validation as report

    rows = validation.select(only or [])
    batches.runtime.prepare()
    lines = report.measure(rows, err)
    report.print_table(lines, out)
    if any(line.verdict != "ok" for line in lines):
        raise typer.Exit(2)
