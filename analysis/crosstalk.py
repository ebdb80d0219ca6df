"""At which load does crosstalk end the torus and the chaos of the published network?

The published network carries alpha N further patterns, whose kinds are independent as
its own are.  The script classifies the attractors of the theory with a finite memory at
the six published values of beta as alpha grows, prints a table with the largest
exponents, the standard errors of which come from independent blocks of steps, and the
ends of chaos and torus, and maps the phases in the plane of beta and alpha.

    python analysis/crosstalk.py --out results [--points 16] [--steps 4000]

writes crosstalk_table.h5, crosstalk_plane.h5 and crosstalk.png.
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
MEMORY = 8  # tokens; for independent kinds twelve give the same to 5e-7
TAIL = 1024


def phases(betas, loads, plan: Plan, file: Path) -> xr.Dataset:
    """Attractors over beta and alpha, from the first pattern."""
    patterns = dmft.load(PRESET)
    net = dmft.network(patterns.patterns, context=patterns.context)
    fixed = {"gamma": patterns.gamma, "epsilon": patterns.epsilon}
    kinds = extensive.independent()
    first = {"alpha": loads[-1], "beta": betas[0]} | fixed
    start = extensive.system_start(net, kinds, first, memory=MEMORY)
    grid = {"beta": np.array(betas), "alpha": np.array(loads)} | fixed
    return dynamics.diagram(extensive.system(net, kinds), grid, start, plan, file=file)


def described(point: xr.Dataset) -> str:
    """Phase, with the period of a cycle, and the largest exponent."""
    word, period = PHASES[int(point.phase)], int(point.period)
    exponent = 1e4 * point.lyapunov.values[0], 1e4 * point.lyapunov_stderr.values[0]
    words = f"{word} {period}" if period else word
    return f"{words} ({exponent[0]:.1f} ± {exponent[1]:.1f})"


def last(line: xr.Dataset, holds: np.ndarray) -> str:
    """Where the last load at which something holds ends, with half the spacing."""
    if not holds.any():
        return "-"
    end = int(np.flatnonzero(holds).max())
    if end == len(holds) - 1:
        return f"> {float(line.alpha[-1]):g}"
    low, high = line.alpha.values[end : end + 2]
    return f"{(low + high) / 2:.3g} ± {(high - low) / 2:.2g}"


def ends(table: xr.Dataset) -> None:
    """Print where chaos, and all that is not at rest, is found for the last time."""
    print("| beta | chaos until alpha | not at rest until alpha |")
    for beta in table.beta.values:
        line = table.sel(beta=beta)
        largest = line.lyapunov.isel(exponent=0)
        error = line.lyapunov_stderr.isel(exponent=0)
        chaotic = (largest > 3 * error) & (largest > 1e-3)
        at_rest = line.phase == PHASES.index("fixed")
        cells = last(line, chaotic.values), last(line, ~at_rest.values)
        print(f"| {beta:g} | {cells[0]} | {cells[1]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--points", type=int, default=16)
    parser.add_argument("--steps", type=int, default=4000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    statmech_attn.setup()
    choices = {"exponents": 1, "tail": TAIL}
    plan = Plan(transient=options.steps, steps=options.steps, max_doublings=1, **choices)
    table = phases(BETAS, LOADS, plan, options.out / "crosstalk_table.h5")
    print("| alpha |", " | ".join(f"beta = {beta:g}" for beta in BETAS), "|")
    for alpha in LOADS:
        row = [described(table.sel(alpha=alpha, beta=beta)) for beta in BETAS]
        print(f"| {alpha:g} |", " | ".join(row), "|")
    ends(table)
    short = options.steps // 2
    plan = Plan(transient=short, steps=short, max_doublings=0, **choices)
    betas = np.linspace(1.0, 1.6, options.points)
    file = options.out / "crosstalk_plane.h5"
    plane = phases(betas, np.linspace(0.0, 0.4, 11), plan, file)
    for name, symbol in (("beta", "β"), ("alpha", "α")):
        plane[name].attrs["symbol"] = symbol
    plotting.save(plotting.phase_map(plane), options.out, "crosstalk", ("png",))


if __name__ == "__main__":
    main()
