"""Files that are seen as panels: curves, bars and matrices, for some choices.

A sheet says what can be chosen (a width, a number of spins, ...) and gives the panels
of a choice, as page/panels.js draws them.  Other files of the same problem, opened
beside it, are shown in the same panels.
"""

import copy
import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from statmech_attn.explore.files import File, rounded


Panel = dict[str, Any]
CONTENT = {"chart": "rows", "matrix": "layers"}
SHEETS = (  # kind of a file, a dimension that it has, and its sheet
    ("order-parameter", "width", "statmech_attn.explore.learning:Learned"),
    ("posterior", "width", "statmech_attn.explore.learning:Learned"),
    ("comparison", "estimate", "statmech_attn.explore.learning:Learned"),
    ("learning-curve", "examples", "statmech_attn.explore.learning:LearningCurve"),
    ("pruning", "n_pruned", "statmech_attn.explore.heads:Pruned"),
    ("head-scores", "attention_head", "statmech_attn.explore.heads:Scored"),
    ("trajectory", "pattern", "statmech_attn.explore.time_series:InTime"),
    ("monte-carlo", "pattern", "statmech_attn.explore.time_series:InTime"),
    ("comparison", "time", "statmech_attn.explore.time_series:InTime"),
    ("extensive", "time", "statmech_attn.explore.time_series:Growing"),
    ("extensive-simulation", "time", "statmech_attn.explore.time_series:Growing"),
)


class Choice(NamedTuple):
    """What can be chosen of a sheet.

    Attributes:
        name: in the address of a view.
        words: what it is, with its symbol.
        values: numbers or names.
        labels: of the values, where they have words.
        between: whether the page may ask for other numbers, which are then computed.
        first: number of the value that is chosen at first.
    """

    name: str
    words: str
    values: Sequence[Any]
    labels: Sequence[str] = ()
    between: bool = False
    first: int = 0

    def described(self) -> dict[str, Any]:
        """The choice as the page needs it."""
        values = [x if isinstance(x, str) else float(x) for x in self.values]
        return self._asdict() | {"values": values}


class Sheet(ABC):
    """A file as panels, for some choices of its coordinates.

    Args:
        file: of a kind in `SHEETS`.

    Attributes:
        same: attributes that files of one problem share.
        data: what it holds.
        others: sheets of the files that are open beside it.
    """

    same: tuple[str, ...] = ()

    def __init__(self, file: File):
        self.file, self.data = file, file.dataset
        self.others: list[Sheet] = []

    @abstractmethod
    def choices(self) -> list[Choice]:
        """Coordinates whose value can be chosen."""

    @abstractmethod
    def contents(self, chosen: dict[str, Any], point: xr.Dataset | None) -> list[Panel]:
        """Panels for some choices, empty ones included."""

    def described(self) -> dict[str, Any]:
        """What the page needs to know beside what it knows of any file."""
        return {"choices": [choice.described() for choice in self.choices()]}

    def beside(self, others: Sequence["Sheet"]) -> "Sheet":
        """The same sheet with other files open beside it."""
        sheet = copy.copy(self)
        sheet.others = list(others)
        return sheet

    def panels(
        self, chosen: Mapping[str, int], point: xr.Dataset | None = None
    ) -> list[Panel]:
        """Panels for some choices.

        Args:
            chosen: numbers of the values, by name; the first ones when left out.
            point: what has been computed at other values.

        Raises:
            ValueError: there is no such choice or value.
        """
        choices = {choice.name: choice for choice in self.choices()}
        for name, number in chosen.items():
            if name not in choices:
                raise ValueError(f"chosen: there is no {name!r}.")
            if number >= len(choices[name].values):
                count = len(choices[name].values)
                raise ValueError(f"chosen.{name} should be below {count}.")
        values = {
            name: choice.values[chosen.get(name, choice.first)]
            for name, choice in choices.items()
        }
        panels_of_values = self.contents(values, point)
        return [panel for panel in panels_of_values if panel[CONTENT[panel["type"]]]]

    def of_kind(self, *kinds: str) -> "Sheet | None":
        """The first sheet of these kinds and of this problem: itself, or another."""
        mine = self.data.attrs
        for sheet in [self, *self.others]:
            attributes = sheet.data.attrs
            alike = (
                np.array_equal(mine.get(k, ""), attributes.get(k, ""))
                for k in self.same
            )
            if sheet.file.kind in kinds and sheet.same == self.same and all(alike):
                return sheet
        return None

    def taken(self, names: Sequence[str], values: Mapping[str, Any]):
        """Some variables at some values, in memory; None where the file lacks them."""
        with self.file.lock:
            part = at(self.data[[n for n in names if n in self.data]], values)
            return None if part is None else part.load()


