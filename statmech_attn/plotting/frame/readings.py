"""A figure for the page of the explorer: its image, and what can be read off it.

    readable(figure) -> {"image": "<svg ...", "panels": [...], ...}

The page shows the image that matplotlib makes, and tells the numbers at the pointer
(explore/page/sheet.js).  Numbers are those that the figure was given.  A mark of a
panel has `places`, of points (x, y) or of areas (x, y, half width, half height) in
percent of the panel, and for each of them `numbers`, which stand between its `words`.
"""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.colors import BoundaryNorm
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from statmech_attn.plotting.frame import sheets, style
from statmech_attn.plotting.frame.axis_words import plain
from statmech_attn.presentation import quantity


Mark = dict[str, Any]
Texts = Callable[[int], list[str]]
POINTS = 10_000  # of a mark that are told; of more, those farther apart
HEAVY = 5_000  # points of a line, or cells
APART = 0.2  # percent of a panel by which points are told apart
SOLVED: Any = {"color": style.GREY, "lw": 0.8, "ls": "--", "label": "computed here"}
BEHIND = 8  # pixels by which a line across is farther than a point
_TOLD: WeakKeyDictionary[Artist, str] = WeakKeyDictionary()


def tell(artist: Artist, words: str) -> None:
    """Say more of an artist than its place, where a page shows it."""
    _TOLD[artist] = words


@style.styled
def readable(figure: Figure, solved: float | None = None) -> dict[str, Any]:
    """A figure as an SVG image, with the places of its numbers.

    Args:
        figure: as a registered picture draws it.
        solved: a width that is marked, since a file does not hold what is drawn there.

    Returns:
        `image`; `size` in inches; `note`, its small print; and `panels`, each with
        its `place` (left, top, width, height in percent), its `words`, and `marks`.

    Example:
        >>> figure = Figure()
        >>> _ = figure.subplots().plot([0, 1], [2, 3], label="$U_1$")
        >>> (panel,) = readable(figure)["panels"]
        >>> panel["marks"][0]["numbers"]
        [['0', '2'], ['1', '3']]
    """
    image = io.StringIO()
    axes = [axis for axis in figure.axes if not hasattr(axis, "_colorbar")]
    named = {axis: _Names(axis, axes) for axis in axes}
    for axis, names in named.items():
        if solved is not None and names.x == plain(style.WORDS["width"]):
            axis.axvline(solved, **SOLVED)
        for artist in _as_pixels(axis):
            artist.set_rasterized(True)
    figure.dpi, layout = style.PNG_DPI, figure.get_layout_engine()
    if layout and any(axis.get_aspect() != "auto" for axis in axes):
        layout.execute(figure)  # its result is the start of another one
    FigureCanvasSVG(figure).print_svg(image, metadata=style.FORMATS["svg"][1])
    return {
        "image": image.getvalue(),
        "size": figure.get_size_inches().tolist(),
        "note": plain(figure.get_supxlabel()),
        "panels": _panels(figure, named),
    }


def _panels(figure: Figure, named: dict[Axes, "_Names"]) -> list[dict[str, Any]]:
    """What can be read off the panels; a twin is one with what it lies over."""
    of = [pair for axis in named for pair in sheets.in_order(axis)]
    for legend in [*figure.legends, *(axis.get_legend() for axis in named)]:
        words = [text.get_text() for text in legend.get_texts()] if legend else []
        of += zip(words, legend.legend_handles if legend else [])
    entries = {_look(handle): plain(words) for words, handle in reversed(of)}
    panels: dict[str, dict[str, Any]] = {}
    for axis, names in named.items():
        box = axis.get_position()
        place = 100 * np.array([box.x0, 1 - box.y1, box.width, box.height])
        panel = {"place": place.round(3).tolist(), "words": names.whole, "marks": []}
        panel = panels.setdefault(str(panel["place"]), panel)
        panel["marks"] += [m for m in _marks(axis, names, entries) if m["places"]]
    return list(panels.values())


def _as_pixels(axis: Axes) -> list[Artist]:
    """What is pixels in the image: many points, and what keeps its colours."""
    meshes = [x for x in axis.collections if isinstance(x, QuadMesh)]
    parts: list[Artist] = [x for x in axis.lines if np.size(x.get_xdata(False)) > HEAVY]
    for mesh in meshes:
        coded = isinstance(mesh.norm, BoundaryNorm)
        if not coded or np.size(mesh.get_coordinates()) > 2 * HEAVY:
            parts.append(mesh)
    bars = [x for x in axis.containers if isinstance(x, BarContainer)]
    return parts + (axis.texts if meshes or bars or axis.images else [])


