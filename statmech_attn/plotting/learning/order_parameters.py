"""Bayesian learning: accuracy, order parameters, alignment and kernels.

Takes files of kind `order-parameter`, with files of kind `posterior` beside them, and
comparison files of both (docs/hdf5.md), at one temperature.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from statmech_attn.bpkr import estimates
from statmech_attn.comparison import sampled_by
from statmech_attn.options import Count
from statmech_attn.plotting.frame import image_words, notes, sheets, style
from statmech_attn.plotting.frame.registry import (
    Beside,
    has_variable,
    picture,
    temperatures,
    values_of,
)
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.statistics import share_error


GOOD = 0  # index of the path whose heads are all good ones in the presets
RANKS = 30
FEW = 6  # widths that are all named on their axis
EXAMPLES = 25  # shown of either end of the training set
COLUMNS = 6  # of kernels side by side, at most
NAME_HEIGHT = 0.05  # of a line of small print, over the height of a panel
ANNOTATED = 8  # matrices up to this size have their numbers written in


def look(name: str) -> tuple[str, str]:
    """Colour and marker of an estimate."""
    estimate = estimates.estimate(name)
    return style.PALETTE[estimate.colour], estimate.marker


def named(name: str) -> str:
    """An estimate in a legend."""
    return estimates.estimate(name).words


def _layers(dataset: xr.Dataset) -> list[int]:
    """Layers in which the paths of an order parameter begin."""
    matches = (re.fullmatch(r"U_(\d+)", str(name)) for name in dataset)
    return [int(name[1]) for name in matches if name]


def _plain(dataset: xr.Dataset) -> bool:
    """Whether it is not one of images of a split, which has figures of its own."""
    return not image_words.are_chosen(dataset)


SAMPLED = Beside("posterior", ("task", "prior"), several=True)


@picture(
    "accuracy",
    "order-parameter",
    when=_plain,
    pages=temperatures,
    beside={"posteriors": SAMPLED},
)
@picture("accuracy", "posterior", pages=temperatures)
@style.styled
def accuracy_against_width(
    dataset: xr.Dataset,
    posteriors: Sequence[xr.Dataset] = (),
    *,
    ax: Axes | None = None,
) -> Figure:
    """Accuracy against N: theory, samples with error bars, limits of large width.

    Bars of the saddle point are the binomial error of the test set, which all estimates
    share; those of samples are the errors of sampling.
    """
    dataset = _one_temperature(dataset)
    sheet = sheets.single(ax, style.SINGLE, 2.9)
    (axis,) = sheet.axes
    if "method" in dataset.attrs:
        posteriors = [dataset]
    else:
        limits(axis, dataset)
        _line(axis, dataset.width, dataset.accuracy, "saddle", marker="o", ms=2.5)
        error = binomial(dataset)
        bars = dataset.accuracy - error, dataset.accuracy + error
        axis.vlines(dataset.width, *bars, color=style.BLACK, lw=0.8)
        if "accuracy_corrected" in dataset:
            _line(axis, dataset.width, dataset.accuracy_corrected, "corrected")
    for posterior in posteriors:
        posterior = _at_temperature(posterior, dataset)
        name = sampled_by(posterior)
        accuracy, error = posterior.accuracy, posterior.accuracy_stderr
        _bars(axis, posterior.width, accuracy, error, name)
    axis.set_xscale("log")
    axis.set_xlabel(style.WORDS["width"])
    axis.set_ylabel("test accuracy")
    axis.margins(0.03, 0.06)
    of_tests = "" if "method" in dataset.attrs else "of the test set (saddle point) or "
    bars = f"bars: standard errors {of_tests}of sampling"
    return sheet.finish(f"{bars}\n{notes.task(dataset)}", 2)


@picture("evidence", "order-parameter", when=has_variable("log_evidence"))
@style.styled
def evidence_against_width(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """ln p(Y) of the training labels against N, a line for each temperature."""
    sheet = sheets.single(ax, style.SINGLE, 2.6)
    (axis,) = sheet.axes
    for i, T in enumerate(np.atleast_1d(dataset.temperature.values)):
        axis.plot(
            dataset.width,
            dataset.log_evidence.isel(temperature=i, missing_dims="ignore"),
            "o-",
            color=style.SERIES[i % len(style.SERIES)],
            label=f"$T = {T:g}$",
        )
    axis.set_xscale("log")
    axis.set_xlabel(style.WORDS["width"])
    axis.set_ylabel(r"$\ln p(Y)$ of the training labels")
    axis.margins(0.05, 0.08)
    return sheet.finish(notes.task(dataset), 4)


def binomial(dataset: xr.Dataset) -> xr.DataArray:
    """Standard error of accuracies on a test set; 0 where its size is unknown."""
    share, count = dataset.accuracy, dataset.sizes.get("test", np.inf)
    return share.copy(data=share_error(share.values, count))


def limits(axis: Axes, dataset: xr.Dataset) -> None:
    """Accuracies of the GP limit: all paths, the good one, and with its best partner.

    The partner of the good path that helps it most is called the denoising path.  Only
    of hidden-Markov chains a path is known to be good.
    """
    if notes.of_task(dataset).get("name") != "hidden-markov":
        accuracy = float(dataset.accuracy_gp)
        axis.axhline(accuracy, color=style.GREY, lw=0.8, ls="--", label="GP", zorder=0)
        return
    pairs, names = dataset.accuracy_gp_pair.values, dataset.path_1.values
    good = names[GOOD]
    lines = [(float(dataset.accuracy_gp), "GP, all paths", "--")]
    if pairs.shape[0] > 1:
        lines.append((pairs[GOOD, GOOD], f"GP, path {good}", ":"))
    if pairs.shape[0] > 2:  # of two paths, the pair is all of them
        partner = denoising_path(dataset)
        label = f"GP, paths {good}, {names[partner]}"
        lines.append((pairs[GOOD, partner], label, "-."))
    for value, label, dashes in lines:
        axis.axhline(value, color=style.GREY, lw=0.8, ls=dashes, label=label, zorder=0)


def denoising_path(dataset: xr.Dataset) -> int:
    """Index of the path that gives the highest accuracy together with the good one."""
    pairs = dataset.accuracy_gp_pair.values[GOOD].copy()
    pairs[GOOD] = -np.inf
    return int(pairs.argmax())


MATRIX: dict[str, Any] = {
    "pages": temperatures,
    "choices": {"widths": values_of("width"), "layer": _layers},
}


@picture("order_parameters", "order-parameter", when=_plain, **MATRIX)
@picture("order_parameters", "posterior", **MATRIX)
@style.styled
def order_parameter_matrices(
    dataset: xr.Dataset,
    *,
    widths: float | Sequence[float] | None = None,
    layer: Count = 1,
    axes: PanelAxes = None,
) -> Figure:
    """Order parameters U as matrices over pairs of paths, one panel for each width."""
    dataset = _one_temperature(dataset)
    if widths is None:
        count = dataset.sizes["width"]
        chosen = sorted({0, count // 2, count - 1})
        widths = [float(dataset.width[i]) for i in chosen]
    shown: list[float] = np.atleast_1d(widths).tolist()
    count = len(shown)
    sheet = sheets.panels(axes, 1.0 + 2.0 * count, 2.5, 1, count)
    names = dataset[f"path_{layer}"].values
    for axis, width in zip(sheet.axes, shown, strict=True):
        at_width = dataset.sel(width=width)
        U = at_width[f"U_{layer}"].values
        reach = np.abs(U).max()
        image = axis.imshow(U, cmap="RdBu_r", vmin=-reach, vmax=reach)
        if f"U_{layer}_stderr" in at_width:
            style.with_errors(image, at_width[f"U_{layer}_stderr"].values)
        bar = sheet.figure.colorbar(image, ax=axis, shrink=0.75, pad=0.03)
        if axis is sheet.axes[-1]:
            bar.set_label(r"$U_{\pi\pi^\prime}$")
        axis.set_title(f"$N = {width:g}$")
        style.matrix_ticks(axis, names)
        if len(names) <= ANNOTATED:
            _write_numbers(axis, U, reach)
        axis.set_xlabel(r"path $\pi^\prime$")
    sheet.axes[0].set_ylabel(r"path $\pi$")
    means = "means over the samples" if "method" in dataset.attrs else ""
    return sheet.finish(notes.joined(means, notes.task(dataset)))


def _write_numbers(axis: Axes, U, reach: float) -> None:
    for (i, j), value in np.ndenumerate(U):
        colour = "white" if abs(value) > 0.6 * reach else style.BLACK
        text = f"{value:.1f}" if abs(value) >= 9.95 else f"{value:.2f}"
        text = text.removeprefix("-") if float(text) == 0 else text
        axis.text(
            j,
            i,
            text.replace("-", "\N{MINUS SIGN}"),
            ha="center",
            va="center",
            color=colour,
            fontsize=7,
        )


@picture(
    "alignment",
    "order-parameter",
    when=_plain,
    pages=temperatures,
    choices={"width": values_of("width")},
)
@style.styled
def alignment(
    dataset: xr.Dataset,
    *,
    width: float | None = None,
    ranks: Count = RANKS,
    ax: Axes | None = None,
) -> Figure:
    """Overlap of the leading kernel eigenvectors with the labels, at one N and GP."""
    dataset = _one_temperature(dataset)
    width = float(dataset.width[0]) if width is None else width
    sheet = sheets.single(ax, style.SINGLE, 2.6)
    (axis,) = sheet.axes
    shown = min(ranks, dataset.sizes["rank"])
    places = np.arange(1, shown + 1)
    limit = dataset.kernel_overlap_gp.values[:shown]
    overlap = dataset.kernel_overlap.sel(width=width).values[:shown]
    axis.bar(
        places - 0.2, overlap, 0.4, color=style.VERMILION, label=f"$N = {width:g}$"
    )
    axis.bar(places + 0.2, limit, 0.4, color=style.GREY, label="GP limit")
    axis.set_xlabel("rank $i$ of the kernel eigenvector")
    axis.set_ylabel(r"overlap $|v_i \cdot Y| \, / \, |Y|$")
    axis.set_xlim(0, shown + 1)
    axis.legend(loc="upper right")
    return sheet.finish(notes.task(dataset))


@picture(
    "kernels",
    "order-parameter",
    when=lambda dataset: "path_kernel" in dataset and _plain(dataset),
    pages=temperatures,
    choices={"width": values_of("width")},
)
@style.styled
def path_kernels(
    dataset: xr.Dataset, *, width: float | None = None, axes: PanelAxes = None
) -> Figure:
    """Kernels of the single paths, of the GP limit and at one N, on some examples.

    Shown are the first and the last examples of the training set, that is of class +
    and class -, each in the order of the first eigenvector of the kernel at that N.
    All panels have one scale of colours: kernels are over their mean diagonal entry.
    """
    dataset = _one_temperature(dataset)
    width = float(dataset.width[0]) if width is None else width
    at_width = dataset.kernel.sel(width=width).values
    panels = [
        (f"path {name}", kernel)
        for name, kernel in zip(dataset.path_1.values, dataset.path_kernel.values)
    ]
    panels += [("GP limit", dataset.kernel_gp.values), (f"$N = {width:g}$", at_width)]
    shown = _in_order(at_width)
    parts = [kernel[shown] / np.mean(np.diag(kernel)) for _, kernel in panels]
    per_class = len(parts[0]) // 2
    off = np.concatenate([part[~np.eye(len(part), dtype=bool)] for part in parts])
    low, high = np.percentile(off, (2, 98))
    halves = -(-len(panels) // 2) if len(panels) > 4 else len(panels)
    columns = min(halves, COLUMNS)
    rows = -(-len(panels) // columns)
    size = 1.75 * columns + 0.7, 1.95 * rows + 0.25
    sheet = sheets.panels(axes, *size, rows, columns, len(panels))
    image = None
    for axis, (title, _), part in zip(sheet.axes, panels, parts, strict=True):
        image = axis.imshow(part, vmin=low, vmax=high, interpolation="nearest")
        axis.set_title(title)
        axis.set_xticks(
            [per_class / 2 - 0.5, 1.5 * per_class - 0.5], ["class +", "class −"]
        )
        axis.set_yticks([per_class / 2 - 0.5, 1.5 * per_class - 0.5], ["+", "−"])
        axis.tick_params(length=0)
        for line in (axis.axhline, axis.axvline):
            line(per_class - 0.5, color="white", lw=0.6)
    sheet.figure.colorbar(
        image,  # type: ignore
        ax=sheet.axes,
        shrink=0.6,
        pad=0.02,
        extend="both",
        label=r"$K_{\mu\nu} \, / \, (\mathrm{Tr}\, K / P)$",
    )
    scale = "colours from the 2nd to the 98th percentile"
    order = "examples in the order of the first eigenvector of the last panel"
    return sheet.finish(notes.joined(scale, order, notes.task(dataset)))


def _in_order(kernel: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows and columns of some examples of either class, by the first eigenvector."""
    P = len(kernel)
    per_class = min(EXAMPLES, P // 2)
    shown = np.r_[0:per_class, P - per_class : P]
    _, vectors = np.linalg.eigh(kernel[np.ix_(shown, shown)])
    classes = np.repeat([0, 1], per_class)
    shown = shown[np.lexsort((-np.abs(vectors[:, -1]), classes))]
    return np.ix_(shown, shown)


@picture("finite_width", "comparison", pages=temperatures)
@style.styled
def finite_width(comparison: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Entries of U_1, differences from the reference and accuracy against N."""
    comparison = _one_temperature(comparison)
    reference = str(comparison.attrs["reference"])
    sheet = sheets.panels(axes, style.DOUBLE, 3.2, 1, 3)
    axes = sheet.axes
    chosen = _entries(comparison.sel(estimate="saddle"))
    for name in comparison.estimate.values:
        estimate = comparison.sel(estimate=name)
        _against_n(axes[0], estimate, name, chosen)
        _distance(axes[1], estimate, name)
        _drawn(
            axes[2], estimate.width, estimate.accuracy, estimate.accuracy_stderr, name
        )
    axes[0].set_yscale("symlog", linthresh=1.0)
    several = comparison.sizes["width"] > 1
    resolved = np.isfinite(comparison.U_1_rms).any("estimate").values
    if resolved.any() and several:
        axes[1].set_yscale("log")
        style.log_ticks(axes[1].yaxis)
    elif not resolved.any():
        axes[1].text(
            0.5, 0.5, "none is resolved", ha="center", transform=axes[1].transAxes
        )
        axes[1].set_yticks([])
    axes[0].set_ylabel(r"$U_{\pi\pi^\prime}$", labelpad=0)
    axes[1].set_ylabel(rf"rms difference of $U$ from {named(reference)}")
    axes[2].set_ylabel("test accuracy")
    for axis in axes:
        axis.set_xlabel(style.WORDS["width"])
        axis.margins(0.05, 0.06)
        if several:
            axis.set_xscale("log")
        if comparison.sizes["width"] <= FEW:
            widths = comparison.width.values
            axis.set_xticks(widths, [f"{width:g}" for width in widths])
            axis.xaxis.set_minor_locator(NullLocator())
    low, high = axes[0].get_xlim()
    axes[0].set_xlim(low / (high / low) ** 0.25, high)  # room for names
    _entry_names(axes[0], comparison.sel(estimate="saddle"), chosen)
    others = ", ".join(f"{width:g}" for width in comparison.width.values[~resolved])
    words = f"(b) no difference is resolved at $N = {others}$" if others else ""
    return sheet.finish(
        notes.joined(notes.BARS, words, notes.task(comparison)), 8, of=slice(2, 3)
    )


def _against_n(axis: Axes, here: xr.Dataset, name: str, chosen) -> None:
    """Entries of U_1 of one estimate."""
    for i, j in chosen:
        U, error = (
            x.isel(path_1=i, path_1_pair=j) for x in (here.U_1, here.U_1_stderr)
        )
        _drawn(axis, here.width, U, error, name)


def _entries(saddle: xr.Dataset) -> list[tuple[int, int]]:
    """The diagonal, and the largest entry beside it at the smallest width."""
    size = np.abs(saddle.U_1.isel(width=0).values)
    entries = [(i, i) for i in range(len(size))]
    if len(size) > 1:
        np.fill_diagonal(size, 0)
        i, j = np.unravel_index(size.argmax(), size.shape)
        entries.append((int(i), int(j)))
    return entries


def _entry_names(axis: Axes, saddle: xr.Dataset, chosen) -> None:
    """Names left of the first point of every entry, pushed apart where they meet."""
    names, saddle = saddle.path_1.values, saddle.isel(width=0)
    entries = [
        (float(saddle.U_1[i, j]), names[i] if i == j else f"{names[i]}, {names[j]}")
        for i, j in chosen
    ]
    to_axis = axis.transData + axis.transAxes.inverted()
    x = float(saddle.width)
    lowest = -np.inf
    for value, text in sorted(entries):
        left_edge, height = to_axis.transform((x, value))
        lowest = max(height, lowest + NAME_HEIGHT)
        axis.text(
            left_edge - 0.03,
            lowest,
            text,
            fontsize=7,
            ha="right",
            va="center",
            transform=axis.transAxes,
        )


def _distance(axis: Axes, here: xr.Dataset, name: str) -> None:
    colour, marker = look(name)
    size, error = here.U_1_rms.values, here.U_1_rms_stderr.values
    axis.errorbar(
        here.width.values,
        size,
        error,
        color=colour,
        ms=3.2,
        marker=marker or ".",
        ls="none" if marker else "-",
        capsize=1.5,
    )
    if np.isfinite(here.U_1_rms_slope):
        slope, error = float(here.U_1_rms_slope), float(here.U_1_rms_slope_stderr)
        axis.text(
            0.95,
            0.93 - 0.09 * len(axis.texts),
            rf"$\propto N^{{{slope:.2f} \pm {error:.2f}}}$",
            ha="right",
            va="top",
            color=colour,
            transform=axis.transAxes,
        )


def _drawn(axis: Axes, x, y, error, name: str) -> None:
    if look(name)[1]:
        _bars(axis, x, y, error, name)
    else:
        _line(axis, x, y, name)


def _line(axis: Axes, x, y, name: str, **more) -> None:
    dashes = "-" if name == "saddle" else (0, (4, 2))
    if np.size(x) == 1:  # no line is seen through one point
        marker, size = ("_", 8) if name == "saddle" else ("x", 4)
        more = {"marker": marker, "ms": size} | more
    axis.plot(x, y, color=look(name)[0], ls=dashes, label=_label(axis, name), **more)


def _bars(axis: Axes, x, y, error, name: str) -> None:
    colour, marker = look(name)
    axis.errorbar(
        x,
        y,
        error,
        fmt=marker,
        color=colour,
        label=_label(axis, name),
        zorder=3,
        **style.OPEN,
    )


def _label(axis: Axes, name: str) -> str | None:
    taken = axis.get_legend_handles_labels()[1]
    return None if named(name) in taken else named(name)


def _at_temperature(posterior: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Samples at the temperature of a theory, where they have several."""
    if posterior.sizes.get("temperature", 1) == 1:
        return _one_temperature(posterior)
    return posterior.sel(temperature=float(theory.temperature))


def _one_temperature(dataset: xr.Dataset) -> xr.Dataset:
    if dataset.sizes.get("temperature", 1) > 1:
        raise ValueError(
            "this picture shows one temperature; select one of "
            f"{dataset.temperature.values.tolist()}."
        )
    return dataset.squeeze("temperature") if "temperature" in dataset.dims else dataset
