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

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn import presentation
from statmech_attn.batches import add_products, require_double
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents
from statmech_attn.dynamics.exponents.frames import EPS, start_frame
from statmech_attn.dynamics.exponents.lyapunov import frame_size
from statmech_attn.dynamics.maps.orthonormal import (
    longest,
    nonzero,
    orthonormalise,
    safe_log,
)
from statmech_attn.dynamics.maps.systems import (
    as_system,
    require_like,
    shape_of_step,
    System,
    TangentSystem,
)
from statmech_attn.dynamics.maps.tracing import untraced
from statmech_attn.labels import STEP, Variable
from statmech_attn.options import Count, WholeNumber


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
APART = 18.0  # between ln|mu| in a block, of which the smaller loses half its digits
SEPARATING = 3  # rounds after which spans part multipliers so far apart
ROUNDS_TO_HALVE = 100  # in which a frame in general position gains a factor of two


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
        angles: (k, n), of the multipliers, radians.
        unit: what a step is.
    """

    exponents: np.ndarray
    stderr: np.ndarray
    settled: np.ndarray
    vector: np.ndarray
    angles: np.ndarray
    unit: str = STEP

    _shown = (
        Variable(
            "lyapunov",
            "exponent",
            "Lyapunov exponents of the cycle",
            "nat / {unit}",
            "λ_i",
            value="exponents",
            error="stderr",
        ),
        Variable("settled", "exponent", "whether Newton converged"),
        Variable(
            "angle",
            "exponent",
            "angles of multipliers",
            "rad",
            "θ_i",
            value="angles",
            line=False,
        ),
        Variable(
            "point", "coordinate", "a point of the cycle", value="vector", line=False
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


@untraced
def cycle_spectrum(
    system: Callable[..., PyTree] | System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    period: Count,
    exponents: WholeNumber | None = None,
) -> CycleSpectrum:
    """Exponents of an attracting cycle of any map, with errors of rounding.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        state: on the cycle, or so near that Newton leads there; one, not a batch.
        parameters: of the system, a tree of arrays; none when omitted.
        period: steps after which the orbit closes, a whole number of drive periods.
        exponents: how many leading exponents; all when omitted.

    Returns:
        `CycleSpectrum` of this one cycle, its arrays without the last axis.

    Raises:
        ValueError: a period below 1, a number of exponents out of range, or a map that
            changes its state's shape.

    Example:
        >>> import jax.numpy as jnp
        >>> cycle = cycle_spectrum(lambda x: 3.2 * x * (1 - x), jnp.array(0.51),
        ...     period=2)
        >>> bool(abs(cycle.exponents[0] - jnp.log(0.16) / 2) < 3 * cycle.stderr[0])
        True
    """
    require_double()
    system = as_system(system)
    found = spectrum_of(system.at(parameters), state, period, exponents)
    return found._replace(unit=system.unit)


def spectrum_of(map: TangentSystem, state, period, exponents=None) -> CycleSpectrum:
    """`cycle_spectrum` of a map at fixed parameters."""
    k = frame_size(map, state, exponents)
    require_like(shape_of_step(map.step, state), state)
    guarded = min(k + 1, jax.eval_shape(map.vector, state).shape[0])
    frame = start_frame(map, state, guarded)[1]

    def one(_, vectors, frames, periods, kicks):
        arrays = (vectors[:, 0], frames[..., 0], kicks, periods[0])
        after = _once(map, state, *(jnp.asarray(x) for x in arrays))
        return Round(*(np.asarray(x)[..., None] for x in after))

    *arrays, _ = spectra(
        one,
        np.asarray(map.vector(state))[:, None],
        np.asarray(frame)[..., None],
        np.array([whole_period(map, period)]),
        k,
        rank=finite_exponents(map, state),
        patience=ROUNDS_TO_HALVE,
        separating=SEPARATING,
    )
    return CycleSpectrum(*(x[..., 0] for x in arrays), unit=STEP)


def whole_period(system: TangentSystem, period):
    """The period in steps after which the coordinates are in their places as well."""
    return np.lcm(period, system.layout_period)


@eqx.filter_jit
def _once(system, state, vector, frame, kicks, period):
    return go_round(system, state, vector, frame, kicks, period)


def go_round(system, state, vector, frame, kicks, period) -> Round:
    """Follow a state with other coordinates once round the cycle.

    `kicks` (n, dim, 1 + k) are those to the state (relative) and to the columns (of the
    longest), one after another, all zero for none; `period` are steps of each lane.
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
    """U after a step, D'^-1 R D U with R the upper triangle of basis^T pushed.

    A loop over rows: written out, XLA takes the products of R again for every row.
    """
    k, finite = len(lengths), jnp.isfinite(before.logs)
    logs = jnp.where(finite, before.logs, 0.0)
    part = add_products(basis[:, :, None], pushed[:, None]) / nonzero(lengths)[:, None]
    above = jnp.triu(jnp.ones((k, k), bool), 1)
    above = above.reshape((k, k) + (1,) * (part.ndim - 2))
    gaps = jnp.where(above & finite[:, None] & finite, logs - logs[:, None], -jnp.inf)
    part = part * jnp.exp(gaps)

    def add(i, upper):
        return upper.at[i].add(add_products(part[i][:, None], before.upper))

    return jnp.clip(jax.lax.fori_loop(0, k, add, before.upper), -HUGE, HUGE)


