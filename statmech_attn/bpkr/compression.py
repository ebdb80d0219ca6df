r"""More examples than the rank of the kernel (docs/theory/bpkr.md, section 2).

With Q an orthonormal basis of what the inputs of all paths span, $X_\pi = Q R_\pi$ and
$Y = Q Y_Q + Y_\perp$, for every U

    $E = \ln\det(K_Q + T) + Y_Q^T (K_Q + T)^{-1} Y_Q
         + (n - n_Q) \ln T + |Y_\perp|^2 / T$

so that r rows R take the place of P examples, and the last two terms do not depend on
U.  Kernels with new inputs lie in the same space, and a predictor needs no more.  The
basis is that of the eigenvectors of $G = \sum_\pi K_{\pi\pi}$; eigenvalues at rounding
are left out.

    R_pi              (r, N_0, Pi)  rows of the attentioned inputs     `xi`
    Y_Q               (r,) (r, K)   labels in the basis                `Y`
    |Y_perp|^2        ()            of the labels outside it           `residual`
    Q                 (P, r)        of kernels that are given          `basis`
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn.bpkr.activations import Kernels
from statmech_attn.bpkr.kernels import fitting_operator, Operator


class Compressed(eqx.Module):
    """Rows in the place of examples, as many as the kernel has rank."""

    xi: Float[Array, "r N_0 Pi"] | Kernels
    Y: Float[Array, "r *K"]
    residual: Float[Array, ""]
    operator: Operator  # kernel of the rows
    operator: Operator  # kernel of the rows
    basis: Float[Array, "P r"] | None  # of kernels that are given, else None

    def constant(self, temperature, outside: int) -> Float[Array, ""]:
        r"""What the energy has from labels outside: $m \ln T + |Y_\perp|^2 / T$.

        Args:
            temperature: of the posterior; at zero the term is infinite.
            outside: number m of the labels' directions outside the basis.
        """
        at_zero = jnp.where(self.residual > 0, jnp.inf, -jnp.inf)
        T = jnp.where(temperature > 0, temperature, 1.0)
        finite = outside * jnp.log(T) + self.residual / T
        return jnp.where(temperature > 0, finite, at_zero)


def of_inputs(
    xi: Float[Array, "P N_0 Pi"],
    scale: Float[Array, " Pi"],
    Y: Float[Array, "P *K"],
    **options: Any,
) -> Compressed | None:
    """Rows of attentioned inputs; None where there are no more examples than those.

    Args:
        xi: attentioned inputs.
        scale: their prefactor by path.
        Y: labels.
        options: `form` and `memory_limit` of `kernels.fitting_operator`.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, one, Y = jnp.ones((4, 1, 1)), jnp.ones(1), jnp.arange(4.0)
        >>> rows = of_inputs(xi, one, Y, memory_limit=2**20)
        >>> rows.xi.shape, round(float(rows.residual), 12)  # of the mean of 0 ... 3
        ((1, 1, 1), 5.0)
    """
    P, *shape = xi.shape
    features = int(np.prod(shape))
    if P <= features:
        return None
    labels = np.asarray(Y).reshape(P, -1)
    beside = np.concatenate([np.asarray(xi).reshape(P, -1), labels], axis=1)
    triangle = np.asarray(np.linalg.qr(beside, mode="r"))
    R, Y_Q = triangle[:features, :features], triangle[:features, features:]
    scaled = R * np.tile(np.asarray(scale), shape[0])
    W, sizes, _ = np.linalg.svd(scaled)
    rank = _rank(sizes, P)
    turned = W.T @ Y_Q
    outside = (turned[rank:] ** 2).sum() + (triangle[features:, features:] ** 2).sum()
    rows = jnp.asarray((W.T @ R)[:rank].reshape(rank, *shape))
    operator = fitting_operator(rows, scale, labels.shape[1], **options)
    return _compressed(rows, turned[:rank], Y, outside, operator)


def _rank(sizes: Float[np.ndarray, " n"], examples: int) -> int:
    """Number of falling singular values above rounding, at least one."""
    return max(1, int((sizes > examples * np.finfo(float).eps * sizes[0]).sum()))


def _compressed(xi, labels, Y, outside, operator, basis=None) -> Compressed:
    """Labels outside the basis by no more than rounding lie in it."""
    labels = jnp.asarray(labels.reshape(len(labels), *Y.shape[1:]))
    rounding = (Y.size * np.finfo(float).eps) ** 2 * float((np.asarray(Y) ** 2).sum())
    residual = jnp.asarray(float(outside) if outside > rounding else 0.0)
    return Compressed(xi, labels, residual, operator, basis)
