r"""Many runs of a network of N spins, with bounded memory (docs/theory/dmft.md, 5).

A simulated token has sampled class means instead of tanh h_c; attention and window are
those of the theory (`dmft.mean_field.receive`), so the physics is written once.  Runs
are done a batch at a time and reduced on the way: per step the mean and the unbiased
spread over runs, per run the time averages after the transient.

    batch of the parameters   *batch         (any trailing axes, as in theory)
    runs                      one more trailing axis
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn.dmft.mean_field import Observation, observation, receive
from statmech_attn.dmft.network import (
    contract,
    Network,
    Parameters,
    State,
    token_overlaps,
)
from statmech_attn.dmft.patterns import Patterns
from statmech_attn.montecarlo.collapsed import class_counts, draw_counts
from statmech_attn.montecarlo.randomness import address, seed_words, Words
from statmech_attn.montecarlo.spins import draw_spins, plan_blocks
from statmech_attn.precision import require_double


# What a draw needs to know of the class counts, and the draw.
METHODS = {
    "collapsed": (lambda counts, lanes: jnp.asarray(counts, float), draw_counts),
    "spins": (plan_blocks, draw_spins),
}
LANES = {"cpu": 256}  # points times runs at once: what stays in a core's cache
LANES_ELSEWHERE = 65536


class TimeAverages(NamedTuple):
    """Averages over the kept steps of every run, (M, *batch, runs)."""

    A_mean: Float[np.ndarray, "M *batch runs"]
    A_square: Float[np.ndarray, "M *batch runs"]
    m_o_se_mean: Float[np.ndarray, "M *batch runs"]
    m_o_se_square: Float[np.ndarray, "M *batch runs"]


class Simulation(NamedTuple):
    """What a simulation returns; row 0 of time is the first generated token."""

    mean: Observation  # (steps, M, *batch)
    spread: Observation  # unbiased standard deviation over runs; NaN for one run
    sample: Observation  # (steps, M, *batch, stored)
    averages: TimeAverages
    n_spins: int
    runs: int
    transient: int
    method: str

    @property
    def stderr(self) -> Observation:
        """Standard error of the mean over runs."""
        return jax.tree.map(lambda s: s / np.sqrt(self.runs), self.spread)


def simulate(
    net: Network,
    patterns: Patterns,
    params: Parameters,
    state: State,
    *,
    n_spins: int,
    runs: int,
    steps: int,
    key: Key[Array, ""],
    method: str = "collapsed",
    transient: int = 0,
    stored: int = 1,
    points=None,
    batch_runs: int | None = None,
) -> Simulation:
    """Simulate `runs` networks of `n_spins` spins, all from one start.

    Args:
        net, patterns: the network and the patterns that it was built from.
        params: control parameters of any batch shape.
        state: the start, as for the theory.
        n_spins: number of spins, divisible by the class fractions.
        runs: independent runs of every parameter point.
        steps: tokens to generate.
        key: JAX key; run r of point i depends on (key, i, r) only.
        method: "collapsed" (class counts) or "spins" (every spin).
        transient: steps left out of the time averages.
        stored: how many runs keep their whole trajectory.
        points: numbers of the parameter points in the whole study, shaped like the
            batch; 0, 1, ... when omitted.
        batch_runs: runs done at once; chosen for the device when omitted.

    Raises:
        ValueError: an argument out of range, or N that the fractions do not divide.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(0.5, file.gamma, file.epsilon)
        >>> result = simulate(net, file.patterns, params, dmft.from_row(net, params, 0),
        ...     n_spins=3000, runs=20, steps=5, key=jax.random.key(0))
        >>> result.mean.A.shape, result.averages.A_mean.shape
        ((5, 3), (3, 20))
    """
    require_double()
    _check(net, patterns, method, runs, steps, transient, stored)
    counts = class_counts(patterns, n_spins)
    batch = jnp.broadcast_shapes(params.beta.shape, state.attention.shape[2:])
    lanes = _point_keys(key, points, batch)
    if batch_runs is None:
        wanted = LANES.get(jax.default_backend(), LANES_ELSEWHERE)
        batch_runs = -(-wanted // int(np.prod(batch)))
    batch_runs = min(max(batch_runs, 1), runs)
    run_batch = partial(
        _run_batch,
        net,
        jax.tree.map(lambda x: x[..., None], params),
        _widen(state, batch, batch_runs),
        lanes,
        METHODS[method][0](counts, batch_runs * int(np.prod(batch))),
        steps=steps,
        transient=transient,
        method=method,
    )
    batches = _batches(run_batch, runs, batch_runs, stored)
    collected = _collect(batches, runs, batch_runs, stored)
    return Simulation(*collected, n_spins, runs, transient, method)


def _check(net, patterns, method, runs, steps, transient, stored) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if runs < 1:
        raise ValueError(f"runs must be at least 1; got {runs}.")
    if steps < 1:
        raise ValueError(f"steps must be at least 1; got {steps}.")
    if not 0 <= transient < steps:
        raise ValueError(f"transient must lie in 0..steps - 1; got {transient}.")
    if not 0 <= stored <= runs:
        raise ValueError(f"stored must lie in 0..runs; got {stored}.")
    weighted = patterns.semantic * patterns.fractions
    if weighted.shape != net.weighted.shape or not np.array_equal(
        weighted, net.weighted
    ):
        raise ValueError("patterns are not those that the network was built from.")


def _point_keys(key, points, batch) -> Words:
    """One cipher key per parameter point."""
    if points is None:
        points = np.arange(int(np.prod(batch))).reshape(batch)
    points = np.asarray(points)
    if points.shape != batch:
        raise ValueError(
            f"points must have the batch shape {batch}; got {points.shape}."
        )
    return address(seed_words(key), points)


def _widen(state: State, batch, size) -> State:
    """The start, the same for `size` runs of every point."""
    repeat = lambda x: jnp.broadcast_to(x[..., None], (*x.shape[:2], *batch, size))
    return State(
        repeat(state.v),
        repeat(state.k),
        repeat(state.attention),
        state.clock,
        state.tokens,
    )


def sampled_step(net, params, state: State, lanes: Words, plan, draw):
    """z_t -> z_{t+1} for sampled tokens; as `mean_field.observe` else."""
    fields = params.beta * contract(net.output.T, state.newest)
    means = draw(lanes, fields, plan)
    overlaps = token_overlaps(net, params, means, state.clock)
    after = receive(net, params, state, overlaps)
    return after, observation(net, params, state, overlaps, after)


@partial(jax.jit, static_argnames=("steps", "method", "size", "keep"))
def _run_batch(
    net,
    params,
    state,
    points,
    plan,
    first,
    n,
    *,
    steps,
    transient,
    method,
    size,
    keep,
):
    """Runs first, ..., first + n - 1 in `size` lanes; moments, and paths of `keep`."""
    draw = METHODS[method][1]
    runs = jnp.arange(size, dtype=jnp.uint32)
    lanes = address(tuple(x[..., None] for x in points), first + runs)

    def body(carry, t):
        state, sums = carry
        state, seen = sampled_step(net, params, state, address(lanes, t), plan, draw)
        powers = (seen.A, seen.A**2, seen.m_o_se, seen.m_o_se**2)
        kept = jnp.where(t >= transient, 1.0, 0.0)
        sums = tuple(s + kept * x for s, x in zip(sums, powers, strict=True))
        sample = jax.tree.map(lambda x: x[..., :keep], seen)
        return (state, sums), (*_moments(seen, runs < n), sample)

    start = (state, (jnp.zeros(state.attention.shape[1:]),) * 4)
    time = jnp.arange(steps, dtype=jnp.uint32)
    (_, sums), seen = jax.lax.scan(body, start, time)
    return (*seen, tuple(s / (steps - transient) for s in sums))


def _moments(seen: Observation, valid) -> tuple[Observation, Observation]:
    """Mean and sum of squared deviations over the valid runs."""
    average = lambda x: jnp.where(valid, x, 0.0).sum(-1) / valid.sum()
    mean = jax.tree.map(average, seen)
    deviation = lambda x, m: (jnp.where(valid, x - m[..., None], 0.0) ** 2).sum(-1)
    return mean, jax.tree.map(deviation, seen, mean)


def _batches(run_batch, runs, size, stored):
    """Results of all batches in order, as many at a time as there are cores."""
    firsts = range(0, runs, size)

    def one(first):
        out = run_batch(
            np.uint32(first), min(size, runs - first), size=size, keep=min(stored, size)
        )
        return jax.tree.map(np.asarray, out)

    workers = min(os.cpu_count() or 1, len(firsts))
    with ThreadPoolExecutor(workers) as pool:
        for i in range(0, len(firsts), workers):
            group = firsts[i : i + workers]
            yield from zip(group, pool.map(one, group), strict=True)


def _merge(n, mean, square, extra, new_mean, new_square):
    """Moments of n and of `extra` runs put together (Chan, Golub and LeVeque)."""
    share = extra / (n + extra)
    shift = jax.tree.map(np.subtract, new_mean, mean)
    mean = jax.tree.map(lambda m, d: m + share * d, mean, shift)
    add = lambda s, new, d: s + new + n * share * d**2
    return mean, jax.tree.map(add, square, new_square, shift)


def _collect(batches, runs, size, stored):
    """Moments over all runs, stored trajectories and time averages."""
    samples, averages, moments = [], [], None
    for first, (mean, square, sample, sums) in batches:
        n = min(size, runs - first)
        moments = (
            _merge(first, *moments, n, mean, square) if moments else (mean, square)
        )
        if first < max(stored, 1):
            samples.append(jax.tree.map(lambda x: x[..., : stored - first], sample))
        averages.append(TimeAverages(*(s[..., :n] for s in sums)))
    join = lambda *parts: np.concatenate(parts, axis=-1)
    assert moments is not None  # there is at least one batch
    mean, square = moments
    spread = jax.tree.map(partial(_unbiased, runs), square)
    return mean, spread, jax.tree.map(join, *samples), jax.tree.map(join, *averages)


def _unbiased(runs, square):
    return np.sqrt(square / (runs - 1)) if runs > 1 else np.full_like(square, np.nan)
