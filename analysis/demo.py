"""The demonstration: scan beta over [0, 3], check it against Monte Carlo, draw it.

    python analysis/demo.py --out results/demo

writes scan.h5, theory.h5, simulation.h5, agreement.h5 and the figure demo.png, and
prints the phases found and the agreement of theory and simulation.
"""

import argparse
import subprocess
import sys
from pathlib import Path


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


if __name__ == "__main__":
    main()
