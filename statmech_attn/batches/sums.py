"""Sums written out term by term.

XLA fuses a written-out sum with its surroundings and vectorises it over the trailing
batch; a reduction or a matrix product call over a small axis would do neither, and its
tiling, hence its last digit, would depend on the width of the batch.  Longer sums go
through a loop over pieces that are written out, so that programs stay short.
"""

import functools
import operator
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


WRITTEN_OUT = 32  # longer sums are loops
PIECE = 16  # terms written out in each turn of a loop
IN_A_TURN = 4  # the same where terms are expensive


def add_up(terms: Iterable[Array]) -> Array:
    """Sum of a few arrays, in order."""
    return functools.reduce(operator.add, terms)


def add_loop(term: Callable[[Array | int], Array], count: int) -> Array:
    """Sum of term(0) .. term(count - 1), in order, as a loop."""
    add = lambda i, total: total + term(i)
    return jax.lax.fori_loop(1, count, add, term(0))


def add_products(
    u: Float[Array, "n *left"], v: Float[Array, "n *right"]
) -> Float[Array, "*both"]:
    """Sum over the first axis of the product of two arrays that broadcast."""
    count = u.shape[0]
    if count <= WRITTEN_OUT:
        return add_up(u[i] * v[i] for i in range(count))

    def piece(j):
        part = lambda x: jax.lax.dynamic_slice_in_dim(x, j * PIECE, PIECE)
        u_part, v_part = part(u), part(v)
        return add_up(u_part[i] * v_part[i] for i in range(PIECE))

    total = add_loop(piece, count // PIECE)
    remainder = range(count - count % PIECE, count)
    return add_up([total, *(u[i] * v[i] for i in remainder)])


def add_in_turns(
    u: Float[Array, "n *left"], v: Float[Array, "n *right"]
) -> Float[Array, "*both"]:
    """`add_products` of factors that are expensive to compute, a tanh say.

    A sum that is written out is fused with what it adds up, and a fusion with several
    rows computes its factors anew for each of them.  What a loop reads is computed
    once.
    """
    count = u.shape[0]
    full = count - count % IN_A_TURN
    by_turn = lambda x: x[:full].reshape(-1, IN_A_TURN, *x.shape[1:])

    def turn(total, part):
        u_part, v_part = part
        return add_up([total, *(u_part[i] * v_part[i] for i in range(IN_A_TURN))]), None

    nothing = jnp.zeros_like(u[0] * v[0])
    total, _ = jax.lax.scan(turn, nothing, (by_turn(u), by_turn(v)))
    return add_up([total, *(u[i] * v[i] for i in range(full, count))])
