r"""What a comparison can see: summed tests with their law, smallest visible errors.

S independent samples are vectors of D numbers, such as tokens, which are correlated.
Their deviations u from a right theory have mean zero, so for Gaussian samples the law
of u is that of Q u with any orthogonal Q of the samples (O. Langsrud, Stat. Comput. 15,
53, 2005).  With q uniform on the unit sphere of S dimensions

    mean       $\bar u^* = q^T u / \sqrt S$
    variance   $(\sum_s u_s^2 - S \bar u^{*2}) / (S (S - 1))$, of the mean

are drawn from it given $u^T u$, and the law of any number made of them follows, exactly
for any S and any covariance: errors may be pooled, and weights taken from the data.

    z_i       $\bar u_i / \sqrt{v_i}$        v_i pooled over neighbouring tokens
    rms_z     $\sqrt{\sum_i \bar u_i^2/v_i / \sum_i s_i^2/v_i}$       s_i not pooled
    epsilon   $- g V^{-1} \bar u / g V^{-1} g$          of a parameter of the theory

with $g = \partial x / \partial \ln p$: the theory is as if computed with
$p (1 + \epsilon)$.  Derivation: docs/theory/extensive.md, section 7.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import ndimage, optimize, stats

from statmech_attn.options import Count, Fraction, Gaps, Positive, Seed
from statmech_attn.statistics.agreement import LEVEL


POWER = 0.9  # probability with which a smallest visible error would be found
ROTATIONS = 10_000
AT_ONCE = 2**21  # numbers of rotations that are held together
NEIGHBOURS = 5  # tokens over which a variance is pooled


class Deviations(NamedTuple):
    """Deviations of samples from a theory at one point.

    Attributes:
        samples: one row for every sample, mean zero where the theory is right.
        series: runs of successive tokens among the numbers.
        error: of the theory.
        slopes: derivatives of the theory in the logarithm of every parameter; zero
            where it has none.
    """

    samples: Float[np.ndarray, "S D"]
    series: Sequence[slice]
    error: Float[np.ndarray, " D"]
    slopes: Float[np.ndarray, "P D"]


class Sums(NamedTuple):
    """Sums over a mean, or over many that were drawn, with these on the last axis.

    Attributes:
        z: every difference in standard errors.
        rms_z: their root mean square.
        shift: g V^-1 of the difference, by parameter.
        information: g V^-1 g, by parameter.
        variance: of the shift, by parameter.
    """

    z: Float[np.ndarray, "D *draws"]
    rms_z: Float[np.ndarray, "*draws"]
    shift: Float[np.ndarray, "P *draws"]
    information: Float[np.ndarray, "P *draws"]
    variance: Float[np.ndarray, "P *draws"]


def sums(deviations: Deviations, mean: Float[np.ndarray, "draws D"]) -> Sums:
    """The law of the sums of means of samples with these squares."""
    u, series, error, slopes = deviations
    S = len(u)
    single = np.maximum((u**2).sum(0) - S * mean**2, 0.0) / (S * (S - 1))
    smooth = [
        ndimage.uniform_filter1d(single[:, x], NEIGHBOURS, axis=1) for x in series
    ]
    variance = np.maximum(single, np.concatenate(smooth, axis=1)) + error**2
    square = mean**2 / variance
    weight = slopes[:, None] / variance
    shift = (weight * mean).sum(-1)
    spread = ((weight @ u.T) ** 2).sum(-1) - S * shift**2
    known = (abs(weight) @ error) ** 2
    return Sums(
        (mean / np.sqrt(variance)).T,
        np.sqrt(square.sum(-1) / ((single + error**2) / variance).sum(-1)),
        shift,
        (weight * slopes[:, None]).sum(-1),
        np.maximum(spread, 0.0) / (S * (S - 1)) + known,
    )


def rotated(
    u: Float[np.ndarray, "S D"], draws: Count, rng: np.random.Generator
) -> Float[np.ndarray, "n D"]:
    """Means that are as likely as that of the samples where the theory is right."""
    q = rng.normal(size=(draws, len(u)))
    return q @ u / np.linalg.norm(q, axis=1, keepdims=True) / np.sqrt(len(u))


class Law(NamedTuple):
    """Largest values that chance allows, of all points together.

    Attributes:
        z: of a difference in standard errors.
        rms_z: of the root mean square.
        point: of a parameter at a point, in standard errors.
        all: of a parameter at all points together, in standard errors.
    """

    z: float
    rms_z: float
    point: float
    all: float


def law(points: Sequence[Deviations], level: Fraction = LEVEL, seed: Seed = 0) -> Law:
    """The law of the largest values at independent points, by rotations."""
    if not points:
        raise ValueError("points must hold at least one; got none.")
    rng = np.random.default_rng(seed)
    largest = np.zeros((3, ROTATIONS))
    together = np.zeros((3, len(points[0].slopes), ROTATIONS))
    for point in points:
        for chosen in _batches(point):
            count = chosen.stop - chosen.start
            drawn = sums(point, rotated(point.samples, count, rng))
            t = in_errors(drawn.shift, drawn.variance)
            deviations = (
                abs(drawn.z).max(0, initial=0),
                drawn.rms_z,
                abs(t).max(0, initial=0),
            )
            largest[:, chosen] = np.maximum(largest[:, chosen], deviations)
            together[:, :, chosen] += drawn.shift, drawn.information, drawn.variance
    t = abs(in_errors(together[0], together[2])).max(0, initial=0)
    return Law(*np.quantile([*largest, t], 1 - level, axis=1).tolist())


def noise(point: Deviations, draws: Count, rng: np.random.Generator) -> Sums:
    """Sums that chance makes of samples of this scatter, whatever their mean."""
    S = len(point.samples)
    # Residuals span S - 1 dimensions: an orthonormal basis of these has S - 1 rows.
    basis = np.linalg.qr(np.eye(S) - 1 / S)[0][:, : S - 1]
    centred = np.concatenate([basis.T @ point.samples, np.zeros((1, point.error.size))])
    centred = centred * np.sqrt(S / (S - 1))
    return sums(point._replace(samples=centred), rotated(centred, draws, rng))


def in_errors(shift: Gaps, variance: Gaps):
    """A shift in units of its standard error."""
    known = np.where(variance > 0, variance, 1)
    return np.where(variance > 0, shift / np.sqrt(known), 0)


def smallest_visible(
    shift: Annotated[Gaps, "draws"],
    information: Annotated[Gaps, "draws"],
    variance: Annotated[Gaps, "draws"],
    bound: Positive,
) -> float:
    """Smallest relative error of a parameter that a test finds with `POWER`."""
    if not (information > 0).all():
        return np.inf
    error = np.sqrt(variance)
    sizes = error / information
    if not np.isfinite([shift, sizes]).all() or not 0 < bound < np.inf:
        raise ValueError(
            f"shift, variance, bound must be finite, bound > 0; got bound {bound}."
        )
    visible = lambda e: (abs(shift + e * information) > bound * error).mean()
    top = (bound + 1) * np.median(sizes)
    while visible(top) < POWER:
        top *= 2
    missed = lambda error: POWER - visible(error)
    return optimize.brentq(missed, 0.0, top, xtol=1e-3 * top)  # pyright: ignore


def visible_alone(stderr: Gaps, slope: Gaps, bound: Positive) -> float:
    """Smallest visible error by the one number that tells most (`smallest_visible`)."""
    sharp = np.where(stderr > 0, abs(slope) / np.where(stderr > 0, stderr, 1.0), 0.0)
    largest = np.nanmax(sharp, initial=0.0)
    if not largest > 0:
        return np.inf
    return float((bound + stats.norm.ppf(POWER)) / largest)


def _batches(point: Deviations):
    size = max(1, AT_ONCE // max(1, point.error.size))
    return (slice(i, min(i + size, ROTATIONS)) for i in range(0, ROTATIONS, size))
