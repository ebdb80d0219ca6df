"""Random keys by purpose; random numbers of any shape from a few compiled programs.

A program that draws takes half a second to compile, whatever it draws, and JAX makes
one for every shape.  A number of its generator depends on the key and on its place in
the array alone (`jax_threefry_partitionable`, the default), so an array is cut out of a
longer one here, whose length is a power of two.  The numbers are those of `jax.random`,
to the last bit; inside of a program they are drawn by it.
"""

import math
import zlib
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Key


SHORTEST = 2**14
LONGEST = 2**22  # longer arrays take more time and memory than their program


def key_for(key: Key[Array, ""], purpose: str, number: int) -> Key[Array, ""]:
    """A key for each purpose of a key, and for each network or point.

    Numbering purposes would not do: `jax.random.split(key)[i]` is `fold_in(key, i)`,
    so that a purpose could meet a point or a network of the same number.

    Args:
        key: random key of JAX.
        purpose: in words.
        number: of the network or the point.

    Example:
        >>> import jax
        >>> purposes = "training tasks", "initial weights"
        >>> keys = [key_for(jax.random.key(0), p, 3) for p in purposes]
        >>> a, b = map(jax.random.key_data, keys)
        >>> bool((a == b).any())
        False
    """
    key = jax.random.fold_in(key, zlib.crc32(purpose.encode()))
    return jax.random.fold_in(key, number)


def normal(
    key: Key[Array, ""], shape: Sequence[int], dtype=float
) -> Float[Array, "*n"]:
    """Standard normal numbers.

    Args:
        key: random key of JAX.
        shape: of the array.
        dtype: of the numbers.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> key = jax.random.key(0)
        >>> bool((normal(key, (2, 3)) == jax.random.normal(key, (2, 3))).all())
        True
    """
    return _cut(key, lambda shape: jax.random.normal(key, shape, dtype), shape)


def uniform(
    key: Key[Array, ""], shape: Sequence[int], low=0.0, high=1.0, dtype=float
) -> Float[Array, "*n"]:
    """Uniform numbers in [low, high)."""
    draw = lambda shape: jax.random.uniform(key, shape, dtype, low, high)
    return _cut(key, draw, shape)


def bernoulli(key: Key[Array, ""], p, shape: Sequence[int]) -> Bool[np.ndarray, "*n"]:
    """True with probability p, which broadcasts to the shape."""
    return np.asarray(uniform(key, shape)) < p


def _cut(key, draw: Callable[[Sequence[int]], Array], shape: Sequence[int]) -> Array:
    size = math.prod(shape)
    if isinstance(key, Tracer) or size > LONGEST:
        return draw(shape)
    length = max(SHORTEST, 1 << (size - 1).bit_length())
    return jax.device_put(np.asarray(draw((length,)))[:size].reshape(shape))
