"""Newton's method for a zero in a plane, on a curve of zeros (`arclength`)."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from statmech_attn.dynamics.continuation.results import (
    CONVERGED,
    DIVERGED,
    NOT_A_NUMBER,
    NOT_CONVERGED,
    NOT_DIFFERENTIABLE,
)
from statmech_attn.dynamics.maps.orbit_equations import newton


class Correction(eqx.Module):
    """What Newton on a bordered system found; `code` indexes `RESULTS`."""

    u: Float[Array, " n+1"]
    tangent: Float[Array, " n+1"]
    jacobian: Float[Array, "n n+1"]
    iterations: Int[Array, ""]
    code: Int[Array, ""]


class Scaled(eqx.Module):
    """A residual of u / scales."""

    residual: Callable
    scales: Float[Array, " n+1"]

    def __call__(self, w):
        return self.residual(self.scales * w)


class Linearised(NamedTuple):
    """A residual about a point of a plane.

    Attributes:
        value: of the residual.
        jacobian: its derivative, in the form that curves keep.
        step: from a zero of its linear part in the plane to the point.
        tangent: of the curve, towards the normal of the plane, of any length.
    """

    value: Array
    jacobian: Array
    step: Float[Array, " n+1"]
    tangent: Float[Array, " n+1"]


def dense(residual: Callable, u: Float[Array, " n+1"], row, off) -> Linearised:
    """The residual at u, which is `off` the plane across `row`, by its whole matrix."""
    value, jacobian = residual(u), jax.jacfwd(residual)(u)
    matrix = jnp.concatenate([jacobian, row[None]])
    step = jnp.linalg.solve(matrix, jnp.append(value, off))
    tangent = jnp.linalg.solve(matrix, jnp.zeros_like(u).at[-1].set(1.0))
    return Linearised(value, jacobian, step, tangent)


@eqx.filter_jit
def correct(
    residual: Callable,
    guess: Float[Array, " n+1"],
    row: Float[Array, " n+1"],
    tolerance: Float[ArrayLike, ""],
    max_iterations: Int[ArrayLike, ""],
    linearise: Callable[..., Linearised] = dense,
) -> Correction:
    """Solve residual(u) = 0 in the plane row . (u - guess) = 0 by Newton's method.

    The unit tangent points along `row`.
    """
    at = lambda u: linearise(residual, u, row, row @ (u - guess))

    def improve(u):
        step = at(u).step
        sound = jnp.all(jnp.isfinite(step))
        size = jnp.linalg.norm(step) / (1 + jnp.linalg.norm(u))
        return jnp.where(sound, u - step, u), jnp.where(sound, size, jnp.nan)

    u, size, iterations = newton(improve, guess, tolerance, max_iterations)
    value, jacobian, _, tangent = at(u)
    tangent = tangent / jnp.linalg.norm(tangent)
    reached = (size <= tolerance) & jnp.all(jnp.isfinite(tangent))
    code = judge(value, jacobian, reached)
    return Correction(u, tangent, jacobian, iterations, code)


def judge(value, jacobian, reached):
    """Why Newton ended; a bad map is a better reason than no convergence."""
    choices = (
        (jnp.any(jnp.isnan(value)), NOT_A_NUMBER),
        (jnp.any(jnp.isinf(value)), DIVERGED),
        (~jnp.all(jnp.isfinite(jacobian)), NOT_DIFFERENTIABLE),
        (reached, CONVERGED),
    )
    return jnp.select(
        [c for c, _ in choices], [jnp.array(k) for _, k in choices], NOT_CONVERGED
    )