class _Names:
    """Words of a panel; those that it shares with others of its row are its own."""

    def __init__(self, axis: Axes, axes: Sequence[Axes]):
        def words(read: Callable[[Axes], str], along: str = "") -> str:
            cells = lambda other: getattr(other.get_subplotspec(), along, None)
            beside = [x for x in axes if cells(x) == cells(axis) is not None]
            return plain(next(filter(None, map(read, [axis, *beside])), ""))

        title = lambda at: lambda x: re.sub(r"^\([a-z]\)\s*", "", x.get_title(at))
        self.axis = axis
        self.x = words(lambda x: x.get_xlabel(), "colspan").replace("\n", " ")
        self.y = words(lambda x: x.get_ylabel(), "rowspan").replace("\n", " ")
        titles = (
            words(title("left"), "rowspan"),
            words(title("center")),
            words(title("right"), "colspan"),
        )
        self.title = ", ".join(filter(None, titles))
        self.whole = ", ".join(filter(None, (self.title, f"{self.y} against {self.x}")))
        self.before = f"{self.title}: " if self.title and len(axes) > 1 else ""
        self.ticks = _ticks(axis.xaxis), _ticks(axis.yaxis)

    def number(self, value: Any, along: int = 0, half: Any = 0.0) -> str:
        """A coordinate, by the name of a tick that stands there."""
        names = (
            name for at, name in self.ticks[along].items() if abs(at - value) <= half
        )
        return next(names, _number(value))

    def mark(
        self, ends: Any, words: Sequence[str], texts: Texts, behind: int = 0
    ) -> Mark:
        """A mark of areas between ends in the panel's coordinates: x, x, y, y.

        `texts` gives the numbers of one of them, as many as `words` less one.
        """
        x, x_end, y, y_end = np.broadcast_arrays(*map(np.atleast_1d, ends))
        share = (self.axis.transData - self.axis.transAxes).transform
        first = 100 * share(np.column_stack([x, y]))
        last = 100 * share(np.column_stack([x_end, y_end]))
        middle, half = (first + last) / 2, abs(last - first) / 2
        shown = np.flatnonzero((abs(middle - 50) <= 51 + half).all(axis=1))
        cells = (middle[shown] / APART).round()
        chosen = np.unique(cells, axis=0, return_index=True)[1]
        while len(chosen) > POINTS:
            cells = (cells / 2).round()
            chosen = np.unique(cells, axis=0, return_index=True)[1]
        shown = shown[np.sort(chosen)]
        places = np.column_stack([middle[:, 0], 100 - middle[:, 1], half])[shown]
        size = 4 if half.any() else 2
        return {
            "places": places[:, :size].round(2).tolist(),
            "words": [self.before + words[0], *words[1:]],
            "numbers": [texts(i) for i in shown.tolist()],
            "behind": behind,
        }


def _marks(axis: Axes, names: _Names, entries: dict[str, str]) -> Iterator[Mark]:
    """Marks of an axis, each with what is told of it."""
    errors: dict[int, tuple[str, Any]] = {}
    parts: set[int] = set()
    for container in axis.containers:
        if isinstance(container, ErrorbarContainer):
            line, caps, bars = container.lines
            parts |= {id(part) for part in (*caps, *bars)}
            ends = _bar_ends(bars[-1]) if container.has_yerr else None
            errors[id(line)] = _label(container), ends
        elif isinstance(container, BarContainer) and container.patches:
            yield _bars(container, names)
    for line in axis.lines:
        if id(line) not in parts and line.get_visible():
            label, ends = errors.get(id(line), ("", None))
            label = label or _label(line) or entries.get(_look(line), "")
            yield from _line(line, names, label, ends)
    for collection in axis.collections:
        if isinstance(collection, LineCollection) and id(collection) not in parts:
            yield _levels(collection, names)
    for image in [*axis.images, *axis.collections]:
        if isinstance(image, AxesImage | QuadMesh):
            yield from _cells(image, names)


def _line(line: Line2D, names: _Names, label: str, ends: Any) -> Iterator[Mark]:
    """The points of a line with their errors, or a line across the panel."""
    axis, before = names.axis, f"{label}: " if label else ""
    x, y = (np.ma.filled(np.ma.asarray(v, float), np.nan) for v in line.get_data(False))
    through = line.get_transform()
    if through is axis.get_yaxis_transform(which="grid"):
        words, value = [f"{before}{names.y} ", ""], _number(y[0])
        yield names.mark(
            (*axis.get_xlim(), y[0], y[0]), words, lambda _: [value], BEHIND
        )
    elif through is axis.get_xaxis_transform(which="grid"):
        words, value = [f"{before}{names.x} ", ""], names.number(x[0])
        yield names.mark(
            (x[0], x[0], *axis.get_ylim()), words, lambda _: [value], BEHIND
        )
    elif through is axis.transData:
        known = ends if np.shape(ends) == (len(y), 2) else np.full((len(y), 2), np.nan)
        texts = lambda i: [names.number(x[i]), _with_error(y[i], *known[i])]
        more = _TOLD.get(line, "")
        words = [f"{before}{names.x} ", f", {names.y} ", f"; {more}" if more else ""]
        yield names.mark((x, x, y, y), words, texts, -BEHIND if more else 0)


