"""Branches of cycles with their bifurcations, and curves of these in two parameters.

Takes files of kind `continuation` (docs/hdf5.md).  Branches are shown by the observable
of a scan's stroboscopic section, so that they can be drawn over its diagram.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from statmech_attn.labels import unit_of, with_count
from statmech_attn.plotting.dynamics.bifurcation import bifurcation_samples
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.axis_words import is_own, label, shown
from statmech_attn.plotting.frame.readings import tell
from statmech_attn.plotting.frame.registry import has_variable, picture
from statmech_attn.plotting.frame.sheets import PanelAxes


INDIGO, WINE, PINK, OLIVE = "#332288", "#882255", "#E7298A", "#999933"  # of no phase
KINDS = {  # colour, marker and words of what can happen on a branch
    "fold": (INDIGO, "v", "fold"),
    "period_doubling": (WINE, "D", "period doubling"),
    "neimark_sacker": (PINK, "o", "Neimark–Sacker"),
    "transcritical": (OLIVE, "P", "transcritical"),
    "pitchfork": (OLIVE, "s", "pitchfork"),
    "period_halving": (WINE, "D", "period doubling"),  # seen from above
    "unresolved": (style.ORANGE, "X", "unresolved"),
}
DEGENERATE = {  # short names of points of codimension two, and what needs words
    "cusp": ("cusp", ""),
    "generalized_flip": ("GF", "generalised flip"),
    "chenciner": ("Ch", "Chenciner"),
    "resonance_1_1": ("1:1", "strong resonance"),
    "resonance_1_2": ("1:2", "strong resonance"),
    "resonance_1_3": ("1:3", "strong resonance"),
    "resonance_1_4": ("1:4", "strong resonance"),
    "fold_flip": ("FF", "fold and flip"),
    "fold_neimark_sacker": ("F–NS", "fold and Neimark–Sacker"),
    "flip_neimark_sacker": ("PD–NS", "period doubling and Neimark–Sacker"),
    "double_neimark_sacker": ("NS–NS", "two Neimark–Sacker"),
}
MARGIN = 0.02  # beside branches, of their range
CROWD = 20  # markers; more are drawn smaller
LINEAR = 20.0  # largest coefficient that an axis with even steps shows
STABILITY = {1: ("stable", "-", 1.2), 0: ("unstable", (0, (3, 2)), 0.8)}
MARK: dict[str, Any] = {
    "ms": 3.5,
    "mec": "white",
    "mew": 0.4,
    "ls": "none",
    "zorder": 4,
}


@picture("continuation", "continuation")
@style.styled
def continuation_diagram(
    *datasets: xr.Dataset,
    scan: xr.Dataset | None = None,
    zoom: tuple[float, float] | None = None,
    axes: PanelAxes = None,
) -> Figure:
    """Stable and unstable branches with their bifurcations, over those of a scan.

    Args:
        datasets: continuations in one free parameter, one or more.
        scan: a bifurcation file over the same parameter; its stroboscopic samples are
            drawn behind the branches, and its range is shown.
        zoom: part of that range that a second panel shows.
        axes: one to draw on, or two with a zoom.
    """
    free = _one_free(datasets)
    values = datasets[0][free].values if scan is None else scan[free].values
    low, high = np.nanmin(values), np.nanmax(values)
    beyond = 0.0 if scan is not None else MARGIN * (high - low)
    ranges = [(low - beyond, high + beyond)] + ([zoom] if zoom else [])
    count = len(ranges)
    sheet = sheets.panels(axes, style.DOUBLE, 3.5, 1, count, sharey=True)
    for axis, limits in zip(sheet.axes, ranges, strict=True):
        if scan is not None:
            bifurcation_samples(scan, section=False, ax=axis)
        for dataset in datasets:
            draw_cycles(axis, dataset, dataset)
        axis.set_xlim(limits)
    for axis in sheet.axes[1:] if sheet.whole else []:
        axis.set_ylabel("")
    return sheet.finish(notes.network(datasets[0]), 8)


@picture("critical_curves", "continuation", when=has_variable("curve_kind"))
@style.styled
def critical_curves(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Curves of bifurcations in two parameters, and what changes along them.

    Args:
        dataset: a result of kind `continuation`.
        axes: three to draw on, for the plane, the rotation number and the coefficient.
            Of its own the figure has no panel of rotation numbers where there are none.
    """
    free, second = _plane(dataset)
    turns = axes is not None or bool(dataset.curve_rotation.notnull().any())
    sheet = sheets.sheet(axes, 2 + turns, lambda: _panels(turns))
    plane, *upper, lower = sheet.axes
    bifurcation_curves(dataset, ax=plane)
    plane.margins(0.1, 0.06)
    _along(lower, dataset, "curve_coefficient", second)
    if float(np.abs(dataset.curve_coefficient).max()) > LINEAR:
        lower.set_yscale("symlog", linthresh=1.0)
    lower.axhline(0, color=style.BLACK, lw=0.5, zorder=1)
    lower.set_ylabel("normal-form\ncoefficient")
    for axis in upper:
        _along(axis, dataset, "curve_rotation", second)
        axis.set_ylabel(r"rotation number $\rho$")
    for axis in (*upper, lower):
        axis.set_xlabel(label(dataset, second))
    if sheet.whole and upper:
        upper[0].tick_params(labelbottom=False)
        upper[0].set_xlabel("")
    return sheet.finish(_plane_note(dataset), 8)


