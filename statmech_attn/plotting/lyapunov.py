"""Running averages of Lyapunov exponents.

Takes files of kind `running-lyapunov`, which analysis/running_lyapunov.py writes:

    lyapunov_running   (beta, block, exponent)   plain average up to the end of a block
    lyapunov_blocks    (beta, block, exponent)   plain average over a block
    lyapunov, lyapunov_stderr, lyapunov_weighted (beta, exponent)
    block_end          (block)                   tokens up to the end of a block
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from statmech_attn.plotting import style
from statmech_attn.plotting.exponents import colour, dashes, entries
from statmech_attn.plotting.phases import describe_phase


COLUMNS = 3


@style.styled
def running_lyapunov(dataset: xr.Dataset, *, exponents: int = 2) -> Figure:
    """Leading exponents averaged up to each time, one panel for every beta.

    The bands are the block standard error scaled to the time so far; the dotted line
    is the weighted average over the whole window.
    """
    count = dataset.sizes["beta"]
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure = style.figure(style.DOUBLE, 1.55 * rows + 0.4)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True)
    for axis, beta in zip(axes.flat, dataset.beta.values, strict=False):
        _panel(axis, dataset.sel(beta=beta), exponents)
        words = f": {describe_phase(dataset, beta=beta)}" if "phase" in dataset else ""
        axis.set_title(rf"$\beta = {beta:g}$" + words, loc="left", pad=2.5)
    for axis in axes.flat[count:]:
        axis.remove()
    for axis in axes[:, 0]:
        axis.set_ylabel(style.WORDS["lyapunov"])
    for axis in axes.flat[max(count - columns, 0) : count]:
        axis.set_xlabel(r"tokens averaged, $n$")
        axis.tick_params(labelbottom=True)
    shown = dataset.lyapunov_running.transpose("block", "exponent", ...)
    handles = entries(shown.isel(exponent=slice(exponents)).values)
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def _panel(axis, point: xr.Dataset, exponents: int) -> None:
    time = point.block_end.values
    axis.axhline(0, color=style.BLACK, lw=0.5)
    for i in range(min(exponents, point.sizes["exponent"])):
        running = point.lyapunov_running.values[:, i]
        running = np.where(np.isfinite(running), running, np.nan)
        error = point.lyapunov_stderr.values[i] * np.sqrt(time[-1] / time)
        shade = colour(i)
        axis.fill_between(
            time, running - error, running + error, color=shade, alpha=0.3, lw=0
        )
        axis.plot(time, running, color=shade, ls=dashes(i))
        weighted = point.lyapunov_weighted.values[i]
        if np.isfinite(weighted):
            axis.axhline(weighted, color=shade, lw=0.8, ls=":")
    axis.set_xscale("log")
    axis.set_xlim(time[0], time[-1])
