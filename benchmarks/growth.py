"""How time grows with every size, fitted exponents, and the parts that it consists of.

    python benchmarks/growth.py                      the tables
    python benchmarks/growth.py --figure growth.png  and their picture

One size is changed at a time.  Times are processor seconds of all threads, since they
hardly depend on what else the machine does; all sizes of a curve take turns, and each
has its least time of the rounds.  Exponents are slopes of ln(time) against ln(size),
over all sizes and over the upper half, with the standard error of a least-squares fit.
Parts are the same operations alone, at the largest size, compiled by themselves.
"""

import argparse
import platform
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from saddle import random_problem

from statmech_attn import bpkr, dmft, dynamics
from statmech_attn.batches import (
    batches,
    Compiled,
    lanes_for,
    limited,
    run_all,
    workers,
)
from statmech_attn.bpkr.posed.linear_algebra import inverse_cholesky
from statmech_attn.dynamics.diagrams.stages.lanes import Points
from statmech_attn.dynamics.exponents import frames, lyapunov
from statmech_attn.montecarlo import simulate
from statmech_attn.plotting.frame import sheets, style


ROUNDS = 2
LONG = 0.1  # seconds that a measurement takes at least
LANES = 136
SITES = 32
BETAS = (8, 32, 136, 1088, 8704)
SIZES = ((3, 2), (3, 3), (3, 5), (8, 5), (16, 5))  # patterns, positional bits
EXPONENTS = (1, 2, 4, 8, 12)
SPINS = (10**3, 10**4, 10**5, 10**6)
RUNS = 64  # simulated side by side
EXAMPLES = (75, 150, 300, 600, 1200)
HEADS = ((2, 2), (2, 4), (4, 4), (4, 8))
REFERENCE = dict(P=150, heads=(2, 4))
STEPS = [lyapunov.BLOCKS]
WORDS = {
    "beta": r"number of $\beta$",
    "dimension": r"dimension $MC$",
    "exponents": "exponents $k$",
    "spins": "spins $N$",
    "examples": "examples $P$",
    "paths": r"paths $|\Pi|$",
}
LOOKS = {  # place in the colours and markers; what all panels share has one
    "plain": 0,
    "4 exponents": 1,
    "all": 1,
    "pushes": 2,
    "Gram–Schmidt": 3,
    "spins": 0,
    "collapsed": 1,
    "uniform numbers": 2,
    "solution": 0,
    "inverse of K + T": 1,
    "curvature": 2,
    "eigenvalues": 3,
}

Run = Callable[[int], object]  # of a number of repetitions


class Curve(NamedTuple):
    """Times of a job against a size."""

    size: str
    job: str
    sizes: Sequence[int]
    runs: Sequence[Run]
    units: Sequence[float]  # steps, draws or solutions of a repetition


def processor_seconds(run: Run, times: int) -> float:
    begun = time.process_time()
    jax.block_until_ready(run(times))
    return time.process_time() - begun


def repetitions(run: Run) -> int:
    """How often a job is repeated so that its time can be measured."""
    processor_seconds(run, 1)
    times = 1
    while (seconds := processor_seconds(run, times)) < LONG:
        times = max(2 * times, int(times * LONG / max(seconds, 1e-4)))
    return times


def measured(runs: Sequence[Run]) -> np.ndarray:
    """Least seconds of a repetition; the runs take turns."""
    times = [repetitions(run) for run in runs]
    rounds = [
        [processor_seconds(run, n) / n for run, n in zip(runs, times, strict=True)]
        for _ in range(ROUNDS)
    ]
    return np.min(rounds, axis=0)


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """Exponent of a power law, and its standard error."""
    x, y = np.log(sizes), np.log(seconds)
    x = x - x.mean()
    exponent = (x * y).sum() / (x**2).sum()
    rest = y - y.mean() - exponent * x
    return exponent, float(np.sqrt((rest**2).sum() / (len(x) - 2) / (x**2).sum()))


