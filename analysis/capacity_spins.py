"""Capacity by spins: at which load do samples of patterns stop to retrieve?

For the contexts, temperatures and gamma of analysis/capacity.toml it simulates samples
of the patterns at several loads and N from a token that is the pattern, counts those
that have an overlap above one half after some steps, and fits

    P(retrieved) = 1 / (1 + exp((alpha - alpha_N) / width))

by largest likelihood.  The error of alpha_N comes from samples drawn again from those
there are.  The theory after as many steps from the same start has no such width; it
retrieves for a while above the capacity, which is the limit of many steps.

    python analysis/capacity_spins.py --output capacity_spins.h5 [--sizes 400 1600]

prints a table, and writes a file that plotting.capacities(theory, spins) draws.
"""

import argparse
import itertools
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit

import statmech_attn
from statmech_attn import dmft, montecarlo, storage
from statmech_attn.dmft import extensive
from statmech_attn.studies import records


APART = 0.02  # loads, which are multiples of it, so that programs are used again
LOADS = 5  # around that of the theory
WITHIN = 0.05, 0.6  # loads between which that is sought
DRAWS = 200  # of samples that are drawn again
RETRIEVED = 0.5
ONE = dmft.site_classes(np.ones((4, 1, 1)))


class Point(NamedTuple):
    """Context and parameters at which a threshold is sought."""

    context: int
    beta: float
    gamma: float

    def posed(self, alpha: float) -> extensive.LoadedNetwork:
        """One pattern among alpha N of a sequence."""
        net = dmft.network(ONE, context=self.context)
        given = {"alpha": alpha, "beta": self.beta, "gamma": self.gamma}
        return extensive.loaded_network(net, extensive.cycle(), **given)


def retrieved(point: Point, patterns: int, n_spins: int, options) -> np.ndarray:
    """Whether the samples retrieve at a number of patterns."""
    result = montecarlo.simulate_extensive(
        point.posed(patterns / n_spins),
        ONE,
        [1.0],
        n_spins=n_spins,
        samples=options.samples,
        steps=options.steps,
        key=jax.random.fold_in(jax.random.key(options.seed), patterns),
    )
    return np.abs(result.samples.m_o_se[:, -1, 0]) > RETRIEVED


def fitted(loads: np.ndarray, hits: np.ndarray) -> float:
    """The load at which half of the samples retrieve, by largest likelihood."""

    def lost(x):
        argument = (loads[:, None] - x[0]) / np.exp(x[1])
        return -np.where(hits, log_expit(-argument), log_expit(argument)).sum()

    start = [loads[0] + hits.mean() * np.ptp(loads), np.log(np.ptp(loads) / 10)]
    bounds = [(loads[0], loads[-1]), (np.log(1e-3), np.log(0.2))]
    return minimize(lost, start, bounds=bounds).x[0]


def threshold(loads: np.ndarray, hits: np.ndarray, seed: int) -> tuple[float, float]:
    """The load at which half of the samples retrieve, and its standard error.

    Neither is known where it lies outside the loads.
    """
    rng = np.random.default_rng(seed)
    count = hits.shape[1]
    again = [
        np.stack([row[rng.integers(count, size=count)] for row in hits])
        for _ in range(DRAWS)
    ]
    spread = np.std([fitted(loads, other) for other in again], ddof=1)
    value = fitted(loads, hits)
    inside = loads[0] < value < loads[-1]
    return (value, spread) if inside else (np.nan, np.nan)


def of_theory(point: Point, steps: int) -> float:
    """The load at which the overlap after as many steps passes one half."""
    low, high = WITHIN
    while high - low > 1e-4:
        alpha = (low + high) / 2
        value = extensive.closed(point.posed(alpha), [1.0], steps=steps).value
        retrieves = float(value.m_o_se[-1, 0]) > RETRIEVED
        low, high = (alpha, high) if retrieves else (low, alpha)
    return (low + high) / 2


def of_point(point: Point, options) -> dict[str, np.ndarray]:
    """Load of the theory, and thresholds of every N."""
    after, thresholds = of_theory(point, options.steps), []
    loads = APART * (np.floor(after / APART) + np.arange(LOADS) - LOADS // 2 + 1)
    for n_spins in options.sizes:
        counts = np.round(loads * n_spins).astype(int)
        hits = [retrieved(point, k, n_spins, options) for k in counts]
        thresholds.append(threshold(counts / n_spins, np.array(hits), options.seed))
    value, error = np.array(thresholds).T
    words = "  ".join(f"{v:.4f} ± {e:.4f}" for v, e in zip(value, error))
    print(
        f"{point.context} | {point.beta:g} | {point.gamma:g} | {after:.4f} | {words}",
        flush=True,
    )
    return {"after": after, "all": value, "errors": error}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("capacity_spins.h5"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[400, 1600])
    parser.add_argument("--contexts", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--betas", type=float, nargs="+", default=[np.inf, 5.0, 2.5])
    parser.add_argument("--gammas", type=float, nargs="+", default=[0.0, 30.0, 60.0])
    parser.add_argument("--samples", type=int, default=24)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    statmech_attn.setup()
    print(
        f"C | beta | gamma | theory after {options.steps} steps | N = {options.sizes}"
    )
    axes = options.contexts, options.betas, options.gammas
    points = [of_point(Point(*x), options) for x in itertools.product(*axes)]
    lengths = *map(len, axes), -1
    of = lambda name: np.array([point[name] for point in points]).reshape(lengths)
    dims = ("context", "beta", "gamma")
    dataset = records.THRESHOLDS.labelled(
        {
            "threshold": ((*dims, "n_spins"), of("all")),
            "threshold_error": ((*dims, "n_spins"), of("errors")),
            "after": (dims, of("after")[..., 0]),
        },
        dict(zip(dims, map(np.array, axes))) | {"n_spins": np.array(options.sizes)},
    ).assign_attrs(kind="capacity-spins", samples=options.samples, steps=options.steps)
    chosen = {k: v for k, v in vars(options).items() if k != "output"}
    rows = (f"{name} = {value}\n" for name, value in chosen.items())
    study = f'kind = "{dataset.attrs["kind"]}"\n' + "".join(rows)
    storage.write(options.output, dataset, study=study)


if __name__ == "__main__":
    main()
