"""Time and memory of the saddle point, printed as tables.

    python benchmarks/saddle.py            the targets
    python benchmarks/saddle.py --growth   growth with P, N, N_0 and |Pi|

The published task is the four-path hidden-Markov task, 100 examples, temperature 0.01.
The larger problems have random heads on random tokens, and labels of a network of
width 5 drawn from the prior.  Times are the least of the repeats, after compilation;
`CPU s` counts all threads, so that it hardly depends on what else the machine does.
`GiB` is the highest memory of the process so far.
"""

import argparse
import platform
import resource
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import bpkr
from statmech_attn.bpkr.posed import kernel_forms
from statmech_attn.bpkr.theory.action import energy
from statmech_attn.tasks import hidden_markov


WIDTHS = [10, 30, 50, 100, 300, 500, 1000]
TEMPERATURE = 0.01
TOKENS = 16
STRENGTH = 3.0
TEACHER_WIDTH = 5
DAMPINGS = [1.0, 0.5, 0.3, 0.1, 0.03]
NOISE = 0.1
GROWTH = {
    "P": [75, 150, 300, 600, 1200],
    "N": [10, 30, 100, 300, 1000],
    "N_0": [48, 96, 192, 384, 768],
    "heads": [(2, 2), (2, 4), (4, 4), (4, 8)],
}
REFERENCE = dict(P=300, N=100, N_0=96, heads=(4, 4))


class Timed(NamedTuple):
    result: Any
    seconds: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", action="store_true")
    chosen = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"# jax {jax.__version__}, {jax.default_backend()}, {platform.machine()}")
    if chosen.growth:
        growth()
    else:
        published()
        fixed_point_against_newton()
        print(f"{'':<26} {'s':>8} {'CPU s':>8} {'steps':>6} {'gradient':>9} {'GiB':>5}")
        large((4, 4), repeats=2)
        grid()
        large((8, 8), repeats=2)
        large((4, 4, 4), repeats=1)


def published() -> None:
    for form in ("kernels", "factors"):
        problem = published_problem(form=form)
        print(f"{form:<10} {'N':>5} {'ms':>8} {'steps':>6} {'gradient':>9}")
        for widths in [*([N] for N in WIDTHS), WIDTHS]:
            call = lambda: [problem.at(width=N).solve() for N in widths]
            solved = timed(call, repeats=5)
            print(
                f"{'':<10} {'all' if len(widths) > 1 else widths[0]:>5} "
                f"{1e3 * solved.seconds:>8.1f} "
                f"{max(int(s.iterations) for s in solved.result):>6} "
                f"{max(float(s.gradient_norm) for s in solved.result):>9.1e}",
                flush=True,
            )


def large(heads, repeats: int) -> None:
    problem = random_problem(600, 192, heads, width=100)
    call = lambda: [problem.solve()]
    row(f"|Pi| = {np.prod(heads)}, heads {heads}", timed(call, repeats))


def grid() -> None:
    problem = random_problem(600, 192, (4, 4), width=100)
    grid = dict(
        widths=np.geomspace(30, 1000, 10), temperatures=np.geomspace(0.001, 0.1, 10)
    )
    run = timed(lambda: sum(problem.sweep(**grid), []), repeats=0)
    row("10 x 10 sweep, |Pi| = 16", run)


def row(name: str, run: Timed) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    solutions = run.result
    state = "" if all(s.converged for s in solutions) else "NOT CONVERGED"
    print(
        f"{name:<26} {run.seconds:>8.2f} {run.cpu:>8.2f} "
        f"{sum(int(s.iterations) for s in solutions):>6} "
        f"{max(float(s.gradient_norm) for s in solutions):>9.1e} {peak:>5.2f} {state}",
        flush=True,
    )


def fixed_point_against_newton() -> None:
    """The stationarity conditions, iterated with the best of several dampings."""
    problem = published_problem()
    print(
        f"{'fixed point':<12} {'N':>5} {'damping':>8} {'steps':>6} {'ms':>8} ", end=""
    )
    print(f"{'error':>9} {'Newton ms':>10}")
    for N in WIDTHS:
        newton = timed(lambda: problem.at(width=N).solve(), repeats=5)
        best = None
        for part in DAMPINGS:
            call = lambda: fixed_point(problem.operator, problem.y, N, part)
            run = timed(call, repeats=3)
            error = float(jnp.abs(run.result[0] - newton.result.U[0]).max())
            if error < 1e-7 and (best is None or run.seconds < best[0].seconds):
                best = run, part, error
        if best is None:
            print(f"{'':<12} {N:>5} {'none converges':>15}")
            continue
        run, part, error = best
        print(
            f"{'':<12} {N:>5} {part:>8} {int(run.result[1]):>6} "
            f"{1e3 * run.seconds:>8.1f} {error:>9.1e} {1e3 * newton.seconds:>10.1f}",
            flush=True,
        )


