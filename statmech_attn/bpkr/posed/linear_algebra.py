"""Inverse Cholesky factor by halves.

B = L L^T is factored block by block with L^-1 beside it, so that all but small blocks
is matrix products.  LAPACK's own triangular solve with many right-hand sides starts
its threads anew for every call; where the cores are shared it waits for them a hundred
times longer than it computes.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


SMALLEST = 32  # blocks up to this size go to LAPACK, which does them on one thread


def singular(B: Float[Array, "n n"]) -> Bool[Array, ""]:
    """Whether a positive semi-definite matrix has no inverse, to rounding.

    A Cholesky factorisation cannot tell: rounding may leave a pivot positive.
    """
    values = jnp.linalg.eigvalsh(B)
    return ~(values[0] > B.shape[0] * jnp.finfo(B.dtype).eps * values[-1])


def inverse_cholesky(B: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L^-1 of a positive definite matrix; NaN where it is not."""
    n = B.shape[0]
    if n <= SMALLEST:
        factor = jnp.linalg.cholesky(B)
        # jax.scipy would import scipy.linalg, for a quarter of a second.
        return jax.lax.linalg.triangular_solve(
            factor, jnp.eye(n), left_side=True, lower=True
        )
    half = n // 2
    first = inverse_cholesky(B[:half, :half])
    below = B[half:, :half] @ first.T
    second = inverse_cholesky(B[half:, half:] - below @ below.T)
    corner = -second @ (below @ first)
    top = jnp.concatenate([first, jnp.zeros((half, n - half))], axis=1)
    return jnp.concatenate([top, jnp.concatenate([corner, second], axis=1)])
