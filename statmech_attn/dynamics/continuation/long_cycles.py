r"""Long cycles, all points at once (docs/theory/continuation.md, section 8).

Newton for one point of a cycle needs the Jacobian of its period, which loses all digits
where a multiplier nears $10^{16}$, and so does the orbit itself.  Here all points are
unknown (`multiple_shooting`), and multipliers are logarithms and angles: a frame is
carried along the points (`dynamics.cycles`), each at its place.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PyTree
from scipy.optimize import brentq

from statmech_attn import presentation
from statmech_attn.dynamics.continuation.arclength import (
    Curve,
    follow,
    Point,
    Scaled,
)
from statmech_attn.dynamics.continuation.branches import (
    edge_of,
    in_range,
    require_start,
)
from statmech_attn.dynamics.continuation.cycles import coordinates
from statmech_attn.dynamics.continuation.multiple_shooting import (
    columns_of,
    correct_orbit,
    determinant,
    Orbit,
    shooting,
    solution,
)
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import CONVERGED, RESULTS
from statmech_attn.dynamics.exponents.cycles import cycle_spectrum, ROUNDS
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents
from statmech_attn.dynamics.exponents.frames import EPS
from statmech_attn.dynamics.maps.systems import System
from statmech_attn.dynamics.options import Settings
from statmech_attn.labels import Variable
from statmech_attn.options import Interval, Numbers, Positive, WholeNumber


CLOSE_IN = 1e-13  # of a step, tolerance of the place of a bifurcation


class LongCycle(eqx.Module):
    """A cycle with all its points, or where Newton's iteration ended.

    Attributes:
        orbit: points of the cycle, one after another.
        value: of the free parameter.
        log_moduli: ln|mu| of the multipliers of one period, largest first.
        angles: of the multipliers, radians.
        error: of log_moduli, what rounding of points and Jacobians does to them.
        tangent: of the branch, in the last point's units; the parameter comes last.
        arclength: length of the branch up to this cycle.
        result: index into `RESULTS`.
        iterations: of Newton's method.
    """

    orbit: Float[np.ndarray, "k d"]
    value: float
    log_moduli: Float[np.ndarray, " d"]
    angles: Float[np.ndarray, " d"]
    error: Float[np.ndarray, " d"]
    tangent: Float[np.ndarray, " n+1"]
    arclength: float
    result: int
    iterations: int

    _shown = (
        Variable("result", "", "result", flags=RESULTS),
        Variable("value", "", "parameter", symbol="p"),
        Variable("x", "place coordinate", "points of the cycle", value="orbit"),
        Variable(
            "log_modulus",
            "coordinate",
            "logarithms of multipliers",
            symbol="ln |μ|",
            value="log_moduli",
            error="error",
        ),
        Variable(
            "angle", "coordinate", "angles of multipliers", "rad", "θ", value="angles"
        ),
        Variable("stable", "", "stable"),
        Variable("arclength", "", "arclength", symbol="s", line=False),
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

    @property
    def stable(self) -> bool:
        """All multipliers inside the unit circle."""
        return self.converged and bool(np.all(self.log_moduli < 0))


@presentation.knows_given
def find_long_cycle(
    problem: Problem,
    orbit: PyTree,
    value: float,
    *,
    shift: Numbers = 0.0,
    held: WholeNumber | None = None,
    settings: Settings | None = None,
) -> LongCycle:
    """Find a cycle, stable or not, by solving for all of its points.

    Cycles of one value may form a line, as those of a rotation or of a map that keeps
    areas nearly do; one of them is found, and the value, where a coordinate is held.

    Args:
        problem: the map, its parameters and the free one, and the period k.
        orbit: all points of the cycle, coordinates (k, d); or one state, from which the
            map is iterated.
        value: of the free parameter.
        shift: what is added to a state in one period, where coordinates are angles that
            are followed without the modulus; one number or (d,).
        held: coordinate of the first point that is held in place of the value.
        settings: tolerance and number of iterations of Newton's method.

    Returns:
        The cycle with its multipliers; `result` states whether Newton converged.

    Raises:
        ValueError: an orbit of another shape.

    Example:
        >>> import jax.numpy as jnp
        >>> henon = lambda z, p: jnp.stack([p["a"] - z[0]**2 + 0.3 * z[1], z[0]])
        >>> problem = Problem(henon, jnp.zeros(2), {"a": 6.0}, "a", period=6)
        >>> x = np.sqrt(6.0) * np.tile([1.0, 1.0, -1.0], 2)
        >>> start = np.stack([x, np.roll(x, 1)], axis=1)
        >>> cycle = find_long_cycle(problem, start, 6.0)
        >>> cycle.converged, round(float(cycle.log_moduli[0]))
        (True, 9)
    """
    settings = settings or Settings()
    residual, guess, scales = _posed(problem, orbit, value, shift, 1.0)
    row = np.zeros_like(guess)
    row[-1 if held is None else held] = 1.0
    arrays = guess / scales, row, settings.tolerance, settings.max_iterations
    correction = correct_orbit(
        Scaled(residual, jnp.asarray(scales)), *map(jnp.asarray, arrays)
    )
    point = Point(
        u=scales * np.asarray(correction.u),
        tangent=scales * np.asarray(correction.tangent),
        jacobian=correction.jacobian / columns_of(scales, problem.dimension),
        arclength=0.0,
        iterations=int(correction.iterations),
    )
    return read(problem, point, int(correction.code))


def _posed(problem: Problem, orbit: PyTree, value: float, shift, unit: float):
    """The equations of a cycle, a first guess, and units of length.

    Lengths are root mean squares over the points.
    """
    points = points_of(problem, orbit, value)
    k, d = points.shape
    guess = np.append(points, float(value))
    scales = np.append(np.full(k * d, np.sqrt(k)), unit)
    return Orbit(problem, shift_of(problem, shift)), guess, scales


def shift_of(problem: Problem, shift: Numbers) -> Float[Array, " d"]:
    """What is added to each coordinate in one period."""
    shape = (problem.dimension,)
    if np.shape(shift) not in ((), (1,), shape):
        raise ValueError(
            f"shift must be one number or of the shape {shape}; got {np.shape(shift)}."
        )
    return jnp.broadcast_to(jnp.asarray(shift, float), shape)


def points_of(
    problem: Problem, orbit: PyTree, value: float
) -> Float[np.ndarray, "k d"]:
    """All points of a cycle, from themselves or from one state."""
    shape = int(problem.period), problem.dimension
    if np.shape(orbit) == shape:
        return np.asarray(orbit, float)
    x = coordinates(problem, orbit)
    return np.asarray(_iterated(problem, x, np.asarray(value, float), shape[0]))


@eqx.filter_jit
def _iterated(problem: Problem, x, value, k: int):
    step = lambda x, _: (problem.next(x, value), x)
    return jax.lax.scan(step, x, None, length=k)[1]


class _AlongOrbit(eqx.Module):
    """The map with its derivatives, on points that are given."""

    problem: Problem

    def __call__(self, state, parameters):
        index, x = state
        points, value = parameters
        after = self.problem.next(x, value)
        index = (index + 1) % len(points)
        return index, points[index] + after - jax.lax.stop_gradient(after)


def _along(problem: Problem, orbit: np.ndarray, value: float):
    """Spectra of this cycle, as a function of its points."""
    system = System(_AlongOrbit(problem))
    at = lambda points: jax.tree.map(jnp.asarray, ((0, points[0]), (points, value)))
    state, parameters = at(orbit)
    rank = finite_exponents(system.at(parameters), state)
    system = System(_AlongOrbit(problem), rank=rank)
    return lambda orbit: cycle_spectrum(system, *at(orbit), period=len(orbit))


def _noise(point: Point, k: int, d: int) -> list[np.ndarray]:
    """By how much rounding of its images may have moved the points of a cycle."""
    rng, size = np.random.default_rng(0), 1 + np.abs(point.u[:-1]).reshape(k, d)
    rounding = [EPS * size * rng.standard_normal((k, d)) for _ in range(ROUNDS)]
    blocks = jnp.asarray(np.reshape(point.jacobian, (k, d, d + 1)))
    return [np.asarray(solution(blocks, jnp.asarray(kick))) for kick in rounding]


def read(problem: Problem, point: Point, code: int) -> LongCycle:
    """The cycle at a point of the curve, with its multipliers."""
    k, d = int(problem.period), problem.dimension
    orbit, value = point.u[:-1].reshape(k, d), float(point.u[-1])
    logs = angles = error = np.full(d, np.nan)
    if code == CONVERGED:
        along = _along(problem, orbit, value)
        spectrum = along(orbit)
        logs, angles = k * spectrum.exponents, spectrum.angles
        moved = [
            along(orbit + kick[:-1].reshape(k, d)).exponents
            for kick in _noise(point, k, d)
        ]
        gaps = np.abs(np.subtract(moved, spectrum.exponents))
        error = k * np.fmax(spectrum.stderr, gaps.max(axis=0))
    return LongCycle(
        orbit=orbit,
        value=value,
        log_moduli=logs,
        angles=angles,
        error=error,
        tangent=point.tangent,
        arclength=point.arclength,
        result=code,
        iterations=point.iterations,
    )


class LongSpecial(eqx.Module):
    """A bifurcation of a long cycle: "fold", "period_doubling" or "neimark_sacker".

    Attributes:
        kind: of bifurcation.
        cycle: at which it occurs.
    """

    kind: str = eqx.field(static=True)
    cycle: LongCycle


class LongBranch(Iterator[LongCycle]):
    """A branch of long cycles in one parameter; made by `follow_long_cycle`.

    `points` and `special` are what was found so far; `result` indexes `RESULTS`.
    """

    def __init__(self, problem: Problem, curve: Curve, within: Interval):
        self.problem = problem
        self.points: list[LongCycle] = []
        self.special: list[LongSpecial] = []
        self.unresolved: list[str] = []  # bifurcations that were not closed in on
        self._curve = curve
        self._within = within
        self._last: Point | None = None

    def __repr__(self) -> str:
        """One line for the branch, one for every bifurcation."""
        k, free = int(self.problem.period), self.problem.free
        ends = " to ".join(
            f"{p.value:.6g}" for p in (*self.points[:1], *self.points[-1:])
        )
        lines = [f"LongBranch of period {k}: {free} from {ends}, {self.reason}"]
        lines += [f"  {s.kind} at {free} = {s.cycle.value:.12g}" for s in self.special]
        return "\n".join(lines)

    def to_dataset(self) -> xr.Dataset:
        """The cycles that were found so far."""
        points = [point.to_dataset() for point in self.points]
        dataset = xr.concat(points, "point", combine_attrs="override")
        return dataset.rename(value=self.problem.free)

    @property
    def result(self) -> int:
        """A code that indexes `RESULTS`; "unfinished" while there is more to come."""
        return self._curve.result

    @property
    def reason(self) -> str:
        """How the continuation ended, in a word."""
        return RESULTS[self.result]

    def run(self) -> "LongBranch":
        """Follow the branch to its end."""
        for _ in self:
            pass
        return self

    def __next__(self) -> LongCycle:
        before, point = self._last, next(self._curve, None)
        if point is None and before is not None:
            point = edge_of(self._curve, before, self._within)
        if point is None:
            raise StopIteration
        cycle = read(self.problem, point, CONVERGED)
        if before is not None:
            self._compare(before, point, self.points[-1], cycle)
        self._last = point
        self.points.append(cycle)
        return cycle

    def _compare(self, a: Point, b: Point, before: LongCycle, after: LongCycle):
        """Close in on the bifurcations between two points, and name them."""
        change = np.subtract(_outside(after), _outside(before))
        turned = a.tangent[-1] * b.tangent[-1] < 0
        events = {
            "fold": turned,
            "branch_point": change[0] % 2 == 1 and not turned,
            "period_doubling": change[1] % 2 == 1,
            "neimark_sacker": change[2] and abs(change.sum()) == 2,
        }
        for kind in (kind for kind, happened in events.items() if happened):
            self._locate(kind, a, b)

    def _locate(self, kind: str, a: Point, b: Point) -> None:
        def point_at(fraction: float) -> Point:
            point = self._curve.between(a, b, fraction)
            if point is None:
                raise ValueError("the curve is lost")
            return point

        def test(fraction: float) -> float:
            return _TESTS[kind](self.problem, point_at(fraction))

        try:
            place: Any = brentq(test, 0, 1, xtol=CLOSE_IN)
        except ValueError:  # lost, or no change of sign
            self.unresolved.append(kind)
            return
        cycle = read(self.problem, point_at(place), CONVERGED)
        self.special.append(LongSpecial(kind, cycle))


def _parts(cycle: LongCycle) -> list[np.ndarray]:
    """Which multipliers are positive, negative, and complex."""
    positive, negative = cycle.angles == 0, np.abs(cycle.angles) == np.pi
    return [positive, negative, ~(positive | negative)]


def _outside(cycle: LongCycle) -> list[int]:
    """How many positive, negative and complex ones lie outside the unit circle."""
    return [int((cycle.log_moduli[part] > 0).sum()) for part in _parts(cycle)]


def _nearest_pair(problem: Problem, point: Point) -> float:
    """ln|mu| of the complex multiplier that is nearest to the unit circle."""
    cycle = read(problem, point, CONVERGED)
    logs = cycle.log_moduli[_parts(cycle)[2]]
    return float(logs[np.argmin(np.abs(logs))]) if logs.size else np.nan


def _determinant(multiplier: float, problem: Problem, point: Point) -> float:
    return float(determinant(jnp.asarray(point.jacobian), multiplier))


_TESTS = {
    "fold": lambda _, point: float(point.tangent[-1]),
    "branch_point": partial(_determinant, 1.0),
    "period_doubling": partial(_determinant, -1.0),
    "neimark_sacker": _nearest_pair,
}


def follow_long_cycle(
    problem: Problem,
    orbit: PyTree,
    value: float,
    *,
    shift: Numbers = 0.0,
    direction: Numbers = 1,
    within: Interval = (-np.inf, np.inf),
    settings: Settings | None = None,
    unit: Positive = 1.0,
) -> LongBranch:
    """Follow all points of a cycle, stable or unstable, in the free parameter.

    Args:
        problem: the map, its parameters and the free one, and the period k.
        orbit: as `find_long_cycle` takes it.
        value: the free parameter there.
        shift: what is added to a state in one period.
        direction: 1 or -1 for the parameter up or down at first, or a vector
            (k d + 1,), such as `tangent` of a cycle.
        within: allowed range of the parameter; the branch ends on its edge.
        settings: step sizes, of root mean squares over the points, and tolerances.
        unit: what counts as a unit of length in the parameter, beside 1 in x.

    Returns:
        A branch; `run()` computes it, and iterating over it gives one cycle after
        another.

    Raises:
        ValueError: an orbit of another shape, or an empty range.

    Example:
        >>> import jax.numpy as jnp
        >>> henon = lambda z, p: jnp.stack([p["a"] - z[0]**2 + 0.3 * z[1], z[0]])
        >>> problem = Problem(henon, jnp.zeros(2), {"a": 6.0}, "a", period=6)
        >>> x = np.sqrt(6.0) * np.tile([1.0, 1.0, -1.0], 2)
        >>> start = np.stack([x, np.roll(x, 1)], axis=1)
        >>> branch = follow_long_cycle(problem, start, 6.0, within=(5.9, 6.1)).run()
        >>> branch.reason, branch.points[-1].value
        ('left_range', 6.1)
    """
    require_start(within, value)
    low, high = within
    residual, start, scales = _posed(problem, orbit, value, shift, unit)
    curve = follow(
        residual,
        start,
        direction=direction,
        settings=settings,
        inside=lambda u: in_range(u[-1], low, high),
        scales=scales,
        method=shooting(problem.dimension),
    )
    return LongBranch(problem, curve, within)
