"""Lengths and Gram-Schmidt of frames of tangent columns, (dim, k, *batch)."""

import functools
from typing import Annotated

import jax.numpy as jnp
from annotated_types import Ge
from jaxtyping import Array, Float

from statmech_attn.batches import add_products, add_up
from statmech_attn.options import MISSING


WIDE = 16  # frames of more columns are left to LAPACK


def orthonormalise(frame: Float[Array, "dim k *batch"]):
    """Gram-Schmidt, twice, on a batch of small frames; wide ones are reflected.

    Sums over the small axes are written out, so that XLA vectorises over the batch;
    dividing by the squared length inside keeps it from recomputing the projections for
    every row.  Such a program grows with the square of the number of columns, so that
    LAPACK takes those of wide frames, lane by lane.  Returns the frame, the lengths
    R_jj and those of the columns before; a zero column stays zero.
    """
    k = frame.shape[1]
    if k > WIDE:
        return _reflected(frame)
    columns, squares, norms = [], [], []
    for j in range(k):
        v = frame[:, j]
        norms.append(add_products(v, v))
        for _ in range(2 if j else 0):
            basis, lengths = jnp.stack(columns, axis=1), jnp.stack(squares)
            shares = add_products(basis, v[:, None]) / nonzero(lengths)
            v = v - add_up(basis[:, i] * shares[i] for i in range(j))
        columns.append(v)
        squares.append(add_products(v, v))
    lengths = jnp.sqrt(jnp.stack(squares))
    basis = jnp.stack(columns, axis=1) / nonzero(lengths)
    return basis, lengths, jnp.sqrt(jnp.stack(norms))


def _reflected(frame: Float[Array, "dim k *batch"]):
    """`orthonormalise` by Householder's reflections of the columns that are not zero.

    Zero columns stand behind the others meanwhile: a reflection of nothing would take a
    direction from those that follow.
    """
    lengths = jnp.moveaxis(jnp.sqrt(add_products(frame, frame)), 0, -1)
    order = jnp.argsort(lengths == 0, axis=-1, stable=True)
    back = jnp.argsort(order, axis=-1)
    take = lambda x, columns: jnp.take_along_axis(x, columns, axis=-1)
    rows = jnp.moveaxis(frame, (0, 1), (-2, -1))
    basis, upper = jnp.linalg.qr(take(rows, order[..., None, :]))
    diagonal = jnp.diagonal(upper, axis1=-2, axis2=-1)
    signs = jnp.where(diagonal < 0, -1.0, 1.0) * (take(lengths, order) != 0)
    basis = take(basis * signs[..., None, :], back[..., None, :])
    reflected = take(diagonal * signs, back)
    return (
        jnp.moveaxis(basis, (-2, -1), (0, 1)),
        jnp.moveaxis(reflected, -1, 0),
        jnp.moveaxis(lengths, -1, 0),
    )


def longest(columns: Float[Array, "dim k *batch"]) -> Float[Array, "*batch"]:
    """Length of the longest column."""
    return jnp.sqrt(largest(add_products(columns, columns)))


def largest(x: Float[Array, "k *batch"]) -> Float[Array, "*batch"]:
    """Along the first axis; written out as sums are, see `batches.sums`."""
    return functools.reduce(jnp.maximum, x)


def nonzero(x: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """The lengths, with 1 for those that nothing should be divided by."""
    return jnp.where(x > 0, x, 1.0)


def safe_log(
    x: Annotated[Float[Array, "*any"], MISSING, Ge(0)],
) -> Float[Array, "*any"]:
    """Natural logarithm of lengths: ln 0 = -inf, and NaN stays NaN."""
    return jnp.where(x == 0, -jnp.inf, jnp.log(jnp.where(x == 0, 1.0, x)))
