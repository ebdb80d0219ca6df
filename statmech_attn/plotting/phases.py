"""Maps of phases: over two parameters, and of two classifiers along one.

Takes files of the kinds `bifurcation` and `diagram` (docs/hdf5.md).
"""

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from statmech_attn.dynamics import diagrams, PHASES
from statmech_attn.plotting import style
from statmech_attn.plotting.bifurcation import (
    codes_of,
    one_parameter,
    parameters,
    span,
)
from statmech_attn.plotting.continuation import draw_curves, KINDS as BIFURCATIONS
from statmech_attn.plotting.exponents import in_words, set_scale
from statmech_attn.plotting.labels import label


# Colours of the classes that the sign of one exponent can tell apart.
CLASS_COLOURS = [
    style.PHASE_COLOURS[phase] for phase in ("periodic", "quasiperiodic", "chaotic")
]
VERDICTS = {
    diagrams.UNDECIDED: ("o", style.YELLOW, "no verdict"),
    1: ("D", style.BLACK, "they differ"),
}


@style.styled
def phase_diagram(dataset: xr.Dataset, curves: xr.Dataset | None = None) -> Figure:
    """Phases and largest exponent over two parameters, the first one across.

    Of several starts the first is shown; one that is missing an exponent is left white.
    A refined file is drawn on its finest grid, points that were not computed like
    their neighbours of a coarser level.

    Args:
        curves: a continuation file with curves of bifurcations in the same parameters,
            drawn over the phases.
    """
    x, y = _two_parameters(dataset)
    if "phase" not in dataset:
        raise ValueError(
            "a phase diagram needs phases; the scan has none (exponents = 0)."
        )
    if curves is not None:
        _check_alike(dataset, curves, (x, y))
    if "start" in dataset.dims:
        dataset = dataset.isel(start=0)
    if "point" in dataset.dims:
        names = {"phase", "lyapunov", "failure"}.intersection(dataset)
        dataset = diagrams.on_grid(dataset, *sorted(map(str, names)))
    dataset = dataset.sortby([x, y])
    figure = style.figure(style.DOUBLE, 3.1)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    cells = [style.cell_edges(dataset[name].values) for name in (x, y)]
    cmap, norm = style.phase_colours()
    codes = codes_of(dataset.transpose(y, x, ...))
    left.pcolormesh(*cells, codes, cmap=cmap, norm=norm, rasterized=True)
    entries: list[Artist] = [*style.phase_patches(codes)]
    if curves is not None:
        entries += _bifurcations(left, curves, x)
        left.set(xlim=cells[0][[0, -1]], ylim=cells[1][[0, -1]])
    figure.legend(handles=entries, loc="outside upper center", ncols=len(entries))
    _exponent_map(figure, right, cells, dataset.lyapunov.isel(exponent=0), (y, x))
    for axis in (left, right):
        axis.set_xlabel(label(dataset, x))
        axis.tick_params(color=style.BLACK, direction="out", top=False, right=False)
    left.set_ylabel(label(dataset, y))
    style.letters((left, right))
    return figure


@style.styled
def classifier_disagreement(dataset: xr.Dataset) -> Figure:
    """Classes by all evidence and by one sign, and the exponents where they differ.

    The published classifier, `dynamics.as_in_paper`, looks at the sign of the plain
    average of the largest exponent after a fixed transient.  It tells no fixed point
    from a cycle, so both strips show the classes that both classifiers have, and differ
    exactly where the third strip says so.  Points without a verdict are marked apart.
    """
    name = one_parameter(dataset)
    dataset = dataset.sortby(name)
    figure = style.figure(style.DOUBLE, 3.0)
    axes = figure.subplots(4, 1, sharex=True, height_ratios=[0.1, 0.1, 0.1, 1.0])
    differ = where_they_differ(dataset)
    decided = differ != diagrams.UNDECIDED
    all_evidence = diagrams.classes(codes_of_points(dataset, "phase"))
    by_sign = diagrams.classes(codes_of_points(dataset, "phase_paper"))
    undecided, differing = (VERDICTS[code][1] for code in (diagrams.UNDECIDED, 1))
    colours = [undecided, *CLASS_COLOURS]
    for axis, codes, shades, words in (
        (
            axes[0],
            np.where(decided, all_evidence, diagrams.UNDECIDED),
            colours,
            "all evidence",
        ),
        (axes[1], by_sign, colours, r"sign of $\lambda_1$"),
        (axes[2], differ, [undecided, "white", differing], "they differ"),
    ):
        _strip(axis, dataset[name], codes, shades)
        _row_label(axis, words)
    _exponents_where(axes[3], dataset, name, differ)
    present = np.union1d(all_evidence[decided], by_sign[decided])
    patches = [
        Patch(facecolor=CLASS_COLOURS[i], label=diagrams.CLASSES[i]) for i in present
    ]
    if patches:
        figure.legend(handles=patches, loc="outside upper center", ncols=len(patches))
    return figure


