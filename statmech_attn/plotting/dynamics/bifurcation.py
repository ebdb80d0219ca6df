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
from statmech_attn.labels import unit_of
from statmech_attn.plotting.dynamics.exponents import draw_pieces, draw_spectrum, jumps
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.axis_words import is_own, label, shown
from statmech_attn.plotting.frame.registry import picture
from statmech_attn.plotting.frame.sheets import PanelAxes


BANDS = "bands: one standard error"


def parameters(dataset: xr.Dataset) -> tuple[str, ...]:
    """The scanned parameters of a file, in the order of its dimensions."""
    if not (known := [x for x in ("section_count", "phase") if x in dataset]):
        kind = dataset.attrs.get("kind", "another data set")
        raise ValueError(
            f"this picture shows a scan of kind bifurcation or diagram; got {kind}."
        )
    dims = [str(d) for d in dataset[known[0]].dims if d != "start"]
    if "point" in dims:  # two refined ones
        dims = [str(d) for d in dataset.dims if str(d).endswith("_grid")]
    return tuple(name.removesuffix("_grid") for name in dims)


def is_plane(dataset: xr.Dataset) -> bool:
    """Whether two parameters were scanned."""
    known = "section_count" in dataset or "phase" in dataset
    return known and len(parameters(dataset)) == 2


def is_swept(dataset: xr.Dataset) -> bool:
    """Whether the two starts of a scan were followed up and down.

    Args:
        dataset: a scan.

    Example:
        >>> is_swept(xr.Dataset())
        False
    """
    words = str(dataset.attrs.get("start", ""))
    return words.startswith("followed up and down") and dataset.sizes.get("start") == 2


@picture(
    "bifurcation",
    "bifurcation",
    "diagram",
    when=lambda dataset: "section_count" in dataset and not is_plane(dataset),
)
@style.styled
def bifurcation_diagram(
    dataset: xr.Dataset, *, strobe: bool | None = None, axes: PanelAxes = None
) -> Figure:
    """Section samples over a parameter, phases above, exponents and entropy below.

    Args:
        dataset: a scan of one parameter.
        strobe: draw the samples at the clock's phase 0 behind those of the section;
            None as in `bifurcation_samples`.
        axes: to draw on: for phases, samples, exponents, and entropy production where
            the scan has it; one for the samples of a scan without exponents.
    """
    name = one_parameter(dataset)
    heights = [0.055, 1.0, 0.75] if "lyapunov" in dataset else [1.0]
    heights += [0.5] if "entropy_production" in dataset else []
    size = style.DOUBLE, {1: 2.9, 3: 4.5, 4: 5.4}[len(heights)]
    sheet = sheets.sheet(
        axes,
        len(heights),
        lambda: sheets.grid(*size, len(heights), sharex=True, height_ratios=heights),
    )
    *ribbon, samples = sheet.axes[:2]
    bifurcation_samples(dataset, strobe=strobe, ax=samples)
    if ribbon:
        phase_ribbon(dataset, ax=ribbon[0])
        lyapunov_spectrum(dataset, ax=sheet.axes[2])
        samples.set_xlabel("")
    if sheet.axes[3:]:
        _draw_production(sheet.axes[3], dataset, name)
        sheet.axes[2].set_xlabel("")
    starts = dataset.sizes.get("start", 1)
    rows = f"{starts} starts at each value" if starts > 1 else ""
    rows += ", a row of (a) each" if rows and ribbon else ""
    after = ""
    if ribbon and followed(dataset).any():
        after = "below a transient in (a) and as × in (c): what follows it"
    return sheet.finish(
        notes.joined(BANDS if ribbon else "", rows, after, notes.network(dataset)),
        8,
        of=slice(2),
    )


