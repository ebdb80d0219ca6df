"""Collapse of what spins do at a bifurcation, over the law without a fit.

Takes files of kind `finite-size` (docs/hdf5.md); colours are numbers of spins.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.presentation import quantity


DOTS: dict[str, Any] = style.OPEN | {"ls": "none", "marker": "o"}
PALE: dict[str, Any] = {"alpha": 0.35}  # outside the limits of the theory
THEORY: dict[str, Any] = {"color": style.BLACK, "zorder": 1}
NAMES = {
    "neimark_sacker": "Neimark–Sacker",
    "period_doubling": "period doubling",
    "pitchfork": "pitchfork",
    "fold": "fold",
}
SIZES = {  # symbols of sizes at the bifurcation
    "amplitude": r"\langle |z|^2 \rangle^{1/2}",
    "time": r"\tau",
    "rounding": r"\delta\beta",
}


@picture("finite_size", "finite-size")
@style.styled
def finite_size_collapse(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Mean squares or times of all N on one line, densities, and powers of N.

    Lines are the theory, with no fitted number.  What lies outside its limits is pale.
    """
    sheet = sheets.panels(axes, style.DOUBLE, 2.9, 1, 3)
    collapse, middle, powers = sheet.axes
    if "density" in dataset:
        _collapse(collapse, dataset, "mean_square")
        _density(middle, dataset)
    else:
        _collapse(collapse, dataset, "passage_time")
        _times(middle, dataset)
    _ratios(powers, dataset)
    name = NAMES[dataset.attrs["bifurcation"]]
    place = rf"{name} at $\beta_c = {dataset.attrs['beta_c']:.6g}$"
    bars = f"bars: one standard error of {dataset.attrs['runs']} runs"
    pale = "pale: outside the theory's limits"
    return sheet.finish(
        notes.joined(place, bars, notes.network(dataset), pale), 8, of=slice(1)
    )


def _collapse(axis: Axes, dataset: xr.Dataset, name: str) -> None:
    """Scaled values against the scaled distance."""
    line, among = dataset.curve_beta, dataset.scaled_beta
    scaled = dataset[f"scaled_{name}"], dataset[f"scaled_{name}_stderr"]
    inside = np.isfinite(dataset[f"{name}_theory"].values)
    axis.plot(line, dataset.curve_theory, label="theory", **THEORY)
    for i, n in enumerate(dataset.n_spins.values):
        colour = style.SERIES[i % len(style.SERIES)]
        for part, look in ((inside[i], {"label": _spins(n)}), (~inside[i], PALE)):
            value, error = (row[i][part] for row in scaled)
            axis.errorbar(among[part], value, error, color=colour, **look, **DOTS)
    nearest = np.abs(line.values[:, None] - among.values).argmin(0)
    top = 1.3 * float(dataset.curve_theory[nearest].max())
    axis.set(xlim=np.sort(line.values[[0, -1]]), ylim=(0, top))
    power, of_value, unit = (
        ("1/2", r"N^{1/2} \langle |z|^2 \rangle", "")
        if name == "mean_square"
        else ("2/3", r"N^{-1/3} \tau", " (tokens)")
    )
    axis.set_xlabel(rf"$N^{{{power}}} (\beta - \beta_c)$")
    axis.set_ylabel(f"${of_value}${unit}")


def _density(axis: Axes, dataset: xr.Dataset) -> None:
    """Scaled density of the amplitude at the bifurcation."""
    at = dataset.sel(distance=0.0)
    axis.plot(dataset.curve_amplitude, dataset.curve_density, **THEORY)
    for i in range(dataset.sizes["n_spins"]):
        row = at.isel(n_spins=i)
        colour = style.SERIES[i % len(style.SERIES)]
        look = {} if np.isfinite(row.mean_square_theory) else PALE
        values = row.amplitude, row.density, row.density_stderr
        axis.errorbar(*values, color=colour, **look, **DOTS)
    symbol = "|z|" if dataset.attrs["bifurcation"] == "neimark_sacker" else "z"
    axis.set(xlabel=rf"$N^{{1/4}}\, {symbol}$", ylabel=r"$N^{-1/4}\, p$")
    axis.set(ylim=(0, None), title="at the bifurcation")


def _times(axis: Axes, dataset: xr.Dataset) -> None:
    """Times at the fold against N."""
    times = dataset.isel(quantity=0)
    axis.plot(dataset.n_spins, times.size_theory, **THEORY)
    axis.errorbar(
        dataset.n_spins, times["size"], times.size_stderr, color=style.BLACK, **DOTS
    )
    axis.set(yscale="log", title="at the fold", ylabel=r"$\tau$ (tokens)")
    style.log_ticks(axis.yaxis)
    _against_spins(axis)


def _ratios(axis: Axes, dataset: xr.Dataset) -> None:
    """Sizes over theory against N, with their fitted exponents beside theory."""
    names, farthest = dataset.quantity.attrs["flag_meanings"].split(), 0.01
    for i, code in enumerate(dataset.quantity.values):
        row = dataset.isel(quantity=i)
        if not np.isfinite(row.exponent):
            continue
        ratio, error = (x / row.size_theory for x in (row["size"], row.size_stderr))
        fitted = quantity(row.exponent, row.exponent_stderr).replace("±", r"\pm")
        theory = Fraction(float(row.exponent_theory)).limit_denominator(6)
        axis.errorbar(
            dataset.n_spins * 1.15**i,
            ratio,
            error,
            color=(style.BLACK, style.GREY)[i],
            label=f"${SIZES[names[code]]}$: ${fitted}$ (${theory}$)",
            **DOTS,
        )
        farthest = max(farthest, float((np.abs(ratio - 1) + error).max()))
    axis.axhline(1, **THEORY)
    axis.set(ylabel="measured / theory")
    axis.set_ylim(1 - 1.2 * farthest, 1 + 2.4 * farthest)
    _against_spins(axis)
    axis.legend(title="exponent of $N$ (theory)", loc="upper right", title_fontsize=8)


def _against_spins(axis: Axes) -> None:
    """Numbers of spins along x, with words at powers of ten."""
    axis.set(xscale="log", xlabel=style.WORDS["n_spins"])
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.margins(x=0.08)


def _spins(n: int) -> str:
    """A number of spins near a power of ten, in words."""
    power = round(np.log10(n))
    near = abs(n / 10**power - 1) < 0.01
    return f"$N = 10^{power}$" if near else f"$N = {n:g}$"
