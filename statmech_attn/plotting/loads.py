"""Phases of a network as the load of further patterns grows.

Takes a file of kind `diagram` over beta and alpha, as of `analysis/crosstalk.py`.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from statmech_attn.plotting import notes, sheets, style
from statmech_attn.plotting.bifurcation import codes_of
from statmech_attn.plotting.sheets import Given


@style.styled
def phases_against_load(dataset: xr.Dataset, *, axes: Given = None) -> Figure:
    """Phase and largest exponent at several beta as alpha grows, values of alpha in
    equal steps.

    Args:
        dataset: a diagram over beta and alpha.
        axes: two to draw on, for phases and exponents.
    """
    make = lambda: sheets.grid(style.DOUBLE, 4.6, 2, 1, sharex=True)
    sheet = sheets.sheet(axes, 2, make)
    rows, lines = sheet.axes
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
    lines.set_xlabel(r"further patterns per spin $\alpha$")
    lines.set_xticks(place, [f"{load:g}" for load in loads], rotation=45)
    lines.margins(x=0.01)
    sheet.letters()
    sheet.legend(6)
    sheet.note(notes.network(dataset))
    return sheet.figure
