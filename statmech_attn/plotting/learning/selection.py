"""Width and temperature by the evidence, and by the error on validation examples.

Takes data sets of kind `model-selection` (docs/hdf5.md).
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.presentation import quantity


MARKERS = "osv^D"
SYMBOLS = {"width": "N", "temperature": "T"}
PANELS = {
    "log_evidence": (r"$\ln p(Y)$ of the training labels", "evidence"),
    "error": ("mean squared error\non the validation set", "validation"),
}


@picture("model_selection", "model-selection")
@style.styled
def evidence_and_validation(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """ln p(Y) and validation error against T, a line for each width.

    Of a single temperature they are drawn against the width.

    A large ring marks what each of them chooses.  Bars are Monte Carlo errors of the
    evidence, and standard errors over validation examples, which all points share.
    """
    sheet = sheets.panels(axes, style.DOUBLE, 2.9, 1, 2)
    along, other = "temperature", "width"
    if dataset.sizes["temperature"] == 1:
        along, other = other, along
    for axis, (name, (words, choice)) in zip(sheet.axes, PANELS.items(), strict=True):
        for i, value in enumerate(dataset[other].values):
            label = f"${SYMBOLS[other]} = {float(value):g}$"
            _line(axis, dataset.sel({other: value}), name, along, label, i)
        _ring(axis, dataset, name, along, choice)
        axis.set_xscale("log")
        axis.set_xlabel(f"{along} ${SYMBOLS[along]}$")
        axis.set_ylabel(words)
        axis.margins(0.05, 0.08)
    sheet.axes[1].set_yscale("log")
    style.log_ticks(sheet.axes[1].yaxis)
    return sheet.finish(notes.joined(notes.BARS, *_agreement(dataset)), 6)


def _line(
    axis: Axes, one: xr.Dataset, name: str, along: str, label: str, i: int
) -> None:
    error = one[f"{name}_stderr"].values
    axis.errorbar(
        one[along].values,
        one[name].values,
        error if np.isfinite(error).any() else None,
        color=style.SERIES[i % len(style.SERIES)],
        marker=MARKERS[i % len(MARKERS)],
        label=label,
        **style.OPEN,
    )


def _ring(axis: Axes, dataset: xr.Dataset, name: str, along: str, choice: str) -> None:
    chosen = dataset.sel(choice=choice)
    width, T = float(chosen.chosen_width), float(chosen.chosen_temperature)
    axis.plot(
        float(chosen[f"chosen_{along}"]),
        float(dataset[name].sel(width=width, temperature=T)),
        "o",
        ms=9,
        mfc="none",
        mec=style.BLACK,
        mew=0.9,
        zorder=4,
        label="chosen",
    )


def _agreement(dataset: xr.Dataset) -> list[str]:
    above = f"{quantity(dataset.excess, dataset.excess_stderr)} above the least"
    words = [f"validation error at the evidence's choice: {above}"]
    if np.isfinite(correlation := float(dataset.rank_correlation)):
        shown = f"{correlation:.2f}".replace("-", "\N{MINUS SIGN}")
        words.append(f"rank correlation {shown}")
    return words
