"""Which figures a kind of file has: each is registered where it is drawn.

    @picture("lifetimes", "basins")
    @style.styled
    def lifetimes(dataset: xr.Dataset) -> Figure: ...

A row of `kinds` names the modules whose figures its files have.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import xarray as xr
from matplotlib.figure import Figure


PER_PAGE = 6  # values of a parameter
Pages = Iterator[tuple[str, xr.Dataset]]
Drawing = TypeVar("Drawing", bound=Callable[..., Any])


def one_page(dataset: xr.Dataset) -> Pages:
    """The whole file."""
    yield "", dataset


def temperatures(dataset: xr.Dataset) -> Pages:
    """One page for every temperature; a suffix when there are several."""
    if dataset.sizes.get("temperature", 1) == 1:
        yield "", dataset
        return
    for number in range(dataset.sizes["temperature"]):
        yield f"_{number + 1}", dataset.isel(temperature=number)


def points(dataset: xr.Dataset) -> Pages:
    """One page for every width and temperature; suffixes where there are several."""
    for number in range(dataset.sizes.get("width", 1)):
        part = dataset.isel(width=number, missing_dims="ignore")
        suffix = f"_{number + 1}" if dataset.sizes.get("width", 1) > 1 else ""
        yield from ((suffix + ending, page) for ending, page in temperatures(part))


def pages_of(dataset: xr.Dataset, name: str, per_page: int = PER_PAGE) -> Pages:
    """Values of a parameter that fit on each page; a suffix when there are several."""
    count = dataset.sizes[name]
    for page, first in enumerate(range(0, count, per_page), start=1):
        suffix = f"_{page}" if count > per_page else ""
        yield suffix, dataset.isel({name: slice(first, first + per_page)})


def pages_of_beta(dataset: xr.Dataset) -> Pages:
    """Values of beta that fit on a page."""
    return pages_of(dataset, "beta")


def values_of(name: str) -> Callable[[xr.Dataset], Sequence[Any]]:
    """Values of a coordinate of a file, among which a keyword can be chosen."""
    return lambda dataset: np.atleast_1d(dataset[name].values).tolist()


class Beside(NamedTuple):
    """Another file that a picture draws as well.

    Attributes:
        kind: of the file.
        same: attributes that it has in common with the file of the picture.
        several: whether there may be any number of them, in a list.
    """

    kind: str
    same: tuple[str, ...]
    several: bool = False


class Picture(NamedTuple):
    """A picture of a file.

    Attributes:
        name: of the files that it is saved as, without their endings.
        draw: function of a data set that gives a figure.
        when: which files have it.
        pages: parts of a file that have one each, with the endings of their names.
        choices: keywords of the function that a reader may choose, with their values.
        beside: keywords of the function that take other files.
    """

    name: str
    draw: Callable[..., Figure]
    when: Callable[[xr.Dataset], bool] = lambda dataset: True
    pages: Callable[[xr.Dataset], Pages] = one_page
    choices: Mapping[str, Callable[[xr.Dataset], Sequence[Any]]] = {}
    beside: Mapping[str, Beside] = {}

    @property
    def function(self) -> str:
        """Name of the function that draws it."""
        return self.draw.__name__


_REGISTERED: dict[str, list[Picture]] = {}


def picture(
    name: str,
    *of: str,
    when: Callable[[xr.Dataset], bool] = lambda dataset: True,
    pages: Callable[[xr.Dataset], Pages] = one_page,
    choices: Mapping[str, Callable[[xr.Dataset], Sequence[Any]]] = {},
    beside: Mapping[str, Beside] = {},
) -> Callable[[Drawing], Drawing]:
    """Register a drawing function as a picture of kinds of file.

    `of` are the kinds; the rest are fields of `Picture`.
    """

    def register(draw: Drawing) -> Drawing:
        for kind in of:
            row = Picture(name, draw, when, pages, choices, beside)
            _REGISTERED.setdefault(kind, []).append(row)
        return draw

    return register


def registered(kind: str, module: str) -> list[Picture]:
    """Pictures of a kind that an imported module draws, in the order of its text."""
    rows = _REGISTERED.get(kind, [])
    return [row for row in rows if row.draw.__module__ == module]


def has_variable(name: str) -> Callable[[xr.Dataset], bool]:
    """Whether a file has a variable."""
    return lambda dataset: name in dataset
