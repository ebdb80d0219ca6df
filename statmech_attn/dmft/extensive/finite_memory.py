r"""The closed recursion with a finite memory, as a `dynamics.System`.

The recursion of docs/theory/extensive.md, 2, needs correlations with all tokens so far.
Crosstalk forgets: a correlation over a lag acts on the next steps through the noise
alone, by a factor of order $\alpha g^2$ for every C - 1 tokens.  A window of the newest
`memory` tokens then is a state, and the recursion a map of fixed size, with exponents,
phases and diagrams like any other,

    state         order parameters of the window, its fields, and a clock
    parameters    alpha, beta, gamma, epsilon by name
    observed      A_t (M,)       the newest attention vector
    displayed     m^{o,SE} (M,)  semantic overlaps of the newest token
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from statmech_attn.dmft.extensive.closed_recursion import COARSE, draw, Fields, grown
from statmech_attn.dmft.extensive.ensembles import Ensemble
from statmech_attn.dmft.extensive.gaussian import Rule, rule
from statmech_attn.dmft.extensive.loaded_network import Cells, cells, LoadedNetwork
from statmech_attn.dmft.extensive.two_time_order import add_token, attend, Order
from statmech_attn.dmft.network import clock_period, Network
from statmech_attn.dynamics import System
from statmech_attn.options import Count, Share


MEMORY = 12  # tokens
RULE = rule(*COARSE, filled_up=False)


class Window(eqx.Module):
    """The newest tokens, that in the last row newest.

    Attributes:
        order: order parameters.
        fields: fields after the tokens, of which the last is not known yet.
        clock: time of the newest token.
    """

    order: Order
    fields: Fields
    clock: Int[Array, ""]


class LoadedMap(eqx.Module):
    """One token of the recursion (state, parameters) -> state.

    Attributes:
        net: condensed patterns and context.
        ensemble: of the other patterns.
        sites: cells of the sites.
        quadrature: of two fields.
    """

    net: Network
    ensemble: Ensemble
    sites: Cells
    quadrature: Rule

    def __call__(
        self,
        state: Window,
        parameters: Mapping[str, Any],
        noise: Float[Array, " cells"] | None = None,
    ) -> Window:
        """Generate one token.

        `noise` is added to the mean spin of every cell, in standard deviations of a
        spin; that of N independent spins has the variance 1 / (N share).
        """
        newest = len(state.order.A) - 1
        turned = self._turned(state.clock + 1 - newest)
        problem = _problem(turned, self.ensemble, parameters)
        temperature = jnp.broadcast_to(1 / problem.beta, (newest + 1,))
        fields, C, G = draw(
            self.sites,
            self.quadrature,
            state.order,
            state.fields,
            temperature,
            newest,
        )
        spin = fields.spin[newest]
        if noise is not None:
            spin = spin + noise * jnp.sqrt(1 - spin**2)
        means = jnp.asarray(self.sites.weighted) @ spin
        order = _older(state.order)
        order = add_token(problem, order, newest, means, C, jnp.roll(G, -1))
        order = attend(problem, order, newest)
        fields = Fields(*(jnp.roll(x, -1, axis=0) for x in fields))
        return Window(order, fields, state.clock + 1)

    def _turned(self, by) -> Network:
        """The network whose positional code of row 0 is that of time `by`."""
        code = jnp.asarray(self.net.positional)
        rows = (jnp.arange(self.net.context) + by) % self.net.context
        return eqx.tree_at(lambda net: net.positional, self.net, code[rows])


def _older(order: Order) -> Order:
    """All tokens one row earlier; the last row is free."""

    def earlier(x: Array, axes: tuple[int, ...]) -> Array:
        for axis in axes:
            last = (slice(None),) * axis + (-1,)
            x = jnp.roll(x, -1, axis=axis).at[last].set(0.0)
        return x

    two_times = jax.tree.map(lambda x: earlier(x, (0, 1)), order)
    one_time = earlier(order.m, (0,)), earlier(order.A, (0,))
    return eqx.tree_at(lambda o: (o.m, o.A), two_times, one_time)


def _problem(
    net: Network, ensemble: Ensemble, parameters: Mapping[str, Any]
) -> LoadedNetwork:
    names = ("alpha", "beta", "gamma", "epsilon")
    if not {*names} <= parameters.keys():
        raise ValueError(f"parameters must hold {names}; got {[*parameters]}.")
    numbers = (jnp.asarray(parameters[name], float) for name in names)
    return LoadedNetwork(net, ensemble, *numbers)


def system(
    net: Network,
    ensemble: Ensemble,
    *,
    epsilon: Share | None = None,
) -> System:
    """The closed recursion with a finite memory, for every tool of `dynamics`.

    Args:
        net: condensed patterns and context.
        ensemble: of the other patterns, one that `is_closed`.
        epsilon: weight of the positional code; only whether it is zero matters, not
            zero when omitted.

    Returns:
        A system whose parameters are alpha, beta, gamma and epsilon by name; its states
        come from `system_start`, which sets the memory.

    Raises:
        ValueError: an ensemble whose recursion does not close.

    Example:
        >>> from statmech_attn import dmft, dynamics
        >>> from statmech_attn.dmft import extensive
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> given = {"alpha": 0.01, "beta": 1.4, "gamma": file.gamma,
        ...     "epsilon": file.epsilon}
        >>> start = extensive.system_start(
        ...     net, extensive.independent(), given, memory=8)
        >>> loaded = extensive.system(net, extensive.independent())
        >>> dynamics.orbit(loaded, start, given, samples=5).shape
        (5, 3)
    """
    loaded = LoadedMap(net, ensemble, _sites(net, ensemble), RULE)
    return System(
        loaded,
        observe=_newest,
        drive_period=clock_period(net, 1.0 if epsilon is None else epsilon),
        unit="token",
        display=_Display(net),
        clock=_clock,
    )


def _sites(net: Network, ensemble: Ensemble) -> Cells:
    """Cells of a network that has forgotten its start."""
    if not ensemble.is_closed:
        raise ValueError("ensemble: the recursion closes for cycle() or ov = 0.")
    return cells(net, net.output[0])


@eqx.filter_jit
def _window(problem: LoadedNetwork, sites: Cells, memory: int) -> Window:
    steps = memory - 1
    order, fields = grown(problem, sites, steps, RULE, jnp.arange(steps))
    order = attend(problem, order, steps)
    return Window(order, fields, jnp.array(steps))


def system_start(
    net: Network,
    ensemble: Ensemble,
    parameters: Mapping[str, Any],
    *,
    memory: Count = MEMORY,
) -> Window:
    """Initial window of the recursion, from the output of the first pattern.

    Args:
        net: condensed patterns and context.
        ensemble: of the other patterns.
        parameters: alpha, beta, gamma and epsilon.
        memory: tokens of the window, at least two contexts.

    Returns:
        The state after `memory` tokens.

    Raises:
        ValueError: a memory shorter than two contexts, or an ensemble whose recursion
            does not close.

    Example:
        >>> import numpy as np
        >>> from statmech_attn import dmft
        >>> net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
        >>> given = {"alpha": 0.1, "beta": 2.0, "gamma": 0.0, "epsilon": 0.0}
        >>> from statmech_attn.dmft.extensive import cycle
        >>> system_start(net, cycle(), given, memory=4).order.A.shape
        (4, 1)
    """
    if memory < 2 * net.context:
        raise ValueError(
            f"memory must be at least 2 C = {2 * net.context}; got {memory}."
        )
    _sites(net, ensemble)
    sites = cells(net, net.output[0])
    return _window(_problem(net, ensemble, parameters), sites, memory)


def _newest(state: Window) -> Float[Array, " M"]:
    return state.order.A[-1]


def _clock(state: Window) -> Array:
    return state.clock


class _Display(eqx.Module):
    """Semantic overlaps of the newest token."""

    net: Network

    def __call__(
        self, state: Window, parameters: Mapping[str, Any]
    ) -> Float[Array, " M"]:
        epsilon = jnp.asarray(parameters["epsilon"], float)
        code = jnp.asarray(self.net.positional)[state.clock % self.net.context, 0]
        return (state.order.m[-1, 0] - epsilon * code) / (1 - epsilon)
