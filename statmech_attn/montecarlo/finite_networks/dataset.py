r"""Simulations as a self-describing dataset, one per parameter scan in beta.

For each observable X of A, m_o_se, m_v, m_q, m_k:

    X_mean, X_stderr, X_spread     (n_spins, beta, time, pattern)       over all runs
    X                              (n_spins, beta, run, time, pattern)  stored runs
    A_stationary_mean, ..._square  (n_spins, beta, all_runs, pattern)   over time

and, where it was asked for, `entropy_production_stationary_mean` (n_spins, beta,
all_runs).

A list of points has `index` in the place of beta, with the parameters along it.

Row 0 of time is the first generated token and the attention after it.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from statmech_attn.dmft import (
    ENTROPY_UNIT,
    OBSERVABLE_LABELS,
    OBSERVABLES,
    PRODUCTION,
    TIME,
)
from statmech_attn.dynamics import diagrams
from statmech_attn.labels import Variable, Variables
from statmech_attn.montecarlo.finite_networks.run_blocks import AVERAGES
from statmech_attn.montecarlo.finite_networks.simulation import Simulation
from statmech_attn.options import Numbers


STEPWISE = ("n_spins", "beta", "time", "pattern")
STORED = ("n_spins", "beta", "run", "time", "pattern")
PER_RUN = ("n_spins", "beta", "all_runs", "pattern")
BETA = STEPWISE[1]  # in the place of which a list of points has its index


def _but_beta(dims: Sequence[str]) -> str:
    return " ".join(name for name in dims if name != BETA)


ROWS = {  # ending, words, symbol of what is stored of an observable at every step
    "_mean": (", mean over runs", r"\bar{{{}}}"),
    "_stderr": (", standard error of the mean", r"s_{{{}}}/\sqrt{{R}}"),
    "_spread": (", standard deviation over runs", r"s_{{{}}}"),
}
OF_RUNS = {
    "mean": ("time average", ""),
    "square": ("time average of the square", "^2"),
}


def stationary(name: str) -> str:
    """Name of the variable that holds time averages of single runs.

    Args:
        name: of an average of `TimeAverages`.

    Example:
        >>> stationary("A_square"), stationary("entropy_production")
        ('A_stationary_square', 'entropy_production_stationary_mean')
    """
    if name == PRODUCTION:
        return f"{name}_stationary_mean"
    observable, part = name.rsplit("_", 1)
    return f"{observable}_stationary_{part}"


def _averaged(name: str) -> Variable:
    """Time averages of single runs, as in `AVERAGES`."""
    observable, part = name.rsplit("_", 1)
    long_name, symbol = OBSERVABLE_LABELS[observable]
    words, mark = OF_RUNS[part]
    return Variable(
        stationary(name),
        _but_beta(PER_RUN),
        f"{long_name}, {words} of one run",
        "1",
        rf"\langle {symbol}{mark} \rangle_t",
    )


VARIABLES = Variables(
    *(
        Variable(
            name + ending,
            _but_beta(STEPWISE),
            long_name + words,
            "1",
            form.format(symbol),
            group="" if name + ending in ("m_o_se_mean", "m_o_se_spread") else None,
        )
        for name, (long_name, symbol) in OBSERVABLE_LABELS.items()
        for ending, (words, form) in ROWS.items()
    ),
    *(
        Variable(name, _but_beta(STORED), f"{long_name}, one run", "1", symbol)
        for name, (long_name, symbol) in OBSERVABLE_LABELS.items()
    ),
    *map(_averaged, AVERAGES),
    Variable(
        stationary(PRODUCTION),
        _but_beta(PER_RUN[:-1]),
        "entropy production, time average of one run",
        ENTROPY_UNIT,
        r"\langle \sigma \rangle_t",
        note="with run.entropy_production",
    ),
    Variable("n_spins", "n_spins", "number of spins", "1", "N"),
    Variable(BETA, "", "inverse temperature", "1", r"\beta", group=""),
    diagrams.INDEX,
    TIME,
    Variable("pattern", "pattern", "pattern", "1", "a"),
    Variable("run", "run", "stored run", "1", "r"),
    Variable("all_runs", "all_runs", "run", "1", "r"),
)


def monte_carlo_dataset(
    simulations: Sequence[Simulation],
    beta: Numbers,
    *,
    attrs: Mapping[str, object] | None = None,
    averages: bool = True,
) -> xr.Dataset:
    """Simulations of increasing N, each of batch shape (beta,), as a dataset."""
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
    for name, values in first.averages._asdict().items() if averages else ():
        if values is not None:
            variables[stationary(name)] = _per_run(simulations, name)
    dataset = xr.Dataset(variables, coords)
    for name in dataset.variables:
        dataset[name].attrs |= VARIABLES.attributes(str(name))
    dataset.attrs = {
        "kind": "monte-carlo",
        "method": first.method,
        "runs": first.runs,
        "transient": first.transient,
    } | dict(attrs or {})
    return dataset


def _check(simulations, beta) -> None:
    if not simulations:
        raise ValueError("simulations: at least one is needed.")
    if beta.ndim != 1:
        raise ValueError(f"beta must be a list of values; got shape {beta.shape}.")
    sizes = [s.n_spins for s in simulations]
    if sizes != sorted(set(sizes)):
        raise ValueError(f"simulations must come in increasing n_spins; got {sizes}.")
    produced = lambda s: s.averages.entropy_production is None
    shape = lambda s: (s.sample.A.shape, s.runs, s.transient, s.method, produced(s))
    if len({shape(s) for s in simulations}) > 1:
        raise ValueError(
            "simulations of one dataset need the same runs, steps, transient, stored "
            "runs, method and time averages."
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
    rows = {f"{name}{ending}": moved(pick(ending[1:])) for ending in ROWS}
    return {key: (STEPWISE, x) for key, x in rows.items()} | {name: (STORED, sample)}


def _per_run(simulations, name):
    """Time averages of every run."""
    arrays = [np.asarray(getattr(s.averages, name)) for s in simulations]
    data = np.stack([np.moveaxis(x, (-2, -1), (0, 1)) for x in arrays])
    return PER_RUN[: data.ndim], data
