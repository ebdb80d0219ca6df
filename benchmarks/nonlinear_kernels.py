"""Where the heuristic of nonlinear kernels holds: against NUTS over all weights.

python benchmarks/nonlinear_kernels.py [--widths 20 50 100] [--activation relu erf]

A network of one layer with two heads and a nonlinear block after the attention learns P
noisy labels of a nonlinear teacher, which attends by the first head alone.  Columns are
rms differences from NUTS on a test set, over the rms of f there: of the mean predictor
at the saddle point of docs/theory/bpkr_weights.md, 11, and of the GP limit; the same of
U_1, over its largest entry; and mean squared test errors.  Monte Carlo errors are taken
off the differences; ± is one standard error.
"""

import argparse

import jax
import numpy as np

import statmech_attn
from statmech_attn import bpkr
from statmech_attn.montecarlo import weight_space
from statmech_attn.montecarlo.posterior_samples.weight_sampling import sample_weights
from statmech_attn.reporting import Silent
from statmech_attn.statistics import summary


HEADS = (2,)
INPUTS, TESTS, NOISE = 5, 200, 0.3


def task(examples: int, seed: int):
    """Attentioned inputs, and labels of a teacher with three hidden units."""
    rng = np.random.default_rng(seed)
    teacher = np.random.default_rng(0).normal(size=(3, INPUTS))
    xi = rng.normal(size=(examples, INPUTS, 2))
    hidden = np.tanh(xi[:, :, 0] @ teacher.T)
    return xi, hidden.sum(axis=1) / np.sqrt(3) + NOISE * rng.normal(size=examples)


def difference(estimate, mean, stderr) -> tuple[float, float]:
    """Rms difference without the Monte Carlo error, and its standard error."""
    gap, n = np.ravel(np.asarray(estimate) - mean), np.size(mean)
    square = np.mean(gap**2 - np.ravel(stderr) ** 2)
    spread = 2 * np.sqrt(np.sum((gap * np.ravel(stderr)) ** 2)) / n
    rms = np.sqrt(max(square, 0.0))
    return rms, spread / (2 * max(rms, np.sqrt(spread)))


def row(activation: str, T: float, width: int, options) -> str:
    """One line of the table."""
    xi, Y = task(options.examples, 1)
    xi_test, Y_test = task(TESTS, 2)
    network = {"heads": HEADS, "width": width, "temperature": T}
    linear = bpkr.Problem(xi, Y, **network)
    train = bpkr.activation_kernels(activation, xi, heads=HEADS)
    test = bpkr.activation_kernels(activation, xi_test, xi, heads=HEADS)
    problem = bpkr.Problem(train, Y, **network)
    saddle = problem.solve()
    block = -(-options.draws // 100) * 10
    drawn = sample_weights(
        jax.random.key(width),
        weight_space.posterior(linear, activation=activation),
        xi_test=jax.numpy.asarray(xi_test),
        y_test=jax.numpy.asarray(Y_test),
        draws=10 * block,
        warmup=options.warmup,
        chains=options.chains,
        block=block,
        folder=None,
        study="",
        report=Silent(),
    )
    f, stderr = drawn.predictor_mean, drawn.predictor_mean_stderr
    scale = np.sqrt(np.mean(f**2))
    limit = problem.gaussian_process().predict(test).mean
    means = saddle.predict(test).mean, limit
    gaps = [difference(mean, f, stderr) for mean in means]
    U, top = summary(drawn.U[0]), np.abs(drawn.U[0].mean(axis=(0, 1))).max()
    gaps_U = [difference(u, U.mean, U.stderr) for u in (saddle.U[0], np.eye(2))]
    errors = [np.mean((np.asarray(mean) - Y_test) ** 2) for mean in means]
    errors.append(np.mean((f - Y_test) ** 2 - stderr**2))
    columns = [activation, f"{T:g}", f"{width}", f"{options.examples / width:.2g}"]
    columns += [f"{gap / scale:.3f} ± {error / scale:.3f}" for gap, error in gaps]
    columns += [f"{gap / top:.3f} ± {error / top:.3f}" for gap, error in gaps_U]
    columns += [f"{error:.3f}" for error in errors]
    columns += [f"{float(U.r_hat.max()):.3f}", f"{drawn.divergences}"]
    return f"| {' | '.join(columns)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--activation", nargs="+", default=["relu", "erf"])
    parser.add_argument("--temperature", nargs="+", type=float, default=[0.1])
    parser.add_argument("--widths", nargs="+", type=int, default=[20, 50, 100])
    parser.add_argument("--examples", type=int, default=30)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--chains", type=int, default=2)
    options = parser.parse_args()
    statmech_attn.setup()
    print(
        "| activation | T | N | P/N | Δf | Δf, GP | ΔU | ΔU, GP | error | GP | NUTS |"
        " R̂ | divergent |"
    )
    print("| --- " * 13 + "|")
    for activation in options.activation:
        for T in options.temperature:
            for width in options.widths:
                print(row(activation, T, width, options), flush=True)


if __name__ == "__main__":
    main()
