"""Maps of phases: over two parameters, and of two classifiers along one.

Takes files of the kinds `bifurcation` and `diagram` (docs/hdf5.md).
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, ListedColormap
from matplotlib.figure import Figure

from statmech_attn.dynamics import diagrams, PHASES
from statmech_attn.labels import unit_of
from statmech_attn.plotting.dynamics.bifurcation import (
    codes_of,
    followed,
    is_plane,
    one_parameter,
    parameters,
    span,
)
from statmech_attn.plotting.dynamics.continuation import bifurcation_curves
from statmech_attn.plotting.dynamics.exponents import (
    draw_pieces,
    in_words,
    jumps,
    set_scale,
)
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.axis_words import is_own, label
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes


# Colours of the classes that the sign of one exponent can tell apart.
CLASS_COLOURS = [
    style.PHASE_COLOURS[phase] for phase in ("periodic", "quasiperiodic", "chaotic")
]
VERDICTS = {
    diagrams.UNDECIDED: ("o", style.PALE, "no verdict"),
    1: ("D", style.BLACK, "verdicts differ"),
}
FINAL = ("final_phase", "final_lyapunov", "final_starts")
FEW = 0.02  # share of points that may lie beyond the scale of a map, or set none


@picture("phase_diagram", "bifurcation", "diagram", when=is_plane)
@style.styled
def phase_diagram(
    dataset: xr.Dataset, curves: xr.Dataset | None = None, *, axes: PanelAxes = None
) -> Figure:
    """Phases and largest exponent over two parameters, the first one across.

    Of several starts the first is shown; points that could not be computed are white.
    Of a transient the phase is shown that follows it, with a dot, and the exponent of
    what follows.  A refined file is drawn on its finest grid, points that were not
    computed like their neighbours of a coarser level.  The scale of exponents is set by
    the bulk of the positive ones, of all where few are.

    Args:
        dataset: a result of kind `bifurcation` over two parameters.
        curves: a continuation file with curves of bifurcations in the same parameters,
            drawn over the phases.
        axes: two to draw on, for phases and exponent.
    """
    names = two_parameters(dataset)
    if curves is not None:
        _check_alike(dataset, curves, names)
    sheet = sheets.panels(axes, style.DOUBLE, 3.3, 1, 2, sharex=True, sharey=True)
    plane = _on_plane(dataset, *names)
    _draw_phases(sheet.axes[0], plane, names, curves)
    _draw_exponents(sheet.axes[1], plane, names)
    if sheet.whole:
        sheet.axes[1].set_ylabel("")
    return sheet.finish(notes.network(dataset), 8, of=slice(1))


def _draw_phases(
    axis: Axes, dataset: xr.Dataset, names: tuple[str, str], curves: xr.Dataset | None
) -> None:
    x, y = names
    cells = [style.cell_edges(dataset[name].values) for name in names]
    cmap, norm = style.phase_colours()
    dataset = dataset.transpose(y, x, ...)
    after = followed(dataset)
    codes = codes_of(dataset, "final_phase" if after.any() else "phase")
    axis.pcolormesh(*cells, codes, cmap=cmap, norm=norm, rasterized=True)
    style.phase_entries(axis, codes)
    if after.any():
        rows, columns = np.nonzero(after)
        places = dataset[x].values[columns], dataset[y].values[rows]
        size = style.dot(dataset.sizes[x], 1.2)
        look: Any = {"color": style.BLACK, "mec": "white", "ms": size, "mew": size / 8}
        axis.plot(*places, "o", **look, label="after a transient")
    if curves is not None:
        bifurcation_curves(curves, x=x, ax=axis)
        axis.set(xlim=cells[0][[0, -1]], ylim=cells[1][[0, -1]])
    _name_axes(axis, dataset, x, y)


def _draw_exponents(axis: Axes, dataset: xr.Dataset, names: tuple[str, str]) -> None:
    """In colours around zero; an exponent that is missing is white."""
    values = dataset.get("final_lyapunov", dataset.lyapunov.isel(exponent=0))
    bulk = values.values[np.isfinite(values.values)]
    if (bulk > 0).mean() > FEW:
        bulk = bulk[bulk > 0]
    scale = np.quantile(np.abs(bulk), 1 - FEW) if bulk.size else 1.0
    norm = CenteredNorm(0, scale or 1.0)
    words = in_words("1", dataset.lyapunov)
    look = {"cmap": "PuOr_r", "norm": norm, "extend": "both"}
    _draw_amounts(axis, dataset, names, values, words, **look)


@picture(
    "entropy_production",
    "bifurcation",
    "diagram",
    when=lambda dataset: is_plane(dataset) and "entropy_production" in dataset,
)
@style.styled
def entropy_map(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Entropy production over two parameters; white where it is missing."""
    names = two_parameters(dataset)
    plane = _on_plane(dataset, *names)
    sheet = sheets.single(ax, style.SINGLE, 2.8)
    values = plane.entropy_production
    words = rf"$\sigma$ ({unit_of(values.attrs)})"
    (axis,) = sheet.axes
    _draw_amounts(axis, plane, names, values, words, cmap="magma_r", vmin=0.0)
    return sheet.finish(notes.network(dataset))


