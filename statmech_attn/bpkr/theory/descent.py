"""Descent by values and gradients alone (scipy's L-BFGS), where a Hessian costs much.

It brings a large problem near its minimum; Newton's method takes over from there.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


NEAR = 1e-6  # norm of the gradient from which one Newton step leads to 1e-9
MEMORY = 30  # gradients kept
ROUND_OFF = 1e-15


def descend(
    value_and_gradient: Callable, start: Float[Array, " n"], *, max_iterations: int
) -> Float[Array, " n"]:
    """A point near the minimum, or as far as the descent gets."""
    from scipy.optimize import minimize  # takes 0.3 s, and small problems need it not

    def evaluated(point):
        value, gradient = value_and_gradient(jnp.asarray(point))
        return float(value), np.asarray(gradient)

    result = minimize(
        evaluated,
        np.asarray(start),
        jac=True,
        method="L-BFGS-B",
        options=dict(
            maxcor=MEMORY,
            maxiter=max_iterations,
            gtol=NEAR / np.sqrt(start.size),
            ftol=ROUND_OFF,
        ),
    )
    return jnp.asarray(result.x)
