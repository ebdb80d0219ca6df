r"""Agreement of a theory with simulations, in standard errors (docs/theory/dmft.md, 5).

A simulated mean differs from the infinite-N theory by sampling error and by a bias
that is a series in 1/N, because fluctuations of size N^-1/2 pass a nonlinear map:

    $\bar X_N - X_\infty = b_0 + b_1/N + b_2/N^2 + \dots + s_N \zeta / \sqrt{R}$

so at many runs R a plain difference in standard errors grows however right the theory
is.  The theory is wrong when b_0, the difference extrapolated to N -> infinity, is not
zero; at one N only b_0 + b_1/N can be seen.  The first axis is N throughout.
"""

from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import optimize, stats

from statmech_attn.options import (
    Count,
    Fraction,
    Gaps,
    Mask,
    NotNegative,
    NotNegatives,
    Numbers,
    Positive,
    Several,
)


LEVEL = 1e-3  # family-wise: the chance that any of all comparisons fails by chance


class Slope(NamedTuple):
    """A power law in N: value and standard error of the exponent.

    Attributes:
        value: exponent of N.
        stderr: its standard error.
    """

    value: Float[np.ndarray, "*batch"]
    stderr: Float[np.ndarray, "*batch"]


def threshold(
    comparisons: Count, runs: Count | None = None, level: Fraction = LEVEL
) -> float:
    """Largest difference in standard errors that chance allows (Sidak, two-sided).

    With `runs` the errors are sampled over that many runs, so Student's law is used.
    """
    if runs is not None and runs < 2:
        raise ValueError(f"a sampled standard error needs at least 2 runs; got {runs}.")
    single = -np.expm1(np.log1p(-level) / comparisons)
    of_errors = stats.norm if runs is None else stats.t(runs - 1)
    return float(of_errors.isf(single / 2))


def in_standard_errors(difference: Gaps, stderr: Gaps, floor: Gaps = 0.0):
    """difference / stderr; `floor` is the error where the sampled one is exactly zero.

    A class that is saturated in all runs has no sampled spread, though it has some.
    An error of zero gives 0 for agreement to rounding and inf for none; NaN gives NaN.
    """
    difference, stderr, floor = np.broadcast_arrays(difference, stderr, floor)
    error = np.where(stderr <= 0, floor, stderr)
    exact = np.where(np.abs(difference) < 1e-12, 0.0, np.copysign(np.inf, difference))
    return np.where(error <= 0, exact, difference / np.where(error <= 0, 1.0, error))


def limit_difference(
    n_spins: Annotated[Numbers, "K"],
    difference: Annotated[Gaps, "K *batch"],
    stderr: Annotated[Gaps, "K *batch"],
    used: Annotated[Mask, "K *batch"],
):
    """The difference b_0 extrapolated to N -> infinity, its error, and its number of N.

    Weighted least squares in (1, 1/N) for two values of N and (1, 1/N, 1/N^2) for more.
    """
    n_spins = _increasing(n_spins, used)
    shape = difference.shape[1:]
    value, error = np.full(shape, np.nan), np.full(shape, np.nan)
    count = used.sum(axis=0)
    for k in range(1, len(n_spins) + 1):
        points = (count == k) & (stderr[-k:] > 0).all(axis=0)
        if points.any():
            fit = _intercept(
                n_spins[-k:], difference[-k:][:, points], stderr[-k:][:, points]
            )
            value[points], error[points] = fit
    return value, error, count


def extrapolation(
    n_spins: Annotated[Numbers, "K"], used: Annotated[Mask, "K *batch"]
) -> Float[np.ndarray, "K *batch"]:
    """Coefficients with which means at every N give the limit of infinite N.

    As `limit_difference`, with variances like 1/N: they do not depend on the data.
    """
    n_spins = _increasing(n_spins, used)
    coefficients, count = np.zeros(used.shape), used.sum(axis=0)
    for k in range(1, len(n_spins) + 1):
        n = n_spins[-k:]
        root = np.sqrt(n / n[0])[:, None]
        design = (n[0] / n)[:, None] ** np.arange(min(k, 3))
        row = np.linalg.pinv(root * design)[0] * root[:, 0]
        coefficients[-k:] += np.multiply.outer(row, count == k)
    return coefficients


