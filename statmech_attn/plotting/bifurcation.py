"""Bifurcation diagram over one parameter, Lyapunov spectrum and phase ribbon.

Takes files of kind `bifurcation` with one scanned parameter (docs/hdf5.md).  Overlaps
are `m_o_se` itself; the published figures show (1 - epsilon) times it.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting import style
from statmech_attn.plotting.exponents import draw_spectrum


PARAMETERS = ("beta", "gamma", "epsilon")


def parameters(dataset: xr.Dataset) -> tuple[str, ...]:
    """The scanned parameters of a bifurcation file, in the order of its dimensions."""
    if "point" in dataset.section_count.dims:  # two refined ones
        return tuple(name for name in PARAMETERS if f"{name}_grid" in dataset.dims)
    return tuple(str(d) for d in dataset.section_count.dims if d in PARAMETERS)


@style.styled
def bifurcation_diagram(dataset: xr.Dataset, *, strobe: bool = True) -> Figure:
    """Section samples over the parameter, exponents under them, phases above.

    Args:
        dataset: a scan of one parameter.
        strobe: draw the samples at the clock's phase 0 behind those of the section.
    """
    name = one_parameter(dataset)
    dataset = dataset.sortby(name)
    exponents = "lyapunov" in dataset
    heights = [0.055, 1.0, 0.75] if exponents else [1.0]
    figure = style.figure(style.DOUBLE, 4.4 if exponents else 2.8)
    column = figure.subplots(
        len(heights), sharex=True, height_ratios=heights, squeeze=False
    )
    axes = list(column[:, 0])
    if exponents:
        phase_ribbon(axes.pop(0), dataset, name)
    draw_samples(axes[0], dataset, name, strobe=strobe)
    entries = axes[0].get_legend_handles_labels()[0]
    if exponents:
        draw_spectrum(axes[1], dataset, name)
        entries = style.phase_patches(codes_of(dataset)) + entries
    columns = len(entries) if len(entries) <= 8 else -(-len(entries) // 2)
    place = {"loc": "outside upper center", "ncols": columns}
    scale = 6 / axes[0].lines[-1].get_markersize()
    figure.legend(handles=entries, markerscale=scale, **place)
    axes[-1].set_xlabel(style.WORDS[name])
    span(axes[-1], dataset, name)
    style.letters(axes)
    return figure


def draw_samples(axis: Axes, dataset: xr.Dataset, name: str, *, strobe: bool) -> None:
    """Section samples, and strobe samples behind them, over the parameter."""
    size = float(np.clip(300 / dataset.sizes[name], 0.9, 2.5))
    if strobe and "strobe" in dataset:
        x, y = _cloud(dataset, "strobe", name)
        axis.plot(
            x,
            y,
            ".",
            ms=size,
            mew=0,
            color=style.ORANGE,
            rasterized=True,
            label=r"$t \equiv 0$ mod $C$",
        )
    x, y = _cloud(dataset, "section", name)
    tolerance = float(dataset.attrs["section_tolerance"])
    axis.plot(
        x,
        y,
        ".",
        ms=size,
        mew=0,
        color=style.BLACK,
        rasterized=True,
        label=r"$|m^{o,\mathrm{SE}}_2| <$ " + power_of_ten(tolerance),
    )
    axis.set_ylabel(style.WORDS["section"])


def span(axis: Axes, dataset: xr.Dataset, name: str) -> None:
    """Horizontal range from the first to the last value of the parameter."""
    values = dataset[name].values
    if len(values) > 1:
        axis.set_xlim(values.min(), values.max())


def phase_ribbon(axis: Axes, dataset: xr.Dataset, name: str) -> None:
    """A strip with the phase of every point; one row for each start."""
    codes = codes_of(dataset.transpose(name, ...))
    codes = codes.reshape(codes.shape[0], -1)
    cmap, norm = style.phase_colours()
    rows = np.arange(codes.shape[1] + 1)
    edges = style.cell_edges(dataset[name].values)
    axis.pcolormesh(edges, rows, codes.T, cmap=cmap, norm=norm, rasterized=True)
    axis.set_yticks([])
    axis.tick_params(axis="x", which="both", length=0, labelbottom=False)


def codes_of(dataset: xr.Dataset) -> np.ma.MaskedArray:
    """Phases, masked where a point could not be computed."""
    codes = dataset.phase.values
    failed = dataset.failure.values != 0 if "failure" in dataset else False
    return np.ma.masked_where(np.broadcast_to(failed, codes.shape), codes)


def power_of_ten(x: float) -> str:
    """A number as mathematical text, a power of ten where it is one.

    Example:
        >>> power_of_ten(1e-3)
        '$10^{-3}$'
    """
    exponent = np.log10(x)
    if np.isclose(exponent, round(exponent)):
        return f"$10^{{{round(exponent)}}}$"
    return f"${x:g}$"


def _cloud(dataset: xr.Dataset, variable: str, name: str):
    """Abscissa and value of every sample that exists."""
    values = dataset[variable].transpose(name, ...).values
    values = values.reshape(values.shape[0], -1)
    x = np.broadcast_to(dataset[name].values[:, None], values.shape)
    exists = np.isfinite(values)
    return x[exists], values[exists]


def one_parameter(dataset: xr.Dataset) -> str:
    """The scanned parameter of a scan of one parameter."""
    names = parameters(dataset)
    if len(names) != 1:
        raise ValueError(
            f"this picture shows one scanned parameter; got {names}: select one value "
            "of the other, or draw a phase diagram."
        )
    return names[0]
