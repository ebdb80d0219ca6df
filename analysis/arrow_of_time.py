"""Entropy production of the published network beside its largest Lyapunov exponent.

    python analysis/arrow_of_time.py --output docs/arrow_of_time.png

Orbits start from the checkpoint.  The lower panel is coloured by phase; errors are
below the size of a point.  `--smoke` draws few points.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

from statmech_attn import dmft
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams import Plan, Points, run, Scan
from statmech_attn.plotting import sheets, style


BETA = 1.2, 1.5
TRANSIENT, STEPS = 20_000, 40_000


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("arrow_of_time.png"))
    parser.add_argument("--points", type=int, default=601)
    parser.add_argument("--smoke", action="store_true", help="few points, for tests")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    if options.smoke:
        draw(options.output, 5, transient=400, steps=800)
    else:
        draw(options.output, options.points, transient=TRANSIENT, steps=STEPS)
    print(f"wrote {options.output}")


def draw(path: Path, n_points: int, *, transient: int, steps: int) -> None:
    """Compute both rates at so many beta, and draw them one above the other."""
    betas = np.linspace(*BETA, n_points)
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(betas, file.gamma, file.epsilon)
    start = dmft.from_checkpoint(net, params, file)
    rate = dmft.entropy_production(net, params, start, steps=steps, transient=transient)
    points = Points(params, start)
    plan = Plan(transient=transient, steps=steps, exponents=1)
    verdicts = run(Scan(dmft.system(net), plan, points), points).verdicts
    assert verdicts is not None
    figure = panels(betas, rate, verdicts)
    figure.savefig(path, dpi=style.PNG_DPI)


@style.styled
def panels(betas, rate: dmft.EntropyProduction, verdicts):
    """Entropy production above, the largest exponent below, coloured by phase."""
    sheet = sheets.sheet(
        None, 2, lambda: sheets.grid(style.DOUBLE, 3.6, 2, 1, sharex=True)
    )
    above, below = sheet.axes
    shown = np.asarray(rate.mean), np.asarray(verdicts.exponents[0])
    for axis, values in zip((above, below), shown, strict=True):
        for code in np.unique(verdicts.phase):
            name = PHASES[code]
            chosen = verdicts.phase == code
            colour = style.PHASE_COLOURS[name]
            axis.plot(
                betas[chosen], values[chosen], ".", ms=3, color=colour, label=name
            )
    above.set_yscale("log")
    above.set_ylabel(r"$\sigma$ (nat / (token spin))")
    below.set_ylabel(r"$\lambda_1$ (nat / token)")
    below.set_xlabel(r"$\beta$")
    sheet.legend()
    sheet.letters()
    return sheet.figure


if __name__ == "__main__":
    main()
