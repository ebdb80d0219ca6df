r"""Frames of tangent columns: pushed, orthonormalised, and what rounding left in them.

A turn pushes an orthonormal frame by r steps and orthonormalises it again,
$J_r \cdots J_1 Q = Q' R$; the lengths $R_{jj}$ are what exponents are made of.

Every push leaves an error of the size of the machine precision times the longest
column, in a direction that is as good as random, and the pushes that follow carry it on
like any other vector.  One more column n is that error, written down,

    $n_1 = \epsilon \ell_1 e$,   $n_s = J_s n_{s-1} + \epsilon \ell_s e$

with $\ell_s$ the longest column after s pushes and e a fixed vector.  What Gram-Schmidt
leaves of it beyond the first j - 1 columns is what rounding may have put into
$R_{jj}$: their ratio, `noise`, is the relative error of that length.  It sees columns
that were lost on the way and, from their dust, grew again before the end.  What is left
of the error after the turn may grow in the next one, where directions that contract on
average expand; a column therefore counts as lost long before its length is noise.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from statmech_attn.batches import add_products
from statmech_attn.dynamics.maps.orthonormal import (
    largest,
    longest,
    nonzero,
    orthonormalise,
)
from statmech_attn.dynamics.maps.systems import TangentSystem


EPS = 2.220446049250313e-16
CHANCE = 4.0  # by which the noise of one direction may be shorter than that of others
LOST = 1e-3  # a length of which rounding may be this share: its column is noise


class Turn(NamedTuple):
    """An orthonormal frame after some steps, and the lengths of its columns before."""

    lifted: PyTree
    frame: Float[Array, "dim k *batch"]
    lengths: Float[Array, "k *batch"]  # R_jj; 0: lost entirely
    noise: Float[Array, "k *batch"]  # relative error of the lengths; see the module
    pushed: Float[Array, "dim k *batch"]  # the columns before Gram-Schmidt
    norms: Float[Array, "k *batch"]  # their lengths
    log_det: Float[Array, "*batch"] | None  # ln |det J_r .. J_1| beside a whole frame


def start_frame(system: TangentSystem, state: PyTree, k: int):
    """The lifted state and an orthonormal frame in general position, a constant."""
    dimension, *batch = jax.eval_shape(system.vector, state).shape
    frame = completed(np.empty((dimension, 0)), k)
    return system.lift(state), _repeated(frame, batch)


def completed(frame: Float[np.ndarray, "dim k *batch"], columns: int) -> np.ndarray:
    """An orthonormal frame with further columns in general position."""
    more = columns - frame.shape[1]
    generic = _generic(frame.shape[0], more)
    generic = generic.reshape(generic.shape + (1,) * (frame.ndim - 2))
    generic = np.broadcast_to(generic, generic.shape[:2] + frame.shape[2:])
    together = np.concatenate([frame, generic], axis=1)
    basis = np.linalg.qr(np.moveaxis(together, (0, 1), (-2, -1)))[0]
    return np.moveaxis(basis, (-2, -1), (0, 1))


def turn(system: TangentSystem, lifted: PyTree, frame, every: int = 1) -> Turn:
    """Push a frame by `every` steps and orthonormalise it."""
    square = frame.shape[0] == frame.shape[1]
    error = EPS * _repeated(_generic(frame.shape[0], 1)[:, 0], frame.shape[2:])

    def push(lifted, columns):
        if square:
            return system.push_measured(lifted, columns)
        return (*system.push(lifted, columns), None)

    if every == 1:
        lifted, pushed, log_det = push(lifted, frame)
        basis, lengths, norms = orthonormalise(pushed)
        beyond = longest(error[:, None]) * largest(norms)
    else:
        last = jnp.arange(frame.shape[1] + 1) == frame.shape[1]
        last = last.reshape((-1,) + (1,) * (frame.ndim - 2))

        def push_on(_, carry):
            lifted, extended, log_det = carry
            lifted, extended, more = push(lifted, extended)
            fresh = error * longest(extended[:, :-1])
            extended = extended + jnp.where(last, fresh[:, None], 0.0)
            return lifted, extended, jax.tree.map(jnp.add, log_det, more)

        nothing = jnp.zeros_like(error)
        extended = jnp.concatenate([frame, nothing[:, None]], axis=1)
        log_det = nothing[0] if square else None
        carry = jax.lax.fori_loop(0, every, push_on, (lifted, extended, log_det))
        lifted, extended, log_det = carry
        pushed, noise = extended[:, :-1], extended[:, -1]
        basis, lengths, norms = orthonormalise(pushed)
        beyond = CHANCE * _beyond(basis, noise)
    share = beyond / nonzero(lengths)
    share = jnp.where(lengths > 0, share, jnp.where(norms > 0, 1.0, 0.0))
    return Turn(lifted, basis, lengths, share, pushed, norms, log_det)


def align(system: TangentSystem, lifted: PyTree, frame, turns, every: int = 1):
    """Push a frame by some turns, so that it forgets where it started."""

    def body(_, carry):
        lifted, frame = carry
        after = turn(system, lifted, frame, every)
        return after.lifted, after.frame

    return jax.lax.fori_loop(0, turns, body, (lifted, frame))


def _beyond(basis, v) -> Float[Array, "k *batch"]:
    """Lengths of v beyond the first 0, 1, .. k - 1 columns of an orthonormal basis.

    Differences of squares, good to 1e-8 of the length of v: it is an error already.
    """
    shares = add_products(basis, v[:, None])
    squares = [add_products(v, v)]
    least = 4 * EPS * squares[0]
    for share in shares[:-1]:
        squares.append(squares[-1] - share**2)
    return jnp.sqrt(jnp.maximum(jnp.stack(squares), least))


def _generic(dimension: int, k: int) -> np.ndarray:
    """Fixed columns in general position: none lies in an invariant subspace.

    Constants of a program: random numbers drawn in it, and the orthonormalisation of a
    first frame, were a third of what is compiled.
    """
    return np.random.default_rng(0).standard_normal((dimension, k))


def _repeated(x: np.ndarray, batch: Sequence[int]) -> Array:
    """The same array in every lane."""
    return jnp.broadcast_to(x.reshape(x.shape + (1,) * len(batch)), x.shape + (*batch,))
