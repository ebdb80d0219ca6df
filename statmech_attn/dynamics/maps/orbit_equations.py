r"""Equations of all points of a closed orbit (docs/theory/continuation.md, section 7).

    $A_i s_i - s_{i+1} = g_i$,  i = 0 .. k - 1

No product of the $A_i$ is formed: orthogonal transformations take $s_1 .. s_{k-1}$ out
of one pair of equations after another (S. J. Wright, SIAM J. Sci. Stat. Comput. 13, 742
(1992)), and what is left are d equations in the ends $s_0$ and $s_k$.

    A_i   (k, d, d)                   `blocks`
    g_i   (k, d), a sum of columns    `rest` (k, d, r) @ `weights` (r,)
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int, PyTree

from statmech_attn.dynamics.maps.systems import TangentSystem


def newton(improve: Callable[[Any], tuple], start: PyTree, tolerance, most):
    """Improve a point until its last step is within the tolerance, or no number.

    `improve` takes a point to the next one and the size of the step.  Returns the last
    point, the size of the last step and the number of steps.
    """

    def goes_on(carry):
        _, size, steps = carry
        return (size > tolerance) & (steps < most)

    def go(carry):
        return *improve(carry[0]), carry[2] + 1

    first = start, jnp.asarray(jnp.inf), jnp.asarray(0)
    return jax.lax.while_loop(goes_on, go, first)


def eliminate(blocks: Float[Array, "k d d"], rest: Float[Array, "k d r"], length=None):
    """Equations of the ends, and how the points between them were taken out.

    Returns (first, last, rest) with first s_0 + last s_k = rest @ weights, and what
    `restore` takes.  Rows after `length`, k when omitted, are left out.
    """
    d = blocks.shape[1]
    unit, zero = jnp.eye(d), jnp.zeros((d, d))
    length = len(blocks) if length is None else length

    def remove(ends, row):
        first, last, right = ends
        i, block, below = row
        rows = [[last, first, zero, right], [block, zero, -unit, below]]
        rows = jax.lax.fori_loop(0, d, _reflect, jnp.block(rows))
        triangle, firsts, lasts, rights = jnp.split(rows, (d, 2 * d, 3 * d), axis=1)
        after = firsts[d:], lasts[d:], rights[d:]
        after = jax.tree.map(lambda x, y: jnp.where(i < length, x, y), after, ends)
        return after, (triangle[:d], firsts[:d], lasts[:d], rights[:d])

    i = jnp.arange(1, len(blocks))
    ends = blocks[0], -unit, rest[0]
    ends, taken = jax.lax.scan(remove, ends, (i, blocks[1:], rest[1:]))
    return ends, (i < length, *taken)


def restore(taken, first, last, weights: Float[Array, " r"]) -> Float[Array, "k d"]:
    """The solution with the ends s_0 = first and s_k = last; zero after its length."""

    def back(later, row):
        is_there, triangle, firsts, lasts, rights = row
        known = rights @ weights - firsts @ first - lasts @ later
        step = solve_triangular(triangle, known)
        later = jnp.where(is_there, step, last)
        return later, jnp.where(is_there, step, 0.0)

    steps = jax.lax.scan(back, last, taken, reverse=True)[1]
    return jnp.concatenate([first[None], steps])


def orientation(taken) -> Float[Array, ""]:
    """Sign of det of what was taken out, times that of the reflections, (-1)^(d (k-1)).

    With it the equations of the ends have the sign of the product of the blocks.
    """
    return jnp.prod(jnp.sign(jnp.diagonal(taken[1], axis1=1, axis2=2)))


def _reflect(column, rows):
    """Householder's reflection that ends a column of some rows at its diagonal."""
    index = jnp.arange(len(rows))
    across = jnp.where(index < column, 0, rows[:, column])
    size = jnp.linalg.norm(across)
    ahead = jnp.where(across[column] < 0, -size, size)
    across = across + jnp.where(index == column, ahead, 0)
    square = across @ across
    along = across @ rows * 2 / jnp.where(square > 0, square, 1)
    return rows - jnp.outer(across, along)


class OnOrbit(TangentSystem):
    """A map on the points of a closed orbit: a state is a number of one and the point.

    Rounding does not lead away from it.
    """

    map: TangentSystem
    state: PyTree
    points: Float[Array, "p d"]
    period: Int[Array, ""]

    @property
    def rank(self):
        return self.map.rank

    def lift(self, state):
        return state

    def lower(self, lifted):
        return lifted

    def step(self, state):
        t = (state[0] + 1) % self.period
        return t, self.points[t]

    def vector(self, state):
        return state[1]

    def at(self, state, vector):
        return state[0], vector

    def push(self, lifted, frame):
        at_point = self.map.lift(self.map.at(self.state, lifted[1]))
        return self.step(lifted), self.map.push(at_point, frame)[1]
