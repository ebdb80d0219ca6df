"""Equations of all points of a cycle, against the whole matrix."""

import jax
import numpy as np

from statmech_attn.dynamics.continuation.arclength import Point
from statmech_attn.dynamics.continuation.multiple_shooting import _solve, shooting


def whole(blocks):
    """The Jacobian (k d, k d + 1) that the blocks stand for."""
    k, d, _ = blocks.shape
    matrix = np.zeros((k * d, k * d + 1))
    for i, block in enumerate(blocks):
        rows, ahead = slice(i * d, (i + 1) * d), (i + 1) % k * d
        matrix[rows, rows] += block[:, :d]
        matrix[rows, ahead : ahead + d] -= np.eye(d)
        matrix[rows, -1] = block[:, d]
    return matrix


def test_solution_kernel_and_orientation_are_those_of_the_whole_matrix():
    """Backward stable: errors are condition times rounding; signs change together."""
    rng, signs, solve = np.random.default_rng(0), [], jax.jit(_solve)
    for _ in range(60):  # factors change sign in few
        blocks = rng.standard_normal((5, 3, 4)) * np.array([30.0, 1.0, 0.01, 1.0])
        values = rng.standard_normal((5, 3))
        matrix = whole(blocks)
        solution, kernel, sign = (np.asarray(a) for a in solve(blocks, values))
        rounding = 1e-14 * np.linalg.cond(matrix) * np.linalg.norm(solution)
        assert np.linalg.norm(matrix @ solution - values.ravel()) < rounding
        assert np.linalg.norm(matrix @ kernel) < 1e-14 * np.linalg.norm(matrix)
        point = Point(kernel, kernel, blocks, 0.0, 0)
        assert shooting(3).orientation(point) == sign
        signs.append(sign * np.linalg.slogdet(np.vstack([matrix, kernel]))[0])
    assert len(set(signs)) == 1
