"""Basins of attraction on a plane of initial states.

Takes files of kind `plane-basins`, which `dynamics.PlaneBasins` makes.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from statmech_attn.dynamics import basins
from statmech_attn.plotting.frame import sheets, style
from statmech_attn.plotting.frame.registry import picture


OTHERS = {
    basins.DIVERGED: ("diverged", style.PALE),
    basins.NOT_SETTLED: ("on no attractor", style.BLACK),
}


@picture("plane_basins", "plane-basins")
@style.styled
def plane_basins(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Every state in the colour of its attractor; crosses are points of attractors."""
    sheet = sheets.single(ax, 1.3 * style.SINGLE, 1.1 * style.SINGLE)
    (axis,) = sheet.axes
    colours = [
        style.ATTRACTOR_COLOURS[k % len(style.ATTRACTOR_COLOURS)]
        for k in range(len(dataset.fraction))
    ]
    of_codes = [colour for _, colour in OTHERS.values()] + colours
    edges = np.arange(basins.DIVERGED, len(colours) + 1) - 0.5
    axis.pcolormesh(
        dataset.x,
        dataset.y,
        dataset.basin,
        cmap=ListedColormap(of_codes),
        norm=BoundaryNorm(edges, len(of_codes)),
        shading="nearest",
        rasterized=True,
    )
    for k, colour in enumerate(colours):
        share, period = float(dataset.fraction[k]), int(dataset.period[k])
        if period < 0:
            continue
        words = f"period {period}" if period else "no period"
        style.patch(axis, f"{k}: {words}, {100 * share:.3g} %", colour)
    for code, (words, colour) in OTHERS.items():
        if (dataset.basin == code).any():
            style.patch(axis, words, colour)
    if "along" in dataset.attrs:
        points = dataset.points.values[..., list(dataset.along)].reshape(-1, 2)
        axis.plot(*points.T, "x", color="white", mew=1.6, ms=4.5)
        axis.plot(*points.T, "x", color=style.BLACK, mew=0.8, ms=4)
        axis.set_xlabel(f"$x_{{{dataset.along[0] + 1}}}$")
        axis.set_ylabel(f"$x_{{{dataset.along[1] + 1}}}$")
    axis.set_xlim(float(dataset.x[0]), float(dataset.x[-1]))
    axis.set_ylim(float(dataset.y[0]), float(dataset.y[-1]))
    return sheet.finish("", 3)
