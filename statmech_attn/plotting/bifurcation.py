"""Bifurcation diagram over one parameter, Lyapunov spectrum and phase ribbon.

Takes files of the kinds `bifurcation` and `diagram` with one scanned parameter
(docs/hdf5.md).  Overlaps are `m_o_se` itself; the published figures show (1 - epsilon)
times it.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.dynamics import PHASES
from statmech_attn.plotting import style
from statmech_attn.plotting.exponents import draw_spectrum
from statmech_attn.plotting.labels import is_own, label, shown


def parameters(dataset: xr.Dataset) -> tuple[str, ...]:
    """The scanned parameters of a file, in the order of its dimensions."""
    dims = [str(d) for d in dataset.section_count.dims if d != "start"]
    if "point" in dims:  # two refined ones
        dims = [str(d) for d in dataset.dims if str(d).endswith("_grid")]
    return tuple(name.removesuffix("_grid") for name in dims)


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
    scale = 6 / _size(dataset, name)
    figure.legend(handles=entries, markerscale=scale, **place)
    axes[-1].set_xlabel(label(dataset, name))
    span(axes[-1], dataset, name)
    if exponents:
        style.letters(axes)
    return figure


def draw_samples(axis: Axes, dataset: xr.Dataset, name: str, *, strobe: bool) -> None:
    """Section samples, and strobe samples behind them, over the parameter."""
    look: Any = {"ms": _size(dataset, name), "mew": 0, "ls": "none", "marker": "."}
    for variable, words in _samples(dataset).items():
        x, y = _cloud(dataset, variable, name)
        if x.size and (strobe or variable == "section"):
            colour = style.BLACK if variable == "section" else style.ORANGE
            axis.plot(x, y, **look, color=colour, rasterized=True, label=words)
    axis.set_ylabel(shown(dataset))


def _size(dataset: xr.Dataset, name: str) -> float:
    """Of a dot."""
    return float(np.clip(300 / dataset.sizes[name], 0.9, 2.5))


def _samples(dataset: xr.Dataset) -> dict[str, str]:
    """Variables of samples, those behind others first, and where they were taken.

    A flow without a clock, of which crossings of a section are known, has no others.
    """
    tolerance = float(dataset.attrs["section_tolerance"])
    if not is_own(dataset):
        section = r"$|m^{o,\mathrm{SE}}_2| <$ " + power_of_ten(tolerance)
        return {"strobe": r"$t \equiv 0$ mod $C$", "section": section}
    period = int(dataset.attrs["clock_period"])
    every = {"strobe": rf"$t \equiv 0$ mod ${period}$" if period > 1 else "every step"}
    if np.isnan(tolerance):
        return (every if period > 1 else {}) | {"section": "on the section"}
    return every | {"section": f"on the section, $\\pm$ {power_of_ten(tolerance)}"}


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
    """Phases, masked where a point could not be computed; one that diverged could."""
    codes = dataset.phase.values
    failed = dataset.failure.values != 0 if "failure" in dataset else False
    return np.ma.masked_where(failed & (codes != PHASES.index("diverged")), codes)


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
    samples = dataset[variable]
    if "failure" in dataset:
        samples = samples.where(dataset.failure == 0)
    values = samples.transpose(name, ...).values
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
