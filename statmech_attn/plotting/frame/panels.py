"""A drawn figure as plain data: what its panels show, as numbers and words.

    panels(figure) -> {"panels": [...], "legend": [...], "note": "..."}

A figure is described once, by the function that draws it; the page of the explorer
draws the same panels from this data (explore/page/panels.js).  Numbers are those that
the figure was given.  A panel has a title, the axes `x`, `y` and, of twins, `right`,
a legend, and marks in the order in which they are drawn:

    line        x, y, error (ends of the bars), dash, marker, step
    band        x, low, high
    bars        left, right, base, top, error
    segments    ends
    level, place    a line across at one value of y, or of x
    span        a range of one axis
    cells       edges x and y, values, errors, and the colours of a range
    text        words at a place

A mark has `words`, its entry in the legend, and `told`, what else is said of it.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import (
    FillBetweenPolyCollection,
    LineCollection,
    QuadMesh,
)
from matplotlib.colors import BoundaryNorm, ListedColormap, to_hex
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import Transform

from statmech_attn.plotting.frame import style


Mark = dict[str, Any]
POINTS = 10_000  # of a line; of more, every so many, or the extremes of every so many
CELLS = 300  # of a matrix, along each of its axes
UNDRAWN = (None, "None", "none", " ", "")  # lines and markers
STOPS = 33  # colours of a continuous scale
WIDE = 3.6  # inches of a panel that takes a row of the page
LOW = 0.5  # inches of a panel that is a ribbon
SIGNS = {
    "cdot": "·",
    "ell": "ℓ",
    "equiv": "≡",
    "geq": "≥",
    "infty": "∞",
    "lambda": "λ",
    "langle": "⟨",
    "leq": "≤",
    "left": "",
    "pm": "±",
    "prime": "′",
    "propto": "∝",
    "rangle": "⟩",
    "right": "",
    "sum": "∑",
    "times": "×",
    "to": "→",
    ",": " ",
    ";": " ",
    "!": "",
}


_TOLD: WeakKeyDictionary[Artist, str] = WeakKeyDictionary()
SOLVED: Mark = {
    "type": "place",
    "words": "computed here",
    "colour": style.GREY,
    "width": 0.8,
    "dash": [3.0, 2.0],
    "alpha": 1.0,
}


class Unread(ValueError):
    """An artist of a figure that has no description here."""


def panels(figure: Figure, solved: float | None = None) -> dict[str, Any]:
    """All panels of a figure as plain data: lines, points, areas, words.

    Args:
        figure: as a registered picture draws it.
        solved: a width that is marked, since a file does not hold what is drawn there.

    Raises:
        Unread: it holds an artist that is none of those listed above.

    Example:
        >>> figure = Figure()
        >>> _ = figure.subplots().plot([0, 1], [2, 3], label="$U_1$")
        >>> (panel,) = panels(figure)["panels"]
        >>> panel["marks"][0]["y"], panel["marks"][0]["words"]
        ([2.0, 3.0], 'U_{1}')
    """
    axes = [axis for axis in figure.axes if not hasattr(axis, "_colorbar")]
    pairs = [(axis, _of_axes(axis)) for axis in axes]
    every = [mark for _, marks in pairs for mark in marks]
    drawn: list[dict[str, Any]] = []
    for axis, marks in pairs:
        if base := _twin(axis, axes):
            panel = drawn[axes.index(base)]
            panel["right"] = _scale(axis.yaxis)
            panel["marks"] += [mark | {"twin": True} for mark in marks]
        else:
            panel = _frame(axis, axes) | {"marks": marks}
        panel["legend"] += _entries(axis.get_legend(), every)
        drawn.append(panel)
    legend = [entry for above in figure.legends for entry in _entries(above, every)]
    named = {_look(entry): entry["words"] for entry in legend}
    for panel in drawn:
        panel["marks"] = [mark for mark in panel["marks"] if _has_data(mark)]
        for mark in panel["marks"]:
            mark["words"] = mark.get("words") or named.get(_look(mark), "")
        if solved is not None and panel["x"]["words"] == plain(style.WORDS["width"]):
            panel["marks"].append(SOLVED | {"value": solved})
    shown = [p for p, axis in zip(drawn, axes, strict=True) if not _twin(axis, axes)]
    return {"panels": shown, "legend": legend, "note": plain(figure.get_supxlabel())}


def plain(words: str) -> str:
    r"""Words with formulas as characters; `_{...}` and `^{...}` stand low and high.

    Args:
        words: of a figure, with formulas between dollar signs.

    Example:
        >>> plain(r"width $N_0$, $m^{o,\mathrm{SE}}_1$, $\beta \to \infty$")
        'width N_{0}, m^{o,SE}_{1}, β → ∞'
    """
    parts = words.split("$")
    if len(parts) % 2 == 0:
        return words
    return "".join(_formula(x) if i % 2 else x for i, x in enumerate(parts))


def _formula(text: str) -> str:
    text = re.sub(r"\\(?:mathrm|mathit|mathbf|mathdefault)(?=\{)", "", text)
    text = re.sub(r"\\([A-Za-z]+|.)", lambda found: _sign(found[1]), text)
    text = text.replace("^′", "′").replace("'", "′").replace("-", "−")
    text = re.sub(r"([_^])([^{}\s])", r"\1{\2}", text)
    return re.sub(r"(?<![_^])\{([^{}]*)\}", r"\1", text)


def _sign(command: str) -> str:
    if command in SIGNS:
        return SIGNS[command]
    size = "CAPITAL" if command[0].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {command.upper()}")
    except KeyError:
        return command


def _frame(axis: Axes, axes: Sequence[Axes]) -> dict[str, Any]:
    """Title, axes and shape of a panel; words that it shares are its own here."""
    left, middle, right = _titles(axis)
    x, y = _scale(axis.xaxis), _scale(axis.yaxis)
    place = axis.get_subplotspec()
    for other in axes:
        theirs = other.get_subplotspec()
        if place is None or theirs is None or _twin(other, axes):
            continue
        if theirs.colspan == place.colspan:
            x["words"] = x["words"] or plain(other.get_xlabel())
            right = right or _titles(other)[2]
        if theirs.rowspan == place.rowspan:
            y["words"] = y["words"] or plain(other.get_ylabel())
            left = left or _titles(other)[0]
    figure = axis.get_figure(root=True)
    assert figure is not None
    width, height = axis.get_position().size * figure.get_size_inches()
    shape = "square" if axis.get_aspect() != "auto" or axis.get_box_aspect() else ""
    if not shape:
        shape = "low" if height < LOW else "wide" if width > WIDE else ""
    title = ", ".join(filter(None, (left, middle, right)))
    return {"title": title, "x": x, "y": y, "shape": shape, "legend": []}


def _titles(axis: Axes) -> list[str]:
    """Titles on the left, in the middle and on the right, without a letter."""
    titles = [axis.get_title(loc=loc) for loc in ("left", "center", "right")]
    return [plain(re.sub(r"^\([a-z]\)\s*", "", title)) for title in titles]


def _twin(axis: Axes, axes: Sequence[Axes]) -> Axes | None:
    """The panel over which an axis with a scale of its own on the right lies."""
    place = axis.get_subplotspec()
    first = next(other for other in axes if other.get_subplotspec() == place)
    return None if place is None or first is axis else first


def _scale(axis: Axis) -> dict[str, Any]:
    """Words, kind and range of an axis, and the names of its places if it has some."""
    kind = axis.get_scale()
    if kind not in ("linear", "log", "symlog"):
        raise Unread(f"an axis whose scale is {kind}")
    theta = float(getattr(axis.get_transform(), "linthresh", 0.0))
    of = axis.axes
    low, high = of.get_xlim() if axis is of.xaxis else of.get_ylim()
    locator, ticks = axis.get_major_locator(), None
    if isinstance(locator, FixedLocator):
        places = list(locator())
        names = axis.get_major_formatter().format_ticks(places)
        pairs = zip(places, names, strict=True)
        ticks = [[float(at), plain(name).replace("\n", " ")] for at, name in pairs]
    words = plain(axis.get_label_text()).replace("\n", " ")
    scale = {
        "words": words,
        "kind": kind,
        "range": [float(low), float(high)],
        "ticks": ticks,
    }
    return scale | {"theta": theta if kind == "symlog" else 0.0}


def _of_axes(axis: Axes) -> list[Mark]:
    """Marks of an axis, in the order in which they are drawn."""
    frame = [axis.xaxis, axis.yaxis, axis.patch, axis.get_legend(), *axis.tables]
    frame += [*axis.spines.values(), axis.title, axis._left_title, axis._right_title]  # type: ignore[attr-defined]
    known = {id(artist) for artist in frame}
    marks: list[tuple[float, Mark]] = []
    bars_first = sorted(axis.containers, key=lambda x: isinstance(x, ErrorbarContainer))
    for container in bars_first:
        if id(container) in known:
            continue
        if isinstance(container, BarContainer):
            mark, parts = _bars(container)
        elif isinstance(container, ErrorbarContainer):
            mark, parts = _with_bars(container)
        else:
            raise Unread(type(container).__name__)
        known |= {id(part) for part in parts}
        if mark:
            mark["words"] = _words(container)
            marks.append((parts[0].get_zorder(), mark))
    for artist in axis.get_children():
        if id(artist) not in known and artist.get_visible():
            marks += [(artist.get_zorder(), mark) for mark in _of(artist, axis)]
    return [mark for _, mark in sorted(marks, key=lambda pair: pair[0])]


def tell(artist: Artist, words: str) -> None:
    """Say more of an artist than its place, where a page shows it."""
    _TOLD[artist] = words


def _of(artist: Artist, axis: Axes) -> Iterator[Mark]:
    """Marks of an artist."""
    words = {"words": _words(artist)}
    if artist in _TOLD:
        words["told"] = _TOLD[artist]
    if isinstance(artist, Line2D):
        yield _line(artist, axis) | words
    elif isinstance(artist, FillBetweenPolyCollection):
        yield from (mark | words for mark in _bands(artist))
    elif isinstance(artist, LineCollection):
        yield _segments(artist) | words
    elif isinstance(artist, QuadMesh | AxesImage):
        yield _cells(artist)
    elif isinstance(artist, Text):
        if artist.get_text() and not re.fullmatch(r"\([a-z]\)", artist.get_text()):
            yield _text(artist, axis)
    elif isinstance(artist, Rectangle):
        yield _span(artist, axis) | words
    else:
        raise Unread(type(artist).__name__)


def _coordinates(transform: Transform, axis: Axes) -> list[str]:
    """What x and y of an artist are: data, or shares of its panel."""
    known = (
        (axis.transData, ["data", "data"]),
        (axis.transAxes, ["axes", "axes"]),
        (axis.get_xaxis_transform(which="grid"), ["data", "axes"]),
        (axis.get_yaxis_transform(which="grid"), ["axes", "data"]),
    )
    for candidate, names in known:
        if candidate is transform:
            return names
    raise Unread("an artist that is not in the coordinates of its panel")


def _words(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else plain(label)


def _line(line: Line2D, axis: Axes) -> Mark:
    """A line with its markers, or a line across the panel."""
    x, y = (np.ma.filled(np.ma.asarray(v, float), np.nan) for v in line.get_data(False))
    at = _coordinates(line.get_transform(), axis)
    if at == ["axes", "data"]:
        along = {"type": "level", "value": float(y[0])}
    elif at == ["data", "axes"]:
        along = {"type": "place", "value": float(x[0])}
    elif at == ["axes", "axes"]:
        raise Unread("a line that is not in the coordinates of its panel")
    else:
        chosen = _thinned(y, line.get_linestyle() not in UNDRAWN)
        along = {"type": "line", "x": _numbers(x[chosen]), "y": _numbers(y[chosen])}
    return along | _drawn(line)


def _drawn(line: Line2D) -> Mark:
    """How a line and its markers look."""
    solid = line.get_linestyle() not in UNDRAWN
    marker = "" if line.get_marker() in UNDRAWN else str(line.get_marker())
    dash = line._unscaled_dash_pattern[1]  # type: ignore[attr-defined]
    step = line.get_drawstyle()
    filled = line.get_markerfacecolor() if marker else "none"
    return {
        "colour": to_hex(line.get_color()),
        "alpha": line.get_alpha() or 1.0,
        "width": line.get_linewidth() if solid else 0.0,
        "dash": list(dash or []),
        "step": {"default": "", "steps": "pre"}.get(step, step.removeprefix("steps-")),
        "marker": marker,
        "size": line.get_markersize(),
        "fill": _hex(filled),
        "edge": _hex(line.get_markeredgecolor()) if marker else None,
        "edge_width": line.get_markeredgewidth(),
    }


def _with_bars(container: ErrorbarContainer) -> tuple[Mark, list[Any]]:
    """A line with error bars, and the artists that it is made of."""
    line, caps, bars = container.lines
    axis = None if line is None else line.axes
    if line is None or not isinstance(axis, Axes):
        raise Unread("error bars without points")
    mark = _line(line, axis)
    if container.has_xerr:
        raise Unread("error bars along x")
    for collection in bars:
        ends = [np.ma.filled(path.vertices, np.nan) for path in collection.get_paths()]
        if len(ends) != len(mark["x"]):
            raise Unread("error bars of some points alone")
        mark["error"] = [_numbers([end[side][1] for end in ends]) for side in (0, 1)]
    return mark, [line, *bars, *caps]


def _bands(collection: FillBetweenPolyCollection) -> Iterator[Mark]:
    """The areas between two curves over x, one for each stretch without gaps."""
    colour = np.asarray(collection.get_facecolor())[0]
    look = {"type": "band", "colour": _hex(colour), "alpha": float(colour[-1])}
    if not collection.get_paths():
        yield look | {"x": [], "low": [], "high": []}
    for path in collection.get_paths():
        outline = np.asarray(path.vertices)[1:-1]
        half = len(outline) // 2
        forth, back = outline[:half], outline[-half:][::-1]
        if not np.array_equal(forth[:, 0], back[:, 0]):
            raise Unread("an area that is none between two curves over x")
        low, high = np.sort([forth[:, 1], back[:, 1]], axis=0)
        x, low, high = (_numbers(v) for v in (forth[:, 0], low, high))
        yield look | {"x": x, "low": low, "high": high}


def _bars(container: BarContainer) -> tuple[Mark | None, list[Any]]:
    """Bars with their errors, and what they are made of."""
    parts: list[Any] = [*container.patches]
    patches = container.patches
    if not patches:
        return None, parts
    left = np.array([patch.get_x() for patch in patches])
    base = np.array([patch.get_y() for patch in patches])
    width = np.array([patch.get_width() for patch in patches])
    height = np.array([patch.get_height() for patch in patches])
    mark = {
        "type": "bars",
        "left": _numbers(left),
        "right": _numbers(left + width),
        "base": _numbers(base),
        "top": _numbers(base + height),
        "colours": [to_hex(patch.get_facecolor()) for patch in patches],
        "colour": to_hex(patches[0].get_facecolor()),
        "alpha": float(patches[0].get_facecolor()[-1]),
    }
    if container.errorbar is not None:
        _, caps, bars = container.errorbar.lines
        parts += [container.errorbar, *caps, *bars]
        ends = np.array([path.vertices for path in bars[0].get_paths()])
        mark["error"] = [_numbers(ends[:, end, 1]) for end in (0, 1)]
    return mark, parts


def _segments(collection: LineCollection) -> Mark:
    paths = [np.asarray(path.vertices) for path in collection.get_paths()]
    if any(len(path) != 2 for path in paths):
        raise Unread("a collection of lines of several pieces")
    colours = [to_hex(colour) for colour in np.asarray(collection.get_color())]
    (_, dash), *_ = collection.get_linestyle()  # type: ignore[misc]
    return {
        "type": "segments",
        "ends": [_numbers(path.ravel()) for path in paths],
        "colours": colours,
        "colour": colours[0],
        "width": float(np.ravel(collection.get_linewidth())[0]),
        "dash": list(dash or []),
        "alpha": 1.0,
    }


def _cells(image: QuadMesh | AxesImage) -> Mark:
    """A matrix in colours: edges of its cells, values, errors, and the colour scale."""
    values = np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan)
    if isinstance(image, QuadMesh):
        corners = np.asarray(image.get_coordinates())
        x, y = corners[0, :, 0], corners[:, 0, 1]
        if not ((corners[..., 0] == x).all() and (corners[..., 1].T == y).all()):
            raise Unread("cells that are no rectangles")
        values = values.reshape(len(y) - 1, len(x) - 1)
    else:
        if values.ndim != 2:
            raise Unread("an image of colours")
        left, right, bottom, top = image.get_extent()
        first, last = (bottom, top) if image.origin == "lower" else (top, bottom)
        x = np.linspace(left, right, values.shape[1] + 1)
        y = np.linspace(first, last, values.shape[0] + 1)
    rows, columns = (max(1, -(-count // CELLS)) for count in values.shape)
    thin = lambda table: [_numbers(row) for row in table[::rows, ::columns]]
    errors = getattr(image, "errors", None)
    return _colours(image) | {
        "type": "cells",
        "x": _numbers(np.append(x[:-1:columns], x[-1])),
        "y": _numbers(np.append(y[:-1:rows], y[-1])),
        "values": thin(values),
        "errors": None if errors is None else thin(np.asarray(errors)),
        "every": [columns, rows],
    }


def _colours(image: QuadMesh | AxesImage) -> Mark:
    """Colours of values: of a range, or of codes with bounds between them."""
    norm, cmap = image.norm, image.get_cmap()
    if (
        isinstance(norm, BoundaryNorm)
        or isinstance(cmap, ListedColormap)
        and cmap.N < 20
    ):
        count = cmap.N
        bounds = getattr(norm, "boundaries", None)
        if bounds is None:
            low, high = _ends(image)
            bounds = np.linspace(low, high, count + 1)
        ends = [float(bounds[0]), float(bounds[-1])]
        scale = {"bounds": _numbers(bounds)}
    else:
        count, ends, scale = STOPS, _ends(image), {}
        if (
            ends[1] > ends[0]
            and not np.isclose(norm(np.array([np.mean(ends)])), 0.5).all()
        ):
            raise Unread("colours on a scale that is not even")
    stops = [to_hex(cmap(i / max(count - 1, 1))) for i in range(count)]
    figure = image.get_figure(root=True)
    assert figure is not None
    bar = image.colorbar
    bars = [axis._colorbar for axis in figure.axes if hasattr(axis, "_colorbar")]  # type: ignore[attr-defined]
    words = [
        b.ax.get_ylabel() or b.ax.get_xlabel() for b in ([bar] if bar else []) + bars
    ]
    label = next(filter(None, words), "")
    return scale | {"range": ends, "stops": stops, "words": plain(label)}


def _ends(image: QuadMesh | AxesImage) -> list[float]:
    """The range of the colours of a matrix."""
    image.autoscale_None()
    return [float(end) for end in image.get_clim() if end is not None]


def _text(text: Text, axis: Axes) -> Mark:
    (x, y), offset = text.get_position(), (0.0, 0.0)
    if isinstance(text, Annotation):
        if text.anncoords != "offset points" or text.xycoords != "data":
            raise Unread("a note that is not at a point of its panel")
        offset, (x, y), at = (x, y), text.xy, ["data", "data"]
    else:
        at = _coordinates(text.get_transform(), axis)
    return {
        "type": "text",
        "text": plain(text.get_text()),
        "x": float(x),
        "y": float(y),
        "at": at,
        "offset": list(offset),
        "colour": to_hex(text.get_color()),
        "align": [text.get_horizontalalignment(), text.get_verticalalignment()],
    }


def _span(patch: Rectangle, axis: Axes) -> Mark:
    low, size = patch.get_xy(), (patch.get_width(), patch.get_height())
    at = _coordinates(patch.get_data_transform(), axis)
    if at[0] == at[1]:
        raise Unread("a rectangle that is no bar and no range of an axis")
    along = at.index("data")
    return {
        "type": "span",
        "axis": "xy"[along],
        "from": float(low[along]),
        "to": float(low[along] + size[along]),
        "colour": to_hex(patch.get_facecolor()),
        "alpha": float(patch.get_facecolor()[-1]),
    }


def _entries(legend: Any, marks: Sequence[Mark]) -> list[Mark]:
    """Entries of a legend: the look of what has these words, without its numbers."""
    entries = []
    for text, handle in (
        zip(legend.get_texts(), legend.legend_handles, strict=True) if legend else ()
    ):
        words = plain(text.get_text())
        if not words:
            continue
        of = next((m for m in marks if m.get("words") == words and "colour" in m), None)
        if of is None:
            colour = getattr(handle, "get_facecolor", None) or handle.get_color
            of = {"type": "span", "colour": _hex(colour()), "alpha": 1.0}
            if isinstance(handle, Line2D):
                of = {"type": "line"} | _drawn(handle)
        look = {n: v for n, v in of.items() if n in SHOWN or n == "type"}
        entries.append(look | {"words": words})
    return entries


SHOWN = ("colour", "alpha", "width", "dash", "marker", "size", "fill", "edge")


def _look(mark: Mark) -> str:
    """What marks of one entry of a legend have in common."""
    return repr([mark.get(name) for name in ("colour", "dash", "marker", "fill")])


def _has_data(mark: Mark) -> bool:
    """Whether a mark is more than an entry of a legend."""
    if mark["type"] in ("level", "place"):
        return bool(np.isfinite(mark["value"]))
    of = {"line": "y", "band": "x", "bars": "top", "segments": "ends"}
    values = mark.get(of.get(mark["type"], ""), [1])
    return any(value is not None for value in values)


def _thinned(y: np.ndarray, joined: bool) -> np.ndarray:
    """Numbers of the points that are given; of a line, its extremes and its gaps."""
    if len(y) <= POINTS:
        return np.arange(len(y))
    if not joined:
        return np.arange(0, len(y), -(-len(y) // POINTS))
    length = -(-2 * len(y) // POINTS)
    chosen = set()
    for first in range(0, len(y), length):
        part = y[first : first + length]
        finite = np.isfinite(part)
        low, high = (np.where(finite, part, end) for end in (np.inf, -np.inf))
        places = [low.argmin(), high.argmax()] if finite.any() else []
        if not finite.all():
            places.append(finite.argmin())
        chosen |= {first + int(place) for place in places}
    return np.array(sorted(chosen))


def _numbers(values: Any) -> list[float | None]:
    """Numbers of seven digits, as JSON has them; none where one is not finite."""
    numbers = np.asarray(values, float)
    return [float(f"{x:.7g}") if np.isfinite(x) else None for x in numbers]


def _hex(colour: Any) -> str | None:
    """A colour in six digits; none of what is not painted."""
    if isinstance(colour, str) and colour == "none":
        return None
    colour = np.ravel(colour)[:4] if not isinstance(colour, str) else colour
    return to_hex(colour) if isinstance(colour, str) or colour[-1] > 0 else None
