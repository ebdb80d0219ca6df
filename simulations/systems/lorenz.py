"""The equations of Lorenz (1963)."""

import jax.numpy as jnp


def field(state, parameters):
    x, y, z = state
    sigma, rho, b = parameters["sigma"], parameters["rho"], parameters["b"]
    return jnp.stack([sigma * (y - x), x * (rho - z) - y, x * y - b * z])
