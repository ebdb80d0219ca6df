r"""The arrow of time: entropy production of attention (docs/theory/irreversibility.md).

Token t is drawn with the fields of the C tokens before it.  Read backwards, the same
network would draw it with those of the C tokens after it, the next one standing first;
every token keeps its place in the positional code, an external clock that runs back as
well.  The rate of the Kullback-Leibler divergence between both, per spin, is

    $\sigma_t = \sum_c w_c \, \langle \ln p(x_t | h_{c,t})
               - \ln p(x_t | h^R_{c,t}) \rangle$

in nats per token and spin.  For N -> infinity fields are numbers, and spins of a class
are independent.  It is zero for an orbit that is its own reversal.

Where spins are copied with probability 1 - Delta, a spin is a Markov chain whose past
is the token before, and its reversal one whose past is the token after:

    $p(x | y) = \Delta \, e^{x h} / 2 \cosh h + (1 - \Delta) \, \delta_{x y}$

Single tokens may then have negative terms; their average has none.
"""

from functools import partial
from typing import Annotated, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from statmech_attn import presentation
from statmech_attn.batches import add_up, require_double
from statmech_attn.dmft.mean_field import advance, attention_weights, receive
from statmech_attn.dmft.network import (
    contract,
    Network,
    next_means,
    Parameters,
    State,
    token_overlaps,
)
from statmech_attn.dynamics import lyapunov
from statmech_attn.labels import Variable
from statmech_attn.options import Count, Means, WholeNumber


PRODUCTION, ENTROPY_UNIT = "entropy_production", "nat / (token spin)"


