"""Patterns growing with N: overlaps, crosstalk, correlations, capacity.

Takes files of the kinds `extensive`, `extensive-simulation` and `capacity`
(docs/hdf5.md), and comparisons of the first two.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from statmech_attn.options import Count
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import (
    Beside,
    has_variable,
    Pages,
    pages_of,
    picture,
)
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.plotting.network.comparison import MARKERS, scientific


DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1)), (0, (1, 3)))
SCANNED = ("alpha", "beta", "gamma", "epsilon")
TWO_TIMES = {
    "C": "correlation $C(t, t')$",
    "S": r"correlation $S^{vv}(t, t')$",
    "G": "response $G(t, t')$",
    "self_interaction": r"self-interaction $\Gamma(t, t')$",
    "noise": r"crosstalk $\langle\phi(t)\phi(t')\rangle$",
}


def flat(dataset: xr.Dataset) -> xr.Dataset:
    """All points of a file along one dimension, `point`."""
    if "point" in dataset.dims:
        return dataset
    scanned = [name for name in SCANNED if name in dataset.dims]
    if not scanned:
        return dataset.expand_dims("point")
    return dataset.stack(point=scanned).reset_index("point")


def pages(dataset: xr.Dataset) -> Pages:
    """Points that fit on a page; a suffix when there are several pages."""
    return pages_of(flat(dataset), "point")


def _points(dataset: xr.Dataset) -> Iterator[tuple[str, str, xr.Dataset]]:
    """Colour, words and data of every point."""
    points = flat(dataset)
    differ = [n for n in SCANNED if n in points.coords and "point" in points[n].dims]
    for i in range(points.sizes["point"]):
        point = points.isel(point=i)
        words = [f"${notes.SYMBOLS[n]} = {notes.number(point[n])}$" for n in differ]
        yield style.SERIES[i % len(style.SERIES)], ", ".join(words), point


def _note(dataset: xr.Dataset, *more: str) -> str:
    """Ensemble, network, and what else there is to say, a line each."""
    ensemble = str(dataset.attrs.get("ensemble", ""))
    words = {
        "cycle": "a sequence",
        "ov = 1, oq = 1, ok = 1, vq = 1, vk = 1, qk = 1": "identical kinds",
    }.get(ensemble, ensemble)
    network = notes.network(dataset)
    if network and not network.startswith("$"):  # the condensed patterns have a name
        network = f"beside them: {network}"
    lines = (rf"$\alpha N$ patterns: {words}", network, *more)
    return "\n".join(filter(None, lines))


def _patterns(dataset: xr.Dataset) -> list[int]:
    return list(range(1, dataset.sizes["pattern"] + 1))


@picture(
    "overlaps",
    "extensive",
    "extensive-simulation",
    pages=pages,
    choices={"pattern": _patterns},
    beside={
        "simulation": Beside(
            "extensive-simulation", ("network", "ensemble", "start", "context")
        )
    },
)
@style.styled
def overlaps_in_time(
    dataset: xr.Dataset,
    simulation: xr.Dataset | None = None,
    *,
    pattern: Count = 1,
    ax: Axes | None = None,
) -> Figure:
    """Overlap with a pattern in time at every point, with spins where there are any.

    Markers are means over samples at the largest N, bars their standard errors.
    """
    sheet = sheets.single(ax, style.SINGLE, 2.6)
    (axis,) = sheet.axes
    spins = dataset if "m_o_se_mean" in dataset else simulation
    place = {"pattern": pattern - 1}
    for colour, words, point in _points(dataset):
        if "m_o_se" in point:
            m, error = (point[n].isel(place) for n in ("m_o_se", "m_o_se_error"))
            axis.plot(m.time, m, color=colour, label=words)
            axis.fill_between(m.time, m - error, m + error, color=colour, alpha=0.2)
            words = ""
        same = None if spins is None else _same(spins, point)
        if same is not None:
            axis.errorbar(
                same.time,
                same.m_o_se_mean.isel(place),
                same.m_o_se_stderr.isel(place),
                fmt="o",
                ms=2.4,
                mew=0.6,
                mfc="none",
                elinewidth=0.6,
                color=colour,
                label=words or None,
            )
    axis.set_xlabel(style.WORDS["time"])
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylabel(f"overlap {style.overlap('m_o_se', pattern)}")
    axis.margins(0.02, 0.05)
    if sheet.whole:
        sheet.legend(3)
    size = "" if spins is None else _sizes(spins)
    return sheet.finish(_note(dataset, size))


def _same(simulation: xr.Dataset, point: xr.Dataset) -> xr.Dataset | None:
    """The largest N of a simulation at the parameters of a point."""
    points = flat(simulation).isel(n_spins=-1, missing_dims="ignore")
    for i in range(points.sizes["point"]):
        candidate = points.isel(point=i)
        if all(float(candidate[name]) == float(point[name]) for name in SCANNED):
            return candidate
    return None


def _sizes(simulation: xr.Dataset) -> str:
    largest = float(np.max(simulation.n_spins))
    samples = int(simulation.attrs["samples"])
    return f"markers: $N = {scientific(largest)}$, {samples} samples"


@picture("crosstalk", "extensive", pages=pages)
@style.styled
def crosstalk_in_time(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Width of the crosstalk, and attention weights, in time at every point."""
    sheet = sheets.panels(axes, style.DOUBLE, 2.7, 1, 2)
    noise, weights = sheet.axes
    for colour, words, point in _points(dataset):
        noise.plot(point.time, point.noise_std, color=colour, label=words)
        for age in range(point.sizes["age"]):
            weights.plot(
                point.time,
                point.weights.isel(age=age),
                color=colour,
                ls=DASHES[age % len(DASHES)],
            )
    for age in range(min(dataset.sizes["age"], len(DASHES))):
        label = f"age $d = {age}$"
        weights.plot([], [], color=style.DARK, ls=DASHES[age], label=label)
    noise.set_ylabel(r"crosstalk $\sigma(t)$")
    weights.set_ylabel("attention weight $p_d(t)$")
    for axis in sheet.axes:
        axis.set_xlabel(style.WORDS["time"])
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.margins(0.02, 0.05)
    return sheet.finish(_note(dataset), 6)


