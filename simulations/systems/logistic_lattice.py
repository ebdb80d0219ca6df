"""Logistic maps on a ring, each coupled to its two neighbours (Kaneko 1984)."""

import jax.numpy as jnp


def step(x, parameters):
    mapped = 1 - parameters["a"] * x**2
    neighbours = (jnp.roll(mapped, 1) + jnp.roll(mapped, -1)) / 2
    return (1 - parameters["epsilon"]) * mapped + parameters["epsilon"] * neighbours
