r"""Exponents of a cycle itself (docs/theory/dynamics.md, section 2).

A cycle of p steps through x has the multipliers $\mu_j$, the eigenvalues of $DF^p(x)$,
and the exponents $\lambda_j = \ln|\mu_j| / p$ in nats per step.  The product of p
Jacobians underflows long before its eigenvalues lose their meaning, so it is never
formed: a frame is carried round the cycle and orthonormalised at every step,

    $J_p \cdots J_1 Q = Q' D U$    D diagonal, in logarithms; U unit upper triangular

until the leading columns of Q' span those of Q.  Where two neighbouring spans agree,
one multiplier lies between them, $\ln|\mu| = \ln D$; columns that go on turning
(complex pairs, moduli that are nearly equal) form a block $Q^T Q' D U$, small and of
one scale, whose eigenvalues are taken.  The point x is refined on the way by Newton in
the span of the frame, and by iteration beside it, where the cycle attracts strongly.

Errors are those of rounding, and measured: the cycle is gone round several times more
with two units in the last place added at random to the state and to the pushed columns
at every step.  A multiplier that such noise changes by a tenth is not resolved.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn.dynamics.frames import (
    EPS,
    longest,
    nonzero,
    orthonormalise,
    safe_log,
    start_frame,
)
from statmech_attn.dynamics.lyapunov import frame_size
from statmech_attn.dynamics.systems import as_system, TangentSystem
from statmech_attn.precision import require_double
from statmech_attn.sums import add_products, add_up


SOURCES = ("average", "cycle")  # of an exponent
NOISE = 2 * EPS  # of the noisy rounds, relative to the state and to the longest column
ROUNDS = 3  # with noise
SPREAD = 64  # different kicks, used one after another
HUGE = 1e150  # larger entries of U, beside columns that are noise, say no more
CLOSED = 1e-12  # error of a modulus through a span that still moves: at rest
HIDDEN = 0.1  # change of ln|mu| under noise: rounding hides the multiplier
OPEN = 1e-3  # a larger one does not separate two multipliers
AT_REST = 1e-9  # last correction of the point, relative to 1 + its size
BLOCK = 3  # multipliers that may share a block
PATIENCE = 100  # rounds in which a frame in general position gains a factor of two


class Round(NamedTuple):
    """A frame that went once round; arrays of JAX or NumPy, (..., *batch)."""

    vector: Any  # (dim) coordinates at the end
    frame: Any  # (dim, k)
    logs: Any  # (k) ln D
    upper: Any  # (k, k) U
    zero: Any  # (k) whether the map sent the column to zero


class CycleSpectrum(NamedTuple):
    """Exponents of cycles in nats per step, k of each, largest first.

    -inf: the map sends a direction to zero; NaN: rounding hides the exponent.

    Attributes:
        exponents: (k, n).
        stderr: (k, n), what rounding does to them; NaN where there is no number.
        settled: (k, n), whether Newton and the spans converged so far; elsewhere
            nothing is known and both others are NaN.
        vector: (dim, n), a point of each cycle.
    """

    exponents: np.ndarray
    stderr: np.ndarray
    settled: np.ndarray
    vector: np.ndarray


def cycle_spectrum(
    step: Callable[[PyTree], PyTree] | TangentSystem,
    state: PyTree,
    period: int,
    *,
    exponents: int | None = None,
) -> CycleSpectrum:
    """Exponents of an attracting cycle of any map, with errors of rounding.

    Args:
        step: the map, or a `TangentSystem`; of one state, not of a batch.
        state: on the cycle, or so near that Newton leads there.
        period: steps after which the orbit closes, a whole number of drive periods.
        exponents: how many leading exponents; all when omitted.

    Returns:
        `CycleSpectrum` of this one cycle, its arrays without the last axis.

    Raises:
        ValueError: a period below 1, or a number of exponents out of range.

    Example:
        >>> import jax.numpy as jnp
        >>> cycle = cycle_spectrum(lambda x: 3.2 * x * (1 - x), jnp.array(0.51), 2)
        >>> bool(abs(cycle.exponents[0] - jnp.log(0.16) / 2) < 3 * cycle.stderr[0])
        True
    """
    require_double()
    if period < 1:
        raise ValueError(f"period must be at least 1; got {period}.")
    system = as_system(step)
    k = frame_size(system, state, exponents)
    guarded = min(k + 1, jax.eval_shape(system.vector, state).shape[0])
    frame = start_frame(system, state, guarded)[1]

    def one(_, vectors, frames, periods, kicks):
        arrays = (vectors[:, 0], frames[..., 0], kicks, periods[0])
        after = _once(system, state, *(jnp.asarray(x) for x in arrays))
        return Round(*(np.asarray(x)[..., None] for x in after))

    cycle = spectra(
        one,
        np.asarray(system.vector(state))[:, None],
        np.asarray(frame)[..., None],
        np.array([whole_period(system, period)]),
        k,
        rank=system.rank,
        patience=PATIENCE,
    )
    return jax.tree.map(lambda x: x[..., 0], cycle)


def whole_period(system: TangentSystem, period):
    """The period in steps after which the coordinates are in their places as well."""
    return np.lcm(period, system.layout_period)


@eqx.filter_jit
def _once(system, state, vector, frame, kicks, period):
    return go_round(system, state, vector, frame, kicks, period)


def go_round(system, state, vector, frame, kicks, period) -> Round:
    """Once round, from a state with other coordinates; batched over trailing axes.

    Args:
        kicks: (n, dim, 1 + k), kicks to the state (relative) and to the columns (of the
            longest), one after another; all zero for none.
        period: steps of each lane.
    """
    state = system.at(state, vector)
    noisy = jnp.any(kicks != 0)
    batch = vector.shape[1:]
    wide = lambda x: x.reshape(x.shape + (1,) * len(batch))
    k = frame.shape[1]

    def kicked(lifted, kick):
        state = system.lower(lifted)
        return system.lift(system.at(state, system.vector(state) * (1 + wide(kick))))

    def step(t, carry):
        lifted, before = carry
        kick = kicks[t % kicks.shape[0]]
        lifted = jax.lax.cond(
            noisy, kicked, lambda lifted, _: lifted, lifted, kick[:, 0]
        )
        after, pushed = system.push(lifted, before.frame)
        basis, lengths, norms = orthonormalise(
            pushed + wide(kick[:, 1:]) * longest(pushed)
        )
        logs = before.logs + safe_log(lengths)
        current = Round(
            system.vector(system.lower(after)),
            basis,
            logs,
            _upper(basis, pushed, lengths, before),
            before.zero | (norms == 0),
        )
        on_the_way = t < period
        choose = lambda x, y: jnp.where(on_the_way, x, y) if _of(batch, x) else x
        return jax.tree.map(choose, (after, current), (lifted, before))

    square = jnp.broadcast_to(wide(jnp.eye(k)), (k, k, *batch))
    first = Round(
        vector,
        frame,
        jnp.zeros((k, *batch)),
        square,
        jnp.zeros((k, *batch), bool),
    )
    carry = (system.lift(state), first)
    return jax.lax.fori_loop(0, jnp.max(period), step, carry)[1]


def _of(batch: tuple[int, ...], x) -> bool:
    """Whether an array has its own numbers for every lane."""
    return x.shape[x.ndim - len(batch) :] == batch


def _upper(basis, pushed, lengths, before: Round):
    """U after a step, D'^-1 R D U with R the upper triangle of basis^T pushed."""
    k, finite = len(lengths), jnp.isfinite(before.logs)
    logs = jnp.where(finite, before.logs, 0.0)
    part = add_products(basis[:, :, None], pushed[:, None]) / nonzero(lengths)[:, None]
    above = jnp.triu(jnp.ones((k, k), bool), 1)
    above = above.reshape((k, k) + (1,) * (part.ndim - 2))
    gaps = jnp.where(above & finite[:, None] & finite, logs - logs[:, None], -jnp.inf)
    part = part * jnp.exp(gaps)
    upper = before.upper + add_up(part[:, j, None] * before.upper[j] for j in range(k))
    return jnp.clip(upper, -HUGE, HUGE)


