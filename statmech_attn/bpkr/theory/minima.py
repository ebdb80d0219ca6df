"""All minima of the action that random starts lead to (docs/theory/bpkr.md, section 3).

A start is the GP limit with independent normal changes of all unknowns of the chart,
that is of the logarithms of the diagonal of the C_l and of the entries below it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from statmech_attn import presentation
from statmech_attn.batches import rng
from statmech_attn.bpkr.posed.newton import NewtonSolver
from statmech_attn.bpkr.posed.problem import Posed
from statmech_attn.bpkr.theory.saddle import solve_from, starting_point
from statmech_attn.bpkr.theory.solution import Solution
from statmech_attn.labels import Variable
from statmech_attn.options import Count, NotNegative, Positive


class Minima(NamedTuple):
    """Distinct minima, lowest action first, and how many starts led to each.

    Attributes:
        solutions: the minima.
        counts: initial conditions that led to each.
        failed: initial conditions from which the iteration did not converge.
    """

    solutions: list[Solution]
    counts: list[int]
    failed: int  # starts that did not converge

    _shown = (
        Variable("counts", "minimum", "starts that led to each minimum", symbol="n"),
        Variable(
            "action",
            "minimum",
            "action",
            symbol="S",
            value=lambda m: np.array([float(s.action) for s in m.solutions]),
        ),
        Variable("failed", "", "starts that did not converge", symbol="n"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


def multi_start(
    problem: Posed,
    key: Key[Array, ""],
    *,
    starts: Count,
    spread: NotNegative = 1.0,
    tolerance: Positive = 1e-5,
    solver: NewtonSolver | None = None,
) -> Minima:
    """All minima that the GP limit and random points around it lead to."""
    if starts < 1 or not spread > 0 or not tolerance > 0:
        raise ValueError(
            "starts must be >= 1, spread and tolerance > 0; "
            f"got {starts}, {spread} and {tolerance}."
        )
    limit = starting_point(problem)
    shifts = spread * rng.normal(key, (starts, limit.size))
    points = [limit, *(limit + shifts)]
    ended = [solve_from(problem, point, solver) for point in points]
    reached = [s for s in ended if s.converged]
    solutions, counts = distinct(reached, tolerance)
    return Minima(solutions, counts, len(ended) - len(reached))


def distinct(
    candidates: Sequence[Solution], tolerance: float
) -> tuple[list[Solution], list[int]]:
    """Solutions with different U_1, lowest action first, and how often each occurs."""
    solutions, counts = [], []
    for candidate in sorted(candidates, key=lambda s: float(s.action)):
        for i, earlier in enumerate(solutions):
            scale = jnp.abs(earlier.U[0]).max()
            if jnp.abs(candidate.U[0] - earlier.U[0]).max() <= tolerance * scale:
                counts[i] += 1
                break
        else:
            solutions.append(candidate)
            counts.append(1)
    return solutions, counts
