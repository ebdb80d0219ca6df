r"""Finite networks against the theory, and agreement in standard errors.

`finite_size` takes a Monte Carlo file, with the trajectory file of the theory where
there is one; `agreement` takes a comparison file (docs/hdf5.md).  With
$\sigma_1 = \sqrt N \sigma_N$ the linear-noise spread at N = 1, a comparison file gives

    s_N / \sigma_1                  = ratio / \sqrt N    spread over runs
    \Delta_N \sqrt{N R} / \sigma_1  = z ratio           mean of R runs minus theory

The second is in sampling errors of the mean: 1 without a bias, and as $N^{-1/2}$ above
where a bias of order 1/N is larger than these.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter

from statmech_attn.comparison import least_spins, VERDICTS
from statmech_attn.dynamics import diagrams
from statmech_attn.labels import unit_of
from statmech_attn.options import Count
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import (
    Beside,
    pages_of,
    pages_of_beta,
    picture,
    values_of,
)
from statmech_attn.plotting.frame.sheets import PanelAxes


LEVEL = 6  # values of beta whose names stand level
NAMED = 12  # so many values of beta are named on the axis, more are a scale
LINEAR = "end of linear regime"
RANGE = 1.0  # a linear-noise band wider than this says nothing about an overlap
OBSERVABLES = ("m_o_se", "A")
MARKERS = ("o", "s", "^", "v", "P", "X", "*", "h")


@picture(
    "simulation",
    "monte-carlo",
    pages=lambda dataset: pages_of(dataset, _along(dataset)),
    choices={
        "observable": lambda dataset: OBSERVABLES,
        "pattern": values_of("pattern"),
    },
    beside={"theory": Beside("trajectory", ("network", "start"))},
)
@style.styled
def finite_size(
    simulation: xr.Dataset,
    theory: xr.Dataset | None = None,
    *,
    observable: str = "m_o_se",
    pattern: Count = 1,
    tokens: Count = 100,
    sizes: Count = 3,
    axes: PanelAxes = None,
) -> Figure:
    """One run and the average over runs, against mean field with its noise band.

    A dotted line marks where fluctuations leave the linear regime of the softmax, as
    `comparison.compare` has it; beyond it linear noise is not expected to hold.

    Args:
        simulation: Monte Carlo file; rows are its beta, or its points, columns its
            smallest N.
        theory: trajectory file with the same start and the linear-noise spread.
        observable: "m_o_se" or "A".
        pattern: which component, counted from 1.
        tokens: length of the window.
        sizes: how many N are shown, the smallest ones.
        axes: those to draw on, one for each beta and N, beta by beta.

    Raises:
        ValueError: theory beside a list of points.
    """
    n_spins, along = simulation.n_spins.values[:sizes], _along(simulation)
    names = diagrams.listed_parameters(simulation) or ["beta"]
    if theory is not None and along != "beta":
        raise ValueError("theory is drawn beside values of beta, not a list of points.")
    sheet, panels = _grid(axes, simulation[along].values, n_spins, 0.85)
    for i, row in enumerate(panels):
        of_row = simulation.isel({along: i})
        beta = float(of_row.beta)
        for axis, n in zip(row, n_spins, strict=True):
            point = of_row.sel(n_spins=n, pattern=pattern)
            band = None if theory is None else theory.sel(beta=beta, pattern=pattern)
            _run_panel(axis, point, band, observable, n, tokens)
            if theory is not None and "gamma" in theory.coords:
                end = int((n >= least_spins(theory.sel(beta=beta))).sum())
                axis.axvline(end, color=style.BLACK, lw=0.9, ls=":", label=LINEAR)
        row[0].set_ylabel(style.overlap(observable, pattern))
        signs = (f"${notes.SYMBOLS[n]} = {float(of_row[n]):g}$" for n in names)
        row[0].set_title(", ".join(signs), loc="left", pad=2.5)
    return sheet.finish(notes.network(simulation), 8, of=slice(1))


def _along(simulation: xr.Dataset) -> str:
    """The dimension that is beta, or the index of a list of points."""
    others = {"n_spins", "time", "pattern"}
    names = [str(d) for d in simulation.m_o_se_mean.dims if d not in others]
    if len(names) != 1:
        raise ValueError("simulation must be along beta, or along a list of points.")
    return names[0]


def _grid(
    axes: PanelAxes, betas, n_spins, rest: float
) -> tuple[sheets.Sheet, np.ndarray]:
    """Axes for each beta (rows) and N (columns), with what all of them say."""
    shape = len(betas), len(n_spins)
    size = style.DOUBLE, 1.1 * len(betas) + rest
    sheet = sheets.panels(axes, *size, *shape, sharex=True, sharey="row")
    panels = np.array(sheet.axes).reshape(shape)
    for axis, n in zip(panels[0], n_spins, strict=True):
        axis.set_title(f"$N = {scientific(n)}$", loc="right", pad=2.5)
    for axis in panels[-1]:
        axis.set_xlabel(style.WORDS["time"])
    return sheet, panels


def _run_panel(axis: Axes, point, theory, observable: str, n: int, tokens: int) -> None:
    """One beta and N: a run, the average over runs, the theory and its band."""
    mean = point[f"{observable}_mean"].values[:tokens]
    time = np.arange(len(mean))
    if theory is None:
        spread = point[f"{observable}_spread"].values[:tokens]
        centre, words = mean, "spread over runs"
    else:
        centre = theory[observable].values[:tokens]
        spread = theory[f"{observable}_noise_std"].values[:tokens] / np.sqrt(n)
        words = "linear noise"
    in_range = np.maximum.accumulate(spread) <= RANGE
    in_range[len(centre) :] = False
    low, high = centre - spread, centre + spread
    axis.fill_between(
        time[: len(centre)][in_range],
        low[in_range],
        high[in_range],
        color=style.SKY,
        alpha=0.5,
        lw=0,
        label=rf"$\pm$ {words}",
    )
    if theory is not None:
        axis.plot(
            time[: len(centre)],
            centre,
            color=style.BLACK,
            lw=0.7,
            label=r"mean field, $N \to \infty$",
        )
    if "run" in point.dims and point.sizes["run"]:
        run = point[observable].isel(run=0).values[:tokens]
        axis.plot(
            time, run, ".-", lw=0.35, ms=2.4, mew=0, color=style.ORANGE, label="one run"
        )
    runs = point.sizes["all_runs"]
    axis.plot(
        time,
        mean,
        color=style.VERMILION,
        lw=0.8,
        ls=(0, (3, 1.5)),
        label=f"average of {runs} runs",
    )
    axis.set_xlim(0, len(mean))
    reach = 1.15 * max(np.abs(centre).max(), np.abs(mean).max())
    axis.set_ylim(-reach or -1.0, reach or 1.0)


@picture("agreement", "comparison", choices={"observable": lambda dataset: OBSERVABLES})
@style.styled
def agreement(
    dataset: xr.Dataset, *, observable: str = "A", axes: PanelAxes = None
) -> Figure:
    """Differences in standard errors by beta; spread and bias against N.

    An N without any step in the linear regime, where nothing is compared, is named in
    the note instead.
    Differences are 1 in sampling errors where there is no bias; the line of slope -1/2
    stands where one was resolved and its exponent fitted.  A file with the entropy
    production has its difference in a fourth panel.

    Args:
        dataset: a result of kind `comparison`.
        observable: "A" or "m_o_se".
        axes: to draw on: for differences, spread, bias, and entropy production where
            the file has it.
    """
    whole, produced = dataset, "entropy_production_difference" in dataset
    compared = dataset.linear.any(["beta", "time"])
    dataset = dataset.isel(n_spins=compared.values) if compared.any() else dataset
    shape = (5.4, 2, 2) if produced else (3.0, 1, 3)
    ratios = [1.35, 1, 1][: shape[2]]
    sheet = sheets.panels(axes, style.DOUBLE, *shape, width_ratios=ratios)
    first, *lower = sheet.axes[:3]
    _differences(first, dataset)
    if dataset.sizes["beta"] <= NAMED:
        colours = [(style.SERIES * 2)[i] for i in range(dataset.sizes["beta"])]
    else:
        colours = colormaps["cividis"](np.linspace(0, 0.9, dataset.sizes["beta"]))
    scales = scaled(dataset, observable)
    for axis, name in zip(lower, ("spread", "bias"), strict=True):
        _against_n(axis, dataset, scales[name], colours)
        _guides(axis, dataset, scales[name], dataset[f"{observable}_bias_slope"])
        axis.set_xlabel(style.WORDS["n_spins"])
    for axis in sheet.axes[3:]:
        _produced(axis, whole, colours)
    spread, bias = lower
    spread.legend(loc="upper right", handletextpad=0.4, labelspacing=0.3)
    bias.legend(loc="lower right", handletextpad=0.4)
    symbol = style.OVERLAPS.get(observable, observable)
    spread.set_ylabel(f"spread over runs\n$s_N[{symbol}]/\\sigma_1$")
    words = rf"$|\Delta_N[{symbol}]|$ / sampling error"
    bias.set_ylabel(f"difference to theory\n{words}")
    bias.set_yscale("linear")
    bias.set_ylim(0, 1.15 * max(bias.get_ylim()[1], 1.5))
    runs = f"{int(dataset.attrs['runs'])} runs"
    bars = notes.BARS if produced else ""
    common = "(b), (c): tokens in the linear regime of every $N$"
    left_out = _named("none, and not shown", whole.n_spins[~compared])
    words = runs, bars, common, left_out, notes.network(dataset)
    return sheet.finish(notes.joined(*words))


def _guides(axis: Axes, dataset: xr.Dataset, values, bias_slope) -> None:
    """Linear noise for the spread; sampling error and a resolved bias for the mean."""
    n = dataset.n_spins.values.astype(float)
    line = {"lw": 0.7, "zorder": 0}
    if values.name == "spread":
        axis.plot(n, n**-0.5, color=style.BLACK, label="$N^{-1/2}$", **line)
        return
    axis.axhline(1, color=style.BLACK, ls=":", label="no bias", **line)
    _power(axis, values.where(bias_slope.notnull()), 0.5, "$N^{-1/2}$")


def _power(axis: Axes, resolved: xr.DataArray, exponent: float, words: str) -> None:
    """A power of 1/N from the median of the biases at the smallest N."""
    present = np.flatnonzero(resolved.notnull().any("beta").values)
    if present.size:
        n = resolved.n_spins.values[present[0] :].astype(float)
        guide = np.nanmedian(resolved.isel(n_spins=present[0])) * (n[0] / n) ** exponent
        axis.plot(n, guide, label=words, color=style.GREY, lw=0.7, zorder=0)


def _produced(axis: Axes, dataset: xr.Dataset, colours) -> None:
    """Entropy production of spins less that of the map, with errors."""
    sizes, values = abs(dataset.entropy_production_difference), dataset.n_spins.values
    for i, colour in enumerate(colours):
        axis.errorbar(
            values,
            sizes.isel(beta=i).values,
            dataset.entropy_production_difference_stderr.isel(beta=i).values,
            fmt=MARKERS[i % len(MARKERS)],
            ms=3.2,
            mew=0.6,
            mfc="none",
            elinewidth=0.6,
            color=colour,
        )
    axis.loglog()
    resolved = sizes.where(dataset.entropy_production_bias_slope.notnull())
    _power(axis, resolved, 1.0, "$N^{-1}$")
    axis.set_xlim(values[0] / 2.5, values[-1] * 2.5)
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel(style.WORDS["n_spins"])
    unit = unit_of(dataset.entropy_production_difference.attrs)
    axis.set_ylabel(rf"difference $|\Delta\sigma_N|$ ({unit})")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(loc="lower left", handletextpad=0.4)


def scaled(dataset: xr.Dataset, observable: str) -> xr.Dataset:
    """Spread over the linear-noise spread at N = 1, and bias in sampling errors.

    Both are (n_spins, beta).  Root mean squares over the steps and patterns that count
    at every N that has any: steps in the linear regime whose spread stands above
    rounding.
    """
    ratio = dataset[f"{observable}_spread_ratio"]
    size = dataset.n_spins.astype(float)
    bias = dataset[f"{observable}_z"] * ratio
    counts = dataset.linear & np.isfinite(ratio)
    takes_part = counts.any(["time", "pattern"])
    common = (counts | ~takes_part).all("n_spins")
    mean_square = lambda x: (x**2).where(takes_part & common).mean(["time", "pattern"])
    return xr.Dataset(
        {
            "spread": np.sqrt(mean_square(ratio / np.sqrt(size))),
            "bias": np.sqrt(mean_square(bias)),
        }
    )


@picture(
    "differences",
    "comparison",
    pages=pages_of_beta,
    choices={
        "observable": lambda dataset: OBSERVABLES,
        "pattern": lambda dataset: range(1, dataset.sizes["pattern"] + 1),
    },
)
@style.styled
def differences_in_time(
    dataset: xr.Dataset,
    *,
    observable: str = "A",
    pattern: Count = 1,
    tokens: Count = 100,
    sizes: Count = 3,
    axes: PanelAxes = None,
) -> Figure:
    """Simulation minus theory in standard errors at every token, and what is allowed.

    Steps that the verdict leaves out are grey: those outside the linear regime, and at
    one N alone if there a difference may be a bias.
    """
    n_spins, betas = dataset.n_spins.values[:sizes], dataset.beta.values
    sheet, panels = _grid(axes, betas, n_spins, 0.75)
    for row, beta in zip(panels, betas, strict=True):
        for axis, n in zip(row, n_spins, strict=True):
            point = dataset.sel(beta=beta, n_spins=n).isel(time=slice(tokens))
            z = point[f"{observable}_z"].isel(pattern=pattern - 1).values
            axis.plot(point.time, z, "o", ms=2.2, mew=0, color=style.BLUE)
            for level in (-float(dataset.threshold), float(dataset.threshold)):
                axis.axhline(level, color=style.BLACK, lw=0.7, ls="--")
            left_out = ~(point.linear & point.judged).values
            if left_out.any():
                axis.axvspan(
                    left_out.argmax(),
                    len(z),
                    color=style.PALE,
                    alpha=0.5,
                    lw=0,
                    zorder=0,
                )
            axis.set_xlim(0, len(z))
        row[0].set_ylabel(f"$z$ of {style.overlap(observable, pattern)}")
        heading = rf"$\beta = {beta:g}$: {_verdict(dataset, beta)}"
        row[0].set_title(heading, loc="left", pad=2.5)
    for axis in panels[0]:  # a line above the heading
        axis.set_title(axis.get_title(loc="right") + "\n", loc="right", pad=2.5)
    words = (
        "dashed: what chance allows; grey: left out by the verdict, without dots past "
        "the horizon"
    )
    others = _named("not shown", dataset.n_spins[sizes:])
    return sheet.finish(notes.joined(words, others, notes.network(dataset)))


def _verdict(dataset: xr.Dataset, beta: float) -> str:
    """Verdict on one beta, and the tokens that it rests on."""
    point = dataset.sel(beta=beta)
    words = VERDICTS[int(point.verdict)].replace("_n_", " $N$ ").replace("_", " ")
    count = int(point.judged.sum())
    return f"{words} ({count} of {point.sizes['time']} tokens)" if count else words


def _named(words: str, n_spins) -> str:
    """Numbers of spins of which something is true, where there are any."""
    names = "$, $".join(map(scientific, n_spins.values))
    return f"{words}: $N = {names}$" if names else ""


def _differences(axis: Axes, dataset: xr.Dataset) -> None:
    """Largest difference in standard errors at each beta and N, and what is allowed."""
    betas = dataset.beta.values
    named = len(betas) <= NAMED
    x = np.arange(len(betas)) if named else betas
    width = 0.5 / max(dataset.sizes["n_spins"], 1) if named else 0.0
    for i, n in enumerate(dataset.n_spins.values):
        y = dataset.largest_z.sel(n_spins=n).values
        shift = (i - (dataset.sizes["n_spins"] - 1) / 2) * width
        shade = colormaps["cividis"](i / max(dataset.sizes["n_spins"], 2))
        axis.plot(
            x + shift,
            y,
            MARKERS[i % len(MARKERS)],
            ms=3.2,
            mew=0,
            color=shade,
            label=f"$N = {scientific(n)}$",
        )
    axis.plot(
        x,
        dataset.largest_limit_z.values,
        "D",
        ms=3.6,
        mfc="none",
        mew=0.7,
        color=style.VERMILION,
        label=r"$N \to \infty$",
    )
    axis.axhline(float(dataset.threshold), color=style.BLACK, lw=0.8, label="allowed")
    axis.axhline(
        float(dataset.limit_threshold),
        color=style.VERMILION,
        lw=0.8,
        ls="--",
        label=r"allowed, $N \to \infty$",
    )
    if named:
        axis.xaxis.set_major_locator(FixedLocator([float(i) for i in x]))
        look: Any = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
        turned = look if len(betas) > LEVEL else {}
        axis.set_xticklabels([f"{b:g}" for b in betas], **turned)
        axis.set_xlim(-0.6, len(betas) - 0.4)
    top = np.nanmax(
        [
            dataset.threshold,
            dataset.limit_threshold,
            dataset.largest_z.max(),
            dataset.largest_limit_z.max(),
        ]
    )
    axis.set_ylim(0, 1.75 * (top if np.isfinite(top) else 10.0))
    axis.set_xlabel(style.WORDS["beta"])
    axis.set_ylabel(r"largest $|z|$ (standard errors)")
    axis.legend(
        loc="upper left",
        ncols=2,
        handletextpad=0.3,
        columnspacing=0.8,
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
    )


def _against_n(axis: Axes, dataset: xr.Dataset, values: xr.DataArray, colours) -> None:
    """One marker per beta at every N, on logarithmic scales."""
    named = values.name == "spread" and dataset.sizes["beta"] <= len(style.SERIES)
    for i, (beta, colour) in enumerate(zip(dataset.beta.values, colours, strict=True)):
        axis.loglog(
            dataset.n_spins.values,
            values.sel(beta=beta).values,
            MARKERS[i % len(MARKERS)],
            ms=3.2,
            mew=0.6,
            mfc="none",
            color=colour,
            label=rf"$\beta = {beta:g}$" if named else None,
        )
    n = dataset.n_spins.values
    axis.set_xlim(n[0] / 2.5, n[-1] * 2.5)
    for of_axis, (low, high) in (
        (axis.xaxis, axis.get_xlim()),
        (axis.yaxis, axis.get_ylim()),
    ):
        of_axis.set_minor_formatter(NullFormatter())
        if high < 100 * low:  # of more decades these have the names
            style.log_ticks(of_axis)


def scientific(n: float) -> str:
    """A number as mathematical text with a power of ten."""
    if n < 10_000:
        return f"{n:g}"
    exponent = int(np.floor(np.log10(n)))
    factor = round(n / 10**exponent, 3)
    power = f"10^{{{exponent}}}"
    return power if factor == 1 else rf"{factor:g} \times {power}"