class Reading(NamedTuple):
    """What one round says of one cycle."""

    after: Round  # of this cycle alone
    across: np.ndarray  # (k', k') Q^T Q'
    correction: np.ndarray  # (dim) of the point, by Newton
    errors: np.ndarray  # (k') of ln|mu| if the multipliers part after each column

    @property
    def away(self) -> float:
        """Distance of the point from the cycle, relative to its size."""
        return float(
            np.abs(self.correction).max() / (1 + np.abs(self.after.vector).max())
        )

    def error(self, k: int) -> float:
        """Of the point, or of the multipliers if they part after k or soon after."""
        return np.maximum(self.away, self.errors[k - 1 : k + BLOCK - 1].min())

    def moduli(self, ends: np.ndarray) -> np.ndarray:
        """ln|mu| (k'), of blocks that end after the given columns; NaN beyond them."""
        moduli = np.full(self.errors.shape, np.nan)
        for first, last in _blocks(ends):
            block = slice(first, last + 1)
            logs = self.after.logs[block]
            moduli[block] = logs if first == last else self._of_block(block, logs)
        return moduli

    def _of_block(self, block: slice, logs: np.ndarray) -> np.ndarray:
        if not np.isfinite(logs.max()):
            return np.full(logs.shape, np.nan)
        scaled = np.exp(logs - logs.max())[:, None] * self.after.upper[block, block]
        matrix = self.across[block, block] @ scaled
        if not np.isfinite(matrix).all():
            return np.full(logs.shape, np.nan)
        with np.errstate(divide="ignore"):
            sizes = np.log(np.abs(np.linalg.eigvals(matrix)))
        return np.sort(sizes)[::-1] + logs.max()


