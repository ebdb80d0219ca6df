"""Tables and numbers as they are printed."""

from collections.abc import Callable, Iterable, Iterator
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


def titled(title: str, columns: Iterable[str]) -> Table:
    """An empty table without lines; words to the left, numbers to the right.

    Args:
        title: of the table.
        columns: headings of its columns.

    Example:
        >>> [column.justify for column in titled("Points", ["phase", "count"]).columns]
        ['left', 'right']
    """
    table, columns = Table(title=title, box=None, pad_edge=False), [*columns]
    vertical = "bottom" if any("\n" in column for column in columns) else "top"
    for column in columns:
        justify = "left" if column in LEFT else "right"
        table.add_column(column, justify=justify, vertical=vertical)
    return table


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
