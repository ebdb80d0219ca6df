"""Basins of attraction along a parameter, lifetimes of transients, hysteresis.

Takes files of kind `basins` and `hysteresis` (docs/hdf5.md).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from statmech_attn.dynamics import PHASES, survival
from statmech_attn.plotting.dynamics.bifurcation import span
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.axis_words import label, many, shown, sign
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes


LETTERED = 0.07  # a cell wider than this share of the axis carries its period
CURVES = 6
SHARED = ("transient", "undetermined", "chaotic", "hyperchaotic")
LEGEND = 14  # sets with an entry of their own
PERIODS = 3  # of a set, in its entry


@picture("basins", "basins")
@style.styled
def basin_fractions(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Shares of the starts by set, stacked, and with errors; mean lifetimes below.

    A set keeps its colour along the parameter; the number in a wide cell is its period.
    """
    name = _axis(dataset)
    dataset = dataset.sortby(name)
    heights = [1.0, 0.8, 0.8]
    sheet = sheets.panels(
        axes, style.DOUBLE, 4.9, 3, sharex=True, height_ratios=heights
    )
    edges, colours = style.cell_edges(dataset[name].values), set_colours(dataset)
    stack, errors, rates = sheet.axes
    _stacked(stack, dataset, name, colours)
    _with_errors(errors, dataset, name, colours)
    _mean_lifetimes(rates, dataset, name)
    for axis in sheet.axes:
        axis.set_xlim(edges[0], edges[-1])
    sheet.axes[-1].set_xlabel(label(dataset, name))
    cells = f"numbers: period in {many(dataset.period)}" if stack.texts else ""
    return sheet.finish(notes.joined(cells, notes.BARS, _starts(dataset)), 5)


