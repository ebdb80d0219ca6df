r"""Means with their errors: of what is known, of series.

Over what is known, such as trainings that have a number:

mean      $\bar v = \sum_r v_r / R$ over the R values that are not NaN
stderr    $\sqrt{\sum_r (v_r - \bar v)^2 / (R (R - 1))}$
"""

import numpy as np
from jaxtyping import Float


def mean_of_known(
    values: Float[np.ndarray, "R *shape"],
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """Mean and standard error along the first axis, of what is not NaN.

    NaN for the mean of none and for the error of one.

    Args:
        values: samples.

    Returns:
        Means; standard errors.

    Example:
        >>> import numpy as np
        >>> mean, error = mean_of_known(np.array([[1.0, 2.0], [3.0, np.nan]]))
        >>> mean.tolist(), error.tolist()
        ([2.0, 2.0], [1.0, nan])
    """
    count = np.isfinite(values).sum(axis=0)
    over = lambda total, n: np.where(n > 0, total, np.nan) / np.maximum(n, 1)
    mean = over(np.nansum(values, axis=0), count)
    variance = over(np.nansum((values - mean) ** 2, axis=0), count - 1)
    stderr = np.sqrt(variance / np.maximum(count, 1))
    return np.asarray(mean), np.asarray(stderr)  # of single numbers, too


def block_stderr(series, blocks: int = 20):
    """Standard error of the mean over the last axis, from block means.

    Args:
        series: samples, time last.
        blocks: number of blocks.

    Returns:
        Standard errors, with the shape of the series less its last axis.

    Raises:
        ValueError: fewer draws than blocks.

    Example:
        >>> import numpy as np
        >>> white = np.random.default_rng(0).normal(size=10_000)
        >>> bool(0.005 < block_stderr(white) < 0.015)
        True
    """
    length = series.shape[-1] // blocks
    if length < 1:
        raise ValueError(
            f"block_stderr: need at least {blocks} draws; got {series.shape[-1]}."
        )
    whole_blocks = series[..., -blocks * length :]
    means = whole_blocks.reshape(*series.shape[:-1], blocks, length).mean(-1)
    return means.std(-1, ddof=1) / np.sqrt(blocks)
