r"""The stroboscopic map of a driven network: one turn of the clock, as a plain map.

With $F$ the mean-field map (docs/theory/dmft.md, section 2), C tokens bring the clock
back, and

    x -> F^C(x)        x = (A_t, ..., A_{t-C+1}) (M C,)   window at clock 0, ravelled

is autonomous, whatever the drive.  Where the positional code has no effect, F itself
is, and `strobe` returns that.  This is the form in which the tools for maps, such as
`dynamics.continuation`, take the network.
"""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from statmech_attn.dmft.mean_field import advance, step
from statmech_attn.dmft.network import (
    clock_period,
    from_window,
    Network,
    Parameters,
    State,
    window,
)


class StroboscopicMap(eqx.Module):
    """(x, parameters) -> x after `tokens` tokens; parameters beta, gamma, epsilon."""

    net: Network
    tokens: int = eqx.field(static=True)

    def __call__(
        self,
        x: Float[Array, " MC"],
        parameters: Mapping[str, Float[Array, ""]],
    ) -> Float[Array, " MC"]:
        params = Parameters(**{k: jnp.asarray(v) for k, v in parameters.items()})
        shape = self.net.context, self.net.n_patterns
        state = from_window(self.net, params, x.reshape(shape), 0)
        body = lambda _, state: step(self.net, params, state)
        return window(jax.lax.fori_loop(0, self.tokens, body, state)).ravel()


def strobe(net: Network, epsilon: float) -> StroboscopicMap:
    """The map over one period of the drive: C tokens, or 1 where it has no effect.

    Args:
        epsilon: weight of the positional part; only whether it is zero counts.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> dmft.strobe(net, file.epsilon).tokens, dmft.strobe(net, 0.0).tokens
        (4, 1)
    """
    return StroboscopicMap(net, clock_period(net, epsilon))


def strobe_point(net: Network, params: Parameters, state: State) -> Float[Array, " MC"]:
    """The coordinates x of a state (unbatched), advanced to clock 0.

    The window must be full: a state that has seen at least C tokens.
    """
    left = (-state.clock) % net.context
    return window(advance(net, params, state, left)).ravel()
