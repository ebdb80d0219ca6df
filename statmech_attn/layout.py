"""What files of each kind hold at least: what their summaries and pictures read."""

import json
from collections.abc import Iterator

import xarray as xr

from statmech_attn import kinds
from statmech_attn.labels import Variable, Variables


AT_ONCE = 2**28  # bytes of what a summary reads
# Parts that a study may leave out, or files of an earlier version.
ASKED = ("_corrected", "_draws", "_by_temperature", "_by_width")


def require_layout(dataset: xr.Dataset, path) -> None:
    """Refuse a file that lacks what files of its kind have.

    Kinds that are not known are let through: nothing is read of them.

    Args:
        path: of the file, for the message.

    Raises:
        ValueError: naming what is missing.
    """
    kind = dataset.attrs.get("kind")
    row = kinds.of_file(kind, dataset.dims)
    table = kinds.KINDS.part(row, "variables") if row else None
    for lacking in _lacking(dataset, table) if table else ():
        version = dataset.attrs.get(
            "git_describe", dataset.attrs.get("package_version")
        )
        raise ValueError(
            f"{path}: is no whole file of kind {kind!r}: {lacking}; it was written by "
            f"version {version}: compute it again."
        )


def _lacking(dataset: xr.Dataset, table: Variables) -> Iterator[str]:
    """What is missing, in words."""
    for name, needed_by in table.file_attributes.items():
        if name not in dataset.attrs and (not needed_by or needed_by in dataset):
            yield f"it has no attribute {name}"
    if not _is_table(dataset.attrs.get("task", "{}")):
        yield "its attribute task is no JSON object"
    for number, group in enumerate(table.groups(dataset.attrs)):
        stored = {
            row.name + ending: row
            for row in group
            for ending in row.endings
            if not ending.endswith(ASKED)
        }
        if number and not stored.keys() & dataset.variables.keys():
            continue
        for name, row in stored.items():
            if name not in dataset.variables:
                yield f"it has no variable {name}"
            elif missing := set(row.dims.split()) - set(dataset[name].dims):
                yield f"its variable {name} has no dimension {min(missing)}"
            elif row.flags and not _has_words(row, dataset[name]):
                yield f"its variable {name} has codes without a meaning"


def _is_table(text) -> bool:
    """Whether an attribute holds a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


def _has_words(row: Variable, codes: xr.DataArray) -> bool:
    """Whether every code has a word, or is -1: nothing to say of it.

    Codes are not read where they are so many that no summary shows them.
    """
    words = row.flags
    if not row.name.startswith("phase"):  # which summaries name by themselves
        words = str(codes.attrs.get("flag_meanings", "")).split()
    if codes.dtype.kind not in "iu":
        return False
    if codes.nbytes > AT_ONCE or not codes.size:
        return True
    values = codes.values
    return bool(values.min() >= -1 and values.max() < len(words))
