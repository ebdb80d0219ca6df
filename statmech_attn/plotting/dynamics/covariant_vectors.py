"""Angles of expanding with other directions: where they are small, and how often.

Takes files of kind `covariant-vectors`, `CovariantVectors.to_dataset()`, and files of
kind `covariant-diagram`, their scan (`scan.over`).
"""

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.labels import unit_of
from statmech_attn.plotting.dynamics.exponents import colour
from statmech_attn.plotting.frame import sheets, style
from statmech_attn.plotting.frame.axis_words import label, worded
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.presentation import quantity


SHOWN = 400  # quantiles of the law of angles
EDGES = 0.1, 0.3, 0.6, 1.0  # of angles that have one colour, rad


@picture(
    "covariant_vectors",
    "covariant-vectors",
    when=lambda data: bool(np.isfinite(data.angle).all()),
)
@style.styled
def covariant_vectors(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Smallest angle at states of the orbit, and shares of steps with smaller ones."""
    sheet = sheets.panels(axes, style.DOUBLE, 2.8, 1, 2)
    _states(sheet.axes[0], dataset)
    _law(sheet.axes[1], dataset)
    return sheet.finish("", 8, of=slice(1))


def _states(axis: Axes, dataset: xr.Dataset) -> None:
    """The first two coordinates of states, in colours of their angles."""
    states = dataset.state.values
    angles = dataset.angle.values[:: int(dataset.piece_steps)]
    level = np.digitize(angles, EDGES)
    colours = mpl.colormaps["cividis"](np.linspace(0, 1, len(EDGES) + 1))
    for number, shade in reversed(list(enumerate(colours))):  # small ones on top
        low, high = (0, *EDGES)[number], (*EDGES, np.pi / 2)[number]
        axis.plot(
            *states[level == number, :2].T,
            ".",
            color=shade,
            ms=1.8,
            mew=0,
            label=rf"$\theta$ from {low:g} to {high:.3g}",
            rasterized=True,
        )
    axis.set_xlabel("$x_1$")
    axis.set_ylabel("$x_2$")
    axis.margins(0.04)


def _law(axis: Axes, dataset: xr.Dataset) -> None:
    """Distribution function of the angle, and the power of its lower end."""
    angles = np.sort(dataset.angle.values)
    places = np.geomspace(1, len(angles), SHOWN).astype(int) - 1
    shares = (np.arange(len(angles)) + 1) / len(angles)
    axis.plot(angles[places], shares[places], color=style.BLUE)
    power, error = float(dataset.tangency_exponent), dataset.tangency_exponent_stderr
    if np.isfinite(power):
        end = round(np.sqrt(len(angles)))
        reach = np.array([angles[0], angles[-1]])
        fitted = quantity(power, error).replace("±", r"\pm")
        axis.plot(
            reach,
            shares[end] * (reach / angles[end]) ** power,
            color=style.BLACK,
            ls="--",
            label=rf"$\propto \theta^\alpha$, $\alpha = {fitted}$",
        )
        axis.legend(loc="upper left")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(shares[0], 2.0)
    axis.set_xlabel(r"$\theta$ (rad)")
    axis.set_ylabel("share of steps with a smaller angle")


@picture("angle_quantiles", "covariant-diagram")
@style.styled
def angle_quantiles(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Growth of covariant vectors and their smallest angles along a parameter.

    Below every line of the second panel lies one share of the steps of the orbit.
    """
    name = dataset.attrs["parameter"]
    sheet = sheets.panels(axes, style.DOUBLE, 3.9, 2, sharex=True)
    exponents, angles = sheet.axes
    values = dataset[name].values
    look = {"marker": "o", "ms": 2.5, "lw": 0.9}
    for i, growth in enumerate(dataset.covariant_exponent.values.T):
        words = rf"$\lambda_{{{i + 1}}}$"
        exponents.plot(values, growth, color=colour(i), label=words, **look)
    exponents.axhline(0, color=style.BLACK, lw=0.7)
    unit = unit_of(dataset.covariant_exponent.attrs)
    exponents.set_ylabel(worded("exponents", "λ_i", unit))
    colours = mpl.colormaps["cividis"](np.linspace(0, 0.9, dataset.sizes["share"] + 1))
    angles.plot(values, dataset.smallest_angle, color=colours[0], label="least", **look)
    quantiles = zip(colours[1:], dataset.share.values, dataset.angle_quantile.values.T)
    for shade, share, quantile in quantiles:
        angles.plot(values, quantile, color=shade, label=f"{100 * share:g} %", **look)
    angles.set_yscale("log")
    angles.set_ylabel(worded("smallest angle", "θ", "rad"))
    angles.set_xlabel(label(dataset, name))
    for axis in sheet.axes:
        axis.margins(x=0.02)
    return sheet.finish("lines of (b): this share of the steps has a smaller angle", 8)
