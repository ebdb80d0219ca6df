"""Points of stored branches and curves, from which others are followed."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from statmech_attn import storage
from statmech_attn.dynamics.continuation.problem import Problem


class Start(NamedTuple):
    """Where a branch or a curve begins: the first arguments of what follows it.

    Attributes:
        problem: with the parameters of the point.
        x: coordinates of the cycle, (d,), or (k, d) where all its points are stored.
        value: of the free parameter.
        direction: of (x, value) along the stored points, in their order.
    """

    problem: Problem
    x: Float[np.ndarray, "..."]
    value: float
    direction: Float[np.ndarray, " n+1"]


def at_point(
    problem: Problem, saved: xr.Dataset | str | Path, point: int = -1
) -> Start:
    """A point of a branch or a critical curve that was saved, to go on from there.

    Args:
        problem: of the branch; parameters that were followed are replaced.
        saved: `to_dataset()` of a branch or curve, or a file of it that
            `storage.write` wrote, or one branch of the file of a diagram.
        point: which one, from the end where it is negative.

    Returns:
        `Start`. `follow_cycle(*start[:3], direction=start.direction)` continues a
        branch in the order of its points, `-start.direction` against it; the first
        three are those of `find_cycle` and `critical_curve`, too.

    Raises:
        ValueError: a data set without the cycles or the free parameter, or no such
            point.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn.dynamics.continuation import follow_cycle
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
        >>> branch = follow_cycle(problem, jnp.array([0.6]), 2.5, within=(2, 2.8)).run()
        >>> start = at_point(problem, branch.to_dataset())
        >>> more = follow_cycle(
        ...     *start[:3], direction=start.direction, within=(2, 3.2)).run()
        >>> float(more.values[0]), [special.kind for special in more.special]
        (2.8, ['period_doubling'])
    """
    dataset = saved if isinstance(saved, xr.Dataset) else storage.read(saved)
    cycles = next((dataset[name] for name in ("x", "state") if name in dataset), None)
    followed = {
        name: dataset[name].values
        for name in problem.parameters
        if name in dataset and dataset[name].dims == ("point",)
    }
    if cycles is None or cycles.dims[0] != "point" or problem.free not in followed:
        raise ValueError(
            f"saved must hold cycles and {problem.free} along 'point'; "
            f"got {', '.join(map(str, dataset.data_vars))}."
        )
    points = np.flatnonzero(np.isfinite(followed[problem.free]))
    if not -points.size <= point < points.size:
        raise ValueError(f"point must be one of {points.size}; got {point}.")
    x = cycles.values[points]
    u = np.column_stack([x.reshape(points.size, -1), followed[problem.free][points]])
    i = point % points.size
    values = {name: float(column[points[i]]) for name, column in followed.items()}
    ahead = u[min(i + 1, points.size - 1)] - u[max(i - 1, 0)]
    return Start(problem.with_parameters(**values), x[i], values[problem.free], ahead)
