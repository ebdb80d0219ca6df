"""Susceptibility, spectrum and effective temperature against frequency.

Takes files of kind `response` (docs/hdf5.md); lines are values of beta.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from statmech_attn.dmft import OBSERVABLES
from statmech_attn.options import Count
from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import pages_of_beta, picture, values_of
from statmech_attn.plotting.frame.sheets import PanelAxes


CHOICES = {
    "observable": lambda dataset: list(OBSERVABLES),
    "pattern": values_of("pattern"),
}


@picture("response", "response", pages=pages_of_beta, choices=CHOICES)
@style.styled
def response_curves(
    dataset: xr.Dataset,
    *,
    observable: str = "m_v",
    pattern: Count = 1,
    axes: PanelAxes = None,
) -> Figure:
    """Susceptibility, spectrum of the noise and temperature of one observable.

    Negative temperatures are dotted; the grey line is equilibrium.
    """
    sheet = sheets.panels(axes, style.DOUBLE, 5.0, 3, 1, sharex=True)
    part = dataset.sel(pattern=pattern).isel(observable=OBSERVABLES.index(observable))
    size = np.hypot(part.susceptibility_real, part.susceptibility_imag)
    shown = {
        r"$|\chi|$": size,
        "$N S$": part.spectrum,
        r"$|T_\mathrm{eff}|$": part.temperature,
    }
    for axis, (words, curves) in zip(sheet.axes, shown.items(), strict=True):
        for i, beta in enumerate(dataset.beta.values):
            y = curves.isel(beta=i).values
            if "failure" in dataset and dataset.failure.values[i]:
                continue
            look = {"color": style.SERIES[i % len(style.SERIES)], "lw": 0.9}
            label = rf"$\beta = {beta:g}$"
            axis.plot(
                dataset.frequency, np.where(y > 0, y, np.nan), **look, label=label
            )
            axis.plot(dataset.frequency, np.where(y < 0, -y, np.nan), **look, ls=":")
        if any(np.nanmax(line.get_ydata(), initial=0) > 0 for line in axis.lines):
            axis.set_yscale("log")
        axis.set_ylabel(words)
    sheet.axes[2].axhline(1, color=style.GREY, lw=0.6, zorder=1)
    sheet.axes[2].set_xlabel(r"frequency $\omega$ (rad/token)")
    family, number = dataset.attrs["field"], dataset.attrs["field_pattern"]
    overlap = style.overlap(observable, pattern)
    field = rf"{overlap} in a field along $W^{family}_{number}$"
    dotted = "dotted: negative; grey: equilibrium"
    return sheet.finish(
        notes.joined(field, dotted, notes.network(dataset)), 8, of=slice(1)
    )
