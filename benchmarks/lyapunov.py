"""Steps per second of the map, with and without exponents, and what each choice gains.

    python benchmarks/lyapunov.py                the table: 1000 beta at once
    python benchmarks/lyapunov.py --published    the whole published scan as well
    python benchmarks/lyapunov.py --long         a context of 32 tokens instead
    python benchmarks/lyapunov.py --compilers    XLA and LLVM in turns, on one thread

The network is the published one (M = 3, C = 4, three site classes), or with C = 32
the preset random-c32 and 8 and 16 independent patterns.  Rates count token
steps of all beta together; the median of five repeats is given with its range.
"""

import argparse
import importlib.util
import itertools
import platform
import resource
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import dmft, dynamics
from statmech_attn.batches import batches, Compiled, lanes_for, run_all, workers
from statmech_attn.dynamics import TangentSystem
from statmech_attn.dynamics.diagrams import Plan, Points, run, Scan
from statmech_attn.dynamics.diagrams.stages.stages import FEW
from statmech_attn.dynamics.exponents import frames, lyapunov
from statmech_attn.dynamics.motion import phases


REPEATS = 5
N_BETA = 1000
COMPARED = "plain", "4 exponents"  # stages that both compilers make
TURNS = range(1 + 4 * REPEATS)


class AutomaticMap(dmft.TangentMap):
    """The same map with its tangent by forward differentiation of the whole step."""

    def lift(self, state):
        return state

    def lower(self, lifted):
        return lifted

    push_measured = TangentSystem.push_measured

    def push(self, lifted, frame):
        columns = lambda x: jnp.moveaxis(x, -2, 0)
        shape = lifted.attention.shape

        def moved(attention):
            rebuilt = self.rebuild(lifted, attention)
            return self.step(rebuilt).attention

        frame = frame.reshape(shape[:2] + frame.shape[1:])
        _, push = jax.linearize(moved, lifted.attention)
        new = jnp.moveaxis(jax.vmap(push)(columns(frame)), 0, -2)
        return self.step(lifted), new.reshape((-1,) + new.shape[2:])

    def rebuild(self, state, attention):
        """The state as a function of its attention window alone."""
        moved = dmft.State(state.v, state.k, attention, state.clock, state.tokens)
        newest_first = dmft.window(moved)
        return dmft.from_window(self.net, self.params, newest_first, state.clock)


def model(n_beta: int):
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(np.linspace(0, 3, n_beta), file.gamma, file.epsilon)
    state = dmft.from_checkpoint(net, params, file)
    return net, Points(params, dmft.advance(net, params, state, 2000))


def rate(stage, points: Points, lanes: int, steps: int) -> tuple[float, float, float]:
    """Median, least and largest steps per second over the repeats, on all workers."""
    items = [points.take(index) for index, _ in batches(np.arange(points.size), lanes)]
    work = lambda batch, stop: stage(batch)
    list(run_all(work, items))
    rates = []
    for _ in range(REPEATS):
        clock = time.perf_counter()
        list(run_all(work, items))
        rates.append(points.size * steps / (time.perf_counter() - clock))
    return statistics.median(rates), min(rates), max(rates)


def spacing(exponents: int) -> int:
    """Steps between two orthonormalisations, as a scan has them."""
    return 1 if exponents <= FEW else 4


def window(system_of, k: int):
    """Sums for k exponents over a window of so many turns in each of its blocks."""

    def measured(net, params, state, turns):
        system = system_of(net, params)
        lifted, frame = frames.start_frame(system, state, k)
        lifted, frame, sums = lyapunov.measure(
            system,
            lifted,
            frame,
            lambda state: state.newest,
            turns=0,
            per_block=turns,
            every=spacing(k),
            blocks=lyapunov.BLOCKS,
        )
        return system.lower(lifted), frame, sums

    return measured


