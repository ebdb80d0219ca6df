"""Maps of a state and named parameters, as `continuation.Problem` takes them."""

import jax.numpy as jnp


def logistic(x, p):
    return p["r"] * x * (1 - x)


def henon(s, p):
    x, y = s
    return jnp.array([1 - p["a"] * x**2 + y, p["b"] * x])


def delayed_logistic(s, p):
    x, y = s
    return jnp.array([p["a"] * x * (1 - y), x])
