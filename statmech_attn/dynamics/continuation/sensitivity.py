r"""Derivatives of cycles with respect to parameters (docs/theory/continuation.md, 6).

A cycle $x^*(P)$ is defined by $f^k(x^*, P) = x^*$, so

    (1 - D_x f^k) dx* = D_P f^k dP

whatever iteration found it.  `orbit` has this as its derivative, with both matrices
built by forward differentiation and its own rule used again inside, so that it holds
to every order, in forward and in reverse mode, and costs no memory along the orbit.
Rules for roots in general instead transpose the residual, here a loop of k maps, and
store every iterate.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float, PyTree

from statmech_attn.dynamics.continuation.correction import correct
from statmech_attn.dynamics.continuation.cycles import coordinates
from statmech_attn.dynamics.continuation.problem import Problem, require_one_segment
from statmech_attn.dynamics.continuation.results import CONVERGED
from statmech_attn.dynamics.options import Settings
from statmech_attn.options import Numbers


def orbit(
    problem: Problem,
    x: PyTree,
    settings: Settings | None = None,
    **parameters: Numbers,
) -> Float[Array, " d"]:
    """A point of the cycle near x, differentiable in the parameters given by name.

    Parameters that are not given keep the values of the problem.  NaN where Newton
    finds no cycle.  The cycle is the same from any x near it: the derivative in x is
    zero.  Works under `jax.jit`, `grad`, `jvp`, `vmap` over parameters.

    Args:
        problem: the map, its parameters and the free one.
        x: a state near the cycle, or its coordinates (d,).
        settings: step sizes and tolerances.
        parameters: values that replace those of the problem, by name.

    Raises:
        ValueError: a name that is no parameter, x of another size, several segments.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
        >>> point = lambda r: orbit(problem, jnp.array([0.6]), r=r)[0]
        >>> round(float(jax.grad(point)(2.5)), 9)
        0.16
    """
    require_one_segment(problem)
    return _orbit(
        _replaced(problem, parameters),
        problem=problem,
        x=jax.lax.stop_gradient(coordinates(problem, x)),
        settings=settings or Settings(),
    )


def multipliers_at(
    problem: Problem, x: Float[Array, " d"], **parameters: Numbers
) -> Complex[Array, " d"]:
    """Eigenvalues of D f^k at x, differentiable in x and in the parameters.

    For use with `orbit`; in no order.  The derivative exists where they are simple.

    Args:
        problem: the map and the period of the cycle.
        x: a point of the cycle.
        parameters: values that replace those of the problem, by name.

    Returns:
        The multipliers, in no order.

    Raises:
        ValueError: a name that is no parameter.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
        >>> [round(float(x.real), 9) for x in multipliers_at(problem, jnp.array([0.6]))]
        [-0.5]
    """
    return jnp.linalg.eigvals(_jacobian(problem, x, _replaced(problem, parameters)))


def _replaced(problem: Problem, values: dict[str, Numbers]) -> dict[str, Array]:
    unknown = sorted(set(values) - set(problem.parameters))
    if unknown:
        raise ValueError(
            f"parameters must be among {sorted(problem.parameters)}; got {unknown}."
        )
    values = {k: jnp.asarray(v, float) for k, v in values.items()}
    return {**problem.parameters, **values}


@eqx.filter_custom_jvp
def _orbit(parameters, *, problem, x, settings):
    free = {**parameters}
    value = free.pop(problem.free)
    fixed = eqx.tree_at(lambda p: p.parameters, problem, parameters)
    row = jnp.zeros(x.size + 1).at[-1].set(1.0)
    guess = jnp.append(x, value)
    corrected = correct(
        fixed.residual, guess, row, settings.tolerance, settings.max_iterations
    )
    return jnp.where(corrected.code == CONVERGED, corrected.u[:-1], jnp.nan)


@_orbit.def_jvp
def _orbit_jvp(primals, tangents, *, problem, x, settings):
    (parameters,), (moved,) = primals, tangents
    point = _orbit(parameters, problem=problem, x=x, settings=settings)
    A = _jacobian(problem, point, parameters)
    by = jax.jacfwd(lambda P: problem.iterate(point, P, problem.period))(parameters)
    push = sum(by[k] * moved[k] for k in parameters if moved[k] is not None)
    return point, jnp.linalg.solve(jnp.eye(x.size) - A, push)


def _jacobian(problem: Problem, x, parameters):
    return jax.jacfwd(lambda x: problem.iterate(x, parameters, problem.period))(x)
