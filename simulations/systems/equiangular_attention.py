r"""Self-attention that attracts, on a sphere (Geshkovski et al., arXiv:2312.10794).

Tokens x_i of unit length follow

    x_i' = P_i Σ_j A_ij x_j,    A = softmax_j(β x_i·x_j),    P_i y = y - (x_i·y) x_i

n tokens that all have the same product ρ = x_i·x_j keep it the same.  With
x_j·P_i x_j = 1 - ρ² and x_j·P_i x_k = ρ - ρ² of three tokens

    ρ' = 2 e^{βρ} (1 - ρ) (1 + (n - 1) ρ) / Z,    Z = e^β + (n - 1) e^{βρ}

with Z = n where attention is not normalised.  At ρ = 1, where all tokens meet, the rate
is -2, without normalisation -2 e^β; at the simplex, ρ = -1/(n - 1), it is
2 n e^{βρ} / Z > 0.
"""

import jax
import jax.numpy as jnp


def field(product, parameters):
    beta, n = parameters["beta"], parameters["tokens"]
    all_scores = jnp.exp(beta) + (n - 1) * jnp.exp(beta * product)
    return unnormalised(product, parameters) * n / all_scores


def unnormalised(product, parameters):
    beta, n = parameters["beta"], parameters["tokens"]
    pull = jnp.exp(beta * product) * (1 - product) * (1 + (n - 1) * product)
    return 2 * pull / n


def tokens(x, parameters):
    """The flow of tokens (n, D) themselves."""
    pull = jax.nn.softmax(parameters["beta"] * x @ x.T, axis=1) @ x
    return pull - jnp.sum(x * pull, axis=1, keepdims=True) * x
