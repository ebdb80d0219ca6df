"""Options that several commands have, and those of `run`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class EngineName(StrEnum):
    """Values of the option --engine."""

    local = "local"
    dask = "dask"


def output_option(words: str) -> Any:
    """The option --output of a command, with what is written there in words."""
    return typer.Option("--output", "-o", help=words)


Study = Annotated[Path, typer.Argument(help="The study file (TOML).")]
Output = Annotated[Path, output_option("The HDF5 file to be written.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Replace the value of a key, for example run.steps=500. This option may "
        "be repeated.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace a file that holds another result."),
]
Replace = Annotated[bool, typer.Option(help="Replace a file that exists.")]
Data = Annotated[
    Path | None,
    typer.Option(
        help="The folder with the image data; by default the one that the variable "
        "STATMECH_ATTN_DATA names."
    ),
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Run the Python code that the study names even if it lies outside the "
        "study's folder.",
    ),
]

# Of `run` alone.
RunOutput = Annotated[
    Path | None,
    output_option(
        "The HDF5 file to be written. It may be left out with --dry-run only."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Check the study and forecast its time and memory, but compute nothing.",
    ),
]
Chunk = Annotated[
    int | None,
    typer.Option(
        help="How many points are computed between two writes to the disk.", min=1
    ),
]
Engine = Annotated[
    EngineName,
    typer.Option(help="Compute in threads of this process, or on a dask cluster."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="How many chunks are computed at the same time, in threads or in "
        "processes of dask.",
        min=1,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="The address of a running dask scheduler; by default a cluster is "
        "started on this computer."
    ),
]
LogFile = Annotated[
    Path | None,
    typer.Option(help="Append the notes, and a line a minute, to this file."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Print a line every five seconds instead of the bar."
    ),
]
