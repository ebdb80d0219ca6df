"""At which load does crosstalk end the torus and the chaos of the published network?

The published network carries alpha N further patterns, whose kinds are independent as
its own are.  The script classifies the attractors of the theory with a finite memory at
the six published values of beta as alpha grows, prints a table with the largest
exponents, the standard errors of which come from independent blocks of steps, and the
ends of chaos and torus.

    python analysis/crosstalk.py --out results [--steps 4000]

writes crosstalk.h5 and crosstalk.png.
"""

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

import statmech_attn
from statmech_attn import dmft, dynamics, plotting
from statmech_attn.dmft import extensive
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams import Plan


PRESET = "poclopez-pe2"
BETAS = (1.255, 1.26451, 1.266, 1.27, 1.28, 1.4)
LOADS = (0, 3e-4, 1e-3, 3e-3, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
LOADS = (*LOADS, 0.25, 0.3, 0.35, 0.4)
MEMORY = 8  # tokens; A at alpha = 0.05 is off by 5e-5 after 60 tokens
TAIL = 1024  # tokens, for the spectrum and the 0-1 test
SMALLEST = 1e-3  # exponent that is chaos


def phases(plan: Plan, file: Path) -> xr.Dataset:
    """Attractors over beta and alpha, from the first pattern."""
    patterns = dmft.load(PRESET)
    net = dmft.network(patterns.patterns, context=patterns.context)
    fixed = {"gamma": patterns.gamma, "epsilon": patterns.epsilon}
    kinds = extensive.independent()
    first = {"alpha": LOADS[-1], "beta": BETAS[0]} | fixed
    start = extensive.system_start(net, kinds, first, memory=MEMORY)
    grid = {"beta": np.array(BETAS), "alpha": np.array(LOADS)} | fixed
    return dynamics.diagram(extensive.system(net, kinds), grid, start, plan, file=file)


def described(point: xr.Dataset) -> str:
    """Phase, with the period of a cycle, and the largest exponent."""
    word, period = PHASES[int(point.phase)], int(point.period)
    exponent = 1e4 * point.lyapunov.values[0], 1e4 * point.lyapunov_stderr.values[0]
    words = f"{word} {period}" if period else word
    return f"{words} ({exponent[0]:.1f} ± {exponent[1]:.1f})"


def end_of_chaos(line: xr.Dataset) -> str:
    """Between the last load with chaos and the next."""
    largest = line.lyapunov.isel(exponent=0)
    error = line.lyapunov_stderr.isel(exponent=0)
    holds = np.flatnonzero((largest > 3 * error) & (largest > SMALLEST))
    if not holds.size:
        return "-"
    low, high = line.alpha.values[holds.max() : holds.max() + 2]
    return f"{(low + high) / 2:.3g} ± {(high - low) / 2:.2g}"


def end_of_torus(line: xr.Dataset) -> str:
    """Where the exponent of the state at rest is zero, followed down in alpha.

    The exponent is extrapolated from the three smallest loads at rest, by a parabola;
    the error is the difference from the line through the first two.
    """
    at_rest = np.flatnonzero(line.phase == PHASES.index("fixed"))[:3]
    loads = line.alpha.values[at_rest]
    exponents = line.lyapunov.isel(exponent=0).values[at_rest]
    of_line = np.roots(np.polyfit(loads[:2], exponents[:2], 1))
    of_parabola = np.roots(np.polyfit(loads, exponents, 2)).real
    end = of_parabola[np.argmin(abs(of_parabola - of_line))]
    return f"{end:.4f} ± {abs(end - of_line[0]):.1g}"


def ends(table: xr.Dataset) -> None:
    """Print where chaos is found for the last time, and where rest begins."""
    print("| beta | chaos ends at alpha | the torus ends at alpha |")
    for beta in table.beta.values:
        line = table.sel(beta=beta)
        print(f"| {beta:g} | {end_of_chaos(line)} | {end_of_torus(line)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--steps", type=int, default=4000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    statmech_attn.setup()
    plan = Plan(
        transient=options.steps,
        steps=options.steps,
        exponents=1,
        max_doublings=1,
        tail=TAIL,
    )
    table = phases(plan, options.out / "crosstalk.h5")
    print("| alpha |", " | ".join(f"beta = {beta:g}" for beta in BETAS), "|")
    for alpha in LOADS:
        row = [described(table.sel(alpha=alpha, beta=beta)) for beta in BETAS]
        print(f"| {alpha:g} |", " | ".join(row), "|")
    ends(table)
    figure = plotting.phases_against_load(table)
    plotting.save(figure, options.out, "crosstalk", ("png",))


if __name__ == "__main__":
    main()
