"""Tests of whether two samples have one law."""

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.spatial.distance import cdist


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