class RoundResult(NamedTuple):
    """What one round says of n cycles; here they are the first axis."""

    vector: np.ndarray  # (n, dim) at the end of the round
    frame: np.ndarray  # (n, dim, k')
    logs: np.ndarray  # (n, k') ln D
    upper: np.ndarray  # (n, k', k') U
    zero: np.ndarray  # (n, k') whether the map sent the column to zero
    across: np.ndarray  # (n, k', k') Q^T Q'
    correction: np.ndarray  # (n, dim) of the point, by Newton
    errors: np.ndarray  # (n, k') of ln|mu| if the multipliers part after each column

    @property
    def away(self) -> np.ndarray:
        """Distances (n) of the points from the cycles, relative to their size."""
        size = 1 + np.abs(self.vector).max(axis=1)
        return np.abs(self.correction).max(axis=1) / size

    def error(self, k: int) -> np.ndarray:
        """Error of the points, or of the multipliers if they part near k."""
        return np.maximum(self.away, self.errors[:, k - 1 : k + BLOCK - 1].min(axis=1))

    def apart(self) -> np.ndarray:
        """Whether (n) moduli that are not parted by a span are far apart."""
        gaps = np.abs(np.diff(np.where(np.isfinite(self.logs), self.logs, 0.0), axis=1))
        return np.any((gaps > APART) & (self.errors[:, :-1] > OPEN), axis=1)

    def multipliers(self, ends: np.ndarray) -> np.ndarray:
        """ln mu (2, n, k'), ln|mu| and angles, of blocks that end after the marked
        columns; NaN beyond.
        """
        first, last = _blocks(ends)
        column = np.arange(ends.shape[1])
        angles = np.where(np.diagonal(self.across, 0, 1, 2) < 0, np.pi, 0.0)
        single = (first == column) & (last == column)
        logs = np.where(single, [self.logs, angles], np.nan)
        wide = (first == column) & (last > column) & (last < ends.shape[1])
        for cycle, start in zip(*np.nonzero(wide), strict=True):
            block = slice(start, last[cycle, start] + 1)
            logs[:, cycle, block] = self._of_block(cycle, block)
        return logs

    def _of_block(self, cycle: int, block: slice) -> np.ndarray:
        logs = self.logs[cycle, block]
        unknown = np.full((2, *logs.shape), np.nan)
        if not np.isfinite(logs.max()):
            return unknown
        scaled = np.exp(logs - logs.max())[:, None] * self.upper[cycle, block, block]
        matrix = self.across[cycle, block, block] @ scaled
        if not np.isfinite(matrix).all():
            return unknown
        values = np.linalg.eigvals(matrix)
        with np.errstate(divide="ignore"):
            sizes = np.log(np.abs(values))
        order = np.argsort(-sizes, kind="stable")
        return np.stack([sizes[order] + logs.max(), np.angle(values[order])])