def fitted(exponent: float, error: float) -> str:
    """An exponent with its error, to two places."""
    value = round(exponent, 2) + 0.0  # no minus sign of nothing
    return f"{value:.2f} ± " + (f"{error:.2f}" if error >= 0.005 else "< 0.01")


# The map


def points_of(net, n_beta: int) -> Points:
    params = dmft.parameters(np.linspace(0.5, 3, n_beta), 127.0, 0.02)
    start = dmft.from_random(net, params, jax.random.key(0))
    state = dmft.advance(net, params, start, 500)
    return Points(*jax.tree.map(np.asarray, (params, state)))


def random_network(n_patterns: int, n_bits: int):
    sizes = dict(n_patterns=n_patterns, n_sites=SITES, n_bits=n_bits)
    patterns = dmft.random_independent(jax.random.key(1), **sizes)
    return dmft.network(patterns, context=2**n_bits)


def published_network():
    file = dmft.load("poclopez-pe2")
    return dmft.network(file.patterns, context=file.context)


def compiled(function, net, points: Points, lanes: int) -> Run:
    """A function of network, parameters, states and turns, on all batches."""
    example = points.take(np.zeros(lanes, int))
    call = Compiled(function, net, *example, jnp.asarray(1), shared=1)
    items = [points.take(index) for index, _ in batches(np.arange(points.size), lanes)]

    def run(times):
        number = jnp.asarray(times)
        job = lambda batch, stop: call(net, *batch, number)
        return [result for _, result in run_all(job, items)]

    return run


def with_exponents(k: int, every: int):
    def window(net, params, state, turns):
        system = dmft.TangentMap(net, params)
        lifted, frame = frames.start_frame(system, state, k)
        options = dict(turns=0, per_block=turns, every=every, blocks=lyapunov.BLOCKS)
        observe = lambda state: state.newest
        lifted, frame, sums = lyapunov.measure(
            system, lifted, frame, observe, **options
        )
        return frame, sums

    return window


def pushes(k: int):
    """The frame pushed and not orthonormalised, but kept from growing."""

    def window(net, params, state, turns):
        system = dmft.TangentMap(net, params)
        carry = frames.start_frame(system, state, k)

        def push(_, carry):
            lifted, frame = system.push(*carry)
            return lifted, frame * 0.5

        return jax.lax.fori_loop(0, turns * lyapunov.BLOCKS, push, carry)[1]

    return window


def orthonormalisations(k: int):
    def window(net, params, state, turns):
        system = dmft.TangentMap(net, params)
        _, frame = frames.start_frame(system, state, k)
        again = lambda _, frame: dynamics.orthonormalise(frame)[0]
        return jax.lax.fori_loop(0, turns * lyapunov.BLOCKS, again, frame)

    return window


def advance(net, params, state, turns):
    return dmft.advance(net, params, state, turns * lyapunov.BLOCKS)


def curves_of_beta():
    net = published_network()
    for job, function in (("plain", advance), ("4 exponents", with_exponents(4, 1))):
        of = lambda n: compiled(function, net, points_of(net, n), lanes_for(n))
        yield Curve("beta", job, BETAS, [of(n) for n in BETAS], STEPS)


def curves_of_dimension():
    networks = [random_network(*size) for size in SIZES]
    sizes = [net.dimension for net in networks]
    of = lambda function, net: compiled(function, net, points_of(net, LANES), LANES)
    for job, function in (
        ("plain", advance),
        ("4 exponents", with_exponents(4, 1)),
        ("pushes", pushes(4)),
        ("Gram–Schmidt", orthonormalisations(4)),
    ):
        yield Curve(
            "dimension", job, sizes, [of(function, net) for net in networks], STEPS
        )


def curves_of_exponents():
    net = published_network()
    of = lambda function: compiled(function, net, points_of(net, LANES), LANES)
    for job, make in (
        ("all", lambda k: with_exponents(k, 1)),
        ("pushes", pushes),
        ("Gram–Schmidt", orthonormalisations),
    ):
        runs = [of(make(k)) for k in EXPONENTS]
        yield Curve("exponents", job, EXPONENTS, runs, STEPS)


