"""Losses gained without heads, what pairs of heads share, and greedy pruning.

Takes files of kind `ablation` (docs/data.md), and `Ablation.to_dataset()`.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.learning.head_scores import heads_axis


@picture("ablation", "ablation")
@style.styled
def ablation(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Loss gained without each head with its error, and what derivatives say of it.

    Args:
        dataset: losses of an ablation.
        ax: one to draw on.
    """
    count = dataset.sizes["attention_head"]
    width = min(style.DOUBLE, max(style.SINGLE, 1.0 + 0.2 * count))
    sheet = sheets.single(ax, width, 2.5)
    (axis,) = sheet.axes
    places = np.arange(count)
    axis.bar(
        places,
        dataset.loss_gained,
        0.7,
        yerr=dataset.loss_gained_stderr.values,
        color=style.SKY,
        error_kw={"elinewidth": 0.8, "capsize": 1.5},
        label="gained",
    )
    if "gradient_score" in dataset:
        for name, marker, colour, words in (
            ("loss_gained_linear", "o", style.VERMILION, "to first order"),
            (
                "gradient_score",
                "D",
                style.GREEN,
                r"$\langle|\partial L/\partial g|\rangle$",
            ),
        ):
            axis.plot(
                places,
                dataset[name],
                marker,
                color=colour,
                ms=3.2,
                mew=0.7,
                mfc="white",
                label=words,
            )
    axis.axhline(0.0, color=style.BLACK, lw=0.6)
    heads_axis(axis, dataset.attention_head.values)
    axis.set_ylabel("loss gained")
    whole = f"$L = {float(dataset.loss):.3g}$ with all heads"
    return sheet.finish(notes.joined(whole, notes.BARS), 8)


@picture("head_interactions", "ablation", when=lambda data: "head_interaction" in data)
@style.styled
def head_interactions(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Loss gained without two heads beyond the sum of both: which replace which."""
    sheet = sheets.single(ax, style.SINGLE, 3.0)
    (axis,) = sheet.axes
    values = dataset.head_interaction.values
    largest = float(np.nanmax(abs(values))) or 1.0
    image = axis.imshow(values, cmap="RdBu_r", vmin=-largest, vmax=largest)
    style.with_errors(image, dataset.head_interaction_stderr.values)
    bar = sheet.figure.colorbar(image, ax=axis, shrink=0.75, pad=0.03)
    bar.set_label(r"$d_{hh^\prime} - d_h - d_{h^\prime}$")
    style.matrix_ticks(axis, dataset.attention_head.values)
    axis.set_xlabel("other head")
    axis.set_ylabel("head")
    return sheet.finish()


@picture("greedy_pruning", "ablation", when=lambda data: "loss_gained_pruned" in data)
@style.styled
def greedy_pruning(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Loss gained while heads are switched off one by one, that of least loss first."""
    names = dataset.pruned_head.values
    width = min(style.DOUBLE, max(style.SINGLE, 1.0 + 0.2 * len(names)))
    sheet = sheets.single(ax, width, 2.5)
    (axis,) = sheet.axes
    axis.errorbar(
        np.arange(len(names)),
        dataset.loss_gained_pruned,
        dataset.loss_gained_pruned_stderr.values,
        fmt="o-",
        color=style.BLUE,
        ms=3,
        lw=1,
        capsize=1.5,
    )
    axis.axhline(0.0, color=style.BLACK, lw=0.6)
    heads_axis(axis, names)
    axis.set_xlabel("heads switched off up to this one")
    axis.set_ylabel("loss gained")
    return sheet.finish(notes.BARS)
