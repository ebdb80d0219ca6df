"""Writing result files in formats of others."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from statmech_attn import storage
from statmech_attn.layout import require_layout
from statmech_attn.storage import tables


SHOWN = 8  # names in a line
NAME = r'"?[^\W\d][^=\[\]{}();:<>\x00-\x1f]*'  # of a column


def check(file: Path, targets: Mapping[str, Path], *, overwrite: bool) -> None:
    """Refuse destinations (path by format) before anything is read."""
    by_place: dict[str, str] = {}
    for form, target in targets.items():
        place = os.path.realpath(target)
        if place in by_place:
            raise ValueError(
                f"{target}: is the place for {by_place[place]} and {form}."
            )
        by_place[place] = form
        storage.require_no_input(target, [file])
        like = partial(_is_export, form)
        storage.require_replaceable(target, overwrite, like, f"{form} of this command")
        storage.check_place(target)


def write(
    file: Path, targets: Mapping[str, Path], rows: Sequence[str] = ()
) -> Iterator[str]:
    """Write a file in several formats (path by csv or json); a line for each."""
    with storage.opened(file) as dataset:
        require_layout(dataset, file)
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


def _is_export(form: str, path: Path) -> bool:
    """Whether a file is what `write` writes in this format, or is empty."""
    if path.is_file() and not path.stat().st_size:
        return True
    start = storage.begins(path, 2**16)
    if form == "json":
        return start.startswith('{"kind": ')
    names, *rows = start.splitlines()[:2] or [""]
    same = all(row.count(",") >= names.count(",") for row in rows)
    named = all(re.fullmatch(NAME, name) for name in names.split(","))
    return named and same and ("," in names or path.suffix == ".csv")