# Simulation


def curves_of_spins():
    file, net = dmft.load("poclopez-pe2"), published_network()
    params = dmft.parameters(1.27, file.gamma, file.epsilon)
    state = dmft.from_row(net, params, 0)

    def run(n_spins, method):
        steps = max(10, 10**7 // (n_spins * RUNS)) if method == "spins" else 2000
        sizes = dict(n_spins=n_spins - n_spins % 3, runs=RUNS, steps=steps)
        once = lambda: simulate(
            net,
            file.patterns,
            params,
            state,
            key=jax.random.key(0),
            method=method,
            **sizes,
        )
        return (lambda times: [once().mean.A for _ in range(times)]), RUNS * steps

    for method in ("spins", "collapsed"):
        runs, steps = zip(*(run(n, method) for n in SPINS), strict=True)
        yield Curve("spins", method, SPINS, runs, steps)
    sizes = [n - n % 3 for n in SPINS]
    draw = jax.jit(lambda key, n: jax.random.uniform(key, (n,)).sum(), static_argnums=1)
    key = jax.random.key(0)
    runs = [lambda times, n=n: [draw(key, n) for _ in range(times)] for n in sizes]
    yield Curve("spins", "uniform numbers", SPINS, runs, [1])


# Learning


def curves_of_examples():
    problems = [problem_of(P=P) for P in EXAMPLES]
    yield from curves_of_learning("examples", EXAMPLES, problems)


def curves_of_paths():
    problems = [problem_of(heads=heads) for heads in HEADS]
    sizes = [int(np.prod(heads)) for heads in HEADS]
    yield from curves_of_learning("paths", sizes, problems)


def problem_of(**changed) -> bpkr.Problem:
    sizes = REFERENCE | changed
    return random_problem(sizes["P"], 96, sizes["heads"], width=100)


def curves_of_learning(size: str, sizes: Sequence[int], problems):
    """Whole solutions, and what a Newton step of them consists of."""
    for job, run in (
        ("solution", solved),
        ("inverse of K + T", inverted),
        ("curvature", curved),
        ("eigenvalues", decomposed),
    ):
        yield Curve(size, job, sizes, [run(problem) for problem in problems], [1])


def solved(problem: bpkr.Problem) -> Run:
    return lambda times: [problem.solve().point for _ in range(times)]


def repeated(function, *arguments) -> Run:
    call = jax.jit(function)
    return lambda times: [call(*arguments) for _ in range(times)]


def kernel_matrix(problem):
    U = jnp.eye(problem.sizes[0])
    return problem.operator.kernel(U) + problem.temperature * jnp.eye(problem.y.size)


def inverted(problem) -> Run:
    return repeated(inverse_cholesky, kernel_matrix(problem))


def curved(problem) -> Run:
    B = jnp.linalg.inv(kernel_matrix(problem))
    alpha = B @ problem.y
    curvature = lambda operator, A, alpha: operator.curvature(A, alpha)
    return repeated(curvature, problem.operator, B - jnp.outer(alpha, alpha), alpha)


def decomposed(problem) -> Run:
    """Of a matrix of the size of the Hessian."""
    n = sum(d * (d + 1) // 2 for d in problem.sizes)
    A = np.random.default_rng(0).normal(size=(n, n))
    return repeated(jnp.linalg.eigh, jnp.asarray(A + A.T))


# Tables and the picture


def curves(only: Sequence[str]):
    """Every curve with what its times are divided by."""
    for size, make in (
        ("beta", curves_of_beta),
        ("dimension", curves_of_dimension),
        ("exponents", curves_of_exponents),
        ("spins", curves_of_spins),
        ("examples", curves_of_examples),
        ("paths", curves_of_paths),
    ):
        if size in only:
            yield from make()


def row(curve: Curve, seconds: np.ndarray) -> None:
    half = len(curve.sizes) // 2
    fits = []
    for part in (slice(None), slice(min(half, len(curve.sizes) - 3), None)):
        exponent, error = slope(curve.sizes[part], seconds[part])
        fits.append(fitted(exponent, error))
    print(
        f"| {curve.size} | {curve.job} | {curve.sizes[0]} – {curve.sizes[-1]} | "
        f"{1e6 * seconds[0]:.3g} – {1e6 * seconds[-1]:.3g} | {' | '.join(fits)} |",
        flush=True,
    )


def cores() -> None:
    """The same batches by one worker and by all."""
    net = published_network()
    points = points_of(net, 8 * LANES)
    run = compiled(with_exponents(4, 1), net, points, LANES)
    run(1)
    spent = {}
    for _ in range(ROUNDS):
        for count in range(1, workers() + 1):
            with limited(count):
                wall, begun = time.perf_counter(), time.process_time()
                jax.block_until_ready(run(100))
                seconds = time.perf_counter() - wall, time.process_time() - begun
            spent.setdefault(count, []).append(seconds)
    print("\n| workers | seconds | processor seconds |\n| --- | --- | --- |")
    for count, times in spent.items():
        wall, used = np.min(times, axis=0)
        print(f"| {count} | {wall:.2f} | {used:.2f} |", flush=True)


@style.styled
def draw(curves: Sequence[tuple[Curve, np.ndarray]], path: str) -> None:
    sizes = list(dict.fromkeys(curve.size for curve, _ in curves))
    rows, count = -(-len(sizes) // 3), len(sizes)
    make = lambda: sheets.grid(style.DOUBLE, 2.8 * rows, rows, min(count, 3), count)
    sheet = sheets.sheet(None, count, make)
    for panel, size in zip(sheet.axes, sizes, strict=True):
        draw_panel(panel, size, [pair for pair in curves if pair[0].size == size])
    for panel in sheet.axes[::3]:
        panel.set_ylabel("processor time (s)")
    sheet.letters()
    lines = "lines: power laws of the upper half of the sizes, with their exponents"
    sheet.note(f"time of a step, or of what is named; {lines}")
    sheet.figure.savefig(path, dpi=style.PNG_DPI)


def draw_panel(
    panel: Axes, size: str, curves: Sequence[tuple[Curve, np.ndarray]]
) -> None:
    """Times with the fit to the upper half of the sizes."""
    for curve, seconds in curves:
        place = LOOKS[curve.job]
        colour, marker = style.SERIES[place], "os^v"[place]
        x = np.asarray(curve.sizes, float)
        upper = slice(min(len(x) // 2, len(x) - 3), None)
        exponent, error = slope(x[upper], seconds[upper])
        words = fitted(exponent, error).replace("±", r"\pm")
        panel.plot(x, seconds, marker, color=colour, label=f"{curve.job}: ${words}$")
        middle = np.exp(np.log(x[upper]).mean()), np.exp(np.log(seconds[upper]).mean())
        panel.plot(
            x[upper], middle[1] * (x[upper] / middle[0]) ** exponent, color=colour
        )
    panel.set(xscale="log", yscale="log", xlabel=WORDS[size])
    if size != "spins":  # which are powers of ten
        panel.set_xticks(x, [f"{n:g}" for n in x])
        panel.xaxis.set_minor_locator(NullLocator())
    panel.margins(0.06)
    panel.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.2,
        handletextpad=0.2,
        labelspacing=0.3,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", help="picture that is drawn")
    parser.add_argument("--only", nargs="+", choices=WORDS, default=list(WORDS))
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"# {platform.machine()}, {workers()} workers, jax {jax.__version__}")
    print("| size | job | sizes | µs | exponent, all sizes | upper half |")
    print("| --- | --- | --- | --- | --- | --- |")
    results = []
    for curve in curves(options.only):
        seconds = measured(curve.runs) / np.asarray(curve.units)
        row(curve, seconds)
        results.append((curve, seconds))
    cores()
    if options.figure:
        draw(results, options.figure)


if __name__ == "__main__":
    main()
