r"""How spins excite a critical mode, and what it moves (critical_fluctuations.md, 1).

Class means of a token have noise of variance $Q_c / N$ (dmft.md, 5).  It stays in the
window for C tokens, so that the tokens of one iterate are followed to the end of as
many iterates more as the window takes to forget them, which the multiplier mu, of
modulus one, undoes:

    $N \langle |\langle p, \delta x \rangle|^2 \rangle
        = \sum_{t, c} Q_{c,t} \left| \bar p \cdot
          \partial x / \partial \langle x_t \rangle_c \right|^2$
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Complex, Float

from statmech_attn.dmft.initial_states import from_window
from statmech_attn.dmft.mean_field import receive, semantic_overlaps
from statmech_attn.dmft.network import (
    Network,
    next_means,
    Parameters,
    token_overlaps,
    window,
)
from statmech_attn.dmft.noise.fluctuations import scores_over_mean, spin_variance
from statmech_attn.dmft.stroboscopic_map import StroboscopicMap
from statmech_attn.dynamics.continuation import NormalForm, Problem


class CriticalMode(NamedTuple):
    """Of one iterate of the map, whose tokens are `steps`.

    Attributes:
        noise: N times the mean square of the noise of the amplitude.
        overlap: change of the semantic output overlaps with the amplitude.
        score: change of the logits of the attention, less their mean.
    """

    noise: float
    overlap: Complex[np.ndarray, "steps M"]
    score: Complex[np.ndarray, "steps C"]


def critical_mode(
    turn: StroboscopicMap,
    problem: Problem,
    x: Float[np.ndarray, " d"],
    value: float,
    form: NormalForm,
) -> CriticalMode:
    """The mode of a bifurcation of `dmft.strobe`."""
    net, steps = turn.net, turn.tokens * int(problem.period)
    params = Parameters(**{**problem.parameters, problem.free: jnp.asarray(value)})
    parts = lambda v: jnp.stack([jnp.real(v), jnp.imag(v)])
    vectors = parts(jnp.asarray(form.adjoint)), parts(jnp.asarray(form.vector))
    after = -(-net.context // steps) * steps
    given = net, params, jnp.asarray(x), *vectors, steps, after
    pulled, moved = _linearised(*given)
    overlap, score = (np.asarray(v[0] + 1j * v[1]) for v in moved)
    return CriticalMode(float((pulled**2).sum()), overlap, score)


@eqx.filter_jit
def _linearised(net: Network, params: Parameters, x, adjoint, vector, steps, after):
    fractions = jnp.abs(net.weighted[0, 0])  # patterns are signs
    spins = jnp.where(fractions > 0, fractions, jnp.inf)

    def token(state, noise):
        means = next_means(net, params, state.newest, None)
        means = means + jnp.sqrt(spin_variance(net, params, state) / spins) * noise
        overlaps = token_overlaps(net, params, means, state.clock)
        semantic = semantic_overlaps(net, params, state, overlaps)
        moved = receive(net, params, state, overlaps)
        return moved, (semantic, scores_over_mean(params.gamma, overlaps[2], moved))

    def run(x, noise):
        start = from_window(net, params, x.reshape(net.context, net.n_patterns), 0)
        state, semantic = jax.lax.scan(token, start, noise)
        return window(state).ravel(), semantic

    quiet = jnp.zeros((steps, net.n_classes))
    later = jnp.zeros((after, net.n_classes))
    end = lambda noise: adjoint @ run(x, jnp.concatenate([noise, later]))[0]
    along = lambda q: jax.jvp(lambda x: run(x, quiet)[1], (x,), (q,))[1]
    return jax.jacrev(end)(quiet), jax.vmap(along)(vector)
