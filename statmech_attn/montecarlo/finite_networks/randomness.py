r"""Addressed random numbers: every draw is a function of what it is for.

The generator is the block cipher Threefry-2x32 with 20 rounds (Salmon et al., SC 2011,
doi:10.1145/2063384.2063405), the one behind JAX's default keys, written elementwise so
that XLA fuses it with its consumer and vectorises it (a library call does neither on
a CPU).  A cipher key and a counter, two 32-bit words each, give two random words.

Keys are chained along the address of a draw,

    seed -> (point, run) -> step -> class -> (word, bit plane) or (attempt, which)

so no number depends on how points and runs are batched, ordered or spread.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, UInt32


Word = UInt32[Array | np.ndarray, "..."]
Words = tuple[Word, Word]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)


@partial(jax.jit, inline=True)
def threefry(key: Words, counter: Words) -> Words:
    """Two random words for a cipher key and a counter; all shapes broadcast."""
    k0, k1 = key
    schedule = (k0, k1, k0 ^ k1 ^ PARITY)
    x, y = counter[0] + k0, counter[1] + k1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x = x + y
            y = x ^ ((y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation)))
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def seed_words(key: Key[Array, ""]) -> Words:
    """The cipher key of a JAX key of any implementation."""
    words = jax.random.bits(key, (2,), jnp.uint32)
    return words[0], words[1]


def address(key: Words, first) -> Words:
    """The cipher key one level down: `first` is a non-negative integer.

    No kernel reaches across it: the vectoriser of jaxlib 0.12 does not come back from
    some with several chained ciphers, whose rounds it asks of every value anew.
    """
    words = threefry(key, (_uint(first), _uint(0)))
    return jax.lax.optimization_barrier(words)


def uniform(key: Words, first, second=0) -> Float[Array, "..."]:
    """A uniform double in (0, 1): the middle of one of 2^52 equal cells."""
    high, low = threefry(key, (_uint(first), _uint(second)))
    cell = (high.astype(jnp.uint64) << np.uint64(20)) | (low >> np.uint32(12))
    return (cell.astype(jnp.float64) + 0.5) * 2.0**-52


def _uint(x):
    return jnp.asarray(x).astype(jnp.uint32)
