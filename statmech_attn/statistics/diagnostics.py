r"""Trust in Markov chains of arrays: errors of means and whether the chains agree.

Every entry of an array is a quantity of its own; numpyro computes (extra `sampling`).

    n_eff    effective sample size (BDA3, eq. 11.8, with Geyer's monotone sum), at most
             n log10 n of n draws, as in Stan
    stderr   standard deviation over sqrt(n_eff)
    r_hat    split chains, normal scores of ranks, the larger of bulk and tail
             (Vehtari et al., Bayesian Anal. 16, 667 (2021))
    BFMI     $\sum_t (E_t - E_{t-1})^2 / \sum_t (E_t - \bar E)^2$ per chain; below
             0.3 the momenta mix too slowly for the tails (Betancourt, arXiv:1604.00695)
"""

from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Float

from statmech_attn.options import Gaps, Numbers
from statmech_attn.statistics.means import not_below_rounding


CHUNK = 2**19  # numbers whose ranks and transforms are held together


class Summary(NamedTuple):
    """Posterior mean and spread of every entry, and what they can be trusted for.

    Attributes:
        mean: posterior mean.
        stderr: Monte Carlo standard error of the mean.
        std: posterior standard deviation.
        n_eff: effective number of draws.
        r_hat: R-hat; 1 where the chains have mixed.
    """

    mean: Float[np.ndarray, "*shape"]
    stderr: Float[np.ndarray, "*shape"]
    std: Float[np.ndarray, "*shape"]
    n_eff: Float[np.ndarray, "*shape"]
    r_hat: Float[np.ndarray, "*shape"]


def summary(values: Annotated[Gaps, "chains draws *shape"]) -> Summary:
    """Mean, Monte Carlo error and diagnostics of chains (chains, draws, *shape).

    An entry of which one chain never changes was not sampled: it counts one draw per
    chain, and its R-hat is infinite.  If it is the same number in all chains nothing
    can be said of its error: `stderr` and `r_hat` are NaN.
    """
    values = _chains(values)
    chains, draws, *shape = values.shape
    entries = values.reshape(chains, draws, -1)
    step = max(1, CHUNK // (chains * draws))
    starts = range(0, max(1, entries.shape[2]), step)
    parts = [_summary(entries[..., i : i + step].copy()) for i in starts]
    return Summary(*(np.concatenate(p).reshape(shape) for p in zip(*parts)))


def bfmi(energy: Annotated[Numbers, "chains draws"]) -> Float[np.ndarray, " chains"]:
    """Bayesian fraction of missing information of the energies of every chain."""
    energy = _chains(energy)
    changes = (np.diff(energy, axis=1) ** 2).sum(axis=1)
    return changes / ((energy - energy.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)


def _summary(values: Float[np.ndarray, "chains draws n"]) -> Summary:
    from numpyro.diagnostics import effective_sample_size

    std = values.std(axis=(0, 1), ddof=1)
    draws = values.shape[0] * values.shape[1]
    most = draws * np.log10(draws)
    with np.errstate(invalid="ignore"):  # 0 / 0 of a constant entry
        n_eff = effective_sample_size(values)
    # Few draws that alternate give a correlation time near zero, or below.
    n_eff = np.where((n_eff > 0) & (n_eff < most), n_eff, most)
    changes = (values.min(axis=1) < values.max(axis=1)).all(axis=0)
    n_eff = np.where(changes, n_eff, float(len(values)))
    r_hat = np.where(changes, _r_hat(values), np.inf)
    same = values.min(axis=(0, 1)) == values.max(axis=(0, 1))
    mean = values.mean(axis=(0, 1))
    stderr = not_below_rounding(std / np.sqrt(n_eff), mean, draws)
    r_hat, stderr = (np.where(same, np.nan, a) for a in (r_hat, stderr))
    return Summary(mean, stderr, std, n_eff, r_hat)


def _r_hat(values) -> Float[np.ndarray, "*shape"]:
    folded = np.abs(values - np.median(values, axis=(0, 1)))
    return np.maximum(_r_hat_of_ranks(values), _r_hat_of_ranks(folded))


def _r_hat_of_ranks(values) -> Float[np.ndarray, "*shape"]:
    from numpyro.diagnostics import split_gelman_rubin
    from scipy import special, stats  # half a second

    n = values.shape[0] * values.shape[1]
    ranks = stats.rankdata(values.reshape(n, -1), axis=0).reshape(values.shape)
    with np.errstate(invalid="ignore", divide="ignore"):  # of a chain that never moves
        return split_gelman_rubin(special.ndtri((ranks - 0.375) / (n + 0.25)))


def _chains(values) -> Float[np.ndarray, "chains draws *shape"]:
    values = np.asarray(values, float)
    if values.ndim < 2 or values.shape[1] < 4:
        raise ValueError(
            f"chains must be (chains, draws >= 4, ...); got shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("chains hold values that are not finite.")
    return values
