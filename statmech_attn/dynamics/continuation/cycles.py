r"""One cycle at fixed parameters, by Newton (docs/theory/continuation.md, section 1).

Multipliers are the eigenvalues of $D_x f^k$ at a point of the cycle, the same at every
point; the cycle is stable where all lie inside the unit circle.  Of several segments
(section 8) they are logarithms and angles: a frame is carried along the points
(`exponents.cycles`), each at its place.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, PyTree

from statmech_attn import presentation
from statmech_attn.dynamics.continuation.correction import correct, Scaled
from statmech_attn.dynamics.continuation.multiple_shooting import method_of, solution
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import (
    CONVERGED,
    NOT_A_NUMBER,
    NOT_CONVERGED,
    RESULTS,
)
from statmech_attn.dynamics.exponents.cycles import HIDDEN, ROUNDS, spectrum_of
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents
from statmech_attn.dynamics.exponents.frames import EPS
from statmech_attn.dynamics.maps.orbit_equations import OnOrbit
from statmech_attn.dynamics.maps.systems import System
from statmech_attn.dynamics.options import Settings
from statmech_attn.labels import Variable
from statmech_attn.options import WholeNumber


RETURNED = 1e-7  # relative distance of a point that counts as the same


class Logarithms(NamedTuple):
    """Multipliers of any size, largest first.

    Attributes:
        moduli: ln|mu|.
        angles: radians.
        error: of ln|mu|, what rounding of points and Jacobians does to them.
    """

    moduli: Float[np.ndarray, "*n d"]
    angles: Float[np.ndarray, "*n d"]
    error: Float[np.ndarray, "*n d"]


def points_shown(dims: str = "", of: str = "x", line: bool = True):
    """Rows of the points of cycles: of one, or of all segments, a place each."""

    def points(places: bool):
        axes = 1 + places + len(dims.split())
        read = lambda shown: getattr(shown, of)
        return lambda shown: read(shown) if read(shown).ndim == axes else None

    rows = ("coordinate", "a point of the cycle"), ("place coordinate", "its points")
    return tuple(
        Variable("x", f"{dims} {own}".strip(), words, value=points(n > 0), line=line)
        for n, (own, words) in enumerate(rows)
    )


def logarithms_shown(dims: str = "") -> tuple[Variable, ...]:
    """Rows of the logarithms of multipliers, where there are any."""

    def of(name: str):
        return lambda shown: shown.logarithms and getattr(shown.logarithms, name)

    dims = f"{dims} coordinate".strip()
    words = "logarithms of multipliers", "angles of multipliers"
    return (
        Variable(
            "log_modulus",
            dims,
            words[0],
            symbol="ln |μ|",
            value=of("moduli"),
            error=of("error"),
        ),
        Variable("angle", dims, words[1], "rad", "θ", value=of("angles")),
    )


class Cycle(eqx.Module):
    """A cycle that Newton's method has found, or where the iteration ended.

    `period` is the smallest number of iterates after which the orbit closes, which may
    be a divisor of the one that was asked for; `asked` is that one.

    Attributes:
        x: coordinates of a point of the cycle, or of those of all segments.
        value: of the free parameter.
        period: smallest number of iterates after which the orbit closes.
        asked: number of iterates that was asked for.
        multipliers: eigenvalues of the Jacobian of one period.
        result: index into `RESULTS`.
        iterations: of Newton's method.
        logarithms: of the multipliers, of several segments; None of one.
    """

    x: Float[np.ndarray, "*m d"]
    value: float
    period: int
    asked: int
    multipliers: Complex[np.ndarray, " d"]
    result: int
    iterations: int
    logarithms: Logarithms | None = None

    _shown = (
        Variable("result", "", "result", flags=RESULTS),
        Variable("value", "", "parameter", symbol="p"),
        *points_shown(),
        Variable("period", "", "smallest period", symbol="k"),
        Variable(
            "multiplier", "coordinate", "multipliers", symbol="μ", value="multipliers"
        ),
        *logarithms_shown(),
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
    problem: Problem,
    x: PyTree,
    value: float,
    settings: Settings | None = None,
    *,
    held: WholeNumber | None = None,
) -> Cycle:
    """Find a cycle, stable or not, near a state x at one value of `free`.

    Cycles of one value may form a line, as those of a rotation or of a map that keeps
    areas nearly do; one of them is found, and the value, where a coordinate is held.

    Args:
        problem: the map, its parameters and the free one.
        x: a state, or its coordinates (d,); or points of all segments, (m, d).
        value: of the free parameter.
        settings: tolerance and number of iterations of Newton's method.
        held: coordinate of the first point that is held in place of the value.

    Returns:
        The cycle, its smallest period and its multipliers; `result` states whether
        Newton converged.  It has not at an equilibrium on a section, which is no cycle
        of the map of returns (`explain`), and not where rounding hides the multipliers,
        beyond 4e14: a problem of as many segments as iterates is solved for all points
        then, in a hundred times the time.

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
    guess, scales = first_guess(problem, x, value)
    row = np.zeros_like(guess)
    row[-1 if held is None else held] = 1.0
    arrays = guess / scales, row, settings.tolerance, settings.max_iterations
    method = method_of(problem)
    correction = correct(
        Scaled(problem.residual, jnp.asarray(scales)),
        *map(jnp.asarray, arrays),
        linearise=method.linearise,
    )
    u = scales * np.asarray(correction.u)
    jacobian = np.asarray(correction.jacobian) / method.columns(scales)
    code = int(correction.code)
    hidden = problem.segments == 1 and code == CONVERGED
    if hidden and EPS * np.abs(jacobian[:, :-1]).max() > HIDDEN:
        code = NOT_CONVERGED  # any point looks like a cycle: steps are below rounding
    sound = code == CONVERGED
    values, logarithms = np.full(problem.dimension, np.nan + 0j), None
    if sound:
        values, logarithms = multipliers_of(problem, u, jacobian)
    return Cycle(
        x=u[:-1].reshape(problem.shape),
        value=float(value) if held is None else float(u[-1]),
        period=minimal_period(problem, u) if sound else int(problem.period),
        asked=int(problem.period),
        multipliers=values,
        result=code,
        iterations=int(correction.iterations),
        logarithms=logarithms,
    )


