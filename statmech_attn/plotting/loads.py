"""Phases of a network as the load of further patterns grows.

Takes a file of kind `diagram` over beta and alpha, as of `analysis/crosstalk.py`.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting import notes, sheets, style
from statmech_attn.plotting.bifurcation import codes_of
from statmech_attn.plotting.comparison import scientific
from statmech_attn.plotting.sheets import Given


@style.styled
def phases_against_load(
    dataset: xr.Dataset, spins: xr.Dataset | None = None, *, axes: Given = None
) -> Figure:
    """Phase and largest exponent at several beta as alpha grows, values of alpha in
    equal steps.

    Args:
        dataset: a diagram over beta and alpha.
        spins: a result of `analysis/crosstalk_spins.py` at some of these values of
            alpha and beta, for a third panel: bars are theory, the most spins open
            circles.
        axes: two to draw on, for phases and exponents; three where there are spins.
    """
    panels = 2 if spins is None else 3
    make = lambda: sheets.grid(style.DOUBLE, 1.0 + 1.8 * panels, panels, 1, sharex=True)
    sheet = sheets.sheet(axes, panels, make)
    rows, lines = sheet.axes[:2]
    dataset = dataset.transpose("beta", "alpha", ...)
    loads, betas = dataset.alpha.values, dataset.beta.values
    place = np.arange(len(loads))
    cmap, norm = style.phase_colours()
    codes = codes_of(dataset)
    edges = [np.arange(len(x) + 1) - 0.5 for x in (loads, betas)]
    rows.pcolormesh(*edges, codes, cmap=cmap, norm=norm, edgecolors="white", lw=0.4)
    style.phase_entries(rows, codes)
    rows.set_yticks(np.arange(len(betas)), [f"{beta:g}" for beta in betas])
    rows.set_ylabel(rf"${notes.SYMBOLS['beta']}$")
    for i, beta in enumerate(betas):
        one = dataset.isel(beta=i, exponent=0)
        lines.errorbar(
            place,
            one.lyapunov,
            one.lyapunov_stderr,
            color=style.SERIES[i % len(style.SERIES)],
            marker=".",
            ms=3,
            lw=0.8,
            elinewidth=0.6,
            label=rf"$\beta = {beta:g}$",
        )
    lines.axhline(0, color=style.BLACK, lw=0.6, zorder=0)
    lines.set_ylabel("largest exponent (nat/token)")
    lines.margins(x=0.01)
    words = ""
    if spins is not None:
        _motion(sheet.axes[2], spins, loads.tolist(), betas.tolist())
        size = scientific(float(spins.n_spins.max()))
        words = f"(c) bars theory, circles spins, $N = {size}$"
    last = sheet.axes[-1]
    last.set_xlabel(r"further patterns per spin $\alpha$")
    last.set_xticks(place, [f"{load:g}" for load in loads], rotation=45)
    sheet.letters()
    sheet.legend(6)
    sheet.note("\n".join(filter(None, (notes.network(dataset), words))))
    return sheet.figure


def _motion(
    axis: Axes, spins: xr.Dataset, loads: list[float], betas: list[float]
) -> None:
    """Spread in time of the attention vector, the beta of a load side by side."""
    most, count = spins.isel(n_spins=-1), len(betas)
    place = np.array([loads.index(load) for load in spins.alpha.values.tolist()])
    for beta in spins.beta.values.tolist():
        one, i = most.sel(beta=beta), betas.index(beta)
        x = place + (i - (count - 1) / 2) * 0.8 / count
        colour = style.SERIES[i % len(style.SERIES)]
        axis.plot(x, one.motion, "_", color=colour, ms=8, mew=1.0)
        axis.errorbar(
            x,
            one.motion_spins,
            one.motion_spins_stderr,
            fmt="o",
            color=colour,
            ms=3,
            mfc="none",
            mew=0.7,
            elinewidth=0.6,
        )
    axis.set_ylabel("spread of $A$ in time")
