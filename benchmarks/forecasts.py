"""Forecasts of runs against the time that they take.

    python benchmarks/forecasts.py            programs from the user's cache, if there
    python benchmarks/forecasts.py --cold     every program is compiled anew

Each study runs in a process of its own.  Both times begin when the forecast is made.
The processors do not count what other programs take: where the machine is shared, their
seconds over the workers are the time that an idle one would need.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from statmech_attn.reporting import Silent


ROOT = Path(__file__).resolve().parents[1]
STUDIES = {
    "demo": ("analysis/demo_scan.toml",),
    "zoom": ("analysis/bifurcation_zoom.toml",),
    "plane": ("analysis/phase_diagram.toml",),
    "Monte Carlo": ("simulations/demo_simulation.toml",),
}


class Clock(Silent):
    """A reporter that remembers when the forecast was made."""

    def __init__(self) -> None:
        self.begun: tuple[float, float] | None = None

    def note(self, text: str) -> None:
        if "worker(s)" in text:
            self.begun = time.perf_counter(), time.process_time()


def measure(study: str, *settings: str) -> dict[str, float]:
    """Forecast, wall time and processor time of one study, in this process."""
    from statmech_attn import batches, scan, studies
    from statmech_attn.scan import forecast

    batches.runtime.prepare()
    checked, text = studies.load(ROOT / study, settings)
    forecasts, clock = [], Clock()
    whole = forecast.forecast

    def remembered(*arguments):
        forecasts.append(whole(*arguments))
        return forecasts[-1]

    forecast.forecast = remembered
    engine = scan.engines.local.engine()
    with tempfile.TemporaryDirectory() as folder:
        studies.compute(checked, text, Path(folder) / "run.h5", clock, engine=engine)
    assert clock.begun is not None
    wall, processors = clock.begun
    return {
        "forecast": forecasts[0].seconds,
        "wall": time.perf_counter() - wall,
        "processors": (time.process_time() - processors) / forecasts[0].workers,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cold", action="store_true", help="compile every program")
    parser.add_argument("--only", action="append", choices=[*STUDIES])
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    print("study        forecast     wall  ratio  processors/worker  ratio")
    for name in options.only or STUDIES:
        with tempfile.TemporaryDirectory() as cache:
            cold = {"JAX_COMPILATION_CACHE_DIR": cache} if options.cold else {}
            command = [sys.executable, __file__, "--measure", *STUDIES[name]]
            done = subprocess.run(
                command, env=os.environ | cold, capture_output=True, text=True
            )
        if done.returncode:
            sys.exit(done.stderr)
        times = json.loads(done.stdout.splitlines()[-1])
        said = times["forecast"]
        print(
            f"{name:12}{said:7.1f} s{times['wall']:7.1f} s{said / times['wall']:7.2f}"
            f"{times['processors']:17.1f} s{said / times['processors']:7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