def where_they_differ(dataset: xr.Dataset) -> np.ndarray:
    """`diagrams.disagreement` of a scan of one parameter, (points, starts)."""
    failed = codes_of_points(dataset, "failure") != 0 if "failure" in dataset else False
    by_sign = codes_of_points(dataset, "phase_paper")
    return diagrams.disagreement(codes_of_points(dataset, "phase"), by_sign, failed)


def codes_of_points(dataset: xr.Dataset, variable: str) -> np.ndarray:
    """A variable with one number for every point and start, (points, starts)."""
    name = one_parameter(dataset)
    values = dataset[variable].transpose(name, ...).values
    return values.reshape(dataset.sizes[name], -1)


def describe_phase(dataset: xr.Dataset, **selected: float) -> str:
    """The measured phase of one point in words, with its period.

    Example:
        `describe_phase(phases, beta=1.27)` gives such as "periodic, p = 28".
    """
    point = dataset.sel(selected)
    phase, period = PHASES[int(point.phase)], int(point.period)
    if phase in ("fixed", "periodic") and period:
        return f"{phase}, $p = {period}$"
    return phase


def _check_alike(dataset: xr.Dataset, curves: xr.Dataset, names: tuple[str, str]):
    """Refuse curves of another network, in other parameters or at another third one."""
    of_file = (curves.attrs.get("free"), curves.attrs.get("second"))
    if set(of_file) != set(names):
        raise ValueError(f"curves must be in {names}, as the phases; got {of_file}.")
    if curves.attrs.get("network") != dataset.attrs.get("network"):
        raise ValueError("curves must be of the network of the phases; got another.")
    (fixed,) = {"beta", "gamma", "epsilon"} - set(names)
    of_curves, of_plane = (
        float(x.coords.get(fixed, np.nan)) for x in (curves, dataset)
    )
    if not np.isclose(of_curves, of_plane, rtol=1e-12, atol=0, equal_nan=True):
        raise ValueError(f"curves must have {fixed} = {of_plane:g}; got {of_curves:g}.")


def _bifurcations(axis: Axes, curves: xr.Dataset, x: str):
    """Draw curves of bifurcations; returns their legend entries."""
    kinds = dict.fromkeys(draw_curves(axis, curves, x=x))
    entry = lambda colour, _, words: Line2D([], [], lw=1.3, color=colour, label=words)
    return [entry(*BIFURCATIONS[kind]) for kind in kinds]


def _exponent_map(figure: Figure, axis: Axes, cells, values, dims) -> None:
    """The largest exponent in colours around zero, the scale set by its bulk."""
    shown = np.ma.masked_invalid(values.transpose(*dims).values)
    bulk = np.quantile(np.append(shown.compressed(), 0.0), [0.02, 0.98])
    scale = np.abs(bulk).max() or 1.0
    mesh = axis.pcolormesh(
        *cells, shown, cmap="PuOr_r", norm=CenteredNorm(0, scale), rasterized=True
    )
    bar = figure.colorbar(mesh, ax=axis, extend="both", aspect=25, pad=0.02)
    bar.set_label(in_words("1", values))


def _exponents_where(axis: Axes, dataset: xr.Dataset, name: str, differ) -> None:
    """Largest exponent; points of disagreement and without verdict are marked."""
    x = np.broadcast_to(dataset[name].values[:, None], differ.shape)
    y = dataset.lyapunov.transpose(name, ..., "exponent").values[..., 0]
    y = np.where(np.isfinite(y), y, np.nan).reshape(differ.shape)
    axis.axhline(0, color=style.BLACK, lw=0.5)
    axis.plot(x, y, color=style.GREY, lw=0.6)
    for value, (marker, colour, words) in VERDICTS.items():
        chosen = differ == value
        if chosen.any():
            axis.plot(
                x[chosen],
                y[chosen],
                marker,
                ms=3,
                mew=0.4,
                mec=style.BLACK,
                color=colour,
                ls="none",
                label=f"{words} ({chosen.sum()})",
            )
    set_scale(axis, y, y)
    span(axis, dataset, name)
    axis.set_xlabel(label(dataset, name))
    axis.set_ylabel(in_words("1", dataset.lyapunov))
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        style.legend_above(axis, handles, labels)


def _strip(axis: Axes, parameter: xr.DataArray, codes, colours: list[str]) -> None:
    """Codes (points, starts) from -1 on as a strip; one row for each start."""
    edges = style.cell_edges(parameter.values)
    rows = np.arange(codes.shape[1] + 1)
    axis.pcolormesh(
        edges,
        rows,
        codes.T,
        cmap=ListedColormap(colours),
        vmin=-1.5,
        vmax=len(colours) - 1.5,
        rasterized=True,
    )
    axis.set_yticks([])
    axis.tick_params(axis="x", which="both", length=0, labelbottom=False)


def _row_label(axis: Axes, text: str) -> None:
    axis.set_ylabel(text, rotation=0, ha="right", va="center", fontsize=8)


def _two_parameters(dataset: xr.Dataset) -> tuple[str, str]:
    names = parameters(dataset)
    if len(names) != 2:
        raise ValueError(f"a phase diagram shows two scanned parameters; got {names}.")
    return names[0], names[1]
