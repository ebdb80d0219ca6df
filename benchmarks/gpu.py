"""What a GPU computes in a second, beside two cores of its own machine.

    python benchmarks/gpu.py [maps] [scan] [spins] [extensive] [saddle] [training]
    python benchmarks/gpu.py --output results/gpu.csv

Rates are medians of three repeats after compilation, in double precision.  The network
is the published one (M = 3, C = 4, three site classes); cores and GPU take their turns
in one process.  The share of the peak is that of arithmetic: operations of a step, as
XLA counts them, over those of a product of large matrices, in the same time.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from extensive_speed import ONE, posed
from lyapunov import model, spacing, window
from one_shot_training import timed
from saddle import random_problem

from statmech_attn import batches, dmft, montecarlo
from statmech_attn.dmft import extensive
from statmech_attn.dmft.extensive.effective_process import POPULATION
from statmech_attn.dynamics.diagrams import Plan, run, Scan
from statmech_attn.dynamics.exponents import frames, lyapunov


CORES = 2
REPEATS = 3
LEAST, LONG = 0.2, 2.0  # seconds of a repeat, and of what is not repeated
LANES = (1024, 8192, 32_768, 131_072)
XLA_LANES = (8192, 131_072)
N_SPINS = (10**4, 10**5, 10**6, 10**7)
SPINS_AT_ONCE = 2 * 10**8  # of all runs
SIDE = 8192  # of the matrices for the peak


class Row(NamedTuple):
    """A line of the table; rates are NaN where none was measured."""

    task: str
    batch: int  # points, runs, or tasks
    rate_gpu: float  # per second
    rate_cores: float
    share_of_peak: float = np.nan  # of the GPU
    memory_gpu: float = np.nan  # bytes, at most so far


def seconds(call: Callable[[], Any]) -> float:
    """Median time of a call that has been compiled."""
    once = lambda: jax.block_until_ready(call())
    once()
    clock = time.perf_counter()
    once()
    took = time.perf_counter() - clock
    if took > LONG:
        return took
    number = max(1, round(LEAST / took))
    times = []
    for _ in range(REPEATS):
        clock = time.perf_counter()
        for _ in range(number):
            once()
        times.append((time.perf_counter() - clock) / number)
    return statistics.median(times)


def on_cores(call: Callable[[], Any]) -> Any:
    """What a function returns where JAX computes on two cores."""
    with jax.default_device(jax.devices("cpu")[0]), batches.limited(CORES):
        return call()


def memory() -> float:
    """Most bytes that this process has taken of the GPU so far."""
    return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)


def peak(dtype: Any = jnp.float64) -> float:
    """Operations per second of a product of large matrices."""
    matrix = jax.random.normal(jax.random.key(0), (SIDE, SIDE)).astype(dtype)
    product = jax.jit(jnp.matmul)
    return 2 * SIDE**3 / seconds(lambda: product(matrix, matrix))


# Maps


def map_rate(k: int, lanes: int, native: bool) -> float:
    """Steps per second of a batch, with k exponents, on the device that JAX takes."""
    cpu = batches.on_cpu()
    wide = batches.lanes_for(lanes) if cpu else lanes
    net, points = model(lanes if cpu else wide)
    parts = [points.take(i) for i, _ in batches.batches(np.arange(points.size), wide)]
    steps = 400 if k else 4000
    function = window(dmft.TangentMap, k) if k else dmft.advance
    number = jnp.asarray(steps // lyapunov.BLOCKS // spacing(k) if k else steps)
    if k:
        steps = int(number) * lyapunov.BLOCKS * spacing(k)
    given = lambda n: (net, *points.take(np.zeros(n, int)), number)
    if native:
        from statmech_attn.native import Native

        device = None if cpu else jax.devices()[0]
        program = Native(function, given, shared=1, device=device)
    else:
        program = batches.Compiled(function, *given(wide), shared=1)
    if not cpu:
        parts = jax.device_put(parts)
    work = lambda part, stop: program(net, *part, number)
    return points.size * steps / seconds(lambda: list(batches.run_all(work, parts)))


def operations(k: int) -> float:
    """Of a step of one point, as XLA counts them."""
    net, points = model(8)

    def step(net, params, state):
        if not k:
            return dmft.step(net, params, state)
        system = dmft.TangentMap(net, params)
        return frames.turn(system, *frames.start_frame(system, state, k))

    with jax.default_device(jax.devices("cpu")[0]):
        lowered = jax.jit(step).lower(net, *points)
    return lowered.cost_analysis()["flops"] / points.size


def maps() -> Iterator[Row]:
    """Steps per second of all points, plain and with exponents."""
    most = peak()
    for k in (0, 4, 12):
        name = f"{k} exponents" if k else "plain"
        cores = on_cores(lambda k=k: map_rate(k, 1088, native=True))
        for compiler in ("xla", "llvm"):
            for lanes in LANES if compiler == "llvm" else XLA_LANES[bool(k) :]:
                rate = map_rate(k, lanes, compiler == "llvm")
                share = rate * operations(k) / most
                yield Row(f"{name}, {compiler}", lanes, rate, cores, share, memory())


def scan() -> Iterator[Row]:
    """Points per second of a whole scan, sections and verdicts included."""

    def rate(n_points: int) -> float:
        net, points = model(n_points)
        plan = Plan(
            transient=4000, steps=8192, exponents=4, max_doublings=0, compiler="llvm"
        )
        stages = Scan(dmft.system(net), plan, points)
        run(stages, points)
        clock = time.perf_counter()
        run(stages, points)
        return n_points / (time.perf_counter() - clock)

    cores = on_cores(lambda: rate(1088))
    for n_points in (4096, 32_768):
        yield Row(
            "scan, 4 exponents", n_points, rate(n_points), cores, memory_gpu=memory()
        )


# Simulation


def spins() -> Iterator[Row]:
    """Spins per second of whole runs, and steps per second of collapsed ones."""
    file = dmft.load("poclopez-pe2")
    steps = 20

    def rate(n_spins: int, runs: int, method: str) -> float:
        net = dmft.network(file.patterns, context=file.context)
        params = dmft.parameters(1.27, file.gamma, file.epsilon)
        state = dmft.from_row(net, params, 0)
        n_spins -= n_spins % net.n_classes
        call = lambda: montecarlo.simulate(
            net,
            file.patterns,
            params,
            state,
            n_spins=n_spins,
            runs=runs,
            steps=steps,
            method=method,
            key=jax.random.key(0),
            batch_runs=max(1, runs // (2 if batches.on_cpu() else 1)),
        )
        return runs * steps * (n_spins if method == "spins" else 1) / seconds(call)

    for n_spins in N_SPINS:
        few, many = (max(2, total // n_spins) for total in (10**7, SPINS_AT_ONCE))
        cores = on_cores(lambda n=n_spins, few=few: rate(n, few, "spins"))
        gpu = rate(n_spins, many, "spins")
        yield Row(f"spins, N = {n_spins:.0e}", many, gpu, cores, memory_gpu=memory())
    cores = on_cores(lambda: rate(10**6, 2000, "collapsed"))
    for runs in (1000, 100_000):
        gpu = rate(10**6, runs, "collapsed")
        yield Row("collapsed", runs, gpu, cores, memory_gpu=memory())


def of_extensive() -> Iterator[Row]:
    """Patterns that grow like N: tokens of N spins, and sampled trajectories."""

    def of_spins(n_spins: int) -> float:
        problem, steps = posed(1, extensive.cycle(), 0.2), 4
        plan = montecarlo.extensive_plan(
            problem, ONE, [1.0], n_spins=n_spins, steps=steps
        )
        return steps / seconds(lambda: plan.sample(jax.random.key(0)).C)

    def of_trajectories(most: int) -> float:
        problem = posed(2, extensive.identical(), 0.1)
        given = {"steps": 20, "key": jax.random.key(0), "error": 1e-9, "most": most}
        call = lambda: extensive.sampled(problem, [1.0], **given).value.C
        return most * POPULATION / seconds(call)

    for n_spins in (10_000, 30_000):
        cores = on_cores(lambda n=n_spins: of_spins(n))
        gpu = of_spins(n_spins)
        yield Row(f"tokens, N = {n_spins}", 1, gpu, cores, memory_gpu=memory())
    cores = on_cores(lambda: of_trajectories(8))
    gpu = of_trajectories(8)
    yield Row("trajectories", 8 * POPULATION, gpu, cores, memory_gpu=memory())


# Learning


def saddle() -> Iterator[Row]:
    """Saddle points per second, P = 600, N_0 = 192."""
    for heads in ((4, 4), (4, 8)):

        def rate(heads=heads) -> float:
            problem = random_problem(600, 192, heads, width=100)
            return 1 / seconds(lambda: problem.solve().U)

        name = f"saddle point, {np.prod(heads)} paths"
        cores = on_cores(rate)
        yield Row(name, 600, rate(), cores, memory_gpu=memory())


def training() -> Iterator[Row]:
    """Tasks per second of one-shot training at the size of the paper.

    The cores compute in single precision, and the GPU products in bfloat16.
    """
    steps, size, most = 10, "paper", peak(jnp.bfloat16)

    def rate(precision: str, steps: int, batch: int) -> tuple[float, float]:
        _, step, _, done = timed(size, precision, steps, batch=batch)
        return batch / step, done / step

    cores = on_cores(lambda: rate("single", 1, 128)[0])
    for batch in (128, 1024):
        tasks, operations = rate("mixed", steps, batch)
        yield Row("one-shot tasks", batch, tasks, cores, operations / most, memory())


TABLES = {
    "maps": maps,
    "training": training,
    "saddle": saddle,
    "extensive": of_extensive,
    "spins": spins,
    "scan": scan,
}


def keep(rows: list[Row], path: str) -> None:
    """Write all lines of the table."""
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([Row._fields, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(TABLES))
    parser.add_argument("--output", help="CSV file for the rates")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    device = jax.devices()[0]
    if device.platform == "cpu":
        parser.exit(1, "JAX finds no GPU here, and this benchmark measures one.\n")
    rows = []
    print(f"# {device.device_kind}, jax {jax.__version__}, beside {CORES} cores")
    print(f"{'':<28}{'batch':>10}{'GPU':>11}{'cores':>11}{'ratio':>8}", end="")
    print(f"{'peak':>8}{'GiB':>7}")
    for name in options.names:
        for row in TABLES[name]():
            rows.append(row)
            print(
                f"{row.task:<28}{row.batch:>10}{row.rate_gpu:>11.3g}"
                f"{row.rate_cores:>11.3g}{row.rate_gpu / row.rate_cores:>8.3g}"
                f"{row.share_of_peak:>8.1%}{row.memory_gpu / 2**30:>7.2f}",
                flush=True,
            )
        if options.output:
            keep(rows, options.output)


if __name__ == "__main__":
    main()