def _of_two_times(dataset: xr.Dataset) -> list[str]:
    return [name for name in TWO_TIMES if {name, f"{name}_mean"} & set(dataset)]


CHOSEN: dict[str, Any] = {"pages": pages, "choices": {"name": _of_two_times}}


@picture("correlations", "extensive", when=has_variable("C"), **CHOSEN)
@picture("correlations", "extensive-simulation", when=has_variable("C_mean"), **CHOSEN)
@style.styled
def two_times(
    dataset: xr.Dataset, name: str = "C", *, axes: PanelAxes = None
) -> Figure:
    """An order parameter of two times as a picture, a panel for every point."""
    points = flat(dataset).isel(n_spins=-1, missing_dims="ignore")
    stored = f"{name}_mean" if f"{name}_mean" in points else name
    if stored not in points:
        available = _of_two_times(points)
        raise ValueError(
            f"no order parameter {name!r} of two times; this file has "
            f"{', '.join(available) or 'none: compute it with run.two_times'}."
        )
    count = points.sizes["point"]
    columns = min(count, 3)
    rows = -(-count // columns)
    width = style.SINGLE if columns == 1 else style.DOUBLE
    height = 2.4 * rows + 0.5 if columns < 3 else 2.1 * rows + 0.6
    sheet = sheets.panels(axes, width, height, rows, columns, count)
    values = points[stored]
    low, high = min(0.0, float(values.min())), float(values.max())
    for axis, (_, words, point) in zip(sheet.axes, _points(points), strict=True):
        axis.pcolormesh(
            point.time_2,
            point.time,
            point[stored],
            vmin=low,
            vmax=high,
            rasterized=True,
        )
        axis.set_title(words, loc="left" if count == 1 else "right", pad=2.5)
        axis.set_aspect("equal")
        axis.set_xlabel("token $t'$")
        axis.set_ylabel(style.WORDS["time"])
    if sheet.whole:
        image = sheet.axes[0].collections[0]
        sheet.figure.colorbar(image, ax=sheet.axes, label=TWO_TIMES[name], shrink=0.9)
    return sheet.finish(_note(dataset))


@picture(
    "capacity",
    "capacity",
    beside={"spins": Beside("capacity-spins", ())},
)
@style.styled
def capacities(
    dataset: xr.Dataset, spins: xr.Dataset | None = None, *, axes: PanelAxes = None
) -> Figure:
    """Largest alpha of retrieval against gamma, or else against the temperature.

    Colours are contexts C, panels the other parameter; bars are errors.

    Args:
        dataset: a result of kind `capacity`.
        spins: thresholds of `analysis/capacity_spins.py` after some tokens, drawn as
            open circles, beside bars where the theory loses the pattern after as many:
            above the lines, which are the limit of many tokens.
        axes: those to draw on, one for each value of the other parameter.
    """
    along = "gamma" if dataset.sizes.get("gamma", 1) > 1 else "beta"
    across = "beta" if along == "gamma" else "gamma"
    for name in (along, across):
        if name not in dataset.dims:
            dataset = dataset.expand_dims(name)
    others = dataset[across].values
    columns = min(len(others), 3)
    rows = -(-len(others) // columns)
    width = style.SINGLE if columns == 1 else style.DOUBLE
    size, shape = (width, 2.5 * rows + 0.4), (rows, columns, len(others))
    sheet = sheets.panels(axes, *size, *shape, sharey=True)
    for axis, other in zip(sheet.axes, others, strict=True):
        point = dataset.sel({across: other})
        for C, colour in zip(point.context.values, itertools.cycle(style.SERIES)):
            line = point.sel(context=C)
            line = line.where(np.isfinite(line.capacity), drop=True)
            axis.errorbar(
                _place(line, along),
                line.capacity,
                line.capacity_error,
                color=colour,
                fmt=".-",
                ms=3,
                elinewidth=0.6,
                label=f"$C = {C}$",
            )
            if spins is not None and C in spins.context and other in spins[across]:
                same = spins.isel(n_spins=-1).sel({"context": C, across: other})
                _threshold(axis, same, along, colour)
        if len(others) > 1:
            words = f"${notes.SYMBOLS[across]} = {notes.number(other)}$"
            axis.set_title(words, loc="right", pad=2.5)
        axis.set_xlabel(style.WORDS["gamma"] if along == "gamma" else TEMPERATURE)
        axis.margins(0.08, 0.08)
    for axis in sheet.axes[::columns]:
        axis.set_ylabel(r"capacity $\alpha_c$")
    words = ""
    if spins is not None:
        tokens = f"{spins.attrs['steps']} tokens"
        last, dark = sheet.axes[-1], style.DARK
        last.plot([], [], "o", mfc="none", ms=3.4, color=dark, label="spins")
        last.plot([], [], "_", ms=7, color=dark, label=f"theory, {tokens}")
        words = f"lines: limit of many tokens; {_sizes(spins)}, {tokens}"
    single = dataset.squeeze([across]) if len(others) == 1 else dataset
    return sheet.finish(_note(single, words), 7 if columns > 1 else 4)


@picture("thresholds", "capacity-spins")
@style.styled
def capacities_of_spins(spins: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Alpha at which spins stop to retrieve, at the largest N, and the theory's."""
    betas, size = spins.beta.values, (style.DOUBLE, 2.6)
    sheet = sheets.panels(axes, *size, 1, len(betas), sharey=True)
    for axis, beta in zip(sheet.axes, betas, strict=True):
        for C, colour in zip(spins.context.values, itertools.cycle(style.SERIES)):
            point = spins.isel(n_spins=-1).sel(context=C, beta=beta)
            _threshold(axis, point, "gamma", colour)
            axis.plot([], [], "o", mfc="none", ms=3.4, color=colour, label=f"$C = {C}$")
        axis.set_title(rf"$\beta = {notes.number(beta)}$", loc="right", pad=2.5)
        axis.set_xlabel(style.WORDS["gamma"])
        axis.margins(0.08, 0.08)
    sheet.axes[0].set_ylabel(r"$\alpha$ at which half retrieve")
    tokens = f"{spins.attrs['steps']} tokens"
    return sheet.finish(f"{_sizes(spins)}, {tokens}; bars: theory", 8)


TEMPERATURE = r"temperature $1/\beta$"


def _place(points: xr.Dataset, along: str) -> xr.DataArray:
    """Where points are drawn: at their gamma, or their temperature."""
    return points.gamma if along == "gamma" else 1 / points.beta


def _threshold(axis: Axes, spins: xr.Dataset, along: str, colour: str) -> None:
    """Draw where spins stop to retrieve, and the theory after as many tokens."""
    x = _place(spins, along)
    axis.errorbar(
        x,
        spins.threshold,
        spins.threshold_error,
        fmt="o",
        ms=3.4,
        mfc="none",
        mew=0.8,
        elinewidth=0.6,
        color=colour,
    )
    axis.plot(x, spins.after, "_", ms=7, mew=0.8, color=colour)


@picture("agreement", "comparison")
@style.styled
def extensive_agreement(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Differences of spins from theory in standard errors, and in size, against N."""
    sheet = sheets.panels(axes, style.DOUBLE, 2.8, 1, 2)
    errors, sizes = sheet.axes
    points = flat(dataset)
    N = points.n_spins.values.astype(float)
    mean_square = lambda x: np.sqrt((x**2).mean("point")).values
    for i, name in enumerate(points.observable.values):
        observed = points.sel(observable=name)
        colour, marker = style.SERIES[i % len(style.SERIES)], MARKERS[i % len(MARKERS)]
        symbol = {"m_o_se": r"m^{o,\mathrm{SE}}", "weights": "p_d"}.get(name, name)
        look = {"color": colour, "marker": marker, "ms": 3.2, "mfc": "none"}
        largest = observed.largest_z.max("point").values
        errors.plot(N, largest, lw=0.6, label=f"${symbol}$", **look)
        sizes.plot(N, mean_square(observed.rms_spread), ls="", **look)
        difference = mean_square(observed.rms_difference)
        sizes.plot(N, difference, ls=":", lw=0.6, marker=".", ms=3, color=colour)
    if len(N) > 1:
        spread = mean_square(points.rms_spread.mean("observable"))
        guide = spread[0] * np.sqrt(N[0] / N)
        sizes.plot(N, guide, color=style.BLACK, label="$N^{-1/2}$", zorder=0)
    allowed = float(dataset.threshold)
    errors.axhline(allowed, color=style.BLACK, lw=0.8, ls="--", label="allowed")
    sizes.plot([], [], color=style.DARK, ls="", marker="o", mfc="none", label="spread")
    sizes.plot([], [], color=style.DARK, ls=":", marker=".", label="mean less theory")
    errors.set_ylabel("largest $|z|$ (standard errors)")
    errors.set_ylim(0, 1.15 * max(allowed, float(dataset.largest_z.max())))
    sizes.set_ylabel("root mean square")
    sizes.set_yscale("log")
    style.log_ticks(sizes.yaxis)
    for axis in sheet.axes:
        axis.set_xscale("log")
        axis.set_xlim(N[0] / 1.5, N[-1] * 1.5)
        axis.xaxis.set_major_locator(FixedLocator(N.tolist()))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticklabels([f"${scientific(n)}$" for n in N])
        axis.set_xlabel(style.WORDS["n_spins"])
    samples = f"{int(dataset.attrs['samples'])} samples"
    return sheet.finish(_note(dataset, samples), 9)
