"""A random recurrent network of 100 tanh units (Sompolinsky et al. 1988)."""

import jax
import jax.numpy as jnp


UNITS = 100
COUPLINGS = jax.random.normal(jax.random.key(7), (UNITS, UNITS), float)
COUPLINGS = COUPLINGS / UNITS**0.5


def step(x, parameters):
    return jnp.tanh(parameters["g"] * COUPLINGS @ x)


def observe(x):
    """Activity of two units, and that of all of them."""
    return jnp.stack([x[0], x[1], jnp.sqrt(jnp.mean(x**2))])
