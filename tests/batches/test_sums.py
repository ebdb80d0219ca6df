"""Sums over a first axis are those of NumPy, whatever their length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.batches import add_in_turns, add_products


@pytest.mark.parametrize("add", [add_products, add_in_turns])
@pytest.mark.parametrize("count", [1, 4, 7, 37])
def test_sums_of_products_and_their_derivatives(add, count):
    rng = np.random.default_rng(count)
    u, v, du = (rng.normal(size=(count, *rest)) for rest in ((3, 1), (1, 5), (3, 1)))
    sum_of = lambda u: np.einsum("nab,nac->bc", np.swapaxes(u, 1, 2), v)
    expected, slope = (sum_of(x) for x in (u, du))
    value, pushed = jax.jvp(lambda u: add(u, jnp.asarray(v)), (u,), (du,))
    error = 4 * count * np.finfo(float).eps * np.abs(sum_of(np.abs(u))).max()
    np.testing.assert_allclose(value, expected, atol=error)
    np.testing.assert_allclose(pushed, slope, atol=max(error, 1e-13))
