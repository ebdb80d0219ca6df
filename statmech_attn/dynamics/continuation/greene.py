r"""Break-up of a torus by the cycles near it (docs/theory/continuation.md, section 9).

The residue of a cycle of a map that keeps areas is $R = (2 - \mathrm{tr}\, A) / 4$.
Cycles whose rotation numbers are the convergents p/q of that of a torus have residues
that vanish with q where the torus exists, and grow with q where it does not; at the
critical value of a parameter they tend to R* = 0.2500888 for a noble number (J. M.
Greene, J. Math. Phys. 20, 1183 (1979); R. S. MacKay, Physica D 7, 283 (1983)).

    R     residue of a cycle
    K_n   where that of the n-th cycle is R*, which tends to the critical value as a
          power of n, and is extrapolated (Aitken)
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import newton

from statmech_attn import presentation
from statmech_attn.dynamics.continuation.long_cycles import find_long_cycle, LongCycle
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.labels import Variable


LEVEL = 0.2500888  # residue near a noble torus at its break-up (MacKay)
STEPS = 6  # of the parameter, from where the cycles are given to the guess
NEARBY = 1e-4  # of the guess, the second point of the secant
TOLERANCE = 1e-12  # of the parameter


def greene_residue(cycle: LongCycle) -> tuple[float, float]:
    """Greene's residue of a cycle of an area-preserving map, and its error.

    Between 0 and 1 the cycle is elliptic, otherwise hyperbolic.

    Args:
        cycle: of a map of two coordinates.

    Returns:
        The residue, and what rounding does to it.

    Raises:
        ValueError: a map of another number of coordinates.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn.dynamics.continuation import find_long_cycle, Problem
        >>> def standard(z, p):
        ...     momentum = z[1] - p["K"] * jnp.sin(z[0]) + p["bias"]
        ...     return jnp.stack([z[0] + momentum, momentum])
        >>> problem = Problem(standard, jnp.zeros(2), {"K": 0.8, "bias": 0.0}, "bias")
        >>> fixed = find_long_cycle(problem, jnp.zeros((1, 2)), 0.0)
        >>> round(greene_residue(fixed)[0], 9)
        0.2
    """
    if cycle.log_moduli.shape != (2,):
        raise ValueError(
            f"a residue needs two multipliers; got {cycle.log_moduli.size}."
        )
    away = float(cycle.error.max())  # of ln mu; a pair that meets moves by the root
    with np.errstate(over="ignore"):
        multiplier, other = np.exp(cycle.log_moduli + 1j * cycle.angles)
    error = (abs(multiplier - other) + abs(multiplier) * away) * away / 4
    return float((2 - multiplier - other).real / 4), float(error)


class CriticalParameter(eqx.Module):
    """The parameter at which a torus breaks up, with its error.

    Attributes:
        value: of the parameter, extrapolated from the last three cycles.
        error: distance from what the three before the last one give.
        periods: of the cycles.
        values: at which the residue of each has the level.
    """

    value: float
    error: float
    periods: Int[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]

    _shown = (
        Variable("critical", "", "critical value", value="value", error="error"),
        Variable("period", "cycle", "periods", symbol="q", value="periods"),
        Variable("at", "cycle", "values of residue R*", value="values", line=False),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


def critical_parameter(
    problem: Problem,
    parameter: str,
    cycles: Sequence[tuple[np.ndarray, Sequence[float]]],
    guess: float,
) -> CriticalParameter:
    """Critical value of a parameter at which a torus breaks up, by Greene's residue.

    Args:
        problem: an area-preserving map of an angle and a momentum, the angle without
            the modulus.  The free parameter breaks the conservation, such as a constant
            that is added to the momentum: cycles are found with their first angle held
            and this parameter zero but for rounding.
        parameter: name of the one that is sought; its value in `problem` is where the
            cycles are given.
        cycles: points (q, 2) of each cycle and what is added to a state in its period,
            the shortest first; each begins with an angle of the family of residues in
            0..1.
        guess: near the critical value.

    Returns:
        The value with its error, and those of all cycles.

    Raises:
        ValueError: fewer than four cycles, or one that is lost on the way.

    Example:
        >>> import jax.numpy as jnp
        >>> def standard(z, p):
        ...     kick = p["K"] / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * z[0])
        ...     momentum = z[1] - kick + p["bias"]
        ...     return jnp.stack([z[0] + momentum, momentum])
        >>> problem = Problem(standard, jnp.zeros(2), {"K": 0.0, "bias": 0.0}, "bias")
        >>> turn = lambda p, q: np.stack([np.arange(q) * p / q, np.full(q, p / q)], 1)
        >>> cycles = [(turn(p, q), (p, 0)) for p, q in [(1, 2), (2, 3), (3, 5), (5, 8)]]
        >>> round(critical_parameter(problem, "K", cycles, 0.97).value, 3)
        0.972
    """
    if len(cycles) < 4:
        raise ValueError(f"an error needs four cycles; got {len(cycles)}.")
    values = []
    for orbit, shift in cycles:
        guess = _at_level(problem, parameter, np.asarray(orbit, float), shift, guess)
        values.append(guess)
    before, value = _limit(*values[-4:-1]), _limit(*values[-3:])
    return CriticalParameter(
        value=value,
        error=abs(value - before),
        periods=np.array([len(np.asarray(orbit)) for orbit, _ in cycles]),
        values=np.array(values),
    )


def _limit(a: float, b: float, c: float) -> float:
    """Of a geometric sequence."""
    return c - (c - b) ** 2 / (c - 2 * b + a)


def _at_level(problem: Problem, parameter: str, orbit, shift, guess: float) -> float:
    """Where the residue of a cycle is R*."""
    problem = problem.with_period(len(orbit))

    def residue(value: float) -> float:
        nonlocal orbit
        at = problem.with_parameters(**{parameter: value})
        cycle = find_long_cycle(at, orbit, 0.0, shift=shift, held=0)
        if not cycle.converged:
            raise ValueError(
                f"the cycle of period {len(orbit)} is lost at {parameter} = {value:g}: "
                f"{cycle.reason}; guess a smaller value."
            )
        orbit = cycle.orbit
        return greene_residue(cycle)[0]

    for value in np.linspace(float(problem.parameters[parameter]), guess, STEPS)[1:-1]:
        residue(float(value))
    excess = lambda value: np.log(residue(value) / LEVEL)
    root: Any = newton(excess, guess, x1=guess * (1 - NEARBY), tol=TOLERANCE)
    return float(root)
