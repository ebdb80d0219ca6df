r"""Random sequential updating in continuous time (docs/theory/dmft.md, 7).

As Delta goes to 0, time runs in units of 1/Delta tokens, in which a spin is redrawn
once on average, and class means $x_c = \langle x \rangle_c$ follow a flow:

    $\dot x_c = -x_c + \tanh(\beta \sum_b W^o_{b,c} A_b(t))$

A window of C tokens has no length then, and $A = m^v(t)$.  A window of T units of time
holds a continuum of tokens,

    $A_a(t) = \int_0^T p(s) \, m^v_a(t - s) \, ds$,
    $p(s) \propto \exp(\gamma \sum_b m^q_b(t) \, m^k_b(t - s))$

a delay system.  Its history u(s) = x(t - s) moves by $\partial_t u = -\partial_s u$ and
is held at Chebyshev nodes (D. Breda et al., SIAM J. Appl. Dyn. Syst. 15, 1 (2016)):
derivatives are those of the interpolating polynomial (L. N. Trefethen, Spectral Methods
in MATLAB, ch. 6), integrals those of Clenshaw and Curtis (ch. 12).  There is no
positional code: epsilon is 0.

    state     x (S,), or u (n + 1, S) at the ages s_0 = 0, ..., s_n = T
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn.dmft.network import contract, Network
from statmech_attn.dynamics import flow, System
from statmech_attn.options import Count, NotNegative, Positive


SUBSTEPS = 20  # solver steps in a unit of time
NAMES = {"beta", "gamma"}


def continuous(
    net: Network,
    *,
    window: NotNegative = 0.0,
    nodes: Count = 32,
    time: Positive = 1.0,
    substeps: Count = SUBSTEPS,
) -> System:
    """The limit of `sequential` as ever fewer spins are redrawn, without positions.

    Args:
        net: the network, as `network` builds it; its positional code has no use.
        window: time that attention reads, in units of 1/Delta tokens; 0 for a window of
            any fixed number of tokens.
        nodes: intervals between the ages at which the history is held.
        time: time of one step of the system.
        substeps: solver steps within it.

    Returns:
        A system that shows the output overlaps of the moment; its parameters are a
        mapping of beta and gamma.

    Raises:
        ValueError: a window below 0, or fewer than 2 nodes.

    Example:
        >>> from statmech_attn import dmft, dynamics
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> start = dmft.history(lambda age: net.output[0], window=4.0, nodes=8)
        >>> limit = dmft.continuous(net, window=4.0, nodes=8)
        >>> given = {"beta": 1.4, "gamma": file.gamma}
        >>> dynamics.orbit(limit, start, given, samples=5).shape
        (5, 3)
    """
    if window == 0:
        field: Callable = _Relaxation(net)
    else:
        _, difference, weights = _chebyshev(window, nodes)
        field = _Delayed(net, jnp.asarray(difference), jnp.asarray(weights))
    system = flow(field, time=time, substeps=substeps)
    return dataclasses.replace(system, observe=_Output(net))


def history(
    means: Callable[[float], Float[Array, " S"]],
    *,
    window: NotNegative,
    nodes: Count = 32,
) -> Float[Array, "n S"]:
    """A state of `continuous` with a window.

    Args:
        means: class means of the token of an age.
        window: time that attention reads.
        nodes: intervals between the ages at which the history is held.

    Returns:
        Class means at these ages, (nodes + 1, S).

    Raises:
        ValueError: a window that is not positive, or fewer than 2 nodes.

    Example:
        >>> import jax.numpy as jnp
        >>> falling = lambda age: jnp.array([1 - age])
        >>> history(falling, window=2.0, nodes=2)[:, 0].round(9).tolist()
        [1.0, 0.0, -1.0]
    """
    return jnp.stack([means(float(age)) for age in _chebyshev(window, nodes)[0]])


class _Relaxation(eqx.Module):
    net: Network

    def __call__(self, x: Float[Array, " S"], parameters: Mapping[str, Any]):
        _require(parameters)
        return _drawn(self.net, parameters, contract(self.net.weighted[1], x)) - x


class _Delayed(eqx.Module):
    net: Network
    difference: Float[Array, "n n"]
    weights: Float[Array, " n"]

    def __call__(self, u: Float[Array, "n S"], parameters: Mapping[str, Any]):
        _require(parameters)
        _, v, q, k = contract(self.net.weighted, u.T)
        logits = parameters["gamma"] * (q[:, 0] @ k)
        odds = self.weights * jnp.exp(logits - jax.lax.stop_gradient(logits.max()))
        newest = _drawn(self.net, parameters, v @ odds / odds.sum()) - u[0]
        return (-self.difference @ u).at[0].set(newest)


class _Output(eqx.Module):
    """Output overlaps of the newest class means."""

    net: Network

    def __call__(self, state: Array) -> Float[Array, " M"]:
        return contract(self.net.weighted[0], state if state.ndim == 1 else state[0])


def _drawn(
    net: Network, parameters: Mapping[str, Any], attention
) -> Float[Array, " S"]:
    return jnp.tanh(parameters["beta"] * contract(net.output.T, attention))


def _require(parameters: Mapping[str, Any]) -> None:
    if set(parameters) != NAMES:
        raise ValueError(
            "parameters must be beta and gamma (epsilon and redrawn are 0); got "
            f"{', '.join(parameters)}."
        )


def _chebyshev(window: float, nodes: int):
    """Ages, the matrix of d/ds, and the weights of an integral over the window."""
    if not 0 < window < np.inf or nodes < 2:
        raise ValueError(
            f"window must be positive and nodes at least 2; got {window:g} and {nodes}."
        )
    order = np.arange(nodes + 1)
    angle = np.pi * order / nodes
    ages = window * (1 - np.cos(angle)) / 2
    ends = np.where(order % nodes == 0, 2.0, 1.0) * (-1.0) ** order
    between = ages[:, None] - ages + np.eye(nodes + 1)
    difference = np.outer(ends, 1 / ends) / between
    difference -= np.diag(difference.sum(1))
    even = order % 2 == 0
    moments = np.where(even, 1 / (1.0 - np.where(even, order, 0) ** 2), 0.0)
    weights = window * np.linalg.solve(np.cos(np.outer(order, angle)), moments)
    return ages, difference, weights
