"""Axes that a picture is drawn on: those of the caller, or those of a new figure.

What surrounds panels (the legend of all of them, their letters, the note at the foot)
belongs to a figure, and is drawn on a new one only.  On axes of the caller the entries
of a legend are there: `ax.legend()` shows them.
"""

import re
import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from statmech_attn.plotting.frame import style


PER_ROW = 8  # entries of a legend
PER_INCH = 19  # letters of the note at the foot
UNSEEN = str.maketrans("", "", "${}^_")  # signs of a formula
DOT = 6.0  # points, of a dot in a legend at least
PanelAxes = Axes | Sequence[Axes] | np.ndarray | None


class Sheet(NamedTuple):
    """The panels of a picture, and whether the figure around them is its own."""

    axes: list[Axes]
    whole: bool

    @property
    def figure(self) -> Figure:
        """The figure that the panels lie on."""
        figure = self.axes[0].get_figure(root=True)
        assert figure is not None
        return figure

    def finish(
        self,
        note: str = "",
        per_row: int = 0,
        of: slice = slice(None),
        letters: bool = True,
    ) -> Figure:
        """The figure with its letters and note, and a legend of some of its panels.

        There is none where no entries are to stand in a row.
        """
        if per_row:
            self.legend(per_row, of)
        if letters:
            self.letters()
        self.note(note)
        return self.figure

    def legend(self, per_row: int = PER_ROW, of: slice = slice(None)) -> None:
        """Every entry of the panels, each word once, above them in equal rows.

        A row has fewer than asked for where the figure is too narrow for them.
        """
        if not self.whole:
            return
        entries: dict[str, Any] = {}
        for axis in self.axes[of]:
            for label, handle in in_order(axis):
                entries.setdefault(label, handle)
        if entries:
            legend = self._legend(entries, per_row)
            for entry in legend.legend_handles:
                if isinstance(entry, Line2D) and entry.get_marker() == ".":
                    entry.set_markersize(max(DOT, entry.get_markersize()))

    def _legend(self, entries: dict[str, Any], per_row: int) -> Legend:
        rows = -(-len(entries) // per_row)
        columns = -(-len(entries) // rows)
        legend = self.figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside upper center",
            ncols=columns,
        )
        if columns > 1 and legend.get_window_extent().width > self.figure.bbox.width:
            legend.remove()
            return self._legend(entries, columns - 1)
        return legend

    def letters(self) -> None:
        """Panels are (a), (b), ... before their titles on the left."""
        if not self.whole or len(self.axes) == 1:
            return
        for axis, letter in zip(self.axes, string.ascii_lowercase, strict=False):
            words = axis.get_title(loc="left")
            axis.set_title(f"({letter})  {words}".rstrip(), loc="left", pad=4)

    def note(self, words: str) -> None:
        """Small print below the panels, in lines no longer than the figure is wide."""
        if self.whole and words:
            letters = PER_INCH * self.figure.get_figwidth()
            lines = [in_lines(line, letters) for line in words.split("\n")]
            self.figure.supxlabel("\n".join(lines), fontsize=8, linespacing=1.0)


def in_lines(words: str, letters: float) -> str:
    """A line broken after commas and semicolons, but not within formulas.

    There is room for so many `letters`.
    """
    lines = [""]
    for part in re.split(r"(?<=[,;]) (?=(?:[^$]*\$[^$]*\$)*[^$]*$)", words):
        longer = f"{lines[-1]} {part}".strip()
        shown = re.sub(r"\\[a-zA-Z]+", "x", longer).translate(UNSEEN)
        if lines[-1] and len(shown) > letters:
            lines.append(part)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def in_order(axis: Axes) -> list[tuple[str, Any]]:
    """Words and artists of the legend of an axis, as they were drawn."""
    handles, labels = axis.get_legend_handles_labels()
    children = axis.get_children()
    drawn = lambda entry: children.index(
        entry[1][0] if isinstance(entry[1], Container) else entry[1]
    )
    return sorted(zip(labels, handles, strict=True), key=drawn)


def sheet(axes: PanelAxes, count: int, make: Callable[[], Sequence[Axes]]) -> Sheet:
    """The axes that are given, so many, or those that `make` gives in a new figure."""
    if axes is None:
        return Sheet(list(make()), True)
    panels = [axes] if isinstance(axes, Axes) else list(np.ravel(np.asarray(axes)))
    if len(panels) != count:
        raise ValueError(f"axes: this picture has {count} panels; got {len(panels)}.")
    return Sheet(panels, False)


def panels(
    axes: PanelAxes,
    width: float,
    height: float,
    rows: int = 1,
    columns: int = 1,
    count: int | None = None,
    **options: Any,
) -> Sheet:
    """The given axes, or those of a new figure, as of `grid`."""
    make = lambda: grid(width, height, rows, columns, count, **options)
    return sheet(axes, count or rows * columns, make)


def single(ax: Axes | None, width: float, height: float) -> Sheet:
    """The given axis, or that of a new figure of this size in inches."""
    return panels(ax, width, height)


def grid(
    width: float,
    height: float,
    rows: int = 1,
    columns: int = 1,
    count: int | None = None,
    **options: Any,
) -> list[Axes]:
    """Panels of a new figure, row by row; those beyond the count are left out.

    Width and height are in inches; `options` are those of `Figure.subplots`.
    """
    figure = style.figure(width, height)
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for axis in axes[count or len(axes) :]:
        axis.remove()
    return axes[: count or len(axes)]
