r"""Trust in Markov chains of arrays: errors of means and whether the chains agree.

`estimates` does this for one number in full; here every entry of an array is a
quantity of its own, and numpyro computes (extra `sampling`).

    n_eff    effective sample size (BDA3, eq. 11.8, with Geyer's monotone sum)
    stderr   standard deviation over sqrt(n_eff)
    r_hat    split chains, normal scores of ranks, the larger of bulk and tail
             (Vehtari et al., Bayesian Anal. 16, 667 (2021))
    BFMI     $\sum_t (E_t - E_{t-1})^2 / \sum_t (E_t - \bar E)^2$ per chain; below
             0.3 the momenta mix too slowly for the tails (Betancourt, arXiv:1604.00695)
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats


class Summary(NamedTuple):
    """Posterior mean and spread of every entry, and what they can be trusted for."""

    mean: Float[np.ndarray, "*shape"]
    stderr: Float[np.ndarray, "*shape"]
    std: Float[np.ndarray, "*shape"]
    n_eff: Float[np.ndarray, "*shape"]
    r_hat: Float[np.ndarray, "*shape"]


def summary(values) -> Summary:
    """Mean, Monte Carlo error and diagnostics of chains (chains, draws, *shape).

    An entry that never changes has error zero and R-hat one; one that is constant in
    every chain but differs among them has an infinite R-hat.

    Raises:
        ValueError: fewer than 4 draws, or a value that is not finite.

    Example:
        >>> import numpy as np
        >>> found = summary(np.random.default_rng(0).normal(size=(4, 500, 3)))
        >>> found.mean.shape, bool((found.r_hat < 1.01).all())
        ((3,), True)
    """
    from numpyro.diagnostics import effective_sample_size

    values = _chains(values)
    std = values.std(axis=(0, 1), ddof=1)
    with np.errstate(invalid="ignore"):  # 0 / 0 of a constant entry
        n_eff = effective_sample_size(values)
    n_eff = np.where(std > 0, n_eff, float(values.shape[0] * values.shape[1]))
    stderr = std / np.sqrt(n_eff)
    return Summary(values.mean(axis=(0, 1)), stderr, std, n_eff, _r_hat(values))


def bfmi(energy) -> Float[np.ndarray, " chains"]:
    """Bayesian fraction of missing information of chains of energies (chains, draws).

    Example:
        >>> import numpy as np
        >>> white = np.random.default_rng(0).normal(size=(1, 4000))
        >>> round(float(bfmi(white)[0]))
        2
    """
    energy = _chains(energy)
    if energy.ndim != 2:
        raise ValueError(f"energy must be (chains, draws); got shape {energy.shape}.")
    changes = (np.diff(energy, axis=1) ** 2).sum(axis=1)
    return changes / ((energy - energy.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)


def _r_hat(values) -> Float[np.ndarray, "*shape"]:
    folded = np.abs(values - np.median(values, axis=(0, 1)))
    return np.maximum(_r_hat_of_ranks(values), _r_hat_of_ranks(folded))


def _r_hat_of_ranks(values) -> Float[np.ndarray, "*shape"]:
    from numpyro.diagnostics import split_gelman_rubin

    n = values.shape[0] * values.shape[1]
    ranks = stats.rankdata(values.reshape(n, -1), axis=0).reshape(values.shape)
    scores = stats.norm.ppf((ranks - 0.375) / (n + 0.25))
    constant = values.min(axis=(0, 1)) == values.max(axis=(0, 1))
    return np.where(constant, 1.0, split_gelman_rubin(scores))


def _chains(values) -> Float[np.ndarray, "chains draws *shape"]:
    values = np.asarray(values, float)
    if values.ndim < 2 or values.shape[1] < 4:
        raise ValueError(
            f"chains must be (chains, draws >= 4, ...); got shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("chains hold values that are not finite.")
    return values
