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
    """A point near the minimum, or as far as the descent gets.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> f = jax.value_and_grad(lambda x: jnp.cosh(x[0]))
        >>> abs(float(descend(f, jnp.array([2.0]), max_iterations=50)[0])) < 1e-6
        True
    """
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
