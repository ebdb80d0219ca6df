"""Learning curves of networks that were trained on minibatches.

Takes files of kind `training` with records of a validation set (docs/hdf5.md).
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from statmech_attn.plotting import style


@style.styled
def learning_curves(dataset: xr.Dataset) -> Figure:
    """Loss and validation accuracy against the step, one line for each restart.

    Circles are at the step whose weights were kept.
    """
    figure = style.figure(style.DOUBLE, 2.8)
    left, right = figure.subplots(1, 2)
    _losses(left, dataset)
    _accuracies(right, dataset)
    for axis, letter in zip((left, right), "ab", strict=True):
        axis.set_title(f"({letter})", loc="left", pad=2.5)
        axis.set_xlabel("step")
        axis.margins(0.02, 0.05)
    return figure


def _losses(axis: Axes, dataset: xr.Dataset) -> None:
    """Of the training tasks (solid) and of the validation tasks (dashed)."""
    for run, colour in _runs(dataset):
        axis.plot(run.step, run.loss, color=colour)
        axis.plot(run.step, run.loss_validation, color=colour, ls=(0, (3, 2)), lw=0.6)
    axis.axhline(1, color=style.GREY, lw=0.6, ls=":", zorder=0)
    axis.set_ylabel("squared error")
    handles = [
        Line2D([], [], color=style.BLACK, label="training tasks"),
        Line2D([], [], color=style.BLACK, ls=(0, (3, 2)), lw=0.6, label="validation"),
    ]
    axis.legend(handles=handles, loc="best")


def _accuracies(axis: Axes, dataset: xr.Dataset) -> None:
    for run, colour in _runs(dataset):
        axis.plot(run.step, run.accuracy_validation, color=colour)
        best = int(run.best_step)
        if np.isfinite(run.accuracy_sets).all():
            height = float(run.accuracy_validation.sel(step=best))
            axis.plot([best], [height], "o", color=colour, ms=4, mfc="none", zorder=3)
    axis.axhline(0.5, color=style.GREY, lw=0.6, ls=":", zorder=0)
    axis.set_ylabel("validation accuracy")


def _runs(dataset: xr.Dataset):
    """Every restart with its colour."""
    for number in range(dataset.sizes["restart"]):
        yield (
            dataset.isel(restart=number),
            style.SERIES[number % len(style.SERIES)],
        )
