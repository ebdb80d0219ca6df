"""The demonstration: scan beta over [0, 3], check it against Monte Carlo, draw it.

    python analysis/demo.py --out results/demo

writes scan.h5, theory.h5, simulation.h5, agreement.h5 and their figures, and ends in
five lines: what was computed, what agrees, what to look at and what to type next.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import xarray as xr

from statmech_attn import storage


HERE = Path(__file__).resolve().parent
STUDIES = {
    "scan.h5": HERE / "demo_scan.toml",
    "theory.h5": HERE / "demo_theory.toml",
    "simulation.h5": HERE.parent / "simulations" / "demo_simulation.toml",
}
SMOKE = {
    "scan.h5": ("parameters.beta.num=16", "run.transient=500", "run.steps=1000"),
    "theory.h5": ("parameters.beta=[0.5]",),
    "simulation.h5": (
        "parameters.beta=[0.5]",
        "run.runs=50",
        "run.n_spins=[3000, 9000]",
    ),
}


def command(*words: str) -> None:
    """Run one `statmech-attn` command, as a user would in a shell."""
    shown = " ".join(words)
    print(f"$ statmech-attn {shown}", flush=True)
    call = [sys.executable, "-m", "statmech_attn.cli", *words]
    done = subprocess.run(call, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def counted(codes: xr.DataArray) -> str:
    """How often each word of a flag variable occurs, the most frequent first."""
    words = str(codes.attrs["flag_meanings"]).split()
    count = dict(enumerate(np.bincount(codes.values.ravel(), minlength=len(words))))
    order = sorted(count, key=lambda code: -count[code])
    return ", ".join(f"{words[code]} {count[code]}" for code in order if count[code])


def last_lines(out: Path) -> list[str]:
    """What the demonstration has found, and how to go on."""
    scan = storage.read(out / "scan.h5")
    agreement = storage.read(out / "agreement.h5")
    spins = (
        f"N = {agreement.n_spins.values.min():g} to {agreement.n_spins.values.max():g}"
    )
    shell = os.path.relpath(Path(sys.prefix) / "bin" / "activate")
    activate = f". {shell} && " if sys.prefix != sys.base_prefix else ""
    return [
        "",
        f"phases at {scan.phase.size} values of beta: {counted(scan.phase)}",
        f"theory beside {agreement.runs} networks of {spins} spins at "
        f"{agreement.verdict.size} values of beta: {counted(agreement.verdict)}",
        "(bias_only: they agree in the limit of many spins; docs/theory/dmft.md, 5)",
        f"look at {out / 'bifurcation.png'} and {out / 'agreement.png'}",
        f"next: {activate}statmech-attn explore {out / 'scan.h5'}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/demo"))
    parser.add_argument("--smoke", action="store_true", help="a few points, for tests")
    options = parser.parse_args()
    path = lambda name: str(options.out / name)
    for name, study in STUDIES.items():
        changes = SMOKE[name] if options.smoke else ()
        settings = [word for change in changes for word in ("--set", change)]
        command("run", str(study), "--output", path(name), "--overwrite", *settings)
    command(
        "compare",
        path("theory.h5"),
        path("simulation.h5"),
        "--output",
        path("agreement.h5"),
        "--overwrite",
    )
    for name in ("scan.h5", "agreement.h5"):
        command("figure", path(name), "--output", str(options.out))
    print("\n".join(last_lines(options.out)))


if __name__ == "__main__":
    main()