def first_guess(problem: Problem, x: PyTree, value: float, unit: float = 1.0):
    """Coordinates u = (x, p) to begin from, and their units of length.

    Lengths are root mean squares over points.
    """
    m = problem.segments
    if m > 1 and np.shape(x) == problem.shape:
        points = np.ravel(np.asarray(x, float))
    else:
        points = coordinates(problem, x)
        if m > 1:
            points = np.ravel(_followed(problem, points, np.asarray(value, float)))
    scales = np.append(np.full(len(points), np.sqrt(m)), unit)
    return np.append(points, float(value)), scales


@eqx.filter_jit
def _followed(problem: Problem, x, value):
    step = lambda x, _: (problem.segment(x, value), x)
    return jax.lax.scan(step, x, None, length=problem.segments)[1]


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


def multipliers_of(problem: Problem, u: Float[np.ndarray, " n+1"], jacobian):
    """Multipliers of a cycle; of several segments with their `Logarithms`."""
    if problem.segments == 1:
        return multipliers(jacobian), None
    m, d = problem.shape
    along = _along(problem, u)
    moduli, error, angles = along(u)
    rng = np.random.default_rng(0)
    rounding = EPS * (1 + np.abs(u[:-1])).reshape(m, d)
    for _ in range(ROUNDS):
        kick = jnp.asarray(rounding * rng.standard_normal((m, d)))
        moved = along(u + np.asarray(solution(jnp.asarray(jacobian), kick)))[0]
        error = np.fmax(error, np.abs(moved - moduli))
    with np.errstate(over="ignore"):
        values = np.exp(moduli + 1j * angles)
    return values, Logarithms(moduli, angles, error)


def _along(problem: Problem, u: Float[np.ndarray, " n+1"]):
    """ln|mu|, errors and angles of cycles near u, as functions of their points."""
    m, value = problem.segments, jnp.asarray(u[-1])
    parameters = {**problem.parameters, problem.free: value}
    one = jnp.asarray(u[: problem.dimension])
    rank = finite_exponents(System(problem.step).at(parameters), one)
    map = System(problem.segment, rank=rank).at(value)

    def read(u):
        points = jnp.asarray(u[:-1].reshape(problem.shape))
        on_orbit = OnOrbit(map, points[0], points, jnp.asarray(m))
        found = spectrum_of(on_orbit, (jnp.asarray(0), points[0]), m)
        return m * found.exponents, m * found.stderr, found.angles

    return read


def minimal_period(problem: Problem, u: Float[np.ndarray, " d+1"]) -> int:
    """Smallest divisor of the period after which the orbit through u closes."""
    requested, m = int(problem.period), problem.segments
    if m > 1:
        points = u[:-1].reshape(problem.shape)
        near = RETURNED * (1 + np.linalg.norm(points))
        away = lambda q: np.linalg.norm(np.roll(points, -q, axis=0) - points)
        parts = (q for q in range(1, m) if m % q == 0 and away(q) < near)
        return next(parts, m) * requested // m
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
