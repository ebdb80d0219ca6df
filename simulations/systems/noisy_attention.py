r"""Self-attention with noise, on the circle, and where it begins to order.

Tokens follow dθ_i = v(θ_i) dt + √(2D) dW_i with

    v(θ_i) = Σ_j A_ij sin(θ_j - θ_i),    A = softmax_j(β cos(θ_j - θ_i))

Infinitely many have a density f, of which v = (1/β) d/dθ ln ∫ e^{β cos(φ - θ)} f(φ) dφ.
The state of `field` is m_k = ⟨cos kθ⟩ of a density that is even in θ,

    m_k' = -k ⟨v sin kθ⟩ - k² D m_k,    v = (1/β) d/dθ ln (1 + 2 Σ_k κ_k m_k cos kθ)

with κ_k = I_k(β)/I_0(β).  The uniform density, m = 0, has the rates k² (κ_k/β - D): it
is stable above D = κ_1/β.  Densities at rest are f ∝ (e^{β cos} * f)^p, p = 1/(βD); the
expansion of this to the third order in m_1 gives, below the transition,

    m_1² = (p κ_1 - 1) 2p² / (p - 1) / [p + 2 - (p - 1) p κ_2 / (1 - p κ_2)]

whose bracket is positive at every β: the transition is continuous.
"""

import jax
import jax.numpy as jnp


MODES, PLACES = 16, 64
TIME = 0.05  # of a step of the tokens
k = jnp.arange(1, MODES + 1)
angles = 2 * jnp.pi * jnp.arange(PLACES) / PLACES


def ratios(beta):
    """I_k(β)/I_0(β) of all modes."""
    return jnp.cos(jnp.outer(k, angles)) @ jax.nn.softmax(beta * jnp.cos(angles))


def field(m, parameters):
    beta, noise = parameters["beta"], parameters["noise"]
    seen = ratios(beta) * m
    cos, sin = jnp.cos(jnp.outer(k, angles)), jnp.sin(jnp.outer(k, angles))
    v = -2 * (k * seen) @ sin / (1 + 2 * seen @ cos) / beta
    return -k * (sin @ (v * (1 + 2 * m @ cos))) / PLACES - k**2 * noise * m


def step(state, parameters):
    """N tokens over a short time; the state holds the number of the step.

    The mean of the kicks of this step and of the next is the rule of Leimkuhler and
    Matthews, whose stationary law is right to second order in the time.
    """
    theta, number = state
    apart = theta - theta[:, None]
    attention = jax.nn.softmax(parameters["beta"] * jnp.cos(apart), axis=1)
    v = jnp.sum(attention * jnp.sin(apart), axis=1)
    key = jax.random.key(0)
    kick = lambda at: jax.random.normal(jax.random.fold_in(key, at), theta.shape)
    kicks = (kick(number) + kick(number + 1)) / 2
    return theta + TIME * v + jnp.sqrt(
        2 * parameters["noise"] * TIME
    ) * kicks, number + 1


def order(state):
    """Length of the mean of all tokens."""
    theta, _ = state
    return jnp.hypot(jnp.mean(jnp.cos(theta)), jnp.mean(jnp.sin(theta)))[None]
