"""Training: losses on the way, accuracy and order parameters at the end.

Takes files of kind `training` (docs/hdf5.md), at one temperature.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import picture, temperatures
from statmech_attn.plotting.frame.sheets import PanelAxes


SPREAD = 0.06  # of the restarts of one width, in powers of e


@picture("training", "training", pages=temperatures)
@style.styled
def training(
    dataset: xr.Dataset, theory: xr.Dataset | None = None, *, axes: PanelAxes = None
) -> Figure:
    """Losses by width, accuracies and the diagonal of U_1 against N."""
    if dataset.sizes.get("temperature", 1) > 1:
        raise ValueError(
            "this picture shows one temperature; select one of "
            f"{dataset.temperature.values.tolist()}."
        )
    dataset = (
        dataset.squeeze("temperature") if "temperature" in dataset.dims else dataset
    )
    sheet = sheets.panels(axes, style.DOUBLE, 2.8, 1, 3)
    losses, accuracies, order_parameters = sheet.axes
    _losses(losses, dataset)
    _accuracies(accuracies, dataset)
    _order_parameters(order_parameters, dataset, theory)
    for axis in (accuracies, order_parameters):
        axis.set_xscale("log")
        axis.set_xlabel(style.WORDS["width"])
        axis.margins(0.08, 0.08)
    lines = "" if theory is None else "lines in (c): saddle point"
    return sheet.finish(notes.joined(lines, notes.task(dataset)))


def _losses(axis: Axes, dataset: xr.Dataset) -> None:
    """Data term (solid) and prior term (dashed) of every run."""
    handles = []
    for i, width in enumerate(dataset.width.values):
        colour = style.SERIES[i % len(style.SERIES)]
        for r in range(dataset.sizes["restart"]):
            run = dataset.isel(width=i, restart=r)
            axis.plot(run.step, run.loss_data, color=colour, lw=0.7)
            axis.plot(run.step, run.loss_prior, color=colour, lw=0.7, ls=(0, (4, 2)))
        handles.append(Line2D([], [], color=colour, label=f"$N = {width:g}$"))
    axis.set_yscale("log")
    axis.set_xlabel("step")
    axis.set_ylabel("data term (solid), prior term (dashed)")
    axis.margins(0.02, 0.05)
    axis.legend(handles=handles, loc="best")


def _accuracies(axis: Axes, dataset: xr.Dataset) -> None:
    N = _jittered_widths(dataset)
    for name, colour, marker, label in (
        ("accuracy_train", style.GREY, "s", "training set"),
        ("accuracy", style.VERMILION, "o", "test set"),
    ):
        values = dataset[name].transpose("width", "restart")
        axis.plot(
            N.ravel(),
            np.ravel(values),
            marker,
            color=colour,
            ms=3,
            mfc="none",
            label=label,
        )
    axis.set_ylabel("accuracy")
    axis.legend(loc="best")


def _order_parameters(
    axis: Axes, dataset: xr.Dataset, theory: xr.Dataset | None
) -> None:
    """Diagonal of U_1: how much of the network each path has."""
    N = _jittered_widths(dataset)
    for i, path in enumerate(dataset.path_1.values):
        colour = style.SERIES[i % len(style.SERIES)]
        trained = dataset.U_1.isel(path_1=i, path_1_pair=i).transpose(
            "width", "restart"
        )
        axis.plot(
            N.ravel(),
            np.ravel(trained),
            "o",
            color=colour,
            ms=3,
            mfc="none",
            label=f"path {path}",
        )
        if theory is not None:
            saddle = theory.U_1.isel(path_1=i, path_1_pair=i)
            axis.plot(theory.width, saddle, color=colour, lw=0.7)
    axis.set_yscale("symlog", linthresh=0.1)
    axis.set_ylabel(r"$U_{\pi\pi}$", labelpad=0)
    axis.legend(loc="best")


def _jittered_widths(dataset: xr.Dataset) -> np.ndarray:
    """Widths of all runs, those of one width side by side."""
    count = dataset.sizes["restart"]
    aside = np.exp(SPREAD * (np.arange(count) - (count - 1) / 2))
    return np.outer(dataset.width.values, aside)
