"""Maps of phases: over two parameters, and of two classifiers along one.

Takes files of kind `bifurcation` (docs/hdf5.md).
"""

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from statmech_attn.dynamics import PHASES
from statmech_attn.plotting import style
from statmech_attn.plotting.bifurcation import (
    codes_of,
    one_parameter,
    parameters,
    phase_ribbon,
    set_depth,
    span,
)
from statmech_attn.plotting.continuation import draw_curves, KINDS as BIFURCATIONS
from statmech_attn.scan.refinement import on_grid


# What the paper's classifier can tell apart: it knows periods only by exponents.
GROUPS = {
    "fixed": 0, "periodic": 0, "quasiperiodic": 1, "chaotic": 2, "hyperchaotic": 2,
}  # fmt: skip
UNDECIDED = -1


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
        dataset = on_grid(dataset, *sorted(map(str, names)))
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
        axis.set_xlabel(style.WORDS[x])
        axis.tick_params(color=style.BLACK, direction="out", top=False, right=False)
    left.set_ylabel(style.WORDS[y])
    style.letters((left, right))
    return figure


@style.styled
def classifier_disagreement(dataset: xr.Dataset) -> Figure:
    """Phases by our classifier and by the paper's, and the exponents where they differ.

    The paper's classifier looks at the sign of the plain average of the exponents
    after the fixed transient; ours at several kinds of evidence, extending the orbit.
    Points that ours leaves undecided are no disagreement and are marked as such.
    """
    name = one_parameter(dataset)
    dataset = dataset.sortby(name)
    figure = style.figure(style.DOUBLE, 3.0)
    axes = figure.subplots(4, 1, sharex=True, height_ratios=[0.1, 0.1, 0.1, 1.0])
    for axis, variable, label in (
        (axes[0], "phase", "this work"), (axes[1], "phase_paper", "as in paper"),
    ):  # fmt: skip
        phase_ribbon(axis, dataset, name, variable)
        _row_label(axis, label)
    differ = disagreement(dataset)
    edges = style.cell_edges(dataset[name].values)
    rows = np.arange(differ.shape[1] + 1)
    cmap = ListedColormap([style.PALE, "white", style.BLACK])
    axes[2].pcolormesh(
        edges, rows, differ.T, cmap=cmap, vmin=-1.5, vmax=1.5, rasterized=True
    )
    axes[2].set_yticks([])
    axes[2].tick_params(axis="x", which="both", length=0, labelbottom=False)
    _row_label(axes[2], "they differ")
    _exponents_where(axes[3], dataset, name, differ)
    both = (codes_of(dataset, name) for name in ("phase", "phase_paper"))
    patches = style.phase_patches(*both)
    figure.legend(handles=patches, loc="outside upper center", ncols=len(patches))
    return figure


def disagreement(dataset: xr.Dataset) -> np.ndarray:
    """1 where the classifiers differ, 0 where they agree, -1 where ours is undecided.

    Fixed and periodic count as one, and so do chaotic and hyperchaotic.

    Returns:
        (points, starts); one column when there is a single start.
    """
    name = one_parameter(dataset)
    group = np.array([GROUPS.get(phase, UNDECIDED) for phase in PHASES])
    pick = lambda v: group[dataset[v].transpose(name, ...).values.astype(int)]
    ours, paper = (
        pick(v).reshape(dataset.sizes[name], -1) for v in ("phase", "phase_paper")
    )
    return np.where(ours == UNDECIDED, UNDECIDED, (ours != paper).astype(int))


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
    here, there = (float(x.coords.get(fixed, np.nan)) for x in (curves, dataset))
    if not np.isclose(here, there, rtol=1e-12, atol=0, equal_nan=True):
        raise ValueError(f"curves must have {fixed} = {there:g}; got {here:g}.")


def _bifurcations(axis: Axes, curves: xr.Dataset, x: str):
    """Draw curves of bifurcations; returns their legend entries."""
    found = dict.fromkeys(draw_curves(axis, curves, x=x))
    entry = lambda colour, _, words: Line2D([], [], lw=1.3, color=colour, label=words)
    return [entry(*BIFURCATIONS[kind]) for kind in found]


def _exponent_map(figure: Figure, axis: Axes, cells, values, dims) -> None:
    """The largest exponent in colours around zero, the scale set by its bulk."""
    shown = np.ma.masked_invalid(values.transpose(*dims).values)
    bulk = np.quantile(np.append(shown.compressed(), 0.0), [0.02, 0.98])
    scale = np.abs(bulk).max() or 1.0
    mesh = axis.pcolormesh(
        *cells, shown, cmap="PuOr_r", norm=CenteredNorm(0, scale), rasterized=True
    )
    bar = figure.colorbar(mesh, ax=axis, extend="both", aspect=25, pad=0.02)
    bar.set_label(style.WORDS["lyapunov_1"])


def _exponents_where(axis: Axes, dataset: xr.Dataset, name: str, differ) -> None:
    """Largest exponent; points of disagreement and without verdict are marked."""
    x = np.broadcast_to(dataset[name].values[:, None], differ.shape)
    y = dataset.lyapunov.transpose(name, ..., "exponent").values[..., 0]
    y = np.where(np.isfinite(y), y, np.nan).reshape(differ.shape)
    axis.axhline(0, color=style.BLACK, lw=0.5)
    axis.plot(x, y, color=style.GREY, lw=0.6)
    for value, marker, colour, label in (
        (UNDECIDED, "o", style.YELLOW, "undecided here"),
        (1, "D", style.VERMILLION, "classifiers differ"),
    ):
        chosen = differ == value
        if not chosen.any():
            continue
        axis.plot(
            x[chosen], y[chosen], marker, ms=3, mew=0.4, mec=style.BLACK, color=colour,
            ls="none", label=f"{label} ({chosen.sum()})",
        )  # fmt: skip
    set_depth(axis, y, y)
    span(axis, dataset, name)
    axis.set_xlabel(style.WORDS[name])
    axis.set_ylabel(style.WORDS["lyapunov_1"])
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        style.legend_above(axis, handles, labels)


def _row_label(axis: Axes, text: str) -> None:
    axis.set_ylabel(text, rotation=0, ha="right", va="center", fontsize=8)


def _two_parameters(dataset: xr.Dataset) -> tuple[str, str]:
    names = parameters(dataset)
    if len(names) != 2:
        raise ValueError(f"a phase diagram shows two scanned parameters; got {names}.")
    return names[0], names[1]
