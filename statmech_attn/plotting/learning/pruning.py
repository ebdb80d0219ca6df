"""Pruning: what heads cost by their scores, and accuracy against heads pruned.

Takes files of kind `pruning` (docs/hdf5.md).  Heads of different trainings have nothing
in common but their layer, so they are averaged by the rank of their score.
"""

import re
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from statmech_attn import bpkr
from statmech_attn.bpkr import estimates
from statmech_attn.plotting.frame import image_words, notes, sheets, style
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.statistics import mean_of_known


DASHES: dict[str, Any] = {  # of an order that is no plain line
    "exact-law": (0, (4, 2)),
    "trained": (0, (6, 2, 1, 2)),
    "magnitude": (0, (1, 1.5)),
}
LAST: dict[str, Any] = {
    "marker": "x",
    "ms": 6,
    "color": style.BLACK,
    "ls": "none",
    "zorder": 4,
}
COLUMNS = 2
NAME_WIDTH = 0.05  # of a head, in scores
NAMED = 24  # heads that have room for their names
ASIDE = 0.06  # of the points of one order, in heads
# Tiberi et al. (NeurIPS 2024), four heads in each of two layers: base, then after
# pruning one head, in ascending order of its score.
PUBLISHED_HEADS = (4, 4)
PUBLISHED_ACCURACY = (0.838, 0.818, 0.830, 0.795, 0.754, 0.760, 0.765, 0.743, 0.749)


