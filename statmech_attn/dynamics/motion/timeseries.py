r"""Indicators of a scalar series by nolds (docs/theory/indicators.md, section 5).

For series whose map is not at hand, such as runs of finite networks; where the map is
known, `lyapunov_spectrum` is exact up to its standard error and is used instead.

    x_t     (T,)     one component of an orbit, every `spacing` tokens   `series`
    m                embedding dimension                                 `embedding`
    lambda_1         largest exponent, nats per token
    D_2              correlation dimension, 1
    SampEn           sample entropy, nats per sample

Noise of size s replaces the orbit on all scales below s: neighbours closer than s
separate at once, which reads as a positive exponent, and fill the embedding space,
which reads as a dimension near m.  Every estimate says so, with its length.
"""

import importlib.util
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Ge
from jaxtyping import Float

from statmech_attn import extras
from statmech_attn.labels import CodeWords
from statmech_attn.options import Count, Gaps, Positive, Several, WholeNumber


LONGEST = 8000  # nolds keeps all T^2 distances: 0.5 GB, twice
CLOSE = 1e-9  # a smaller share of close pairs is none at all, to rounding
CURVED = 0.25  # change of slope along a fit, relative, that is no straight line
ROUNDING = 1e-13  # size over the largest coordinate that is no size at all
LEVEL = 1e-3  # change of a slope that is none
TIMESERIES_RESULTS = CodeWords(
    "estimated",
    "the series does not vary",
    "a value is not finite",
    "no two vectors are close enough",
    "the series repeats itself exactly: neighbours do not part",
    "no scaling region: the fitted curve bends",
)
BENT = 5
NOISE = {
    "largest exponent": "noise changes it in either direction, or reads as chaos",
    "correlation dimension": "noise below the radii raises it towards the embedding's",
    "sample entropy": "noise of the size of the tolerance raises it",
}


class Estimate(NamedTuple):
    """A number from a series, with what it cannot say."""

    value: float  # NaN unless the result is 0, or `BENT`: a mean slope of no meaning
    quantity: str
    unit: str
    change: float  # |slope of the second half of the fit - first|; NaN: no fit
    length: int  # samples, T
    result: int  # index into TIMESERIES_RESULTS
    caveats: tuple[str, ...]


def largest_exponent(
    series: Annotated[Gaps, "T"],
    *,
    embedding: Several = 5,
    lag: Count = 1,
    theiler: WholeNumber = 20,
    horizon: Annotated[int, Ge(3)] = 8,
    spacing: Positive = 1.0,
) -> Estimate:
    """Largest Lyapunov exponent of a series, nats per sample or unit of `spacing`.

    Nearest neighbours are followed for `horizon` samples and a line is fitted to their
    mean log distance (Rosenstein, Collins & De Luca, Physica D 65, 117, 1993).
    Measurement noise of a thousandth of the series can lower it by a fifth with a
    `change` of no concern.  Where the curve bends by more than a quarter the result is
    "no scaling region".

    Args:
        series: one component of the orbit.
        embedding: delays m.
        lag: samples between delays.
        theiler: neighbours at most this many samples apart do not count.
        horizon: samples followed, fewer than it takes neighbours to part for good.
        spacing: time between samples.

    Raises:
        ValueError: a count out of range, or too short a series.

    Example:
        >>> import numpy as np
        >>> x = [0.3]
        >>> for _ in range(999): x.append(4 * x[-1] * (1 - x[-1]))
        >>> largest = largest_exponent(np.array(x), embedding=2, horizon=5)
        >>> bool(abs(largest.value - np.log(2)) < 0.1)
        True
    """
    series = _checked(series)
    least = (embedding - 1) * lag + horizon + 2 * theiler + 3 + 2 * embedding
    _long_enough(series, least)
    name, unit = "largest exponent", "nat/sample" if spacing == 1 else "nat/time"
    if code := _unusable(series):
        return _estimate(name, unit, series, result=code)
    _, (steps, logs, _) = _nolds().lyap_r(
        series,
        emb_dim=embedding,
        lag=lag,
        min_tsep=theiler,
        tau=spacing,
        trajectory_len=horizon + 1,
        fit="poly",
        debug_data=True,
    )
    if len(steps) <= horizon:
        return _estimate(name, unit, series, result=4)
    return _estimate(name, unit, series, line=(np.asarray(steps) * spacing, logs))


