r"""Recall that moves along the cycle of all patterns (docs/theory/extensive.md, 4).

In the cycle construction a token that condenses on one pattern draws the next.  In the
frame that moves along with it one pattern a token, overlaps are constant,

    m_j        (L + 1,)  overlap with the pattern that was recalled j tokens ago  `m`
    S(lag)     (L + 1,)  correlations of the value overlaps, zero at longer lags  `S`

and with the weights p_d of a window of C tokens

    a_j = sum_d p_d m_{j-d},   logits gamma [ sum_j m_{j+d} m_j + alpha S(d) ]
    m_j = < xi_j tanh beta (sum_i xi_i a_i + phi) >
    C(lag) = < tanh beta (sum_i xi_i a_i + phi) tanh beta (sum_i xi_i a_{i-lag} + phi')>

over independent signs xi and the noise.  The spin is written as a Fourier series,

    tanh h/T = sum_n b_n sin k_n h,   k_n = (2n + 1) pi/P,
    b_n = 2 pi T / (P sinh(pi k_n T/2))

up to exp(-2 (P - |h|)/T), so that the average over any number of signs is a product of
cosines, and that over the noise a Gaussian in k: exponentially accurate at every T.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn import presentation
from statmech_attn.dmft.extensive.loaded_network import LoadedNetwork
from statmech_attn.dmft.extensive.stationary import (
    Capacity,
    check_stationary,
    chosen_lags,
    followed_to_fold,
    PARAMETERS,
    settle,
)
from statmech_attn.dynamics import continuation
from statmech_attn.labels import Variable
from statmech_attn.options import Interval, WholeNumber


FINE, COARSE = 32, 24  # terms of the series
TAILS = 9.0, 18.0  # of the noise in sigma and of tanh in T, zero to rounding
LARGEST = 300.0  # argument of a sinh that is infinite


class Moving(eqx.Module):
    """A map whose fixed points are the states of moving recall, for `continuation`.

    Attributes:
        context: tokens of the window, C.
        lags: largest lag, and oldest pattern, that is kept.
        terms: of the Fourier series.
    """

    context: int = eqx.field(static=True)
    lags: int = eqx.field(static=True)
    terms: int = eqx.field(static=True)

    def __call__(self, state: dict, parameters: dict) -> dict:
        """One step of the state {m, S} at parameters alpha, beta and gamma."""
        alpha, gamma = parameters["alpha"], parameters["gamma"]
        m, age, lag = state["m"], np.arange(self.context), np.arange(self.lags + 1)
        older = _at(m, lag + age[:, None]) @ m
        p = jax.nn.softmax(gamma * (older + alpha * _at(state["S"], age)))
        a = p @ _at(m, lag - age[:, None])
        lags = abs(lag[:, None, None] - age[:, None] + age)
        passed = jnp.einsum("d,e,lde->l", p, p, _at(state["S"], lags))
        sums = _Sums(a, 1 / parameters["beta"], alpha * passed, self.terms)
        g = sums.slope()
        C = jnp.append(1.0, sums.products())
        return {"m": sums.overlaps(), "S": C + g**2 * passed}


def _at(values: Float[Array, " n"], place) -> Array:
    """Values at places; zero where there are none."""
    inside = (place >= 0) & (place < len(values))
    return jnp.where(inside, values[np.where(inside, place, 0)], 0.0)


class _Sums(eqx.Module):
    """Averages over signs and noise by Fourier series.

    Attributes:
        a: mean fields of the patterns.
        V: covariance of the noise by lag.
        k: wave numbers.
        b: coefficients, with the Gaussian of one noise.
    """

    a: Float[Array, " n"]
    V: Float[Array, " n"]
    k: Float[Array, " terms"]
    b: Float[Array, " terms"]

    def __init__(self, a, temperature, V, terms: int):
        reach = jnp.abs(a).sum() + TAILS[0] * jnp.sqrt(V[0]) + TAILS[1] * temperature
        period = jax.lax.stop_gradient(reach)  # on which nothing depends
        k = (2 * np.arange(terms) + 1) * np.pi / period
        y = jnp.clip(np.pi / 2 * k * temperature, 0.0, LARGEST)
        is_cold = y == 0
        safe = jnp.where(is_cold, 1.0, y)
        thermal = jnp.where(is_cold, 1.0, safe / jnp.sinh(safe))
        self.a, self.V, self.k = a, V, k
        self.b = 4 / (k * period) * thermal * jnp.exp(-(k**2) * V[0] / 2)

    def overlaps(self) -> Float[Array, " n"]:
        """Averages of a sign and the spin."""
        angle = self.k[:, None] * self.a
        same = np.eye(len(self.a), dtype=bool)
        rest_of_product = jnp.where(same, 1.0, jnp.cos(angle)[:, None]).prod(-1)
        return self.b @ (jnp.sin(angle) * rest_of_product)

    def slope(self) -> Float[Array, ""]:
        """Average derivative of the spin in its field."""
        return (self.b * self.k) @ jnp.cos(self.k[:, None] * self.a).prod(-1)

    def products(self) -> Float[Array, " lags"]:
        """Averages of two spins at every lag from 1 on."""
        n = len(self.a)
        first = jnp.pad(self.a, (0, n - 1))
        pairs = self.b[:, None] * self.b / 2
        products = self.k[:, None] * self.k

        def at(lag):
            second = jnp.roll(jnp.pad(self.a, (0, n - 1)), lag)
            x = self.k[:, None, None] * first
            y = self.k[:, None] * second
            alike = jnp.exp(products * self.V[lag]) * jnp.cos(x - y).prod(-1)
            opposite = jnp.exp(-products * self.V[lag]) * jnp.cos(x + y).prod(-1)
            return (pairs * (alike - opposite)).sum()

        return jax.lax.map(at, np.arange(1, n))


class MovingState(eqx.Module):
    """A state of recall that moves; `problem` and `state` go to `continuation`.

    Attributes:
        m: overlaps with the patterns recalled now, one token ago, and so on.
        S: correlations of the value overlaps by lag.
        problem: the map of which it is a fixed point, with its free parameter.
    """

    m: Float[Array, " lags"]
    S: Float[Array, " lags"]
    problem: continuation.Problem

    _shown = (
        Variable("m", "lag", "overlaps with the patterns recalled so far"),
        Variable("S", "lag", "correlations of the value overlaps", symbol="S^{vv}"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def state(self) -> dict:
        """The fixed point as a state of the map."""
        return {"m": self.m, "S": self.S}


@presentation.knows_given
def moving(
    problem: LoadedNetwork,
    *,
    free: str = "alpha",
    lags: WholeNumber | None = None,
    coarse: bool = False,
) -> MovingState:
    """The state of recall that moves one pattern a token, ready to be continued.

    Of the network of the problem the context alone matters: the condensed patterns are
    those of the cycle.

    Args:
        problem: of the ensemble `cycle`, one beta, and no positional code.
        free: parameter to be continued: alpha, beta or gamma.
        lags: largest lag, and oldest pattern, that is kept; 8 (C - 1) when omitted.
        coarse: sum fewer terms, the difference of which is an error.

    Returns:
        The state, and the problem that `dynamics.continuation.follow_cycle` takes.

    Raises:
        ValueError: another ensemble, a parameter that is none, beta that changes, a
            positional code, or alpha = 0 without thermal noise.
        NoRetrieval: the iteration does not settle.

    Example:
        >>> import numpy as np
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
        >>> problem = extensive.loaded_network(
        ...     net, extensive.cycle(), alpha=0.2, beta=np.inf)
        >>> round(float(extensive.moving(problem).m[0]), 6)
        0.966326
    """
    check_moving(problem, free)
    lags = chosen_lags(problem, lags)
    step = Moving(problem.net.context, lags, COARSE if coarse else FINE)
    at_lag_zero = jnp.zeros(lags + 1).at[0].set(1.0)
    parameters = {name: getattr(problem, name) for name in PARAMETERS}
    state = settle(step, {"m": at_lag_zero, "S": at_lag_zero}, parameters)
    return MovingState(
        problem=continuation.Problem(step, state, parameters, free), **state
    )


def check_moving(problem: LoadedNetwork, free: str = "alpha") -> None:
    """Refuse networks that have no states of moving recall, for `moving`."""
    check_stationary(problem, free)
    if not problem.ensemble.is_cycle:
        raise ValueError("ensemble: recall moves along the patterns of cycle() alone.")
    if problem.alpha == 0 and np.isinf(problem.beta):
        raise ValueError("alpha must be positive where beta is infinite.")


def moving_capacity(
    problem: LoadedNetwork,
    *,
    free: str = "alpha",
    lags: WholeNumber | None = None,
    coarse: bool = False,
    within: Interval | None = None,
    settings: continuation.Settings | None = None,
) -> Capacity:
    """Where recall that moves one pattern a token ends in a fold, by continuation."""
    settled = moving(problem, free=free, lags=lags, coarse=coarse)
    return followed_to_fold(settled, "m", within, settings)
