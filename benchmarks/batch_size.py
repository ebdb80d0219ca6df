"""Speed against the size of a batch, up to saturation, on the devices that are there.

    python benchmarks/batch_size.py              the tables, as Markdown
    python benchmarks/batch_size.py --seconds 2  longer repeats

Rates are those of one batch after the other from one thread: a CPU computes as many
side by side as it has cores.  The median of the repeats is given with the least and
the largest.  `batch` is the memory of the compiled call (arguments, results and what
lies between), `process` the most that the process has taken so far.  The network is
the published one (M = 3, C = 4), with N = 10^6 spins in class counts for Monte Carlo;
saddle points are those of the four-path task with 100 examples, solved under `vmap`
from the limit of large widths.
"""

import argparse
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from lyapunov import model
from saddle import published_problem

from statmech_attn import dmft
from statmech_attn.batches import Compiled, devices, on_cpu
from statmech_attn.bpkr import saddle
from statmech_attn.bpkr.newton import minimise, NewtonSolver
from statmech_attn.dynamics import frames, lyapunov
from statmech_attn.montecarlo import simulate
from statmech_attn.reporting import size as size_of


REPEATS = 5
EXPONENTS = 4
N_SPINS = 999_999
SIZES = {
    True: ([8, 32, 72, 136, 264, 1032], [32, 128, 256, 1024], [1, 8, 64]),
    False: ([512, 2048, 8192, 32768, 131072], [4096, 65536, 524288], [1, 32, 256]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.7, help="of one repeat")
    seconds = parser.parse_args().seconds
    jax.config.update("jax_enable_x64", True)
    print(
        f"{len(devices())} {devices()[0].device_kind} ({platform.machine()}, "
        f"{os.cpu_count()} cores), jax {jax.__version__}, "
        f"Python {platform.python_version()}"
    )
    lanes, runs, widths = SIZES[on_cpu()]
    table("plain steps/s", "lanes", lanes, plain, seconds)
    table(f"steps/s with {EXPONENTS} exponents", "lanes", lanes, tangent, seconds)
    table("Monte Carlo steps/s", "runs", runs, monte_carlo, seconds)
    table("saddle points/s", "widths", widths, saddles, seconds)


def table(name: str, unit: str, sizes, make: Callable, seconds: float) -> None:
    """Rates for all sizes; `make(size)` gives a call and the units of a repetition."""
    print(f"\n| {unit} | {name} | range | batch | process |")
    print("| --- | --- | --- | --- | --- |")
    for size in sizes:
        call, units, memory = make(size)
        middle, least, largest = rate(call, units, seconds)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"| {size} | {middle:.3g} | {least:.3g} – {largest:.3g} | "
            f"{size_of(memory) if memory else ''} | {peak:.2f} GiB |",
            flush=True,
        )


def rate(call: Callable[[], Any], units: float, seconds: float):
    """Units per second, each repeat as many calls as fill the time."""
    call()
    clock = time.perf_counter()
    call()
    calls = max(1, round(seconds / (time.perf_counter() - clock)))
    found = []
    for _ in range(REPEATS):
        clock = time.perf_counter()
        for _ in range(calls):
            call()
        found.append(calls * units / (time.perf_counter() - clock))
    return statistics.median(found), min(found), max(found)


def plain(lanes: int):
    net, points = model(lanes)
    steps = jnp.asarray(1024)
    call = Compiled(dmft.advance, net, *points, steps, shared=1)
    return lambda: call(net, *points, steps), 1024 * lanes, call.bytes


def tangent(lanes: int):
    """A window of an examined point: frame, averages and exponents."""
    net, points = model(lanes)
    turns = jnp.asarray(32)

    def measured(net, params, state, turns):
        system = dmft.TangentMap(net, params)
        lifted, frame = frames.start_frame(system, state, EXPONENTS)
        lifted, frame, sums = lyapunov.measure(
            system,
            lifted,
            frame,
            lambda s: s.newest,
            turns=0,
            per_block=turns,
            every=1,
            blocks=lyapunov.BLOCKS,
        )
        return system.lower(lifted), lyapunov.summarise(
            sums,
            per_block=turns,
            every=1,
            rank=system.rank,
            dimension=frame.shape[0],
        )

    call = Compiled(measured, net, *points, turns, shared=1)
    units = 32 * lyapunov.BLOCKS * lanes
    return lambda: call(net, *points, turns), units, call.bytes


def monte_carlo(runs: int):
    """As many runs of one point as a batch holds."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(1.27, file.gamma, file.epsilon)
    state, steps = dmft.from_row(net, params, 0), 256
    call = lambda: simulate(
        net,
        file.patterns,
        params,
        state,
        n_spins=N_SPINS,
        runs=runs,
        steps=steps,
        key=jax.random.key(0),
        batch_runs=runs,
    )
    return call, runs * steps, None


def saddles(count: int):
    """Widths solved side by side; all wait for the slowest."""
    problem, N = published_problem(), np.geomspace(30, 1000, count)
    point = saddle.starting_point(problem)

    def one(problem, point, widths):
        problem = eqx.tree_at(lambda p: p.widths, problem, widths)
        state, code = minimise(
            partial(saddle.derivatives, problem), point, NewtonSolver()
        )
        return state.point, code

    side_by_side = jax.vmap(one, in_axes=(None, None, -1), out_axes=-1)
    widths = jnp.stack([problem.at(width=n).widths for n in N], axis=-1)
    given = problem, point, widths
    call = Compiled(side_by_side, *given, shared=2)
    return lambda: call(*given), count, call.bytes


if __name__ == "__main__":
    main()
