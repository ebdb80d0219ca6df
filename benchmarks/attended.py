"""Time and memory of attentioned inputs and kernels of a large transformer.

    python benchmarks/attended.py                        2000 examples, 2 x 12 heads
    python benchmarks/attended.py --examples 500 --inputs 192 --heads 4
    python benchmarks/attended.py --solve                and the saddle point at T = 0.1

The kernel is that of the library at U_1 = 1, the saddle point `Problem.solve` from the
limit of infinite width; `GiB` is the highest memory of the process so far, `CPU s`
counts all threads.  The last line is the largest number of paths whose saddle point
fits in 4 GiB.  Labels are signs of what the first path attends, with noise; the width
is that of the inputs.
"""

import argparse
import resource
import time

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import bpkr
from statmech_attn.bpkr.posed.kernel_forms import most_paths


TOKENS = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--inputs", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--solve", action="store_true")
    chosen = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    random = np.random.default_rng(0)
    P, N_0, H = chosen.examples, chosen.inputs, chosen.heads
    x = random.normal(size=(P, N_0, TOKENS))
    layers = [random.dirichlet(np.ones(TOKENS), (H, P, TOKENS)) for _ in range(2)]
    omega = bpkr.attention_arrays(layers, queries="rows")
    print(f"{'':<34} {'s':>8} {'CPU s':>8} {'GiB':>6}")
    xi = timed("attended", lambda: bpkr.attended(x, omega))
    del x, layers, omega
    problem = timed("problem", lambda: posed(xi, (H, H)))
    timed("kernel of all paths", lambda: problem.operator.kernel(jnp.eye(H * H)))
    if chosen.solve:
        solution = timed("saddle point", problem.solve)
        print(
            f"{solution.reason}: {int(solution.iterations)} steps, "
            f"gradient {float(solution.gradient_norm):.1e}"
        )
    most = most_paths(P, N_0)
    print(f"{H * H} paths; a saddle point of {most} fits in 4 GiB")


def posed(xi, heads) -> bpkr.Problem:
    """With labels that depend on one path."""
    random = np.random.default_rng(1)
    first = np.asarray(xi[:, :4, 0]).sum(axis=1)
    Y = np.sign(first + first.std() / 2 * random.normal(size=len(first)))
    return bpkr.Problem(xi, Y, heads=heads, width=xi.shape[1], temperature=0.1)


def timed(name: str, compute):
    """What is computed; prints a line of its time and memory."""
    clock, cpu = time.perf_counter(), time.process_time()
    result = jax.block_until_ready(compute())
    seconds, used = time.perf_counter() - clock, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name:<34} {seconds:8.1f} {used:8.1f} {memory:6.2f}", flush=True)
    return result


if __name__ == "__main__":
    main()
