"""Learning curves of networks that were trained on minibatches.

Takes files of kind `training` with records of a validation set (docs/hdf5.md).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting.frame import sheets, style
from statmech_attn.plotting.frame.image_words import chance_level, size_words
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes


HIGHEST = 1.5  # squared error that is shown where it is enough
DASHED = (0, (3, 2))


@picture("learning_curves", "training")
@style.styled
def learning_curves(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Loss and validation accuracy against the step, one line for each restart.

    Circles are at the step whose weights were kept.
    """
    dataset = dataset.isel(restart=np.isfinite(dataset.loss).any("step").values)
    sheet = sheets.panels(axes, style.DOUBLE, 3.1, 1, 2)
    losses, accuracies = sheet.axes
    _entries(losses, dataset)
    _losses(losses, dataset)
    _accuracies(accuracies, dataset)
    for axis in sheet.axes:
        axis.set_xlabel("step of gradient descent")
        axis.margins(0.02, 0.05)
    return sheet.finish(size_words(dataset, dataset.sizes["restart"]), 4, of=slice(1))


def _losses(axis: Axes, dataset: xr.Dataset) -> None:
    """Draw losses of the training tasks (solid) and the validation tasks (dashed).

    Those of initial weights, far above the 1 of a silent network, are cut off, unless
    half of a curve would be: then all are shown, on a logarithmic scale.
    """
    for run, colour in _runs(dataset):
        axis.plot(run.step, run.loss, color=colour)
        axis.plot(run.step, run.loss_validation, color=colour, ls=DASHED, lw=0.6)
    axis.axhline(1, color=style.GREY, lw=0.6, ls=":", zorder=0)
    axis.set_ylabel("squared error")
    middles = [dataset[name].median("step") for name in ("loss", "loss_validation")]
    if any((middle > HIGHEST).any() for middle in middles):
        axis.set_yscale("log")
    else:
        axis.set_ylim(0, min(HIGHEST, axis.get_ylim()[1]))


def _accuracies(axis: Axes, dataset: xr.Dataset) -> None:
    for run, colour in _runs(dataset):
        axis.plot(run.step, run.accuracy_validation, color=colour)
        best = int(run.best_step)
        if np.isfinite(run.accuracy_sets).all():
            height = float(run.accuracy_validation.sel(step=best))
            axis.plot([best], [height], "o", color=colour, ms=4, mfc="none", zorder=3)
    chance_level(axis)
    axis.set_ylabel("validation accuracy")


def _runs(dataset: xr.Dataset) -> Iterator[tuple[xr.Dataset, str]]:
    """Every restart with its colour; of more than there are colours all are grey."""
    count = dataset.sizes["restart"]
    few = count <= len(style.SERIES)
    for number in range(count):
        yield dataset.isel(restart=number), style.SERIES[number] if few else style.DARK


def _entries(axis: Axes, dataset: xr.Dataset) -> None:
    """Legend entries of lines and, unless they are grey, of restarts."""
    looks: dict[str, dict[str, Any]] = {
        "training tasks": {"color": style.BLACK},
        "validation tasks": {"color": style.BLACK, "ls": DASHED, "lw": 0.6},
        "weights that are kept": {
            "color": style.BLACK,
            "marker": "o",
            "mfc": "none",
            "ms": 4,
            "ls": "",
        },
        "output 0 (a), chance (b)": {"color": style.GREY, "lw": 0.6, "ls": ":"},
    }
    if dataset.sizes["restart"] <= len(style.SERIES):
        for run, colour in _runs(dataset):
            looks[f"restart {int(run.restart)}"] = {"color": colour}
    for name, look in looks.items():
        axis.plot([], [], label=name, **look)