def _increasing(n_spins, used) -> Float[np.ndarray, " K"]:
    n_spins = np.asarray(n_spins, float)
    if n_spins.shape != np.shape(used)[:1] or (np.diff(n_spins, prepend=0) <= 0).any():
        raise ValueError(f"n_spins must increase, one for each row; got {n_spins}.")
    return n_spins


def _intercept(n_spins, difference, stderr):
    """Intercept and its error of weighted fits; columns are points."""
    terms = min(len(n_spins), 3)
    design = (n_spins[0] / np.asarray(n_spins, float))[:, None] ** np.arange(terms)
    weighted = design[None] / stderr.T[:, :, None]
    inverse = np.linalg.pinv(weighted)[:, 0]
    return (inverse * (difference / stderr).T).sum(1), np.linalg.norm(inverse, axis=1)


def spread_ratio(spread: Gaps, predicted: Gaps, runs: Several):
    """Sampled over predicted spread, and its distance from one in standard errors.

    A Gaussian spread of R runs has relative error 1/sqrt(2 (R - 1)); in chaos, where
    the runs have separated, that of 8 was 1.5 times as large.  NaN where nothing
    fluctuates in theory.
    """
    ratio = np.divide(
        spread, predicted, out=np.full(np.shape(spread), np.nan), where=predicted > 0
    )
    return ratio, (ratio - 1) * np.sqrt(2 * (runs - 1))


def spread_slope(
    n_spins: Annotated[Numbers, "K"],
    spread: Annotated[Gaps, "K *batch"],
    used: Annotated[Mask, "K *batch"],
    runs: Count,
    axes: tuple[int, ...],
    error: Gaps = 0.0,
) -> Slope:
    """Exponent of the spread in N, from log spreads averaged over `axes` (expect -1/2).

    The error takes the averaged entries as fully correlated, which bounds it: n that
    are independent have one sqrt(n) smaller.  An N without any entry in `used` takes no
    part.
    """
    part, usable = _common(used, axes)
    usable &= ((spread > 0) | ~part).all(axis=0)
    log = np.log(np.where(spread > 0, spread, 1.0))
    mean = _mean_where(log, np.broadcast_to(usable, log.shape), axes)
    error = np.maximum(error, 1 / np.sqrt(2 * (runs - 1)))
    return _power(n_spins, mean, np.where(part.squeeze(axes), error, np.inf))


def log_spread_error(
    samples: Annotated[Gaps, "K S *batch D"],
    used: Annotated[Mask, "K *batch D"],
    smallest: NotNegative,
):
    """Jackknife error of log spreads averaged over the last axis.

    It is large where a few samples make the spread, as those that lose a pattern do.
    """
    S = samples.shape[1]
    square = (samples - samples.mean(1, keepdims=True)) ** 2
    rest = (square.sum(1, keepdims=True) - square * S / (S - 1)) / (S - 2)
    logs = np.log(np.maximum(rest, smallest**2)) / 2
    count = np.maximum(used.sum(-1), 1)[:, None]
    means = np.where(used[:, None], logs, 0.0).sum(-1) / count
    return np.sqrt((S - 1) * means.var(1))