@picture("pruned_heads", "pruning")
@style.styled
def pruned_heads(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Accuracy on the first test set lost without a head, against the head's score.

    One panel for each training, with the rank correlation of both; bars are standard
    errors of the difference on the same tasks.
    """
    trainings = _computed(dataset)
    rows = -(-len(trainings) // COLUMNS)
    columns = min(COLUMNS, len(trainings))
    width = style.DOUBLE if columns > 1 else style.SINGLE + 0.6
    size = width, 0.85 + 2.0 * rows
    shape = (rows, columns, len(trainings))
    sheet = sheets.panels(axes, *size, *shape, sharex=True, sharey=True)
    for axis, number in zip(sheet.axes, trainings, strict=True):
        training = dataset.sel(restart=number).isel(test_set=0)
        _drops_by_score(axis, training)
        if len(trainings) > 1:
            axis.set_title(f"restart {int(number)}", loc="left", pad=2.5)
    for axis in sheet.axes[::columns]:
        axis.set_ylabel(f"accuracy{_on_the_first_set(dataset)}\nlost without the head")
    for axis in sheet.axes[-columns:]:
        axis.set_xlabel("head score")
    heads = "numbers: layer.head" if _numbered(dataset) else ""
    return sheet.finish(notes.joined(heads, _note(dataset)), 4 if columns > 1 else 2)


def _drops_by_score(axis: Axes, one: xr.Dataset) -> None:
    """A point for every head, with its name; of the exact law beside it, if known."""
    drops, errors = one.accuracy_drop.values, one.accuracy_drop_stderr.values
    axis.axhline(0.0, color=style.GREY, lw=0.6)
    look = {order: _look(order) for order in ("saddle", "exact-law")}
    scores = {order: one.pruning_score.sel(order=order).values for order in look}
    for order, (colour, marker, words) in look.items():
        if np.isfinite(scores[order]).any():
            axis.errorbar(
                scores[order],
                drops,
                errors if order == "saddle" else None,
                fmt=marker,
                color=colour,
                label=f"score of the {words}",
                **style.OPEN,
            )
    if "head_score_floor" in one:
        axis.plot(one.head_score_floor, drops, "|", color=style.GREY, label="floor")
    _name_heads(axis, one.attention_head.values, scores["saddle"], drops, errors)
    axis.margins(0.08, 0.2)
    correlation = float(one.rank_correlation.sel(order="saddle"))
    if np.isfinite(correlation):
        axis.set_title(f"rank correlation {correlation:.2f}", loc="right", pad=2.5)


def _name_heads(axis: Axes, names, scores, drops, errors) -> None:
    """Names of heads in turn above and below their bars, from the lowest score on.

    A name stands beyond the bars that it would meet, and a line farther out where it
    would meet the last one on its side.
    """
    known = np.isfinite(scores) & np.isfinite(drops) & (len(names) <= NAMED)
    ordered = [i for i in np.argsort(scores) if known[i]]
    for rank, i in enumerate(ordered):
        side = 1 if rank % 2 else -1
        near = rank > 1 and scores[i] - scores[ordered[rank - 2]] < NAME_WIDTH
        beside = known & (np.abs(scores - scores[i]) < NAME_WIDTH / 2)
        end = (side * drops + errors)[beside].max()
        axis.annotate(
            names[i],
            (scores[i], side * end),
            xytext=(0, (9 if near else 2) * side),
            textcoords="offset points",
            fontsize=7,
            ha="center",
            va="bottom" if side > 0 else "top",
            path_effects=[withStroke(linewidth=2, foreground="white")],
        )


def _numbered(dataset: xr.Dataset) -> bool:
    """Whether heads are called by their layer and number."""
    names = dataset.attention_head.values
    return all(re.fullmatch(r"\d+\.\d+", str(name)) for name in names)


@picture("pruning_ranks", "pruning")
@style.styled
def pruning_ranks(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Accuracy lost with one head, by the rank of its score, and rank correlations.

    Means over the trainings with their standard errors; of a single training the error
    of the drop, a paired difference on the same tasks, and none of the correlation.
    """
    sheet = sheets.panels(axes, style.DOUBLE, 3.4, 1, 2, width_ratios=(1.1, 1))
    drops, correlations = sheet.axes
    _drops_by_rank(drops, dataset)
    _correlations(correlations, dataset)
    if sheet.whole:
        for axis, letter in zip(sheet.axes, "ab", strict=True):
            axis.text(0.02, 0.97, f"({letter})", va="top", transform=axis.transAxes)
    return sheet.finish(_note(dataset), letters=False)


def _drops_by_rank(axis: Axes, dataset: xr.Dataset) -> None:
    axis.axhline(0.0, color=style.GREY, lw=0.6)
    for i, order in enumerate(("saddle", "exact-law")):
        mean, error = drops_by_rank(dataset, order)
        if mean.size:
            colour, marker, name = _look(order)
            ranks = np.arange(1, len(mean) + 1) + 0.12 * (i - 0.5)
            label = f"score of the {name}" + _fewer(dataset, order)
            axis.errorbar(
                ranks,
                mean,
                error,
                fmt=marker,
                color=colour,
                label=label,
                **style.OPEN,
            )
    if image_words.are_shown(dataset) and _head_counts(dataset) == PUBLISHED_HEADS:
        lost = PUBLISHED_ACCURACY[0] - np.array(PUBLISHED_ACCURACY[1:])
        axis.plot(
            np.arange(1, len(lost) + 1),
            lost,
            "x",
            color=style.SKY,
            ms=4,
            label=f"published, {image_words.PUBLISHED_CHARACTERS} characters",
        )
    axis.set_xticks(range(1, dataset.sizes["attention_head"] + 1))
    axis.set_xlabel("rank of the head, lowest score first")
    axis.set_ylabel(f"accuracy{_on_the_first_set(dataset)}\nlost without the head")
    axis.margins(0.08, 0.12)
    _legend_above(axis, 1)


def drops_by_rank(dataset: xr.Dataset, order: str) -> tuple[np.ndarray, np.ndarray]:
    """Drop on the first test set by ascending score: mean and error over trainings.

    Trainings and heads are those of the rank correlation; empty where there are none.
    """
    drops, errors = [], []
    for number in _correlated(dataset, order):
        training = dataset.sel(restart=number, order=order).isel(test_set=0)
        training = training.dropna("attention_head", subset=["accuracy_drop"])
        ranks = np.argsort(training.pruning_score.values, kind="stable")
        drops.append(training.accuracy_drop.values[ranks])
        errors.append(training.accuracy_drop_stderr.values[ranks])
    if len(drops) < 2:
        return np.ravel(drops), np.ravel(errors)
    return mean_of_known(np.stack(drops))


def _correlated(dataset: xr.Dataset, order: str) -> np.ndarray:
    """Trainings with a rank correlation on the first test set."""
    values = dataset.rank_correlation.sel(order=order).isel(test_set=0)
    return dataset.restart.values[np.isfinite(values.values)]


def _fewer(dataset: xr.Dataset, order: str) -> str:
    """How many trainings an order has, where it lacks some."""
    count, every = len(_correlated(dataset, order)), len(_computed(dataset))
    return "" if count == every else f", {count} of {every}"


def _correlations(axis: Axes, dataset: xr.Dataset) -> None:
    """Rank correlations of score and drop, and what scores without meaning give."""
    orders = [name for name in estimates.SCORES if _correlated(dataset, name).size]
    places = np.arange(len(orders))
    first = dataset.isel(test_set=0).transpose("restart", ...)
    drops = first.accuracy_drop.values
    correlations = [first.rank_correlation.sel(order=name).values for name in orders]
    chance = np.array(
        [
            bpkr.pruning.chance_correlation(correlation, drops)
            for correlation in correlations
        ]
    )
    axis.bar(
        places,
        2 * chance,
        1.0,
        bottom=-chance,
        color=style.PALE,
        lw=0,
        zorder=0,
        label="chance (one s.d.)",
    )
    axis.axhline(0.0, color=style.GREY, lw=0.6)
    for i, test_set in enumerate(dataset.test_set.values):
        selected = dataset.sel(test_set=test_set, order=orders)
        aside = 0.16 * (i - (dataset.sizes["test_set"] - 1) / 2)
        axis.errorbar(
            places + aside,
            selected.rank_correlation_mean,
            selected.rank_correlation_mean_stderr,  # NaN of one training: no bar
            fmt="osv^"[i % 4],
            color=style.SERIES[i % len(style.SERIES)],
            label=image_words.set_title(dataset, str(test_set)).removesuffix(
                " characters"
            ),
            **style.OPEN,
        )
    names = [estimates.SCORES[name].words.replace(" ", "\n") for name in orders]
    axis.set_xticks(places, names)
    axis.set_xlim(-0.5, max(len(orders), 1) - 0.5)
    axis.set_ylim(-1.1, 1.3)
    axis.set_xlabel("score")
    axis.set_ylabel("rank correlation\nof score and accuracy lost")
    _legend_above(axis, 2)


def _legend_above(axis: Axes, columns: int) -> None:
    axis.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=columns,
        columnspacing=0.8,
    )