def draw_cycles(axis: Axes, dataset: xr.Dataset, special: xr.Dataset) -> None:
    """Branches over the free parameter, and the bifurcations of `special` on them."""
    _draw_branches(axis, dataset)
    _draw_points(axis, special)
    axis.set_xlabel(label(dataset, dataset.attrs["free"]))
    words = style.WORDS["section"] + r" at $t \equiv 0$ mod $C$"
    axis.set_ylabel(shown(dataset) if is_own(dataset) else words)


def _draw_branches(axis: Axes, dataset: xr.Dataset) -> None:
    """Unstable parts are dashed."""
    free = dataset.attrs["free"]
    for branch in range(dataset.sizes["branch"]):
        x, y, stable = followed(dataset, branch, free)
        for chosen, (words, dashes, width) in STABILITY.items():
            ends = either_side(stable == chosen)
            between_ends = np.where(ends[:, None], y, np.nan)
            lines = axis.plot(
                x, between_ends, color=style.BLACK, ls=dashes, lw=width, zorder=3
            )
            lines[0].set_label(words)


def _draw_points(axis: Axes, dataset: xr.Dataset) -> None:
    """Markers are hollow where a bifurcation is subcritical."""
    kinds = _kinds(dataset)
    crowded = kinds and int(dataset.special_strobe.count()) > CROWD
    size: dict[str, Any] = {"ms": 2.6, "mew": 0.3} if crowded else {}
    for i, kind in enumerate(kinds):
        criticality = dataset.special_criticality.attrs["flag_meanings"].split()
        point = dataset.isel(special=i)
        y = point.special_strobe.values
        x = np.full(y.shape, float(point[f"special_{dataset.attrs['free']}"]))
        colour, marker, words = KINDS[kind]
        subcritical = criticality[int(point.special_criticality)] == "subcritical"
        look: dict[str, Any] = (
            {"mfc": "white", "mec": colour} if subcritical else {"mfc": colour}
        )
        (drawn,) = axis.plot(x, y, marker, label=words, **(MARK | size | look))
        tell(drawn, _normal_form(point, criticality[int(point.special_criticality)]))


def _kinds(dataset: xr.Dataset) -> list[str]:
    """Kinds of the bifurcations on the branches of a file."""
    if "special_kind" not in dataset:
        return []
    names = dataset.special_kind.attrs["flag_meanings"].split()
    return [names[int(code)] for code in dataset.special_kind]


def _normal_form(point: xr.Dataset, criticality: str) -> str:
    """What a special point is beside its kind and place."""
    period = with_count(int(point.special_period), unit_of(point.special_period.attrs))
    parts = [f"period {period}"]
    if criticality != "none":
        parts.append(criticality)
    for name, words in (
        ("coefficient", "coefficient of the normal form"),
        ("rotation", "rotation number"),
    ):
        value = float(point[f"special_{name}"])
        if np.isfinite(value):
            parts.append(f"{words} {value:.6g}")
    return ", ".join(parts)


