"""Writing result files in formats of others."""

import importlib.util
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from statmech_attn import storage
from statmech_attn.layout import require_layout
from statmech_attn.storage import tables


SHOWN = 8  # names in a line


def check(file: Path, targets: Iterable[Path], *, overwrite: bool) -> None:
    """Refuse destinations before anything is read.

    Raises:
        ValueError: one that is there already, or the file itself.
    """
    for target in targets:
        storage.require_no_input(target, [file])
        if target.exists() and not overwrite:
            raise ValueError(
                f"{target}: already exists; choose another, or pass --overwrite."
            )


def write(
    file: Path, targets: Mapping[str, Path], rows: Sequence[str] = ()
) -> Iterator[str]:
    """Write a file in several formats.

    Args:
        targets: path by format, csv, json or zarr.
        rows: as `storage.tables.tabulate` takes them.

    Returns:
        A line for each.

    Raises:
        ValueError: an unknown dimension, or zarr is not installed.
    """
    with storage.opened(file) as dataset:
        require_layout(dataset, file)
        if "zarr" in targets:
            _write_zarr(dataset, targets["zarr"])
            yield f"wrote {targets['zarr']}: the whole file"
        if targets.keys() == {"zarr"}:
            return
        table = tables.tabulate(dataset, rows)
        shape = f"{len(table.frame)} rows, {len(table.frame.columns)} columns"
        if "csv" in targets:
            tables.write_csv(table, targets["csv"])
            yield f"wrote {targets['csv']}: {shape}"
        if "json" in targets:
            tables.write_json(table, targets["json"], dataset)
            yield f"wrote {targets['json']}: {shape}"
        if table.left_out:
            more = ", ..." if len(table.left_out) > SHOWN else ""
            names = ", ".join(table.left_out[:SHOWN])
            yield f"not in the table, which has one row per point: {names}{more}"


def _write_zarr(dataset, target: Path) -> None:
    if importlib.util.find_spec("zarr") is None:
        raise ValueError("--zarr needs zarr: pip install 'statmech-attn[zarr]'.")
    if target.is_dir() and (target / "zarr.json").exists():
        shutil.rmtree(target)
    for variable in dataset.variables.values():
        variable.encoding = {}
    dataset.to_zarr(target, mode="w-", zarr_format=3, consolidated=False)
