"""Two sweeps of one attractor: phases, samples over branches of cycles, exponents.

Takes a file of kind `bifurcation` with two starts, the first of which was followed
upward and the second downward (analysis/pe5_sweeps.py), and files of kind
`continuation`.
"""

import xarray as xr
from matplotlib.figure import Figure

from statmech_attn.plotting import notes, sheets, style
from statmech_attn.plotting.basins import sweep_samples
from statmech_attn.plotting.bifurcation import (
    BANDS,
    lyapunov_spectrum,
    phase_ribbon,
    span,
)
from statmech_attn.plotting.continuation import bifurcation_points, branches
from statmech_attn.plotting.sheets import Given
from statmech_attn.studies import compare_sweeps


HEIGHTS = (0.11, 1.0, 0.75)


@style.styled
def sweep_diagram(
    scan: xr.Dataset, *continuations: xr.Dataset, axes: Given = None
) -> Figure:
    """Phases of both sweeps, their samples over branches of cycles, their exponents.

    Args:
        scan: one parameter, two starts: followed upward and followed downward.
        continuations: in that parameter, whose branches are drawn over the samples.
        axes: three to draw on.
    """
    make = lambda: sheets.grid(style.DOUBLE, 5.0, 3, sharex=True, height_ratios=HEIGHTS)
    sheet = sheets.sheet(axes, 3, make)
    ribbon, samples, spectrum = sheet.axes
    phase_ribbon(scan, ax=ribbon)
    ribbon.set_yticks([0.5, 1.5], ["up", "down"])
    ribbon.tick_params(axis="y", length=0)
    compared = compare_sweeps(*ways(scan))
    sweep_samples(compared, ax=samples)
    for continuation in continuations:
        branches(continuation, ax=samples)
        bifurcation_points(continuation, ax=samples)
    span(samples, compared, str(compared.differ.dims[0]))
    lyapunov_spectrum(scan, ax=spectrum)
    if sheet.whole:
        samples.set_xlabel("")
    sheet.legend(of=slice(2))
    sheet.letters()
    sheet.note(notes.joined(BANDS, notes.network(scan)))
    return sheet.figure


def ways(scan: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """The sweeps up and down of a file with two starts.

    Raises:
        ValueError: another number of starts.
    """
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
