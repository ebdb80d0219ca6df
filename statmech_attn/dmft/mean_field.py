r"""The mean-field map (docs/theory/dmft.md, sections 1-2), exact for N -> infinity.

One step draws the token from the newest attention vector, puts it into the window and
attends:

    $A_{a,t} = \sum_{\tau} \mathrm{softmax}_\tau(\gamma \sum_b m^q_{b,t} m^k_{b,\tau})
               \, m^v_{a,\tau}$

The map is deterministic, driven by the positional clock, and batched over trailing
axes of the state and the parameters.
"""

from functools import partial
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
from annotated_types import Ge
from jaxtyping import Array, Float

from statmech_attn import presentation
from statmech_attn.batches import add_up
from statmech_attn.dmft.initial_states import from_window
from statmech_attn.dmft.network import (
    Network,
    next_means,
    Parameters,
    require_parallel,
    State,
    token_overlaps,
    window,
)
from statmech_attn.labels import Variable
from statmech_attn.options import Means, WholeNumber, WholeNumbers


OBSERVABLE_LABELS = {  # words and symbol
    "A": ("attention", "A"),
    "m_o_se": ("semantic output overlap", "m^{o,SE}"),
    "m_v": ("value overlap", "m^v"),
    "m_q": ("query overlap", "m^q"),
    "m_k": ("key overlap", "m^k"),
}
OBSERVABLES = tuple(OBSERVABLE_LABELS)
TIME = Variable("time", "time", "generated tokens before this one", "token", "t")


class Observation(eqx.Module):
    """Overlaps of one generated token and the attention after it, (M, *batch).

    Attributes:
        m_o_se: semantic overlap of the token with the output patterns.
        m_v: overlap with the value patterns.
        m_q: overlap with the query patterns.
        m_k: overlap with the key patterns.
        A: attention vector after the token.
    """

    m_o_se: Float[Array, "M *batch"]
    m_v: Float[Array, "M *batch"]
    m_q: Float[Array, "M *batch"]
    m_k: Float[Array, "M *batch"]
    A: Float[Array, "M *batch"]

    _shown = tuple(
        Variable(name, "pattern", words, symbol=symbol)
        for name, (words, symbol) in OBSERVABLE_LABELS.items()
    )
    __repr__, _repr_html_ = presentation.METHODS[:2]


def step(net: Network, params: Parameters, state: State) -> State:
    """One token of the mean-field map, z_t -> z_{t+1}.

    A pure function, batched over trailing axes.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: attention window and clock.

    Returns:
        The state after the token.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> state = dmft.from_checkpoint(net, params, file)
        >>> step(net, params, state).newest.shape
        (3,)
    """
    means, overlaps = next_token(net, params, state)
    return receive(net, params, state, overlaps, means)


def next_token(
    net: Network, params: Parameters, state: State
) -> tuple[Float[Array, "S *batch"], Float[Array, "4 M *batch"]]:
    """Class means and overlaps of the token that a state draws."""
    means = next_means(net, params, state.newest, state.means)
    return means, token_overlaps(net, params, means, state.clock)


def observe(
    net: Network, params: Parameters, state: State
) -> tuple[State, Observation]:
    """One token of the map, with the overlaps that figures show.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: attention window and clock.

    Returns:
        The state after the token, and its overlaps and attention vector.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> state = dmft.from_checkpoint(net, params, file)
        >>> state, shown = observe(net, params, state)
        >>> shown.A.shape
        (3,)
    """
    means, overlaps = next_token(net, params, state)
    after = receive(net, params, state, overlaps, means)
    return after, observation(net, params, state, overlaps, after)


def receive(
    net: Network,
    params: Parameters,
    state: State,
    overlaps: Annotated[Means, "4 M *batch"],
    means: Annotated[Means, "S *batch"] | None = None,
) -> State:
    """Put a token with overlaps (4, M, *batch) into the window and attend.

    The theory passes the mean overlaps, a simulation the sampled ones.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: attention window and clock.
        overlaps: overlaps of the token with the patterns.
        means: its class means, which matter only where spins may be copied.

    Returns:
        The state after this token.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> state = dmft.from_checkpoint(net, params, file)
        >>> overlaps = dmft.token_overlaps(net, params, net.output[1], 0)
        >>> receive(net, params, state, overlaps).newest.shape
        (3,)
    """
    _, m_v, m_q, m_k = overlaps
    v = _set(state.v, m_v, state.clock)
    k = _set(state.k, m_k, state.clock)
    tokens = jnp.minimum(state.tokens + 1, net.context)
    weights = attention_weights(params.gamma, m_q, k, tokens)
    attention = add_up(weights[d] * v[d] for d in range(net.context))
    clock = (state.clock + 1) % net.context
    newest = None if state.means is None else means
    return State(v, k, _set(state.attention, attention, clock), clock, tokens, newest)


