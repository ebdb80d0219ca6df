"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer


Output = Annotated[Path, typer.Option("--output", "-o", help="HDF5 file to write.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a key, e.g. run.steps=500; repeatable."),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the result of another study.")
]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder of the image data; default: $STATMECH_ATTN_DATA."),
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Run the Python code that a study names, wherever it lies.",
    ),
]
