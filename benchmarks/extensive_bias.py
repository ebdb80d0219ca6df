"""Exponent in N of the bias of spins with alpha N patterns, expected -1.

python benchmarks/extensive_bias.py [--sizes 40 80 160] [--samples 20000]

The bias of a mean falls like 1/N and its standard error like (N samples)^{-1/2}: at
N = 1500, twenty samples leave the bias a hundredth of an error.  So N is small and the
samples are many, drawn side by side by `jax.vmap`; the theory is closed, or sums over
all histories of a spin, whose errors are 1e-7 at three steps.  A line for
every choice and step: N times the bias with its error, and the exponent of the overlap.
"""

import argparse
import runpy
from pathlib import Path

import jax
import numpy as np

import statmech_attn
from statmech_attn import dmft, montecarlo
from statmech_attn.dmft import extensive
from statmech_attn.statistics import bias_slope


SETS = {  # ensemble, C, alpha, beta, gamma
    "sequence, C = 4": (extensive.cycle(), 4, 0.25, 4.0, 20.0),
    "identical, C = 1": (extensive.identical(), 1, 0.1, 2.0, 0.0),
}
START = 0.8
BATCH = 500
TESTS = Path(__file__).resolve().parents[1] / "tests"
HISTORIES = runpy.run_path(str(TESTS / "dmft" / "extensive" / "histories.py"))
ONE = dmft.site_classes(np.ones((4, 1, 1)))


def biases(name: str, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Mean overlap less the theory at every N and step, and its standard error."""
    ensemble, C, alpha, beta, gamma = SETS[name]
    problem = extensive.loaded_network(
        dmft.network(ONE, context=C), ensemble, alpha=alpha, beta=beta, gamma=gamma
    )
    steps = options.steps
    solve = extensive.closed if ensemble.is_closed else HISTORIES["summed"]
    theory = np.asarray(solve(problem, [START], steps=steps).value.m_o_se[1:, 0])
    rows = []
    for n_spins in options.sizes:
        plan = montecarlo.extensive_plan(
            problem, ONE, [START], n_spins=n_spins, steps=steps
        )
        drawn = jax.jit(jax.vmap(lambda key: plan.sample(key).m_o_se[1:, 0]))
        keys = jax.random.split(jax.random.key(n_spins), options.samples)
        batches = np.arange(BATCH, options.samples, BATCH)
        m = np.concatenate([drawn(part) for part in np.split(keys, batches)])
        rows.append((m.mean(0) - theory, m.std(0, ddof=1) / np.sqrt(len(m))))
    bias, error = (np.array(x) for x in zip(*rows))
    return bias, error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[40, 80, 160])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    statmech_attn.setup()
    print(f"set | step | N bias at N = {options.sizes} | exponent")
    for name in SETS:
        bias, error = biases(name, options)
        column = lambda x: x.T[None].transpose(2, 1, 0)  # N, step, one entry
        used = np.ones_like(column(bias), bool)
        slope = bias_slope(options.sizes, column(bias), column(error), used, (2,))
        for step in range(options.steps):
            words = "  ".join(
                f"{n * b:.3f} ± {n * e:.3f}"
                for n, b, e in zip(options.sizes, bias[:, step], error[:, step])
            )
            exponent = f"{slope.value[step]:.2f} ± {slope.stderr[step]:.2f}"
            print(f"{name} | {step + 1} | {words} | {exponent}", flush=True)


if __name__ == "__main__":
    main()
