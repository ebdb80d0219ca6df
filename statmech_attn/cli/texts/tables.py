"""Tables and numbers as they are printed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr
from rich.table import Table

from statmech_attn.presentation import quantity


LEFT = (
    "by",
    "ended",
    "estimate",
    "head",
    "kind",
    "order",
    "phase",
    "result",
    "verdict",
)
SHOWN = 40  # rows of a table


Content = Iterator[Table | str]
Cell = str | Callable[[xr.Dataset], object]


class Summary(NamedTuple):
    """How `info` shows what a file of some kind found.

    Attributes:
        content: tables and sentences of a data set, in the order of the page.
        variables: that this takes, with blanks between them; `*` stands for anything.
        needs: the variable without which there is only the size of a file to show.
    """

    content: Callable[[xr.Dataset], Content]
    variables: str
    needs: str = ""


def tabled(
    title: str, columns: Mapping[str, Cell], points: Iterable[xr.Dataset] = ()
) -> Table:
    """A table without lines, a row a point; words to the left, numbers to the right.

    Args:
        title: of the table.
        columns: by their headings, what stands in them: a variable and its format, as
            "accuracy .3f"; "error ±" with its error; "result ?" the word of a code; or
            a function of a point.
        points: parts of a data set.

    Example:
        >>> points = [xr.Dataset({"count": 3}), xr.Dataset({"count": 4})]
        >>> columns = {"phase": lambda point: "fixed", "n": "count g"}
        >>> table = tabled("Points", columns, points)
        >>> [column.justify for column in table.columns], table.row_count
        (['left', 'right'], 2)
    """
    table = Table(title=title, box=None, pad_edge=False)
    vertical = "bottom" if any("\n" in column for column in columns) else "top"
    for column in columns:
        justify = "left" if column in LEFT else "right"
        table.add_column(column, justify=justify, vertical=vertical)
    for point in points:
        table.add_row(*(_cell(point, cell) for cell in columns.values()))
    return table


def _cell(point: xr.Dataset, cell: Cell) -> str:
    if callable(cell):
        return str(cell(point))
    name, form = cell.split()
    if form == "±":
        return with_error(point[name], point[f"{name}_stderr"])
    return word(point[name]) if form == "?" else formatted(point.get(name), form)


def word(code: xr.DataArray, *further: str) -> str:
    """The word of a code, by the attribute of its variable and what stands behind."""
    words = [*code.attrs["flag_meanings"].split(), *further]
    return words[int(code)].replace("_", " ")


def with_error(value, error) -> str:
    """A number with its error, or a dash where it is not resolved."""
    if np.isnan(float(value)):
        return "-"
    if np.isnan(float(error)):
        return f"{float(value):.2g}"
    return quantity(value, error) if float(error) else f"{float(value):.2g} ± 0"


def formatted(value, form: str) -> str:
    """A number, or a dash where there is none."""
    if value is None or np.isnan(float(value)):
        return "-"
    return format(float(value), form)
