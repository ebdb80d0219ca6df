r"""The mean-field map as a `dynamics.System`: how every tool takes the network.

state         `State`          attention window, tokens in it, clock
parameters    `Parameters`     or a mapping with beta, gamma and epsilon
observed      A_t (M,)         the newest attention vector
displayed     m^{o,SE} (M,)    semantic overlaps of the token that it draws
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from statmech_attn.batches import WRITTEN_OUT
from statmech_attn.dmft.mean_field import next_token, semantic_overlaps, step
from statmech_attn.dmft.network import clock_period, Network, Parameters, State
from statmech_attn.dmft.noise.irreversibility import block_averages
from statmech_attn.dmft.tangent import TangentMap
from statmech_attn.dynamics import System
from statmech_attn.options import Share


AnyParameters = Parameters | Mapping[str, Any]


def system(net: Network, epsilon: Share | None = None) -> System:
    """The network as a `dynamics.System`, with structured tangent dynamics.

    A step is a token.

    Args:
        net: the network, as `network` builds it.
        epsilon: weight of the positional code. Only whether it is zero matters, since
            the drive has no period then; not zero when omitted.

    Returns:
        A system for every tool of `dynamics`; its parameters are `Parameters`.

    Example:
        >>> from statmech_attn import dmft, dynamics
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> start = dmft.from_checkpoint(net, params, file)
        >>> spectrum = dynamics.lyapunov_spectrum(
        ...     dmft.system(net), start, params, steps=2000, exponents=2,
        ...     reorthonormalize_every=4)
        >>> spectrum.exponents.shape
        (2,)
    """
    return System(
        Step(net),
        observe=newest,
        drive_period=clock_period(net, 1.0 if epsilon is None else epsilon),
        tangent=Tangent(net),
        batched=True,
        unit="token",
        display=Display(net),
        clock=clock,
        any_width=max(net.n_classes, net.dimension) <= WRITTEN_OUT,
        entropy_production=Produced(net),
    )


def newest(state: State) -> Float[Array, "M *batch"]:
    """What is observed: the newest attention vector."""
    return state.newest


def clock(state: State) -> Array:
    """Position of the next token."""
    return state.clock


class Step(eqx.Module):
    """The mean-field map: one generated token."""

    net: Network

    def __call__(self, state: State, parameters: AnyParameters) -> State:
        return step(self.net, as_parameters(parameters), state)


class Tangent(eqx.Module):
    """The map at fixed parameters with its tangent dynamics."""

    net: Network

    def __call__(self, parameters: AnyParameters) -> TangentMap:
        return TangentMap(self.net, as_parameters(parameters))


class Display(eqx.Module):
    """Semantic overlaps of the token that a state draws."""

    net: Network

    def __call__(
        self, state: State, parameters: AnyParameters
    ) -> Float[Array, "M *batch"]:
        params = as_parameters(parameters)
        _, overlaps = next_token(self.net, params, state)
        return semantic_overlaps(self.net, params, state, overlaps)


class Produced(eqx.Module):
    """Entropy production of the tokens that follow a state."""

    net: Network

    def __call__(self, state: State, parameters: AnyParameters, per_block):
        params = as_parameters(parameters)
        return block_averages(self.net, params, state, per_block)


def as_parameters(parameters: AnyParameters) -> Parameters:
    """Parameters from those by name."""
    if isinstance(parameters, Parameters):
        return parameters
    return Parameters(
        **{name: jnp.asarray(value) for name, value in parameters.items()}
    )
