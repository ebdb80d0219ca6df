"""Phases of a network as the load of further patterns grows.

Takes a file of kind `diagram` over beta and alpha, as of `analysis/crosstalk.py`, and
one of kind `crosstalk-spins`, as of `analysis/crosstalk_spins.py`.
"""

import string
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.scale import SymmetricalLogTransform
from matplotlib.ticker import FixedLocator, NullLocator

from statmech_attn.plotting.dynamics.bifurcation import codes_of, is_plane, parameters
from statmech_attn.plotting.dynamics.exponents import jumps
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import Beside, picture
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.plotting.network.comparison import MARKERS, scientific


OVER = {"alpha", "beta"}
LEAST = 0.005  # spread in time that is drawn
ALPHA = r"further patterns per spin $\alpha$"


@picture(
    "phases_against_load",
    "diagram",
    when=lambda dataset: is_plane(dataset) and set(parameters(dataset)) == OVER,
    beside={"spins": Beside("crosstalk-spins", ())},
)
@style.styled
def phases_against_load(
    dataset: xr.Dataset, spins: xr.Dataset | None = None, *, axes: PanelAxes = None
) -> Figure:
    """Phase and largest exponent at several beta as alpha grows.

    The axis of alpha is logarithmic from its smallest value but zero on, and linear
    below.  Lines join loads of one phase.

    Args:
        dataset: a diagram over beta and alpha.
        spins: a result of `analysis/crosstalk_spins.py` at some of these values of
            alpha and beta, for a panel of each alpha: spins against their number, and
            bars of the theory at their right.
        axes: two to draw on, for phases and exponents, and one for each alpha of spins.
    """
    loads = [] if spins is None else spins.alpha.values.tolist()
    sheet = sheets.sheet(axes, 2 + len(loads), lambda: _panels(len(loads)))
    dataset = dataset.transpose("beta", "alpha", ...)
    looks = _looks(dataset)
    _phases(sheet.axes[0], dataset)
    _exponents(sheet.axes[1], dataset, looks)
    words = ""
    if spins is not None:
        words = _motions(sheet.axes[2:], spins, looks)
    return sheet.finish("\n".join(filter(None, (notes.network(dataset), words))), 6)


