r"""Action of the order parameters (docs/theory/bpkr.md, section 2).

    $S = \sum_{l=1}^{L+1} s_l + E / N$,
    $E = \ln\det(K(U_1) + T) + Y^T (K(U_1) + T)^{-1} Y$,
    $s_l = \frac{N_l}{N} [\mathrm{Tr}(U_{l+1}^{-1} \mathrm{tr}_{h_l} U_l) / \sigma_l^2
           - \ln\det U_l + H_l \ln\det U_{l+1}]$

with N the largest width, U_{L+1} = U_a, U_{L+2} = 1 and H_{L+1} = 1 block of size K.
In a layer with a skip connection b_l the first block of U_l is b_l^2 U_{l+1}, the trace
is over the heads alone, and ln det b_l^2 U_{l+1} is added.

    U_l               (d_l, d_l)   order parameters, l = 1 ... L         `U`
    U_a               () or (K, K) order parameter of the readout        `U_a`
    C_l               (d_l, d_l)   lower factors, U_l = F_l F_l^T with
                                   F_l = (1 x F_{l+1}) C_l               `factors`
    (a_l beta_l)      (H_l d_{l+1}, d_l)  C_l in a layer with a skip, whose
                                   F_l = [b_l F_{l+1} (1 0); (1 x F_{l+1}) C_l]

In the factors the entropies separate, $s_l = \frac{N_l}{N} [\|C_l\|^2 / \sigma_l^2
- 2 \sum_i \ln \beta_{l,ii}]$ with beta_l = C_l where there is no skip, and every U_l is
positive definite whatever the numbers.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp
from annotated_types import Gt
from jaxtyping import Array, Float

from statmech_attn.bpkr.posed.linear_algebra import inverse_cholesky
from statmech_attn.bpkr.posed.prior import Skip, skips
from statmech_attn.bpkr.posed.problem import Posed
from statmech_attn.options import Count, NotNegatives, Numbers, Positive, Temperature


@jax.custom_jvp
def energy(
    K: Float[Array, "n n"], temperature: Temperature, y: Float[Array, " n"]
) -> Float[Array, ""]:
    r"""Energy of the labels: $E = \ln\det(K + T) + y^T (K + T)^{-1} y$.

    NaN where K + T is not positive definite.
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
    r"""$\mathrm{tr}_h U$: the sum of the blocks with equal first head index."""
    inner = U.shape[0] // heads
    return jnp.einsum("hahb->ab", U.reshape(heads, inner, heads, inner))


def entropies(
    U: Annotated[Sequence[Array], "L"],
    U_a: Positive | Annotated[Numbers, "K K"],
    heads: Annotated[Sequence[int], "L"],
    widths: Annotated[Numbers, Gt(0), "L+1"],
    variances: Annotated[NotNegatives, "L+2"],
    skip: Skip | None = None,
) -> Float[Array, " layers"]:
    """Entropies s_1 ... s_{L+1}, each times its width over the largest one."""
    chain = [*U, jnp.atleast_2d(jnp.asarray(U_a, float))]
    above = [*chain[1:], jnp.eye(chain[-1].shape[0])]
    counts, factors = [*heads, 1], [*(skip or [None] * len(heads)), None]
    terms = []
    for this, outer, H, s2, b in zip(chain, above, counts, variances[1:], factors):
        skipped = 0 if b is None else outer.shape[0]
        of_heads = sum_over_head(this[skipped:, skipped:], H)
        trace = jnp.trace(jnp.linalg.solve(outer, of_heads))
        logs = H * jnp.linalg.slogdet(outer)[1] - jnp.linalg.slogdet(this)[1]
        if b is not None:
            logs += jnp.linalg.slogdet(b**2 * outer)[1]
        terms.append(trace / s2 + logs)
    return jnp.stack(terms) * widths / jnp.max(widths)


def chain(
    factors: Sequence[Array], heads: Sequence[int], skip: Skip
) -> tuple[Array, ...]:
    """F_1 ... F_{L+1} of all layers and the readout, with U_l = F_l F_l^T."""
    products = [factors[-1]]
    for C, H, b in zip(factors[-2::-1], heads[::-1], skip[::-1], strict=True):
        products.append(below(products[-1], C, H, b))
    return tuple(products[::-1])


def below(
    F: Float[Array, "d m"],
    C: Float[Array, "r n"],
    heads: int,
    b,
    scale: Float[Array, ""] | float = 1.0,
) -> Float[Array, "e n"]:
    r"""F_l of F_{l+1}: $b F_{l+1} (1 \; 0)$ over `scale` $(1 \otimes F_{l+1}) C_l$.

    `b` is the factor of the skip connection; where it is None, the rows of the heads
    alone.
    """
    blocks = C.reshape(heads, F.shape[1], C.shape[1])
    through = jnp.einsum("ab,hbc->hac", F, blocks).reshape(-1, C.shape[1]) * scale
    if b is None:
        return through
    skipped = jnp.pad(b * F, ((0, 0), (0, C.shape[1] - F.shape[1])))
    return jnp.concatenate([skipped, through])


def order_parameters_of(factors: Sequence[Array], heads: Sequence[int], skip: Skip):
    """(U_1, ..., U_L) and U_a as a (K, K) matrix."""
    *U, U_a = [F @ F.T for F in chain(factors, heads, skip)]
    return tuple(U), U_a


def gaussian_process_limit(
    heads: Annotated[Sequence[int], "L"],
    variances: Annotated[NotNegatives, "L+2"],
    outputs: Count = 1,
    *,
    skip: Sequence | Numbers | None = None,
):
    r"""Order parameters at infinite width, reached for P / N -> 0.

    $U_l = \sigma_l^2 \, 1_{H_l} \otimes U_{l+1}$ from $U_a = \sigma_a^2 \, 1$ on, after
    a block $b_l^2 U_{l+1}$ in a layer with a skip connection.

    Args:
        heads: heads per layer (H_1, ..., H_L).
        variances: (sigma_0^2, ..., sigma_L^2, sigma_a^2).
        outputs: number of outputs K.
        skip: factors of the skip connections, as in `Problem`.

    Returns:
        (U_1, ..., U_L) and U_a as a (K, K) matrix.

    Example:
        >>> import jax.numpy as jnp
        >>> (U,), _ = gaussian_process_limit((2,), jnp.ones(3), skip=0.5)
        >>> jnp.diagonal(U).tolist()
        [0.25, 1.0, 1.0]
    """
    return _limit(variances, tuple(heads), outputs, skips(skip, len(heads)))


@partial(jax.jit, static_argnames=("heads", "outputs", "skip"))
def _limit(variances, heads: tuple[int, ...], outputs: int, skip: Skip):
    variances = jnp.asarray(variances)
    limits = [jnp.full(outputs, variances[-1])]
    for H, s2, b in zip(heads[::-1], variances[-2:0:-1], skip[::-1], strict=True):
        above = limits[-1]
        skipped = [] if b is None else [b**2 * above]
        limits.append(jnp.concatenate([*skipped, jnp.tile(s2 * above, H)]))
    *U, U_a = map(jnp.diag, limits[::-1])
    return tuple(U), U_a


def action(problem: Posed, U: Sequence[Array], U_a: Numbers) -> Float[Array, ""]:
    """S of any positive definite order parameters, not only of a saddle point."""
    parts = entropies(
        U, U_a, problem.heads, problem.widths, problem.variances, problem.skip
    )
    rows = problem.rows
    E = energy(rows.operator.kernel(U[0]), problem.temperature, rows.y)
    return parts.sum() + (E + problem.outside) / jnp.max(problem.widths)
