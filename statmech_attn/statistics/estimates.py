r"""Numbers with their errors, and tests of whether two samples have one law.

    tau     integrated autocorrelation time, 1 + 2 sum_k rho_k (white noise: 1)
    n_eff   effective sample size, chains * draws / tau

The sum over rho_k stops by Geyer's initial monotone sequence (Statist. Sci. 7, 473
(1992)); with several chains rho_k is that of BDA3, eq. (11.7), so chains that disagree
lower n_eff.  Whether they agree is said by the R-hat of `diagnostics`.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats
from scipy.spatial.distance import cdist


class Estimate(NamedTuple):
    """A mean with what is needed to trust it."""

    value: float
    stderr: float
    tau: float
    n_eff: float


def estimate(chains) -> Estimate:
    """Mean of one or several equally long chains, (chains, draws) or (draws,).

    Raises:
        ValueError: fewer than 8 draws, or a value that is not finite.

    Example:
        >>> import numpy as np
        >>> e = estimate(np.random.default_rng(0).normal(size=(4, 1000)))
        >>> bool(abs(e.value) < 5 * e.stderr), round(e.n_eff / 4000)
        (True, 1)
    """
    chains = _chains(chains)
    rho, variance = _autocorrelation(chains)
    tau = _monotone_sum(rho)
    n_eff = chains.size / tau
    error = float(np.sqrt(variance / n_eff))
    return Estimate(float(chains.mean()), error, tau, n_eff)


def autocorrelation_time(chains) -> float:
    """Integrated autocorrelation time in draws."""
    return estimate(chains).tau


def effective_sample_size(chains) -> float:
    """How many independent draws the chains are worth."""
    return estimate(chains).n_eff


def block_stderr(series, blocks: int = 20):
    """Standard error of the mean over the last axis, from block means."""
    length = series.shape[-1] // blocks
    if length < 1:
        raise ValueError(
            f"block_stderr: need at least {blocks} draws; got {series.shape[-1]}."
        )
    kept = series[..., -blocks * length :]
    means = kept.reshape(*series.shape[:-1], blocks, length).mean(-1)
    return means.std(-1, ddof=1) / np.sqrt(blocks)


class TwoSample(NamedTuple):
    """Evidence that two samples have different laws; small p-values say so."""

    energy_distance: float
    energy_p: float
    marginal_p: float  # smallest Kolmogorov-Smirnov p, times the number of coordinates


def two_sample_test(
    x,
    y,
    *,
    seed: int,
    permutations: int = 999,
) -> TwoSample:
    """Whether samples (n, d) and (m, d) have one law: energy distance, KS.

    The energy distance of the joint laws is tested by permutation, each coordinate by
    Kolmogorov-Smirnov.  Coordinates are divided by their pooled spread first; the
    energy distance is zero only for equal joint laws (Szekely and Rizzo, J. Stat. Plan.
    Inf. 143, 1249 (2013)).

    Raises:
        ValueError: samples that do not have one number of coordinates.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ValueError(
            f"samples must be (n, d) and (m, d); got {x.shape} and {y.shape}."
        )
    pooled = np.concatenate([x, y])
    spread = pooled.std(axis=0)
    varies = spread > 0
    distance = cdist(
        pooled[:, varies] / spread[varies], pooled[:, varies] / spread[varies]
    )
    observed, as_far = _permute(
        distance, len(x), permutations, np.random.default_rng(seed)
    )
    test = lambda i: float(stats.ks_2samp(x[:, i], y[:, i]).pvalue)  # type: ignore[union-attr]
    marginal = [test(i) for i in np.flatnonzero(varies)]
    smallest = min(1.0, min(marginal, default=1.0) * max(len(marginal), 1))
    return TwoSample(observed, (1 + as_far) / (1 + permutations), float(smallest))


def _permute(distance, n, permutations, rng):
    """Energy distance of the first n from the rest; how often chance gives as much."""
    total = len(distance)

    def weights():
        order = rng.permutation(total)
        w = np.full(total, -1.0 / (total - n))
        w[order[:n]] = 1.0 / n
        return w

    first = np.where(np.arange(total) < n, 1.0 / n, -1.0 / (total - n))
    energy = lambda w: -np.einsum("ip,ip->p", w, distance @ w)
    observed = energy(first[:, None])[0]
    drawn = energy(np.stack([weights() for _ in range(permutations)], axis=1))
    return float(observed), int((drawn >= observed * (1 - 1e-12)).sum())


def _chains(chains) -> Float[np.ndarray, "chains draws"]:
    chains = np.atleast_2d(np.asarray(chains, float))
    if chains.ndim != 2 or chains.shape[1] < 8:
        raise ValueError(
            f"chains must be (chains, draws >= 8); got shape {chains.shape}."
        )
    if not np.isfinite(chains).all():
        raise ValueError("chains hold values that are not finite.")
    return chains


def _autocorrelation(chains):
    """rho_k of all lags and the pooled variance (BDA3, eqs. 11.3 and 11.7)."""
    draws = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, 2 * draws)) ** 2
    covariance = np.fft.irfft(power)[:, :draws].mean(axis=0) / draws
    within = covariance[0] * draws / (draws - 1)
    between = chains.mean(axis=1).var(ddof=1) if len(chains) > 1 else 0.0
    pooled = covariance[0] + between
    if pooled == 0:
        return np.eye(1, draws)[0], 0.0
    rho = 1 - (within - covariance * draws / (draws - 1)) / pooled
    rho[0] = 1.0
    return rho, float(pooled)


def _monotone_sum(rho) -> float:
    """1 + 2 sum rho_k over Geyer's initial monotone sequence of pair sums."""
    even = len(rho) // 2 * 2
    pairs = rho[0:even:2] + rho[1:even:2]
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if negative.size else pairs)
    tau = 2 * pairs.sum() - 1
    return float(max(tau, 1 / np.log10(max(len(rho), 10)))) if pairs.size else 1.0
