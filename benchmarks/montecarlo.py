"""Speed and memory of the simulations of the 1-bit network, printed as a table.

    python benchmarks/montecarlo.py [few]

Every row runs in its own process, so that the peak memory is its own; the import of
JAX and compilation are part of the memory and not of the time.  With `few`: processor
time of a few runs of one point, in turns, over that of eight.
"""

import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import jax


SPINS = ((10**4, 2000, 20), (10**5, 200, 20), (10**6, 40, 10), (10**7, 4, 10))
COLLAPSED = ((10**4, 20_000, 50), (10**12, 20_000, 50))
FEW = (("spins", 9999, 200), ("spins", 999_999, 10), ("collapsed", 9999, 2000))
RUNS = (1, 2, 4, 7, 8, 64, 256)
REPEATS = 5  # after one that compiles


def main() -> None:
    print(f"# {_processor()}, {os.cpu_count()} cores, jax {jax.__version__}, ", end="")
    print(f"{jax.default_backend()}")
    print(f"{'method':<10} {'N':>14} {'runs':>6} {'steps/s':>10} {'spins/s':>10} MiB")
    for method, table in (("spins", SPINS), ("collapsed", COLLAPSED)):
        for row in table:
            arguments = [sys.executable, __file__, method, *map(str, row)]
            subprocess.run(arguments, check=True)


def simulation(method: str, n_spins: int, steps: int) -> Callable:
    """Simulates so many runs; N is a multiple of three, the number of classes."""
    jax.config.update("jax_enable_x64", True)
    from statmech_attn import dmft
    from statmech_attn.montecarlo import simulate

    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(1.27, file.gamma, file.epsilon)
    state = dmft.from_row(net, params, 0)
    return lambda runs, **given: simulate(
        net,
        file.patterns,
        params,
        state,
        n_spins=n_spins,
        steps=steps,
        method=method,
        key=jax.random.key(0),
        runs=runs,
        **given,
    )


def few() -> None:
    """Of one point, for several numbers of runs."""
    for method, n_spins, steps in FEW:
        run, spent = simulation(method, n_spins, steps), {}
        for repeat in range(REPEATS + 1):
            for runs in RUNS:
                start = time.process_time()
                run(runs)
                seconds = time.process_time() - start
                spent[runs] = min(seconds, spent[runs]) if repeat > 1 else seconds
        ratios = "  ".join(f"{n}: {spent[n] / spent[8]:.2f}" for n in RUNS)
        print(f"{method:<10} {n_spins:>9}  {ratios}  8: {spent[8] / steps:.2e} s/step")


def measure(method: str, n_spins: int, runs: int, steps: int) -> None:
    """One row."""
    n_spins -= n_spins % 3
    run = simulation(method, n_spins, steps)

    def once() -> float:
        start = time.perf_counter()
        # At least one batch for each core.
        run(runs, batch_runs=max(1, min(256, runs // 2)))
        return time.perf_counter() - start

    once()
    seconds = min(once() for _ in range(3))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rate = runs * steps / seconds
    print(
        f"{method:<10} {n_spins:>14} {runs:>6} {rate:>10.3g} {rate * n_spins:>10.3g} "
        f"{peak:.0f}",
        flush=True,
    )


def _processor() -> str:
    """The processor's name where the system tells it."""
    try:
        with open("/proc/cpuinfo") as lines:
            names = [
                line.split(":")[1].strip() for line in lines if "model name" in line
            ]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    if len(sys.argv) == 5:
        measure(sys.argv[1], *map(int, sys.argv[2:]))
    elif sys.argv[1:] == ["few"]:
        few()
    else:
        main()
