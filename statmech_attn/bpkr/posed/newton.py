r"""Trust-region Newton minimisation in many lanes (any smooth function of a vector).

The trial step solves the quadratic model in a ball exactly, from the eigenvalues of
the Hessian: $p = -(H + \lambda)^{-1} g$ with the least $\lambda \ge 0$ that makes
$H + \lambda$ positive and $|p| \le \Delta$.  Where $H$ has a negative direction the
step is taken along it to the edge of the ball, so that a saddle point of the function
is left even if the gradient vanishes there.  A trial point where the function is not
a number is a rejected step.
"""

import re
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from statmech_attn.labels import CodeWords
from statmech_attn.options import Count, Positive, require_declared


CONVERGED, ITERATIONS, STALLED, UNDEFINED, UNRESOLVED = range(5)
RESULTS = CodeWords(
    "converged",
    "iterations used up before the gradient vanished",
    "no step lowers the action: round-off reached before the gradient vanished",
    "K + T is singular: the action has no finite value",
    "rounding of the kernels decides: the labels need more digits of them",
)
# As flags of files: the first words of each.
RESULT_WORDS = tuple(re.sub(r"\W+", "_", text.split(":")[0]) for text in RESULTS)
BISECTIONS = 60
SMALLEST_RADIUS = 1e-13
ROUND_OFF = 1e-13


class NewtonState(eqx.Module):
    """A point of the iteration, its derivatives and the eigenvectors of its Hessian."""

    point: Float[Array, " n"]
    value: Float[Array, ""]
    gradient: Float[Array, " n"]
    values: Float[Array, " n"]
    vectors: Float[Array, "n n"]
    radius: Float[Array, ""]
    iterations: Int[Array, ""]


class NewtonSolver(eqx.Module):
    """Numerical choices of the Newton iteration."""

    tolerance: Positive = eqx.field(static=True, default=1e-9)
    max_iterations: Count = eqx.field(static=True, default=200)
    first_radius: Positive = eqx.field(static=True, default=1.0)

    __check_init__ = require_declared


def minimise(
    derivatives: Callable, start: Float[Array, " n"], solver: NewtonSolver
) -> tuple[NewtonState, Int[Array, ""]]:
    """Minimise; `derivatives(point)` returns value, gradient and Hessian.

    Returns the last state and a code that indexes `RESULTS`.
    """

    def unfinished(state):
        going_on = (
            ~minimum_reached(state, solver)
            & (state.iterations < solver.max_iterations)
            & (state.radius > SMALLEST_RADIUS)
            & jnp.isfinite(state.value)
        )
        return going_on | (state.iterations < 0)

    step = lambda state: advance(derivatives, state)
    state = jax.lax.while_loop(unfinished, step, before(start, solver.first_radius))
    return state, result_code(state, solver)


def before(start: Float[Array, " n"], radius: float) -> NewtonState:
    """The state whose next step, of length zero, evaluates the start."""
    n = start.size
    infinite, minus_one = jnp.asarray(jnp.inf), jnp.asarray(-1)
    zeros, ones, identity = jnp.zeros(n), jnp.ones(n), jnp.eye(n)
    return NewtonState(
        start, infinite, zeros, ones, identity, jnp.asarray(radius), minus_one
    )


def advance(derivatives: Callable, state: NewtonState) -> NewtonState:
    """One trial step, taken if it lowers the function as the model says."""
    slope = state.vectors.T @ state.gradient
    along = ball_step(slope, state.values, state.radius)
    predicted = -(slope @ along + state.values @ along**2 / 2)
    step = state.vectors @ along
    new = derivatives(state.point + step)
    gained = state.value - new[0]
    # Where round-off hides the gain, a shorter gradient decides.
    hidden = predicted < ROUND_OFF * (1 + jnp.abs(state.value))
    shorter = jnp.linalg.norm(new[1]) < jnp.linalg.norm(state.gradient)
    quality = jnp.where(hidden, jnp.where(shorter, 1.0, 0.0), gained / predicted)
    length = jnp.linalg.norm(step)
    finite = jnp.isfinite(new[0]) & jnp.isfinite(new[1]).all()
    finite &= jnp.isfinite(new[2]).all()
    values, vectors = jnp.linalg.eigh(jnp.where(finite, new[2], jnp.eye(step.size)))
    first = state.iterations < 0
    accepted = finite & ((quality > 1e-3) | first)
    grown = jnp.maximum(state.radius, 2.5 * length)
    radius = jnp.where(quality > 0.75, grown, state.radius)
    radius = jnp.where((quality < 0.25) | ~finite, 0.25 * length, radius)
    radius = jnp.where(first, state.radius, radius)
    keep = lambda a, b: jnp.where(accepted, a, b)
    return NewtonState(
        keep(state.point + step, state.point),
        keep(new[0], state.value),
        keep(new[1], state.gradient),
        keep(values, state.values),
        keep(vectors, state.vectors),
        radius,
        state.iterations + 1,
    )


def ball_step(g, values, radius) -> Float[Array, " n"]:
    """Minimum of the quadratic model in a ball, along the eigenvectors."""
    floor = jnp.maximum(-values[0], 0.0)
    tiny = ROUND_OFF * jnp.max(jnp.abs(values))

    def components(shift):
        return -g / jnp.maximum(values + shift, tiny)

    def halve(_, bounds):
        middle = (bounds[0] + bounds[1]) / 2
        long = jnp.linalg.norm(components(middle)) > radius
        return jnp.where(long, middle, bounds[0]), jnp.where(long, bounds[1], middle)

    top = floor + jnp.linalg.norm(g) / radius
    _, shift = jax.lax.fori_loop(0, BISECTIONS, halve, (floor, top))
    inside = (values[0] > tiny) & (jnp.linalg.norm(components(0.0)) <= radius)
    p = components(jnp.where(inside, 0.0, shift))
    # The rest of the ball along the most negative direction, if there is one.
    remaining = jnp.sqrt(jnp.maximum(radius**2 - p @ p, 0.0))
    down = jnp.where(g[0] > 0, -remaining, remaining)
    return p.at[0].add(jnp.where(values[0] < -tiny, down, 0.0))


def minimum_reached(state: NewtonState, solver: NewtonSolver) -> Bool[Array, ""]:
    """The gradient vanishes and no direction leads down."""
    flat = jnp.linalg.norm(state.gradient) <= solver.tolerance
    return flat & (signature(state.values)[0] == 0)


def signature(values: Float[Array, " n"]) -> Int[Array, " 3"]:
    """Numbers of negative, zero (to round-off) and positive eigenvalues."""
    zero = 1e-10 * jnp.max(jnp.abs(values))
    counts = (
        (values < -zero).sum(),
        (jnp.abs(values) <= zero).sum(),
        (values > zero).sum(),
    )
    return jnp.stack(counts)


def result_code(state: NewtonState, solver: NewtonSolver) -> Int[Array, ""]:
    """Why the iteration ended, an index into `RESULTS`."""
    stalled = state.radius <= SMALLEST_RADIUS
    code = jnp.where(stalled, STALLED, ITERATIONS)
    code = jnp.where(minimum_reached(state, solver), CONVERGED, code)
    return jnp.where(jnp.isfinite(state.value), code, UNDEFINED)
