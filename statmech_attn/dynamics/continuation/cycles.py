r"""One cycle at fixed parameters, by Newton (docs/theory/continuation.md, section 1).

Multipliers are the eigenvalues of $D_x f^k$ at a point of the cycle, the same at every
point; the cycle is stable where all lie inside the unit circle.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, PyTree

from statmech_attn import presentation
from statmech_attn.dynamics.continuation.arclength import correct
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import (
    CONVERGED,
    NOT_A_NUMBER,
    NOT_CONVERGED,
    RESULTS,
)
from statmech_attn.dynamics.exponents.cycles import HIDDEN
from statmech_attn.dynamics.exponents.frames import EPS
from statmech_attn.dynamics.options import Settings
from statmech_attn.labels import Variable


RETURNED = 1e-7  # relative distance of a point that counts as the same


class Cycle(eqx.Module):
    """A cycle that Newton's method has found, or where the iteration ended.

    `period` is the smallest number of iterates after which the orbit closes, which may
    be a divisor of the one that was asked for; `asked` is that one.

    Attributes:
        x: coordinates of a point of the cycle.
        value: of the free parameter.
        period: smallest number of iterates after which the orbit closes.
        asked: number of iterates that was asked for.
        multipliers: eigenvalues of the Jacobian of one period.
        result: index into `RESULTS`.
        iterations: of Newton's method.
    """

    x: Float[np.ndarray, " d"]
    value: float
    period: int
    asked: int
    multipliers: Complex[np.ndarray, " d"]
    result: int
    iterations: int

    _shown = (
        Variable("result", "", "result", flags=RESULTS),
        Variable("value", "", "parameter", symbol="p"),
        Variable("x", "coordinate", "a point of the cycle"),
        Variable("period", "", "smallest period", symbol="k"),
        Variable(
            "multiplier", "coordinate", "multipliers", symbol="μ", value="multipliers"
        ),
        Variable("stable", "", "stable"),
        Variable("iterations", "", "Newton steps", symbol="n"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def converged(self) -> bool:
        """Whether Newton's method converged."""
        return self.result == CONVERGED

    @property
    def reason(self) -> str:
        """How Newton's method ended, in a word."""
        return RESULTS[self.result]

    def explain(self) -> str | None:
        """Why there is no cycle where the map has no next state; None elsewhere."""
        if self.result != NOT_A_NUMBER:
            return None
        return (
            "The map gives no number here. A section does so where there is no return: "
            "its `first_return` of this state says whether it is an equilibrium, the "
            "orbit goes elsewhere, or touches the section."
        )

    @property
    def stable(self) -> bool:
        """All multipliers of the asked number of iterates inside the unit circle."""
        return self.converged and bool(np.all(np.abs(self.multipliers) < 1))


@presentation.knows_given
def find_cycle(
    problem: Problem, x: PyTree, value: float, settings: Settings | None = None
) -> Cycle:
    """Find a cycle, stable or not, near a state x at one value of `free`.

    Args:
        problem: the map, its parameters and the free one.
        x: a state, or its coordinates (d,).
        value: of the free parameter.
        settings: tolerance and number of iterations of Newton's method.

    Returns:
        The cycle, its smallest period and its multipliers; `result` states whether
        Newton converged.  It has not at an equilibrium on a section, which is no cycle
        of the map of returns (`explain`), and not where rounding hides the multipliers,
        beyond 4e14: `find_long_cycle` solves for all points then, in a hundred times
        the time.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> problem = Problem(logistic, jnp.zeros(1), {"r": 3.2}, "r", period=2)
        >>> cycle = find_cycle(problem, jnp.array([0.5]), 3.2)
        >>> cycle.period, round(float(cycle.multipliers[0].real), 6)
        (2, 0.16)
        >>> find_cycle(problem, jnp.array([0.7]), 3.2).period
        1
    """
    settings = settings or Settings()
    u = np.append(coordinates(problem, x), float(value))
    row = np.zeros_like(u)
    row[-1] = 1.0
    correction = correct(
        problem.residual,
        jnp.asarray(u),
        jnp.asarray(row),
        jnp.asarray(settings.tolerance),
        jnp.asarray(settings.max_iterations),
    )
    u, jacobian = np.asarray(correction.u), np.asarray(correction.jacobian)
    code = int(correction.code)
    if code == CONVERGED and EPS * np.abs(jacobian[:, :-1]).max() > HIDDEN:
        code = NOT_CONVERGED  # any point looks like a cycle: steps are below rounding
    sound = code == CONVERGED
    return Cycle(
        x=u[:-1],
        value=float(value),
        period=minimal_period(problem, u) if sound else int(problem.period),
        asked=int(problem.period),
        multipliers=multipliers(jacobian)
        if sound
        else np.full(u.size - 1, np.nan + 0j),
        result=code,
        iterations=int(correction.iterations),
    )


def coordinates(problem: Problem, x: PyTree) -> Float[Array, " d"]:
    """Coordinates of a state that is given as such or as its coordinates."""
    flat = problem.ravel(jax.tree.map(lambda leaf: jnp.asarray(leaf, float), x))
    if flat.shape != (problem.dimension,):
        raise ValueError(
            f"x must have {problem.dimension} coordinates; got {flat.size}."
        )
    return flat


def multipliers(jacobian: Float[np.ndarray, "d d+1"]) -> Complex[np.ndarray, " d"]:
    """Eigenvalues of D f^k, largest modulus first, from the Jacobian of f^k - x."""
    values = np.linalg.eigvals(jacobian[:, :-1] + np.eye(len(jacobian)))
    order = np.lexsort((-values.imag, -np.abs(values)))
    return values[order].astype(complex)


def minimal_period(problem: Problem, u: Float[np.ndarray, " d+1"]) -> int:
    """Smallest divisor of the period after which the orbit through u closes."""
    requested = int(problem.period)
    x = jnp.asarray(u[:-1])
    for k in (k for k in range(1, requested) if requested % k == 0):
        away = np.linalg.norm(
            iterated(problem, x, jnp.asarray(u[-1]), jnp.asarray(k)) - x
        )
        if away < RETURNED * (1 + np.linalg.norm(x)):
            return k
    return requested


@eqx.filter_jit
def iterated(problem: Problem, x, value, times) -> Float[Array, " d"]:
    """Coordinates so many iterates later, at a value of the free parameter."""
    parameters = {**problem.parameters, problem.free: value}
    return problem.iterate(x, parameters, times)