@style.styled
def bifurcation_curves(
    dataset: xr.Dataset,
    *,
    x: str | None = None,
    names: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Curves of bifurcations in the plane of two parameters.

    Lines are solid where the bifurcation is supercritical and dashed where it is not
    (folds are solid).  They have a white rim, so as to be seen over a phase diagram.

    Args:
        dataset: a result of kind `continuation`.
        x: the parameter across, one of the two; the continuation's free one when left
            out.
        names: whether to mark and name points of codimension two, and to write the
            period of the cycles at their curves where it is not the same for all.
        ax: one to draw on.

    Raises:
        ValueError: `x` is neither of the two parameters.
    """
    free, second = _plane(dataset)
    if x not in (None, free, second):
        raise ValueError(f"x must be {free!r} or {second!r}; got {x!r}.")
    across, up = (free, second) if x in (None, free) else (second, free)
    sheet = sheets.single(ax, style.SINGLE, 2.8)
    (axis,) = sheet.axes
    kinds = dataset.curve_kind.attrs["flag_meanings"].split()
    for i, code in enumerate(dataset.curve_kind.values):
        colour, _, words = KINDS[kinds[int(code)]]
        curve = dataset.isel(curve=i)
        points = curve[f"curve_{across}"].values, curve[f"curve_{up}"].values
        axis.plot(*points, color="white", lw=2.6, zorder=2.5)
        values, solid, dashed = curve_parts(curve, kinds[int(code)], across, up)
        for y, dashes in ((solid, "-"), (dashed, (0, (2, 1)))):
            axis.plot(values, y, color=colour, lw=1.3, ls=dashes, zorder=3, label=words)
            words = None
    if any(_subcritical_parts(dataset)):
        look = {"lw": 1.3, "color": style.GREY, "ls": "--"}
        axis.plot([], [], label="subcritical (dashed)", **look)
    if names:
        _name_periods(axis, dataset, across, up)
    if names and "degenerate_kind" in dataset:
        _name_degenerate(axis, dataset, across, up)
    axis.set_xlabel(label(dataset, across))
    axis.set_ylabel(label(dataset, up))
    if sheet.whole:
        axis.margins(2 * MARGIN)  # room for names
    return sheet.finish(_plane_note(dataset), 4)


def curve_parts(curve: xr.Dataset, kind: str, across: str, up: str):
    """A curve in the plane, NaN in the part that is drawn in the other way.

    Returns values across, values up where it is supercritical or a fold, and elsewhere.
    """
    points = curve[f"curve_{across}"].values, curve[f"curve_{up}"].values
    coefficient = _filled(curve.curve_coefficient.values)
    x, y, coefficient = _with_zeros(*points, coefficient)
    solid = _supercritical(kind, coefficient)
    parts = (np.where(either_side(part), y, np.nan) for part in (solid, ~solid))
    return x, *parts


def _plane_note(dataset: xr.Dataset) -> str:
    """Short names of the points of codimension two, and the fixed parameters."""
    short: dict[str, list[str]] = {}
    if "degenerate_kind" in dataset:
        kinds = dataset.degenerate_kind.attrs["flag_meanings"].split()
        for code in np.unique(dataset.degenerate_kind.values):
            name, words = DEGENERATE[kinds[int(code)]]
            if words:
                short.setdefault(words, []).append(name)
    explained = [f"{', '.join(names)}: {words}" for words, names in short.items()]
    fixed = notes.network(dataset.drop_vars(dataset.attrs["second"], errors="ignore"))
    return "; ".join([*explained, *filter(None, [fixed])])


def _name_periods(axis: Axes, dataset: xr.Dataset, across: str, up: str) -> None:
    """The period half way along each curve, where the curves have several."""
    periods = dataset.special_period.values[dataset.curve_origin.values]
    if len(np.unique(periods)) == 1:
        return
    for i, period in enumerate(periods):
        places = [dataset[f"curve_{name}"].values[i] for name in (across, up)]
        place = np.transpose(places)[np.isfinite(places[0])]
        extent = np.ptp(place, axis=0)
        steps = np.diff(place, axis=0) / np.where(extent > 0, extent, 1.0)
        along = np.cumsum(np.hypot(*steps.T))
        _name(axis, f"$p = {period}$", place[np.searchsorted(along, along[-1] / 2)])


def _name(axis: Axes, words: str, place: np.ndarray) -> None:
    """Words beside a point, with a white rim."""
    axis.annotate(
        words,
        (place[0], place[1]),
        xytext=(4, -1),
        fontsize=7,
        textcoords="offset points",
        va="center",
        zorder=5,
        path_effects=[withStroke(linewidth=2, foreground="white")],
    )


def _name_degenerate(axis: Axes, dataset: xr.Dataset, across: str, up: str) -> None:
    kinds = dataset.degenerate_kind.attrs["flag_meanings"].split()
    x, y = (dataset[f"degenerate_{name}"].values for name in (across, up))
    look = {"mfc": "white", "mec": style.BLACK, "mew": 0.5}
    axis.plot(x, y, "o", **(MARK | look))
    for code, place in zip(dataset.degenerate_kind.values, np.transpose([x, y])):
        _name(axis, DEGENERATE[kinds[int(code)]][0], place)


def _subcritical_parts(dataset: xr.Dataset) -> Iterator[bool]:
    """Whether each curve has points that `_supercritical` denies."""
    kinds = dataset.curve_kind.attrs["flag_meanings"].split()
    for i, code in enumerate(dataset.curve_kind):
        coefficient = dataset.curve_coefficient.values[i]
        coefficient = coefficient[~np.isnan(coefficient)]
        yield not _supercritical(kinds[int(code)], coefficient).all()


def _supercritical(kind: str, coefficient) -> np.ndarray:
    if kind == "fold":
        return np.ones(coefficient.shape, bool)
    return coefficient < 0 if kind == "neimark_sacker" else coefficient > 0


def _filled(coefficient: np.ndarray) -> np.ndarray:
    """Values between the neighbours' where a resonance leaves none."""
    finite = np.flatnonzero(np.isfinite(coefficient))
    if finite.size == 0:
        return coefficient
    return np.interp(np.arange(coefficient.size), finite, coefficient[finite])


def _with_zeros(x, y, coefficient: np.ndarray) -> tuple[np.ndarray, ...]:
    """A curve with the points where its coefficient changes sign, on straight lines."""
    before = np.flatnonzero(coefficient[:-1] * coefficient[1:] < 0)
    at = before + coefficient[before] / (coefficient[before] - coefficient[before + 1])
    between = lambda values: np.interp(at, np.arange(values.size), values)
    return tuple(
        np.insert(values, before + 1, between(values)) for values in (x, y, coefficient)
    )


def either_side(chosen: np.ndarray) -> np.ndarray:
    """Chosen points and their neighbours, so that pieces of a line meet."""
    ends = chosen.copy()
    ends[1:] |= chosen[:-1]
    ends[:-1] |= chosen[1:]
    return ends


def followed(dataset: xr.Dataset, branch: int, free: str):
    """Parameter, samples and stability along a branch, with its special points.

    Stability is 1 or 0, and NaN at the special points themselves.
    """
    followed = dataset.isel(branch=branch)
    finite = np.isfinite(followed[free].values)
    length = followed.arclength.values[finite]
    x, y = followed[free].values[finite], followed.strobe.values[finite]
    stable = np.where(followed.n_unstable.values[finite] == 0, 1.0, 0.0)
    if "special_kind" in dataset:
        mine = dataset.isel(special=dataset.special_branch.values == branch)
        place = np.searchsorted(length, mine.special_arclength.values)
        x = np.insert(x, place, mine[f"special_{free}"].values)
        y = np.insert(y, place, mine.special_strobe.values, axis=0)
        stable = np.insert(stable, place, np.nan)
    return x, y, stable


def _along(axis: Axes, dataset: xr.Dataset, name: str, second: str) -> None:
    kinds = dataset.curve_kind.attrs["flag_meanings"].split()
    for i, code in enumerate(dataset.curve_kind.values):
        curve = dataset.isel(curve=i)
        colour = KINDS[kinds[int(code)]][0]
        axis.plot(
            curve[f"curve_{second}"].values, curve[name].values, color=colour, lw=1
        )


def _panels(turns: bool) -> list[Axes]:
    """The plane on the left, panels over the second parameter on the right."""
    figure = style.figure(style.DOUBLE, 3.4)
    grid = figure.add_gridspec(1 + turns, 2, width_ratios=[1.3, 1.0])
    plane = figure.add_subplot(grid[:, 0])
    right = [figure.add_subplot(grid[i, 1]) for i in range(1 + turns)]
    for axis in right[1:]:
        axis.sharex(right[0])
    return [plane, *right]


def _one_free(datasets) -> str:
    names = {dataset.attrs["free"] for dataset in datasets}
    if len(names) != 1:
        raise ValueError(
            f"this picture needs continuations in one free parameter; got {names}."
        )
    return names.pop()


def _plane(dataset: xr.Dataset) -> tuple[str, str]:
    if "curve_kind" not in dataset:
        raise ValueError("this continuation holds no curves in two parameters.")
    return dataset.attrs["free"], dataset.attrs["second"]