def correlation_dimension(
    series: Annotated[Gaps, "T"],
    *,
    embedding: Several = 5,
    lag: Count = 1,
    low: float = 0.05,
    high: float = 0.5,
) -> Estimate:
    """Correlation dimension of a delay embedding, between two given radii.

    Without a Theiler window and with radii that are not searched for.  The pairs of a
    vector with itself that nolds counts are taken out again.

    Args:
        series: one component of the orbit.
        embedding, lag: the delays.
        low, high: radii of the fit, in standard deviations of the series.

    Raises:
        ValueError: a count or radius out of range, or too short a series.
    """
    series = _checked(series)
    if not 0 < low < high:
        raise ValueError(f"radii must satisfy 0 < low < high; got {low:g}, {high:g}.")
    _long_enough(series, (embedding - 1) * lag + 100)
    name = "correlation dimension"
    if code := _unusable(series):
        return _estimate(name, "1", series, result=code)
    radii = np.geomspace(low, high, 20) * np.std(series)
    _, (logs, sums, _) = _nolds().corr_dim(
        series, embedding, lag=lag, rvals=radii, fit="poly", debug_data=True
    )
    # nolds counts every vector as a neighbour of itself, once for each of n - 1 others.
    pairs = np.exp(sums) - 1 / (len(series) - (embedding - 1) * lag - 1)
    if (pairs < CLOSE).any():
        return _estimate(name, "1", series, result=3)
    return _estimate(name, "1", series, line=(logs, np.log(pairs)))


def sample_entropy(
    series: Annotated[Gaps, "T"],
    *,
    embedding: Several = 2,
    lag: Count = 1,
    tolerance: Positive = 0.2,
) -> Estimate:
    """Sample entropy (Richman & Moorman 2000), nats per sample.

    -ln of the chance that two stretches which agree for m samples within the tolerance
    also agree at the next: at a small tolerance the entropy rate of the orbit.

    Args:
        series: one component of the orbit.
        embedding: samples that agree, m.
        lag: samples between them.
        tolerance: in standard deviations of the series.

    Raises:
        ValueError: a count or the tolerance out of range, or too short a series.
    """
    series = _checked(series)
    _long_enough(series, embedding * lag + 100)
    name, unit = "sample entropy", "nat/sample"
    if code := _unusable(series):
        return _estimate(name, unit, series, result=code)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Zero vectors are within", RuntimeWarning)
        value = float(
            _nolds().sampen(
                series, embedding, tolerance=tolerance * np.std(series), lag=lag
            )
        )
    if not np.isfinite(value):
        return _estimate(name, unit, series, result=3)
    return _estimate(name, unit, series, value)


def _estimate(
    name, unit, series, value=np.nan, *, line=None, result=0, more=()
) -> Estimate:
    """The estimate with its caveats; a fitted line gives value and change of slope."""
    change = np.nan
    if line is not None:
        x, y = line
        half = len(x) // 2
        value = float(np.polyfit(x, y, 1)[0])
        slope = lambda part: np.polyfit(x[part], y[part], 1)[0]
        change = float(abs(slope(slice(half, None)) - slope(slice(half + 1))))
    caveats = [f"T = {len(series)} samples", NOISE[name]]
    if name == "correlation dimension":
        most = 2 * np.log10(len(series))
        caveats.append(f"T samples show no dimension above 2 log10 T = {most:.1f}")
    if change > CURVED * (abs(value) + LEVEL):
        result = BENT
    if result:
        caveats.append(TIMESERIES_RESULTS[result])
    return Estimate(value, name, unit, change, len(series), result, tuple(caveats))


def _checked(series) -> Float[np.ndarray, " T"]:
    series = np.asarray(series, float)
    if len(series) > LONGEST:
        raise ValueError(
            f"series must be at most {LONGEST} samples (nolds keeps T^2 distances); "
            f"got {len(series)}: pass series[-{LONGEST}:]."
        )
    return series


def _long_enough(series, least: int) -> None:
    if len(series) < least:
        raise ValueError(
            f"series must be at least {least} samples for these delays; "
            f"got {len(series)}."
        )


def _unusable(series) -> int:
    """Index of the result that rules a series out, 0 if none does."""
    if not np.isfinite(series).all():
        return 2
    return int(np.std(series) <= ROUNDING * np.abs(series).max())


@cache
def _nolds() -> ModuleType:
    """The measures of nolds, loaded past its package.

    nolds 0.6.3 reads its example data when it is imported, in a way that Python 3.11
    refuses (github.com/CSchoel/nolds/issues/80), and earlier versions need
    pkg_resources, which setuptools has dropped; its measures need neither.
    """
    package = importlib.util.find_spec("nolds")
    if package is None or not package.submodule_search_locations:
        raise RuntimeError(extras.needed("this estimate", "nolds", "timeseries"))
    file = Path(package.submodule_search_locations[0]) / "measures.py"
    specification = importlib.util.spec_from_file_location("nolds_measures", file)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    with warnings.catch_warnings():
        # Backslashes in its docstrings.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", SyntaxWarning)
        specification.loader.exec_module(module)
    return module
