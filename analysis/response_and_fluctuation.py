"""Susceptibility, spectrum of the noise and effective temperature of the network.

    python analysis/response_and_fluctuation.py --output docs/response.png

On the left at the fixed point below the Neimark-Sacker point 1.2434445, whose resonance
sharpens; on the right on a cycle.  All are of a value overlap in the field of its own
pattern, from the checkpoint.  `--smoke` draws few frequencies.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

from statmech_attn import dmft
from statmech_attn.plotting.frame import sheets, style


ORBITS = (1.24, 1.2), (1.27,)  # beta, by column
PATTERN = 0
TEMPERATURES = 1e-1, 1e4


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("response.png"))
    parser.add_argument("--points", type=int, default=6001)
    parser.add_argument("--smoke", action="store_true", help="few points, for tests")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    n_points = 40 if options.smoke else options.points
    frequencies = np.pi * (np.arange(n_points) + 0.5) / n_points
    figure = panels([[respond(b, frequencies) for b in betas] for betas in ORBITS])
    figure.savefig(options.output, dpi=style.PNG_DPI)
    print(f"wrote {options.output}")


def respond(beta: float, frequencies: np.ndarray) -> dmft.Response:
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(beta, file.gamma, file.epsilon)
    start = dmft.from_checkpoint(net, params, file)
    return dmft.response(
        net,
        params,
        start,
        frequencies=frequencies,
        field="v",
        pattern=PATTERN,
        observables=("m_v",),
    )


@style.styled
def panels(columns: list[list[dmft.Response]]):
    """Rows of |chi|, N S and T_eff over the frequency."""
    sheet = sheets.sheet(
        None, 6, lambda: sheets.grid(style.DOUBLE, 5.4, 3, 2, sharex=True, sharey="row")
    )
    axes = np.reshape(sheet.axes, (3, 2))
    colours = iter(style.SERIES)
    for above, results, betas in zip(axes.T, columns, ORBITS, strict=True):
        for result, beta in zip(results, betas, strict=True):
            colour = next(colours)
            label = rf"$\beta = {beta:g}$, $p = {int(result.period)}$"
            rows = result.susceptibility, result.spectrum, result.temperature
            chi, power, temperature = (np.asarray(x[:, 0, PATTERN]) for x in rows)
            above[0].semilogy(result.frequencies, abs(chi), color=colour, label=label)
            above[1].semilogy(result.frequencies, power, color=colour, label=label)
            for sign, line in ((1, "-"), (-1, ":")):
                shown = np.where(sign * temperature > 0, abs(temperature), np.nan)
                above[2].semilogy(result.frequencies, shown, line, color=colour)
        above[2].axhline(1, color=style.GREY, lw=0.6)
        above[2].set_xlabel(r"frequency $\omega$ (rad/token)")
    axes[0, 0].set_ylabel(r"$|\chi|$")
    axes[1, 0].set_ylabel(r"$N S$")
    axes[2, 0].set_ylabel(r"$|T_\mathrm{eff}|$")
    axes[2, 0].set_ylim(TEMPERATURES)
    sheet.legend()
    sheet.letters()
    sheet.note("dotted: negative; grey: equilibrium")
    return sheet.figure


if __name__ == "__main__":
    main()
