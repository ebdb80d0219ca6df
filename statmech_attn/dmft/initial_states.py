"""States from which orbits of the network start (docs/theory/dmft.md, 1-2).

A state is a window of tokens and the time.  It begins with one token, with a window of
attention, at random, or where a file of patterns says that a published orbit begins.
"""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Le
from jaxtyping import Array, Float, Key

from statmech_attn.batches import rng
from statmech_attn.dmft.network import (
    drawn_means,
    Network,
    Parameters,
    State,
    token,
    token_overlaps,
)
from statmech_attn.dmft.patterns import KINDS, PatternFile
from statmech_attn.options import Means, ONE, WholeNumber, WholeNumbers


def from_token(
    net: Network,
    params: Parameters,
    means: Annotated[Float[Array, "S *batch"], Ge(-ONE), Le(ONE)],
) -> State:
    """Initial condition that is one token at position 0.

    The token sits in the window until it is pushed out, as in a simulation, so that
    theory and simulation agree from the first step.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        means: mean <x>_c of the token in every site class, in [-1, 1].

    Returns:
        The state after this token.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> from_token(net, params, net.output[1]).newest.shape
        (3,)
    """
    means = jnp.asarray(means, float)
    overlaps = token_overlaps(net, params, means, jnp.array(0))
    empty = jnp.zeros((net.context, net.n_patterns) + overlaps.shape[2:])
    slot = 1 % net.context
    return State(
        v=empty.at[0].set(overlaps[KINDS.index("v")]),
        k=empty.at[0].set(overlaps[KINDS.index("k")]),
        attention=empty.at[slot].set(overlaps[KINDS.index("v")]),
        clock=jnp.array(slot),
        tokens=jnp.array(1),
        means=None if params.redrawn is None else _broadcast(means, overlaps),
    )


def _broadcast(means, overlaps) -> Float[Array, "S *batch"]:
    """Class means of the batch shape of overlaps (4, M, *batch)."""
    return jnp.broadcast_to(means, means.shape[:1] + overlaps.shape[2:])


def from_row(net: Network, params: Parameters, row: WholeNumber) -> State:
    """Initial condition that is one stored pattern: the token x_0 = W^o_row.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        row: number of the pattern, from 0.

    Returns:
        The state after this token.

    Raises:
        ValueError: there is no such row.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> from_row(net, params, 0).newest.shape
        (3,)
    """
    if not 0 <= row < net.n_patterns:
        raise ValueError(f"row must lie in 0..{net.n_patterns - 1}; got {row}.")
    batch = (1,) * params.beta.ndim
    return from_token(net, params, net.output[row].reshape((-1,) + batch))


def from_window(
    net: Network,
    params: Parameters,
    window: Annotated[Means, "C M *batch"],
    next_position: Annotated[WholeNumbers, ""],
) -> State:
    """Initial condition that is a whole attention window.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        window: attention vectors A_t, A_{t-1}, ..., newest first: shape (C, M, *batch).
        next_position: position, in the positional code, of the token that A_t draws.

    Returns:
        The state, with a full window.

    Raises:
        ValueError: the window has not the shape (C, M, ...).

    Example:
        >>> import numpy as np
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> from_window(net, params, np.zeros((4, 3)), 0).newest.tolist()
        [0.0, 0.0, 0.0]
    """
    window = jnp.asarray(window, float)
    if window.shape[:2] != (net.context, net.n_patterns):
        raise ValueError(
            f"checkpoint window must be (C, M) = {(net.context, net.n_patterns)}; "
            f"got {window.shape[:2]}."
        )
    slots = (next_position - np.arange(net.context)) % net.context
    batch = jnp.broadcast_shapes(params.beta.shape, window.shape[2:])
    window = jnp.broadcast_to(window, window.shape[:2] + batch)
    attention = jnp.zeros_like(window).at[slots].set(window)
    draw = lambda A, slot: token(net, params, A, slot)
    overlaps = jax.vmap(draw)(attention, np.arange(net.context))
    means = None
    if params.redrawn is not None:  # of the token that the A before the newest draws
        means = drawn_means(net, params, window[min(1, net.context - 1)])
    return State(
        v=overlaps[:, KINDS.index("v")],
        k=overlaps[:, KINDS.index("k")],
        attention=attention,
        clock=jnp.asarray(next_position % net.context),
        tokens=jnp.array(net.context),
        means=means,
    )


def from_random(net: Network, params: Parameters, key: Key[Array, ""]) -> State:
    """Random initial condition: attention vectors uniform in [-1, 1]^M.

    The window is the same for all points of a batch.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        key: random key of JAX.

    Returns:
        The state, with a full window.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters([1.2, 1.4], file.gamma, file.epsilon)
        >>> import jax
        >>> dmft.window(dmft.from_random(net, params, jax.random.key(0))).shape
        (4, 3, 2)
    """
    shape = (net.context, net.n_patterns) + (1,) * params.beta.ndim
    return from_window(net, params, rng.uniform(key, shape, -1, 1), 0)


def from_checkpoint(net: Network, params: Parameters, file: PatternFile) -> State:
    """Initial condition that is stored in a pattern file.

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        file: a pattern file that has a checkpoint.

    Returns:
        The state, of the batch shape of the parameters.

    Raises:
        ValueError: the file has no checkpoint, or one of another network.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> dmft.window(dmft.from_checkpoint(net, params, file)).shape
        (4, 3)
    """
    if file.checkpoint is None:
        raise ValueError(
            "file holds no checkpoint (key start); begin from dmft.from_random or "
            "dmft.from_window."
        )
    window, next_position = file.checkpoint
    return from_window(
        net,
        params,
        window.reshape(window.shape + (1,) * params.beta.ndim),
        next_position,
    )
