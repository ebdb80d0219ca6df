"""What the options of `statmech-attn figure` do: a part of a file, sizes, formats."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn import plotting
from statmech_attn.plotting import DOUBLE, SINGLE


COLUMNS = {"single": SINGLE, "double": DOUBLE}  # inches of a printed page


def sized(text: str) -> tuple[float, float | None] | None:
    """Width and height in inches; a height of None keeps the shape of a figure."""
    if not text:
        return None
    if text in COLUMNS:
        return COLUMNS[text], None
    parts = re.fullmatch(r"(\d*\.?\d+)(?:x(\d*\.?\d+))?", text)
    sides = [float(side) for side in parts.groups() if side] if parts else []
    if not sides or not all(0 < side <= 100 for side in sides):
        raise ValueError(
            "--size must be single, double, or inches such as 5 or 5x3.5; "
            f"got {text!r}."
        )
    return sides[0], sides[1] if len(sides) == 2 else None


def resized(figure: Any, size: tuple[float, float | None] | None) -> Any:
    """A figure drawn at another size; its text keeps its own."""
    if size is not None:
        width, height = figure.get_size_inches()
        figure.set_size_inches(size[0], size[1] or height * size[0] / width)
    return figure


def parts(dataset: xr.Dataset, only: Sequence[str]) -> list[str]:
    """Names of the pictures of a file that any of the patterns fits; all without any.

    A pattern fits the name of a picture, or of the function that draws it.
    """
    names = plotting.names(dataset)
    for pattern in only:
        if not any(_fits(name_and_words, pattern) for name_and_words in names.items()):
            raise ValueError(
                f"--only {pattern}: no such picture; this file has {', '.join(names)}."
            )
    return [
        name
        for name, function in names.items()
        if not only or any(_fits((name, function), pattern) for pattern in only)
    ]


def _fits(names: tuple[str, str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def within(dataset: xr.Dataset, ranges: Sequence[str]) -> xr.Dataset:
    """The part of a file whose parameters lie in ranges such as beta=1.2:1.3."""
    for text in ranges:
        name, bounds = _parsed(text)
        dataset = _within(dataset, name, bounds, text)
    return dataset


def _parsed(text: str) -> tuple[str, tuple[float, float]]:
    """Name and bounds of a range; an end that is left out is infinite."""
    name, _, interval = text.partition("=")
    low, colon, high = interval.partition(":")
    try:
        bounds = float(low or -np.inf), float(high or np.inf)
    except ValueError:
        colon = ""
        bounds = -np.inf, np.inf
    if not name or not colon:
        raise ValueError(f"--range must be such as beta=1.2:1.3; got {text!r}.")
    return name, bounds


def _within(
    dataset: xr.Dataset, name: str, bounds: tuple[float, float], text: str
) -> xr.Dataset:
    low, high = bounds
    axes = [n for n in dataset.variables if dataset[n].ndim and _is_of(str(n), name)]
    if name not in axes:
        scanned = ", ".join(str(n) for n in dataset.coords if dataset[n].ndim)
        raise ValueError(f"--range {text}: no axis {name!r}; this file has {scanned}.")
    for axis in axes:
        values = dataset[axis]
        inside = (values >= low) & (values <= high)
        if axis == name and not inside.any():
            raise ValueError(
                f"--range {text}: nothing is there; {name} is in "
                f"[{float(values.min()):g}, {float(values.max()):g}]."
            )
        if values.ndim > 1:  # points of branches: those outside are not drawn
            dataset = dataset.assign({axis: values.where(inside)})
            continue
        (dim,) = values.dims
        dataset = dataset.isel({dim: np.flatnonzero(inside.values)})
        if str(axis).endswith("_grid"):
            first = int(np.flatnonzero(inside.values)[0])
            index = dataset[f"{name}_index"]
            dataset = dataset.assign_coords({f"{name}_index": index - first})
    return dataset


def _is_of(variable: str, name: str) -> bool:
    """Whether a variable holds values of a parameter: points, grids, special points."""
    return variable in (
        name,
        f"{name}_grid",
        f"special_{name}",
        f"degenerate_{name}",
        f"curve_{name}",
    )