def _draw_amounts(
    axis: Axes,
    dataset: xr.Dataset,
    names: tuple[str, str],
    values: xr.DataArray,
    words: str,
    extend: str = "neither",
    **look: Any,
) -> None:
    """Numbers over two parameters in colours, with their scale beside the map."""
    amounts = np.ma.masked_invalid(values.transpose(*names[::-1]).values)
    edges = (style.cell_edges(dataset[name].values) for name in names)
    mesh = axis.pcolormesh(*edges, amounts, rasterized=True, **look)
    bar = axis.figure.colorbar(mesh, ax=axis, extend=extend, aspect=25, pad=0.02)
    bar.set_label(words)
    _name_axes(axis, dataset, *names)


@picture(
    "classifiers",
    "bifurcation",
    when=lambda data: "phase_paper" in data and not (is_plane(data) or is_own(data)),
)
@style.styled
def classifier_disagreement(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Classes by all evidence and by one sign, and the exponents where they differ.

    The published classifier, `dynamics.paper_phase`, looks at the sign of the plain
    average of the largest exponent after a fixed transient.  It tells no fixed point
    from a cycle, so both strips show the classes that both classifiers have, and differ
    exactly where the third strip says so.  Points without a verdict are marked apart.
    """
    name = one_parameter(dataset)
    dataset = dataset.sortby(name)
    heights = [0.1, 0.1, 0.1, 1.0]
    sheet = sheets.panels(
        axes, style.DOUBLE, 3.1, 4, sharex=True, height_ratios=heights
    )
    differ = where_they_differ(dataset)
    decided = differ != diagrams.UNDECIDED
    all_evidence = diagrams.classes(codes_of_points(dataset, "phase"))
    by_sign = diagrams.classes(codes_of_points(dataset, "phase_paper"))
    undecided, differing = (VERDICTS[code][1] for code in (diagrams.UNDECIDED, 1))
    colours = [undecided, *CLASS_COLOURS]
    for axis, codes, shades, words in zip(
        sheet.axes,
        (np.where(decided, all_evidence, diagrams.UNDECIDED), by_sign, differ),
        (colours, colours, [undecided, "white", differing]),
        ("all evidence", r"sign of $\lambda_1$", VERDICTS[1][2]),
        strict=False,
    ):
        _strip(axis, dataset[name], codes, shades)
        _row_label(axis, words)
        span(axis, dataset, name)
    for i in np.union1d(all_evidence[decided], by_sign[decided]):
        style.patch(sheet.axes[0], diagrams.CLASSES[i], CLASS_COLOURS[i])
    if not decided.all():
        style.patch(sheet.axes[0], VERDICTS[diagrams.UNDECIDED][2], undecided)
    _exponents_where(sheet.axes[3], dataset, name, differ)
    return sheet.finish(notes.network(dataset), 8, of=slice(3), letters=False)


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
    """The measured phase of one point in words, with its period."""
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
    for fixed in {"beta", "gamma", "epsilon", "redrawn"} - set(names):
        of_curves, of_plane = (
            float(x.coords.get(fixed, np.nan)) for x in (curves, dataset)
        )
        if not np.isclose(of_curves, of_plane, rtol=1e-12, atol=0, equal_nan=True):
            raise ValueError(
                f"curves must have {fixed} = {of_plane:g}; got {of_curves:g}."
            )


def _on_plane(dataset: xr.Dataset, x: str, y: str) -> xr.Dataset:
    """The first start on a full grid, in order of both parameters."""
    if "phase" not in dataset:
        raise ValueError(
            "a phase diagram needs phases; the scan has none (exponents = 0)."
        )
    if "start" in dataset.dims:
        dataset = dataset.isel(start=0)
    if "point" in dataset.dims:
        shown = {"phase", "lyapunov", "failure", "entropy_production", *FINAL}
        names = shown.intersection(dataset)
        dataset = diagrams.on_grid(dataset, *sorted(map(str, names)))
    return dataset.sortby([x, y])


def _name_axes(axis: Axes, dataset: xr.Dataset, x: str, y: str) -> None:
    axis.set_xlabel(label(dataset, x))
    axis.set_ylabel(label(dataset, y))
    axis.tick_params(color=style.BLACK, direction="out", top=False, right=False)


def _exponents_where(axis: Axes, dataset: xr.Dataset, name: str, differ) -> None:
    """Largest exponent; points of disagreement and without verdict are marked."""
    x = np.broadcast_to(dataset[name].values[:, None], differ.shape)
    y = dataset.lyapunov.transpose(name, ..., "exponent").values[..., 0]
    y = np.where(np.isfinite(y), y, np.nan).reshape(differ.shape)
    axis.axhline(0, color=style.BLACK, lw=0.5)
    ends = jumps(dataset, name, y.shape[1])
    for column, jump in zip(y.T, ends.T, strict=True):
        draw_pieces(axis, dataset[name].values, column, jump, 0 * column, style.GREY)
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


def two_parameters(dataset: xr.Dataset) -> tuple[str, str]:
    """The scanned parameters of a scan of two."""
    names = parameters(dataset)
    if len(names) != 2:
        raise ValueError(f"a phase diagram shows two scanned parameters; got {names}.")
    return names[0], names[1]
