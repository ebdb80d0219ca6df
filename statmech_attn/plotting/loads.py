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


LEAST = 0.005  # spread in time that is drawn


@style.styled
def phases_against_load(
    dataset: xr.Dataset, spins: xr.Dataset | None = None, *, axes: Given = None
) -> Figure:
    """Phase and largest exponent at several beta as alpha grows, values of alpha in
    equal steps.

    Args:
        dataset: a diagram over beta and alpha.
        spins: a result of `analysis/crosstalk_spins.py` at some of these values of
            alpha and beta, for a third panel: bars are theory, circles spins, of each
            number a circle, the most filled.
        axes: two to draw on, for phases and exponents; three where there are spins.
    """
    panels = 2 if spins is None else 3
    make = lambda: sheets.grid(style.DOUBLE, 1.2 + 1.9 * panels, panels, 1)
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
        at_beta = dataset.isel(beta=i, exponent=0)
        lines.errorbar(
            place,
            at_beta.lyapunov,
            at_beta.lyapunov_stderr,
            color=style.SERIES[i % len(style.SERIES)],
            marker=".",
            ms=3,
            lw=0.8,
            elinewidth=0.6,
            label=rf"$\beta = {beta:g}$",
        )
    lines.axhline(0, color=style.BLACK, lw=0.6, zorder=0)
    lines.set_ylabel("largest exponent (nat/token)")
    words = ""
    if spins is not None:
        _motion(sheet.axes[2], spins, betas.tolist())
        sizes = ", ".join(f"${scientific(n)}$" for n in spins.n_spins.values)
        words = (
            f"(c) bars theory, where it moves by more than {LEAST:g}; circles spins, "
            f"$N$ = {sizes} from left to right, tokens {spins.attrs['window'][0]} to "
            f"{spins.attrs['window'][1]}"
        )
    rows.set_xticks(place, [])
    rows.set_xlim(-0.5, len(loads) - 0.5)
    lines.set_xlim(rows.get_xlim())
    lines.set_xticks(place, [f"{load:g}" for load in loads], rotation=45)
    sheet.axes[-1].set_xlabel(r"further patterns per spin $\alpha$")
    sheet.letters()
    sheet.legend(6)
    sheet.note("\n".join(filter(None, (notes.network(dataset), words))))
    return sheet.figure


def _motion(axis: Axes, spins: xr.Dataset, betas: list[float]) -> None:
    """Spread in time of the attention vector: a slot for every alpha and beta."""
    loads, count = spins.alpha.values, spins.sizes["n_spins"]
    width = len(betas) + 1.5
    offsets = (np.arange(count) - (count - 1) / 2) * 0.7 / count
    for beta in spins.beta.values.tolist():
        simulated, i = spins.sel(beta=beta), betas.index(beta)
        place = width * np.arange(len(loads)) + i
        colour = style.SERIES[i % len(style.SERIES)]
        theory = np.where(simulated.motion > LEAST, simulated.motion, np.nan)
        axis.hlines(theory, place - 0.45, place + 0.45, color=colour, lw=1.2)
        for k, offset in enumerate(offsets):
            size = simulated.isel(n_spins=k)
            marks = dict(style.OPEN, mfc=colour if k == count - 1 else "white")
            axis.errorbar(
                place + offset,
                size.motion_spins,
                size.motion_spins_stderr,
                fmt="o",
                color=colour,
                **marks,
            )
    axis.set_yscale("log")
    axis.set_ylim(bottom=LEAST)
    axis.set_xlim(-1, width * len(loads) - 1.5)
    middle = width * np.arange(len(loads)) + (len(betas) - 1) / 2
    axis.set_xticks(middle, [f"{load:g}" for load in loads])
    for edge in middle[1:] - width / 2:
        axis.axvline(edge, color=style.BLACK, lw=0.6)
    axis.set_ylabel("spread of $A$ in time")
