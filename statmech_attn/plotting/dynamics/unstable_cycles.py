"""Cycles of a map: where their points are, and how fast orbits leave them.

Takes files of kind `unstable-cycles` and `UnstableCycles.to_dataset()`.
"""

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from statmech_attn.labels import unit_of
from statmech_attn.plotting.frame import sheets, style
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes


@picture("unstable_cycles", "unstable-cycles", when=lambda data: bool(data.cycle.size))
@style.styled
def unstable_cycles(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Points of all cycles, short ones on top, and exponents by period."""
    sheet = sheets.panels(axes, style.DOUBLE, 2.8, 1, 2)
    periods = np.unique(dataset.length.values)
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.85, len(periods)))
    for period, colour in zip(periods, colours, strict=True):
        chosen = dataset.isel(cycle=np.flatnonzero(dataset.length.values == period))
        _points(sheet.axes[0], chosen, int(period), colour)
        _exponents(sheet.axes[1], chosen, int(period), colour)
    first, second = sheet.axes
    first.set_xlabel("$x_1(t)$")
    first.set_ylabel("$x_1(t+1)$")
    unit = unit_of(dataset.lyapunov.attrs)
    second.set_xlabel(f"period ({unit_of(dataset.length.attrs)})")
    second.set_ylabel(rf"$\lambda_1$ ({unit})")
    second.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axis in sheet.axes:
        axis.margins(0.05)
    return sheet.finish("colours: periods, as in (b)")


def _points(axis: Axes, dataset: xr.Dataset, period: int, colour) -> None:
    """The first coordinate of every point and of the next one; short cycles larger."""
    before = dataset.point.values[:, :period, 0]
    axis.plot(
        before.ravel(),
        np.roll(before, -1, axis=1).ravel(),
        ".",
        color=colour,
        ms=3 + 6 / period,
        mew=0,
        zorder=2 + 1 / period,
    )


def _exponents(axis: Axes, dataset: xr.Dataset, period: int, colour) -> None:
    """Largest exponents of the cycles of one period."""
    largest = dataset.lyapunov.values[:, 0]
    axis.plot(np.full(len(largest), period), largest, ".", color=colour, ms=6, mew=0)
