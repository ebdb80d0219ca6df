r"""Blocks of runs of many points: what is simulated together, and their moments.

The runs of a point are cut into blocks of one size.  A call simulates one block each of
a few points (rows) for a stretch of steps; a run and the moments of a block are the
same in every row and whatever the other rows are.

    state      (C, M, rows, runs)    of the networks
    sums       (4, M, rows, runs)    of A, A^2, m_o_se, m_o_se^2 over the kept steps
    total      (rows, runs)          of the entropy production, where it is asked for
    mean       (steps, 5, M, rows)   over the runs of a block, in the order OBSERVABLES
    square     (steps, 5, M, rows)   squared deviations from it, summed over runs

Moments of blocks are put together in the order of the blocks (Chan, Golub and LeVeque,
Proc. COMPSTAT 1982, 30), so that the result does not depend on who computed them.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int

from statmech_attn.batches import devices, on_cpu
from statmech_attn.dmft import (
    advance_with_entropy,
    contract,
    empty_window,
    Network,
    OBSERVABLES,
    Observation,
    observation,
    Parameters,
    PRODUCTION,
    receive,
    ReversalWindow,
    State,
    token_overlaps,
)
from statmech_attn.montecarlo.finite_networks.collapsed import (
    draw_counts,
    redraw_counts,
    whole_spins,
)
from statmech_attn.montecarlo.finite_networks.randomness import address, Words
from statmech_attn.montecarlo.finite_networks.spins import draw_spins, plan_blocks
from statmech_attn.options import Count


# What a draw needs to know of the class counts, and the draw.
METHODS = {
    "collapsed": (lambda counts, lanes: jnp.asarray(counts, float), draw_counts),
    "spins": (plan_blocks, draw_spins),
}
START = 2**32 - 1  # numbers no step: random numbers of the start
LANES, LANES_ELSEWHERE = 256, 65536  # rows times runs of a call: a core's cache
SMALLEST, LARGEST = 256, 4096  # runs of a block, where there are enough
BLOCKS = 64  # that many runs are cut into
STRETCH = {"collapsed": 2**18, "spins": 2**28}  # tokens, or spins, drawn in a call
Method = Literal["collapsed", "spins"]
AVERAGES: tuple[str, ...] = ("A_mean", "A_square", "m_o_se_mean", "m_o_se_square")


class BlockLayout(NamedTuple):
    """How the runs of a point are cut into blocks; the last one may be shorter."""

    runs: int
    size: int

    @property
    def blocks(self) -> int:
        return -(-self.runs // self.size)

    def number(self, block: Int[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
        """Number of runs in these blocks."""
        return np.asarray(np.minimum(self.size, self.runs - self.size * block))


def layout(runs: Count, method: Method, n_spins: Count) -> BlockLayout:
    """Sizes of the blocks into which runs are cut, the same on every computer.

    At the level of spins a block is smaller where it would take long for one step.
    """
    longest = min(max(runs // BLOCKS, SMALLEST), LARGEST)
    if method == "spins":
        longest = min(longest, max(STRETCH[method] // n_spins, 1))
    size = -(-runs // -(-runs // longest))
    vector = 8  # doubles that are computed at once
    return BlockLayout(runs, size if size < vector else -(-size // vector) * vector)


class Simulated(NamedTuple):
    """What the blocks of one call found; rows first."""

    mean: Float[np.ndarray, "rows steps 5 M"]
    square: Float[np.ndarray, "rows steps 5 M"]
    averages: dict[str, Float[np.ndarray, "rows runs *M"]]  # by names
    sample: Float[np.ndarray, "rows keep steps 5 M"]  # the first runs of each block


class Simulator:
    """Simulates blocks of runs of a network; compiled by the first call."""

    def __init__(
        self,
        net: Network,
        counts,
        method: str,
        *,
        steps: int,
        transient: int,
        size: int,
        rows: int,
        keep: int = 0,
        entropy_production: bool = False,
    ):
        self.net, self.method, self.counts = net, method, counts
        self.steps, self.transient = steps, transient
        self.size, self.rows, self.keep = size, rows, keep
        self.entropy_production = entropy_production
        self.averages: dict[str, tuple[int, ...]]  # of a run, with their shapes
        self.averages = dict.fromkeys(AVERAGES, (net.n_patterns,))
        if entropy_production:
            self.averages[PRODUCTION] = ()
        self.plan = METHODS[method][0](counts, self.rows * size)

    @property
    def stretch(self) -> int:
        """Steps of a call, equal parts of all of them."""
        per_step = self.rows * self.size
        if self.method == "spins":
            per_step *= int(self.counts.sum())
        longest = max(STRETCH[self.method] // per_step, 1)
        return -(-self.steps // -(-self.steps // longest))

    @property
    def bytes(self) -> int:
        """Memory of a call, about."""
        lanes, tokens = self.rows * self.size, self.rows * (2 + self.keep)
        size = self.net.dimension * 9 * lanes
        if self.entropy_production:
            of_a_token = self.net.n_patterns + 2 * self.net.n_classes
            size += self.net.context * of_a_token * lanes
        size += len(OBSERVABLES) * self.net.n_patterns * tokens * 2 * self.steps
        return 8 * size

    def __call__(
        self,
        params: Parameters,
        state: State,
        keys: Words,
        block,
        number,
        tick: Callable[[int], None] = lambda steps: None,
    ) -> Simulated:
        """One block of each of a few points."""
        count, parts = len(block), []
        rows, carry = self.begin(params, state, keys, block, number)
        for begin in range(0, self.steps, self.stretch):
            carry, observed = self.advance(rows, carry, begin)
            parts.append(jax.tree.map(np.asarray, observed))
            tick(min(self.stretch, self.steps - begin))
        cut = lambda *xs: np.concatenate(xs)[: self.steps, ..., :count]
        mean, square = (cut(*(p[i] for p in parts)) for i in (0, 1))
        sample = np.concatenate([p[2] for p in parts])[: self.steps, ..., :count, :]
        _, sums, read = carry
        averaged = self.steps - self.transient
        per_run = np.moveaxis(np.asarray(sums)[..., :count, :], 1, -1) / averaged
        averages = dict(zip(AVERAGES, per_run, strict=True))
        if read is not None:
            produced = np.asarray(read.total)[:count]
            averages[PRODUCTION] = produced / (averaged - self.net.context)
        return Simulated(
            np.moveaxis(mean, -1, 0),
            np.moveaxis(square, -1, 0),
            averages,
            np.moveaxis(sample, (3, 4), (0, 1)),
        )

    def begin(self, params: Parameters, state: State, keys: Words, block, number):
        """What `advance` takes: the rows of a call, and what is carried along."""
        pad = lambda x: _padded(x, self.rows) if np.ndim(x) else x
        params, state, keys = jax.tree.map(pad, (params, state, keys))
        first = np.uint32(pad(block) * self.size)
        state, sums = _begin(state, self.size)
        if state.means is not None:
            state = _of_whole_spins(state, keys, first, self.counts)
        read = None
        if self.entropy_production:
            read = _Read(
                empty_window(self.net, state), jnp.zeros(state.newest.shape[1:])
            )
        return (params, keys, first, pad(number)), (state, sums, read)

    def advance(self, rows, carry, begin: int):
        """A stretch of steps from step `begin` on."""
        return jax.block_until_ready(
            _stretch(
                self.net,
                self.plan,
                *rows,
                carry,
                np.uint32(begin),
                np.uint32(self.transient),
                np.uint32(self.steps),
                method=self.method,
                length=self.stretch,
                keep=self.keep,
            )
        )


def rows_per_call(size: int, method: str, n_spins: int, blocks: int) -> int:
    """How many blocks of so many runs this device simulates at once.

    Calls of one simulation take equal parts, and devices equal parts of a call.  Each
    has at least two runs where memory allows: XLA rounds a lane that is alone in
    another way.  `method` is "collapsed" or "spins".
    """
    parts, most = len(devices()), (LANES if on_cpu() else LANES_ELSEWHERE) // size
    if method == "spins":
        most = min(most, STRETCH[method] // (size * n_spins))
    calls = -(-blocks // (parts * max(most, 1)))
    share = max(-(-blocks // (parts * calls)), -(-2 // size))
    return parts * max(min(most, share), 1)


def _padded(x, length: int) -> np.ndarray:
    """The last axis filled up with its last element."""
    x = np.asarray(x)
    missing = length - x.shape[-1]
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)], mode="edge")


def _begin(state: State, size: int) -> tuple[State, Array]:
    """The start, the same for all runs of a block, and empty sums."""
    repeat = lambda x: jnp.broadcast_to(jnp.asarray(x)[..., None], (*x.shape, size))
    wide = jax.tree.map(lambda x: repeat(x) if x.ndim else jnp.asarray(x), state)
    return wide, jnp.zeros((len(AVERAGES), *wide.attention.shape[1:]))


@jax.jit
def _of_whole_spins(state: State, keys: Words, first, counts) -> State:
    """The start with class means that N spins can have, which are then copied."""
    assert state.means is not None
    runs = jnp.arange(state.means.shape[-1], dtype=jnp.uint32)
    high, low = keys
    lanes = address((high[:, None], low[:, None]), first[:, None] + runs)
    means = whole_spins(address(lanes, START), state.means, counts)
    return eqx.tree_at(lambda s: s.means, state, means)


class _Read(NamedTuple):
    """What is known of the entropy production of the tokens so far."""

    past: ReversalWindow
    total: Float[Array, "rows runs"]  # of the tokens that are averaged


def sampled_step(net, params, state: State, lanes: Words, plan, draw):
    """z_t -> z_{t+1} of sampled tokens, and what `mean_field.observe` records of it.

    The class means of the token come first.
    """
    fields = params.beta * contract(net.output.T, state.newest)
    if params.redrawn is None:
        means = draw(lanes, fields, plan)
    else:
        means = redraw_counts(lanes, fields, plan, state.means, params.redrawn)
    overlaps = token_overlaps(net, params, means, state.clock)
    after = receive(net, params, state, overlaps, means)
    return means, after, observation(net, params, state, overlaps, after)


@partial(jax.jit, static_argnames=("method", "length", "keep"))
def _stretch(
    net, plan, params, keys, first, number, carry, begin, transient, steps, **static
):
    """`_steps` of all rows; several devices share them."""
    shared, rows = (net, plan, begin, transient, steps), (params, keys, first, number)
    function, chosen = partial(_steps, **static), devices()
    if len(chosen) > 1 and len(first) % len(chosen) == 0:

        def parted(trailing: int):
            axes = lambda x: [*[None] * (x.ndim - 1 - trailing), "rows"]
            return lambda x: PartitionSpec(*(axes(x) if x.ndim else []))

        of_carry = jax.tree.map(parted(1), carry)
        function = jax.shard_map(
            function,
            mesh=Mesh(np.array(chosen), ("rows",)),
            in_specs=(PartitionSpec(), jax.tree.map(parted(0), rows), of_carry),
            out_specs=(of_carry, PartitionSpec(None, None, None, "rows")),
            check_vma=False,
        )
    return function(shared, rows, carry)


def _steps(shared, rows, carry, *, method: str, length: int, keep: int):
    """Steps begin, ..., begin + length - 1 of runs first, first + 1, ... of all rows.

    Returns the state and sums after them; moments of the first `number` runs, and
    trajectories (length, 5, M, rows, keep).
    """
    net, plan, begin, transient, steps = shared
    params, keys, first, number = rows
    size, draw = carry[1].shape[-1], METHODS[method][1]
    params = jax.tree.map(lambda x: x[:, None], params)
    index = jnp.arange(size, dtype=jnp.uint32)
    valid = index < number[:, None]
    lanes = address(tuple(x[:, None] for x in keys), first[:, None] + index)

    def body(carry, t):
        state, sums, read = carry
        means, after, observed = sampled_step(
            net, params, state, address(lanes, t), plan, draw
        )
        if read is not None:
            (_, past), rate = advance_with_entropy(net, params, state, read.past, means)
            averaged = (t >= transient + net.context) & (t < steps)
            read = _Read(past, read.total + jnp.where(averaged, rate, 0.0))
        weight = jnp.where((t >= transient) & (t < steps), 1.0, 0.0)
        powers = jnp.stack(
            [observed.A, observed.A**2, observed.m_o_se, observed.m_o_se**2]
        )
        observed = jnp.stack([getattr(observed, name) for name in OBSERVABLES])
        reduced = (*_moments(observed, valid), observed[..., :keep])
        return (after, sums + weight * powers, read), reduced

    time = begin + jnp.arange(length, dtype=jnp.uint32)
    return jax.lax.scan(body, carry, time)


def _moments(values, valid):
    """Mean and sum of squared deviations over the valid runs.

    The order in which XLA adds depends on the size of the array, so rows are filled up
    to those of a full call.
    """
    rows, size = valid.shape
    missing = max(LANES // size - rows, 0)
    fill = lambda x: jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, missing), (0, 0)])
    values, valid = fill(values), fill(valid)
    number = valid.sum(-1)
    mean = jnp.where(valid, values, 0.0).sum(-1) / number
    deviation = jnp.where(valid, values - mean[..., None], 0.0)
    return mean[..., :rows], (deviation**2).sum(-1)[..., :rows]


class Moments:
    """Moments over all runs of many points, put together block by block."""

    def __init__(self, points: int, cut: BlockLayout, shape: tuple[int, ...]):
        self.layout = cut
        self.mean = np.empty((points, *shape))
        self.square = np.empty((points, *shape))

    def add(self, point: int, block: int, mean, square) -> None:
        """The next block of a point; a point's blocks must come in order."""
        if block == 0:
            self.mean[point], self.square[point] = mean, square
            return
        before = block * self.layout.size
        extra = int(self.layout.number(np.asarray(block)))
        share, shift = extra / (before + extra), mean - self.mean[point]
        self.mean[point] += share * shift
        self.square[point] += square + before * share * shift**2

    @property
    def spread(self) -> np.ndarray:
        """Unbiased standard deviation over runs; NaN for one run."""
        runs = self.layout.runs
        if runs == 1:
            return np.full_like(self.square, np.nan)
        return np.sqrt(self.square / (runs - 1))


def observations(x: np.ndarray, batch: tuple[int, ...]) -> Observation:
    """(points, *runs, steps, 5, M) as observables (steps, M, *batch, *runs)."""
    x = np.moveaxis(x, (-3, -2, -1), (1, 0, 2))
    parts = dict(
        zip(OBSERVABLES, x.reshape(*x.shape[:3], *batch, *x.shape[4:]), strict=True)
    )
    # Not through the constructor, which takes arrays on the device.
    like = Observation(*[jnp.zeros(1)] * len(parts))
    return eqx.tree_at(
        lambda o: [getattr(o, n) for n in parts], like, [*parts.values()]
    )
