r"""Scores of heads against those of permuted labels (docs/theory/bpkr.md, section 4).

    w_h / sum w                     (n,)      share of a head in all weights of U_1
    shares of permutations          (M, n)    labels dealt out to other examples
    t_h                             (n,)      (share - mean) / (s [1 + 1 / M]^(1/2))
    z_h                             (n,)      normal quantile of t_h

A score is over the largest one and cannot exceed it, so that the top head would not
stand out; and all weights grow with labels that are hard to learn, as permuted ones
are.  Shares have neither fault.  The outputs of an example stay together.  Mean and
standard deviation s are those of M permutations: of normal shares, and labels that say
nothing, $t_h$ has the distribution of Student with M - 1 degrees of freedom, and $z_h$
the standard normal one for any M.
"""

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Array, Float, Key
from scipy import stats

from statmech_attn.bpkr.posed.newton import NewtonSolver
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory.predictor import head_weights
from statmech_attn.bpkr.theory.solution import Solution


LEVEL = 0.05  # of all heads together
LEAST_SPREAD = 1e-6  # of shares, which are known to the tolerance of saddle points


def shares(solution: Solution) -> Float[np.ndarray, " n"]:
    """Share of every head in the sum of all weights at a saddle point."""
    weights = np.concatenate(head_weights(solution))
    return weights / weights.sum()


def permuted_shares(
    problem: Problem,
    key: Key[Array, ""],
    permutations: int,
    solver: NewtonSolver | None = None,
) -> Float[np.ndarray, "M n"]:
    """Shares of the heads with permuted labels; of those that have a saddle point."""
    solutions = _solutions(problem, key, permutations, solver)
    return np.array([shares(solution) for solution in solutions]).reshape(
        -1, sum(problem.branches)
    )


def _solutions(problem, key, permutations: int, solver) -> Iterator[Solution]:
    """Saddle points of permuted labels, each sought from the one before."""
    start = None
    for subkey in jax.random.split(key, permutations):
        Y = jax.random.permutation(subkey, problem.Y, axis=0)
        solution = problem.at(Y=Y).solve(start=start, solver=solver)
        if solution.converged:
            start = solution
            yield solution


def deviations(
    own: Float[np.ndarray, " n"],
    permuted: Float[np.ndarray, "M n"],
    uncertain: float = 0.0,
) -> Float[np.ndarray, " n"]:
    """How far shares are from those of permuted labels: z of every head.

    z is as probable as Student's t of the M permutations.  `uncertain` is the part of a
    share by which saddle points are off; no spread is less.
    """
    count = len(permuted)
    least = np.maximum(LEAST_SPREAD, uncertain * own)
    spread = np.maximum(permuted.std(axis=0, ddof=1), least)
    t = (own - permuted.mean(axis=0)) / (spread * np.sqrt(1 + 1 / count))
    return np.copysign(stats.norm.isf(stats.t.sf(abs(t), count - 1)), t)


def threshold(heads: int) -> float:
    """|z| that one of so many heads exceeds by chance with a probability of 5 %."""
    return float(stats.norm.isf(LEVEL / (2 * heads)))
