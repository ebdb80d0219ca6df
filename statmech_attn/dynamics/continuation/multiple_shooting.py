r"""Newton for points of all segments of a cycle (docs/theory/continuation.md, 7).

The Jacobian of the residual of m segments holds $A_i = D_x f^{k/m}(x_i)$, each beside
-1, cyclic, and a column $f_p(x_i)$.  It is solved by `orbit_equations.eliminate`, after
which d equations in $x_0$ and p are left, whose kernel is the tangent of the branch.

    A_i, f_p     `blocks` (m, d, d + 1)
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from statmech_attn.dynamics.continuation.arclength import DENSE, Method, Point
from statmech_attn.dynamics.continuation.correction import Linearised
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.maps.orbit_equations import (
    eliminate,
    orientation,
    restore,
)


def solve(blocks: Float[Array, "m d d+1"], values: Float[Array, "m d"]):
    """A solution of the linearised equations, their kernel, and its orientation.

    Returns two arrays (m d + 1,) and the sign of det (DG; kernel), but for a factor
    that is the same at all points.
    """
    d = blocks.shape[1]
    rest = jnp.concatenate([blocks[..., d:], values[..., None]], axis=2)
    (first, last, right), taken = eliminate(blocks[..., :d], rest)
    reduced = jnp.column_stack([first + last, right[:, 0]])
    basis, triangle = jnp.linalg.qr(reduced.T, "complete")
    inner = solve_triangular(triangle[:d], right[:, 1], trans="T")

    def whole(ends, value):
        weights = jnp.stack([-ends[d], value])
        points = restore(taken, ends[:d], ends[:d], weights)
        return jnp.append(points.reshape(-1), ends[d])

    ends = jnp.stack([basis[:, :d] @ inner, basis[:, d]])
    particular, kernel = jax.vmap(whole)(ends, jnp.array([1.0, 0.0]))
    square = jnp.vstack([reduced, basis[:, d]])
    sign = orientation(taken) * jnp.linalg.slogdet(square)[0]
    return particular, kernel / jnp.linalg.norm(kernel), sign


solution = jax.jit(lambda blocks, values: solve(blocks, values)[0])


@jax.jit
def determinant(blocks: Float[Array, "m d d+1"], multiplier: float) -> Float[Array, ""]:
    """det (A - multiplier) of the product A of all A_i, but for a positive factor.

    `multiplier` is 1 or -1; products of the blocks are not formed.
    """
    d = blocks.shape[1]
    (first, last, _), taken = eliminate(blocks[..., :d], blocks[..., d:])
    return orientation(taken) * jnp.linalg.det(first + multiplier * last)


def null_vector(jacobians: Float[Array, "m d d"], multiplier: float):
    """Unit v, (m, d), with A_i v_i = v_{i+1}, v_m = multiplier v_0, or nearly so."""
    (first, last, _), taken = eliminate(jacobians, jnp.zeros_like(jacobians[..., :1]))
    start = jnp.linalg.svd(first + multiplier * last)[2][-1]
    v = restore(taken, start, multiplier * start, jnp.zeros(1))
    return v / jnp.linalg.norm(v)


@eqx.filter_jit
def blocks_of(problem: Problem, u: Float[Array, " n+1"]) -> Float[Array, "m d d+1"]:
    """Derivatives of all segments, in their points and in the free parameter."""
    derivatives = jax.vmap(jax.jacfwd(problem.segment, (0, 1)), (0, None))
    at_points, in_value = derivatives(u[:-1].reshape(problem.shape), u[-1])
    return jnp.concatenate([at_points, in_value[..., None]], axis=2)


def orbit(residual: Any, w: Float[Array, " n+1"], row, off) -> Linearised:
    """`correction.dense` for all points of a cycle; `jacobian` are its blocks.

    `residual` is a scaled one of a problem, one unit for all coordinates of points.
    """
    bare, scales = residual.residual, residual.scales
    problem = bare.__self__
    units = columns_of(scales, problem.shape, jnp)
    value, blocks = residual(w), blocks_of(problem, scales * w) * units
    gaps = value.reshape(problem.shape) / units[0]
    step, kernel, _ = solve(blocks / units[0], gaps)
    along = (off - row @ step) / (row @ kernel)
    tangent = kernel * jnp.where(row @ kernel < 0, -1.0, 1.0)
    return Linearised(value, blocks, step + along * kernel, tangent)


def columns_of(scales, shape: tuple[int, ...], numpy: Any = np):
    """Units of the columns of blocks, from those of all unknowns."""
    points = numpy.full(shape[1], scales[0])
    return numpy.append(points, scales[shape[0] * shape[1] :])


def method_of(problem: Problem) -> Method:
    """How branches of a problem are corrected."""
    if problem.segments == 1:
        return DENSE
    return Method(orbit, _orientation, partial(columns_of, shape=problem.shape), False)


def _orientation(point: Point) -> float:
    """Sign of det (DG; t)."""
    return float(_oriented(jnp.asarray(point.jacobian), jnp.asarray(point.tangent)))


@jax.jit
def _oriented(blocks, tangent):
    _, kernel, sign = solve(blocks, jnp.zeros(blocks.shape[:2]))
    return sign * jnp.sign(kernel @ tangent)
