"""Basins of attraction on a plane of initial states.

Takes files of kind `plane-basins`, which `dynamics.PlaneBasins` makes, and of kind
`plane-diagram`, of `dynamics.PlaneDiagram`.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from statmech_attn.dynamics import basins
from statmech_attn.plotting import notes, sheets, style
from statmech_attn.plotting.labels import label, symbol
from statmech_attn.plotting.registry import Pages, picture
from statmech_attn.plotting.sheets import PanelAxes


OTHERS = {
    basins.DIVERGED: ("diverged", style.PALE),
    basins.NOT_SETTLED: ("on no attractor", style.BLACK),
}


PLANES = 6  # values of a parameter whose planes are drawn


def some_values(dataset: xr.Dataset) -> Pages:
    """Planes at some values of the parameter, evenly spaced."""
    name = dataset.attrs["parameter"]
    count = dataset.sizes[name]
    for i in np.unique(np.linspace(0, count - 1, PLANES).round().astype(int)):
        yield f"_{i + 1}", dataset.isel({name: i})


@picture("plane_basins", "plane-diagram", pages=some_values)
@picture("plane_basins", "plane-basins")
@style.styled
def plane_basins(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Every state in the colour of its attractor; crosses are points of attractors.

    Args:
        dataset: basins on a plane.
        ax: one to draw on.
    """
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
    sheet.legend(per_row=3)
    if name := dataset.attrs.get("parameter"):
        sheet.note(
            f"{symbol(dataset[name].attrs['symbol'])} = {float(dataset[name]):g}"
        )
    return sheet.figure


@picture("basin_borders", "plane-diagram")
@style.styled
def basin_borders(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Basin entropies and the uncertainty exponent of a plane along a parameter.

    Above the line at ln 2 of the border's entropy it is a fractal.

    Args:
        dataset: basins on a plane along a parameter.
        axes: two to draw on, for the entropies and the exponent.
    """
    name = dataset.attrs["parameter"]
    make = lambda: sheets.grid(style.DOUBLE, 3.9, 2, sharex=True)
    sheet = sheets.sheet(axes, 2, make)
    entropies, exponent = sheet.axes
    values = dataset[name].values
    look = {"marker": "o", "ms": 2.5, "lw": 0.9}
    for colour, variable in (
        (style.BLUE, "basin_entropy"),
        (style.ORANGE, "border_entropy"),
    ):
        words = dataset[variable].attrs["long_name"]
        entropies.plot(values, dataset[variable], color=colour, label=words, **look)
    entropies.axhline(np.log(2), color=style.BLACK, lw=0.7, ls="--", label=r"$\ln 2$")
    entropies.set_ylabel("entropy (nat)")
    exponent.errorbar(
        values,
        dataset.uncertainty_exponent,
        dataset.uncertainty_exponent_stderr,
        color=style.GREEN,
        **look,
    )
    exponent.set_ylim(0, 1.15)
    for axis in sheet.axes:
        axis.margins(x=0.02)
    exponent.set_ylabel(r"uncertainty exponent $\alpha$")
    exponent.set_xlabel(label(dataset, name))
    sheet.legend()
    sheet.letters()
    sheet.note(notes.BARS)
    return sheet.figure
