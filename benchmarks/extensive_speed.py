"""Speed of the theory and the simulation of patterns growing with N.

python benchmarks/extensive_speed.py [memory] [closed] [sampled] [spins]

Processor seconds after compilation of the closed recursion (200 steps, C = 4), of
sampling (50 steps, 2^20 trajectories), and of a step of 10^4 spins with 2000 patterns,
the last beside the time of reading the bits of the patterns.  First the largest
memory of the process with 3 10^4 spins and 9000 patterns.
"""

import argparse
import resource
import time
from collections.abc import Callable

import jax
import numpy as np

import statmech_attn
from statmech_attn import dmft, montecarlo
from statmech_attn.dmft import extensive
from statmech_attn.dmft.extensive.effective_process import POPULATION


ONE = dmft.site_classes(np.ones((4, 1, 1)))
REPEATS = 3


def seconds(call: Callable, repeats: int = REPEATS) -> tuple[float, float]:
    """Least processor and wall seconds of a call, after one that compiles."""
    jax.block_until_ready(call())
    spent = []
    for _ in range(repeats):
        before = time.process_time(), time.perf_counter()
        jax.block_until_ready(call())
        after = time.process_time(), time.perf_counter()
        spent.append(np.subtract(after, before))
    cpu, wall = np.min(spent, axis=0)
    return cpu, wall


def posed(context: int, ensemble, alpha: float) -> extensive.LoadedNetwork:
    """One condensed pattern among others."""
    net = dmft.network(ONE, context=context)
    return extensive.loaded_network(net, ensemble, alpha=alpha, beta=2.0, gamma=5.0)


def closed() -> None:
    problem = posed(4, extensive.cycle(), 0.1)
    run = lambda: extensive.closed(problem, [1.0], steps=200).value.C
    cpu, wall = seconds(run)
    print(f"closed recursion, 200 steps, C = 4: {cpu:.2f} s, wall {wall:.2f} s")


def sampled() -> None:
    problem = posed(2, extensive.identical(), 0.1)
    given = {"steps": 50, "key": jax.random.key(0), "error": 1e-9}
    run = lambda: extensive.sampled(problem, [1.0], most=8, **given).value.C
    scale = 2**20 / (8 * POPULATION)
    cpu, wall = (scale * x for x in seconds(run, repeats=1))
    print(f"sampling, 50 steps, 2^20 trajectories: {cpu:.0f} s, wall {wall:.0f} s")


def spins() -> None:
    """A step reads the patterns twice, as bits of sites and as bits of patterns."""
    problem = posed(1, extensive.cycle(), 0.2)
    n_spins, key, more = 10_000, jax.random.key(0), 50
    bits = np.ones(n_spins * 2000 // 64)
    read = seconds(bits.max, 50)[0] + seconds(bits.max, 50)[0]
    for runs in (1, 8, 64):
        times = []
        for steps in (2, 2 + more):
            plan = montecarlo.extensive_plan(
                problem, ONE, [1.0], n_spins=n_spins, steps=steps, runs=runs
            )
            times.append(seconds(lambda: plan.sample(key).C))
        cpu, wall = np.subtract(*times[::-1]) / more
        print(
            f"spins, N = 10^4, 2000 patterns, {runs} runs: a step {1e3 * cpu:.2f} ms, "
            f"wall {1e3 * wall:.2f} ms; reading the bits twice {1e3 * read:.2f} ms, "
            f"ratio {cpu / read:.0f}",
            flush=True,
        )


def memory() -> None:
    problem, steps = posed(4, extensive.cycle(), 0.3), 3
    plan = montecarlo.extensive_plan(problem, ONE, [1.0], n_spins=30_000, steps=steps)
    jax.block_until_ready(plan.sample(jax.random.key(0)).C)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"spins, N = 3 10^4, 9000 patterns, {steps} steps: {peak:.2f} GiB of the "
        f"process, {plan.bytes / 2**30:.2f} GiB forecast for the sample"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    choices = {"memory": memory, "closed": closed, "sampled": sampled, "spins": spins}
    parser.add_argument("names", nargs="*", default=list(choices))
    statmech_attn.setup()
    for name in parser.parse_args().names:
        choices[name]()


if __name__ == "__main__":
    main()
