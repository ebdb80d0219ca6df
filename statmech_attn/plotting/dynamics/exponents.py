r"""Panels of Lyapunov exponents: all of them, with $\lambda_1$ near zero readable.

Exponents of a cycle reach from $10^{-2}$ to tens of nats per token.  The axis shows
every finite one: it is linear between $-\theta$ and $\theta$ and logarithmic beyond,
with $\theta$ marked, or linear throughout where that hides nothing.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter

from statmech_attn.labels import NATS, rate, unit_of
from statmech_attn.plotting.frame import style


SHOWN = 4  # exponents with a colour and a name of their own
DEPTH = 5.0  # a linear axis reaches so many times as far down as theta
FINEST = 1e-3  # theta over the depth is at least that
JUMP = 0.25  # of the range of the largest exponent
HEADROOM = 1.25  # leaves the letter of a panel above the zero line


def draw_spectrum(axis: Axes, dataset: xr.Dataset, name: str) -> None:
    """All exponents over a parameter, bands of one standard error, the zero line.

    Lines and bands end at `jumps`.  Minus infinity and NaN are not drawn.  Crosses are
    the largest exponents of what follows transients.  Exponents
    that are never finite are not in the legend, or as minus infinity if they are that
    everywhere.
    """
    x = dataset[name].values
    stored = dataset.lyapunov.transpose(name, "exponent", ...).values
    errors = dataset.lyapunov_stderr.transpose(name, "exponent", ...).values
    stored, errors = (v.reshape(v.shape[:2] + (-1,)) for v in (stored, errors))
    values = np.where(np.isfinite(stored), stored, np.nan)
    ends = jumps(dataset, name, values.shape[2])
    axis.axhline(0, color=style.BLACK, lw=0.5, zorder=1)
    for i in reversed(range(values.shape[1])):
        for start, jump in enumerate(ends.T):
            y, error = values[:, i, start], errors[:, i, start]
            draw_pieces(axis, x, y, jump, error, colour(i), dashes(i), 2 + i % 2 / 10)
    after = _after_transients(dataset, name)
    if np.isfinite(after).any():
        look: Any = {"ms": 2.5, "mew": 0.6, "color": style.BLACK, "zorder": 3}
        axis.plot(x, after, "x", **look)
        axis.plot([], [], "x", **look, label=r"$\lambda_1$ after a transient")
    set_scale(axis, values[:, 0], np.append(values, after))
    handles = [*entries(stored), *axis.get_legend_handles_labels()[0]]
    axis.set_ylabel(in_words("i", dataset.lyapunov))
    style.legend_above(axis, handles, [str(entry.get_label()) for entry in handles])


def _after_transients(dataset: xr.Dataset, name: str) -> np.ndarray:
    """The largest exponent of what follows each transient, NaN elsewhere."""
    if "final_starts" not in dataset:
        return np.full((dataset.sizes[name], 1), np.nan)
    after = dataset.final_lyapunov.where(dataset.final_starts >= 0)
    after = after.transpose(name, ...).values.reshape(dataset.sizes[name], -1)
    return np.where(np.isfinite(after), after, np.nan)


def jumps(dataset: xr.Dataset, name: str, starts: int) -> np.ndarray:
    r"""Whether there is a jump after a point, (points - 1, starts).

    There the phase or the period changes, or $\lambda_1$ by a quarter of its range.
    """
    changes = np.zeros((dataset.sizes[name] - 1, starts), bool)
    for variable in ("phase", "period"):
        if variable in dataset:
            codes = dataset[variable].transpose(name, ...).values
            changes |= np.diff(codes.reshape(len(codes), starts), axis=0) != 0
    largest = dataset.lyapunov.transpose(name, ..., "exponent").values[..., 0]
    largest = np.where(np.isfinite(largest), largest, np.nan)
    change = np.abs(np.diff(largest.reshape(len(largest), starts), axis=0))
    return changes | (change > JUMP * _range(largest))


def _range(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.ptp(finite)) if finite.size else 0.0


def draw_pieces(
    axis: Axes, x, y, jump, error, shade: str, dash: Any = "-", zorder: float = 2.0
) -> None:
    """A line with its band, not drawn across jumps; dots where a piece is a point.

    `jump` (n - 1,) says whether there is one between a point and the next.
    """
    after = np.flatnonzero(jump) + 1
    x, y, error = (np.insert(v, after, np.nan) for v in (x, y, error))
    axis.fill_between(x, y - error, y + error, color=shade, alpha=0.35, lw=0)
    axis.plot(x, y, color=shade, lw=0.7, ls=dash, zorder=zorder)
    alone = isolated(y)
    axis.plot(x[alone], y[alone], ".", color=shade, ms=style.dot(len(x), 2.6), mew=0)


def in_words(index: str, exponents: xr.DataArray) -> str:
    """Label of an axis of exponents, in the units of the file."""
    unit = unit_of({"units": NATS} | exponents.attrs)
    return rf"$\lambda_{index}$ ({rate(unit)})"


def colour(i: int) -> str:
    """Colour of exponent i, counted from 0."""
    return style.SERIES[i] if i < SHOWN else style.PALE


def dashes(i: int):
    """Line style of exponent i, counted from 0; equal pairs remain visible as two."""
    return (0, (4, 2)) if i < SHOWN and i % 2 else "-"


def isolated(y) -> np.ndarray:
    """Finite values without a finite neighbour, through which no line goes."""
    finite = np.pad(np.isfinite(y), 1)
    return finite[1:-1] & ~finite[:-2] & ~finite[2:]


def entries(values) -> list[Line2D]:
    """Legend entries of exponents (points, exponent, ...), largest first."""
    by_exponent = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
    resolved = np.flatnonzero(np.isfinite(by_exponent).any(axis=1))
    lost = np.flatnonzero((by_exponent == -np.inf).all(axis=1))
    line = lambda group: Line2D(
        [],
        [],
        lw=0.9,
        color=colour(group[0]),
        ls=dashes(group[0]),
        label=f"${symbols(group)}$",
    )
    lines = [line([i]) for i in resolved[resolved < SHOWN]]
    if (faint := resolved[resolved >= SHOWN]).size:
        lines.append(line(faint))
    if lost.size:
        words = rf"${symbols(lost)} = -\infty$"
        lines.append(Line2D([], [], ls="none", label=words))
    return lines


def symbols(group) -> str:
    """Symbols of exponents, counted from 0, as mathematical text."""
    names = [rf"\lambda_{{{i + 1}}}" for i in group]
    return ",".join(names) if len(names) < 3 else rf"{names[0]},\dots,{names[-1]}"


def set_scale(axis: Axes, largest, values) -> None:
    r"""A vertical axis that shows all finite values, and the largest exponents well.

    $\theta$ is the maximum of $\lambda_1$ where that is positive, else its median
    size.  Where the axis is logarithmic, a line with a legend entry marks $-\theta$.
    """
    largest, values = (x[np.isfinite(x)] for x in (largest, values))
    top, depth = np.max(values, initial=0.0), -np.min(values, initial=0.0)
    size = np.median(np.abs(largest)) if largest.size else depth
    theta = round_up(top if top > FINEST * depth else max(size, FINEST * depth))
    if depth <= DEPTH * theta:
        margin = 0.05 * (top + depth) or 0.01
        axis.set_ylim(-depth - margin, max(HEADROOM * top, 0.2 * depth) + margin)
        return
    below = np.log10(depth / theta)
    axis.set_yscale("symlog", linthresh=theta, linscale=below / 2)
    axis.set_ylim(-1.2 * depth, max(HEADROOM * top, 0.6 * theta))
    _ticks(axis, theta, depth)
    axis.axhline(
        -theta,
        color=style.GREY,
        lw=0.6,
        ls=(0, (1, 2)),
        zorder=1,
        label=f"logarithmic below ${-theta:g}$",
    )


def _ticks(axis: Axes, theta: float, depth: float) -> None:
    """Numbers at 0, theta / 2 and theta; below at powers of ten, or 1, 2, 5 times."""
    decades = 10.0 ** np.arange(np.floor(np.log10(theta)), np.log10(depth))
    factors = [1, 2, 5] if depth < 30 * theta else [1]
    major, minor = (np.outer(decades, n).ravel() for n in (factors, np.arange(1, 10)))
    linear = theta * np.array([-1, -0.5, 0, 0.5, 1])
    axis.yaxis.set_major_locator(FixedLocator([*linear, *-major[major > 1.5 * theta]]))
    axis.yaxis.set_minor_locator(FixedLocator(list(-minor[minor > theta])))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"${y:g}$"))


def round_up(x: float) -> float:
    """The next of 1, 2 and 5 times a power of ten; 0.01 for nothing."""
    if x <= 0:
        return 0.01
    power = 10.0 ** np.floor(np.log10(x))
    return float(next(n * power for n in (1, 2, 5, 10) if n * power >= x * (1 - 1e-9)))
