"""The Hénon map (Hénon 1976)."""

import jax.numpy as jnp


def step(state, parameters):
    x, y = state
    return jnp.stack([1 - parameters["a"] * x**2 + y, parameters["b"] * x])