@picture("lifetimes", "basins")
@style.styled
def lifetimes(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Share of the starts still on their way, and the fitted exponential tail.

    Kaplan-Meier curves with bands of one standard error; crosses mark runs that ended
    first.  Dashed: the maximum likelihood rate, from where the tail begins.
    """
    name = _axis(dataset)
    dataset = dataset.sortby(name)
    chosen = np.unique(np.linspace(0, dataset.sizes[name] - 1, CURVES).astype(int))
    sheet = sheets.single(ax, style.DOUBLE, 3.1)
    (axis,) = sheet.axes
    for colour, i in zip(style.SERIES, chosen, strict=False):
        _survival(axis, dataset.isel({name: i}), name, colour)
    axis.set_yscale("log")
    axis.set_xscale("log")
    axis.set_ylim(top=1.2)
    steps = dataset.lifetime.values[chosen]
    axis.set_xlim(left=0.5 * np.quantile(steps[steps > 0], 0.01))
    axis.set_xlabel(rf"lifetime $\tau$ ({many(dataset.lifetime)})")
    axis.set_ylabel(r"share with a longer lifetime")
    if np.isfinite(dataset.escape_rate.values[chosen]).any():
        axis.plot([], [], color=style.BLACK, ls="--", label="exponential tail")
    axis.plot([], [], "x", color=style.BLACK, ms=4, label="end of the runs")
    if sheet.whole:
        sheet.figure.legend(loc="outside right upper")
    return sheet.finish(notes.joined("bands: one standard error", _starts(dataset)))


def draw_sweeps(
    axes: Sequence[Axes], dataset: xr.Dataset, colour: str = style.BLACK
) -> None:
    """Samples of the sweep up on one panel and of that down on another, same scale."""
    name = str(dataset.differ.dims[0])
    size = style.dot(dataset.sizes[name], 1.6)
    look: Any = {"ms": size, "mew": 0, "color": colour, "rasterized": True}
    ranges = []
    for axis, way in zip(axes, ("up", "down"), strict=True):
        y = dataset[f"strobe_{way}"].transpose(name, ...).values
        x = np.broadcast_to(dataset[name].values[:, None], y.shape)
        axis.plot(x.ravel(), y.ravel(), ".", **look)
        axis.set_title(f"followed {way}ward", loc="left", pad=2.5)
        axis.set_ylabel(shown(dataset, "strobe_up"))
        span(axis, dataset, name)
        ranges.append(axis.get_ylim())
    for axis in axes:
        axis.set_ylim(np.min(ranges), np.max(ranges))
        _mark_difference(axis, dataset)


def _mark_difference(axis: Axes, dataset: xr.Dataset) -> None:
    """A bar at the foot where sweeps differ, half way to values where they agree."""
    low, first, last, high = dataset.interval.transpose(..., "edge").values.T
    begin, end = (  # NaN where the interval reaches an end of the values
        np.where(np.isnan(outer), inner, (outer + inner) / 2)
        for outer, inner in ((low, first), (high, last))
    )
    foot, top = axis.get_ylim()
    if begin.size:
        look: Any = {"color": style.BLACK, "lw": 4, "label": "sweeps differ"}
        axis.hlines(np.full(begin.shape, foot), begin, end, **look)
    axis.set_ylim(foot, top)


@picture("hysteresis", "hysteresis")
@style.styled
def hysteresis(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Samples of the sweeps up and down a parameter, and the distance of their sets.

    Args:
        dataset: a result of kind `hysteresis`.
        axes: three to draw on, for the samples upward and downward and the distance.
    """
    name = str(dataset.differ.dims[0])
    heights = [1.0, 1.0, 0.5]
    sheet = sheets.panels(
        axes, style.DOUBLE, 5.0, 3, sharex=True, height_ratios=heights
    )
    *samples, lower = sheet.axes
    draw_sweeps(samples, dataset)
    look: Any = {"ms": 4, "mew": 0, "color": style.BLACK}
    lower.plot(dataset[name].values, dataset.distance.values, ".", **look)
    _mark_difference(lower, dataset)
    lower.set_ylabel("distance of\nthe sets")
    lower.set_xlabel(label(dataset, name))
    span(lower, dataset, name)
    return sheet.finish(notes.network(dataset), 8)


def _starts(dataset: xr.Dataset) -> str:
    """How many starts each value has, and the fixed parameters."""
    starts = f"{dataset.sizes['start']} starts at each value"
    return notes.joined(starts, notes.network(dataset))


def _axis(dataset: xr.Dataset) -> str:
    return str(dataset["count"].dims[0])


def set_colours(dataset: xr.Dataset) -> dict[int, str]:
    """The colour of every set that is an attractor for certain somewhere, by number."""
    numbers, phases = dataset.attractor.values, dataset.phase.values
    certain = (dataset["count"].values > 0) & ~np.isin(
        phases, [PHASES.index(phase) for phase in SHARED]
    )
    return {
        int(number): style.ATTRACTOR_COLOURS[i % len(style.ATTRACTOR_COLOURS)]
        for i, number in enumerate(np.unique(numbers[certain]))
    }


def set_colour(attractor: xr.Dataset, colours: dict[int, str]) -> str:
    """The colour of a set; those that may be no attractors have their phase's."""
    if set_name(attractor) in SHARED:
        return style.PHASE_COLOURS[PHASES[int(attractor.phase)]]
    return colours[int(attractor.attractor)]


def set_name(attractor: xr.Dataset) -> str:
    """A set in legends: its number, or the phase of those that may be no attractors."""
    phase = PHASES[int(attractor.phase)]
    return phase if phase in SHARED else f"set {int(attractor.attractor)}"


def _entry(key: str, phases: list[str], periods: list[int]) -> str:
    """A set in the legend: its phases, with the periods that it has."""
    words = list(dict.fromkeys(phases))
    if words == [key]:
        return key
    numbers = [str(period) for period in dict.fromkeys(periods) if period > 0]
    if numbers and words == ["periodic"]:
        more = ["..."] * (len(numbers) > PERIODS)
        words = [f"period {', '.join(numbers[:PERIODS] + more)}"]
    return f"{key}: {', '.join(words)}"


def _stacked(
    axis: Axes, dataset: xr.Dataset, name: str, colours: dict[int, str]
) -> None:
    """The shares, with a legend entry for each set."""
    edges = style.cell_edges(dataset[name].values)
    width, bottom = np.diff(edges), np.zeros(dataset.sizes[name])
    entries: dict[str, tuple[str, list[str], list[int]]] = {}
    numbers = dataset.attractor.values
    places = np.argwhere(dataset["count"].values > 0)
    for i, k in sorted(places.tolist(), key=lambda place: numbers[tuple(place)]):
        attractor = dataset.isel({name: i, "slot": k})
        phase, share = PHASES[int(attractor.phase)], float(attractor.fraction)
        colour = set_colour(attractor, colours)
        axis.bar(
            edges[i],
            share,
            width[i],
            bottom[i],
            align="edge",
            color=colour,
            edgecolor="white",
            lw=0.3,
        )
        if (
            width[i] > LETTERED * np.ptp(edges)
            and share > 0.08
            and attractor.period > 0
        ):
            axis.text(
                float(edges[i] + width[i] / 2),
                float(bottom[i] + share / 2),
                str(int(attractor.period)),
                ha="center",
                va="center",
                fontsize=7,
                color=style.BLACK if style.is_light(colour) else "white",
            )
        bottom[i] += share
        _, phases, periods = entries.setdefault(set_name(attractor), (colour, [], []))
        phases.append(phase)
        periods.append(int(attractor.period))
    for key, colour in (("unsettled", style.GREY), ("diverged", style.BLACK)):
        share = dataset[f"count_{key}"].values / dataset.sizes["start"]
        if share.any():
            axis.bar(edges[:-1], share, width, bottom, align="edge", color=colour)
            bottom = bottom + share
            entries.setdefault(key, (colour, [key], []))
    axis.set_ylim(0, 1)
    axis.set_ylabel("share of starts")
    for key, (colour, phases, periods) in list(entries.items())[:LEGEND]:
        style.patch(axis, _entry(key, phases, periods), colour)


def _with_errors(
    axis: Axes, dataset: xr.Dataset, name: str, colours: dict[int, str]
) -> None:
    for i, k in np.argwhere(dataset["count"].values > 0):
        attractor = dataset.isel({name: i, "slot": k})
        y = float(attractor.fraction)
        errors = [
            [y - float(attractor.fraction_low)],
            [float(attractor.fraction_high) - y],
        ]
        colour = set_colour(attractor, colours)
        axis.errorbar(
            float(attractor[name]),
            y,
            errors,
            fmt="o",
            ms=3.5,
            mew=0,
            color=colour,
            lw=1,
        )
    axis.set_ylim(-0.05, 1.05)
    axis.set_yticks([0, 0.5, 1])
    axis.set_ylabel("share of starts")


def _mean_lifetimes(axis: Axes, dataset: xr.Dataset, name: str) -> None:
    rate, error = dataset.escape_rate.values, dataset.escape_rate_stderr.values
    axis.errorbar(
        dataset[name].values,
        1 / rate,
        error / rate**2,
        fmt="o",
        ms=3.5,
        mew=0,
        color=style.BLACK,
        lw=1,
    )
    if np.isfinite(rate).any():
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        if high > 10 * low:  # where labels between the decades would meet
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylabel(f"mean lifetime\n$1/\\kappa$ ({many(dataset.lifetime)})")


def _survival(axis: Axes, dataset: xr.Dataset, name: str, colour: str) -> None:
    stayed = dataset.label.values != -2
    lifetime, ended = (
        dataset.lifetime.values[stayed],
        dataset.lifetime_ended.values[stayed],
    )
    words = f"{sign(dataset, name)} = {float(dataset[name]):.6g}"
    if not ended.any():
        axis.plot([], [], color=colour, label=f"{words}: none settled")
        return
    curve = survival(lifetime, ended)
    axis.step(curve.time, curve.share, where="post", color=colour, label=words)
    axis.fill_between(
        curve.time, curve.low, curve.high, step="post", color=colour, alpha=0.2, lw=0
    )
    cut = np.unique(lifetime[~ended])
    axis.plot(cut, np.full(len(cut), curve.share[-1]), "x", ms=4, color=colour)
    rate, after = float(dataset.escape_rate), float(dataset.escape_after)
    before = curve.share[curve.time <= after]
    start = before[-1] if before.size else 1.0
    time = np.geomspace(max(after, 1.0), curve.time[-1] * 1.3, 100)
    y = start * np.exp(-rate * (time - after))
    near = y > 0.3 / len(lifetime)
    axis.plot(time[near], y[near], "--", color=colour, lw=0.8)
