"""Everything that a file of its kind holds, as pictures."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from statmech_attn import kinds
from statmech_attn.options import either
from statmech_attn.plotting.frame.registry import Picture, registered
from statmech_attn.plotting.frame.style import save


Pictures = Iterator[tuple[str, Figure]]


def draw(dataset: xr.Dataset, folder: str | Path) -> list[Path]:
    """Draw all pictures of a result file into a folder, as PNG and PDF.

    Args:
        dataset: a result.
        folder: where to write; made if it is missing.

    Returns:
        Paths of the files.

    Raises:
        ValueError: a kind of file that has no pictures.

    Example:
        `draw(storage.read("scan.h5"), "figures")` writes figures/bifurcation.png, ...
    """
    return [
        path
        for name, figure in pictures(dataset)
        for path in save(figure, folder, name)
    ]


def pictures(
    dataset: xr.Dataset,
    only: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] = {},
) -> Pictures:
    """All pictures of a result file, with their names.

    Args:
        dataset: a result.
        only: names of those that are drawn; all when omitted.
        options: keywords as of `figure`, by the names of pictures.

    Returns:
        Figures by name.

    Raises:
        ValueError: a kind of file that has no pictures.

    Example:
        `dict(pictures(storage.read("scan.h5")))["bifurcation"]`
    """
    return _drawn(dataset, _table(dataset), only, options)


def figure(dataset: xr.Dataset, name: str, /, **options: Any) -> Figure:
    """One picture of a result file.

    Args:
        dataset: a result.
        name: of a picture, as in `names`; the gallery shows them.
        options: keywords of the function that draws it, such as other files that it
            shows, or `ax`, or `axes` where there are several panels: those to draw on.

    Raises:
        ValueError: the file has no such picture, or several pages of it.

    Example:
        `figure(storage.read("basins.h5"), "lifetimes")`
    """
    table = {row.name: row for row in offered(dataset)}
    if name not in table:
        raise ValueError(f"name must be {either(list(table))}; got {name!r}.")
    return table[name].draw(dataset, **options)


def names(dataset: xr.Dataset) -> dict[str, str]:
    """Names of the pictures of a result file, and of the functions that draw them.

    Names are those of the files, without the numbers of pages.

    Args:
        dataset: a result.

    Raises:
        ValueError: a kind of file that has no pictures.

    Example:
        `names(storage.read("scan.h5"))` gives such as
        `{"bifurcation": "bifurcation_diagram"}`.
    """
    return {row.name: row.function for row in offered(dataset)}


def offered(dataset: xr.Dataset) -> list[Picture]:
    """The pictures that a result file has.

    Args:
        dataset: a result.

    Raises:
        ValueError: a kind of file that has no pictures.

    Example:
        `[picture.name for picture in offered(storage.read("scan.h5"))]`
    """
    return [row for row in _table(dataset) if row.when(dataset)]


def _table(dataset: xr.Dataset) -> Sequence[Picture]:
    kind = dataset.attrs.get("kind")
    row = kinds.of_file(kind, dataset.dims)
    if row is None or not row.pictures:
        known = ", ".join(kinds.KINDS.names())
        raise ValueError(f"no pictures of kind {kind!r}; known kinds: {known}.")
    if not isinstance(row.pictures, str) or ":" in row.pictures:
        return kinds.KINDS.part(row, "pictures")
    return of_modules(row.name, row.pictures)


def of_modules(kind: str, modules: str) -> list[Picture]:
    """Pictures of a kind that some modules of this package draw."""
    paths = [f"statmech_attn.plotting.{module}" for module in modules.split()]
    for path in paths:
        importlib.import_module(path)
    return [picture for path in paths for picture in registered(kind, path)]


def _drawn(
    dataset: xr.Dataset,
    table: Sequence[Picture],
    only: Sequence[str] | None,
    options: Mapping[str, Mapping[str, Any]],
) -> Pictures:
    for picture in table:
        if not picture.when(dataset) or (only is not None and picture.name not in only):
            continue
        given = options.get(picture.name, {})
        for suffix, page in picture.pages(dataset):
            yield f"{picture.name}{suffix}", picture.draw(page, **given)
