r"""Evidence on the kind of an orbit from a stored stretch of it, one orbit at a time.

Each function takes a series `x` (T, d), d coordinates or observables along T
consecutive steps, and returns one number or two (docs/theory/dynamics.md, section 2):

    recurrence      smallest p with |x_{t+p} - x_t| below tolerance on the whole series
    zero_one        K of the 0-1 test for chaos: 0 regular, 1 chaotic
    broadband       median over mean spectral power: 0 lines only, near 1 noise
    main_frequency  strongest frequency, cycles per sample, refined between bins

All are dimensionless.  `jax.vmap` batches them.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn.dynamics.exponents.lyapunov import window_weights


CANDIDATES = 4  # near returns of the last point that are checked in full
CLOSED = 1e-6  # recurrence error over motion of an orbit that has closed
ZERO_ONE_LENGTH = 1000
ZERO_ONE_FREQUENCIES = 16
ROUNDING = 1e-13
CONSTANT = 1e-9  # range over 1 + size of a coordinate below which it does not vary
NEWTON_STEPS = 8
GOLDEN = (np.sqrt(5) - 1) / 2


def recurrence(
    x: Float[Array, "T d"], *, multiple: int, tolerance: float | Float[Array, ""]
):
    """Smallest recurrence time that is a multiple of `multiple`, and its error.

    The size of an orbit is that of the columns that vary; of all, where none does.
    Only periods up to T/3 are looked for, so that every one is seen for three turns.
    The error must also be far below what the orbit moves in one `multiple`, and in half
    the period: a spiral that still closes in returns near itself long before it is at
    rest, and an orbit that alternates about a cycle does so after two of its periods.
    Returns the period (0 when there is none) and the largest |x_{t+p} - x_t| relative
    to the size of the orbit, at the period or at the best candidate.
    """
    length = x.shape[0]
    longest = length // 3
    # Multiplied by, not divided by the size: XLA may do either for a division, which
    # would leave the last bit to the program that it is part of.
    scale = 1 / (1 + _size(x))
    lags = np.arange(multiple, longest + 1, multiple)
    if lags.size == 0:
        return jnp.array(0), jnp.array(jnp.inf)
    distance = jnp.max(jnp.abs(x[length - 1 - lags] - x[-1]), axis=1) * scale
    near = jnp.where(distance <= tolerance, jnp.asarray(lags), length)
    count = min(CANDIDATES - 1, lags.size)
    best = jnp.asarray(lags)[jnp.argmin(distance)]
    candidates = jnp.concatenate([jnp.sort(near)[:count], best[None]])

    def error(lag):
        lag = jnp.minimum(lag, longest)
        later = jax.lax.dynamic_slice_in_dim(x, length - longest, longest)
        earlier = [
            jax.lax.dynamic_slice_in_dim(x, length - longest - turn * lag, longest)
            for turn in (1, 2)
        ]
        return jnp.max(jnp.abs(later - jnp.stack(earlier))) * scale

    errors = jnp.where(candidates < length, jax.vmap(error)(candidates), jnp.inf)
    moves = jnp.max(jnp.abs(x[multiple:] - x[:-multiple])) * scale
    halves = jax.vmap(error)(candidates // 2)
    moves = jnp.where(candidates // multiple % 2, moves, halves)
    closed = (candidates == multiple) | (errors <= CLOSED * moves)
    recurs = (errors <= tolerance) & closed
    first = jnp.argmax(recurs)
    period = jnp.where(jnp.any(recurs), candidates[first], 0)
    return period, jnp.where(jnp.any(recurs), errors[first], jnp.min(errors))


def main_component(x: Float[Array, "T d"]) -> Float[Array, " T"]:
    """The component that varies most, without its mean; zero if all is rounding."""
    centred = x - jnp.mean(x, axis=0)
    power = jnp.mean(centred**2, axis=0)
    largest = jnp.max(jnp.abs(x), axis=0)
    power = jnp.where(jnp.sqrt(power) > ROUNDING * largest, power, 0.0)
    varies = jnp.sqrt(jnp.max(power)) > ROUNDING * _size(x)
    return jnp.where(varies, centred[:, jnp.argmax(power)], 0.0)


def _size(x: Float[Array, "T d"]) -> Float[Array, ""]:
    """Largest value of the columns that vary; of all, where none does."""
    sizes = jnp.max(jnp.abs(x), axis=0)
    varies = jnp.ptp(x, axis=0) > CONSTANT * (1 + sizes)
    return jnp.max(jnp.where(varies | ~jnp.any(varies), sizes, 0.0))


def zero_one(x: Float[Array, "T d"]) -> Float[Array, ""]:
    """K of the 0-1 test, median over fixed frequencies (Gottwald & Melbourne 2009).

    Sample the orbit at the drive period and not more finely than it decorrelates:
    oversampled chaos looks regular to this test.
    """
    series = main_component(x)[-ZERO_ONE_LENGTH:]
    length = series.shape[0]
    scale = jnp.std(series)
    series = series / jnp.where(scale > 0, scale, 1.0)
    n_shift = max(length // 10, 3)
    shifts = jnp.arange(1, n_shift + 1)
    spread = (jnp.arange(ZERO_ONE_FREQUENCIES) * GOLDEN) % 1
    frequencies = jnp.pi / 5 + spread * 3 * jnp.pi / 5
    n = length - n_shift

    def correlation(c):
        walk = jnp.cumsum(series * jnp.exp(1j * c * jnp.arange(1, length + 1)))
        # |z_{j+s} - z_j|^2 summed over j < n, the mixed term by Fourier transforms;
        # j + s stays below the length, so that nothing wraps around.
        ends = jnp.cumsum(jnp.concatenate([jnp.zeros(1), jnp.abs(walk) ** 2]))
        squares = ends[n:] - ends[: n_shift + 1]
        first = jnp.fft.fft(walk[:n], length)
        mixed = jnp.fft.ifft(jnp.conj(first) * jnp.fft.fft(walk)).real
        displacement = (squares + squares[0] - 2 * mixed[: n_shift + 1])[1:] / n
        oscillation = (1 - jnp.cos(shifts * c)) / (1 - jnp.cos(c))
        curve = displacement - jnp.mean(series) ** 2 * oscillation
        centred = curve - jnp.mean(curve)
        time = shifts - jnp.mean(shifts)
        norm = jnp.sqrt(jnp.sum(centred**2) * jnp.sum(time**2))
        return jnp.sum(centred * time) / jnp.where(norm > 0, norm, 1.0)

    return jnp.median(jax.vmap(correlation)(frequencies))


def broadband(x: Float[Array, "T d"]) -> Float[Array, ""]:
    """Median over mean power, window with fast-decaying sidelobes, mean removed."""
    series = main_component(x)
    power = jnp.abs(jnp.fft.rfft(series * _bump(series.shape[0]))) ** 2
    power = power[4:]
    mean = jnp.mean(power)
    return jnp.where(mean > 0, jnp.median(power) / jnp.where(mean > 0, mean, 1.0), 0.0)


def main_frequency(x: Float[Array, "T d"]) -> Float[Array, ""]:
    """Strongest frequency in (0, 1/2] cycles per sample, then Newton's method.

    A line in the spectrum is several bins wide, and concave within one bin of its top.
    """
    series = main_component(x)
    length = series.shape[0]
    weighted = series * _bump(length)
    power = jnp.abs(jnp.fft.rfft(weighted)) ** 2
    peak = (4 + jnp.argmax(power[4:])) / length
    # Phase factors of the rows and columns of a table, not of every sample.
    columns = math.isqrt(length)
    rows = -(-length // columns)
    time = jnp.arange(length) / length - 0.5
    moments = jnp.stack([weighted, weighted * time, weighted * time**2])
    moments = jnp.pad(moments, ((0, 0), (0, rows * columns - length)))
    table = moments.reshape(3, rows, columns)

    # Carried along, so that each factor is computed once and not for every sample.
    def turns_at(f):
        turns = lambda steps: jnp.exp(2j * jnp.pi * f * steps)
        return turns(jnp.arange(columns)), turns(columns * jnp.arange(rows))

    def ascend(_, carry):
        f, (of_columns, of_rows) = carry
        sums = jnp.sum(table * of_columns, axis=2)
        m = jnp.sum(sums * of_rows, axis=1)
        mixed = jnp.conj(m[0]) * m[1:]
        slope = -mixed[0].imag
        curvature = jnp.abs(jnp.abs(m[1]) ** 2 - mixed[1].real)
        step = slope / jnp.where(curvature > 0, curvature, 1.0)
        new = f + step / (2 * jnp.pi * length)
        new = jnp.clip(new, peak - 1 / length, peak + 1 / length)
        return new, turns_at(new)

    f, _ = jax.lax.fori_loop(0, NEWTON_STEPS, ascend, (peak, turns_at(peak)))
    return jnp.minimum(f, 0.5)


def _bump(length: int) -> Float[Array, " T"]:
    return jax.vmap(window_weights)((jnp.arange(length) + 0.5) / length)[:, 0]