def scores(gamma, m_q, k) -> Float[Array, "C *batch"]:
    r"""Logits of the attention, $\gamma \sum_b m^q_b m^k_{b,\tau}$, of every slot."""
    return gamma * add_up(m_q[b] * k[:, b] for b in range(k.shape[1]))


def attention_weights(gamma, m_q, k, tokens) -> Float[Array, "C *batch"]:
    """Softmax over the slots of the window that hold a token."""
    logits = scores(gamma, m_q, k)
    filled = jnp.arange(k.shape[0]) < tokens
    logits = jnp.where(
        filled.reshape((-1,) + (1,) * (logits.ndim - 1)), logits, -jnp.inf
    )
    odds = jnp.exp(logits - jnp.max(logits, axis=0))
    return odds / add_up(odds[d] for d in range(k.shape[0]))


def observation(
    net: Network,
    params: Parameters,
    state: State,
    overlaps: Annotated[Means, "4 M *batch"],
    after: State,
) -> Observation:
    """Overlaps and attention of one step, from the states before and after it.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: attention window and clock.
        overlaps: overlaps of the token with the patterns.
        after: the state after the token.

    Returns:
        `Observation`: overlaps and attention of this token, (M, *batch) each.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> state = dmft.from_checkpoint(net, params, file)
        >>> overlaps = dmft.token_overlaps(net, params, net.output[1], 0)
        >>> after = receive(net, params, state, overlaps)
        >>> observation(net, params, state, overlaps, after).m_o_se.shape
        (3,)
    """
    m_o_se = semantic_overlaps(net, params, state, overlaps)
    return Observation(m_o_se, overlaps[1], overlaps[2], overlaps[3], after.newest)


def semantic_overlaps(
    net: Network, params: Parameters, state: State, overlaps
) -> Float[Array, "M *batch"]:
    """Output overlaps m^{o,SE} of a token whose overlaps (4, M, *batch) are mixed."""
    positional = jax.lax.dynamic_index_in_dim(net.positional, state.clock, 0, False)[0]
    positional = positional.reshape(positional.shape + (1,) * (overlaps.ndim - 2))
    return (overlaps[0] - params.epsilon * positional) / (1 - params.epsilon)


@partial(jax.jit, static_argnames="steps")
def trajectory(
    net: Network, params: Parameters, state: State, *, steps: WholeNumber
) -> tuple[State, Observation]:
    """Iterate the mean-field map and record every token.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: initial condition, such as `from_checkpoint` gives.
        steps: number of tokens.

    Returns:
        The final state, and an `Observation` whose arrays have a leading time axis of
        `steps` tokens; row 0 is the first generated token and the attention after it.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> start = dmft.from_checkpoint(net, params, file)
        >>> state, seen = dmft.trajectory(net, params, start, steps=10)
        >>> seen.m_o_se.shape
        (10, 3)
    """
    body = lambda state, _: observe(net, params, state)
    return jax.lax.scan(body, state, None, length=steps)


@jax.jit
def advance(
    net: Network,
    params: Parameters,
    state: State,
    steps: Annotated[WholeNumbers, "", Ge(0)],
) -> State:
    """Iterate `steps` times (traced: a new number of steps does not recompile).

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: attention window and clock.
        steps: number of tokens.

    Returns:
        The state after these steps.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> state = dmft.from_checkpoint(net, params, file)
        >>> advance(net, params, state, 1000).newest.shape
        (3,)
    """
    return jax.lax.fori_loop(0, steps, lambda _, s: step(net, params, s), state)


@jax.jit
def jacobian(net: Network, params: Parameters, state: State) -> Float[Array, "MC MC"]:
    """Jacobian of z_t -> z_{t+1} for one (unbatched) state with a full window.

    Rows and columns are ordered as `window`, newest first; meant for checks and
    Newton iterations, scans use `dmft.tangent`.  All spins move at once.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: attention window and clock.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> state = dmft.from_checkpoint(net, params, file)
        >>> jacobian(net, params, state).shape
        (12, 12)
    """
    require_parallel(params)

    def of_window(z):
        z = z.reshape(net.context, net.n_patterns)
        return window(
            step(net, params, from_window(net, params, z, state.clock))
        ).ravel()

    return jax.jacfwd(of_window)(window(state).ravel())


def _set(ring, value, slot):
    return jax.lax.dynamic_update_index_in_dim(ring, value, slot, 0)
