r"""Action of the order parameters (docs/theory/bpkr.md, section 2).

    $S = \sum_{l=1}^{L+1} s_l + E / N$,
    $E = \ln\det(K(U_1) + T) + Y^T (K(U_1) + T)^{-1} Y$,
    $s_l = \frac{N_l}{N} [\mathrm{Tr}(U_{l+1}^{-1} \mathrm{tr}_{h_l} U_l) / \sigma_l^2
           - \ln\det U_l + H_l \ln\det U_{l+1}]$

with N the largest width, U_{L+1} = U_a, U_{L+2} = 1 and H_{L+1} = 1 block of size K.

    U_l               (d_l, d_l)   order parameters, l = 1 ... L         `U`
    U_a               () or (K, K) order parameter of the readout        `U_a`
    C_l               (d_l, d_l)   lower factors, U_l = F_l F_l^T with
                                   F_l = (1 x F_{l+1}) C_l               `factors`

In the factors the entropies separate, $s_l = \frac{N_l}{N} [\|C_l\|^2 / \sigma_l^2
- 2 \sum_i \ln C_{l,ii}]$, and every U_l is positive definite whatever the numbers.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from statmech_attn.bpkr.linear_algebra import inverse_cholesky
from statmech_attn.bpkr.problem import Problem


@jax.custom_jvp
def energy(
    K: Float[Array, "n n"], temperature, y: Float[Array, " n"]
) -> Float[Array, ""]:
    r"""Energy of the labels: $E = \ln\det(K + T) + y^T (K + T)^{-1} y$.

    NaN where K + T is not positive definite.

    Args:
        K: kernel.
        temperature: of the posterior, >= 0.
        y: labels.
    """
    half = inverse_cholesky(K + temperature * jnp.eye(K.shape[0]))
    whitened = half @ y
    return whitened @ whitened - 2 * jnp.log(jnp.diagonal(half)).sum()


@energy.defjvp
def _energy_jvp(primals, tangents):
    K, temperature, y = primals
    dK, d_temperature, dy = tangents
    A, alpha = resolvent(K, temperature, y)
    # dE = Tr[A dK] with A = (K + T)^-1 - alpha alpha^T, differentiable once more.
    change = (A * dK).sum() + jnp.trace(A) * d_temperature + 2 * alpha @ dy
    return energy(K, temperature, y), change


def resolvent(K, temperature, y) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
    r"""$A = (K+T)^{-1} - \alpha\alpha^T$ and $\alpha = (K+T)^{-1} y$."""
    M = inverse(K + temperature * jnp.eye(K.shape[0]))
    alpha = M @ y
    return M - jnp.outer(alpha, alpha), alpha


@jax.custom_jvp
def inverse(B: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Inverse of a positive definite matrix; NaN where it is not."""
    half = inverse_cholesky(B)
    return half.T @ half


@inverse.defjvp
def _inverse_jvp(primals, tangents):
    M = inverse(primals[0])
    return M, -M @ tangents[0] @ M


def sum_over_head(U: Float[Array, "m m"], heads: int) -> Float[Array, "k k"]:
    r"""$\mathrm{tr}_h U$: the sum of the blocks with equal first head index.

    Example:
        >>> import jax.numpy as jnp
        >>> float(sum_over_head(jnp.eye(3), 3)[0, 0])
        3.0
    """
    inner = U.shape[0] // heads
    return jnp.einsum("hahb->ab", U.reshape(heads, inner, heads, inner))


def entropies(
    U: Sequence[Array], U_a, heads: Sequence[int], widths, variances
) -> Float[Array, " layers"]:
    """Entropies s_1 ... s_{L+1}, each times its width over the largest one.

    Args:
        U: order parameters.
        U_a: order parameter of the readout.
        heads: heads per layer, or their matrices.
        widths: (N_1, ..., N_L, N_a).
        variances: (sigma_0^2, ..., sigma_L^2, sigma_a^2).

    Example:
        >>> import jax.numpy as jnp
        >>> one = (jnp.eye(4), jnp.eye(2))
        >>> entropies(one, 1.0, (2, 2), jnp.ones(3), jnp.ones(4)).tolist()
        [4.0, 2.0, 1.0]
    """
    chain = [*U, jnp.atleast_2d(jnp.asarray(U_a, float))]
    above = [*chain[1:], jnp.eye(chain[-1].shape[0])]
    counts = [*heads, 1]
    terms = []
    for this, outer, H, s2 in zip(chain, above, counts, variances[1:]):
        trace = jnp.trace(jnp.linalg.solve(outer, sum_over_head(this, H)))
        logs = H * jnp.linalg.slogdet(outer)[1] - jnp.linalg.slogdet(this)[1]
        terms.append(trace / s2 + logs)
    return jnp.stack(terms) * widths / jnp.max(widths)


def chain(factors: Sequence[Array], heads: Sequence[int]) -> tuple[Array, ...]:
    """F_1 ... F_{L+1} with F_l = (1 x F_{l+1}) C_l and U_l = F_l F_l^T."""
    outer = factors[-1]
    products = [outer]
    for C, H in zip(factors[-2::-1], heads[::-1]):
        inner = outer.shape[0]
        blocks = C.reshape(H, inner, C.shape[1])
        outer = jnp.einsum("ab,hbc->hac", outer, blocks).reshape(C.shape)
        products.append(outer)
    return tuple(products[::-1])


def order_parameters_of(factors: Sequence[Array], heads: Sequence[int]):
    """(U_1, ..., U_L) and U_a as a (K, K) matrix."""
    *U, U_a = [F @ F.T for F in chain(factors, heads)]
    return tuple(U), U_a


def gaussian_process_limit(heads: Sequence[int], variances, outputs: int = 1):
    r"""Order parameters at infinite width, reached for P / N -> 0.

    $U_l = \sigma_a^2 \prod_{j \ge l} \sigma_j^2 \, 1$.

    Args:
        heads: heads per layer (H_1, ..., H_L).
        variances: (sigma_0^2, ..., sigma_L^2, sigma_a^2).
        outputs: number of outputs K.

    Returns:
        (U_1, ..., U_L) and U_a as a (K, K) matrix.
    """
    scale = jnp.cumprod(jnp.asarray(variances)[:0:-1])[::-1]
    size, limits = outputs, [scale[-1] * jnp.eye(outputs)]
    for H, s2 in zip(heads[::-1], scale[-2::-1]):
        size *= H
        limits.append(s2 * jnp.eye(size))
    *U, U_a = limits[::-1]
    return tuple(U), U_a


def action(problem: Problem, U: Sequence[Array], U_a) -> Float[Array, ""]:
    """S of any positive definite order parameters."""
    parts = entropies(U, U_a, problem.heads, problem.widths, problem.variances)
    E = energy(problem.operator.kernel(U[0]), problem.temperature, problem.y)
    return parts.sum() + E / jnp.max(problem.widths)