@picture("cumulative_pruning", "pruning")
@style.styled
def cumulative_pruning(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Accuracy against the number of heads pruned, in the order of each score.

    A panel for each test set, of images for unseen characters and FashionMNIST where it
    is there; means over trainings with their standard errors.  Of a single training the
    error of an order with scores is binomial, that of its examples, and of the random
    curve the one over its orders.  A line ends, with a cross, where one head more
    empties a layer of some training.
    """
    shown = [*dataset.test_set.values]
    if image_words.are_shown(dataset):
        shown = [name for name in shown if name in (shown[0], "fashion-mnist")]
    count, columns = len(shown), min(COLUMNS, len(shown))
    width, rows = style.DOUBLE if count > 1 else style.SINGLE, -(-count // columns)
    size = width, 0.9 + 2.2 * rows
    sheet = sheets.panels(axes, *size, rows, columns, count, sharey=True)
    for axis, name in zip(sheet.axes, shown, strict=True):
        for order in estimates.SCORES:
            _curve(axis, dataset.sel(test_set=name, order=order), order)
        image_words.chance_level(axis)
        axis.plot([], [], label="one more empties a layer", **LAST)
        axis.set_title(image_words.set_title(dataset, str(name)), pad=2.5)
        axis.set_xlabel("number of pruned heads")
        axis.set_xticks(dataset.n_pruned.values[:: 1 + dataset.n_pruned.size // 10])
        axis.margins(0.03, 0.06)
    for axis in sheet.axes[::columns]:
        axis.set_ylabel("accuracy")
    return sheet.finish(_note(dataset, "bars and bands"), 4)


def _curve(axis: Axes, trainings: xr.Dataset, order: str) -> None:
    every = len(_computed(trainings))
    trainings = trainings.dropna("restart", how="all", subset=["accuracy_cumulative"])
    values = trainings.accuracy_cumulative.transpose("restart", "n_pruned").values
    if not values.size:
        return
    mean, error = mean_of_known(values)
    mean = np.where(np.isnan(values).any(axis=0), np.nan, mean)
    if len(values) == 1:
        error = trainings.accuracy_cumulative_stderr.values[0]
    colour, marker, name = _look(order)
    dashes = DASHES.get(order, "-")
    name += "" if len(values) == every else f", {len(values)} of {every}"
    aside = ASIDE * ([*estimates.SCORES].index(order) - 1.5) if marker else 0.0
    known = np.flatnonzero(np.isfinite(mean))
    if known.size and known[-1] < len(mean) - 1:
        end = trainings.n_pruned.values[known[-1]] + aside, mean[known[-1]]
        axis.plot(*end, **LAST)
    if order == "random":
        axis.fill_between(
            trainings.n_pruned, mean - error, mean + error, color=style.PALE, lw=0
        )
        axis.plot(trainings.n_pruned, mean, color=colour, label=name)
        return
    axis.errorbar(
        trainings.n_pruned + aside,
        mean,
        error,
        color=colour,
        marker=marker,
        ls=dashes,
        label=name,
        **style.OPEN,
    )


def _computed(dataset: xr.Dataset) -> np.ndarray:
    """Trainings that were pruned; `ValueError` where there is none."""
    if "failure" not in dataset:
        return dataset.restart.values
    restarts = dataset.restart.values[dataset.failure.values == 0]
    if not restarts.size:
        raise ValueError(
            "pruning: no training of this file has numbers to draw; its attribute "
            "failure_reasons says why."
        )
    return restarts


def _head_counts(dataset: xr.Dataset) -> tuple[int, ...]:
    layers = _layers(dataset)
    return tuple(layers.count(layer) for layer in dict.fromkeys(layers))


def _layers(dataset: xr.Dataset) -> list[int]:
    """The layer of every head, as its name says where the file does not."""
    if "head_layer" in dataset:
        return dataset.head_layer.values.tolist()
    return [int(name.split(".")[0]) for name in dataset.attention_head.values]


def _on_the_first_set(dataset: xr.Dataset) -> str:
    """Words for the test set of an accuracy; none where there is only one."""
    if image_words.are_shown(dataset):
        return " on unseen characters"
    return f" on {dataset.test_set.values[0]}" if dataset.test_set.size > 1 else ""


def _note(dataset: xr.Dataset, marks: str = "bars") -> str:
    """What bars are, and how much data there is."""
    bars, trainings = f"{marks}: one standard error", len(_computed(dataset))
    if image_words.are_shown(dataset):
        return notes.joined(bars, image_words.size_words(dataset, trainings))
    return notes.joined(bars, notes.task(dataset))


def _look(order: str) -> tuple[str, str, str]:
    """Colour, marker and words."""
    score = estimates.SCORES[order]
    return style.PALETTE[score.colour], score.marker, score.words
