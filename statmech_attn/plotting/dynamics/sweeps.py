"""Two sweeps of one attractor: phases, samples over branches of cycles, exponents.

Takes a file of kind `bifurcation` with two starts, the first of which was followed
upward and the second downward (analysis/pe5_sweeps.py), and files of kind
`continuation`.
"""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from statmech_attn.dynamics.diagrams import compare_sweeps
from statmech_attn.plotting.dynamics.basins import draw_sweeps
from statmech_attn.plotting.dynamics.bifurcation import (
    BANDS,
    is_swept,
    lyapunov_spectrum,
    phase_ribbon,
)
from statmech_attn.plotting.dynamics.continuation import draw_cycles
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import Beside, picture
from statmech_attn.plotting.frame.sheets import PanelAxes


HEIGHTS = (0.13, 0.9, 0.9, 0.6, 0.6)


@picture(
    "sweeps",
    "bifurcation",
    when=lambda dataset: "phase" in dataset and is_swept(dataset),
    beside={"continuations": Beside("continuation", ("network",), several=True)},
)
@style.styled
def sweep_diagram(
    scan: xr.Dataset,
    continuations: Sequence[xr.Dataset] = (),
    *,
    axes: PanelAxes = None,
) -> Figure:
    """Phases of both sweeps, their samples over branches of cycles, their exponents.

    Args:
        scan: one parameter, two starts: followed upward and followed downward.
        continuations: in that parameter, whose branches are drawn over the samples.
        axes: five to draw on, for phases, samples upward and downward, and exponents
            upward and downward.
    """
    sheet = sheets.panels(
        axes, style.DOUBLE, 7.6, 5, sharex=True, height_ratios=HEIGHTS
    )
    ribbon, *samples = sheet.axes[:3]
    phase_ribbon(scan, ax=ribbon)
    ribbon.set_yticks([0.5, 1.5], ["up", "down"])
    ribbon.tick_params(axis="y", length=0)
    swept = ways(scan)
    compared = compare_sweeps(*swept)
    draw_sweeps(samples, compared, style.DOTS if continuations else style.BLACK)
    for axis in samples:
        limits = axis.axis()
        for continuation in continuations:
            draw_cycles(axis, continuation, _within(continuation, scan))
        axis.axis(limits)
    for axis, sweep in zip(sheet.axes[3:], swept, strict=True):
        lyapunov_spectrum(sweep, ax=axis)
        axis.set_title(f"followed {sweep.attrs['direction']}ward", loc="left", pad=2.5)
    for axis in sheet.axes[:-1] if sheet.whole else ():
        axis.set_xlabel("")
    return sheet.finish(notes.joined(BANDS, notes.network(scan)), 8, of=slice(2))


def _within(continuation: xr.Dataset, scan: xr.Dataset) -> xr.Dataset:
    """A continuation with the bifurcations in the range of a scan alone."""
    if "special_kind" not in continuation:
        return continuation
    name = continuation.attrs["free"]
    low, high = float(scan[name].min()), float(scan[name].max())
    places = continuation[f"special_{name}"].values
    return continuation.isel(special=(low <= places) & (places <= high))


def ways(scan: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """The sweeps up and down of a file with two starts."""
    if scan.sizes.get("start", 1) != 2:
        raise ValueError(
            "this picture needs two starts, followed upward and downward; "
            f"got {scan.sizes.get('start', 1)}."
        )
    up, down = (
        scan.isel(start=i, drop=True).assign_attrs(direction=way)
        for i, way in enumerate(("up", "down"))
    )
    return up, down
