"""The standard map (Chirikov 1979), which preserves areas."""

import jax.numpy as jnp


def step(state, parameters):
    angle, momentum = state
    momentum = momentum + parameters["K"] * jnp.sin(angle)
    return jnp.stack([angle + momentum, momentum]) % (2 * jnp.pi)


def observe(state):
    angle, momentum = state
    return jnp.stack([jnp.cos(angle), jnp.sin(angle), jnp.cos(momentum)])
