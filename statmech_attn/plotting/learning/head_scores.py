"""Scores of heads with their errors, and how far heads work together.

Takes files of kind `head-scores` (docs/data.md), and `HeadScores.to_dataset()`.
"""

import re

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting.frame import image_words, notes, sheets, style
from statmech_attn.plotting.frame.registry import picture, temperatures, values_of


MANY = 24  # heads whose names are turned


def _has_scores(dataset: xr.Dataset) -> bool:
    """Whether a file of a theory has scores, and is none of images of a split."""
    return "head_score" in dataset and not image_words.are_chosen(dataset)


@picture("head_scores", "head-scores")
@picture(
    "head_scores",
    "order-parameter",
    "posterior",
    when=_has_scores,
    pages=temperatures,
    choices={"width": values_of("width")},
)
@style.styled
def head_scores(
    dataset: xr.Dataset, *, width: float | None = None, ax: Axes | None = None
) -> Figure:
    """Score of every head with its error and floor, and the trained weights'.

    The floor is the score of a head that f does not read.

    Args:
        dataset: scores of heads, or order parameters at one temperature.
        width: of order parameters, the smallest one when omitted.
        ax: one to draw on.
    """
    if "temperature" in dataset.dims:
        dataset = dataset.squeeze("temperature")
    if "width" in dataset.head_score.dims:
        dataset = dataset.sel(width=dataset.width[0] if width is None else width)
    count = dataset.sizes["attention_head"]
    width = min(style.DOUBLE, max(style.SINGLE, 1.0 + 0.2 * count))
    sheet = sheets.single(ax, width, 2.5)
    (axis,) = sheet.axes
    places = np.arange(count)
    known = "head_score_stderr" in dataset
    axis.bar(
        places,
        dataset.head_score,
        0.7,
        yerr=dataset.head_score_stderr.values if known else None,
        color=style.SKY,
        error_kw={"elinewidth": 0.8, "capsize": 1.5},
        label="theory",
    )
    if "head_score_floor" in dataset:
        style.floors(axis, dataset.head_score_floor.values)
    if "head_score_trained" in dataset:
        axis.plot(
            places,
            dataset.head_score_trained,
            "o",
            color=style.VERMILION,
            ms=3.6,
            mew=0.7,
            mfc="white",
            label="trained value weights",
        )
    heads_axis(axis, dataset.attention_head.values)
    axis.set_ylim(0, None)
    axis.set_ylabel("head score")
    return sheet.finish(notes.joined(notes.BARS if known else "", _note(dataset)), 8)


@picture("heads_together", "head-scores")
@style.styled
def heads_together(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Order parameters by head: sums of sizes over the paths through two heads."""
    sheet = sheets.single(ax, style.SINGLE, 3.0)
    (axis,) = sheet.axes
    image = axis.imshow(dataset.U_by_head, vmin=0, vmax=1)
    bar = sheet.figure.colorbar(image, ax=axis, shrink=0.75, pad=0.03)
    bar.set_label(r"$\sum |U_{\pi\pi^\prime}|$ over the largest")
    style.matrix_ticks(axis, dataset.attention_head.values)
    axis.set_xlabel("head of the other path")
    axis.set_ylabel("head of a path")
    return sheet.finish(_note(dataset))


def heads_axis(axis: Axes, names) -> None:
    """Name the heads that stand at 0, 1, 2, ... of an axis."""
    axis.set_xticks(range(len(names)), names, rotation=90 if _long(names) else 0)
    axis.tick_params(axis="x", length=0)
    axis.set_xlim(-0.6, len(names) - 0.4)
    numbered = all(re.fullmatch(r"(\d+\.|skip )\d+", name) for name in names)
    axis.set_xlabel("head (layer.head)" if numbered else "head")


def _long(names) -> bool:
    return len(names) > MANY or max(map(len, names)) > 4


def _note(dataset: xr.Dataset) -> str:
    widths = np.unique(dataset.width.values)
    width = f"{widths[0]:g}" if len(widths) == 1 else "…".join(f"{N:g}" for N in widths)
    return f"$N = {width}$, $T = {float(dataset.temperature):g}$"
