r"""Random sequential updating (docs/theory/dmft.md, 7).

Every spin of the next token is redrawn with probability $\Delta$, else copied.  Class
means then mix with those of the token before, and everything else is as in the map:

    $\langle x_{t+1} \rangle_c = (1 - \Delta) \langle x_t \rangle_c
        + \Delta \tanh(\beta \sum_b W^o_{b,c} A_{b,t})$

At $\Delta = 1$ it is the published map, to the last bit.

    state         attention window, and class means (S,) of the newest token
    parameters    beta, gamma, epsilon and Delta, `redrawn`, by name
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from statmech_attn.dmft.mean_field import receive, semantic_overlaps
from statmech_attn.dmft.network import (
    clock_period,
    contract,
    from_token,
    Network,
    Parameters,
    State,
    token_overlaps,
)
from statmech_attn.dynamics import System


class SequentialState(eqx.Module):
    """Attention window, and the newest token, of which spins are copied.

    Attributes:
        window: attention window and clock.
        means: means of the newest token in every site class.
    """

    window: State
    means: Float[Array, "S *batch"]


def sequential(net: Network, epsilon: float | None = None) -> System:
    """A network whose spins are redrawn with probability Delta, as a `System`.

    Args:
        net: the network, as `network` builds it.
        epsilon: weight of the positional code; as for `system`.

    Returns:
        A system for every tool of `dynamics`; its parameters are a mapping of beta,
        gamma, epsilon and redrawn.

    Example:
        >>> from statmech_attn import dmft, dynamics
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> given = {"beta": 1.4, "gamma": file.gamma, "epsilon": file.epsilon,
        ...     "redrawn": 0.5}
        >>> start = dmft.sequential_start(net, given, net.output[0])
        >>> dynamics.orbit(dmft.sequential(net), start, given, samples=5).shape
        (5, 3)
    """
    return System(
        _Step(net),
        observe=_newest,
        drive_period=clock_period(net, 1.0 if epsilon is None else epsilon),
        unit="token",
        display=_Display(net),
        clock=_clock,
    )


def sequential_start(
    net: Network, given: Mapping[str, Any], means: Float[Array, "S *batch"]
) -> SequentialState:
    """Initial condition that is one token.

    Args:
        net: the network, as `network` builds it.
        given: beta, gamma, epsilon and redrawn.
        means: of the token in every site class, in [-1, 1].

    Returns:
        The state after this token.

    Raises:
        ValueError: redrawn outside (0, 1].

    Example:
        >>> from statmech_attn import dmft
        >>> net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
        >>> given = {"beta": 1.4, "gamma": 127.0, "epsilon": 0.02, "redrawn": 0.0}
        >>> sequential_start(net, given, net.output[0])
        Traceback (most recent call last):
        ValueError: redrawn must lie in (0, 1]; got 0.
    """
    redrawn = given["redrawn"]
    if not isinstance(redrawn, Tracer):
        values = np.ravel(redrawn)
        outside = values[~((values > 0) & (values <= 1))]
        if outside.size:
            raise ValueError(f"redrawn must lie in (0, 1]; got {outside[0]:g}.")
    means = jnp.asarray(means, float)
    return SequentialState(from_token(net, _parameters(given), means), means)


def next_means(
    net: Network, given: Mapping[str, Any], state: SequentialState
) -> Float[Array, "S *batch"]:
    """Class means of the next token: drawn anew, or copied.

    Args:
        net: the network, as `network` builds it.
        given: beta, gamma, epsilon and redrawn.
        state: from which the token is drawn.

    Returns:
        The means, (S, *batch).

    Example:
        >>> from statmech_attn import dmft
        >>> net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
        >>> given = {"beta": 1.4, "gamma": 127.0, "epsilon": 0.02, "redrawn": 0.5}
        >>> next_means(net, given, sequential_start(net, given, net.output[0])).shape
        (3,)
    """
    drawn = jnp.tanh(given["beta"] * contract(net.output.T, state.window.newest))
    return drawn + (1 - given["redrawn"]) * (state.means - drawn)


def take_means(
    net: Network, given: Mapping[str, Any], state: SequentialState, means
) -> SequentialState:
    """Put a token with these class means into the window and attend.

    Args:
        net: the network, as `network` builds it.
        given: beta, gamma, epsilon and redrawn.
        state: before the token.
        means: of the token in every site class, those of the theory or sampled ones.

    Returns:
        The state after the token.

    Example:
        >>> from statmech_attn import dmft
        >>> net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
        >>> given = {"beta": 1.4, "gamma": 127.0, "epsilon": 0.02, "redrawn": 0.5}
        >>> state = sequential_start(net, given, net.output[0])
        >>> take_means(net, given, state, net.output[1]).window.newest.shape
        (3,)
    """
    params = _parameters(given)
    overlaps = token_overlaps(net, params, means, state.window.clock)
    return SequentialState(receive(net, params, state.window, overlaps), means)


class _Step(eqx.Module):
    net: Network

    def __call__(
        self, state: SequentialState, given: Mapping[str, Any]
    ) -> SequentialState:
        means = next_means(self.net, given, state)
        return take_means(self.net, given, state, means)


class _Display(eqx.Module):
    """Semantic overlaps of the next token."""

    net: Network

    def __call__(self, state: SequentialState, given: Mapping[str, Any]):
        params = _parameters(given)
        means = next_means(self.net, given, state)
        overlaps = token_overlaps(self.net, params, means, state.window.clock)
        return semantic_overlaps(self.net, params, state.window, overlaps)


def _newest(state: SequentialState) -> Float[Array, "M *batch"]:
    return state.window.newest


def _clock(state: SequentialState) -> Array:
    return state.window.clock


def _parameters(given: Mapping[str, Any]) -> Parameters:
    names = ("beta", "gamma", "epsilon")
    return Parameters(*(jnp.asarray(given[name], float) for name in names))
