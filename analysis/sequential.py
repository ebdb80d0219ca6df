"""Which phases of the published network are there only because all spins move at once?

Every spin of the next token is redrawn with probability Delta, else copied.  The script
classifies the attractors at the six published values of beta for several Delta, prints
a table, and draws the phases in the plane of beta and Delta.

    python analysis/sequential.py --out results [--points 25] [--steps 6000]

writes sequential_table.h5, sequential_plane.h5 and sequential.png.
"""

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

import statmech_attn
from statmech_attn import dmft, dynamics, plotting
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams import Plan


PRESET = "poclopez-pe2"
BETAS = (1.255, 1.26451, 1.266, 1.27, 1.28, 1.4)
REDRAWN = (1.0, 0.99, 0.97, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.1)


def phases(betas, redrawn, steps: int, file: Path) -> xr.Dataset:
    """Attractors over beta and Delta, from the first pattern."""
    patterns = dmft.load(PRESET)
    net = dmft.network(patterns.patterns, context=patterns.context)
    fixed = {"gamma": patterns.gamma, "epsilon": patterns.epsilon}
    start = dmft.sequential_start(
        net, {"beta": 1.0, "redrawn": 1.0} | fixed, net.output[0]
    )
    grid = {"beta": np.array(betas), "redrawn": np.array(redrawn)} | fixed
    plan = Plan(transient=steps, steps=steps, exponents=2, max_doublings=2)
    return dynamics.diagram(dmft.sequential(net), grid, start, plan, file=file)


def described(point: xr.Dataset) -> str:
    """Phase, with the period of a cycle."""
    word, period = PHASES[int(point.phase)], int(point.period)
    return f"{word} {period}" if period else word


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--points", type=int, default=25)
    parser.add_argument("--steps", type=int, default=6000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    statmech_attn.setup()
    table = phases(BETAS, REDRAWN, options.steps, options.out / "sequential_table.h5")
    print("| Delta |", " | ".join(f"beta = {beta:g}" for beta in BETAS), "|")
    for redrawn in REDRAWN:
        row = table.sel(redrawn=redrawn)
        cells = [described(row.sel(beta=beta)) for beta in BETAS]
        print(f"| {redrawn:g} |", " | ".join(cells), "|")
    plane = phases(
        np.linspace(1.0, 1.6, options.points),
        np.linspace(0.1, 1.0, 19),
        options.steps,
        options.out / "sequential_plane.h5",
    )
    for name, symbol in (("beta", "β"), ("redrawn", "Δ")):
        plane[name].attrs["symbol"] = symbol
    plotting.save(plotting.phase_map(plane), options.out, "sequential", ("png",))


if __name__ == "__main__":
    main()
