"""Numbers of comparisons with their stated errors, of data whose truth is known.

They are rows of `benchmarks/stated_errors.py`: drawn with normal errors, so that what
is measured is the comparison and no simulation.
"""

import numpy as np
import xarray as xr

from statmech_attn import comparison, statistics
from statmech_attn.comparison import irreversibility, posteriors


SIZES, WIDTHS = np.array([10**4, 10**5, 10**6]), np.array([10.0, 30.0, 100.0])


def power_law(relative, runs, repeats):
    """Of numbers that follow N^-1/2, with normal errors from `runs` runs."""
    rng, n = np.random.default_rng(0), np.array([100, 1000, 10_000])
    values = (n / n[0]) ** -0.5
    drawn = 1 + relative * rng.normal(size=(3, runs, repeats))
    drawn *= values[:, None, None]
    error = drawn.std(axis=1, ddof=1) / np.sqrt(runs)
    return statistics.power_law(n, drawn.mean(axis=1), error)


def trajectories(part, alike, runs, repeats):
    """By `compare`, of 16 numbers with a bias and a spread of known powers."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(3, runs, repeats, *((1, 1) if alike else (8, 2))))
    drawn = np.broadcast_to(drawn, (3, runs, repeats, 8, 2)) / 100
    N = SIZES.reshape(3, 1, 1, 1)
    mean, spread = drawn.mean(1) / N**0.5 + 20 / N, drawn.std(1, ddof=1) / N**0.5
    sampled = {"_mean": mean, "_spread": spread, "_stderr": spread / runs**0.5}
    known = {"": 0 * mean[0], "_noise_std": 0 * mean[0] + 0.01}
    dims, both = ("n_spins", "beta", "time", "pattern"), []
    at = {"n_spins": SIZES, "beta": np.arange(repeats), "gamma": 1.0, "epsilon": 0.0}
    about = dict.fromkeys(("network", "start", "method"), "")
    for rows, over in ((known, dims[1:]), (sampled, dims)):
        named = {f"{x}{y}": (over, rows[y]) for x in ("A", "m_o_se") for y in rows}
        both.append(xr.Dataset(named, at, about | {"runs": runs, "transient": 0}))
    found = comparison.compare(*both)
    return (found[f"A_{part}_slope{end}"].values for end in ("", "_stderr"))


def production(part, of_map, runs, repeats):
    """Of spins with a bias of 20 / N, and of a map whose rate has an error."""
    rng = np.random.default_rng(0)
    rates = 0.05 * rng.normal(size=(3, repeats, runs)) / np.sqrt(SIZES)[:, None, None]
    rates += 1 + (20 / SIZES)[:, None, None]
    rate, error = 1 + of_map * rng.normal(size=repeats), np.full(repeats, of_map)
    found = irreversibility.rate_differences(rate, error, 16, rates, SIZES, ("beta",))
    return (found[f"{part}{end}"][1] for end in ("", "_stderr"))


def distances(alike, error, repeats):
    """Exponents of U_1's distance, which is 5 / N; repeats are along temperature."""
    U, axes = np.eye(2) + np.zeros((3, repeats, 2, 2)), ("width", "temperature")
    shape = (3, repeats, 1, 1) if alike else U.shape
    drawn = U + error * np.random.default_rng(0).normal(size=shape)
    pair, about = (*axes, "path_1", "path_1_pair"), {"task": "", "prior": ""}
    point, at = (axes, U[..., 0, 0]), {"width": WIDTHS, "temperature": range(repeats)}
    known = {"U_1": (pair, U + (5 / WIDTHS)[:, None, None, None]), "U_a": point}
    ended = {"": drawn, "_stderr": 0 * U + error, "_r_hat": 0 * U + 1}
    ended["_n_eff"] = 0 * U + 2000
    sampled = {f"U_1{end}": (pair, values) for end, values in ended.items()}
    sampled |= {"U_a": point, "U_a_stderr": (axes, 0 * point[1] + error)}
    about |= {"method": "order-parameter"}
    files = (xr.Dataset(rows, at, about) for rows in (known, sampled))
    found = posteriors.compare(next(files), [*files]).sel(estimate="saddle")
    return (found[f"U_1_rms_slope{end}"].values for end in ("", "_stderr"))
