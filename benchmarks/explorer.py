"""How long the explorer takes to open a scan, and to show a part of it.

    python benchmarks/explorer.py                10^4, 10^6 and 10^7 samples
    python benchmarks/explorer.py --largest 6    up to 10^6

Scans are synthetic, with 128 samples at each value of the parameter: a band of noise
and a cycle. Printed are the time to make the pyramid, that to open the scan once more
and make its first picture, the median and the longest of 40 zooms (1200 by 600 pixels,
also the full range of the parameter with a narrow range of samples), the size of the
exported page, and the largest memory of the process, all as the server has them: the
browser draws what it is sent.  Then the time from a click to the verdict, of points of
the published network, programs warm, with the share of it that is computation.
"""

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import statmech_attn
from statmech_attn import storage, studies
from statmech_attn.dynamics import diagrams
from statmech_attn.explore import export
from statmech_attn.explore.result_files.files import File
from statmech_attn.explore.views.line import Scan1D
from statmech_attn.explore.views.live import Live
from statmech_attn.labels import Variable


SAMPLES, PIXELS, ZOOMS = 128, (1200, 600), 40
STUDY = 'kind = "bifurcation"\n'
PUBLISHED = """
kind = "bifurcation"
[network]
patterns = "poclopez-pe2"
[parameters]
beta = [1.26, 1.4]
[run]
start = "checkpoint"
"""
CLICKS = 0.8, 1.2645, 1.27, 1.4, 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=7, help="power of ten")
    parser.add_argument("--clicks", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    print("samples   pyramid  picture  zoom, median  longest  export   memory")
    print("  limit      20 s     1 s                150 ms    20 MB   1.5 GiB")
    for power in (4, 6, 7):
        if power <= options.largest:
            measure(10**power)
    if options.clicks:
        measure_clicks()


def measure(count: int) -> None:
    """A line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scan.h5")
        storage.write(path, scan(count // SAMPLES), study=STUDY, kind="bifurcation")
        file = File(path)
        pyramid, _ = timed(lambda: Scan1D(file, lambda share: None))
        file.close()
        first, (file, line) = timed(lambda: opened(path))
        zooms = [timed(lambda: picture(line, *window))[0] for window in windows()]
        file.close()
        target = Path(folder, "page.html")
        size = export(path, target)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{count:8} {pyramid:7.2f} s {1e3 * first:5.0f} ms "
        f"{1e3 * statistics.median(zooms):9.0f} ms {1e3 * max(zooms):5.0f} ms "
        f"{size:>9} {memory:5.2f} GiB",
        flush=True,
    )


def opened(path: Path) -> tuple[File, Scan1D]:
    """A scan whose pyramid exists, opened, and its first picture made."""
    file = File(path)
    line = Scan1D(file, lambda share: None)
    low, high = line.edges[[0, -1]]
    picture(line, low, high, -1.1, 1.1)
    return file, line


def measure_clicks() -> None:
    """From a click to the verdict."""
    statmech_attn.setup()
    with tempfile.TemporaryDirectory() as folder:
        study, path = Path(folder, "scan.toml"), Path(folder, "scan.h5")
        study.write_text(PUBLISHED)
        studies.produce(study, path)
        file = File(path)
        live = Live(file)
        live.warm()
        live.verdict({"beta": CLICKS[0]})
        print("click to verdict, limit 1 s")
        for beta in CLICKS:
            used = time.process_time()
            seconds, told = timed(lambda: live.verdict({"beta": beta}))
            used = time.process_time() - used
            print(
                f"  β = {beta}: {seconds:.2f} s, {used:.2f} s of processors,", end=" "
            )
            print(told["words"], told["period"] or "")
        file.close()


def scan(points: int):
    """A scan of so many points: noise, and a cycle in its middle fifth."""
    rng = np.random.default_rng(0)
    values = np.linspace(0, 1, points)
    samples = rng.uniform(-1, 1, (points, SAMPLES)) * np.sqrt(values)[:, None]
    cycle = (values > 0.4) & (values < 0.6)
    samples[cycle] = rng.choice([-0.5, 0.1, 0.25, 0.7], (cycle.sum(), SAMPLES))
    table = diagrams.variables(
        [Variable("beta", "", "parameter", "1", "b")], unit="step"
    )
    zeros, phase = np.zeros(points, int), np.where(cycle, 1, 3).astype(np.int8)
    exponents = np.stack([np.where(cycle, -0.1, 0.3), np.full(points, -1.0)], axis=1)
    variables = {
        "section": (("beta", "sample"), samples),
        "section_count": (("beta",), zeros + SAMPLES),
        "strobe": (("beta", "strobe_sample"), np.full((points, 1), np.nan)),
        "phase": (("beta",), phase),
        "phase_paper": (("beta",), phase),
        "lyapunov": (("beta", "exponent"), exponents),
        "lyapunov_stderr": (("beta", "exponent"), 0 * exponents + 1e-3),
        "lyapunov_source": (("beta", "exponent"), (0 * exponents).astype(np.int8)),
    }
    whole = ("period", "reasons", "n_positive", "window", "horizon", "doubtful")
    real = ("rotation_number", "recurrence_error", "zero_one", "broadband")
    real += ("convergence_digits", "quarter_disagreement", "drift")
    variables |= {name: (("beta",), zeros) for name in whole}
    variables |= {name: (("beta",), zeros.astype(float)) for name in real}
    coordinates = {
        "beta": values,
        "exponent": np.arange(1, 3),
        "sample": np.arange(SAMPLES),
        "strobe_sample": np.arange(1),
    }
    attributes = {"section_tolerance": 1e-3, "clock_period": 1}
    return table.labelled(variables, coordinates).assign_attrs(attributes)


def windows():
    """Windows of all sizes, and narrow ones over the full range."""
    rng = np.random.default_rng(1)
    for number in range(ZOOMS):
        width, height = 10 ** rng.uniform(-4, 0, 2)
        if number % 4 == 0:
            width = 1.0
        low, bottom = rng.uniform(0, 1 - width), rng.uniform(-1, 1 - height)
        yield low, low + width, bottom, bottom + height


def picture(line: Scan1D, low: float, high: float, bottom: float, top: float) -> None:
    """What a view of this window asks for."""
    line.density(low, high, bottom, top, *PIXELS)
    line.strips(low, high, PIXELS[0])


def timed(act) -> tuple[float, Any]:
    clock = time.perf_counter()
    result = act()
    return time.perf_counter() - clock, result


if __name__ == "__main__":
    main()
