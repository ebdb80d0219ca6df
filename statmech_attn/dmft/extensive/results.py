"""What the theory of patterns growing with N returns (docs/theory/extensive.md)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from statmech_attn import presentation
from statmech_attn.dmft.extensive.loaded_network import LoadedNetwork
from statmech_attn.dmft.extensive.two_time_order import Order
from statmech_attn.labels import Variable


class Values(eqx.Module):
    """Order parameters of tokens 0, ..., T, the first of which is the start.

    Two-time arrays have the later token in rows; the future is zero where they are not
    symmetric.

    Attributes:
        m: overlaps with the condensed patterns, kinds o, v, q, k, positional part
            included.
        m_o_se: semantic overlap with the outputs.
        A: attention vector after each token.
        weights: attention weights p_d(t) by age d of what is read, 0 the newest.
        C: correlations of the spins.
        G: response of token t to a field on the spins of token t' + 1.
        S: correlations of value overlaps of the other patterns, S^{vv}.
        S_qk: correlations of their query overlaps at t with key overlaps at t' <= t.
        Gamma: self-interaction of a spin through the other patterns.
        noise: covariance of the crosstalk after tokens t and t'.
    """

    m: Float[Array | np.ndarray, "*batch n 4 M"]
    m_o_se: Float[Array | np.ndarray, "*batch n M"]
    A: Float[Array | np.ndarray, "*batch n M"]
    weights: Float[Array | np.ndarray, "*batch n C"]
    C: Float[Array | np.ndarray, "*batch n n"]
    G: Float[Array | np.ndarray, "*batch n n"]
    S: Float[Array | np.ndarray, "*batch n n"]
    S_qk: Float[Array | np.ndarray, "*batch n n"]
    Gamma: Float[Array | np.ndarray, "*batch n n"]
    noise: Float[Array | np.ndarray, "*batch n n"]


def _row(name: str, words: str, dims: str, symbol: str, line: bool = True) -> Variable:
    return Variable(
        name,
        dims,
        words,
        symbol=symbol,
        value=f"value.{name}",
        error=f"error.{name}",
        line=line,
    )


class Trajectory(eqx.Module):
    """Order parameters in time with their errors.

    Attributes:
        value: the order parameters.
        error: their errors: of quadrature, or standard errors.
        method: "closed" or "sampled".
        trajectories: sampled effective trajectories; 0 where the method is closed.
        reached: whether the errors are as small as asked.
        jitter: largest variance of the noise that rounding or quadrature made negative;
            where trajectories are sampled it was set to zero.
    """

    value: Values
    error: Values
    method: str = eqx.field(static=True)
    trajectories: int = eqx.field(static=True, default=0)
    reached: bool = eqx.field(static=True, default=True)
    jitter: Float[Array | np.ndarray, "*batch"] | float = 0.0

    _shown = (
        Variable("method", "", "method"),
        Variable("trajectories", "", "effective trajectories"),
        Variable("reached", "", "error as small as asked"),
        Variable("jitter", "", "largest negative variance of the noise"),
        Variable("positive", "", "negative variances within the errors"),
        _row("m_o_se", "semantic overlap with the outputs", "time pattern", "m^o"),
        _row("A", "attention vector", "time pattern", "A"),
        _row("weights", "attention weights", "time age", "p_d"),
        _row("C", "correlations of the spins", "time time_2", "C"),
        _row("G", "response", "time time_2", "G"),
        _row("S", "correlations of the value overlaps", "time time_2", "S^{vv}"),
        _row("S_qk", "correlations of query with key", "time time_2", "S^{qk}", False),
        _row("Gamma", "self-interaction", "time time_2", "Γ"),
        _row("noise", "covariance of the noise", "time time_2", "V"),
        _row("m", "overlaps by kind", "time kind pattern", "m", False),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def positive(self) -> Bool[Array | np.ndarray, "*batch"]:
        """Whether the jitter is no larger than errors and rounding of the noise.

        Where it is larger, the noise has lost its positivity, and the result is wrong.
        """
        largest = lambda x: abs(x).max((-2, -1))
        noise = self.value.noise
        rounding = jnp.finfo(noise.dtype).eps * largest(noise)
        n = noise.shape[-1]  # no eigenvalue errs by more than n times the entries
        allowed = n * (largest(self.error.noise) + rounding)
        return jnp.asarray(self.jitter <= allowed)


def values(problem: LoadedNetwork, order: Order) -> Values:
    """What a file holds of the order parameters of one run."""
    net, epsilon = problem.net, problem.epsilon
    time = jnp.arange(len(order.A))
    read = time[:, None] - jnp.arange(net.context)
    weights = jnp.take_along_axis(order.P, jnp.maximum(read, 0), axis=1)
    positional = net.positional[time % net.context, 0]
    return Values(
        m=order.m,
        m_o_se=(order.m[:, 0] - epsilon * positional) / (1 - epsilon),
        A=order.A,
        weights=jnp.where(read >= 0, weights, 0.0),
        C=order.C,
        G=order.G,
        S=order.S,
        S_qk=order.S_qk,
        Gamma=order.Gamma,
        noise=order.V,
    )
