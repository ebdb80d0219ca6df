"""What files of each kind hold at least: what their summaries and pictures read."""

import json
import re
from collections.abc import Iterator

import xarray as xr

from statmech_attn import kinds
from statmech_attn.labels import Variables


AT_ONCE = 2**28  # bytes of what a summary reads
# Variables whose codes are always known, except in slots that hold no attractor.
ALWAYS = re.compile(
    "phase.*|doubtful|lyapunov_source|quantity|.*verdict|"
    "(branch|curve|degenerate|special)_.*"
)
# Parts that a study may leave out, or files of an earlier version.
ASKED = ("_corrected", "_draws", "_by_temperature", "_by_width")


def require_layout(dataset: xr.Dataset, path) -> None:
    """Refuse a file that lacks what files of its kind have.

    Kinds that are not known are let through: nothing is read of them.
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
    for name in ("task", "inputs"):
        if not _is_table(dataset.attrs.get(name, "{}")):
            yield f"its attribute {name} is no JSON object"
    flags: dict[str, int] = {}
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
            elif row.flags and "flag_meanings" not in dataset[name].attrs:
                yield f"its variable {name} has codes without a meaning"
            # Summaries name phases by themselves.
            words = row.flags if name.startswith("phase") else ()
            flags |= {name: len(words)} if words else {}
    parameters = [row.name for row in table if not row.dims]
    texts = {n: x.dims for n, x in dataset.variables.items() if x.dtype.kind in "OSTU"}
    names = [(n,) for n, dims in texts.items() if dims == (n,) and n not in parameters]
    for name, variable in dataset.variables.items():
        if name in texts and variable.dims not in names:
            yield f"its variable {name} holds text in place of numbers"
        elif "flag_meanings" in variable.attrs and not _has_words(
            str(name), variable, flags.get(str(name))
        ):
            yield f"its variable {name} has codes without a meaning"


def _is_table(text) -> bool:
    """Whether an attribute holds a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


def _has_words(name: str, variable: xr.Variable, count: int | None) -> bool:
    """Whether every code has one of `count` words, or says that there is none, by -1.

    Codes are not read where they are so many that no summary shows them.
    """
    count = count or len(str(variable.attrs["flag_meanings"]).split())
    if variable.dtype.kind not in "iub":
        return False
    if variable.nbytes > AT_ONCE or not variable.size:
        return True
    masks = "flag_masks" in variable.attrs
    count = 2**count if masks else count
    known = ALWAYS.fullmatch(name) and "slot" not in variable.dims
    least = 0 if masks or known else -1
    return bool(variable.values.min() >= least and variable.values.max() < count)
