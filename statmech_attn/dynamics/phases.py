r"""Phase of an orbit by several kinds of evidence (docs/theory/dynamics.md, section 2).

Evidence comes from one window of the orbit, pushed with its tangent frame, and from a
recorded stretch (`tail`) right after it.  A phase is given only when the signs of the
exponents, recurrence, the 0-1 test, the spectrum and the convergence of weighted
averages agree and the window has settled.  Otherwise the window is doubled, up to a
limit, and then the orbit is called `transient` or `undetermined`, with reasons.

Exponents are in nats per step, periods in steps.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PyTree

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics import evidence, explanations, frames, lyapunov
from statmech_attn.dynamics.finite_exponents import finite_exponents
from statmech_attn.dynamics.lyapunov import mean_of, Spectrum, Sums
from statmech_attn.dynamics.options import Criteria
from statmech_attn.dynamics.rotation import frequency_of
from statmech_attn.dynamics.signs import is_marginal, signs_of, UNCLEAR
from statmech_attn.dynamics.systems import advance, as_system, System
from statmech_attn.dynamics.tracing import forward_only
from statmech_attn.labels import Variable, Words
from statmech_attn.statistics import rounding


PHASES = Words(
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


class Classification(eqx.Module):
    """The phase of an orbit, the evidence for it, and the Lyapunov spectrum.

    Attributes:
        phase: index into `PHASES`.
        period: in steps; 0 where the orbit is not periodic.
        rotation_number: cycles per drive period; NaN where the orbit is not on a torus.
            In [0, 1) where `evidence.oriented`, else folded into (0, 1/2].
        reasons: bits of `REASONS`: why a phase is undetermined.
        evidence: what the verdict rests on.
        spectrum: Lyapunov spectrum of the last window.
        state: at the end; a longer run may start there.
        criteria: thresholds of the evidence.
        autonomous: whether the system is a flow without a drive, seen at fixed times.
        unit: what a step is.
    """

    phase: Int[Array, "*batch"]  # index into PHASES
    period: Int[Array, "*batch"]  # steps; 0 where the orbit is not periodic
    rotation_number: Float[Array, "*batch"]  # cycles per drive period; NaN if no torus
    reasons: Int[Array, "*batch"]  # bits of REASONS
    evidence: Evidence
    spectrum: Spectrum
    state: PyTree
    criteria: Criteria = eqx.field(static=True, default=Criteria())
    autonomous: bool = eqx.field(static=True, default=False)

    _shown = (
        Variable("phase", "", "phase of the orbit", flags=PHASES),
        Variable("period", "", "period of the orbit, 0 if none", "{unit}", "p"),
        Variable(
            "rotation_number",
            "",
            "rotation number, cycles per drive period",
            symbol="ρ",
            error="rotation_error",
        ),
        *lyapunov.shown_exponents("spectrum."),
        *(
            Variable(
                name, "", words, symbol=symbol, value=f"evidence.{value}", line=False
            )
            for name, value, words, symbol in (
                (
                    "recurrence_error",
                    "recurrence_error",
                    "largest |x(t+p) - x(t)|, relative",
                    "δ",
                ),
                ("n_positive", "positive", "positive exponents", "n_+"),
                ("n_zero", "zeros", "zero exponents", "n_0"),
                ("zero_one", "zero_one", "K of the 0-1 test", "K"),
                ("broadband", "broadband", "median over mean spectral power", "S"),
                (
                    "convergence_digits",
                    "digits",
                    "digits to which weighted half averages agree",
                    "d",
                ),
                (
                    "quarter_disagreement",
                    "quarters",
                    "exponents by quarter, standard errors",
                    "z_λ",
                ),
                ("drift", "drift", "observables by quarter, standard errors", "z_m"),
            )
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def settled(self) -> Bool[Array, "*batch"]:
        """Whether the phase is neither transient, undetermined nor diverged."""
        return self.phase < TRANSIENT

    @property
    def rotation_error(self) -> Float[Array, "*batch"]:
        """Error of the rotation number; NaN where the orbit is not on a torus."""
        return on_torus(self.phase, self.evidence.frequency_error)

    @property
    def unit(self) -> str:
        """What a step of the system is: a token, a unit of time, ..."""
        return self.spectrum.unit

    @property
    def leading_axes(self) -> int:
        """Axes of a batch that stand first."""
        return self.spectrum.leading_axes

    def explain(self) -> str | list:
        """Why the verdict holds, in a sentence with its numbers.

        Of a batch there is a list of sentences, of a batch of batches a list of lists.

        Example:
            >>> import jax.numpy as jnp
            >>> c = classify(lambda x: 0.5 * x, jnp.array(0.3), steps=2000)
            >>> print(c.explain().split(",")[0])
            fixed: the orbit recurs after 1 step
        """
        return explanations.explain(self, PHASES, REASONS)


@forward_only
def classify(
    system: Callable[..., PyTree] | System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    steps: int = 20_000,
    transient: int = 1_000,
    exponents: int | None = None,
    reorthonormalize_every: int | None = None,
    tail: int = 3_072,
    max_doublings: int = 4,
    criteria: Criteria = Criteria(),
) -> Classification:
    """Phase of the orbit that starts at a state, by several kinds of evidence.

    Recurrence, 0-1 test and spectrum look at what the system observes; `fixed` means
    the period of its drive.  Every orbit of a flow that is not at rest has an exponent
    0: its limit cycles are `quasiperiodic` with no other zero exponent, as `explain()`
    says; on a `section` of it they are `periodic`, or `fixed` where they cross it once.
    Works under `jax.vmap`.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        state: initial condition.
        parameters: of the system, a tree of arrays; none when omitted.
        steps: length of the first window; it doubles while the orbit is undetermined.
        transient: steps before the first window.
        exponents: how many leading exponents decide; all when omitted.
        reorthonormalize_every: steps between Gram-Schmidt; the drive period if omitted.
        tail: recorded steps after the window; periods up to tail/3 can be found.
        max_doublings: largest number of doublings.
        criteria: thresholds of the evidence.

    Returns:
        The phase (index into `PHASES`), period, evidence, reasons, spectrum of the last
        window and final state; `explain()` states why.

    Raises:
        ValueError: a count out of range, or a tail below 30 drive periods.
        RuntimeError: double precision is off.

    Example:
        >>> import jax.numpy as jnp
        >>> c = classify(lambda x: 3.2 * x * (1 - x), jnp.array(0.3), steps=2000)
        >>> PHASES[int(c.phase)], int(c.period)
        ('periodic', 2)
    """
    require_double()
    system = as_system(system)
    map, drive_period = system.at(parameters), system.drive_period
    every = reorthonormalize_every or drive_period
    lyapunov.check_counts(steps, transient, every, lyapunov.BLOCKS)
    if tail < 30 * drive_period:
        raise ValueError(f"tail must be at least 30 drive periods; got {tail}.")
    measured = dict(
        observe=system.observe or map.vector,
        k=lyapunov.frame_size(map, state, exponents),
        every=every,
        tail=tail - tail % drive_period,
    )
    options = dict(every=every, drive_period=drive_period, criteria=criteria)
    per_block = turns_per_block(steps, every, drive_period)
    autonomous = system.flow is not None and not system.flow.driven

    def window(state, before, doubling):
        turns = jnp.asarray(per_block * 2**doubling)
        state, sums, series, rank, dimension = _window(
            map, state, jnp.asarray(before), turns, **measured
        )
        verdict = _verdict(
            sums,
            series,
            per_block=turns,
            at_cap=jnp.asarray(doubling >= max_doublings),
            rank=rank,
            dimension=dimension,
            unit=system.unit,
            **options,
        )
        return Classification(
            *verdict, state=state, criteria=criteria, autonomous=autonomous
        )

    first = window(state, transient, 0)
    if not max_doublings:
        return first
    traced = isinstance(first.phase, Tracer)  # as below jax.vmap
    read = (lambda x: x) if traced else np.asarray
    return extended(
        first,
        lambda result, doubling: window(result.state, 0, doubling),
        lambda result: undecided(read(result.phase)),
        max_doublings,
        jax.lax.while_loop if traced else repeated,
    )


def turns_per_block(steps: int, every: int, drive_period: int) -> int:
    """Turns of a block of a window of so many steps at least.

    A block holds whole drive periods: means of the orbit by block are compared with
    one another, and must be taken over the same phases of the drive.
    """
    common = drive_period // math.gcd(every, drive_period)
    turns = -(-steps // (lyapunov.BLOCKS * every))
    return -(-turns // common) * common


@eqx.filter_jit
def _window(system, state, transient, per_block, *, observe, k, every, tail):
    """Sums of one window after a transient and its tail, for `_verdict`."""
    state = advance(system, state, transient)
    middle, frame, sums = measure(system, state, observe, k, per_block, every)
    rank = finite_exponents(system, state)
    state, series = record(system, middle, observe, tail)
    return state, sums, series, rank, frame.shape[0]


@eqx.filter_jit
def _verdict(
    sums,
    series,
    *,
    per_block,
    at_cap,
    rank,
    dimension,
    unit,
    every,
    drive_period,
    criteria,
) -> tuple:
    """The verdict on a window: a program of shapes, shared by all systems."""
    spectrum = lyapunov.summarise(
        sums,
        per_block=per_block,
        every=every,
        rank=rank,
        dimension=dimension,
        unit=unit,
    )
    witnesses = weigh(spectrum, sums, series, per_block, drive_period, criteria)
    verdict = decide(spectrum, witnesses, criteria, drive_period, at_cap)
    return *verdict, witnesses, spectrum


def undecided(phase):
    """Whether a longer window may tell; of arrays of JAX or NumPy."""
    return (phase == TRANSIENT) | (phase == UNDETERMINED)


def extended(first, longer, needs_longer, cap, loop=jax.lax.while_loop):
    """What the first window said, then what one of twice the length says, and so on.

    Args:
        first: result of the first window.
        longer: (result, doublings) -> result of the window after it.
        needs_longer: whether a result is undecided.
        cap: most doublings.
        loop: the one of JAX, or of the same form.
    """

    def go_on(carry):
        result, doublings = carry
        return needs_longer(result) & (doublings < cap)

    def body(carry):
        result, doublings = carry
        return longer(result, doublings + 1), doublings + 1

    return loop(go_on, body, (first, 0))[0]


def repeated(go_on: Callable, body: Callable, carry):
    """`jax.lax.while_loop` outside of programs."""
    while go_on(carry):
        carry = body(carry)
    return carry


def examine(
    system,
    state,
    *,
    observe,
    k,
    per_block,
    every,
    tail,
    drive_period,
    criteria,
    spacing=None,
) -> tuple[PyTree, Spectrum, Evidence, tuple[PyTree, Array]]:
    """One window and its tail; batched over trailing axes, constant memory.

    Returns the state at the end, the spectrum, the evidence, and the state and the
    frame where the window ended and the tail began.
    """
    middle, frame, sums = measure(system, state, observe, k, per_block, every, spacing)
    spectrum = lyapunov.summarise(
        sums,
        per_block=per_block,
        every=every,
        rank=finite_exponents(system, state),
        dimension=frame.shape[0],
    )
    state, series = record(system, middle, observe, tail)
    witnesses = weigh(spectrum, sums, series, per_block, drive_period, criteria)
    return state, spectrum, witnesses, (middle, frame)


def measure(system, state, observe, k, per_block, every, spacing=None):
    """State, frame and sums at the end of a window."""
    lifted, frame = frames.start_frame(system, state, k)
    lifted, frame, sums = lyapunov.measure(
        system,
        lifted,
        frame,
        observe,
        turns=lyapunov.alignment(per_block, every),
        per_block=per_block,
        every=every,
        blocks=lyapunov.BLOCKS,
        spacing=spacing,
    )
    return system.lower(lifted), frame, sums


def record(system, state, observe, steps: int):
    """The state after some steps, and what was observed in each (steps, d, *batch)."""
    body = lambda s, _: (lambda after: (after, observe(after)))(system.step(s))
    return jax.lax.scan(body, state, None, length=steps)


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


def as_in_paper(spectrum: Spectrum, zero: float = 1e-4) -> Int[Array, "*batch"]:
    """The paper's classifier: sign of the plain leading average, nothing else.

    Args:
        spectrum: Lyapunov spectrum.
        zero: largest size of an exponent that counts as zero, nats per step.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn import dynamics
        >>> spectrum = dynamics.lyapunov_spectrum(
        ...     lambda x: 0.5 * x, jnp.array([1.0]), steps=256)
        >>> dynamics.PHASES[int(as_in_paper(spectrum))]
        'periodic'
    """
    leading = spectrum.exponents[0]
    phase = jnp.where(leading > zero, CHAOTIC, QUASIPERIODIC)
    return jnp.where(leading < -zero, PERIODIC, phase)


def _tail_evidence(x, drive_period, criteria):
    period, error = evidence.recurrence(
        x, multiple=drive_period, tolerance=criteria.recurrence
    )
    strobe = x[drive_period - 1 :: drive_period]
    return (
        period,
        error,
        evidence.zero_one(strobe),
        evidence.broadband(x),
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
