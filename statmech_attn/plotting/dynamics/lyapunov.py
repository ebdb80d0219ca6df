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

from statmech_attn.options import Count
from statmech_attn.plotting.dynamics.exponents import colour, dashes, entries
from statmech_attn.plotting.dynamics.phases import describe_phase
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import pages_of_beta, picture
from statmech_attn.plotting.frame.sheets import PanelAxes


COLUMNS = 3


@picture("running_lyapunov", "running-lyapunov", pages=pages_of_beta)
@style.styled
def running_lyapunov(
    dataset: xr.Dataset, *, exponents: Count = 2, axes: PanelAxes = None
) -> Figure:
    """Leading exponents averaged up to each time, one panel for every beta.

    The bands are the block standard error scaled to the time so far; the dotted line
    is the weighted average over the whole window.
    """
    count = dataset.sizes["beta"]
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    size = style.DOUBLE, 1.55 * rows + 0.6
    sheet = sheets.panels(axes, *size, rows, columns, count, sharex=True)
    for axis, beta in zip(sheet.axes, dataset.beta.values, strict=True):
        _panel(axis, dataset.sel(beta=beta), exponents)
        words = f": {describe_phase(dataset, beta=beta)}" if "phase" in dataset else ""
        axis.set_title(rf"$\beta = {beta:g}$" + words, loc="left", pad=2.5)
    for axis in sheet.axes[::columns]:
        axis.set_ylabel(style.WORDS["lyapunov"])
    for axis in sheet.axes[max(count - columns, 0) :]:
        axis.set_xlabel(r"tokens averaged, $n$")
        axis.tick_params(labelbottom=True)
    shown = dataset.lyapunov_running.transpose("block", "exponent", ...)
    for line in entries(shown.isel(exponent=slice(exponents)).values):
        sheet.axes[0].add_line(line)
    words = "bands: one standard error, dotted: weighted average over the window"
    return sheet.finish(notes.joined(words, notes.network(dataset)), 8, of=slice(1))


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
