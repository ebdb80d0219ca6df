r"""Power spectra and autocorrelations (docs/theory/dynamics.md, section 4).

For a series $x_t$, t = 0..T-1, of mean $\bar x$:

    $P(f) = \frac{2}{\sum_t w_t^2}
            \left|\sum_t w_t (x_t - \bar x) e^{-2 \pi i f t}\right|^2$
    $r(l) = c(l) / c(0), \quad
            c(l) = \frac{1}{T - l} \sum_t (x_t - \bar x)(x_{t+l} - \bar x)$

    P   (F, *batch)   one-sided power density, per cycle/token    `power`
    f   (F,)          0 .. 1/2, cycles per token                  `frequency`
    r   (L + 1,)      normalised, unbiased autocorrelation        `autocorrelation`
    w   (T,)          window                                      `window`

The factor 2 is absent at f = 0 and at the highest frequency of an even T, which have
no negative partner.  Everything is linear; figures take the logarithm.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import fft, signal

from statmech_attn.options import WholeNumber


ROUNDING = 1e-13  # relative spread below which a series counts as constant


class PowerSpectrum(NamedTuple):
    """One-sided power spectrum along the time axis of the series."""

    frequency: Float[np.ndarray, " F"]
    power: Float[np.ndarray, "..."]


def power_spectrum(
    series: Float[np.ndarray, "..."],
    *,
    window: str = "boxcar",
) -> PowerSpectrum:
    """One-sided power spectrum of a series without its mean, per cycle/token.

    Args:
        series: time first, any other axes are a batch.
        window: a window of `scipy.signal.get_window`.  "boxcar" keeps the variance
            (the power integrates to it), "hann" keeps lines between bins narrow.

    Returns:
        `PowerSpectrum`: frequencies in cycles per token, and the power at each.

    Raises:
        ValueError: fewer than two samples, a value that is not finite, or an unknown
            window.

    Example:
        >>> import numpy as np
        >>> t = np.arange(64)
        >>> spectrum = power_spectrum(np.cos(2 * np.pi * t / 8))
        >>> float(spectrum.frequency[spectrum.power.argmax()])
        0.125
    """
    series = _checked(series)
    frequency, power = signal.welch(
        series, window=window, nperseg=len(series), detrend="constant", axis=0
    )
    return PowerSpectrum(frequency, power)


def autocorrelation(
    series: Float[np.ndarray, "..."], *, max_lag: WholeNumber
) -> Float[np.ndarray, "..."]:
    """Normalised autocorrelation r(0) = 1 .. r(max_lag).

    The unbiased estimate is noisy, and may exceed one, where few pairs are left: keep
    `max_lag` well below the length.  A constant series has none: NaN at every lag.

    Args:
        series: samples, time first.
        max_lag: largest lag, in samples.

    Raises:
        ValueError: `max_lag` is not in 0..T-1, fewer than two samples, or a value that
            is not finite.

    Example:
        >>> import numpy as np
        >>> autocorrelation(np.array([1.0, -1.0] * 8), max_lag=2)
        array([ 1., -1.,  1.])
    """
    series = _checked(series)
    length = series.shape[0]
    if not 0 <= max_lag < length:
        raise ValueError(f"max_lag must lie in 0..{length - 1}; got {max_lag}.")
    centred = series - series.mean(axis=0)
    # Padded by max_lag, so that no pair wraps around.
    n = fft.next_fast_len(length + max_lag, real=True)
    transform = np.fft.rfft(centred, n=n, axis=0)
    sums = np.fft.irfft(np.abs(transform) ** 2, n=n, axis=0)[: max_lag + 1]
    pairs = length - np.arange(max_lag + 1)
    covariance = sums / pairs.reshape((-1,) + (1,) * (series.ndim - 1))
    spread = np.sqrt(np.mean(centred**2, axis=0))
    varies = spread > ROUNDING * np.abs(series).max(axis=0)
    variance = np.where(varies, covariance[0], np.nan)
    return covariance / variance


def _checked(series) -> Float[np.ndarray, "..."]:
    series = np.asarray(series, float)
    if series.ndim == 0 or len(series) < 2:
        raise ValueError(f"series: need at least 2 samples; got shape {series.shape}.")
    if not np.isfinite(series).all():
        raise ValueError("series: every value must be finite.")
    return series
