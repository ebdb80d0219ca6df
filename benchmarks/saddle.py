"""Time and memory of the saddle point, printed as tables.

    python benchmarks/saddle.py                          the targets
    python benchmarks/saddle.py --growth --output F.h5   growth with P, N, N_0 and |Pi|

The published task is the four-path hidden-Markov task, 100 examples, temperature 0.01.
The larger problems have random heads on random tokens, and labels of a network of
width 5 drawn from the prior.  Times are the least of the repeats, after compilation;
`CPU s` counts all threads, so that it hardly depends on what else the machine does.
`GiB` is the highest memory of the process so far.
"""

import argparse
import itertools
import platform
import resource
import time
from datetime import datetime
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn import bpkr, storage
from statmech_attn.bpkr.action import energy, gaussian_process_limit
from statmech_attn.tasks import hidden_markov


WIDTHS = [10, 30, 50, 100, 300, 500, 1000]
TEMPERATURE = 0.01
TOKENS = 16
STRENGTH = 3.0
TEACHER_WIDTH = 5
NOISE = 0.1
GROWTH = {
    "P": [75, 150, 300, 600, 1200],
    "N": [10, 30, 100, 300, 1000],
    "N_0": [48, 96, 192, 384, 768],
    "heads": [(2, 2), (2, 4), (4, 4), (4, 8)],
}
REFERENCE = dict(P=300, N=100, N_0=96, heads=(4, 4))


class Timed(NamedTuple):
    result: bpkr.Solution
    seconds: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--output", help="HDF5 file for the growth")
    chosen = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"# jax {jax.__version__}, {jax.default_backend()}, {platform.machine()}")
    if chosen.growth:
        growth(chosen.output)
    else:
        published()
        fixed_point_against_newton()
        print(f"{'':<26} {'s':>8} {'CPU s':>8} {'steps':>6} {'gradient':>9} {'GiB':>5}")
        large((4, 4), repeats=2)
        grid()
        large((8, 8), repeats=2)
        large((4, 4, 4), repeats=1)


def published() -> None:
    xi, y = published_task()
    problem = dict(temperature=TEMPERATURE, heads=(2, 2))
    for form in ("kernels", "factors"):
        print(f"{form:<10} {'N':>5} {'ms':>8} {'steps':>6} {'gradient':>9}")
        for N in [*WIDTHS, WIDTHS]:
            call = lambda: bpkr.solve_many(xi, y, width=N, form=form, **problem)
            found = timed(call, repeats=5)
            print(
                f"{'':<10} {'all' if N is WIDTHS else N:>5} "
                f"{1e3 * found.seconds:>8.1f} {found.result.iterations.max():>6} "
                f"{found.result.gradient_norm.max():>9.1e}",
                flush=True,
            )


def large(heads, repeats: int) -> None:
    xi, y = random_task(600, 192, heads)
    call = lambda: bpkr.solve(
        xi, y, width=100, temperature=TEMPERATURE, heads=heads
    )  # fmt: skip
    row(f"|Pi| = {np.prod(heads)}, heads {heads}", timed(call, repeats))


def grid() -> None:
    xi, y = random_task(600, 192, (4, 4))
    call = lambda: bpkr.sweep(
        xi, y, widths=np.geomspace(30, 1000, 10), heads=(4, 4),
        temperatures=np.geomspace(0.001, 0.1, 10),
    )  # fmt: skip
    found = timed(call, repeats=0)
    row("10 x 10 sweep, |Pi| = 16", found)


def row(name: str, found: Timed) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    solution = found.result
    state = "" if solution.converged else "NOT CONVERGED"
    print(
        f"{name:<26} {found.seconds:>8.2f} {found.cpu:>8.2f} "
        f"{int(jnp.sum(solution.iterations)):>6} {solution.gradient_norm.max():>9.1e} "
        f"{peak:>5.2f} {state}",
        flush=True,
    )


def fixed_point_against_newton() -> None:
    """Damped iteration of the stationarity conditions, L = 1 (no U_2 but U_a)."""
    xi, y = published_task()
    xi = xi[:, :, :2]
    operator = bpkr.path_kernels(xi)
    print(
        f"L = 1, H = 2 {'N':>7} {'steps':>6} {'ms':>8} {'error':>9} {'Newton ms':>10}"
    )
    for N in WIDTHS:
        call = lambda: bpkr.solve(
            xi, y, width=N, temperature=TEMPERATURE, heads=(2,)
        )  # fmt: skip
        newton = timed(call, repeats=5)
        call = lambda: fixed_point(operator, y, N, heads=2)
        iterated = timed(call, repeats=5)
        U, steps = iterated.result
        error = jnp.abs(U - newton.result.U[0]).max()
        print(
            f"{'':<12} {N:>7} {int(steps):>6} {1e3 * iterated.seconds:>8.1f} "
            f"{error:>9.1e} {1e3 * newton.seconds:>10.1f}",
            flush=True,
        )


@jax.jit
def slope_of(operator, U, y):
    return jax.grad(lambda U: energy(operator.kernel(U), TEMPERATURE, y))(U)
