"""Capacity by spins: at which load do samples of patterns stop to retrieve?

For contexts and temperatures of analysis/capacity.toml it simulates samples of the
patterns at several loads and N from a token that is the pattern, counts those that have
an overlap above one half after some steps, and fits

    P(retrieved) = 1 / (1 + exp((alpha - alpha_N) / width))

by largest likelihood.  The error of alpha_N comes from samples drawn again from those
there are.  The theory after as many steps from the same start has no such width.

    python analysis/capacity_spins.py --output capacity_spins.h5 [--sizes 400 1600]

prints a table, and writes a file that plotting.capacities(theory, spins) draws.
"""

import argparse
from pathlib import Path

import jax
import numpy as np
import xarray as xr
from scipy.optimize import minimize
from scipy.special import log_expit

import statmech_attn
from statmech_attn import dmft, montecarlo, storage
from statmech_attn.dmft import extensive


NEAR = (0.8, 0.88, 0.96, 1.04, 1.12)  # loads in units of that of the theory
WITHIN = 0.05, 0.6  # loads between which that is sought
DRAWS = 200  # of samples that are drawn again
RETRIEVED = 0.5
ONE = dmft.site_classes(np.ones((4, 1, 1)))


def posed(context: int, beta: float, alpha: float) -> extensive.LoadedNetwork:
    """One pattern among alpha N of a sequence, with equal attention to all tokens."""
    net = dmft.network(ONE, context=context)
    return extensive.loaded_network(net, extensive.cycle(), alpha=alpha, beta=beta)


def retrieved(context, beta, patterns, n_spins, options) -> np.ndarray:
    """Whether the samples retrieve at a number of patterns."""
    found = montecarlo.simulate_extensive(
        posed(context, beta, patterns / n_spins),
        ONE,
        [1.0],
        n_spins=n_spins,
        samples=options.samples,
        steps=options.steps,
        key=jax.random.key(options.seed),
    )
    return np.abs(found.samples.m_o_se[:, -1, 0]) > RETRIEVED


def fitted(loads: np.ndarray, hits: np.ndarray) -> float:
    """The load at which half of the samples retrieve, by largest likelihood."""

    def lost(x):
        argument = (loads[:, None] - x[0]) / np.exp(x[1])
        return -np.where(hits, log_expit(-argument), log_expit(argument)).sum()

    start = [loads[0] + hits.mean() * np.ptp(loads), np.log(np.ptp(loads) / 10)]
    bounds = [(loads[0], loads[-1]), (np.log(1e-3), np.log(0.2))]
    return minimize(lost, start, bounds=bounds).x[0]


def threshold(loads: np.ndarray, hits: np.ndarray, seed: int) -> tuple[float, float]:
    """The load at which half of the samples retrieve, and its standard error."""
    rng = np.random.default_rng(seed)
    count = hits.shape[1]
    again = [
        np.stack([row[rng.integers(count, size=count)] for row in hits])
        for _ in range(DRAWS)
    ]
    spread = np.std([fitted(loads, other) for other in again], ddof=1)
    return fitted(loads, hits), spread


def of_theory(context: int, beta: float, steps: int) -> float:
    """The load at which the overlap after as many steps passes one half."""
    low, high = WITHIN
    while high - low > 1e-4:
        alpha = (low + high) / 2
        value = extensive.closed(posed(context, beta, alpha), [1.0], steps=steps).value
        retrieves = float(value.m_o_se[-1, 0]) > RETRIEVED
        low, high = (alpha, high) if retrieves else (low, alpha)
    return (low + high) / 2


def of_point(context: int, beta: float, options) -> dict[str, np.ndarray]:
    """Load of the theory, and thresholds of every N."""
    after, thresholds = of_theory(context, beta, options.steps), []
    for n_spins in options.sizes:
        counts = np.round(np.array(NEAR) * after * n_spins).astype(int)
        hits = [retrieved(context, beta, k, n_spins, options) for k in counts]
        thresholds.append(threshold(counts / n_spins, np.array(hits), options.seed))
    value, error = np.array(thresholds).T
    words = "  ".join(f"{v:.4f} ± {e:.4f}" for v, e in zip(value, error))
    print(f"{context} | {beta:g} | {after:.4f} | {words}", flush=True)
    return {"after": after, "all": value, "errors": error}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("capacity_spins.h5"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[400, 1600])
    parser.add_argument("--contexts", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--betas", type=float, nargs="+", default=[5.0])
    parser.add_argument("--samples", type=int, default=24)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    statmech_attn.setup()
    print(f"C | beta | theory after {options.steps} steps | N = {options.sizes}")
    rows = [
        [of_point(C, beta, options) for beta in options.betas] for C in options.contexts
    ]
    of = lambda name: np.array([[point[name] for point in row] for row in rows])
    dims = ("context", "beta")
    dataset = xr.Dataset(
        {
            "capacity": (dims, of("all")[..., -1]),
            "capacity_error": (dims, of("errors")[..., -1]),
            "threshold": ((*dims, "n_spins"), of("all")),
            "threshold_error": ((*dims, "n_spins"), of("errors")),
            "after": (dims, of("after")),
        },
        {
            "context": options.contexts,
            "beta": options.betas,
            "gamma": 0.0,
            "n_spins": options.sizes,
        },
        {"kind": "capacity-spins", "samples": options.samples, "steps": options.steps},
    )
    chosen = {k: v for k, v in vars(options).items() if k != "output"}
    study = "".join(f"{name} = {value}\n" for name, value in chosen.items())
    storage.write(options.output, dataset, study=study)


if __name__ == "__main__":
    main()
