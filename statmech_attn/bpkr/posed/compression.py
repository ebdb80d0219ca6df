r"""More examples than the rank of the kernel (docs/theory/bpkr.md, section 2).

With Q an orthonormal basis of what the inputs of all paths span, $X_\pi = Q R_\pi$ and
$Y = Q Y_Q + Y_\perp$, for every U

    $E = \ln\det(K_Q + T) + Y_Q^T (K_Q + T)^{-1} Y_Q
         + (n - n_Q) \ln T + |Y_\perp|^2 / T$

so that r rows R take the place of P examples, and the last two terms do not depend on
U.  Kernels with new inputs lie in the same space, and a predictor needs no more.  The
basis is that of the eigenvectors of $G = \sum_\pi K_{\pi\pi}$; eigenvalues at rounding
are left out.  Kernels that are given are rounded, by $\delta = 8 \epsilon \max_\mu
G_{\mu\mu}$; this changes the gradient of S by up to

    $\delta \lambda_{\max}(U) |(K + T)^{-1} Y|^2 / N$

which must be small for the order parameters to be known.

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
from scipy import linalg

from statmech_attn.bpkr.posed.activations import Kernels
from statmech_attn.bpkr.posed.kernel_forms import (
    fitting_operator,
    Operator,
    PathFactors,
    PathKernels,
)
from statmech_attn.bpkr.posed.streamed_kernels import gram


INPUT_ROUNDING_LIMIT = 1e-8  # of inputs; rounding reaches a tenth of it at most
RESOLVED = 1e-9  # error of the gradient that rounding may make
EPSILON = float(np.finfo(float).eps)
FAR = 10  # times rounding of a kernel, where a temperature hides it


class Compressed(eqx.Module):
    """Rows in the place of examples, as many as the kernel has rank."""

    xi: Float[Array, "r N_0 Pi"] | Kernels
    Y: Float[Array, "r *K"]
    residual: Float[Array, ""]
    operator: Operator  # kernel of the rows
    basis: Float[Array, "P r"] | None  # of kernels that are given, else None

    def constant(self, temperature, outside: int) -> Float[Array, ""]:
        r"""What the energy has from labels outside: $m \ln T + |Y_\perp|^2 / T$.

        `outside` is the number m of the labels' directions outside the basis; at
        temperature zero the term is infinite.
        """
        if not outside:
            return jnp.zeros(())
        at_zero = jnp.where(self.residual > 0, jnp.inf, -jnp.inf)
        T = jnp.where(temperature > 0, temperature, 1.0)
        finite = outside * jnp.log(T) + self.residual / T
        return jnp.where(temperature > 0, finite, at_zero)


def of_inputs(
    xi: Float[Array, "P N_0 Pi"],
    scale: Float[Array, " Pi"],
    Y: Float[Array, "P *K"],
    temperature: float,
    width: float,
    prior: float,
    **options: Any,
) -> Compressed | None:
    r"""Rows that take the place of the examples, from their attentioned inputs.

    None where there are no more examples than $|\Pi| N_0$, and rounding in the basis of
    the examples is small.  `scale` is the prefactor by path, `width` the largest one,
    `prior` the size of U_1 in the GP limit; options are those of `fitting_operator`.
    """
    P, *shape = xi.shape
    features = int(np.prod(shape))
    R, labels = np.asarray(xi).reshape(P, -1), np.asarray(Y).reshape(P, -1)
    below = labels[:0]
    if P > features:
        beside = np.concatenate([R, labels], axis=1)
        triangle = np.asarray(np.linalg.qr(beside, mode="r"))
        R, labels = triangle[:features, :features], triangle[:features, features:]
        below = triangle[features:, features:]
    elif _resolved(PathFactors(xi, scale), labels, temperature, width, prior):
        return None
    scaled = R * np.tile(np.asarray(scale), shape[0])
    W, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
    rank = _rank(sizes, P)
    turned = W.T @ labels
    outside = (turned[rank:] ** 2).sum() + (below**2).sum()
    rows = jnp.asarray((W.T @ R)[:rank].reshape(rank, *shape))
    operator = fitting_operator(rows, scale, labels.shape[1], **options)
    return _compressed(rows, turned[:rank], Y, outside, operator)


def of_kernels(
    kernels: Kernels, Y: Float[Array, "P *K"], temperature: float, width: float, prior
) -> Compressed | None:
    r"""Rows that take the place of the examples, from kernels, by eigenvectors of G.

    None where there are no more examples than rank, and rounding in the basis of the
    examples is small, $\epsilon \lambda_1(K) |(K + T)^{-1} Y|^2 / N$ in the gradient.
    Arguments as of `of_inputs`.
    """
    blocks, labels = np.asarray(kernels.blocks), np.asarray(Y).reshape(len(Y), -1)
    values, V = np.linalg.eigh(np.einsum("aapq->pq", blocks))
    values, V = values[::-1], V[:, ::-1]
    turned = V.T @ labels
    rank = _rank(values, len(labels))
    squares = (turned[:rank] ** 2).sum(axis=1)
    error = _gradient_error(values[:rank] * prior, squares, temperature, width)
    if rank == len(labels) and error <= RESOLVED:
        return None
    V = V[:, :rank]
    # Labels outside are a direction more, unless the kernel along them is rounding.
    W, sizes, _ = np.linalg.svd(labels - V @ turned[:rank], full_matrices=False)
    along = np.sqrt(((blocks @ W) ** 2).sum(axis=(0, 1, 2)))
    resolved = along > 2 * EPSILON * np.linalg.norm(blocks)
    V = np.append(V, W[:, resolved & (sizes > _rounding(labels))], axis=1)
    rows = Kernels(V.T @ blocks @ V, linear=kernels.linear)
    turned = V.T @ labels
    beside = labels - V @ turned
    operator = PathKernels(rows.blocks)
    return _compressed(rows, turned, Y, (beside**2).sum(), operator, jnp.asarray(V))


def _resolved(
    inputs: PathFactors, labels, temperature: float, width: float, prior: float
) -> bool:
    """Whether gradients in the basis of the examples are above their rounding.

    Eigenvalues are computed where those of a kernel of the same trace could be too
    small, and where bounds by a Cholesky factor do not say it in a tenth of the time.
    """
    (P, outputs), T = labels.shape, temperature
    squares = float((labels**2).sum())
    allowed = INPUT_ROUNDING_LIMIT * width / EPSILON
    if T**2 > 0:  # no underflow
        largest = prior * _trace(inputs)
        grown = max(1.0, squares / (T * width))
        if largest * (grown * squares / T**2 + P * outputs / T) <= allowed:
            return True
    if T > 0 and _bounded_in_single(inputs, prior, labels, T, width):
        return True
    K = prior * np.asarray(inputs.kernel(jnp.eye(inputs.n_paths)))
    if T > 0 and _bounded(K, labels, T, width) <= INPUT_ROUNDING_LIMIT:
        return True
    values, V = np.linalg.eigh(K)
    values, V = values[::-1], V[:, ::-1]
    if not values[0] > 0:
        return True
    values = np.maximum(values, P * EPSILON * values[0])
    squares = ((V.T @ labels) ** 2).sum(axis=1)
    of_labels = _gradient_error(values, squares, T, width)
    of_determinant = EPSILON * values[0] * outputs * (1 / (values + T)).sum() / width
    return bool(of_labels + of_determinant <= INPUT_ROUNDING_LIMIT)


def _trace(inputs: PathFactors) -> float:
    """Trace of the kernel at U = 1."""
    xi, scale = np.asarray(inputs.xi), np.asarray(inputs.scale)
    return float(np.einsum("pia,pia->a", xi, xi) @ scale**2)


def _bounded_in_single(inputs, prior: float, labels, T: float, width: float) -> bool:
    """Whether `_bounded` is small, from one triangle of K in single precision.

    Half of what is allowed is enough, a quarter of it for half of the entries; and T
    is as far above rounding as it may be below U.
    """
    F = np.sqrt(prior) * np.diag(np.asarray(inputs.scale))
    K = gram(np.asarray(inputs.xi), F, np.float32)
    rounding = float(np.finfo(K.dtype).eps * np.linalg.norm(K))
    bound = _bounded(K, labels.astype(K.dtype), T, width, FAR * rounding)
    return bool(bound <= INPUT_ROUNDING_LIMIT / 4)


def _bounded(K, labels, temperature: float, width: float, lowest=0.0) -> float:
    r"""At least the error of the gradient that `_resolved` has by eigenvalues.

    $u / (u \lambda + T)^2 \le 1 / (\lambda + T) (\lambda + T / u)$ for u >= 1, which is
    taken at the largest u; and the norm of K for its largest eigenvalue.  Infinite
    where T / u is below `lowest`.
    """

    def solved(T):
        unit = np.eye(len(K), dtype=K.dtype)
        factor = linalg.cho_factor(K + T * unit, check_finite=False)
        return linalg.cho_solve(factor, labels, check_finite=False)

    try:
        alpha = solved(temperature)
        grown = max(1.0, float((labels * alpha).sum()) / width)
        if temperature / grown < lowest:
            return np.inf
        of_labels = float((alpha * solved(temperature / grown)).sum())
    except linalg.LinAlgError:
        return np.inf
    of_determinant = labels.size / temperature
    size = float(np.linalg.norm(K))
    return EPSILON * size * (of_labels + of_determinant) / width


def _gradient_error(values, squares, temperature: float, width: float) -> float:
    r"""$\epsilon \lambda_1(K) |(K + T)^{-1} Y|^2 / N$ for K = u G, the worst u.

    Labels that the prior does not expect let U grow, by $Y^T (G + T)^{-1} Y / N$ at
    most.
    """
    largest = max(1.0, (squares / (values + temperature)).sum() / width)
    u = np.clip(temperature / values, 1.0, largest)
    alpha = squares * u / (u * values + temperature) ** 2
    return EPSILON * values[0] * alpha.sum() / width


def _rank(sizes: Float[np.ndarray, " n"], examples: int) -> int:
    """Number of falling singular values above rounding, at least one."""
    return max(1, int((sizes > examples * EPSILON * sizes[0]).sum()))


def _rounding(Y) -> float:
    return Y.size * EPSILON * float(np.linalg.norm(Y))


def _compressed(xi, labels, Y, outside, operator, basis=None) -> Compressed:
    """Labels outside the basis by no more than rounding lie in it."""
    labels = jnp.asarray(labels.reshape(len(labels), *Y.shape[1:]))
    residual = jnp.asarray(float(outside) if outside > _rounding(Y) ** 2 else 0.0)
    return Compressed(xi, labels, residual, operator, basis)
