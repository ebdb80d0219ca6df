r"""Self-attention that repels, on the circle (arXiv:2609.28448).

N tokens x_i = (cos θ_i, sin θ_i) go to

    x_i <- normalize(x_i - γ Σ_j A_ij x_j),    A = softmax_j(β x_i·x_j)

The state is θ_i - θ_0 of the others (N - 1,), which leaves out that all of them may be
turned together, in [-1/2, 2π - 1/2): neither tokens that meet nor those of a small
polygon lie at its ends.

Mode k of the regular polygon, δθ_j ∝ e^{i k θ_j}, is multiplied by

    μ_k = (1 - γ [c_k + β (s_0 - s_k)]) / (1 - γ c_0)

where φ_m = 2π m / N, a_m ∝ e^{β cos φ_m} with sum 1, c_k = Σ_m a_m cos φ_m cos k φ_m
and s_k = Σ_m a_m sin² φ_m cos k φ_m: project the change of x_i - γ Σ_j A_ij x_j on the
tangent, with δA_ij = β A_ij (δ(x_i·x_j) - Σ_l A_il δ(x_i·x_l)), whose last term drops
out because Σ_m a_m sin φ_m = 0.  It flips, μ_k = -1, at γ = `flip(N, k, β)`.
"""

import jax
import jax.numpy as jnp


def step(differences, parameters):
    return jnp.remainder(lifted(differences, parameters) + 0.5, 2 * jnp.pi) - 0.5


def lifted(differences, parameters):
    """The step with angles that may leave the interval, at whose ends `step` jumps.

    A branch is followed in these: it may cross the ends.
    """
    beta, gamma = parameters["beta"], parameters["gamma"]
    angles = jnp.concatenate([jnp.zeros(1), differences])
    apart = angles - angles[:, None]  # (i, j): that of j less that of i
    attention = jax.nn.softmax(beta * jnp.cos(apart), axis=1)
    along = 1 - gamma * jnp.sum(attention * jnp.cos(apart), axis=1)
    across = -gamma * jnp.sum(attention * jnp.sin(apart), axis=1)
    turned = jnp.arctan2(across, along)
    return differences + turned[1:] - turned[0]


def observe(differences):
    """Length of the mean of all tokens, and where they are, which tells flips apart."""
    angles = jnp.concatenate([jnp.zeros(1), differences])
    length = jnp.hypot(jnp.mean(jnp.cos(angles)), jnp.mean(jnp.sin(angles)))
    return jnp.stack([length, *jnp.cos(differences), *jnp.sin(differences)])


def flip(tokens, mode, beta):
    """γ at which a mode of the regular polygon flips."""
    phi = 2 * jnp.pi * jnp.arange(tokens) / tokens
    a = jax.nn.softmax(beta * jnp.cos(phi))
    c = lambda k: jnp.sum(a * jnp.cos(phi) * jnp.cos(k * phi))
    s = lambda k: jnp.sum(a * jnp.sin(phi) ** 2 * jnp.cos(k * phi))
    return 2 / (c(0) + c(mode) + beta * (s(0) - s(mode)))