def read(after: Round, vector: np.ndarray, frame: np.ndarray) -> Reading:
    """Newton's correction and the small matrices of one cycle after a round."""
    across = frame.T @ after.frame
    image = across @ (np.exp(after.logs)[:, None] * after.upper)
    away = after.vector - vector
    inside = frame.T @ away
    correction = away
    if np.isfinite(image).all() and np.isfinite(inside).all():
        step = np.linalg.lstsq(np.eye(inside.size) - image, inside, rcond=None)[0]
        correction = away + frame @ (step - inside)
    return Reading(after, across, correction, _errors(after, frame, across))


def _errors(after: Round, frame: np.ndarray, across: np.ndarray) -> np.ndarray:
    """What the spans still move, as errors of ln|mu| on either side of their ends.

    A span that leans by c out of itself couples the two sides by c u, u the entries of
    U between them; eigenvalues of ratio r move by c u / (1 - r), or by the root of c u
    where they are equal.
    """
    outside = after.frame - frame @ across
    columns = len(across)
    errors = np.empty(columns)
    for s in range(columns):
        inner = slice(s + 1)
        lean = np.hypot(
            np.linalg.norm(across[s + 1 :, inner]), np.linalg.norm(outside[:, inner])
        )
        pull = lean * (1 + np.abs(after.upper[inner, s + 1 :]).max(initial=0.0))
        parts = s + 1 < columns and np.isfinite(after.logs[s])
        ratio = np.exp(after.logs[s + 1] - after.logs[s]) if parts else 0.0
        errors[s] = pull / max(1 - ratio, np.sqrt(pull), EPS)
    return errors


