"""Random numbers cut from longer arrays are those of `jax.random`."""

import jax
import numpy as np
import pytest

from statmech_attn.batches import compilations, rng


KEY = jax.random.key(3)


@pytest.mark.parametrize("shape", [(), (0, 4), (5,), (3, 7, 11), (130, 129)])
def test_numbers_are_those_of_jax_to_the_last_bit(shape):
    np.testing.assert_array_equal(rng.normal(KEY, shape), jax.random.normal(KEY, shape))


def test_the_other_laws_too():
    shape, p = (3, 17), np.linspace(0, 1, 17)
    np.testing.assert_array_equal(
        rng.uniform(KEY, shape, -0.3, 0.7, np.float32),
        jax.random.uniform(KEY, shape, np.float32, -0.3, 0.7),
    )
    np.testing.assert_array_equal(
        rng.bernoulli(KEY, p, shape), jax.random.bernoulli(KEY, p, shape)
    )


def test_arrays_of_many_shapes_share_a_program():
    rng.normal(KEY, (2, 2))
    before = compilations.count()
    for n in range(1, 6):
        rng.normal(KEY, (n, 3 * n))
    assert compilations.count().since(before)[:2] == (0, 0)