def read(after: Round, vectors: np.ndarray, frames: np.ndarray) -> RoundResult:
    """Newton's corrections and the small matrices after a round; cycles come last."""
    first = lambda x: np.ascontiguousarray(np.moveaxis(x, -1, 0))
    vector, frame, logs, upper, zero = (first(x) for x in after)
    before = first(frames)
    across = before.mT @ frame
    with np.errstate(over="ignore", invalid="ignore"):
        image = across @ (np.exp(logs)[..., None] * upper)
    correction = vector - first(vectors)
    inside = before.mT @ correction[..., None]
    finite = np.isfinite(image).all(axis=(1, 2)) & np.isfinite(inside).all(axis=(1, 2))
    closing = np.eye(logs.shape[1]) - image[finite]
    inside = inside[finite]
    step = np.linalg.pinv(closing, rcond=EPS * logs.shape[1]) @ inside
    correction[finite] += (before[finite] @ (step - inside))[..., 0]
    errors = _errors(logs, upper, across, frame - before @ across)
    return RoundResult(vector, frame, logs, upper, zero, across, correction, errors)


def _errors(logs, upper, across, outside) -> np.ndarray:
    """What the spans still move, as errors (n, k') of ln|mu| beside their ends.

    A span that leans by c out of itself couples the two sides by c u, u the entries of
    U between them; eigenvalues of ratio r move by c u / (1 - r), or by the root of c u
    where they are equal.  `outside` (n, dim, k') is what the new frame has beyond the
    span of the old one.
    """
    running = lambda sum_up, x, axis: np.flip(sum_up(np.flip(x, axis), axis), axis)
    last = np.zeros((len(logs), 1))
    leans = running(np.cumsum, np.cumsum(across**2, axis=2), 1)
    leans = np.hstack([np.diagonal(leans, -1, 1, 2), last])
    leans = leans + np.cumsum(np.cumsum(outside**2, axis=1)[:, -1], axis=1)
    couplings = np.maximum.accumulate(np.abs(upper), axis=1)
    couplings = running(np.maximum.accumulate, couplings, 2)
    couplings = np.hstack([np.diagonal(couplings, 1, 1, 2), last])
    pulls = np.sqrt(leans) * (1 + couplings)
    finite = np.isfinite(logs[:, :-1])
    gaps = np.where(finite, logs[:, 1:] - np.where(finite, logs[:, :-1], 0), -np.inf)
    ratios = np.hstack([np.exp(gaps), last])
    return pulls / np.maximum(np.maximum(1 - ratios, np.sqrt(pulls)), EPS)


