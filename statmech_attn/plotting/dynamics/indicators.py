r"""Chaos indicators of the mean-field orbit, and what series of finite runs say.

Takes files of kind `chaos-indicators`, which analysis/chaos_indicators.py writes:

    finite_time_exponent   (window, beta, bin)     centres of the bins of `density`
    log_gali               (alignment_time, beta)  ln GALI_2
    lyapunov_rosenstein, dimension_series, sample_entropy  (beta, size)
    n_spins                (size)                  N; inf for the mean field
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes


SERIES = {
    "lyapunov_rosenstein": r"$\lambda_1$ of the series (nat/token)",
    "dimension_series": r"$D_2$ of the series",
    "sample_entropy": "sample entropy (nat/sample)",
}


@picture("chaos_indicators", "chaos-indicators")
@style.styled
def chaos_indicators(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Finite-time exponents, alignment."""
    sheet = sheets.panels(axes, style.DOUBLE, 2.8, 1, 2)
    for axis, draw in zip(sheet.axes, (_densities, _alignment), strict=True):
        draw(axis, dataset)
    chaotic = rf"$\beta = {dataset.beta.values[-1]:g}$"
    sheet.axes[0].set_title(chaotic, loc="left", pad=2.5)
    lines = (
        r"line in (a): $\lambda_1$",
        r"dashed in (b): $(\lambda_2 - \lambda_1)\, n$",
    )
    return sheet.finish(
        notes.joined(*lines) + "\n" + notes.network(dataset), 8, of=slice(1, 2)
    )


@picture("finite_series", "chaos-indicators")
@style.styled
def finite_series(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """What nolds finds in series of N spins, against the mean field.

    Solid lines are exact exponents, dotted ones the same estimate from the series of
    the infinite network.
    """
    sheet = sheets.panels(axes, style.DOUBLE, 2.8, 1, 3)
    n = dataset.n_spins.values
    finite = np.isfinite(n)
    for axis, (name, words) in zip(sheet.axes, SERIES.items(), strict=True):
        for beta, colour in _betas(dataset):
            value = dataset[name].sel(beta=beta).values
            error = dataset[f"{name}_stderr"].sel(beta=beta).values
            axis.errorbar(
                n[finite],
                value[finite],
                error[finite],
                fmt="o-",
                color=colour,
                lw=0.6,
                capsize=1.5,
                label=rf"series, $\beta = {beta:g}$",
            )
            axis.axhline(value[~finite][-1], color=colour, lw=0.8, ls=":")
            if name == "lyapunov_rosenstein":
                exact = float(dataset.lyapunov.sel(beta=beta, exponent=1))
                axis.axhline(exact, color=colour, lw=0.9)
        axis.set_xscale("log")
        axis.set_xlim(n[finite].min() / 4, n[finite].max() * 4)
        axis.set_xlabel(style.WORDS["n_spins"])
        axis.set_ylabel(words)
    first = sheet.axes[0]
    first.plot([], [], color=style.BLACK, lw=0.9, label="exact")
    limit = r"series, $N \to \infty$"
    first.plot([], [], color=style.BLACK, lw=0.8, ls=":", label=limit)
    bars = "bars: one standard error of the mean over runs"
    few = "no $D_2$ where too few samples are close"
    none = few if dataset.dimension_series.isnull().any() else ""
    return sheet.finish(
        notes.joined(bars, none, notes.network(dataset)), 8, of=slice(1)
    )


def _betas(dataset: xr.Dataset):
    """Every beta with its colour."""
    betas = dataset.beta.values
    return [(b, style.SERIES[i % len(style.SERIES)]) for i, b in enumerate(betas)]


def _densities(axis: Axes, dataset: xr.Dataset) -> None:
    """Densities at the largest beta, one for every window; the line is the exponent."""
    point = dataset.isel(beta=-1)
    _, colour = _betas(dataset)[-1]
    windows = dataset.window_steps.values
    for i, steps in enumerate(windows):
        distribution = point.isel(window=i)
        axis.plot(
            distribution.finite_time_exponent.values,
            distribution.density.values,
            alpha=0.35 + 0.65 * i / max(len(windows) - 1, 1),
            drawstyle="steps-mid",
            color=colour,
            label=rf"$n = {steps}$",
        )
    axis.axvline(float(point.lyapunov.sel(exponent=1)), color=style.BLACK, lw=0.6)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(r"$\lambda_1^{(n)}$ (nat/token)")
    axis.set_ylabel("density (token/nat)")
    axis.legend(loc="upper right")


def _alignment(axis: Axes, dataset: xr.Dataset) -> None:
    """ln GALI_2 with the slope lambda_2 - lambda_1 dashed."""
    time = dataset.alignment_time.values
    for beta, colour in _betas(dataset):
        point = dataset.sel(beta=beta)
        words = rf"$\beta = {beta:g}$"
        axis.plot(time, point.log_gali.values, color=colour, label=words)
        gap = float(point.lyapunov.sel(exponent=2) - point.lyapunov.sel(exponent=1))
        axis.plot(time, gap * time, color=colour, lw=0.7, ls=(0, (4, 3)))
    lowest = float(dataset.log_gali.min())
    axis.set_ylim(lowest, -0.03 * lowest)
    axis.set_xlabel("token $n$")
    axis.set_ylabel(r"$\ln\, \mathrm{GALI}_2$")
