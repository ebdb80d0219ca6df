r"""Means with their errors: of samples, of what is known, of series.

mean      $\bar v = \sum_r v_r / R$ over the R values, or over those that are not NaN
stderr    $\sqrt{\sum_r (v_r - \bar v)^2 / (R (R - 1))}$, and no less than rounding

Rounding: a number is known to u = eps/2 of its size.  The sum of n terms of size v
rounds n - 1 times, the k-th by u k v at most and with either sign, which adds up to
$u v \sqrt{n^3/3}$, of the mean $u v \sqrt{n/3}$; with the last digit of the result

rounding  $u |v| \sqrt{1 + n/3}$

Shares: of n samples k have a property, and the error of p = k/n is half of Wilson's
interval of one standard error, which is none of 0 or 1 either

share     $\sqrt{p (1 - p)/n + 1/(4 n^2)}\, /\, (1 + 1/n)$
"""

from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from jaxtyping import Float

from statmech_attn.arguments import MISSING
from statmech_attn.options import Count, Gaps, NotNegative, NotNegatives, Numbers


UNIT = float(np.finfo(float).eps) / 2  # u of double precision


def rounding(size: Gaps, terms: Numbers = 1):
    """The error of a number by rounding of the terms that it sums."""
    return UNIT * abs(size) * (1 + terms / 3) ** 0.5


def not_below_rounding(error: Gaps, size: Gaps, terms: Count = 1):
    """An error that differs from zero, and is no smaller than that of rounding.

    Zero stays: it is the scatter of samples that are all the same number, of which it
    tells that so few have none, and not that there is none.
    """
    return np.where(error > 0, np.fmax(error, rounding(size, terms)), error)[()]


def standard_error(
    values: Annotated[Gaps, "... samples"], axis: Annotated[int, Ge(-64), Le(63)] = -1
):
    """Standard error of the mean of independent samples; NaN for a single one."""
    values = np.asarray(values)
    samples = values.shape[axis]
    if samples < 2:
        return np.full(np.delete(values.shape, axis), np.nan)[()]
    error = values.std(axis, ddof=1) / np.sqrt(samples)
    return not_below_rounding(error, abs(values).max(axis), samples)


def mean_of_known(
    values: Annotated[Float[np.ndarray, "R *shape"], MISSING],
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """Mean and standard error along the first axis, of what is not NaN.

    NaN for the mean of none and for the error of one.
    """
    count = np.isfinite(values).sum(axis=0)
    over = lambda total, n: np.where(n > 0, total, np.nan) / np.maximum(n, 1)
    mean = over(np.nansum(values, axis=0), count)
    variance = over(np.nansum((values - mean) ** 2, axis=0), count - 1)
    stderr = np.sqrt(variance / np.maximum(count, 1))
    stderr = not_below_rounding(stderr, mean, len(values))
    return np.asarray(mean), np.asarray(stderr)  # of single numbers, too


def block_stderr(series: Annotated[Gaps, "*batch T"], blocks: Count = 20):
    """Standard error of the mean over the last axis, from block means."""
    length = series.shape[-1] // blocks
    if length < 1:
        raise ValueError(
            f"block_stderr: need at least {blocks} draws; got {series.shape[-1]}."
        )
    whole_blocks = series[..., -blocks * length :]
    means = whole_blocks.reshape(*series.shape[:-1], blocks, length).mean(-1)
    return standard_error(means)


def wilson(
    count: NotNegatives, n: Count, z: NotNegative = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of z standard errors for `count` of n."""
    share = np.asarray(count) / n
    width = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    centre = share + z**2 / (2 * n)
    scale = 1 + z**2 / n
    low, high = (centre - width) / scale, (centre + width) / scale
    return np.where(share == 0, 0.0, low), np.where(share == 1, 1.0, high)


def share_error(share: Annotated[Gaps, Ge(0), Le(1)], n: Annotated[Gaps, Ge(1)]):
    """Standard error of a share of n samples: half the interval of `wilson`."""
    share, n = np.asarray(share), np.asarray(n)
    return (np.sqrt(share * (1 - share) / n + 1 / (4 * n**2)) / (1 + 1 / n))[()]


def paired_error(differences: Annotated[Gaps, "*shape n"]):
    """Standard error of the mean difference of answers to the same n examples.

    Where no answer differs it is that of a share of 0, and not none.
    """
    differences = np.asarray(differences)
    error = standard_error(differences)
    same = (differences == 0).all(axis=-1)
    return np.where(same, share_error(0.0, differences.shape[-1]), error)[()]
