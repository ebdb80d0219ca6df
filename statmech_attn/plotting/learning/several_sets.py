"""Accuracy on several test sets: theory at the temperatures chosen, or samples.

Takes files of kind `order-parameter` and `posterior` of one's own data with further
test sets (docs/data.md); those of one-shot images have a picture of their own.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting.frame import image_words, notes, sheets, style
from statmech_attn.plotting.frame.registry import picture, temperatures
from statmech_attn.plotting.frame.sheets import PanelAxes


ASIDE = 0.05  # between the points of two sets, in powers of e of the width
MARKERS = "osv^D"
PER_ROW = 4  # entries of the legend above one panel


def _are_shown(dataset: xr.Dataset) -> bool:
    """Whether it is about several test sets of another task than images."""
    return "accuracy_sets" in dataset and not image_words.are_shown(dataset)


@picture("test_sets", "order-parameter", when=_are_shown)
@picture("test_sets", "posterior", when=_are_shown, pages=temperatures)
@style.styled
def accuracy_on_sets(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Accuracy against N on every test set, with the binomial error of the set.

    Of order parameters a panel for every choice of the temperature, with the limit of
    large widths at the temperature that is chosen for it.  A circle is a temperature at
    an end of its grid: a better one may lie beyond.  Of a posterior, or of a single
    temperature, which leaves no choice, one panel.
    """
    if "accuracy_sets" not in dataset:
        raise ValueError(
            "dataset must have several test sets; this one has the first one alone: "
            "accuracy_against_width draws it."
        )
    panels = list(_panels(dataset))
    count = len(panels)
    width = style.SINGLE if count == 1 else style.DOUBLE
    sheet = sheets.panels(axes, width, 3.0, 1, count, sharey=True)
    for axis, (title, panel) in zip(sheet.axes, panels, strict=True):
        _sets(axis, panel)
        axis.set_title(title, fontsize="small")  # beside the letter of the panel
        axis.set_xscale("log")
        axis.set_xlabel(style.WORDS["width"])
        axis.margins(0.06, 0.06)
    sheet.axes[0].set_ylabel("accuracy")
    bars = "bars: binomial standard errors of the test sets"
    return sheet.finish(notes.joined(bars, notes.task(dataset)), PER_ROW * count)


def _panels(dataset: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """Title and content of every panel: accuracy, its error, limit, ends of grids."""
    if "temperature" in dataset.dims and dataset.sizes["temperature"] == 1:
        dataset = dataset.isel(temperature=0)
    if "accuracy_chosen" not in dataset or "temperature" not in dataset.dims:
        names = {"accuracy_sets": "accuracy", "accuracy_sets_stderr": "stderr"}
        names |= {"accuracy_sets_gp": "limit"} if "accuracy_sets_gp" in dataset else {}
        yield "", dataset[[*names]].rename(names)
        return
    names = {
        "accuracy_chosen": "accuracy",
        "accuracy_chosen_stderr": "stderr",
        "accuracy_chosen_gp": "limit",
        "chosen_at_end": "at_end",
    }
    for choice in map(str, dataset.choice.values):
        chooses = str(dataset.test_set.values[0]) if choice == "published" else choice
        panel = dataset[[*names]].rename(names).sel(choice=choice)
        yield f"$T$ chosen by the accuracy on {chooses}", panel


def _sets(axis: Axes, panel: xr.Dataset) -> None:
    """Points of every set side by side, each with the limit of large widths."""
    ends = panel.at_end.values if "at_end" in panel else np.zeros(panel.width.shape)
    count = panel.sizes["test_set"]
    for place, name in enumerate(map(str, panel.test_set.values)):
        of_set = panel.sel(test_set=name)
        width = panel.width.values * np.exp(ASIDE * (place - (count - 1) / 2))
        colour = style.SERIES[place % len(style.SERIES)]
        axis.errorbar(
            width,
            of_set.accuracy,
            of_set.stderr,
            fmt=MARKERS[place % len(MARKERS)] + "-",
            color=colour,
            label=name,
            **style.OPEN,
        )
        if "limit" in panel:
            axis.axhline(float(of_set.limit), color=colour, lw=0.7, ls="--", zorder=0)
        at_end = ends.astype(bool)
        axis.plot(
            width[at_end],
            of_set.accuracy.values[at_end],
            "o",
            color=colour,
            ms=6.5,
            mfc="none",
            mew=0.5,
        )
    if "limit" in panel:
        axis.plot([], [], color=style.GREY, lw=0.7, ls="--", label="GP limit")
    if ends.any():
        look = {"color": style.GREY, "ms": 6.5, "mfc": "none", "mew": 0.5}
        axis.plot([], [], "o", label="chosen $T$ at an end of its grid", **look)
