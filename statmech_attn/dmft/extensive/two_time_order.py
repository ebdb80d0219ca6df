r"""Order parameters with two times, filled row by row (docs/theory/extensive.md, 2).

With P the attention weights, $\hat P = (1 - \epsilon) P$ what they pass on, and R = G
$\hat P$, everything at t follows from what is at or before t:

    L = (1 - rho_vo R)^{-1}         overlaps from their direct part    `L`
    S^{vv} = L C L^T                of the value overlaps              `S`
    S^{qk}                          of queries with keys, t' <= t      `S_qk`
    Gamma = alpha rho_ov P^ L       self-interaction                   `Gamma`
    V = alpha P^ S^{vv} P^T^        covariance of the noise            `V`

Cycle construction: S = C + R S R^T for all of them and Gamma = 0.  Rows and columns are
tokens 0, ..., T; what lies in the future is zero.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from statmech_attn.dmft.extensive.ensembles import K, O, Q, V
from statmech_attn.dmft.extensive.loaded_network import Cells, LoadedNetwork


class Order(eqx.Module):
    """Order parameters; see the module docstring.

    Attributes:
        m: overlaps with the condensed patterns, positional part included.
        A: attention vector after each token.
        P: attention weights of tokens t (rows) for t'.
        C: correlations of the spins.
        G: response of token t to a field that draws token t' + 1.
        L: value overlaps by their direct part.
        RL: response of the overlaps to the direct part of the values, R L.
        R: response of the overlaps to those of the values, G P^.
        S: correlations of the value overlaps.
        S_qk: correlations of query overlaps with key overlaps at t' <= t.
        Gamma: self-interaction.
        V: covariance of the noise.
    """

    m: Float[Array, "n 4 M"]
    A: Float[Array, "n M"]
    P: Float[Array, "n n"]
    C: Float[Array, "n n"]
    G: Float[Array, "n n"]
    L: Float[Array, "n n"]
    RL: Float[Array, "n n"]
    R: Float[Array, "n n"]
    S: Float[Array, "n n"]
    S_qk: Float[Array, "n n"]
    Gamma: Float[Array, "n n"]
    V: Float[Array, "n n"]


def first_token(problem: LoadedNetwork, sites: Cells, steps: int) -> Order:
    """Order parameters of the token at the start."""
    n, M = steps + 1, problem.net.n_patterns
    two_times = jnp.zeros((n, n))
    empty = Order(jnp.zeros((n, 4, M)), jnp.zeros((n, M)), *(two_times,) * 10)
    means = jnp.asarray(sites.weighted @ sites.start)
    first = jnp.zeros(n).at[0].set(1.0)
    return add_token(problem, empty, jnp.array(0), means, first, 0 * first)


def add_token(
    problem: LoadedNetwork,
    order: Order,
    t,
    means: Float[Array, "4 M"],
    C: Float[Array, " n"],
    G: Float[Array, " n"],
) -> Order:
    """Enter token t: its semantic overlaps, and its rows of C and G.

    Nothing changes where t lies behind the last row.  `C` are its correlations with the
    tokens up to t, `G` its responses to the fields up to t - 1.
    """
    rho, epsilon = problem.ensemble.correlations, problem.epsilon
    positional = problem.net.positional[t % problem.net.context]
    m = order.m.at[t].set((1 - epsilon) * means + epsilon * positional)
    C = order.C.at[t].set(C).at[:, t].set(C)
    R_row = G @ ((1 - epsilon) * order.P)
    R = order.R.at[t].set(R_row)
    L_row = rho[V, O] * (R_row @ order.L)
    L = order.L.at[t].set(L_row.at[t].add(1.0, mode="drop"))
    RL_row = R_row @ L
    RL = order.RL.at[t].set(RL_row)
    if problem.ensemble.is_cycle:
        S_row = C[t] + (R_row @ order.S) @ R.T
        S_qk_row = S_row
    else:
        S_row = (L[t] @ C) @ L.T
        through = RL_row @ C
        S_qk_row = (
            rho[Q, K] * C[t]
            + rho[Q, O] * rho[V, K] * through
            + rho[Q, V] * rho[K, O] * (C[t] @ RL.T)
            + rho[Q, O] * rho[K, O] * (through @ RL.T)
        )
    return Order(
        m=m,
        A=order.A,
        P=order.P,
        C=C,
        G=order.G.at[t].set(G),
        L=L,
        RL=RL,
        R=R,
        S=order.S.at[t].set(S_row).at[:, t].set(S_row),
        S_qk=order.S_qk.at[t].set(S_qk_row),
        Gamma=order.Gamma,
        V=order.V,
    )


def attend(problem: LoadedNetwork, order: Order, t) -> Order:
    """Attention of token t, and noise and self-interaction of the field after it."""
    alpha, passed = problem.alpha, 1 - problem.epsilon
    time = jnp.arange(len(order.A))
    logits = problem.gamma * (
        order.m[:, K] @ order.m[t, Q] + alpha * passed**2 * order.S_qk[t]
    )
    read = (time <= t) & (time > t - problem.net.context)
    P_row = jax.nn.softmax(logits, where=read)
    P = order.P.at[t].set(P_row)
    V_row = alpha * passed**2 * ((P_row @ order.S) @ P.T)
    Gamma_row = jnp.zeros_like(P_row)
    if not problem.ensemble.is_cycle:
        rho_ov = problem.ensemble.correlations[O, V]
        Gamma_row = alpha * rho_ov * passed * (P_row @ order.L)
    return eqx.tree_at(
        lambda o: (o.A, o.P, o.V, o.Gamma),
        order,
        (
            order.A.at[t].set(P_row @ order.m[:, V]),
            P,
            order.V.at[t].set(V_row).at[:, t].set(V_row),
            order.Gamma.at[t].set(Gamma_row),
        ),
    )
