r"""Means with their errors over what is known, such as trainings that have a number.

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

    Example:
        >>> mean, error = mean_of_known(np.array([[1.0, 2.0], [3.0, np.nan]]))
        >>> mean.tolist(), error.tolist()
        ([2.0, 2.0], [1.0, nan])
    """
    count = np.isfinite(values).sum(axis=0)
    over = lambda total, n: np.where(n > 0, total, np.nan) / np.maximum(n, 1)
    mean = over(np.nansum(values, axis=0), count)
    variance = over(np.nansum((values - mean) ** 2, axis=0), count - 1)
    return mean, np.sqrt(variance / np.maximum(count, 1))
