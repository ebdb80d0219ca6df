r"""Random sequential updating (docs/theory/dmft.md, 7).

Every spin of the next token is redrawn with probability $\Delta$, else copied.  Class
means then mix with those of the token before, and everything else is as in the map:

    $\langle x_{t+1} \rangle_c = (1 - \Delta) \langle x_t \rangle_c
        + \Delta \tanh(\beta \sum_b W^o_{b,c} A_{b,t})$

At $\Delta = 1$ it is the published map, to the last bit.  Parameters that have Delta,
`redrawn`, make states that hold the class means of the newest token.  With the overlaps
of the older ones they determine all else, and are what exponents belong to:

    $\langle x_t \rangle_c, m^v_{t-1}, ..., m^k_{t-1}, ...$      (S + 2 (C - 1) M,)

In units of time, 1/Delta tokens, a window of C tokens shrinks to nothing as Delta goes
to 0, and one of C/Delta tokens has a length: `stretched`, and the limits in
`continuous`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from statmech_attn.batches import add_up
from statmech_attn.dmft.mean_field import attention_weights
from statmech_attn.dmft.network import (
    clock_period,
    Network,
    State,
    token_overlaps,
)
from statmech_attn.dmft.system import (
    AnyParameters,
    as_parameters,
    clock,
    Display,
    newest,
    Produced,
    Step,
)
from statmech_attn.dynamics import Linearised, System
from statmech_attn.options import Count, Share


def sequential(net: Network, epsilon: Share | None = None) -> System:
    """A network whose spins are redrawn with probability Delta, as a `System`.

    Args:
        net: the network, as `network` builds it.
        epsilon: weight of the positional code; as for `system`.

    Returns:
        A system for every tool of `dynamics`; its parameters are `Parameters`, or a
        mapping, of beta, gamma, epsilon and redrawn.

    Example:
        >>> from statmech_attn import dmft, dynamics
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon, redrawn=0.5)
        >>> start = dmft.from_row(net, params, 0)
        >>> dynamics.orbit(dmft.sequential(net), start, params, samples=5).shape
        (5, 3)
    """
    return System(
        Step(net),
        observe=newest,
        drive_period=clock_period(net, 1.0 if epsilon is None else epsilon),
        tangent=_Tangent(net),
        unit="token",
        display=Display(net),
        clock=clock,
        entropy_production=Produced(net),
    )


def stretched(net: Network, tokens: Count) -> Network:
    """A network whose window and positional code last several times as many tokens.

    With redrawn = 1/tokens, time in units of 1/redrawn tokens passes as in the network
    itself: attention reads the same time, and positions change as often.

    Args:
        net: the network, as `network` builds it.
        tokens: tokens in the place of one, at least 1.

    Returns:
        A network with a context `tokens` times as long.

    Raises:
        ValueError: tokens < 1.

    Example:
        >>> from statmech_attn import dmft
        >>> net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
        >>> stretched(net, 5).context
        20
    """
    return Network(
        net.weighted,
        net.output,
        jnp.repeat(net.positional, tokens, axis=0),
        net.context * tokens,
        net.output_rank,
        net.code_period * tokens if net.code_period > 1 else 1,
    )


class _Tangent(eqx.Module):
    """The map at fixed parameters with its tangent dynamics."""

    net: Network

    def __call__(self, parameters: AnyParameters) -> "MixedMap":
        return MixedMap(Step(self.net), as_parameters(parameters))


class MixedMap(Linearised):
    """The map in the coordinates of the module docstring, differentiated by JAX."""

    def vector(self, state: State) -> Float[Array, " d"]:
        assert state.means is not None
        older = _slots(state)[1:]
        parts = (state.means, state.v[older], state.k[older])
        return jnp.concatenate([x.ravel() for x in parts])

    def at(self, state: State, vector: Float[Array, " d"]) -> State:
        assert isinstance(self.map, Step)
        net, params, slots = self.map.net, self.parameters, _slots(state)
        means, older = vector[: net.n_classes], vector[net.n_classes :]
        older = older.reshape(2, net.context - 1, net.n_patterns)
        _, m_v, m_q, m_k = token_overlaps(net, params, means, slots[0])
        newest = jnp.stack([m_v, m_k])[:, None]
        v, k = jnp.concatenate([newest, older], axis=1)[:, slots]
        weights = attention_weights(params.gamma, m_q, k, state.tokens)
        attention = add_up(weights[d] * v[d] for d in range(net.context))
        ring = state.attention.at[state.clock].set(attention)
        return State(v, k, ring, state.clock, state.tokens, means)

    def push(self, lifted: State, frame: Float[Array, "d k"]):
        def of_vector(x):
            after = self.step(self.at(lifted, x))
            return self.vector(after), after

        x = self.vector(lifted)
        column = lambda t: jax.jvp(of_vector, (x,), (t,), has_aux=True)
        moved = jax.vmap(column, in_axes=1, out_axes=(None, 1, None))
        _, frame, after = moved(frame)
        return after, frame


def _slots(state: State) -> Array:
    """Slots of the tokens in the window by age, which are also ages by slot."""
    context = state.attention.shape[0]
    return (state.clock - 1 - jnp.arange(context)) % context
