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

from collections.abc import Sequence

from statmech_attn.dmft import ENTROPY_UNIT, OBSERVABLE_LABELS, PRODUCTION, TIME
from statmech_attn.dynamics import diagrams
from statmech_attn.labels import Variable, Variables
from statmech_attn.montecarlo.finite_networks.run_blocks import AVERAGES


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