@picture("motion", "crosstalk-spins")
@style.styled
def motion_against_size(spins: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Spread in time of the attention of spins against N, for every alpha."""
    loads, size = spins.sizes["alpha"], (style.DOUBLE, 2.6)
    sheet = sheets.panels(axes, *size, 1, loads, sharey=True)
    looks = _looks(spins)
    words = _motions(sheet.axes, spins, looks)
    for beta, look in looks.items():
        words_of = rf"$\beta = {beta:g}$"
        sheet.axes[0].plot([], [], ls="none", ms=3.2, label=words_of, **look)
    return sheet.finish(words, 6)


def _looks(dataset: xr.Dataset) -> dict[float, Any]:
    """Colour and marker of every beta."""
    betas = dataset.beta.values.tolist()
    shades = colormaps["cividis"](np.linspace(0, 0.92, len(betas)))
    return {
        beta: {"color": shade, "marker": MARKERS[i % len(MARKERS)]}
        for i, (beta, shade) in enumerate(zip(betas, shades, strict=True))
    }


def _motions(axes: list[Axes], spins: xr.Dataset, looks: dict[float, Any]) -> str:
    """A panel for every alpha, and what the note says of them."""
    for axis, load in zip(axes, spins.alpha.values.tolist(), strict=True):
        _motion(axis, spins.sel(alpha=load), looks)
        axis.set_title(rf"$\alpha = {load:g}$", loc="right", pad=2.5)
        axis.set_ylim(LEAST, 1.3 * max(spins.motion.max(), spins.motion_spins.max()))
    axes[0].set_ylabel("spread of $A$ in time")
    first, last = spins.attrs["window"]
    return (
        f"markers: spins, tokens {first} to {last}; bars: theory, where it moves by "
        f"more than {LEAST:g}"
    )


def _panels(loads: int) -> list[Axes]:
    """Two panels below each other, and a row with one for every load of spins."""
    figure = style.figure(style.DOUBLE, 6.9 if loads else 4.6)
    rows = ["p" * (loads or 1), "e" * (loads or 1)]
    rows += [string.ascii_uppercase[:loads]] if loads else []
    return list(figure.subplot_mosaic("\n".join(rows)).values())


def _scale(axis: Axes, loads: np.ndarray) -> np.ndarray:
    """Give an axis the scale of alpha; edges of the cells around its values."""
    least = loads[loads > 0].min(initial=1.0)
    to_scale = SymmetricalLogTransform(10, least, 0.5)
    edges = style.cell_edges(to_scale.transform(loads))
    edges = to_scale.inverted().transform(edges)
    axis.set_xscale("symlog", linthresh=least, linscale=0.5)
    decades = 10.0 ** np.arange(np.ceil(np.log10(least)), np.log10(loads.max()))
    minor = np.outer(decades, np.arange(2, 10)).ravel().tolist()
    axis.xaxis.set_major_locator(FixedLocator([0.0, *decades, loads.max()]))
    axis.xaxis.set_minor_locator(FixedLocator(minor))
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axis.set_xlim(edges[0], edges[-1])
    axis.set_xlabel(ALPHA)
    return edges


def _phases(axis: Axes, dataset: xr.Dataset) -> None:
    """A row of cells for every beta."""
    betas, codes = dataset.beta.values, codes_of(dataset)
    cmap, norm = style.phase_colours()
    edges = _scale(axis, dataset.alpha.values), np.arange(len(betas) + 1) - 0.5
    axis.pcolormesh(*edges, codes, cmap=cmap, norm=norm, edgecolors="white", lw=0.4)
    style.phase_entries(axis, codes)
    axis.set_yticks(np.arange(len(betas)), [f"{beta:g}" for beta in betas])
    axis.set_ylabel(rf"${notes.SYMBOLS['beta']}$")


def _exponents(axis: Axes, dataset: xr.Dataset, looks: dict[float, Any]) -> None:
    """The largest exponent at every beta."""
    loads = dataset.alpha.values
    for beta, look in looks.items():
        line = dataset.sel(beta=beta)
        y, error = (
            line[name].isel(exponent=0).values
            for name in ("lyapunov", "lyapunov_stderr")
        )
        after = np.flatnonzero(jumps(line, "alpha", 1)[:, 0]) + 1
        pieces = np.insert(loads, after, np.nan), np.insert(y, after, np.nan)
        axis.plot(*pieces, color=look["color"], lw=0.7)
        marks = style.OPEN | {"mfc": look["color"], "mew": 0}
        words = rf"$\beta = {beta:g}$"
        axis.errorbar(loads, y, error, ls="none", label=words, **look, **marks)
    axis.axhline(0, color=style.BLACK, lw=0.6, zorder=0)
    axis.set_ylabel("largest exponent (nat/token)")
    _scale(axis, loads)


def _motion(axis: Axes, spins: xr.Dataset, looks: dict[float, Any]) -> None:
    """Spread in time of the attention vector against the number of spins."""
    N = spins.n_spins.values
    limit = N[-1] * np.array([1.6, 3.2])
    for beta in spins.beta.values.tolist():
        at_beta, look = spins.sel(beta=beta), looks[beta]
        theory = float(at_beta.motion)
        marks = style.OPEN | {"mfc": look["color"], "mew": 0}
        values = at_beta.motion_spins, at_beta.motion_spins_stderr
        axis.errorbar(N, *values, ls="none", **look, **marks)
        if theory > LEAST:
            axis.hlines(theory, *limit, color=look["color"], lw=1.6)
    axis.axvline(1.3 * N[-1], color=style.GREY, lw=0.6, ls=":")
    axis.loglog()
    axis.set_xlim(N[0] / 1.5, limit[-1] * 1.1)
    axis.xaxis.set_major_locator(FixedLocator([*N.tolist(), limit.mean()]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticklabels([*(f"${scientific(n)}$" for n in N), "theory"])
    axis.tick_params(axis="x", labelsize=7)
    axis.set_xlabel(style.WORDS["n_spins"])
