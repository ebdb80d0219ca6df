r"""Lyapunov spectrum by frame propagation (docs/theory/dynamics.md, section 2).

A frame of k tangent columns is pushed along the orbit and orthonormalised every r
steps (`frames`); with $R_{jj}$ the lengths left by Gram-Schmidt, over n steps

    $\lambda_j = \frac{1}{n} \sum \ln |R_{jj}|$  plain, `exponents`
    $\lambda_j = \sum_i w(s_i) \ln |R_{jj}|_i / \sum_i w(s_i) r$  weighted, `weighted`

with $w(s) = \exp(-1/(s(1-s)))$, which converges faster than any power of n on periodic
and quasi-periodic orbits.  Exponents are in nats per step.

The window is cut into blocks: their scatter gives the standard error, and quarters
and halves of the window tell whether the orbit has settled.  Rounding adds to the error
its share of every length, and an exponent is a number only if no length of its column,
nor of one before it, was lost to rounding (`frames.LOST`).
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from annotated_types import Ge, Le, MultipleOf
from jaxtyping import Array, Float, PyTree

from statmech_attn.batches import add_up, require_double
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents
from statmech_attn.dynamics.exponents.frames import EPS, LOST, start_frame, turn
from statmech_attn.dynamics.exponents.spectrum import Spectrum
from statmech_attn.dynamics.maps.orthonormal import safe_log
from statmech_attn.dynamics.maps.systems import (
    advance,
    as_system,
    System,
    TangentSystem,
)
from statmech_attn.dynamics.maps.tracing import forward_only
from statmech_attn.labels import STEP
from statmech_attn.options import Count, MAX_COUNT, WholeNumber


Blocks = Annotated[int, Ge(4), Le(MAX_COUNT), MultipleOf(4)]
BLOCKS = 16
ALIGN = 1000  # steps that align the frame of a short window, or all its steps
ROUNDING = 1e-15  # of an average of logarithms near one
FLOOR = 1e-10  # of standard errors: averages do not see what rounding does to the orbit
FLAT = 4 * EPS  # a leading push this far below one, or below the longest, is rounding


@forward_only
def lyapunov_spectrum(
    system: Callable[..., PyTree] | System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    steps: Count,
    transient: WholeNumber = 0,
    exponents: WholeNumber | None = None,
    reorthonormalize_every: Count = 1,
    blocks: Blocks = BLOCKS,
    align: WholeNumber | None = None,
) -> Spectrum:
    """Lyapunov spectrum along an orbit of any system; works under `vmap`.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        state: where the orbit starts; may be batched by `jax.vmap` around this call.
        parameters: of the system, a tree of arrays; none when omitted.
        steps: length of the window, rounded up to a multiple of
            blocks * reorthonormalize_every.
        transient: steps before the window.
        exponents: how many leading exponents; all when omitted.
        reorthonormalize_every: steps between Gram-Schmidt.  A column that is lost in
            between has the exponent NaN, whatever its length is in the end.
        blocks: number of blocks for errors and running averages, a multiple of 4.
        align: steps after the transient that turn the frame to the orbit's own
            directions; what is left of its start biases a window of n steps by O(1/n).
            One block, but at least 1000 steps or as many as the window has, when
            omitted.

    Returns:
        `Spectrum`: exponents in nats per step, largest first, with standard errors.

    Raises:
        ValueError: a count that is out of range, or a state without coordinates.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x: 4 * x * (1 - x)
        >>> s = lyapunov_spectrum(logistic, jnp.array(0.3), steps=10_000)
        >>> abs(float(s.exponents[0]) - 0.6931) < 0.01
        True
    """
    require_double()
    system, every = as_system(system), reorthonormalize_every
    map = system.at(parameters)
    per_block = -(-steps // (blocks * every))
    turns = alignment(per_block, every, blocks) if align is None else -(-align // every)
    per_block = jnp.asarray(per_block)
    sums, rank, dimension = _sums(
        map,
        state,
        per_block=per_block,
        transient=jnp.asarray(transient),
        turns=jnp.asarray(turns),
        every=every,
        k=frame_size(map, state, exponents),
        blocks=blocks,
    )
    return _summarise(
        sums,
        per_block=per_block,
        every=every,
        rank=rank,
        dimension=dimension,
        unit=system.unit,
    )


@eqx.filter_jit
def _sums(system, state, *, per_block, transient, turns, every, k, blocks):
    """The `Sums` of an orbit, the rank of its map, and the dimension of its frame."""
    state = advance(system, state, transient)
    lifted, frame = start_frame(system, state, k)
    no_observation = lambda state: jnp.zeros((0,) + frame.shape[2:])
    _, _, sums = measure(
        system,
        lifted,
        frame,
        no_observation,
        turns=turns,
        per_block=per_block,
        every=every,
        blocks=blocks,
    )
    return sums, finite_exponents(system, state), frame.shape[0]


def frame_size(system: TangentSystem, state: PyTree, exponents: int | None) -> int:
    """How many columns to push: `exponents`, or all of them."""
    for leaf in jax.tree.leaves(state):
        if not eqx.is_array_like(leaf):
            raise ValueError(f"state must hold numbers; got {leaf!r}.")
    coordinates = jax.eval_shape(system.vector, state)
    dimension = coordinates.shape[0]
    if dimension and coordinates.dtype != jnp.float64:
        raise ValueError(
            f"state must be float64; got {coordinates.dtype}: make it after "
            "statmech_attn.setup(), or take state.astype(float)."
        )
    if dimension == 0:
        raise ValueError("state has no floating-point coordinates to differentiate.")
    if exponents is None:
        return dimension
    if not 1 <= exponents <= dimension:
        raise ValueError(f"exponents must lie in 1..{dimension}; got {exponents}.")
    return exponents


def alignment(per_block, every: int, blocks: int = BLOCKS):
    """Turns that align a frame: a block, or several of a short window."""
    least = jnp.minimum(blocks * per_block, -(-ALIGN // every))
    return -(-least // per_block) * per_block


class Sums(eqx.Module):
    """What one pass accumulates.

    q stands for the k log-lengths, ln|det| beside a whole frame, and d observables.
    """

    weighted: Float[Array, "3 q *batch"]  # whole window and its two halves
    weights: Float[Array, "3"]
    blocks: Float[Array, "blocks q *batch"]  # block sums
    low: Float[Array, "blocks d *batch"]
    high: Float[Array, "blocks d *batch"]
    noise: Float[Array, "k *batch"]  # relative errors of the lengths, added up
    worst: Float[Array, "k *batch"]  # the largest of them
    shortest: Float[Array, "*batch"]  # push of the leading column
    longest: Float[Array, "*batch"]


class Group(NamedTuple):
    """Some turns, one after another."""

    lifted: PyTree
    frame: Float[Array, "dim k *batch"]
    logs: Float[Array, "q *batch"]  # of the k lengths, ln|det| beside a whole frame
    noise: Float[Array, "k *batch"]  # added up
    worst: Float[Array, "k *batch"]
    shortest: Float[Array, "*batch"]  # push of the leading column
    longest: Float[Array, "*batch"]


def group(system, lifted, frame, *, turns: int, spacing: int) -> Group:
    """Several turns whose logarithms are added up before anything else is done."""

    def one(lifted, frame) -> Group:
        after = turn(system, lifted, frame, spacing)
        volume = [] if after.log_det is None else [after.log_det[None]]
        logs = jnp.concatenate([safe_log(after.lengths), *volume])
        leading = after.norms[0]
        return Group(
            after.lifted, after.frame, logs, after.noise, after.noise, leading, leading
        )

    def add(_, before: Group) -> Group:
        after = one(before.lifted, before.frame)
        return after._replace(
            logs=before.logs + after.logs,
            noise=before.noise + after.noise,
            worst=jnp.maximum(before.worst, after.worst),
            shortest=jnp.minimum(before.shortest, after.shortest),
            longest=jnp.maximum(before.longest, after.longest),
        )

    if turns == 1:
        return one(lifted, frame)
    dimension, k, *batch = frame.shape
    none = jnp.zeros((k, *batch))
    logs = jnp.zeros((k + (dimension == k), *batch))
    least, most = jnp.full(batch, jnp.inf), jnp.zeros(batch)
    nothing = Group(lifted, frame, logs, none, none, least, most)
    return jax.lax.fori_loop(0, turns, add, nothing)


def measure(
    system,
    lifted,
    frame,
    observe,
    *,
    turns,
    per_block,
    every: int,
    blocks: int,
    spacing: int | None = None,
):
    """Align the frame, push it through the window and accumulate; constant memory.

    `observe(state)` (d, *batch) is averaged beside the exponents, once per `every`
    steps.  Returns the lifted state, the frame and the `Sums`.  The sums of the first
    `turns` times `every` steps, which align the frame, are dropped; `spacing` steps
    between two orthonormalisations divide `every`.
    """
    total, spacing = per_block * blocks, spacing or every

    def add(i, carry):
        lifted, frame, part = carry
        after = group(system, lifted, frame, turns=every // spacing, spacing=spacing)
        observed = observe(system.lower(after.lifted))
        q = jnp.concatenate([after.logs, observed])
        w = window_weights((i + 0.5) / total)
        part = Sums(
            weighted=part.weighted + w.reshape((3,) + (1,) * q.ndim) * q,
            weights=part.weights + w,
            blocks=part.blocks + q,
            low=jnp.minimum(part.low, observed),
            high=jnp.maximum(part.high, observed),
            noise=part.noise + after.noise,
            worst=jnp.maximum(part.worst, after.worst),
            shortest=jnp.minimum(part.shortest, after.shortest),
            longest=jnp.maximum(part.longest, after.longest),
        )
        return after.lifted, after.frame, part

    def block(carry, b):
        lifted, frame, part = carry
        blank = eqx.tree_at(_of_block, part, _of_block(nothing))
        part = jax.tree.map(lambda x, y: jnp.where(b == 0, x, y), nothing, blank)
        first = jnp.where(b < 0, -turns, b * per_block)
        carry = (lifted, frame, part)
        carry = jax.lax.fori_loop(first, (b + 1) * per_block * (b >= 0), add, carry)
        return carry, _of_block(carry[2])

    _of_block = lambda part: (part.blocks, part.low, part.high)
    nothing = _empty_sums(frame, jax.eval_shape(observe, system.lower(lifted)).shape[0])
    carry = (lifted, frame, nothing)
    carry, stacked = jax.lax.scan(block, carry, jnp.arange(-1, blocks))
    lifted, frame, last = carry
    return lifted, frame, eqx.tree_at(_of_block, last, [x[1:] for x in stacked])


def summarise(
    sums: Sums,
    *,
    per_block,
    every: int,
    rank: int | None,
    dimension: int,
    unit: str = STEP,
) -> Spectrum:
    """Exponents, errors and resolution from the sums of one window."""
    k, blocks = sums.noise.shape[0], sums.blocks.shape[0]
    per_step = sums.blocks[:, :k] / (per_block * every)
    weights = sums.weights.reshape((3,) + (1,) * (per_step.ndim - 1))
    bounds = sums.weighted[:, :k] / (weights * every)
    lost = sums.worst > LOST
    collapsed = jnp.any(jnp.isneginf(per_step), axis=0) & ~lost
    if rank is not None:
        collapsed = collapsed.at[rank:].set(True)
    flat = sums.shortest <= FLAT * jnp.maximum(sums.longest, 1.0)
    hidden = flat | (jnp.cumsum(lost, axis=0) > 0)
    mark = lambda x: jnp.where(collapsed, -jnp.inf, jnp.where(hidden, jnp.nan, x))
    bounds = jnp.where(collapsed, -jnp.inf, bounds)  # not 0 times infinity
    average = mean_of(per_step)
    scatter = _scatter(per_step, average, bounds[0]) + FLOOR**2
    rounding = jnp.cumsum(sums.noise, axis=0) / (blocks * per_block * every)
    stderr = jnp.where(collapsed | hidden, jnp.nan, jnp.sqrt(scatter + rounding**2))
    plain = mark(average)
    order = jnp.argsort(-jnp.where(jnp.isnan(plain), -jnp.inf, plain), axis=0)
    sort = lambda x: jnp.take_along_axis(x, order, axis=0)
    sort_each = jax.vmap(sort)
    weighted = sort_each(jax.vmap(mark)(bounds))
    plain = sort(plain)
    return Spectrum(
        exponents=plain,
        weighted=weighted[0],
        stderr=sort(stderr),
        resolved=jnp.sum(jnp.cumprod(jnp.isfinite(plain), axis=0), axis=0),
        halves=weighted[1:],
        blocks=sort_each(jax.vmap(mark)(per_step)),
        bounds=sort_each(bounds),
        steps=jnp.asarray(blocks * per_block * every),
        log_det=mean_of(sums.blocks[:, k] / (per_block * every))
        if dimension == k  # it stands after all log-lengths
        else None,
        dimension=dimension,
        unit=unit,
    )


_summarise = eqx.filter_jit(summarise)  # a program of shapes, shared by all maps


def window_weights(s: Float[Array, ""]) -> Float[Array, "3"]:
    """Weights exp(-1/(s(1-s))) of the whole window and of its halves at s in (0, 1)."""
    position = jnp.stack([s, 2 * s, 2 * s - 1])
    inside = (position > 0) & (position < 1)
    u = jnp.where(inside, position, 0.5)
    return jnp.where(inside, jnp.exp(-1 / (u * (1 - u))), 0.0)


def mean_of(x: Float[Array, "n *rest"]) -> Float[Array, "*rest"]:
    """Mean over a short first axis, added up in order.

    The same to the last bit however many points are computed side by side.
    """
    return add_up(x[i] for i in range(x.shape[0])) / x.shape[0]


def mean_of_blocks(
    averages: Float[Array, "blocks *batch"], weighted: Float[Array, "*batch"]
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """Mean and standard error of logarithms averaged over each block of a window."""
    mean = mean_of(averages)
    return mean, jnp.sqrt(_scatter(averages, mean, weighted)) + ROUNDING


def _scatter(averages, mean, weighted):
    """Variance of the mean of blocks.

    Blocks that are commensurate with the orbit scatter too little.
    """
    scatter = mean_of((averages - mean) ** 2) / (averages.shape[0] - 1)
    return jnp.maximum(scatter, ((mean - weighted) / 3) ** 2)


def _empty_sums(frame, n_observables: int) -> Sums:
    """Nothing yet; the sums of one block, without their axis of blocks."""
    dimension, k, *batch = frame.shape
    n_averages = k + (dimension == k) + n_observables
    q, observables = jnp.zeros((n_averages, *batch)), jnp.zeros((n_observables, *batch))
    return Sums(
        weighted=jnp.zeros((3, *q.shape)),
        weights=jnp.zeros(3),
        blocks=q,
        low=jnp.full(observables.shape, jnp.inf),
        high=jnp.full(observables.shape, -jnp.inf),
        noise=jnp.zeros((k, *batch)),
        worst=jnp.zeros((k, *batch)),
        shortest=jnp.full(batch, jnp.inf),
        longest=jnp.zeros(batch),
    )