@style.styled
def bifurcation_samples(
    dataset: xr.Dataset,
    *,
    strobe: bool | None = None,
    section: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Section samples, and those at the clock's phase 0 behind them, over a parameter.

    Args:
        dataset: a result of kind `bifurcation` over one parameter.
        strobe: whether strobe samples are drawn; None: unless they are those of every
            step beside crossings of a section, as of a flow without a clock.
        section: whether section samples are drawn.
        ax: one to draw on.
    """
    name = one_parameter(dataset)
    sheet = sheets.single(ax, style.DOUBLE, 2.9)
    (axis,) = sheet.axes
    size = style.dot(dataset.sizes[name], 0.9)
    look: Any = {"ms": size, "mew": 0, "ls": "none", "marker": "."}
    if strobe is None:
        strobe = not (section and _crossings_alone(dataset))
    requested = {"strobe": strobe, "section": section}
    clouds = {
        words: cloud
        for variable, words in _samples(dataset).items()
        if requested[variable] and (cloud := _cloud(dataset, variable, name))[0].size
    }
    alone = section and len(clouds) == 1  # nothing is drawn over these samples
    colours = [style.BLACK] if alone else [style.DOTS, style.BLACK]
    for colour, (words, cloud) in zip(colours, clouds.items()):
        axis.plot(*cloud, **look, color=colour, rasterized=True, label=words)
    axis.set_ylabel(shown(dataset))
    axis.set_xlabel(label(dataset, name))
    span(axis, dataset, name)
    return sheet.finish(notes.network(dataset), 8)


def _samples(dataset: xr.Dataset) -> dict[str, str]:
    """Variables of samples, those behind others first, and where they were taken."""
    tolerance = float(dataset.attrs["section_tolerance"])
    if not is_own(dataset):
        section = r"$|m^{o,\mathrm{SE}}_2| <$ " + power_of_ten(tolerance)
        return {"strobe": r"$t \equiv 0$ mod $C$", "section": section}
    period = int(dataset.attrs["clock_period"])
    every_step = f"every {dataset.attrs['unit']}"
    every = {"strobe": rf"$t \equiv 0$ mod ${period}$" if period > 1 else every_step}
    _, _, where = dataset.section.attrs["long_name"].partition(" on the section ")
    near = "" if np.isnan(tolerance) else f", $\\pm$ {power_of_ten(tolerance)}"
    return every | {
        "section": f"on the section {where}" if where else f"on the section{near}"
    }


def _crossings_alone(dataset: xr.Dataset) -> bool:
    """Whether crossings of a section were met, by a system without a clock."""
    crossings = np.isnan(float(dataset.attrs["section_tolerance"]))
    clock = is_own(dataset) and int(dataset.attrs["clock_period"]) == 1
    return bool(crossings and clock and (dataset.section_count > 0).any())


def span(axis: Axes, dataset: xr.Dataset, name: str) -> None:
    """Horizontal range from the first to the last value of the parameter."""
    values = dataset[name].values
    if len(values) > 1:
        axis.set_xlim(values.min(), values.max())


@style.styled
def phase_ribbon(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """A strip with the phase of every point; one row for each start.

    Below the mark of a transient is the phase that follows it.

    Args:
        dataset: a result of kind `bifurcation` over one parameter.
        ax: one to draw on.
    """
    name = one_parameter(dataset)
    dataset = dataset.sortby(name)
    sheet = sheets.single(ax, style.DOUBLE, 0.9)
    (axis,) = sheet.axes
    columns = lambda codes: codes.reshape(codes.shape[0], -1)
    codes = columns(codes_of(dataset.transpose(name, ...)))
    cmap, norm = style.phase_colours()
    rows = np.arange(codes.shape[1] + 1)
    if followed(dataset).any():
        after = columns(codes_of(dataset.transpose(name, ...), "final_phase"))
        codes = columns(np.ma.stack([after, codes], axis=2))
        rows = np.arange(codes.shape[1] + 1) / 2
    edges = style.cell_edges(dataset[name].values)
    axis.pcolormesh(edges, rows, codes.T, cmap=cmap, norm=norm, rasterized=True)
    style.phase_entries(axis, codes)
    axis.set_yticks([])
    axis.tick_params(axis="x", which="both", length=0)
    span(axis, dataset, name)
    if sheet.whole:
        axis.set_xlabel(label(dataset, name))
    return sheet.finish("", 8)


@style.styled
def lyapunov_spectrum(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Exponents over the parameter, with bands of one standard error.

    Lines end where the phase or the period changes.

    Args:
        dataset: a result of kind `bifurcation` over one parameter.
        ax: one to draw on.
    """
    name = one_parameter(dataset)
    dataset = dataset.sortby(name)
    sheet = sheets.single(ax, style.DOUBLE, 2.4)
    (axis,) = sheet.axes
    draw_spectrum(axis, dataset, name)
    axis.set_xlabel(label(dataset, name))
    span(axis, dataset, name)
    return sheet.finish(notes.joined(BANDS, notes.network(dataset)))


def _draw_production(axis: Axes, dataset: xr.Dataset, name: str) -> None:
    """Entropy production with its error; lines end where phase or period change."""
    dataset = dataset.sortby(name).transpose(name, ...)
    columns = lambda x: x.values.reshape(x.shape[0], -1)
    values = columns(dataset.entropy_production)
    errors = columns(dataset.entropy_production_stderr)
    ends = jumps(dataset, name, values.shape[1])
    axis.axhline(0, color=style.BLACK, lw=0.5, zorder=1)
    for y, error, jump in zip(values.T, errors.T, ends.T, strict=True):
        draw_pieces(axis, dataset[name].values, y, jump, error, style.BLACK)
    axis.set_ylabel(f"$\\sigma$\n({unit_of(dataset.entropy_production.attrs)})")
    axis.set_xlabel(label(dataset, name))
    span(axis, dataset, name)


def followed(dataset: xr.Dataset) -> np.ndarray:
    """Which points are transients of which the file says what follows them."""
    if "final_starts" in dataset:
        return dataset.final_starts.values >= 0
    return np.zeros(dataset.phase.shape, bool)


def codes_of(dataset: xr.Dataset, variable: str = "phase") -> np.ma.MaskedArray:
    """Phases, masked where a point could not be computed; one that diverged could."""
    codes = dataset[variable].values
    failed = dataset.failure.values != 0 if "failure" in dataset else False
    return np.ma.masked_where(failed & (codes != PHASES.index("diverged")), codes)


def power_of_ten(x: float) -> str:
    """A number as mathematical text, a power of ten where it is one."""
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
