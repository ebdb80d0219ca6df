r"""Leaving a branch where another one is born (docs/theory/continuation.md, section 5).

At a period doubling, and at a pitchfork, with q the critical vector and the normal form
$\xi \to \mu \xi + c \xi^3$, $\mu = \mp 1 + m\,\delta p$, the new branch starts at

    dp = -c xi^2 / m,    x = x_0 + xi q + dp x' + xi^2 h / 2

and Newton is held to the plane of this prediction across q, which the old branch does
not meet nearby.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import PyTree

from statmech_attn.dynamics.continuation.branches import (
    Branch,
    follow_cycle,
    Solution,
)
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.special_points import SpecialPoint
from statmech_attn.dynamics.options import Settings
from statmech_attn.options import Count, Interval, Positive


EARLY = 1e-2  # of the amplitude at the next doubling, where a new branch begins
NEXT_WINDOW = 0.2  # of a window of a cascade: the next one (1/4.669... in the limit)
STEPS = 10  # of a cascade's branch from one doubling to the next, about


def switch(
    problem: Problem,
    special: SpecialPoint,
    *,
    amplitude: float = 1e-3,
    within: Interval = (-np.inf, np.inf),
    settings: Settings | None = None,
    unit: Positive = 1.0,
) -> Branch:
    """The branch that is born at a period doubling or pitchfork of a branch.

    Args:
        problem: that of the branch on which the point was found.
        special: the bifurcation from which the branch leaves.
        amplitude: $\\xi$ at the first point, in units of x; its sign chooses between
            the two halves of a pitchfork (those of a doubling are one cycle).
        within: allowed range of the parameter.
        settings: step sizes and tolerances.
        unit: unit of length of the parameter, beside 1 in x.

    Returns:
        `Branch`, an iterator over the cycles of the new branch.

    Raises:
        ValueError: a point of another kind, a zero amplitude, or a range without it.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
        >>> branch = follow_cycle(problem, jnp.array([0.6]), 2.5, within=(2, 3.2)).run()
        >>> doubled = switch(problem, branch.special[0], within=(2, 3.5)).run()
        >>> [(s.kind, round(s.value, 9)) for s in doubled.special]
        [('period_doubling', 3.449489743)]
    """
    if special.kind not in ("period_doubling", "pitchfork") or special.form is None:
        raise ValueError(
            "a new branch starts at a period_doubling or a pitchfork; "
            f"got {special.kind}."
        )
    if amplitude == 0 or not np.isfinite(amplitude):
        raise ValueError(f"amplitude must be finite and not zero; got {amplitude}.")
    form = special.form
    shift, distance = form.depart(amplitude)
    doubled = special.kind == "period_doubling"
    return follow_cycle(
        problem.with_period(int(problem.period) * (2 if doubled else 1)),
        special.x + shift,
        special.value + distance,
        direction=np.append(np.sign(amplitude) * np.real(form.vector), 0.0),
        within=within,
        settings=settings,
        unit=unit,
    )


def cascade(
    problem: Problem,
    x: PyTree,
    value: float,
    *,
    doublings: Count,
    direction: int = 1,
    within: Interval = (-np.inf, np.inf),
    settings: Settings | None = None,
    unit: Positive = 1.0,
) -> Iterator[Solution]:
    """Follow a cycle to its period doubling, the doubled one to the next, and so on.

    Yields one solution per period, which ends at its doubling: the last of `special`.
    Stops after `doublings` of them, or with a solution that met none.  Steps shrink
    with the windows.

    Args:
        problem: the map, its parameters and the free one.
        x: a state near the first cycle, or its coordinates (d,).
        value: of the free parameter there.
        doublings: largest number of doublings.
        direction: 1 or -1: the parameter increases or decreases at first.
        within: allowed range of the parameter.
        settings: step sizes and tolerances.
        unit: unit of length of the parameter, beside 1 in x.

    Raises:
        ValueError: `doublings` is below 1.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> problem = Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")
        >>> branches = cascade(problem, jnp.array([0.6]), 2.5, doublings=3)
        >>> [round(s.special[-1].value, 6) for s in branches]
        [3.0, 3.44949, 3.54409]
    """
    settings = settings or Settings()
    branch = follow_cycle(
        problem,
        x,
        value,
        direction=direction,
        within=within,
        settings=settings,
        unit=unit,
    )
    before = float(value)
    for _ in range(doublings):
        point = _to_doubling(branch)
        yield branch.solution
        if point is None:
            return
        window = NEXT_WINDOW * abs(point.value - before)
        extent = _amplitude(point, window)
        branch = switch(
            branch.problem,
            point,
            amplitude=EARLY * extent,
            within=within,
            settings=_scaled(settings, extent / STEPS),
            unit=unit,
        )
        before = point.value


def _to_doubling(branch: Branch) -> SpecialPoint | None:
    """Follow until the first period doubling; None where the branch ends without."""
    for point in branch:
        for special in point.special:
            if special.kind == "period_doubling":
                return special
    return None


def _amplitude(point: SpecialPoint, window: float) -> float:
    assert point.form is not None
    return point.form.amplitude(point.form.side * window)


def _scaled(settings: Settings, largest: float) -> Settings:
    """Settings of a continuation with steps up to `largest`."""
    return dataclasses.replace(
        settings,
        largest_step=largest,
        first_step=min(settings.first_step, largest / STEPS),
        smallest_step=min(settings.smallest_step, largest * 1e-6),
    )
