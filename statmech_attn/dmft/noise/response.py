r"""Response to a field, and the spectrum of the noise (docs/theory/response.md).

A field $h_i \to h_i + b(t) W^f_{a,i}$ with $b(t) = b \, e^{i \omega t}$ moves the mean
of an overlap, averaged over an orbit of p tokens, by $\chi(\omega) \, b(t)$.  Noise of
N spins makes it fluctuate with the spectrum $S(\omega) / N$.  Deviations obey

    $\delta z_{t+1} = J_t \, \delta z_t + B_t \, x_t$,
    $\delta y_t = C_t \, \delta z_t + D_t \, x_t$

where x are deviations of the class means of the token drawn: the field's, or noise.
What such a deviation at time s does to y at frequency omega,

    $T_s = D_s + e^{-i \omega} L_{s+1} B_s$,
    $L_s = C_s + e^{-i \omega} L_{s+1} J_s$    (O, S) and (O, d)

is found by going backwards round the orbit, and gives both:

    $\chi = \langle T_s \, \Delta (1 - \tanh^2 h_s) \, W^f_a \rangle_s$,
    $S = \langle T_s \, Q_s \, T_s^\dagger \rangle_s$

Rows L are closed round the orbit by one product of Jacobians, as $1 - e^{-i \omega p}
J_{p-1} \dots J_0$.  Unlike exponents of a cycle this needs no scaling: the product is
of a stable orbit, and what underflows in it is far below the 1 beside it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from annotated_types import Ge, Le
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Complex, Float, Int

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dmft.mean_field import advance, trajectory
from statmech_attn.dmft.network import (
    clock_period,
    drawn_means,
    Network,
    Parameters,
    State,
)
from statmech_attn.dmft.noise.fluctuations import (
    beside,
    coordinates,
    flattened,
    OBSERVABLES,
    spin_variance,
)
from statmech_attn.dmft.patterns import KINDS
from statmech_attn.dynamics import tracing
from statmech_attn.labels import Variable, with_count
from statmech_attn.options import (
    Count,
    MAX_COUNT,
    Numbers,
    Positive,
    WholeNumber,
)


AXES = "frequency observable pattern"
RATE = "rad / token"
CONJUGATE = {"m_o_se": "o", "m_v": "v", "m_q": "q", "m_k": "k"}  # fields
CLOSED = 1e-9  # of an orbit after Newton's method
FAR = 1e-2  # from the orbit that was given
MARGIN = 1e-9  # from modulus one, of a multiplier of a stable orbit


class Response(eqx.Module):
    """Susceptibility and spectrum of an orbit, and their ratio.

    Attributes:
        frequencies: in radians per token.
        observables: names, in the order of their axis.
        field: family and number of the pattern along which the field acts.
        period: of the orbit, in tokens.
        multiplier: largest modulus of a multiplier of the orbit, below 1.
        susceptibility: of every observable and pattern to the field.
        spectrum: of the fluctuations, times N.
        temperature: effective temperature of every overlap in the field of its own
            pattern, 1 in equilibrium; NaN for the attention, which has no field, and at
            multiples of pi.
    """

    frequencies: Float[np.ndarray, " W"]
    observables: tuple[str, ...] = eqx.field(static=True)
    field: tuple[str, int] = eqx.field(static=True)
    period: Int[np.ndarray, "*batch"]
    multiplier: Float[np.ndarray, "*batch"]
    susceptibility: Complex[np.ndarray, "W O M *batch"]
    spectrum: Float[np.ndarray, "W O M *batch"]
    temperature: Float[np.ndarray, "W O M *batch"]

    _shown = (
        Variable("frequency", "frequency", "frequency", RATE, "ω", value="frequencies"),
        Variable(
            "observable",
            "observable",
            "observable",
            value=lambda result: np.array(result.observables),
        ),
        Variable(
            "field",
            "",
            "family and number of the pattern of the field",
            value=lambda result: np.array("{} {}".format(*result.field)),
        ),
        Variable("period", "", "period of the orbit", "token", "p"),
        Variable("multiplier", "", "largest modulus of a multiplier", "1", "|μ|"),
        Variable("susceptibility", AXES, "susceptibility", "1", "χ"),
        Variable("spectrum", AXES, "power spectrum of the noise, times N", "1", "N S"),
        Variable("temperature", AXES, "effective temperature", "1", "T_eff"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


@tracing.untraced
def response(
    net: Network,
    params: Parameters,
    state: State,
    *,
    frequencies: Annotated[Numbers, "W"],
    field: str = "v",
    pattern: WholeNumber = 0,
    observables: Sequence[str] = OBSERVABLES,
    harmonic: Annotated[int, Ge(-MAX_COUNT), Le(MAX_COUNT)] = 0,
    transient: WholeNumber = 20_000,
    longest: Count = 1024,
    tolerance: Positive = 1e-6,
) -> Response:
    """Linear response and linear noise at a fixed point or on a cycle.

    Time counts from the first token at position 0 of the code after the transient.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: where the orbit starts.
        frequencies: of the field, in radians per token; 0 for a constant one.
        field: family of the pattern along which the field acts: o, v, q or k.
        pattern: its number, from 0.
        observables: names of `OBSERVABLES`.
        harmonic: number k of the part of the response that has the frequency
            omega + 2 pi k / p on a cycle of p tokens; 0 is the average over the phase.
        transient: tokens before the orbit is looked at.
        longest: longest period that is looked for, in tokens.
        tolerance: how closely an orbit returns; Newton's method does the rest.

    Returns:
        `Response`: susceptibility, spectrum and effective temperature.

    Raises:
        ValueError: an orbit that is no fixed point or cycle, diverged or is not stable;
            an unknown observable, family or pattern; frequencies that are no numbers.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters([1.0, 1.2], file.gamma, file.epsilon)
        >>> start = dmft.from_checkpoint(net, params, file)
        >>> at = response(net, params, start, frequencies=[0.0, 0.3], longest=16)
        >>> at.susceptibility.shape, at.period.tolist()
        ((2, 5, 3, 2), [4, 4])
    """
    require_double()
    check_names(net, field, pattern, observables)
    frequencies = np.asarray(frequencies, float)
    params, state, batch = flattened(params, state)
    state = advance(net, params, state, transient + net.context)
    state = advance(net, params, state, -state.clock % net.context)
    _, series = trajectory(net, params, state, steps=longest + net.context)
    asked = frequencies, tuple(observables), (field, pattern)
    points = []
    for i in range(series.A.shape[-1]):
        lane = lambda x: jax.device_put(np.asarray(x)[..., i]) if x.ndim else x
        of_point, start = jax.tree.map(lane, (params, state))
        period = _period(
            net, of_point, np.asarray(series.A[..., i]), longest, tolerance
        )
        orbit = close_orbit(net, of_point, start, period)
        points.append(_respond(net, of_point, orbit, *asked, harmonic))
    stacked = (
        np.stack(x, axis=-1).reshape(np.shape(x[0]) + batch)
        for x in zip(*points, strict=True)
    )
    return Response(*asked, *stacked)


def check_names(net: Network, field, pattern, observables) -> None:
    """Refuse observables, families and patterns that there are not, in one line."""
    unknown = [name for name in observables if name not in OBSERVABLES]
    if unknown or not observables:
        raise ValueError(
            f"observables must be of {', '.join(OBSERVABLES)}; got "
            f"{', '.join(map(repr, unknown)) or 'none'}."
        )
    if field not in KINDS:
        raise ValueError(f"field must be one of {', '.join(KINDS)}; got {field!r}.")
    if pattern not in range(net.n_patterns):
        raise ValueError(
            f"pattern must lie in 0..{net.n_patterns - 1}; got {pattern!r}."
        )


def _words(params: Parameters) -> str:
    return f"state: at beta = {float(params.beta):.10g}"


def _period(net: Network, params: Parameters, A, longest: int, tolerance: float) -> int:
    """Tokens after which the attention vectors (steps, M) of a window return."""
    if not np.isfinite(A).all():
        raise ValueError(f"{_words(params)} the orbit diverged.")
    drive = clock_period(net, float(params.epsilon))
    window, periods = np.arange(net.context), np.arange(drive, longest + 1, drive)
    gaps = [abs(A[p + window] - A[window]).max() for p in periods]
    if not gaps or min(gaps) > tolerance:
        raise ValueError(
            f"{_words(params)} the orbit returns within "
            f"{min(gaps, default=np.inf):.2g} in {with_count(longest, 'token')}, not "
            f"within {tolerance:g}: linear response needs a fixed point or a cycle "
            "that is settled (the phase of a torus drifts away, chaos amplifies)."
        )
    return int(periods[np.argmax(np.array(gaps) <= tolerance)])


class Orbit(NamedTuple):
    """A closed orbit and the derivatives along it; coordinates by age of the token.

    Attributes:
        J: of the next state in the state.
        B: of the next state in the class means of the token.
        C: of the observables in the state.
        D: of the observables in the class means.
        gain: of the class means in their fields.
        variance: of the class means, times N.
    """

    J: Float[np.ndarray, "p d d"]
    B: Float[np.ndarray, "p d S"]
    C: Float[np.ndarray, "p 5M d"]
    D: Float[np.ndarray, "p 5M S"]
    gain: Float[np.ndarray, "p S"]
    variance: Float[np.ndarray, "p S"]


def close_orbit(net: Network, params: Parameters, state: State, period: int) -> Orbit:
    """The cycle near a state, by Newton's method in the coordinates of the noise.

    Its period is the smallest: an orbit that still turns about it may take longer.
    """
    points, orbit = _go_round(net, params, state, period)
    moved, before = 0.0, np.inf
    while before / 2 > (gap := abs(points[-1] - points[0]).max()) > 0:
        before, closing = gap, np.eye(points.shape[1]) - product(orbit.J)
        step = np.linalg.lstsq(closing, points[-1] - points[0])[0]
        moved, state = moved + step, _moved(state, points[0] + step)
        points, orbit = _go_round(net, params, state, period)
    if not gap < CLOSED or np.abs(moved).max() > FAR:
        raise ValueError(
            f"{_words(params)} Newton's method finds no cycle of "
            f"{with_count(period, 'token')} beside the orbit: linear response needs a "
            "fixed point or a cycle that is settled."
        )
    drive = clock_period(net, float(params.epsilon))
    shorter = (q for q in range(drive, period, drive) if period % q == 0)
    back = lambda q: abs(points[q] - points[0]).max() < CLOSED
    period = next(filter(back, shorter), period)
    return Orbit(*(x[:period] for x in orbit))


def _go_round(net: Network, params: Parameters, state: State, period: int):
    """Coordinates (p + 1, d) of an orbit, and its `Orbit`."""
    steps = 2 ** period.bit_length()  # few programs
    points, *parts = map(np.asarray, _derivatives(net, params, state, steps))
    return points[: period + 1], Orbit(*(x[:period] for x in parts))


def product(J: Float[np.ndarray, "p d d"]) -> Float[np.ndarray, "d d"]:
    """J_{p-1} ... J_0."""
    monodromy = J[0]
    for later in J[1:]:
        monodromy = later @ monodromy
    return monodromy


def _by_age(state: State, size: int) -> Int[Array, " d"]:
    """Places of coordinates, which are by slot of the window, in the order of age."""
    context, M = state.v.shape
    slots = (state.clock - 1 - jnp.arange(context)) % context
    ring = (slots[:, None] * M + jnp.arange(M)).ravel()
    rest = jnp.arange(2 * ring.size, size)
    return jnp.concatenate([ring, ring.size + ring, rest])


def _moved(state: State, by_age) -> State:
    """The state that has other coordinates."""
    x, unravel = ravel_pytree(coordinates(state))
    v, k, newest, means = unravel(x.at[_by_age(state, x.size)].set(by_age))
    attention = state.attention.at[state.clock].set(newest)
    return State(v, k, attention, state.clock, state.tokens, means)


@partial(jax.jit, static_argnames="steps")
def _derivatives(net: Network, params: Parameters, state: State, steps: int):
    """Coordinates of an orbit by age; parts of `Orbit`, (steps, ...) each."""
    redrawn = 1.0 if params.redrawn is None else params.redrawn
    fractions, observed = jnp.abs(net.weighted[0, 0]), len(OBSERVABLES) * net.n_patterns

    def body(state, _):
        x, unravel = ravel_pytree(coordinates(state))
        move = beside(net, params, state, 1.0)
        of_vector = lambda x, noise: move(unravel(x), noise)
        derive = jax.jacfwd(of_vector, argnums=(0, 1), has_aux=True)
        ((J, B), (C, D)), after = derive(x, jnp.zeros(net.n_classes))
        gain = redrawn * (1 - drawn_means(net, params, state.newest) ** 2)
        spins = jnp.where(fractions > 0, fractions, jnp.inf)
        variance = spin_variance(net, params, state) / spins
        old, new = _by_age(state, x.size), _by_age(after, x.size)
        J, C, D = J[new][:, old], C[:observed, old], D[:observed]
        return after, (x[old], J, B[new], C, D, gain, variance)

    return jax.lax.scan(body, state, None, length=steps)[1]


def _respond(net, params, orbit, frequencies, observables, field, harmonic):
    """Period, multiplier, susceptibility, spectrum and temperature of one point."""
    period, M = len(orbit.J), net.n_patterns
    multipliers = np.linalg.eigvals(product(orbit.J))
    _check_stability(params, multipliers, period)
    rows = np.concatenate(
        [np.arange(M) + M * OBSERVABLES.index(name) for name in observables]
    )
    orbit = orbit._replace(C=orbit.C[:, rows], D=orbit.D[:, rows])
    power, to_fields = transfer(orbit, net, frequencies)
    to_field = to_fields
    if harmonic:
        shifted = frequencies + 2 * np.pi * harmonic / period
        _, to_field = transfer(orbit, net, shifted, harmonic)
    shape = len(frequencies), len(observables), M
    power = power.reshape(shape)
    return (
        np.array(period),
        abs(multipliers).max(),
        to_field[:, :, KINDS.index(field[0]), field[1]].reshape(shape),
        power,
        _temperature(params, frequencies, observables, power, to_fields),
    )


def _check_stability(params: Parameters, multipliers, period: int) -> None:
    largest = multipliers[np.argmax(abs(multipliers))]
    modulus, place = abs(largest), abs(np.angle(largest)) / period
    orbit = f"{_words(params)} the orbit of {with_count(period, 'token')}"
    if modulus > 1 + MARGIN:
        raise ValueError(
            f"{orbit} is unstable (a multiplier of modulus {modulus:.10g}): deviations "
            "grow, and no spectrum exists."
        )
    if modulus > 1 - MARGIN:
        raise ValueError(
            f"{orbit} is at a bifurcation: a multiplier of modulus 1 is a resonance at "
            f"the frequency {place:.6g} rad per token, where the response has no bound."
        )


def transfer(orbit: Orbit, net: Network, frequencies, harmonic: int = 0):
    """Spectrum (W, O), and susceptibility to every field (W, O, 4, M).

    With a harmonic k, frequencies are those of the response.
    """
    (period, size), shape = orbit.J.shape[:2], (len(frequencies), orbit.C.shape[1])
    turn = np.exp(-1j * frequencies)[:, None, None]
    rows = np.zeros((*shape, size), complex)
    for t in reversed(range(period)):
        rows = orbit.C[t] + np.tensordot(turn * rows, orbit.J[t], 1)
    upper, basis = scipy.linalg.schur(product(orbit.J), output="complex")[:2]
    rows = np.tensordot(rows, basis, 1)
    once = turn[..., 0] ** period
    for j in range(size):
        before = rows[..., :j] @ upper[:j, j]
        rows[..., j] = (rows[..., j] + once * before) / (1 - once * upper[j, j])
    rows = np.tensordot(rows, basis.conj().T, 1)
    patterns = np.sign(np.asarray(net.weighted))
    power, fields = np.zeros(shape), np.zeros((*shape, *patterns.shape[:2]), complex)
    for t in reversed(range(period)):
        pulled = turn * rows
        to_means = orbit.D[t] + np.tensordot(pulled, orbit.B[t], 1)
        rows = orbit.C[t] + np.tensordot(pulled, orbit.J[t], 1)
        power += abs(to_means) ** 2 @ orbit.variance[t]
        phase = np.exp(-2j * np.pi * harmonic * t / period)
        fields += phase * np.tensordot(to_means, orbit.gain[t] * patterns, (2, 2))
    return power / period, fields / period


def _temperature(params: Parameters, frequencies, observables, power, to_fields):
    """Spectrum over that of equilibrium with this response, (W, O, M)."""
    copied = 0.0 if params.redrawn is None else 1 - float(params.redrawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        sine = np.where(abs(np.sin(frequencies)) > 1e-12, np.sin(frequencies), np.nan)
        cotangent = (np.cos(frequencies) / sine)[:, None]
    temperature = np.full(power.shape, np.nan)
    M = power.shape[2]
    for i, name in enumerate(observables):
        if kind := CONJUGATE.get(name):
            rows = range(M * i, M * (i + 1))
            chi = to_fields[:, rows, KINDS.index(kind), range(M)]
            share = 1.0 if kind == "o" else 1 - float(params.epsilon)
            balanced = share * (1 + copied) * (chi.real - cotangent * chi.imag)
            temperature[:, i] = power[:, i] / balanced
    return temperature