def bias_slope(
    n_spins: Annotated[Numbers, "K"],
    difference: Annotated[Gaps, "K *batch"],
    stderr: Annotated[Gaps, "K *batch"],
    used: Annotated[Mask, "K *batch"],
    axes: tuple[int, ...],
    shared: Annotated[NotNegatives, ""] = 0.0,
) -> Slope:
    """Exponent of the bias in N (expect -1), from its size along one profile.

    The differences at each N are projected on those at the smallest N that takes part,
    and a power law is fitted to the projections.  Entries are taken as fully
    correlated, which bounds the error, as in `spread_slope`.  NaN where the bias at the
    smallest N is not five errors from zero: there is none to follow.
    """
    part, usable = _common(used, axes)
    first = part.argmax(axis=0)[None]
    masked = lambda x: np.where(usable, x, 0.0)
    profile = masked(np.take_along_axis(difference, first, axis=0))
    shared = np.broadcast_to(shared, np.shape(stderr))
    noise = masked(np.take_along_axis(np.hypot(stderr, shared), first, axis=0))
    norm = (profile**2 - noise**2).sum(axes)
    norm = np.where(norm > 0, norm, np.nan)
    size = (masked(difference) * profile).sum(axes) / norm
    errors = ((masked(x) * np.abs(profile)).sum(axes) / norm for x in (stderr, shared))
    size = np.where(part.squeeze(axes), size, np.nan)
    columns = (x.reshape(len(x), -1).T for x in (size, *errors))
    fits = [*map(lambda *x: _fit_power(np.asarray(n_spins, float), *x), *columns)]
    return Slope(*np.reshape(np.transpose(fits), (2, *size.shape[1:])))


def power_law(
    n_spins: Annotated[Numbers, "K"], values: Annotated[Gaps, "K *batch"], stderr: Gaps
) -> Slope:
    """Exponent of a power law in N, by weighted least squares in ln N.

    NaN with fewer than two N at which a value and its error are known.
    """
    return _power(n_spins, np.log(values), stderr / values)


def _common(used, axes):
    """Which N take part (K, *batch, kept), and entries used at all of those."""
    part = used.any(axis=axes, keepdims=True)
    return part, (used | ~part).all(axis=0) & part.any(axis=0)


def _fit_power(n_spins, size, error, shared) -> tuple[float, float]:
    """Exponent of size ~ N^s and its error; NaN if the sizes do not determine it."""
    known = np.isfinite(size) & (error > 0)
    x, size, error, shared = (v[known] for v in (n_spins, size, error, shared))
    if known.sum() < 2 or size[0] < 5 * np.hypot(error[0], shared[0]):
        return np.nan, np.nan
    power = lambda x, amplitude, s: amplitude * (x / x[0]) ** s
    sigma = np.diag(error**2) + np.outer(shared, shared) if shared.any() else error
    how = {"sigma": sigma, "absolute_sigma": True, "p0": (1.0, -1.0)}
    try:
        best, covariance = optimize.curve_fit(power, x, size, **how)
    except RuntimeError:  # no convergence: the sizes follow no power law
        return np.nan, np.nan
    return best[1], np.sqrt(covariance[1, 1])


def _mean_where(x, mask, axes):
    count = mask.sum(axis=axes)
    total = np.where(mask, x, 0.0).sum(axis=axes)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _power(n_spins, log_size, log_error) -> Slope:
    """Weighted line of log size against log N; NaN with fewer than two N."""
    column = (-1,) + (1,) * (log_size.ndim - 1)
    x = np.log(np.asarray(n_spins, float)).reshape(column)
    weight = np.where(np.isfinite(log_size), 1 / log_error**2, 0.0)
    y = np.where(weight > 0, log_size, 0.0)
    total = weight.sum(0)
    centre = (weight * x).sum(0) / np.where(total > 0, total, 1.0)
    scatter = (weight * (x - centre) ** 2).sum(0)
    scatter = np.where((weight > 0).sum(0) > 1, scatter, np.nan)
    return Slope((weight * (x - centre) * y).sum(0) / scatter, 1 / np.sqrt(scatter))


def linear_until(
    noise_std: Annotated[Gaps, "*batch time"],
    n_spins: Annotated[Numbers, "K"],
    limit: Positive,
) -> Bool[np.ndarray, "K *batch time"]:
    """Steps before the predicted spread first exceeds `limit`."""
    root = np.sqrt(np.asarray(n_spins, float)).reshape((-1,) + (1,) * noise_std.ndim)
    return np.maximum.accumulate(noise_std / root, axis=-1) <= limit
