"""LAPACK on CPUs, a matrix at a time where jaxlib would wait for itself.

jaxlib 0.10.0 to 0.11.0 shares a batch of matrices out among the threads of XLA and
waits for them in one of those threads.  Programs that run at the same time, or one
with several such calls, can thus wait in all threads, and then they wait for ever.
Single matrices are not shared out.
"""

import functools
from collections.abc import Callable

import jax

from statmech_attn.batches.runtime import jaxlib


# Axes of the first operand that belong to one matrix.
RANKS = {
    "cholesky": 2,
    "eig": 2,
    "eigh": 2,
    "geqp3": 2,
    "geqrf": 2,
    "hessenberg": 2,
    "householder_product": 2,
    "lu": 2,
    "ormqr": 2,
    "schur": 2,
    "svd": 2,
    "triangular_solve": 2,
    "tridiagonal": 2,
    "tridiagonal_solve": 1,
}


def shares_out() -> bool:
    """Whether this jaxlib shares batches of matrices out among its threads."""
    return (0, 10, 0) <= jaxlib() < (0, 11, 1)


@functools.cache
def one_at_a_time() -> None:
    """Lower batched calls of LAPACK on CPUs to loops, where this jaxlib needs it."""
    if not shares_out():
        return
    from jax._src.interpreters import mlir
    from jax._src.lax import linalg

    for name, rank in RANKS.items():
        primitive = getattr(linalg, f"{name}_p")
        single = mlir._platform_specific_lowerings["cpu"][primitive].rule
        loop = mlir.lower_fun(_loop(primitive, rank), primitive.multiple_results)
        mlir.register_lowering(primitive, _choice(single, loop, rank), platform="cpu")


def _choice(single: Callable, loop: Callable, rank: int) -> Callable:
    def rule(context, *operands, **parameters):
        batched = context.avals_in[0].ndim > rank
        return (loop if batched else single)(context, *operands, **parameters)

    return rule


def _loop(primitive, rank: int) -> Callable:
    def call(*operands, **parameters):
        batch = operands[0].shape[: operands[0].ndim - rank]
        flat = [x.reshape((-1,) + x.shape[len(batch) :]) for x in operands]
        results = jax.lax.map(
            lambda matrices: primitive.bind(*matrices, **parameters), flat
        )
        return jax.tree.map(lambda x: x.reshape(batch + x.shape[1:]), results)

    return call
