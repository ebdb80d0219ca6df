r"""The phase of an orbit, from windows that are doubled until the evidence agrees.

An orbit whose window has not settled, or of which the evidence disagrees (`phases`), is
followed through another window of twice the length, up to a limit, and is then called
`transient` or `undetermined`, with reasons.
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
from statmech_attn.dynamics.exponents import frames, lyapunov
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents
from statmech_attn.dynamics.exponents.spectrum import shown_exponents, Spectrum
from statmech_attn.dynamics.maps.systems import advance, as_system, System
from statmech_attn.dynamics.maps.tracing import forward_only
from statmech_attn.dynamics.motion.explanations import Verdict
from statmech_attn.dynamics.motion.phases import (
    decide,
    Evidence,
    on_torus,
    PHASES,
    REASONS,
    TRANSIENT,
    undecided,
    weigh,
)
from statmech_attn.dynamics.options import Criteria
from statmech_attn.labels import Variable
from statmech_attn.options import Count, WholeNumber


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
        *shown_exponents("spectrum."),
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
        return _sentences(self)


def _sentences(verdicts: Classification) -> str | list:
    """Sentences of one verdict or many, nested as the axes of the batch."""
    plain = lambda x, trailing=0: presentation.batch_first(
        verdicts, np.asarray(x), trailing
    )
    phase, of, evidence = plain(verdicts.phase), verdicts.spectrum, verdicts.evidence
    columns = {
        "period": plain(verdicts.period),
        "rotation_number": plain(verdicts.rotation_number),
        "rotation_error": plain(verdicts.rotation_error),
        "oriented": plain(evidence.oriented),
        "exponents": plain(of.exponents, 1),
        "stderr": plain(of.stderr, 1),
        "quarters_of_leading": plain(of.blocks, 2)[..., 0]
        .reshape(*phase.shape, 4, -1)
        .mean(axis=-1),
        "steps": np.broadcast_to(of.steps, phase.shape),
        "recurrence_error": plain(evidence.recurrence_error),
        "positive": plain(evidence.positive),
        "zeros": plain(evidence.zeros),
        "zero_one": plain(evidence.zero_one),
        "broadband": plain(evidence.broadband),
        "digits": plain(evidence.digits),
        "quarters": plain(evidence.quarters),
        "drift": plain(evidence.drift),
    }
    bits = plain(verdicts.reasons)

    def sentence(place: tuple[int, ...]) -> str | list:
        if len(place) < phase.ndim:
            return [sentence((*place, i)) for i in range(phase.shape[len(place)])]
        told_by = int(bits[place])
        verdict = Verdict(
            phase=PHASES[int(phase[place])],
            reasons=[text for i, text in enumerate(REASONS) if told_by >> i & 1],
            criteria=verdicts.criteria,
            autonomous=verdicts.autonomous,
            unit=verdicts.unit,
            **{name: values[place] for name, values in columns.items()},
        )
        return f"{verdict.phase}: {verdict.sentence}."

    return sentence(())


@forward_only
def classify(
    system: Callable[..., PyTree] | System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    steps: Count = 20_000,
    transient: WholeNumber = 1_000,
    exponents: WholeNumber | None = None,
    reorthonormalize_every: Count | None = None,
    tail: Count = 3_072,
    max_doublings: WholeNumber = 4,
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


def extended(first, longer, needs_longer, cap, loop=jax.lax.while_loop):
    """What the first window said, then what one of twice the length says, and so on.

    `longer(result, doublings)` is the result of the window after `result`; `cap` is the
    most doublings; `loop` has the form of `jax.lax.while_loop`.
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
