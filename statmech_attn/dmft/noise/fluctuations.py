r"""Linear noise around a trajectory, and how long it can be predicted (docs/theory, 5).

The class means of a sampled token of N spins differ from $\tanh h_c$ by noise of
variance $(1 - \tanh^2 h_c)/(w_c N)$.  Where spins are copied with probability
$1 - \Delta$, a spin x has the mean $e = (1 - \Delta) x + \Delta \tanh h_c$, and the
average of $e^2$ over the class stands in the place of $\tanh^2 h_c$.  To first order
the deviation of the state obeys
$\delta z_{t+1} = J_t\,\delta z_t + G_t\,\xi_t$, hence

    $\Sigma_{t+1} = J_t \Sigma_t J_t^T + G_t Q_t G_t^T$

with J and G the derivatives of the map in the state and in the class means, from JAX.
The state is (m^v, m^k of every slot, newest A), which also describes a window that
still grows, and the newest class means where spins may be copied; the observed overlaps
are linear in it and in the noise.

    D       (d, d)     factor of the covariance, Sigma = D D^T / N     `noise_dimension`
    std     (steps, M, *batch) of every observable, times sqrt(N)      `NoiseBand.std`
    score   (steps, *batch) largest spread of a score, times sqrt(N)   `NoiseBand.score`

The scores are the logits of the attention, $s_\tau = \gamma \sum_b m^q_b m^k_{b,\tau}$,
less their mean $\sum_\tau p_\tau s_\tau$.  The theory is an expansion in their spread
$\sigma_s$: weights change by factors $e^{s}$, so a predicted variance is off by a part
of order $\sigma_s^2$, and the prediction says nothing where $\sigma_s$ reaches one.

A factor instead of Sigma keeps variances non-negative; it is carried with its own
scale, so that in a chaotic phase, where it grows as $e^{\lambda_1 t}$, the prediction
ends in inf and not in NaN.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from statmech_attn.dmft.mean_field import (
    attention_weights,
    OBSERVABLES,
    Observation,
    observation,
    receive,
    scores,
)
from statmech_attn.dmft.network import (
    drawn_means,
    Network,
    next_means,
    Parameters,
    State,
    token_overlaps,
)
from statmech_attn.dmft.patterns import Patterns
from statmech_attn.options import Count, Numbers


SCORE_LIMIT = 0.3  # of the spread of a score: variances are then off by a fifth at most


class NoiseBand(NamedTuple):
    """Noise of a network of N spins along a trajectory, in units of 1/sqrt(N) or 1/N.

    Attributes:
        std: standard deviations of the observables, arrays (steps, M, *batch).
        score: sqrt(N) times the spread of the scores (docs/theory/dmft.md, section 5).
        covariance: of all observables, in the order `OBSERVABLES`.
    """

    std: Observation
    score: Float[Array, "steps *batch"]
    covariance: Float[Array, "steps 5M 5M *batch"] | None


def linear_noise(
    net: Network,
    patterns: Patterns,
    params: Parameters,
    state: State,
    *,
    steps: Count,
    covariance: bool = False,
) -> NoiseBand:
    """Standard deviation between runs of N spins from one initial condition.

    Row 0 belongs to the first generated token and the attention after it, as in
    `mean_field.trajectory`.

    Args:
        net: the network, as `network` builds it.
        patterns: those from which the network was built.
        params: control parameters of any batch shape, as `parameters` makes them.
        state: initial condition of all runs.
        steps: number of tokens.
        covariance: return the joint covariance of all observables as well; inf or NaN
            where it exceeds the range of doubles.

    Returns:
        Standard deviations times sqrt(N) for every observable and token.

    Raises:
        ValueError: steps < 1, or patterns of another network.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(0.5, file.gamma, file.epsilon)
        >>> start = dmft.from_row(net, params, 0)
        >>> linear_noise(net, file.patterns, params, start, steps=5).std.A.shape
        (5, 3)
    """
    start = noise_start(net, patterns, params, state)
    _, band = noise_steps(net, start, steps=steps, covariance=covariance)
    batch = jnp.broadcast_shapes(params.beta.shape, state.attention.shape[2:])
    return jax.tree.map(lambda x: x.reshape(x.shape[:-1] + batch), band)


class Noise(NamedTuple):
    """Points with their noise so far, batch flattened to one trailing axis of n.

    Deviations of the state have the covariance D D^T exp(2 log_scale) at N = 1.
    """

    params: Parameters
    state: State
    factor: Float[Array, "d d n"]
    log_scale: Float[Array, " n"]
    fractions: Float[Array, " S"]


def noise_start(
    net: Network, patterns: Patterns, params: Parameters, state: State
) -> Noise:
    """The state of `linear_noise` before the first token: a covariance of zero."""
    net.check_patterns(patterns)
    params, state, batch = flattened(params, state)
    size, n = noise_dimension(net, params), math.prod(batch)
    return Noise(
        params,
        state,
        jnp.zeros((size, size, n)),
        jnp.zeros(n),
        jnp.asarray(patterns.fractions),
    )


def flattened(
    params: Parameters, state: State
) -> tuple[Parameters, State, tuple[int, ...]]:
    """Parameters and state with their batch as one trailing axis, and its shape."""
    batch = jnp.broadcast_shapes(params.beta.shape, state.attention.shape[2:])
    return *_in_a_row(params, state, batch), batch


@partial(jax.jit, static_argnames="batch")
def _in_a_row(params: Parameters, state: State, batch: tuple[int, ...]):
    """`flattened`, whose arrays one program makes."""
    flat = lambda x, leading: jnp.broadcast_to(x, x.shape[:leading] + batch).reshape(
        x.shape[:leading] + (-1,)
    )
    batched = state.attention.ndim - 2  # axes of the state's own batch
    return (
        jax.tree.map(lambda x: flat(x, 0), params),
        jax.tree.map(lambda x: flat(x, x.ndim - batched) if x.ndim else x, state),
    )


def noise_dimension(net: Network, params: Parameters) -> int:
    """Coordinates of the state whose deviations are followed, (2 C + 1) M (+ S)."""
    copied = 0 if params.redrawn is None else net.n_classes
    return (2 * net.context + 1) * net.n_patterns + copied


@partial(jax.jit, static_argnames=("steps", "covariance"))
def noise_steps(
    net: Network, noise: Noise, *, steps: int, covariance: bool = False
) -> tuple[Noise, NoiseBand]:
    """Continue linear noise for some steps; the band has the batch (n,).

    With `covariance` the band has the joint covariance as well. Returns the noise to go
    on with, and the band of these steps.
    """
    lane = partial(_one_lane, net, noise.fractions, steps, covariance)
    carried = ((-1, -1, -1, None, None, -1), -1, -1)  # one clock for all points
    along = jax.vmap(lane, in_axes=(-1, *carried), out_axes=(carried, -1))
    start = (_fields(noise.state), noise.factor, noise.log_scale)
    (fields, factor, log_scale), (std, score, cov) = along(noise.params, *start)
    parts = jnp.split(std, len(OBSERVABLES), axis=1)
    band = Observation(**dict(zip(OBSERVABLES, parts, strict=True)))
    noise = noise._replace(state=State(*fields), factor=factor, log_scale=log_scale)
    return noise, NoiseBand(band, score, cov)


def _fields(state: State) -> tuple:
    window = (state.v, state.k, state.attention)
    return *window, state.clock, state.tokens, state.means


def _one_lane(net, fractions, steps, covariance, params, fields, factor, log_scale):
    """State, factor and its scale after `steps`, and what was seen on the way."""

    def body(carry, _):
        state, factor, log_scale = carry
        after, columns, observed = _push(
            net, fractions, params, state, factor, log_scale
        )
        observed, score = jnp.split(observed, [len(OBSERVABLES) * net.n_patterns])
        std = _scaled(jnp.linalg.norm(observed, axis=1), log_scale)
        score = _scaled(jnp.linalg.norm(score, axis=1).max(), log_scale)
        cov = _scaled(observed @ observed.T, 2 * log_scale) if covariance else None
        factor, log_scale = _compress(columns, log_scale)
        return (after, factor, log_scale), (std, score, cov)

    start = (State(*fields), factor, log_scale)
    (state, *noise), observed = jax.lax.scan(body, start, None, length=steps)
    return (_fields(state), *noise), observed


def _push(net, fractions, params, state: State, factor, log_scale):
    """Move the factor one step and add the noise of the new token.

    Returns the next state, the columns (d, d + S) of its deviations, and those (5M + C,
    d + S) of the observables and the scores.
    """
    spins = jnp.where(fractions > 0, fractions, jnp.inf)  # an empty class has no noise
    width = jnp.sqrt(spin_variance(net, params, state) / spins)
    move = beside(net, params, state, width)
    inputs = (coordinates(state), jnp.zeros_like(width))

    def column(deviation, noise):
        tangent = (ravel_pytree(inputs[0])[1](deviation), noise)
        return jax.jvp(move, inputs, tangent, has_aux=True)[1]

    n, noises = factor.shape[1], width.size
    deviations = jnp.concatenate([factor.T, jnp.zeros((noises, factor.shape[0]))])
    fresh = jnp.concatenate(
        [jnp.zeros((n, noises)), jnp.exp(-log_scale) * jnp.eye(noises)]
    )
    columns, observed = jax.vmap(column, out_axes=1)(deviations, fresh)
    return move(*inputs)[1], columns, observed


def beside(net: Network, params: Parameters, state: State, width):
    """The step of states beside an orbit, to be differentiated.

    `width` of the noise is (S,) or one number. Returns a function of `coordinates` and
    of noise (S,) on the class means in units of its width: coordinates (d,),
    observables and scores (5M + C,), the state after.
    """

    def move(coordinates_before, noise):
        v, k, newest, copied = coordinates_before
        mean = next_means(net, params, newest, copied) + width * noise
        overlaps = token_overlaps(net, params, mean, state.clock)
        before = State(v, k, state.attention, state.clock, state.tokens, state.means)
        after = receive(net, params, before, overlaps, mean)
        observed = observation(net, params, before, overlaps, after)
        observed = [*(getattr(observed, name) for name in OBSERVABLES)]
        vector = jnp.concatenate(
            [*observed, scores_over_mean(params.gamma, overlaps[2], after)]
        )
        moved = jax.tree.leaves(coordinates(after))
        return (jnp.concatenate([x.ravel() for x in moved]), vector), after

    return move


def scores_over_mean(gamma, m_q, after: State) -> Float[Array, " C"]:
    """Scores less their mean at fixed weights; zero in slots without a token."""
    weights = attention_weights(gamma, m_q, after.k, after.tokens)
    logits = scores(gamma, m_q, after.k)
    mean = (jax.lax.stop_gradient(weights) * logits).sum()
    return jnp.where(jnp.arange(len(logits)) < after.tokens, logits - mean, 0.0)


def spin_variance(net, params, state: State):
    """N_c times the variance of the class means of the next token."""
    means = drawn_means(net, params, state.newest)
    if params.redrawn is None:
        return 1 - means**2
    redrawn, copied = params.redrawn, 1 - params.redrawn
    cross = 2 * redrawn * copied * state.means * means
    return 1 - copied**2 - cross - (redrawn * means) ** 2


def coordinates(state: State):
    """What the next state depends on: m^v, m^k, newest A, class means to copy."""
    return state.v, state.k, state.newest, state.means


def _compress(columns, log_scale):
    """A square factor of the same covariance, with its scale taken out."""
    factor = jnp.linalg.qr(columns.T, mode="r").T
    size = jnp.maximum(jnp.abs(factor).max(), 1.0)
    return factor / size, log_scale + jnp.log(size)


def _scaled(x, log_scale):
    return jnp.where(x == 0, 0.0, x * jnp.exp(log_scale))


def predictability_horizon(
    n_spins: Numbers, lyapunov: Numbers
) -> Float[np.ndarray, "*batch"]:
    r"""Steps for which runs of N spins stay together, $\ln N / (2 \lambda_1)$.

    Args:
        n_spins: number of spins, at least 1.
        lyapunov: largest exponent, nats per step; inf where it is not positive.

    Raises:
        ValueError: N < 1 or not finite, or an exponent that is NaN.

    Example:
        >>> round(float(predictability_horizon(10**6, 0.1)), 2)
        69.08
    """
    n_spins, lyapunov = np.asarray(n_spins, float), np.asarray(lyapunov, float)
    if not ((n_spins >= 1) & np.isfinite(n_spins)).all():
        raise ValueError(f"n_spins must be finite and at least 1; got {n_spins}.")
    if np.isnan(lyapunov).any():
        raise ValueError(
            "lyapunov must hold the largest exponent; got NaN, as of an orbit that "
            "diverged."
        )
    n_spins, lyapunov = np.broadcast_arrays(n_spins, lyapunov)
    grows = lyapunov > 0
    rate = np.where(grows, lyapunov, 1.0)
    return np.where(grows, np.log(n_spins) / (2 * rate), math.inf)
