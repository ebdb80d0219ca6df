"""Trajectories of a system of one's own: in time, and in the plane.

Takes files of kind `trajectory` with the dimension `observable` (docs/hdf5.md); rows
are values of the scanned parameter.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.axis_words import symbol, worded
from statmech_attn.plotting.frame.registry import pages_of, picture
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.plotting.network.trajectory import few, fit_height, square


ROW = 1.6  # inches of a row of panels
WINDOW = 250  # steps of a series that are drawn
LINES = 3  # observables that are drawn as lines; more of them than `MANY` as a map
MANY = 8


@picture(
    "trajectories",
    "trajectory",
    pages=lambda dataset: pages_of(dataset, str(dataset.observed.dims[0])),
)
@style.styled
def trajectories(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """What is observed over the first steps, and its orbit in the plane.

    Many observables, such as the sites of a lattice, are a map over step and number.
    The plane is that of the first two of them; of a single one, of two steps.  `axes`
    are two for every trajectory, of the steps and of the plane.
    """
    name = str(dataset.observed.dims[0])
    count = dataset.sizes[name]
    size = style.DOUBLE, ROW * count + 0.5
    sheet = sheets.panels(axes, *size, count, 2, width_ratios=[2.6, 1])
    for i, row in enumerate(zip(sheet.axes[::2], sheet.axes[1::2], strict=True)):
        orbit = dataset.isel({name: i})
        values = orbit.observed.transpose("time", "observable").values
        if values.shape[1] > MANY:
            image = _draw_map(row[0], values)
            sheet.figure.colorbar(image, ax=row[0], label=_shared_symbol(dataset))
        else:
            _draw_lines(row[0], orbit, values)
        _draw_plane(row[1], orbit, values)
        sign = symbol(dataset[name].attrs["symbol"])
        row[0].set_title(f"{sign} = {float(orbit[name]):g}", loc="left", pad=2.5)
    sheet.axes[-2].set_xlabel(f"{dataset.attrs['unit']} $t$")
    return sheet.finish(notes.network(dataset))


def _draw_lines(axis: Axes, orbit: xr.Dataset, values: np.ndarray) -> None:
    for number, colour in zip(range(min(values.shape[1], LINES)), style.SERIES):
        series = values[:WINDOW, number]
        axis.plot(series, lw=0.7, color=colour, label=_symbol(orbit, number))
    shown = values[:WINDOW, :LINES]
    fit_height(axis, shown[np.isfinite(shown)])
    axis.set_xlim(0, len(shown))
    axis.set_ylabel(_words(orbit, 0) if values.shape[1] == 1 else "")
    if values.shape[1] > 1:
        style.legend_above(axis, *axis.get_legend_handles_labels())


def _draw_map(axis: Axes, values: np.ndarray):
    image = axis.imshow(
        values[:WINDOW].T,
        aspect="auto",
        origin="lower",
        extent=(-0.5, len(values[:WINDOW]) - 0.5, 0.5, values.shape[1] + 0.5),
        interpolation="nearest",
        rasterized=True,
    )
    axis.set_ylabel("observable $i$")
    return image


def _draw_plane(axis: Axes, orbit: xr.Dataset, values: np.ndarray) -> None:
    single = values.shape[1] == 1
    x, y = (values[:-1, 0], values[1:, 0]) if single else values[:, :2].T
    size = 3.5 if few(x) else 1.6
    axis.plot(x, y, ".", ms=size, mew=0, color=style.BLUE, rasterized=True)
    finite = np.isfinite(x) & np.isfinite(y)
    square(axis, x[finite], y[finite])
    axis.set_xlabel(_symbol(orbit, 0, "t" if single else ""), labelpad=1)
    second = _symbol(orbit, 0, "t+1") if single else _symbol(orbit, 1)
    axis.set_ylabel(second, labelpad=3)


def _symbol(dataset: xr.Dataset, number: int, index: str = "") -> str:
    sign = str(dataset.observable_symbol.values[number])
    return f"${sign}_{{{index}}}$" if index else symbol(sign)


def _shared_symbol(dataset: xr.Dataset) -> str:
    """The letter that the symbols of all observables begin with, if there is one."""
    letters = {str(sign).partition("_")[0] for sign in dataset.observable_symbol.values}
    return f"${letters.pop()}_i$" if len(letters) == 1 else "value"


def _words(dataset: xr.Dataset, number: int) -> str:
    return worded(
        str(dataset.observable_words.values[number]),
        str(dataset.observable_symbol.values[number]),
        str(dataset.observable_unit.values[number]),
    )
