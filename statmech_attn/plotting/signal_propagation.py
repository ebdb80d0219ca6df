"""Norms, overlaps and differences of tokens against depth (`dynamics.sampled_signal`).

Takes results as data sets; colours are widths.
"""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from statmech_attn.plotting import notes, sheets, style
from statmech_attn.plotting.sheets import PanelAxes


WORDS = {
    "norm": "norm of a token $q$",
    "overlap": "overlap of two tokens $c$",
    "growth": "growth of angles\n$g$ (nat/layer)",
}


@style.styled
def signal_propagation(
    theory: xr.Dataset, sampled: Sequence[xr.Dataset] = (), *, axes: PanelAxes = None
) -> Figure:
    """What random blocks make of norms, overlaps and angles, layer by layer.

    Lines are equations of infinite width, marks are sampled weights with their errors.

    Args:
        theory: of `dynamics.mean_field_signal`.
        sampled: of `dynamics.sampled_signal`, one for each width.
        axes: three to draw on.
    """
    sheet = sheets.sheet(axes, 3, lambda: sheets.grid(style.DOUBLE, 2.3, 1, 3))
    for axis, (name, words) in zip(sheet.axes, WORDS.items(), strict=True):
        first = int(name == "growth")  # a layer stands at the state after it
        layers = lambda values: range(first, len(values) + first)
        values = theory[name].values
        axis.plot(layers(values), values, color=style.BLACK, label="infinite width")
        for i, dataset in enumerate(sampled):
            values = dataset[name].values
            axis.errorbar(
                layers(values),
                values,
                dataset[f"{name}_stderr"].values,
                color=style.SERIES[i % len(style.SERIES)],
                label=f"$N = {float(dataset.width):g}$",
                ls="none",
                marker="o",
                **style.OPEN,
            )
        axis.set(xlabel="layer", ylabel=words)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.margins(x=0.05)
    sheet.legend(of=slice(1))
    sheet.letters()
    sheet.note(notes.BARS if sampled else "")
    return sheet.figure