def stages(net, points: Points, plain: int = 8000, per_block: int = 100):
    """(name, steps, function that compiles a stage) for every row of the table.

    Args:
        plain: steps of a plain stage.
        per_block: steps of a block of a stage with exponents.
    """
    lanes = lanes_for(points.size)
    example = points.take(np.zeros(lanes, int))

    def compiled(function, number, native=False):
        arguments = lambda lanes: (net, *points.take(np.zeros(lanes, int)), number)
        if native:
            from statmech_attn.native import Native

            call = Native(function, arguments, shared=1)
        else:
            call = Compiled(function, *arguments(lanes), shared=1)
        return lambda p: call(net, *p, number)

    def advance(native=False):
        return compiled(dmft.advance, jnp.asarray(plain), native)

    def spectrum(system_of, k, turns, native=False):
        return compiled(window(system_of, k), jnp.asarray(turns), native)

    def general(k, turns):
        def one(net, params, state):
            step = lambda state: dmft.step(net, params, state)
            return dynamics.lyapunov_spectrum(
                step,
                state,
                steps=turns * spacing(k) * lyapunov.BLOCKS,
                exponents=k,
                reorthonormalize_every=spacing(k),
                align=0,
            )

        def measured(net, params, state):
            axes = jax.tree.map(lambda x: -1 if x.ndim else None, (params, state))
            return jax.vmap(one, in_axes=(None, *axes))(net, params, state)

        call = Compiled(measured, net, *example)
        return lambda p: call(net, *p)

    tangent_steps = per_block * lyapunov.BLOCKS
    yield "plain", plain, advance
    for k in (4, 12):
        make = lambda k=k: spectrum(dmft.TangentMap, k, per_block // spacing(k))
        yield f"{k} exponents", tangent_steps, make
    if importlib.util.find_spec("llvmlite"):
        yield "plain, llvm", plain, lambda: advance(native=True)
        for k in (4, 12):
            turns = per_block // spacing(k)
            make = lambda k=k, turns=turns: spectrum(dmft.TangentMap, k, turns, True)
            yield f"{k} exponents, llvm", tangent_steps, make
    for k in (4, 12):
        make = lambda k=k: spectrum(AutomaticMap, k, per_block // spacing(k))
        yield f"{k}, tangent by jax.linearize", tangent_steps, make
    for k in (4, 12):
        make = lambda k=k: general(k, per_block // spacing(k))
        yield f"{k}, general function under vmap", tangent_steps, make


def table() -> None:
    net, points = model(N_BETA)
    print(f"{N_BETA} beta in batches of {lanes_for(N_BETA)} lanes, C = 4, M = 3")
    rows(points, stages(net, points))


def compilers() -> None:
    """Both compilers in turns: steps per processor second, and their ratio.

    A batch on one thread; other processes of the machine slow both down alike.
    """
    net, points = model(N_BETA)
    lanes = lanes_for(N_BETA)
    batch, by_name = points.take(np.arange(lanes)), {}
    for name, steps, make in stages(net, points):
        if name.split(",")[0] in COMPARED:
            by_name[name] = make(), lanes * steps
    print(f"{lanes} beta, a batch on one thread, steps per processor second")
    print(f"{'':16}{'XLA':>10}{'llvm':>10}{'llvm / XLA: median, least, largest':>38}")
    for name in COMPARED:
        pair = [by_name[name], by_name[f"{name}, llvm"]]
        rates = np.array([[_cpu_rate(*stage, batch) for stage in pair] for _ in TURNS])
        ratios = rates[1:, 1] / rates[1:, 0]  # the first turn warms up
        middle = np.median(rates[1:], axis=0)
        spread = f"{np.median(ratios):.2f}, {ratios.min():.2f}, {ratios.max():.2f}"
        print(f"{name:16}{middle[0]:10.3g}{middle[1]:10.3g}{spread:>38}", flush=True)


def _cpu_rate(stage, steps: int, batch: Points) -> float:
    processors = time.process_time()
    stage(batch)
    return steps / (time.process_time() - processors)


def long_table() -> None:
    """C = 32: the preset of random patterns, 8 and 16 independent patterns."""
    key, n_beta = jax.random.key(1), 272
    networks = [dmft.load("random-c32").patterns]
    for n_patterns, n_sites in ((8, 64), (16, 128)):
        sizes = dict(n_patterns=n_patterns, n_sites=n_sites, n_bits=5)
        networks.append(dmft.random_independent(key, **sizes))
    for patterns in networks:
        net = dmft.network(patterns, context=32)
        params = dmft.parameters(np.linspace(0.5, 5, n_beta), 127.0, 0.02)
        points = Points(params, dmft.from_row(net, params, 0))
        print(
            f"{n_beta} beta in batches of {lanes_for(n_beta)} lanes, C = 32, "
            f"M = {net.n_patterns}, {net.n_classes} site classes"
        )
        rows(points, itertools.islice(stages(net, points, 640, 16), 2))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{'process memory so far':32}{memory:8.2f}GiB")


def rows(points: Points, prepared) -> None:
    """Print rates and compile times; steps/s as median, least and largest."""
    lanes = lanes_for(points.size)
    print(f"{'':32}{'steps/s':>10}{'least':>10}{'largest':>10}{'compile':>10}")
    for name, steps, make in prepared:
        clock = time.perf_counter()
        stage = make()
        compile_time = time.perf_counter() - clock
        middle, least, largest = rate(stage, points, lanes, steps)
        print(
            f"{name:32}{middle:10.3g}{least:10.3g}{largest:10.3g}{compile_time:9.1f}s",
            flush=True,
        )


def published() -> None:
    """4001 beta, 100 000 + 75 000 steps, all exponents, no extension."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(np.linspace(0, 3, 4001), file.gamma, file.epsilon)
    points = Points(params, dmft.from_checkpoint(net, params, file))
    plan = Plan(100_000, 75_000, exponents=12, max_doublings=0)
    clock = time.perf_counter()
    outcome = run(Scan(dmft.system(net), plan, points), points)
    seconds = time.perf_counter() - clock
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    names, counts = np.unique(outcome.verdicts.phase, return_counts=True)
    by_phase = {phases.PHASES[i]: int(n) for i, n in zip(names, counts, strict=True)}
    print(f"published scan: {seconds:.0f} s, {memory:.2f} GiB resident, {by_phase}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--compilers", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(
        f"{platform.node()} ({platform.machine()}), {jax.devices()[0].device_kind}, "
        f"{workers()} worker(s), jax {jax.__version__}, "
        f"Python {platform.python_version()}"
    )
    if options.long:
        return long_table()
    if options.compilers:
        return compilers()
    table()
    if options.published:
        published()


if __name__ == "__main__":
    main()
