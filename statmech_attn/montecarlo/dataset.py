r"""Simulations as a self-describing dataset, one per parameter scan in beta.

For each observable X of A, m_o_se, m_v, m_q, m_k:

    X_mean, X_stderr, X_spread     (n_spins, beta, time, pattern)       over all runs
    X                              (n_spins, beta, run, time, pattern)  stored runs
    A_stationary_mean, ..._square  (n_spins, beta, all_runs, pattern)   over time

Row 0 of time is the first generated token and the attention after it.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from statmech_attn.dmft import OBSERVABLES
from statmech_attn.montecarlo.runs import AVERAGES
from statmech_attn.montecarlo.simulate import Simulation


OBSERVABLE_LABELS = {
    "A": ("attention", "A"),
    "m_o_se": ("semantic output overlap", "m^{o,SE}"),
    "m_v": ("value overlap", "m^v"),
    "m_q": ("query overlap", "m^q"),
    "m_k": ("key overlap", "m^k"),
}
STEPWISE = ("n_spins", "beta", "time", "pattern")
PER_RUN = ("n_spins", "beta", "all_runs", "pattern")


def monte_carlo_dataset(
    simulations: Sequence[Simulation],
    beta,
    *,
    attrs: Mapping[str, object] | None = None,
    averages: bool = True,
) -> xr.Dataset:
    """Simulations of several N over one list of beta as a dataset.

    Args:
        simulations: results with batch shape (beta,), the same runs, steps, transient
            and method for every N, in increasing N.
        beta: the values of beta, (n,).
        attrs: more attributes, such as the network and the start.
        averages: whether to add the time averages of single runs.

    Raises:
        ValueError: simulations that do not belong together.
    """
    beta = np.atleast_1d(np.asarray(beta, float))
    _check(simulations, beta)
    first = simulations[0]
    steps, n_patterns = first.mean.A.shape[:2]
    coords = {
        "n_spins": ("n_spins", np.array([s.n_spins for s in simulations], np.int64)),
        "beta": ("beta", beta),
        "time": ("time", np.arange(steps)),
        "pattern": ("pattern", np.arange(1, n_patterns + 1)),
        "run": ("run", np.arange(first.sample.A.shape[-1])),
        "all_runs": ("all_runs", np.arange(first.runs)),
    }
    variables = {}
    for name in OBSERVABLES:
        variables |= _stepwise(simulations, name)
    for name in AVERAGES if averages else ():
        variables[stationary(name)] = _per_run(simulations, name)
    dataset = xr.Dataset(variables, coords)
    for name, (long_name, symbol) in COORDINATES.items():
        dataset[name].attrs |= _attributes(long_name, symbol)
    dataset.attrs = {
        "kind": "monte-carlo",
        "method": first.method,
        "runs": first.runs,
        "transient": first.transient,
    } | dict(attrs or {})
    return dataset


COORDINATES = {
    "n_spins": ("number of spins", "N"),
    "beta": ("inverse temperature", r"\beta"),
    "time": ("generated tokens before this one", "t"),
    "pattern": ("pattern", "a"),
    "run": ("stored run", "r"),
    "all_runs": ("run", "r"),
}


def _check(simulations, beta) -> None:
    if not simulations:
        raise ValueError("simulations: at least one is needed.")
    if beta.ndim != 1:
        raise ValueError(f"beta must be a list of values; got shape {beta.shape}.")
    sizes = [s.n_spins for s in simulations]
    if sizes != sorted(set(sizes)):
        raise ValueError(f"simulations must come in increasing n_spins; got {sizes}.")
    shape = lambda s: (s.sample.A.shape, s.runs, s.transient, s.method)
    if len({shape(s) for s in simulations}) > 1:
        raise ValueError(
            "simulations of one dataset need the same runs, steps, transient, stored "
            "runs and method."
        )
    if simulations[0].mean.A.shape[2:] != beta.shape:
        raise ValueError(
            f"simulations have batch shape {simulations[0].mean.A.shape[2:]}; "
            f"beta has {beta.shape}."
        )


def _stepwise(simulations, name):
    """Mean, error, spread and stored runs of one observable."""
    pick = lambda part: [
        np.asarray(getattr(getattr(s, part), name)) for s in simulations
    ]
    moved = lambda arrays: np.stack([np.moveaxis(x, 2, 0) for x in arrays])
    sample = np.stack([np.moveaxis(x, (2, 3), (0, 1)) for x in pick("sample")])
    long_name, symbol = OBSERVABLE_LABELS[name]
    return {
        f"{name}_mean": _variable(
            STEPWISE,
            moved(pick("mean")),
            f"{long_name}, mean over runs",
            rf"\bar{{{symbol}}}",
        ),
        f"{name}_stderr": _variable(
            STEPWISE,
            moved(pick("stderr")),
            f"{long_name}, standard error of the mean",
            rf"s_{{{symbol}}}/\sqrt{{R}}",
        ),
        f"{name}_spread": _variable(
            STEPWISE,
            moved(pick("spread")),
            f"{long_name}, standard deviation over runs",
            rf"s_{{{symbol}}}",
        ),
        name: _variable(
            ("n_spins", "beta", "run", "time", "pattern"),
            sample,
            f"{long_name}, one run",
            symbol,
        ),
    }


def stationary(name: str) -> str:
    """Name of the variable that holds time averages of single runs."""
    observable, part = name.rsplit("_", 1)
    return f"{observable}_stationary_{part}"


def per_run_attributes(name: str) -> dict[str, str]:
    """Attributes of the same variable."""
    observable, part = name.rsplit("_", 1)
    long_name, symbol = OBSERVABLE_LABELS[observable]
    words, mark = {
        "mean": ("time average", ""),
        "square": ("time average of the square", "^2"),
    }[part]
    return _attributes(
        f"{long_name}, {words} of one run", rf"\langle {symbol}{mark} \rangle_t"
    )


def _per_run(simulations, name):
    """Time averages of every run."""
    arrays = [np.asarray(getattr(s.averages, name)) for s in simulations]
    data = np.stack([np.moveaxis(x, (1, 2), (0, 1)) for x in arrays])
    return PER_RUN, data, per_run_attributes(name)


def _variable(dims, data, long_name, symbol):
    return dims, data, _attributes(long_name, symbol)


def _attributes(long_name: str, symbol: str) -> dict[str, str]:
    return {"long_name": long_name, "units": "1", "symbol": symbol}