def spectra(
    once: Callable[..., Round],
    vectors: np.ndarray,
    frames: np.ndarray,
    periods: np.ndarray,
    k: int,
    *,
    rank: int | None,
    patience: int,
) -> CycleSpectrum:
    """Exponents of n cycles.

    Args:
        once: takes indices of cycles, their vectors, frames and periods, and kicks, and
            returns a `Round` of numpy arrays, cycles on the last axis.
        vectors: (dim, n), near the cycles.
        frames: (dim, k', n) with k' >= k, orthonormal and as well aligned as they are.
        periods: (n,) steps, `whole_period`.
        patience: rounds without half the error before after which a cycle is left as
            it is.
    """
    vectors, frames = vectors.copy(), frames.copy()
    dimension, columns, n = frames.shape
    kicks = np.zeros((SPREAD, dimension, 1 + columns))
    readings: dict[int, Reading] = {}
    k_finite = k if rank is None else min(k, rank)

    def go_round(which: np.ndarray, kicks: np.ndarray) -> dict[int, Reading]:
        after = once(
            which, vectors[:, which], frames[..., which], periods[which], kicks
        )
        lanes = {c: Round(*(x[..., i] for x in after)) for i, c in enumerate(which)}
        return {c: read(x, vectors[:, c], frames[..., c]) for c, x in lanes.items()}

    best, improved = np.full(n, np.inf), np.zeros(n, int)
    pending, rounds = np.arange(n), 0
    while pending.size:
        latest, rounds = go_round(pending, kicks), rounds + 1
        readings |= latest
        todo = np.zeros(pending.size, bool)
        for i, (cycle, reading) in enumerate(latest.items()):
            vectors[:, cycle] += reading.correction
            frames[..., cycle] = reading.after.frame
            if (error := reading.error(k_finite)) < best[cycle] / 2:
                best[cycle], improved[cycle] = error, rounds
            hopeful = rounds - improved[cycle] < patience and reading.away < np.inf
            todo[i] = hopeful and not error <= CLOSED
        pending = pending[todo]
    refined = vectors.copy()
    on_cycle = np.array([c for c in range(n) if readings[c].away <= AT_REST], int)
    ends = {c: np.flatnonzero(readings[c].errors <= OPEN) for c in on_cycle}
    exact = {c: readings[c].moduli(ends[c]) for c in on_cycle}
    deviations = {c: np.zeros(columns) for c in on_cycle}
    for noise in range(ROUNDS if on_cycle.size else 0):
        kicks = NOISE * np.random.default_rng(noise).standard_normal(kicks.shape)
        for cycle, reading in go_round(on_cycle, kicks).items():
            vectors[:, cycle] += reading.correction
            with np.errstate(invalid="ignore"):  # -inf - -inf: `zero` tells
                gap = np.abs(reading.moduli(ends[cycle]) - exact[cycle])
            deviations[cycle] = np.maximum(deviations[cycle], gap)
    outcome = np.full((2, columns, n), np.nan)
    settled = np.zeros((columns, n), bool)
    for cycle in on_cycle:
        reading = readings[cycle]
        spans = _beside(reading.errors, ends[cycle])
        outcome[..., cycle], settled[:, cycle] = _verdict(
            exact[cycle], deviations[cycle] + spans, reading.after.zero, rank
        )
    exponents, stderr = outcome[:, :k] / periods
    return CycleSpectrum(exponents, stderr, settled[:k], refined)


def _blocks(ends: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last column of each block."""
    yield from zip(np.append(0, ends[:-1] + 1), ends, strict=False)


def _beside(errors: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Errors (k') of the moduli from those of the ends of their blocks."""
    beside = np.zeros(errors.shape)
    for first, last in _blocks(ends):
        before = errors[first - 1] if first else 0.0
        beside[first : last + 1] = max(before, errors[last])
    return beside


def _verdict(moduli, deviations, zero, rank: int | None):
    """ln|mu| and errors (2, k'), largest first, and what is settled."""
    settled = ~np.isnan(moduli) | zero
    deviations = np.where(np.isnan(deviations), np.inf, deviations)
    hidden = np.logical_or.accumulate((deviations > HIDDEN) & ~zero)
    moduli = np.where(zero, -np.inf, np.where(hidden, np.nan, moduli))
    if rank is not None:
        moduli[rank:], settled[rank:] = -np.inf, True
    deviations = np.where(np.isfinite(moduli), deviations, np.nan)
    order = np.argsort(np.where(np.isnan(moduli), np.inf, -moduli), kind="stable")
    return np.stack([moduli, deviations])[:, order], settled[order]
