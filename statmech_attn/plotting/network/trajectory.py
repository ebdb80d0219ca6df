"""Overlaps along trajectories: windows in time, phase planes, spectra.

Takes files of kind `trajectory` (docs/hdf5.md); rows are values of beta.  A file of
measured phases with the same beta (`phase`, `period`) puts them into the titles.
Overlaps are `m_o_se` itself; the published figures show (1 - epsilon) times it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.dmft import PRODUCTION
from statmech_attn.dynamics import autocorrelation, power_spectrum
from statmech_attn.labels import unit_of
from statmech_attn.options import Count
from statmech_attn.plotting.dynamics.phases import describe_phase
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import pages_of_beta, picture, values_of
from statmech_attn.plotting.frame.sheets import PanelAxes


WINDOWS = (250, 350, 5000)
ROW = 0.98  # inches of a row of panels
PLANE_COLUMNS = 3
JOINED = 1000  # tokens of a window that a line shows
FEW = 200  # points that are drawn larger
MAX_LAG = 200
POWER = "$P(f)$ (token)"  # per cycle/token, and cycles count as pure numbers
EMPTY = 1e-16  # power of rounding, relative to the strongest line


PATTERN = {"pattern": values_of("pattern")}
OBSERVABLE = {"observable": lambda dataset: [x for x in style.OVERLAPS if x in dataset]}


@picture(
    "trajectories", "trajectory", pages=pages_of_beta, choices=OBSERVABLE | PATTERN
)
@style.styled
def trajectory_windows(
    dataset: xr.Dataset,
    *,
    phases: xr.Dataset | None = None,
    windows: Sequence[int] = WINDOWS,
    observable: str = "m_o_se",
    pattern: Count = 1,
    axes: PanelAxes = None,
) -> Figure:
    """The overlap with one pattern over the first tokens of the file, by beta.

    A window too long for a line has a dot for every token at phase 0 of the clock.  On
    the right is the entropy production of the tokens, where the file has it.

    Args:
        dataset: trajectories; windows longer than the file show all of it.
        phases: measured phases with the same beta, for the titles.
        windows: lengths in tokens, one column each.
        observable: which overlap, or "A" for attention.
        pattern: which component, counted from 1.
        axes: those to draw on, one for each beta and window, and for its entropy
            production, beta by beta.
    """
    lengths = sorted({min(w, dataset.sizes["time"]) for w in windows})
    count = dataset.sizes["beta"]
    shape = count, len(lengths) + (PRODUCTION in dataset)
    size = style.DOUBLE, ROW * count + 0.55
    sheet = sheets.panels(axes, *size, *shape, sharex="col")
    panels = np.array(sheet.axes).reshape(shape)
    clock = int(dataset.attrs.get("context", 0))
    for row, beta in zip(panels, dataset.beta.values, strict=True):
        series = dataset[observable].sel(beta=beta, pattern=pattern)
        for axis in row[1 : len(lengths)] if sheet.whole else ():
            axis.sharey(row[0])
            axis.tick_params(labelleft=False)
        for axis, length in zip(row, lengths, strict=False):
            dense = length > JOINED
            every = slice(0, length, max(clock, 1) if dense else 1)
            look: dict[str, Any] = {"marker": ".", "ms": 1.5, "mew": 0, "ls": "none"}
            axis.plot(
                dataset.time.values[every],
                series.values[every],
                color=style.BLUE,
                rasterized=dense,
                **(look if dense else {"lw": 0.6}),
            )
            axis.set_xlim(0, length)
        fit_height(row[0], series.values[: lengths[-1]])
        row[0].set_ylabel(style.overlap(observable, pattern))
        _title(row[0], beta, phases)
        for axis in row[len(lengths) :]:
            rates = dataset[PRODUCTION].sel(beta=beta)[: lengths[0]]
            axis.plot(rates.time, rates, lw=0.6, color=style.BLACK)
            axis.set_xlim(0, lengths[0])
            axis.set_ylabel(r"$\sigma_t$")
            axis.set_title(unit_of(rates.attrs), loc="right", pad=2.5)
    for axis in panels[-1]:
        axis.set_xlabel(style.WORDS["time"])
    thinned = lengths[-1] > JOINED and clock > 1
    dots = rf"dots: tokens $t \equiv 0$ mod ${clock}$" if thinned else ""
    return sheet.finish(notes.joined(dots, notes.network(dataset)))


@picture(
    "planes",
    "trajectory",
    when=lambda dataset: dataset.sizes["pattern"] > 1,
    pages=pages_of_beta,
)
@style.styled
def phase_planes(
    dataset: xr.Dataset, *, phases: xr.Dataset | None = None, axes: PanelAxes = None
) -> Figure:
    """Orbits in the planes (m_o_se_1, m_o_se_2) and (A_1, A_3), three beta to a row.

    All phases of the clock lie on top of each other.  With two patterns A_2 takes the
    place of A_3.

    Args:
        dataset: a result of kind `trajectory`.
        phases: measured phases with the same beta, for the titles.
        axes: those to draw on, two for each beta.

    Raises:
        ValueError: a single pattern spans no plane.
    """
    n_patterns = dataset.sizes["pattern"]
    if n_patterns < 2:
        raise ValueError("phase planes need at least 2 patterns; got 1.")
    count = dataset.sizes["beta"]
    columns = min(count, PLANE_COLUMNS)
    blocks = -(-count // columns)
    size = 2.0 * columns, 2.03 * 2 * blocks + 0.2
    make = lambda: _pairs(sheets.grid(*size, 2 * blocks, columns), columns, count)
    sheet = sheets.sheet(axes, 2 * count, make)
    planes = (("m_o_se", 2), ("A", min(3, n_patterns)))
    for i, beta in enumerate(dataset.beta.values):
        pair = sheet.axes[2 * i : 2 * i + 2]
        for axis, (name, second) in zip(pair, planes, strict=True):
            orbit = dataset[name].sel(beta=beta)
            x, y = (orbit.sel(pattern=p).values for p in (1, second))
            single = few(x)
            look = {"marker": "o", "ms": 2.2} if single else {"marker": ".", "ms": 1.6}
            axis.plot(
                x, y, ls="", mew=0, color=style.BLUE, rasterized=not single, **look
            )
            axis.set_xlabel(style.overlap(name, 1), labelpad=1)
            axis.set_ylabel(style.overlap(name, second), labelpad=3)
            square(axis, x, y)
        _title(pair[0], beta, phases)
    clock = int(dataset.attrs.get("context", 0))
    overlaid = f"all {clock} phases of the clock are overlaid" if clock > 1 else ""
    return sheet.finish(notes.joined(overlaid, notes.network(dataset)))


def _pairs(axes: list[Axes], columns: int, count: int) -> list[Axes]:
    """Panels one above the other, for each of so many; the others are left out."""
    panels = np.array(axes).reshape(-1, 2, columns).transpose(0, 2, 1).ravel().tolist()
    for axis in panels[2 * count :]:
        axis.remove()
    return panels[: 2 * count]


@picture("spectra", "trajectory", pages=pages_of_beta, choices=PATTERN)
@style.styled
def spectra(
    dataset: xr.Dataset,
    *,
    phases: xr.Dataset | None = None,
    pattern: Count = 1,
    max_lag: Count = MAX_LAG,
    axes: PanelAxes = None,
) -> Figure:
    """Power spectrum, linear and logarithmic, and autocorrelation of one overlap.

    Args:
        dataset: a result of kind `trajectory`.
        phases: measured phases with the same beta, for the titles.
        pattern: which overlap, counted from 1.
        max_lag: of the autocorrelation, in tokens.
        axes: those to draw on, three for each beta.
    """
    count = dataset.sizes["beta"]
    max_lag = min(max_lag, dataset.sizes["time"] // 2)
    sheet = sheets.panels(
        axes, style.DOUBLE, ROW * count + 0.55, count, 3, sharex="col"
    )
    panels = np.array(sheet.axes).reshape(count, 3)
    for row, beta in zip(panels, dataset.beta.values, strict=True):
        series = dataset.m_o_se.sel(beta=beta, pattern=pattern).values
        frequency, power = power_spectrum(series, window="hann")
        row[0].plot(frequency, power, color=style.BLUE, lw=0.6)
        row[0].set_ylim(0, 1.08 * power.max() or 1.0)
        shown = np.where(power > EMPTY * power.max(), power, np.nan)
        row[1].semilogy(frequency, shown, color=style.BLUE, lw=0.4, rasterized=True)
        row[1].set_xlim(frequency[0], frequency[-1])
        lags = np.arange(max_lag + 1)
        r = autocorrelation(series, max_lag=max_lag)
        row[2].axhline(0, color=style.GREY, lw=0.5)
        row[2].plot(lags, r, color=style.BLUE, lw=0.6)
        row[2].set_ylim(-1.1, 1.1)
        for axis, label in zip(row, (POWER, POWER, r"$r(\ell)$"), strict=True):
            axis.set_ylabel(label)
        _title(row[0], beta, phases)
    for axis, label in zip(panels[-1], ("frequency", "frequency", "lag"), strict=True):
        axis.set_xlabel(style.WORDS[label])
    return sheet.finish(
        notes.joined(style.overlap("m_o_se", pattern), notes.network(dataset))
    )


def _title(axis: Axes, beta: float, phases: xr.Dataset | None) -> None:
    text = rf"$\beta = {beta:g}$"
    if phases is not None:
        text += f": {describe_phase(phases, beta=beta)}"
    axis.set_title(text, loc="left", pad=2.5)


def few(x) -> bool:
    """Whether a series takes few values, as that of a periodic orbit."""
    return len(np.unique(np.round(x, 6))) < FEW


def fit_height(axis: Axes, y) -> None:
    """Vertical range of the data; of a constant, a range that shows it as such."""
    low, high = y.min(), y.max()
    margin = 0.08 * (high - low) or 0.05
    axis.set_ylim(low - margin, high + margin)


def square(axis: Axes, x, y) -> None:
    """Equal scales around the data in a square panel."""
    half = 0.56 * max(np.ptp(x), np.ptp(y)) or 0.05
    for limits, values in ((axis.set_xlim, x), (axis.set_ylim, y)):
        centre = (values.min() + values.max()) / 2
        limits(centre - half, centre + half)
    axis.set_box_aspect(1)
    axis.locator_params(nbins=3)
