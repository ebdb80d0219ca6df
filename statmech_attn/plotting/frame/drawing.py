"""Everything that a file of its kind holds, as pictures."""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from statmech_attn import kinds
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


def pictures(dataset: xr.Dataset, only: Sequence[str] | None = None) -> Pictures:
    """All pictures of a result file, with their names.

    Args:
        dataset: a result.
        only: names of those that are drawn; all when omitted.

    Returns:
        Figures by name.

    Raises:
        ValueError: a kind of file that has no pictures.

    Example:
        `dict(pictures(storage.read("scan.h5")))["bifurcation"]`
    """
    return _drawn(dataset, _table(dataset), only)


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
    dataset: xr.Dataset, table: Sequence[Picture], only: Sequence[str] | None = None
) -> Pictures:
    for picture in table:
        if not picture.when(dataset) or (only is not None and picture.name not in only):
            continue
        for suffix, page in picture.pages(dataset):
            yield f"{picture.name}{suffix}", picture.draw(page)


def learning_pictures(
    dataset: xr.Dataset,
    posteriors: Sequence[xr.Dataset] = (),
    *,
    widths: Sequence[float] | None = None,
) -> Pictures:
    """Every picture of order parameters at one temperature, with its name.

    Args:
        dataset: a result of kind `order-parameter`.
        posteriors: results of kind `posterior`, drawn beside the accuracies.
        widths: those whose U_1 is drawn, as in `order_parameter_matrices`.

    Example:
        `dict(learning_pictures(storage.read("saddle.h5")))["accuracy"]`
    """
    options = {
        "accuracy": {"posteriors": posteriors},
        "order_parameters": {"widths": widths},
    }
    for picture in offered(dataset):
        yield picture.name, picture.draw(dataset, **options.get(picture.name, {}))


def pruning_pictures(dataset: xr.Dataset) -> Pictures:
    """Every picture of a pruning file, with its name.

    Args:
        dataset: a result of kind `pruning`.

    Example:
        `dict(pruning_pictures(storage.read("pruning.h5")))["pruned_heads"]`
    """
    return _drawn(dataset, of_modules("pruning", "learning.pruning"))