def sheet_of(file: File) -> Sheet | None:
    """The sheet of a file; none of a kind that has no panels."""
    for kind, dimension, where in SHEETS:
        if file.kind == kind and dimension in file.dataset.dims:
            module, _, name = where.partition(":")
            return getattr(importlib.import_module(module), name)(file)
    return None


def capital(words: str) -> str:
    """Words that begin a caption.

    Example:
        >>> capital("rms difference of U₁")
        'Rms difference of U₁'
    """
    return words[:1].upper() + words[1:]


def at(dataset: xr.Dataset, values: Mapping[str, Any]) -> xr.Dataset | None:
    """A data set at some values of its coordinates; None where it does not have one.

    Example:
        >>> widths = xr.Dataset({"U": ("width", [1.0, 2.0])}, {"width": [10.0, 20.0]})
        >>> float(at(widths, {"width": 20.0}).U), at(widths, {"width": 30.0})
        (2.0, None)
    """
    for name, value in values.items():
        if name not in dataset.coords:
            continue
        stored = np.atleast_1d(dataset[name].values)
        same = stored == value if isinstance(value, str) else np.isclose(stored, value)
        if not same.any():
            return None
        if name in dataset.dims:
            dataset = dataset.isel({name: int(np.flatnonzero(same)[0])})
    return dataset


def series(words: str, x, y, error=None, *, look: str = "line", colour: int = 0):
    """A row of numbers in a chart.

    Args:
        words: its entry in the legend.
        x: numbers, or the names of a chart of bars.
        error: half the length of the error bars, or of a band.
        look: "line", "dashes", "dots", "crosses", "ring", "band" or "bars".
        colour: number of one.
    """
    return {
        "words": words,
        "x": rounded(x),
        "y": rounded(y),
        "error": None if error is None else rounded(error),
        "look": look,
        "colour": colour,
    }


def chart(caption: str, x: str, y: str, rows: list[Panel], **more: Any) -> Panel:
    """A chart of several rows over one axis.

    Args:
        caption: below it.
        x, y: words of the axes.
        rows: as `series` makes them.
        more: `logarithmic` (names of axes), `names` (of places along x, counted from
            0), `levels` (horizontal lines: words, y), `places` (vertical lines: words,
            x), `shaded` (ranges of x: words, from, to), `note`.
    """
    resolved = [row for row in rows if any(v is not None for v in row["y"])]
    return {
        "type": "chart",
        "caption": caption,
        "x": x,
        "y": y,
        "rows": resolved,
    } | more


def matrix(
    caption: str, across: Iterable[Any], up: Iterable[Any], layers: list[Panel], **more
) -> Panel:
    """A matrix in colours: the first of its layers; all are told of an entry.

    Args:
        across, up: names of the columns and of the rows.
        layers: as `layer` makes them.
        more: `what` the names are, `signed` (colours about zero), `note`.
    """
    names = {"columns": [str(x) for x in across], "rows": [str(x) for x in up]}
    return {"type": "matrix", "caption": caption, "layers": layers} | names | more


def layer(words: str, values, error=None) -> Panel:
    """One estimate of the entries of a matrix."""
    return {
        "words": words,
        "values": [rounded(row) for row in np.asarray(values)],
        "error": None if error is None else [rounded(row) for row in error],
    }
