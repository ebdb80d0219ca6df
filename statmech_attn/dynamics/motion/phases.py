r"""The phases of an orbit, and the evidence that decides between them.

Evidence comes from the sums of a window of the orbit, pushed with its tangent frame,
and from a recorded stretch (`tail`) right after it (docs/theory/dynamics.md, section
2).  A phase is given only when the signs of the exponents, recurrence, the 0-1 test,
the spectrum and the convergence of weighted averages agree and the window has settled;
otherwise there are reasons.

Exponents are in nats per step, periods in steps.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from statmech_attn.dynamics.exponents.lyapunov import mean_of, Sums
from statmech_attn.dynamics.exponents.spectrum import (
    is_marginal,
    signs_of,
    Spectrum,
    UNCLEAR,
)
from statmech_attn.dynamics.motion import chaos_tests
from statmech_attn.dynamics.motion.rotation import frequency_of
from statmech_attn.labels import CodeWords
from statmech_attn.options import NotNegative
from statmech_attn.statistics import rounding


PHASES = CodeWords(
    "fixed",
    "periodic",
    "quasiperiodic",
    "chaotic",
    "hyperchaotic",
    "transient",
    "undetermined",
    "diverged",
)
(
    FIXED,
    PERIODIC,
    QUASIPERIODIC,
    CHAOTIC,
    HYPERCHAOTIC,
    TRANSIENT,
    UNDETERMINED,
    DIVERGED,
) = range(len(PHASES))
CHAOS = (CHAOTIC, HYPERCHAOTIC)
CLASSES = {  # of motion, that the sign of one exponent can tell apart
    "fixed or periodic": (FIXED, PERIODIC),
    "quasiperiodic": (QUASIPERIODIC,),
    "chaotic": CHAOS,
}

REASONS = (
    "exponents of the quarters of the window disagree",
    "the end of the window does not look like its beginning",
    "leading exponent is neither clearly zero nor clearly of one sign",
    "the orbit recurs although an exponent is positive",
    "no exponent is positive or zero, but no recurrence was found",
    "zero exponent, but averages converge slowly (strange nonchaotic or marginal)",
    "zero exponent, but the 0-1 test or the spectrum says irregular",
    "positive exponent, but the 0-1 test and the spectrum say regular",
    "leading exponents are not resolved",
    "extended to the cap",
    "the state became infinite or not a number",
    "recurs within tolerance, but is marginal and still converging",
    "marginal: the leading exponent is zero, but converges as on no torus",
)
(
    R_QUARTERS,
    R_DRIFT,
    R_SIGN,
    R_RECURS,
    R_NO_RECURRENCE,
    R_SLOW,
    R_IRREGULAR,
    R_REGULAR,
    R_UNRESOLVED,
    R_CAP,
    R_DIVERGED,
    R_CONVERGING,
    R_MARGINAL,
) = (1 << i for i in range(len(REASONS)))

LANES_AT_ONCE = 4  # below any batch: a loop of one turn would round differently
QUARTER_SIGMAS = 6.0  # quarters and drift: disagreement in standard errors
EXACT = 1e-12  # recurrence of a neutral orbit up to rounding
HORIZON = 1e12  # a coordinate beyond this has diverged
TINY = float(np.finfo(float).tiny)


class Evidence(eqx.Module):
    """The evidence for the phase of an orbit; every entry has the batch shape.

    Attributes:
        recurrence_period: steps after which the orbit recurs; 0 where none was found.
        recurrence_error: distance at that recurrence, relative to the size of the
            orbit.
        positive: number of positive exponents.
        zeros: number of zero exponents.
        zero_one: K of the 0-1 test.
        broadband: median over mean spectral power; 0 for lines, near 1 for noise.
        digits: decimal digits to which the weighted averages of the two halves agree.
        frequency: rotation number, or strongest line of the spectrum, cycles per drive
            period.
        frequency_error: difference between the halves of the tail.
        oriented: whether it is a rotation number in [0, 1), from the first of two
            observables to the second; else a line in (0, 1/2], which may be 1 - rho.
        quarters: disagreement of the exponents of the quarters, in standard errors.
        drift: disagreement of means and ranges of the quarters, in standard errors.
        finite: whether the state stayed finite.
    """

    recurrence_period: Int[Array, "*batch"]
    recurrence_error: Float[Array, "*batch"]
    positive: Int[Array, "*batch"]
    zeros: Int[Array, "*batch"]
    zero_one: Float[Array, "*batch"]
    broadband: Float[Array, "*batch"]
    digits: Float[Array, "*batch"]
    frequency: Float[Array, "*batch"]
    frequency_error: Float[Array, "*batch"]
    oriented: Bool[Array, "*batch"]
    quarters: Float[Array, "*batch"]
    drift: Float[Array, "*batch"]
    finite: Bool[Array, "*batch"]


def undecided(phase):
    """Whether a longer window may tell; of arrays of JAX or NumPy."""
    return (phase == TRANSIENT) | (phase == UNDETERMINED)


def weigh(
    spectrum: Spectrum, sums: Sums, series, per_block, drive_period, criteria
) -> Evidence:
    """Evidence from the sums of a window and the recorded series (tail, d, *batch)."""
    lanes = jnp.moveaxis(series.reshape(series.shape[:2] + (-1,)), -1, 0)
    of_tail = lambda x: _tail_evidence(x, drive_period, criteria)
    several = jax.lax.map(of_tail, lanes, batch_size=LANES_AT_ONCE)
    batch = series.shape[2:]
    period, error, k01, flatness, *turns = (x.reshape(batch) for x in several)
    frequency, frequency_error, oriented = turns
    observables = slice(sums.blocks.shape[1] - sums.low.shape[1], None)
    low, high = jnp.min(sums.low, axis=0), jnp.max(sums.high, axis=0)
    weights = sums.weights.reshape((3,) + (1,) * (sums.weighted.ndim - 1))
    averages = (sums.weighted / weights)[:, observables]
    # Rounding hides the digits asked for of averages of what varies by less.
    size = jnp.maximum(jnp.abs(low), jnp.abs(high))
    least = rounding(size, spectrum.steps) * 10.0**criteria.digits
    varies = high - low > least
    spread = jnp.where(varies, high - low, jnp.maximum(least, TINY))
    gaps = jnp.where(varies, jnp.abs(averages[1] - averages[2]) / spread, 0.0)
    gap = jnp.max(gaps, axis=0)
    floor = jnp.where(varies, 0.01, 1.0) * spread
    finite = jnp.all(jnp.isfinite(series), axis=(0, 1)) & jnp.all(
        (jnp.abs(series) < HORIZON), axis=(0, 1)
    )
    return Evidence(
        recurrence_period=period,
        recurrence_error=error,
        positive=jnp.sum(signs_of(spectrum, criteria) == 1, axis=0),
        zeros=jnp.sum(signs_of(spectrum, criteria) == 0, axis=0),
        zero_one=k01,
        broadband=flatness,
        digits=jnp.minimum(-jnp.log10(jnp.maximum(gap, 1e-16)), 16.0),
        frequency=frequency,
        frequency_error=frequency_error,
        oriented=oriented,
        quarters=_disagreement(spectrum.blocks[:, :3], floor=20.0 / spectrum.steps),
        drift=jnp.maximum(
            _disagreement(sums.blocks[:, observables] / per_block, floor=floor),
            _disagreement(sums.high - sums.low, floor=floor),
        ),
        finite=finite,
    )


def decide(spectrum: Spectrum, evidence: Evidence, criteria, drive_period, at_cap):
    """The verdict: phase, period, rotation number and reasons, elementwise."""
    signs = signs_of(spectrum, criteria)
    sign, recurs = signs[0], evidence.recurrence_period > 0
    steady = evidence.quarters <= QUARTER_SIGMAS
    marginal = is_marginal(spectrum, signs, criteria, steady) & ~recurs
    regular = (evidence.zero_one < criteria.zero_one) & (
        evidence.broadband < criteria.broadband
    )
    smooth = evidence.digits >= criteria.digits
    resolved = ~jnp.isnan(spectrum.exponents[0]) | (sign == -1)
    # Weak banded chaos looks regular to the 0-1 test for very long, but its spectrum
    # has a floor; an orbit that still drifts to a torus has lines only.
    clear = spectrum.exponents[0] > criteria.clear_sigmas * spectrum.stderr[0]
    clear &= evidence.broadband > criteria.lines
    reasons = sum(
        jnp.where(condition, bit, 0)
        for condition, bit in (
            (~steady, R_QUARTERS),
            ((evidence.drift > QUARTER_SIGMAS) & ~recurs, R_DRIFT),
            (sign == UNCLEAR, R_SIGN),
            (recurs & (sign == 1), R_RECURS),
            (recurs & (sign == 0) & (evidence.recurrence_error > EXACT), R_CONVERGING),
            (~recurs & (sign < 0), R_NO_RECURRENCE),
            (~recurs & (sign == 0) & ~smooth, R_SLOW),
            (~recurs & (sign == 0) & smooth & ~regular, R_IRREGULAR),
            (~recurs & (sign == 1) & regular & ~clear, R_REGULAR),
            (~resolved, R_UNRESOLVED),
            (marginal, R_MARGINAL),
        )
    )
    reasons = jnp.where(evidence.finite, reasons, R_DIVERGED)
    phase = jnp.where(evidence.positive >= 2, HYPERCHAOTIC, CHAOTIC)
    phase = jnp.where(sign == 0, QUASIPERIODIC, phase)
    periodic = jnp.where(evidence.recurrence_period == drive_period, FIXED, PERIODIC)
    phase = jnp.where(recurs, periodic, phase)
    quarter = _quarters(spectrum.blocks[:, 0])
    left_chaos = (quarter[0] > criteria.zero) & (quarter[3] < -criteria.zero)
    left_chaos &= ~marginal
    phase = jnp.where(
        reasons > 0, jnp.where(left_chaos, TRANSIENT, UNDETERMINED), phase
    )
    phase = jnp.where(evidence.finite, phase, DIVERGED)
    reasons = reasons | jnp.where((reasons > 0) & evidence.finite & at_cap, R_CAP, 0)
    period = jnp.where(phase <= PERIODIC, evidence.recurrence_period, 0)
    return phase, period, on_torus(phase, evidence.frequency), reasons


def on_torus(phase, values):
    """Values of orbits on a torus; NaN of others."""
    return jnp.where(phase == QUASIPERIODIC, values, jnp.nan)


def paper_phase(spectrum: Spectrum, zero: NotNegative = 1e-4) -> Int[Array, "*batch"]:
    """The paper's classifier: sign of the plain leading average, nothing else.

    Args:
        spectrum: Lyapunov spectrum.
        zero: largest size of an exponent that counts as zero, nats per step.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn import dynamics
        >>> spectrum = dynamics.lyapunov_spectrum(
        ...     lambda x: 0.5 * x, jnp.array([1.0]), steps=256)
        >>> dynamics.PHASES[int(paper_phase(spectrum))]
        'periodic'
    """
    leading = spectrum.exponents[0]
    phase = jnp.where(leading > zero, CHAOTIC, QUASIPERIODIC)
    return jnp.where(leading < -zero, PERIODIC, phase)


def _tail_evidence(x, drive_period, criteria):
    period, error = chaos_tests.recurrence(
        x, multiple=drive_period, tolerance=criteria.recurrence
    )
    strobe = x[drive_period - 1 :: drive_period]
    return (
        period,
        error,
        chaos_tests.zero_one(strobe),
        chaos_tests.broadband(x),
        *frequency_of(strobe),
    )


def _quarters(blocks):
    split = jnp.moveaxis(blocks.reshape((4, -1) + blocks.shape[1:]), 0, 1)
    return mean_of(split)


def _disagreement(blocks, *, floor):
    """Largest difference between quarters over its error, over axis 1 of the blocks."""
    blocks = jnp.where(jnp.isfinite(blocks), blocks, 0.0)
    mean = _quarters(blocks)
    split = jnp.moveaxis(blocks.reshape((4, -1) + blocks.shape[1:]), 0, 1)
    n = split.shape[0]
    variance = jnp.sort(mean_of((split - mean) ** 2) * n / (n - 1), axis=0)
    typical = (variance[1] + variance[2]) / 2
    error = jnp.sqrt(2 * typical / n + floor**2)
    return jnp.max((jnp.max(mean, axis=0) - jnp.min(mean, axis=0)) / error, axis=0)
