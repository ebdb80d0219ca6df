"""Branches of cycles with their bifurcations, and curves of these in two parameters.

Takes files of kind `continuation` (docs/hdf5.md).  Branches are shown by the observable
of a scan's stroboscopic section, so that they can be drawn over its diagram.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from statmech_attn.plotting import style
from statmech_attn.plotting.labels import is_own, label, shown


INDIGO, WINE, PINK, OLIVE = "#332288", "#882255", "#E7298A", "#999933"  # of no phase
KINDS = {  # colour, marker and words of what can happen on a branch
    "fold": (INDIGO, "v", "fold"),
    "period_doubling": (WINE, "D", "period doubling"),
    "neimark_sacker": (PINK, "o", "Neimark–Sacker"),
    "transcritical": (OLIVE, "P", "transcritical"),
    "pitchfork": (OLIVE, "s", "pitchfork"),
    "period_halving": (WINE, "D", "period doubling"),  # seen from above
    "unresolved": (style.GREY, "X", "unresolved"),
}
DEGENERATE = {  # short names of points of codimension two
    "cusp": "cusp",
    "generalized_flip": "GF",
    "chenciner": "Ch",
    "resonance_1_1": "1:1",
    "resonance_1_2": "1:2",
    "resonance_1_3": "1:3",
    "resonance_1_4": "1:4",
    "fold_flip": "FF",
    "fold_neimark_sacker": "F–NS",
    "flip_neimark_sacker": "PD–NS",
    "double_neimark_sacker": "NS–NS",
}
MARK = {"mec": style.BLACK, "mew": 0.5, "ls": "none", "zorder": 4}


@style.styled
def continuation_diagram(
    *datasets: xr.Dataset,
    scan: xr.Dataset | None = None,
    zoom: tuple[float, float] | None = None,
) -> Figure:
    """Stable and unstable branches with their bifurcations, over those of a scan.

    Args:
        datasets: continuations in one free parameter, one or more.
        scan: a bifurcation file over the same parameter; its stroboscopic samples are
            drawn behind the branches, and its range is shown.
        zoom: part of that range that a second panel shows.
    """
    free = _one_free(datasets)
    values = datasets[0][free].values if scan is None else scan[free].values
    ranges = [(np.nanmin(values), np.nanmax(values))] + ([zoom] if zoom else [])
    figure = style.figure(style.DOUBLE, 3.4)
    axes = figure.subplots(1, len(ranges), sharey=True, squeeze=False)[0]
    for axis, limits in zip(axes, ranges, strict=True):
        if scan is not None:
            _draw_scan(axis, scan, free)
        for dataset in datasets:
            draw_branches(axis, dataset)
            draw_special(axis, dataset)
        axis.set_xlim(limits)
        axis.set_xlabel(label(datasets[0], free))
    kinds = [kind for dataset in datasets for kind in _kinds(dataset)]
    handles = [] if scan is None else [_scan_handle()]
    handles += [
        Line2D([], [], color=style.BLACK, lw=1.2, label="stable"),
        Line2D([], [], color=style.BLACK, lw=0.8, ls=(0, (3, 2)), label="unstable"),
        *_kind_handles(kinds),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    axes[0].set_ylabel(_shown(datasets[0]))
    if zoom:
        style.letters(axes)
    return figure


def _shown(dataset: xr.Dataset) -> str:
    """Words of the axis of the samples."""
    if is_own(dataset):
        return shown(dataset)
    return style.WORDS["section"] + r" at $t \equiv 0$ mod $C$"


@style.styled
def critical_curves(dataset: xr.Dataset) -> Figure:
    """Curves of bifurcations in two parameters, and what changes along them."""
    free, second = _plane(dataset)
    figure = style.figure(style.DOUBLE, 3.2)
    left, upper, lower = _panels(figure)
    kinds = draw_curves(left, dataset)
    left.set_xlabel(label(dataset, free))
    left.set_ylabel(label(dataset, second))
    left.margins(0.1, 0.06)
    for axis, name in ((upper, "curve_rotation"), (lower, "curve_coefficient")):
        _along(axis, dataset, name, second)
    lower.set_yscale("symlog", linthresh=1.0)
    lower.axhline(0, color=style.BLACK, lw=0.5, zorder=1)
    upper.set_ylabel(r"rotation number $\rho$")
    lower.set_ylabel("coefficient")
    lower.set_xlabel(label(dataset, second))
    upper.tick_params(labelbottom=False)
    handles = _kind_handles(kinds, lines=True)
    if any(_subcritical_parts(dataset)):
        words = "subcritical (dashed)"
        handles.append(Line2D([], [], label=words, lw=1.3, color=style.GREY, ls="--"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    style.letters((left, upper, lower))
    return figure


def draw_branches(axis: Axes, dataset: xr.Dataset, color: str = style.BLACK) -> None:
    """Every branch over the free parameter; unstable parts dashed."""
    free = dataset.attrs["free"]
    for branch in range(dataset.sizes["branch"]):
        x, y, stable = _with_special(dataset, branch, free)
        for chosen, dashes, width in ((1, "-", 1.2), (0, (0, (3, 2)), 0.8)):
            ends = _either_side(stable == chosen)
            shown = np.where(ends[:, None], y, np.nan)
            axis.plot(x, shown, color=color, ls=dashes, lw=width, zorder=3)


def draw_special(axis: Axes, dataset: xr.Dataset) -> None:
    """Markers at the bifurcations, hollow where subcritical."""
    for i, kind in enumerate(_kinds(dataset)):
        words = dataset.special_criticality.attrs["flag_meanings"].split()
        point = dataset.isel(special=i)
        y = point.special_strobe.values
        x = np.full(y.shape, float(point[f"special_{dataset.attrs['free']}"]))
        colour, marker, _ = KINDS[kind]
        subcritical = words[int(point.special_criticality)] == "subcritical"
        face = "white" if subcritical else colour
        edge = {"mec": colour, "mew": 1.0} if subcritical else {}
        axis.plot(x, y, marker, ms=3.5, mfc=face, **(MARK | edge))


def _kinds(dataset: xr.Dataset) -> list[str]:
    """Kinds of the bifurcations on the branches of a file."""
    if "special_kind" not in dataset:
        return []
    names = dataset.special_kind.attrs["flag_meanings"].split()
    return [names[int(code)] for code in dataset.special_kind]


def draw_curves(
    axis: Axes, dataset: xr.Dataset, *, x: str | None = None, names: bool = True
) -> list[str]:
    """Curves of bifurcations on an axis of two parameters; returns their kinds.

    Lines are solid where the bifurcation is supercritical and dashed where it is not
    (folds are solid).  They have a white rim, so as to be seen over a phase diagram.

    Args:
        x: the parameter across, one of the two; the continuation's free one when left
            out.
        names: whether to mark and name points of codimension two.
    """
    free, second = _plane(dataset)
    if x not in (None, free, second):
        raise ValueError(f"x must be {free!r} or {second!r}; got {x!r}.")
    across, up = (free, second) if x in (None, free) else (second, free)
    kinds = dataset.curve_kind.attrs["flag_meanings"].split()
    drawn = [kinds[int(code)] for code in dataset.curve_kind]
    for i, kind in enumerate(drawn):
        curve = dataset.isel(curve=i)
        points = curve[f"curve_{across}"].values, curve[f"curve_{up}"].values
        axis.plot(*points, color="white", lw=2.6, zorder=2.5)
        solid = _supercritical(kind, _filled(curve.curve_coefficient.values))
        for chosen, dashes in ((solid, "-"), (~solid, (0, (2, 1)))):
            shown = np.where(_either_side(chosen), points[1], np.nan)
            axis.plot(
                points[0], shown, color=KINDS[kind][0], lw=1.3, ls=dashes, zorder=3
            )
    if names and "degenerate_kind" in dataset:
        _name_degenerate(axis, dataset, across, up)
    return drawn


def _name_degenerate(axis: Axes, dataset: xr.Dataset, across: str, up: str) -> None:
    kinds = dataset.degenerate_kind.attrs["flag_meanings"].split()
    x, y = (dataset[f"degenerate_{name}"].values for name in (across, up))
    axis.plot(x, y, "o", ms=3, mfc="white", **MARK)
    for place in zip(x, y, dataset.degenerate_kind.values, strict=True):
        axis.annotate(
            DEGENERATE[kinds[int(place[2])]],
            place[:2],
            xytext=(4, -1),
            fontsize=7,
            textcoords="offset points",
            va="center",
            zorder=5,
            path_effects=[withStroke(linewidth=2, foreground="white")],
        )


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
    known = np.flatnonzero(np.isfinite(coefficient))
    if known.size == 0:
        return coefficient
    return np.interp(np.arange(coefficient.size), known, coefficient[known])


def _either_side(chosen: np.ndarray) -> np.ndarray:
    """Chosen points and their neighbours, so that pieces of a line meet."""
    ends = chosen.copy()
    ends[1:] |= chosen[:-1]
    ends[:-1] |= chosen[1:]
    return ends


def _with_special(dataset: xr.Dataset, branch: int, free: str):
    """Parameter, samples and stability along a branch, with its special points.

    Stability is 1 or 0, and NaN at the special points themselves.
    """
    followed = dataset.isel(branch=branch)
    there = np.isfinite(followed[free].values)
    length = followed.arclength.values[there]
    x, y = followed[free].values[there], followed.strobe.values[there]
    stable = np.where(followed.n_unstable.values[there] == 0, 1.0, 0.0)
    if "special_kind" in dataset:
        mine = dataset.isel(special=dataset.special_branch.values == branch)
        place = np.searchsorted(length, mine.special_arclength.values)
        x = np.insert(x, place, mine[f"special_{free}"].values)
        y = np.insert(y, place, mine.special_strobe.values, axis=0)
        stable = np.insert(stable, place, np.nan)
    return x, y, stable


def _draw_scan(axis: Axes, scan: xr.Dataset, free: str) -> None:
    values = scan.strobe.transpose(free, ...).values
    values = values.reshape(values.shape[0], -1)
    x = np.broadcast_to(scan[free].values[:, None], values.shape)
    size = float(np.clip(300 / scan.sizes[free], 0.9, 2.5))
    axis.plot(
        x.ravel(),
        values.ravel(),
        ".",
        ms=size,
        mew=0,
        color=style.SKY,
        rasterized=True,
        zorder=1,
    )


def _scan_handle() -> Line2D:
    return Line2D(
        [], [], marker=".", ls="none", color=style.SKY, label="simulated", ms=5
    )


def _along(axis: Axes, dataset: xr.Dataset, name: str, second: str) -> None:
    kinds = dataset.curve_kind.attrs["flag_meanings"].split()
    for i, code in enumerate(dataset.curve_kind.values):
        curve = dataset.isel(curve=i)
        colour = KINDS[kinds[int(code)]][0]
        axis.plot(
            curve[f"curve_{second}"].values, curve[name].values, color=colour, lw=1
        )


def _panels(figure: Figure):
    grid = figure.add_gridspec(2, 2, width_ratios=[1.3, 1.0])
    left = figure.add_subplot(grid[:, 0])
    upper = figure.add_subplot(grid[0, 1])
    return left, upper, figure.add_subplot(grid[1, 1], sharex=upper)


def _kind_handles(found, *, lines: bool = False) -> list[Line2D]:
    """Legend entries of the kinds that occur, each word once."""
    handles = {}
    for kind, (colour, marker, words) in KINDS.items():
        if kind not in found:
            continue
        shown = {"lw": 1.3, "color": colour} if lines else {"marker": marker, **MARK}
        face = {} if lines else {"mfc": colour, "ms": 3.5}
        handles[words] = Line2D([], [], label=words, **(shown | face))
    return list(handles.values())


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
