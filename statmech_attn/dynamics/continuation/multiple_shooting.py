r"""Newton for all points of a cycle at once (docs/theory/continuation.md, section 8).

The k points of a cycle of the map f are a zero of

    $G_i = f(x_i, p) - x_{i+1}$,  i = 0 .. k - 1,   $x_k = x_0 + s$

with s the whole turns that angles advance in one period, zero for others.  Its
Jacobian holds $A_i = D_x f(x_i)$, each beside -1, cyclic, and a column $f_p(x_i)$.  No
product of the $A_i$ is formed: orthogonal transformations take $x_1 .. x_{k-1}$ out of
one pair of equations after another (S. J. Wright, SIAM J. Sci. Stat. Comput. 13, 742
(1992)), and what is left are d equations in $x_0$ and p, whose kernel is the tangent of
the branch.

    x_i   points (k, d)            `orbit`
    s     (d,)                     `shift`
    A_i, f_p                       `blocks` (k, d, d + 1)
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from statmech_attn.dynamics.continuation.arclength import (
    Correction,
    judge,
    Method,
    Point,
    Scaled,
)
from statmech_attn.dynamics.continuation.problem import Problem


class Orbit(eqx.Module):
    """G of u, all points and then the free parameter, (k d + 1,) -> (k d,)."""

    problem: Problem
    shift: Float[Array, " d"]

    def __call__(self, u: Float[Array, " n+1"]) -> Float[Array, " n"]:
        points = u[:-1].reshape(-1, self.shift.size)
        after = jax.vmap(partial(self.problem.next, value=u[-1]))(points)
        ahead = jnp.roll(points, -1, axis=0).at[-1].add(self.shift)
        return (after - ahead).reshape(-1)

    def blocks(self, u: Float[Array, " n+1"]) -> Float[Array, "k d d+1"]:
        """Derivatives of the map at every point, in the point and the parameter."""
        points = u[:-1].reshape(-1, self.shift.size)
        derivatives = jax.jacfwd(self.problem.next, argnums=(0, 1))
        at_points, in_value = jax.vmap(derivatives, (0, None))(points, u[-1])
        return jnp.concatenate([at_points, in_value[..., None]], axis=-1)


def _eliminate(blocks, values: Float[Array, "k d"], turn_of_ends: float = 1.0):
    """The equations after the points have been taken out, and how they were.

    `blocks` are derivatives (k, d, d + 1), `values` right-hand sides; `turn_of_ends` is
    x_k / x_0, 1 or -1.
    """
    d = blocks.shape[1]
    unit, none = jnp.eye(d), jnp.zeros((d, d))

    def remove(above, row):
        block, value = row
        first, last, rest = above  # of x_0, of x_i, and of (p, right-hand side)
        below = jnp.column_stack([block[:, d], value])
        turn, triangle = jnp.linalg.qr(jnp.vstack([last, block[:, :d]]), "complete")
        others = jnp.vstack(
            [jnp.hstack([first, none, rest]), jnp.hstack([none, -unit, below])]
        )
        turned = turn.T @ others
        sign = jnp.sign(jnp.linalg.det(turn) * jnp.prod(jnp.diag(triangle)))
        reduced = turned[d:, :d], turned[d:, d : 2 * d], turned[d:, 2 * d :]
        return reduced, (triangle[:d], turned[:d], sign)

    rest = jnp.column_stack([blocks[0, :, d], values[0]])
    start = blocks[0, :, :d], -unit, rest
    (first, last, rest), taken = jax.lax.scan(remove, start, (blocks[1:], values[1:]))
    return jnp.column_stack([first + turn_of_ends * last, rest]), taken


def _solve(blocks: Float[Array, "k d d+1"], values: Float[Array, "k d"]):
    """A solution of the linearised equations, their kernel, and its orientation.

    Returns two arrays (k d + 1,) and the sign of det (DG; kernel).
    """
    d = blocks.shape[1]
    reduced, (triangles, turned, signs) = _eliminate(blocks, values)
    basis, triangle = jnp.linalg.qr(reduced[:, : d + 1].T, "complete")
    inner = solve_triangular(triangle[:d], reduced[:, d + 1], trans="T")
    ends = jnp.column_stack([basis[:, :d] @ inner, basis[:, d]])
    first, last = ends[:d], ends[d]

    def back(ahead, row):
        triangle, turned = row
        known = jnp.outer(turned[:, 2 * d + 1], jnp.array([1.0, 0.0]))
        known -= turned[:, :d] @ first + turned[:, d : 2 * d] @ ahead
        known -= jnp.outer(turned[:, 2 * d], last)
        point = solve_triangular(triangle, known)
        return point, point

    points = jax.lax.scan(back, first, (triangles, turned), reverse=True)[1]
    particular, kernel = jnp.concatenate(
        [first, *[points.reshape(-1, 2)], last[None]]
    ).T
    square = jnp.vstack([reduced[:, : d + 1], basis[:, d]])
    sign = jnp.prod(signs) * jnp.linalg.slogdet(square)[0]
    return particular, kernel / jnp.linalg.norm(kernel), sign


@jax.jit
def determinant(blocks: Float[Array, "k d d+1"], multiplier: float) -> Float[Array, ""]:
    """det (A - multiplier) of the product A of all A_i, but for a positive factor.

    `multiplier` is 1 or -1; products of the blocks are not formed.
    """
    reduced, taken = _eliminate(blocks, jnp.zeros(blocks.shape[:2]), multiplier)
    d = blocks.shape[1]
    return jnp.prod(taken[2]) * jnp.linalg.det(reduced[:, :d])


def _null_vector(jacobians: Float[Array, "k d d"], multiplier: float):
    """Unit v, (k, d), with A_i v_i = v_{i+1}, v_k = multiplier v_0, or nearly so."""
    d = jacobians.shape[1]
    blocks = jnp.concatenate([jacobians, jnp.zeros_like(jacobians[..., :1])], axis=2)
    zeros = jnp.zeros(blocks.shape[:2])
    reduced, (triangles, turned, _) = _eliminate(blocks, zeros, multiplier)
    first = jnp.linalg.svd(reduced[:, :d])[2][-1]

    def back(ahead, row):
        triangle, turned = row
        known = turned[:, :d] @ first + turned[:, d : 2 * d] @ ahead
        point = solve_triangular(triangle, -known)
        return point, point

    last = multiplier * first
    points = jax.lax.scan(back, last, (triangles, turned), reverse=True)[1]
    v = jnp.concatenate([first[None], points])
    return v / jnp.linalg.norm(v)


class CriticalOrbit(eqx.Module):
    """G of u, all points and two parameters, and what a tangent misses to close.

    Attributes:
        problem: the map, its parameters and the free one.
        shift: what is added to a state in one period.
        second: name of the second parameter.
        multiplier: of the cycle that is critical, 1 or -1.
    """

    problem: Problem
    shift: Float[Array, " d"]
    second: str = eqx.field(static=True)
    multiplier: float = eqx.field(static=True)

    def next(self, x, values):
        """The state (d,) one step after x (d,) at both parameters, (free, second)."""
        names = self.problem.free, self.second
        parameters = {**self.problem.parameters, **dict(zip(names, values))}
        return self.problem.iterate(x, parameters, 1)

    def __call__(self, u: Float[Array, " n+1"]) -> Float[Array, " n"]:
        points = u[:-2].reshape(-1, self.shift.size)
        after = jax.vmap(self.next, (0, None))(points, u[-2:])
        ahead = jnp.roll(points, -1, axis=0).at[-1].add(self.shift)
        return jnp.append((after - ahead).reshape(-1), self.gap(u)[0])

    def derivatives(self, u):
        """Derivatives of the map in each point, (k, d, d), and in both parameters."""
        points = u[:-2].reshape(-1, self.shift.size)
        return jax.vmap(jax.jacfwd(self.next, (0, 1)), (0, None))(points, u[-2:])

    def turned(self, u):
        """u from the point on where the critical tangent is largest.

        There the equations are cut open.  Where it is small, as beside a sharp turn of
        a chaotic orbit, equations of the ends say nothing of it.
        """
        points = u[:-2].reshape(-1, self.shift.size)
        first = int(np.argmax(np.linalg.norm(_critical_tangent(self, u), axis=1)))
        points = np.concatenate([points[first:], points[:first] + self.shift])
        return np.append(points, u[-2:])

    def gap(self, u):
        """w . (A_i v_i - v_{i+1}) summed over the cycle, and its gradient.

        v and w are right and left null vectors of the equations of a tangent that
        closes with the multiplier.
        """
        points, jacobians = u[:-2].reshape(-1, self.shift.size), self.derivatives(u)[0]
        v = _null_vector(jacobians, self.multiplier)
        adjoint = jnp.swapaxes(jacobians[::-1], 1, 2)
        w = _null_vector(adjoint, self.multiplier)[::-1]

        def pushed(points, values):
            push = lambda x, v: jax.jvp(lambda x: self.next(x, values), (x,), (v,))[1]
            return jnp.sum(w * jax.vmap(push)(points, v))

        value, slopes = jax.value_and_grad(pushed, (0, 1))(points, u[-2:])
        ahead = jnp.roll(v, -1, axis=0).at[-1].multiply(self.multiplier)
        return value - jnp.sum(w * ahead), jnp.append(slopes[0].reshape(-1), slopes[1])


@eqx.filter_jit
def _critical_tangent(orbit: CriticalOrbit, u) -> Float[Array, "k d"]:
    return _null_vector(orbit.derivatives(u)[0], orbit.multiplier)


@eqx.filter_jit
def correct_critical(
    residual: Scaled, guess: Float[Array, " n+1"], row, tolerance, max_iterations
) -> Correction:
    """`arclength.correct` for a critical cycle in two parameters.

    `guess` is in the units of length of `residual`; `row` is the direction that is
    held.
    """
    orbit: Any = residual.residual
    scales, d = residual.scales, orbit.shift.size

    def linearised(w):
        u = scales * w
        jacobians, in_values = orbit.derivatives(u)
        blocks = jnp.concatenate([jacobians, in_values[..., :1]], axis=2)
        value = orbit(u)
        step, kernel, _ = _solve(blocks, value[:-1].reshape(-1, d))
        other = _solve(blocks, in_values[..., 1])[0]
        basis = jnp.stack([jnp.append(kernel, 0.0), jnp.append(-other, 1.0)])
        gap, slope = orbit.gap(u)
        whole = jnp.concatenate([jacobians, in_values], axis=2)
        rows = jnp.stack([slope, row / scales])
        return value, whole, jnp.append(step, 0.0), basis, gap, rows

    def improve(carry):
        w, _, iterations, _ = carry
        _, _, step, basis, gap, rows = linearised(w)
        ends = jnp.stack([gap, row @ (w - guess)]) - rows @ step
        step = (step + jnp.linalg.solve(rows @ basis.T, ends) @ basis) / scales
        sound = jnp.all(jnp.isfinite(step))
        size = jnp.linalg.norm(step) / (1 + jnp.linalg.norm(w))
        return jnp.where(sound, w - step, w), size, iterations + 1, sound

    def unfinished(carry):
        _, size, iterations, sound = carry
        return sound & (size > tolerance) & (iterations < max_iterations)

    start = (guess, jnp.array(jnp.inf), jnp.array(0), jnp.array(True))
    w, size, iterations, sound = jax.lax.while_loop(unfinished, improve, start)
    value, blocks, _, basis, _, rows = linearised(w)
    across = basis @ rows[0]
    tangent = (jnp.stack([across[1], -across[0]]) @ basis) / scales
    tangent = tangent / jnp.linalg.norm(tangent)
    tangent = tangent * jnp.where(row @ tangent < 0, -1.0, 1.0)
    reached = sound & (size <= tolerance) & jnp.all(jnp.isfinite(tangent))
    units = _columns_of_critical(scales, d, jnp)
    code = judge(value, blocks, reached)
    return Correction(w, tangent, blocks * units, size, iterations, code)


def _columns_of_critical(scales, dimension: int, numpy: Any = np):
    return numpy.append(numpy.full(dimension, scales[0]), scales[-2:])


def critical_shooting(dimension: int) -> Method:
    """How curves of critical cycles of so many coordinates are corrected."""
    columns = partial(_columns_of_critical, dimension=dimension)
    return Method(correct_critical, lambda _: 1.0, columns, False)


@jax.jit
def solution(blocks: Float[Array, "k d d+1"], values: Float[Array, "k d"]):
    """A solution of the linearised equations, (k d + 1,)."""
    return _solve(blocks, values)[0]


@eqx.filter_jit
def correct_orbit(
    residual: Scaled, guess: Float[Array, " n+1"], row, tolerance, max_iterations
) -> Correction:
    """`arclength.correct` for all points of a cycle; `jacobian` are its `blocks`.

    `guess` is in the units of length of `residual`, one for all coordinates of points;
    `row` is the direction that is held.
    """
    orbit: Any = residual.residual
    scales = residual.scales
    units = columns_of(scales, orbit.shift.size, jnp)

    def linearised(w):
        value, blocks = residual(w), orbit.blocks(scales * w) * units
        shape = blocks.shape[:2]
        return value, blocks, _solve(blocks / units[0], value.reshape(shape) / units[0])

    def improve(carry):
        w, _, iterations, _ = carry
        _, _, (step, kernel, _) = linearised(w)
        along = (row @ (w - guess) - row @ step) / (row @ kernel)
        step = step + along * kernel
        sound = jnp.all(jnp.isfinite(step))
        size = jnp.linalg.norm(step) / (1 + jnp.linalg.norm(w))
        return jnp.where(sound, w - step, w), size, iterations + 1, sound

    def unfinished(carry):
        _, size, iterations, sound = carry
        return sound & (size > tolerance) & (iterations < max_iterations)

    start = (guess, jnp.array(jnp.inf), jnp.array(0), jnp.array(True))
    w, size, iterations, sound = jax.lax.while_loop(unfinished, improve, start)
    value, blocks, (_, kernel, _) = linearised(w)
    tangent = kernel * jnp.where(row @ kernel < 0, -1.0, 1.0)
    reached = sound & (size <= tolerance) & jnp.all(jnp.isfinite(tangent))
    code = judge(value, blocks, reached)
    return Correction(w, tangent, blocks, size, iterations, code)


def columns_of(scales, dimension: int, numpy: Any = np):
    """Units of the columns of a block, from those of all coordinates."""
    return numpy.append(numpy.full(dimension, scales[0]), scales[-1])


def shooting(dimension: int) -> Method:
    """How curves of cycles of so many coordinates are corrected."""
    columns = partial(columns_of, dimension=dimension)
    return Method(correct_orbit, _orientation, columns, False)


def _orientation(point: Point) -> float:
    """Sign of det (DG; t)."""
    return float(_oriented(jnp.asarray(point.jacobian), jnp.asarray(point.tangent)))


@jax.jit
def _oriented(blocks, tangent):
    _, kernel, sign = _solve(blocks, jnp.zeros(blocks.shape[:2]))
    return sign * jnp.sign(kernel @ tangent)
