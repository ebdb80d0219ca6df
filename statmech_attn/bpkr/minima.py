"""All minima of the action that random starts lead to (docs/theory/bpkr.md, section 3).

A start is the GP limit with independent normal changes of all unknowns of the chart,
that is of the logarithms of the diagonal of the C_l and of the entries below it.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn.bpkr import prior as sizes_of
from statmech_attn.bpkr.saddle import Solution, solve_many, starting_point


class Minima(NamedTuple):
    """Distinct minima, lowest action first, and how many starts led to each."""

    solutions: list[Solution]
    counts: list[int]
    failed: int  # starts that did not converge


def multi_start(
    key: Key[Array, ""],
    xi: Float[Array, "P N_0 Pi"],
    Y: Float[Array, "P *K"],
    *,
    starts: int,
    width,
    temperature: float,
    heads: Sequence[int],
    spread: float = 1.0,
    tolerance: float = 1e-5,
    **choices,
) -> Minima:
    """Solve from the GP limit and from random points around it.

    Args:
        starts: number of random starts; the GP limit is one more.
        spread: standard deviation of the changes, in relative units of the factors.
        tolerance: minima are the same if no entry of U_1 differs by more than this
            part of the largest entry.
        choices: `variances`, `solver`, `form` and `memory_limit` of `solve`.

    Raises:
        ValueError: as `solve`; starts < 1; spread or tolerance not > 0.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
        >>> problem = dict(width=10, temperature=0.1, heads=(1,))
        >>> multi_start(jax.random.key(0), xi, Y, starts=3, **problem).counts
        [4]
    """
    if starts < 1 or not spread > 0 or not tolerance > 0:
        raise ValueError(
            "starts must be >= 1, spread and tolerance > 0; "
            f"got {starts}, {spread} and {tolerance}."
        )
    solve_at = partial(
        solve_many, xi, Y, heads=heads, temperature=temperature, **choices
    )
    first = jax.tree.map(lambda a: a[0], solve_at(width=[width]))
    outputs = 1 if np.ndim(Y) == 1 else np.shape(Y)[1]
    variances = sizes_of.prior(width, heads, choices.get("variances")).variances
    limit = starting_point(None, heads, variances, outputs)
    shifts = spread * jax.random.normal(key, (starts, limit.size))
    start = eqx.tree_at(lambda s: s.point, first, limit + shifts)
    many = solve_at(width=[width] * starts, start=start)
    found = [first, *(jax.tree.map(lambda a: a[i], many) for i in range(starts))]
    reached = [s for s in found if s.converged]
    solutions, counts = distinct(reached, tolerance)
    return Minima(solutions, counts, len(found) - len(reached))


def distinct(
    found: Sequence[Solution], tolerance: float
) -> tuple[list[Solution], list[int]]:
    """Solutions with different U_1, lowest action first, and how often each occurs."""
    solutions, counts = [], []
    for one in sorted(found, key=lambda s: float(s.action)):
        for i, other in enumerate(solutions):
            scale = jnp.abs(other.U[0]).max()
            if jnp.abs(one.U[0] - other.U[0]).max() <= tolerance * scale:
                counts[i] += 1
                break
        else:
            solutions.append(one)
            counts.append(1)
    return solutions, counts
