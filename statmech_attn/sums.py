"""Short sums written out term by term.

XLA fuses a written-out sum with its surroundings and vectorises it over the trailing
batch; a reduction or a matrix product call over a small axis would do neither, and its
tiling, hence its last digit, would depend on the width of the batch.
"""

import functools
import operator
from collections.abc import Iterable

from jaxtyping import Array


def add_up(terms: Iterable[Array]) -> Array:
    """Sum of a few arrays, in order.

    Example:
        >>> import jax.numpy as jnp
        >>> float(add_up(jnp.array(x) for x in (1.0, 2.0, 3.0)))
        6.0
    """
    return functools.reduce(operator.add, terms)