def _bars(container: BarContainer, names: _Names) -> Mark:
    boxes = np.array([patch.get_bbox().extents for patch in container.patches])
    left, foot, right, top = boxes.T
    ends = np.full((len(boxes), 2), np.nan)
    if container.errorbar is not None:
        ends = _bar_ends(container.errorbar.lines[2][0]) - foot[:, None]

    def texts(i: int) -> list[str]:
        place = names.number((left[i] + right[i]) / 2, 0, (right[i] - left[i]) / 2)
        return [place, _with_error(top[i] - foot[i], *ends[i])]

    label = _label(container)
    words = [f"{label}: {names.x} " if label else f"{names.x} ", f", {names.y} ", ""]
    return names.mark((left, right, foot, top), words, texts)


def _levels(collection: LineCollection, names: _Names) -> Mark:
    """The horizontal ones of lines between two points."""
    two = [x for x in collection.get_segments() if len(x) == 2]
    ends = [x for x in two if x[0, 1] == x[1, 1] and x[0, 0] != x[1, 0]]
    corners = np.reshape(ends, (-1, 4)).T[[0, 2, 1, 3]]
    words = [f"{_label(collection) or names.x}: {names.y} ", ""]
    return names.mark(corners, words, lambda i: [_number(corners[2, i])], BEHIND)


def _cells(image: QuadMesh | AxesImage, names: _Names) -> Iterator[Mark]:
    """The values of a matrix with their errors."""
    values = np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan)
    if values.ndim > 2:  # colours
        return
    if isinstance(image, QuadMesh):
        corners = np.asarray(image.get_coordinates())
        x, y = corners[0, :, 0], corners[:, 0, 1]
        values = values.reshape(len(y) - 1, len(x) - 1)
    else:
        left, right, bottom, top = image.get_extent()
        first, last = (bottom, top) if image.origin == "lower" else (top, bottom)
        x = np.linspace(left, right, values.shape[1] + 1)
        y = np.linspace(first, last, values.shape[0] + 1)
    step = max(1, int(np.ceil(np.sqrt(values.size / POINTS))))
    rows, columns = np.indices(values.shape)[:, ::step, ::step].reshape(2, -1)
    errors = np.broadcast_to(getattr(image, "errors", np.nan), values.shape)
    figure = image.get_figure(root=True)
    bars = [getattr(axis, "_colorbar", None) for axis in figure.axes]  # type: ignore[union-attr]
    labels = (
        b.ax.get_ylabel() or b.ax.get_xlabel() for b in [image.colorbar, *bars] if b
    )
    label = plain(next(filter(None, labels), ""))

    def texts(i: int) -> list[str]:
        row, column = rows[i], columns[i]
        across, up = (x[column] + x[column + 1]) / 2, (y[row] + y[row + 1]) / 2
        value = _number(values[row, column], errors[row, column])
        return [names.number(across), names.number(up, 1), value]

    known = np.where(np.isfinite(values[rows, columns]), 0.0, np.nan)
    ends = x[columns] + known, x[columns + 1], y[rows], y[rows + 1]
    words = [f"{names.x} ", f", {names.y} ", f": {label} " if label else ": ", ""]
    yield names.mark(ends, words, texts)


def _label(artist: Any) -> str:
    """Words of an artist in a legend."""
    label = str(artist.get_label())
    return "" if label.startswith("_") else plain(label)


def _look(artist: Any) -> str:
    """What lines of one entry of a legend have in common; of nothing else the same."""
    line = artist.lines[0] if isinstance(artist, ErrorbarContainer) else artist
    if not isinstance(line, Line2D):
        return str(id(line))
    look = line.get_color(), line.get_linestyle(), line.get_marker()
    return str((*look, line.get_markerfacecolor()))


def _ticks(axis: Axis) -> dict[float, str]:
    """Names of the places of an axis, if it has some."""
    locator = axis.get_major_locator()
    if not isinstance(locator, FixedLocator):
        return {}
    places = [float(at) for at in locator()]
    names = axis.get_major_formatter().format_ticks(places)
    return dict(zip(places, (plain(n).replace("\n", " ") for n in names), strict=True))


def _bar_ends(bars: LineCollection) -> np.ndarray:
    """Lower and upper ends of error bars."""
    paths = [np.ma.filled(path.vertices, np.nan) for path in bars.get_paths()]
    return np.array([x[:2, 1] if len(x) > 1 else [np.nan] * 2 for x in paths])


def _with_error(value: Any, low: Any, high: Any) -> str:
    """A value between the ends of its error bar."""
    if abs(high + low - 2 * value) > 0.01 * (high - low) > 0:
        return f"{_number(value)} ({_number(low)} to {_number(high)})"
    return _number(value, (high - low) / 2)


def _number(value: Any, error: Any = np.nan) -> str:
    """A number with its error as people write it."""
    words = re.sub(r"e([+-])0?(\d+)", r"·10^{\1\2}", quantity(value, error))
    return words.replace("+", "").replace("-", "−")
