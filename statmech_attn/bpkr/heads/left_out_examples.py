"""What other examples say of the weights of heads, and of an example left out.

docs/theory/bpkr.md, section 4, has the jackknife over sets of fewer examples.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn.bpkr.posed import streamed_kernels
from statmech_attn.bpkr.posed.kernels import contracted
from statmech_attn.bpkr.posed.newton import NewtonSolver
from statmech_attn.bpkr.theory.predictor import head_weights
from statmech_attn.bpkr.theory.saddle import without_hessian
from statmech_attn.bpkr.theory.solution import Solution
from statmech_attn.statistics import standard_error


FOLDS = 5  # one of so many examples is left out


def resampled_shares(
    solution: Solution, key: Key[Array, ""], resamples: int, solver: NewtonSolver
) -> Float[np.ndarray, "B n"]:
    """Shares of heads in all weights, in sets of fewer examples with a saddle point.

    They are spread about their mean as those of sets of all examples are.
    """
    branches, examples = solution.problem.branches, len(solution.problem.Y)
    sets = [
        _without_some(solution, subkey, solver)
        for subkey in jax.random.split(key, resamples)
    ]
    weights = [np.concatenate(head_weights(s)) for s in sets if s.converged]
    of_sets = np.array([w / w.sum() for w in weights]).reshape(-1, sum(branches))
    if not len(of_sets) or examples == 1:
        return of_sets
    d, mean = _left_out_of(examples), of_sets.mean(axis=0)
    return mean + np.sqrt((examples - d) / d) * (of_sets - mean)


def error_left_out(solution: Solution) -> tuple[float | None, float | None]:
    """Mean squared error of each example from all others, at U_1 of all, and its error.

    The covariance of the posterior of the outputs at an example is T times the share h
    of the example in their own means, and without it these are off by
    (1 - h)^-1 (y - f).  Where rows do not take the place of examples, 1 - h is T times
    a block of (K + T)^-1, and no kernel is computed again.
    """
    problem = solution.problem
    T, count = float(problem.temperature), problem.outputs
    if T == 0:
        return None, None
    of_blocks = lambda rows: rows.reshape(len(problem.Y), count, -1)
    if problem.compressed is None:
        half = _half(solution)
        columns = of_blocks(half.T)  # of (K + T)^-1 = half^T half
        without = columns @ columns.swapaxes(1, 2)
        beside = half.T @ (half @ problem.y)
    else:
        theory = problem.theory(solution)
        examples = problem.cross_inputs(problem.xi)
        k = examples.kernel(theory.U) @ theory.half.T
        own_kernels = of_blocks(contracted(examples.own_blocks(), theory.U))
        shared = of_blocks(k) @ of_blocks(k).swapaxes(1, 2)
        without = jnp.eye(count) - (own_kernels - shared) / T
        beside = problem.y - k @ (theory.half @ problem.rows.y)
    errors = jnp.linalg.solve(without, beside.reshape(len(problem.Y), count, 1))
    squares = np.asarray((errors**2).mean(axis=(1, 2)))
    return float(squares.mean()), float(standard_error(squares))


def _half(solution: Solution) -> Array:
    """L^-1 of K + T, in single precision where U is known to two digits."""
    problem = solution.problem
    if not without_hessian(problem):
        return problem.theory(solution).half
    xi, scale, U = map(np.asarray, (problem.xi, problem.scale, solution.U[0]))
    F, T = np.linalg.cholesky(U), float(problem.temperature)
    upper = streamed_kernels.factored(xi, scale, F, T, np.float32)
    if np.isnan(upper[0, 0]):
        return problem.theory(solution).half
    return jnp.asarray(streamed_kernels.inverted(upper))


def _left_out_of(examples: int) -> int:
    """How many examples a set is without; none of one alone."""
    return min(max(1, round(examples / FOLDS)), examples - 1)


def _without_some(solution: Solution, key: Key[Array, ""], solver) -> Solution:
    """The saddle point without some of the examples."""
    problem = solution.problem
    examples = len(problem.Y)
    count = examples - _left_out_of(examples)
    kept_examples = jax.random.choice(key, examples, (count,), replace=False)
    fewer = problem.subset(kept_examples, form=problem.form)
    return fewer.solve(start=solution, solver=solver)