def spectra(
    once: Callable[..., Round],
    vectors: np.ndarray,
    frames: np.ndarray,
    periods: np.ndarray,
    k: int,
    *,
    rank: int | None,
    patience: int,
    separating: int = 1,
) -> CycleSpectrum:
    """k exponents of n cycles with `periods` (n,) in steps, `whole_period`.

    `once` takes indices of cycles, their vectors (dim, n), near them, frames
    (dim, k', n) with k' >= k, orthonormal and as well aligned as they are, periods and
    kicks, and returns a `Round` of NumPy arrays.  A cycle is left as it is after
    `patience` rounds without half the error before; where moduli in a block are far
    apart, after `separating` ones at least.  `rank` is that of the Jacobian.
    """
    vectors, frames = vectors.copy(), frames.copy()
    dimension, columns, n = frames.shape
    kicks = np.zeros((SPREAD, dimension, 1 + columns))
    k_finite = k if rank is None else min(k, rank)

    def go_round(which: np.ndarray, kicks: np.ndarray) -> RoundResult:
        before = vectors[:, which], frames[..., which]
        reading = read(once(which, *before, periods[which], kicks), *before)
        vectors[:, which] += reading.correction.T
        return reading

    best, improved = np.full(n, np.inf), np.zeros(n, int)
    pending, rounds, readings = np.arange(n), 0, None
    apart = np.zeros(n, bool)
    while pending.size or readings is None:
        latest, rounds = go_round(pending, kicks), rounds + 1
        frames[..., pending] = np.moveaxis(latest.frame, 0, -1)
        readings = latest if readings is None else _replaced(readings, latest, pending)
        error = latest.error(k_finite)
        better = error < best[pending] / 2
        best[pending] = np.where(better, error, best[pending])
        improved[pending] = np.where(better, rounds, improved[pending])
        hopeful = (rounds - improved[pending] < patience) & (latest.away < np.inf)
        if rounds == 1:
            apart = latest.apart()
        early = apart[pending] & (rounds < separating)
        pending = pending[hopeful & (early | ~(error <= CLOSED))]
    refined = vectors.copy()
    on_cycle = np.flatnonzero(readings.away <= AT_REST)
    settled_on = RoundResult(*(x[on_cycle] for x in readings))
    ends = settled_on.errors <= OPEN
    exact, angles = settled_on.multipliers(ends)
    deviations = np.zeros(exact.shape)
    for noise in range(ROUNDS if on_cycle.size else 0):
        kicks = NOISE * np.random.default_rng(noise).standard_normal(kicks.shape)
        with np.errstate(invalid="ignore"):  # -inf - -inf: `zero` tells
            gap = np.abs(go_round(on_cycle, kicks).multipliers(ends)[0] - exact)
        deviations = np.maximum(deviations, gap)
    deviations = deviations + _beside(settled_on.errors, ends)
    outcome = np.full((3, columns, n), np.nan)
    settled = np.zeros((columns, n), bool)
    outcome[..., on_cycle], settled[:, on_cycle] = _verdict(
        exact.T, deviations.T, angles.T, settled_on.zero.T, rank
    )
    exponents, stderr = outcome[:2, :k] / periods
    return CycleSpectrum(exponents, stderr, settled[:k], refined, outcome[2, :k])


def _replaced(
    readings: RoundResult, latest: RoundResult, which: np.ndarray
) -> RoundResult:
    """Readings with those of some cycles replaced."""
    readings = RoundResult(*(x.copy() for x in readings))
    for old, new in zip(readings, latest, strict=True):
        old[which] = new
    return readings


def _blocks(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last column (n, k') of the block of each column; last k': none ends."""
    columns = ends.shape[1]
    column = np.arange(columns)
    before = np.maximum.accumulate(np.where(ends, column, -1), axis=1)
    first = 1 + np.hstack([np.full((len(ends), 1), -1), before[:, :-1]])
    after = np.where(ends, column, columns)[:, ::-1]
    return first, np.minimum.accumulate(after, axis=1)[:, ::-1]


def _beside(errors: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Errors (n, k') of the moduli from those of the ends of their blocks."""
    first, last = _blocks(ends)
    padded = np.pad(errors, ((0, 0), (1, 0)))
    last_known = np.minimum(last, errors.shape[1] - 1)
    larger = np.maximum(
        np.take_along_axis(padded, first, 1), np.take_along_axis(errors, last_known, 1)
    )
    return np.where(last == last_known, larger, 0.0)


def _verdict(moduli, deviations, angles, zero, rank: int | None):
    """ln|mu|, errors and angles (3, k', n), largest first; what is settled (k', n)."""
    settled = ~np.isnan(moduli) | zero
    deviations = np.where(np.isnan(deviations), np.inf, deviations)
    hidden = np.logical_or.accumulate((deviations > HIDDEN) & ~zero, axis=0)
    moduli = np.where(zero, -np.inf, np.where(hidden, np.nan, moduli))
    if rank is not None:
        moduli[rank:], settled[rank:] = -np.inf, True
    deviations = np.where(np.isfinite(moduli), deviations, np.nan)
    order = np.argsort(np.where(np.isnan(moduli), np.inf, -moduli), 0, kind="stable")
    sort = lambda x: np.take_along_axis(x, order, axis=0)
    angles = np.where(np.isfinite(moduli), angles, np.nan)
    return np.stack([*map(sort, (moduli, deviations, angles))]), sort(settled)
