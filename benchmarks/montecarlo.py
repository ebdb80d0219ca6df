"""Speed and memory of the simulations of the 1-bit network, printed as a table.

    python benchmarks/montecarlo.py

Every row runs in its own process, so that the peak memory is its own; the import of
JAX and compilation are part of the memory and not of the time.
"""

import os
import platform
import resource
import subprocess
import sys
import time

import jax


SPINS = ((10**4, 2000, 20), (10**5, 200, 20), (10**6, 40, 10), (10**7, 4, 10))
COLLAPSED = ((10**4, 20_000, 50), (10**12, 20_000, 50))


def main() -> None:
    print(f"# {_processor()}, {os.cpu_count()} cores, jax {jax.__version__}, ", end="")
    print(f"{jax.default_backend()}")
    print(f"{'method':<10} {'N':>14} {'runs':>6} {'steps/s':>10} {'spins/s':>10} MiB")
    for method, table in (("spins", SPINS), ("collapsed", COLLAPSED)):
        for row in table:
            arguments = [sys.executable, __file__, method, *map(str, row)]
            subprocess.run(arguments, check=True)


def measure(method: str, n_spins: int, runs: int, steps: int) -> None:
    """One row: N is rounded down to a multiple of three, the number of classes."""
    jax.config.update("jax_enable_x64", True)
    from statmech_attn import dmft
    from statmech_attn.montecarlo import simulate

    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(1.27, file.gamma, file.epsilon)
    state = dmft.from_row(net, params, 0)
    n_spins -= n_spins % 3
    # At least one batch for each core.
    given = dict(runs=runs, steps=steps, batch_runs=max(1, min(256, runs // 2)))

    def once() -> float:
        start = time.perf_counter()
        simulate(
            net,
            file.patterns,
            params,
            state,
            n_spins=n_spins,
            method=method,
            key=jax.random.key(0),
            **given,
        )
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
    else:
        main()