@jax.jit
def fixed_point(operator, y, N, part):
    """U_1 of two layers of two heads, and the number of steps.

    U_1^-1 = (1 x U_2)^-1 + (dE/dU_1) / N,  U_2 + U_2^2 / U_a = tr_h U_1 and
    U_a^2 + U_a = Tr U_2; U_1^-1 moves by `part` of the way.
    """
    slope = jax.grad(lambda U: energy(operator.kernel(U), TEMPERATURE, y))

    def step(state):
        U, U_2, U_a, _, steps = state
        wanted = jnp.kron(jnp.eye(2), jnp.linalg.inv(U_2)) + slope(U) / N
        new = jnp.linalg.inv((1 - part) * jnp.linalg.inv(U) + part * wanted)
        new = (new + new.T) / 2
        values, vectors = jnp.linalg.eigh(new[:2, :2] + new[2:, 2:])
        roots = (jnp.sqrt(1 + 4 * values / U_a) - 1) * U_a / 2
        U_2 = vectors * roots @ vectors.T
        U_a = (jnp.sqrt(1 + 4 * roots.sum()) - 1) / 2
        return new, U_2, U_a, jnp.abs(new - U).max() / jnp.abs(new).max(), steps + 1

    unfinished = lambda state: (state[3] > 1e-10 * part) & (state[4] < 3000)
    first = (jnp.eye(4), jnp.eye(2), jnp.asarray(1.0), jnp.asarray(1.0), 0)
    last = jax.lax.while_loop(unfinished, step, first)
    return last[0], last[4]


def growth() -> None:
    """Seconds and iterations, one size changed at a time."""
    print(f"{'changed':<8} {'to':>8} {'s':>8} {'CPU s':>8} {'steps':>6} {'GiB <=':>7}")
    for name, values in GROWTH.items():
        for value in values:
            case = REFERENCE | {name: value}
            heads = case["heads"]
            problem = random_problem(case["P"], case["N_0"], heads, width=case["N"])
            run = timed(problem.solve, repeats=2)
            needed = kernel_forms.memory(case["P"], case["N_0"], int(np.prod(heads)))
            steps, least = int(run.result.iterations), min(needed.values()) / 2**30
            size = int(np.prod(value))
            print(
                f"{name:<8} {size:>8} {run.seconds:>8.3f} {run.cpu:>8.3f} "
                f"{steps:>6} {least:>7.3f}",
                flush=True,
            )


def published_problem(**options) -> bpkr.Problem:
    """At any width."""
    head_key, train_key = jax.random.split(jax.random.key(0))
    setting = hidden_markov.preset("four-paths", head_key)
    x, y = hidden_markov.draw(train_key, setting.task, examples=setting.n_train)
    xi = bpkr.attentioned_inputs(x, setting.heads, readout=setting.readout)
    return bpkr.Problem(
        xi, y, heads=setting.heads, width=WIDTHS[0], temperature=TEMPERATURE, **options
    )


def random_problem(P: int, N_0: int, heads, *, width) -> bpkr.Problem:
    """Random heads on random tokens; labels of a narrow network, variance one."""
    keys = jax.random.split(jax.random.key(0), len(heads) + 3)
    x = jax.random.normal(keys[0], (P, N_0, TOKENS))
    layers = bpkr.heads_from_products(
        [
            STRENGTH * jax.random.normal(key, (H, N_0, N_0)) / N_0
            for key, H in zip(keys[3:], heads)
        ]
    )
    xi = bpkr.attentioned_inputs(x, layers, readout="mean")
    xi = xi / jnp.sqrt((xi**2).mean())
    teacher = bpkr.draw_weights(keys[1], n_inputs=N_0, heads=heads, width=TEACHER_WIDTH)
    f = bpkr.forward_paths(teacher, xi)
    Y = f / jnp.std(f) + NOISE * jax.random.normal(keys[2], f.shape)
    return bpkr.Problem(xi, Y, heads=heads, width=width, temperature=TEMPERATURE)


def timed(call, repeats: int) -> Timed:
    """Result and least times of the repeats after a first run, or of that run alone."""
    times = []
    for _ in range(repeats + 1):
        start, cpu = time.perf_counter(), time.process_time()
        result = jax.block_until_ready(call())
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    seconds, cpu = zip(*times[min(1, repeats) :])
    return Timed(result, min(seconds), min(cpu))


if __name__ == "__main__":
    main()