class EntropyProduction(eqx.Module):
    """Rate of entropy production along an orbit, in nats per token and spin.

    Attributes:
        mean: average over the window.
        weighted: the same as a weighted average, which converges fast on regular
            orbits.  It has no error: in chaos take `mean`, whose scatter is smaller by
            1.3 to 1.5.
        stderr: standard error of the mean, from blocks; too small where a block is
            shorter than the memory of the orbit, by 1.7 with 500 tokens at beta = 1.28
            of poclopez-pe2, and too large by 1.3 at beta = 2.
        blocks: averages over each block.
        steps: tokens of the window.
    """

    mean: Float[Array, "*batch"]
    weighted: Float[Array, "*batch"]
    stderr: Float[Array, "*batch"]
    blocks: Float[Array, "blocks *batch"]
    steps: Int[Array, ""]

    _shown = (
        Variable(
            "mean",
            "",
            "entropy production",
            ENTROPY_UNIT,
            "σ",
            value="mean",
            error="stderr",
        ),
        Variable(
            "weighted",
            "",
            "the same, weighted, for regular orbits",
            ENTROPY_UNIT,
            "σ_w",
        ),
        Variable(
            "blocks", "block", "entropy production of blocks", ENTROPY_UNIT, line=False
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


@presentation.knows_given
def entropy_production(
    net: Network,
    params: Parameters,
    state: State,
    *,
    steps: Count,
    transient: WholeNumber = 0,
    blocks: lyapunov.Blocks = lyapunov.BLOCKS,
) -> EntropyProduction:
    """Rate of entropy production per spin along the orbit of the mean-field map.

    A pure function, batched over trailing axes; works under `jit` and `vmap`.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: where the orbit starts.
        steps: tokens of the window, rounded up to a multiple of the blocks.  The orbit
            goes C tokens further, since a token is read backwards from those after it.
        transient: tokens before the window, beside the C that fill attention.
        blocks: number of blocks for the error, a multiple of 4.

    Returns:
        `EntropyProduction`: average, weighted average, error, in nats per token and
        spin.

    Raises:
        ValueError: a count that is out of range.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters([1.0, 2.5], file.gamma, file.epsilon)
        >>> start = dmft.from_checkpoint(net, params, file)
        >>> rate = entropy_production(net, params, start, steps=2000, transient=2000)
        >>> [f"{x:.1g}" for x in rate.mean.tolist()]
        ['9e-07', '1']
    """
    require_double()
    per_block = -(-steps // blocks)
    state = advance(net, params, state, transient + net.context)
    averages, weighted = block_averages(net, params, state, per_block, blocks)
    mean, stderr = lyapunov.mean_of_blocks(averages, weighted)
    total = jnp.asarray(per_block * blocks)
    return EntropyProduction(mean, weighted, stderr, averages, total)


class ReversalWindow(NamedTuple):
    """The last C tokens, from which the entropy production of the next follows.

    Attributes:
        queries: overlaps with the query patterns.
        gained: averages of ln p given the tokens before.
        means: class means.
        pairs: averages <x_t x_{t+1}> of the spins of a class.
        newest: class means of the newest token.
    """

    queries: Float[Array, "C M *batch"]
    gained: Float[Array, "C *batch"]
    means: Float[Array, "C S *batch"]
    pairs: Float[Array, "C S *batch"]
    newest: Float[Array, "S *batch"]


@partial(jax.jit, static_argnames="blocks")
def block_averages(
    net: Network,
    params: Parameters,
    state: State,
    per_block: Int[Array, ""] | int,
    blocks: int = lyapunov.BLOCKS,
) -> tuple[Float[Array, "blocks *batch"], Float[Array, "*batch"]]:
    """Rate of the tokens that follow a state: average of each block, and weighted one.

    Another number of tokens `per_block` does not compile again.
    """
    carry, total = _read_on(net, params, state), per_block * blocks

    def add(i, sums):
        carry, plain, weighted, weights = sums
        carry, rate = advance_with_entropy(net, params, *carry)
        w = lyapunov.window_weights((i + 0.5) / total)[0]
        return carry, plain + rate, weighted + w * rate, weights + w

    def block(sums, b):
        carry, *weighted = sums
        first, sums = b * per_block, (carry, nothing, *weighted)
        sums = jax.lax.fori_loop(first, first + per_block, add, sums)
        carry, plain, *weighted = sums
        return (carry, *weighted), plain / per_block

    nothing = jnp.zeros(carry[1].gained.shape[1:])
    start = carry, nothing, jnp.zeros(())
    (_, weighted, weights), averages = jax.lax.scan(block, start, jnp.arange(blocks))
    return averages, weighted / weights


@partial(jax.jit, static_argnames="steps")
def rates(
    net: Network, params: Parameters, state: State, steps: int
) -> Float[Array, "steps *batch"]:
    """Rate of each of the tokens that follow a state."""
    turn = lambda carry, _: advance_with_entropy(net, params, *carry)
    return jax.lax.scan(turn, _read_on(net, params, state), None, length=steps)[1]


@jax.jit
def _read_on(net: Network, params: Parameters, state: State):
    """The state and the past C tokens later."""
    turn = lambda _, carry: advance_with_entropy(net, params, *carry)[0]
    return jax.lax.fori_loop(0, net.context, turn, (state, empty_window(net, state)))


def empty_window(net: Network, state: State) -> ReversalWindow:
    """The past of a network that has written no token yet.

    Args:
        net: the network, as `network` builds it.
        state: whose tokens come next.

    Returns:
        `ReversalWindow`: zeros, which C tokens fill, and the copied spins; once
        it is full every token read gives the rate of the one C tokens before it.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters([1.2, 1.4], file.gamma, file.epsilon)
        >>> empty_window(net, dmft.from_checkpoint(net, params, file)).queries.shape
        (4, 3, 2)
    """
    batch = state.newest.shape[1:]
    ring = lambda *shape: jnp.zeros((net.context, *shape, *batch))
    return ReversalWindow(
        queries=ring(net.n_patterns),
        gained=ring(),
        means=ring(net.n_classes),
        pairs=ring(net.n_classes),
        newest=jnp.zeros((net.n_classes, *batch))
        if state.means is None
        else state.means,
    )


def advance_with_entropy(
    net: Network,
    params: Parameters,
    state: State,
    past: ReversalWindow,
    means: Annotated[Means, "S *batch"] | None = None,
):
    """One token, and the entropy produced by the one C tokens before it.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: attention window and clock.
        past: of the C tokens before.
        means: class means (S, *batch) of a sampled token; of the map when omitted.

    Returns:
        The state and the past after it, and a rate (*batch).

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> state = dmft.from_checkpoint(net, params, file)
        >>> past, turn = dmft.empty_window(net, state), jax.jit(advance_with_entropy)
        >>> for _ in range(5):
        ...     (state, past), rate = turn(net, params, state, past)
        >>> bool(rate > 0)
        True
    """
    slot, fields = state.clock, params.beta * contract(net.output.T, state.newest)
    if means is None:
        means = next_means(net, params, state.newest, state.means)
    overlaps = token_overlaps(net, params, means, slot)
    after = receive(net, params, state, overlaps, means)
    pair = _pair(params, past.newest, fields)
    gained = _mean_log(net, params, fields, means, past.newest, pair)
    queries = _put(past.queries, overlaps[2], slot)
    pairs = _put(past.pairs, pair, (slot - 1) % net.context)
    query, next_slot = _at(queries, after.clock), after.clock
    weights = attention_weights(params.gamma, query, after.k, after.tokens)
    attention = add_up(weights[d] * after.v[d] for d in range(net.context))
    reverse = params.beta * contract(net.output.T, attention)
    later = means if net.context == 1 else _at(past.means, next_slot)
    oldest = _at(past.means, slot), later, _at(pairs, slot)
    rate = _at(past.gained, slot) - _mean_log(net, params, reverse, *oldest)
    past = ReversalWindow(
        queries,
        _put(past.gained, gained, slot),
        _put(past.means, means, slot),
        pairs,
        means,
    )
    return (after, past), rate


def _pair(params: Parameters, before, fields):
    """<x y> of the spins of a token and of the one before."""
    drawn = before * jnp.tanh(fields)
    if params.redrawn is None:
        return drawn
    return 1 - params.redrawn + params.redrawn * drawn


def _mean_log(net: Network, params: Parameters, fields, means, others, pair):
    """Average of ln p(x | y) over classes, where x and y have these means and <x y>."""
    log_cosh = jnp.logaddexp(fields, -fields)  # of 2 cosh h
    if params.redrawn is None:
        return _over_classes(net, means * fields - log_cosh)
    total = 0.0
    for x in (1, -1):
        drawn = x * fields - log_cosh
        same = jnp.log1p(params.redrawn * jnp.expm1(drawn))  # of Delta p + 1 - Delta
        for y in (1, -1):
            chance = (1 + x * means + y * others + x * y * pair) / 4
            log = same if x == y else jnp.log(params.redrawn) + drawn
            total = total + chance * log
    return _over_classes(net, total)


def _over_classes(net: Network, x):
    """Average over the site classes, whose patterns are signs."""
    return contract(jnp.abs(net.weighted[0, :1]), x)[0]


def _put(ring, value, slot):
    return jax.lax.dynamic_update_index_in_dim(ring, value, slot, 0)


def _at(ring, slot):
    return jax.lax.dynamic_index_in_dim(ring, slot, 0, keepdims=False)
