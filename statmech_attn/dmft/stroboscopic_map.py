r"""The stroboscopic map of a driven network: one turn of the clock, as a plain map.

With $F$ the mean-field map (docs/theory/dmft.md, section 2), C tokens bring the clock
back, and

    x -> F^C(x)        x = (A_t, ..., A_{t-C+1}) (M C,)   window at clock 0, ravelled

is autonomous, whatever the drive.  Where the positional code has no effect, F itself
is, and `strobe` returns that.  Its coordinates are those of a point of a cycle, which
is what `dynamics.continuation` follows.
"""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from statmech_attn.dmft.mean_field import advance, step
from statmech_attn.dmft.network import (
    clock_period,
    Network,
    Parameters,
    State,
    token,
    window,
)
from statmech_attn.dmft.patterns import KINDS
from statmech_attn.dynamics import System
from statmech_attn.labels import step_unit
from statmech_attn.options import Share


class StroboscopicMap(eqx.Module):
    """The network as a map over `tokens` tokens, of beta, gamma and epsilon."""

    net: Network
    tokens: int = eqx.field(static=True)

    def __call__(
        self,
        x: Float[Array, " MC"],
        parameters: Mapping[str, Float[Array, ""]],
    ) -> Float[Array, " MC"]:
        params = Parameters(**{k: jnp.asarray(v) for k, v in parameters.items()})
        shape = self.net.context, self.net.n_patterns
        state = _at_clock_zero(self.net, params, x.reshape(shape))
        body = lambda _, state: step(self.net, params, state)
        return window(jax.lax.fori_loop(0, self.tokens, body, state)).ravel()


def _at_clock_zero(net: Network, params: Parameters, window) -> State:
    """`from_window` with its tokens drawn side by side, which compiles much faster."""
    attention = jnp.roll(window[::-1], 1, axis=0)
    slots = jnp.arange(net.context)
    draw = lambda A, slot: token(net, params, A, slot)
    overlaps = jax.vmap(draw)(attention, slots)
    return State(
        v=overlaps[:, KINDS.index("v")],
        k=overlaps[:, KINDS.index("k")],
        attention=attention,
        clock=jnp.array(0),
        tokens=jnp.array(net.context),
    )


def strobe(net: Network, epsilon: Share) -> System:
    """The system over one period of the drive: C tokens, or 1 where it has no effect.

    Args:
        net: the network, as `network` builds it.
        epsilon: weight of the positional part; only whether it is zero counts.

    Returns:
        `System` for every tool of `dynamics`; a step is a period of the drive.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> dmft.strobe(net, file.epsilon).unit, dmft.strobe(net, 0.0).unit
        ('4 tokens', 'token')
    """
    tokens = clock_period(net, epsilon)
    return System(StroboscopicMap(net, tokens), unit=step_unit(tokens, "token"))


def strobe_point(net: Network, params: Parameters, state: State) -> Float[Array, " MC"]:
    """The coordinates x of a state (unbatched), advanced to clock 0.

    The window must be full: a state that has seen at least C tokens.

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
        >>> strobe_point(net, params, state).shape
        (12,)
    """
    remaining = (-state.clock) % net.context
    return window(advance(net, params, state, remaining)).ravel()
