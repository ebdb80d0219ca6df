r"""Pseudo-arclength continuation of a curve of zeros (docs/theory/continuation.md, 2).

The zeros of a residual $G: R^{n+1} \to R^n$ form curves where its Jacobian has full
rank. From a point u with unit tangent t the next one, a step h further, is the zero of

    G(v) = 0,    t . (v - u) = h

found by Newton from the prediction u + h t; the bordered matrix (DG; t) is regular at
folds.  Steps shrink when Newton fails, or when the Jacobian has changed by more than
the fraction `bend` of the largest one met (it may vanish where branches cross): a
change that does not shrink with the step is a kink.  The sign of det (DG; t) is
constant along a curve: a step over which it changes must have a branch point on it, or
it has landed on another curve.

Lengths are Euclidean in u divided by `scales`.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import brentq

from statmech_attn.batches import require_double
from statmech_attn.dynamics.continuation.augmented_systems import BRANCHING, locate
from statmech_attn.dynamics.continuation.correction import (
    correct,
    Correction,
    dense,
    Linearised,
    Scaled,
)
from statmech_attn.dynamics.continuation.results import (
    CLOSED,
    CONVERGED,
    DIVERGED,
    LEFT_RANGE,
    MAX_POINTS,
    NOT_CONVERGED,
    NOT_DIFFERENTIABLE,
    RESULTS,
    UNFINISHED,
)
from statmech_attn.dynamics.options import Settings
from statmech_attn.options import Numbers


LARGEST_TURN = 0.45  # of the unit tangent over a step
OFF = 0.25  # of a step: how far a point may lie from its prediction
SMALL = 1e-4  # of the largest step
ALMOST = 0.05  # by how much of a step a located point may lie beyond its ends
AWAY = 2.0  # and by how many steps off its chord
NEAR_START = 0.05  # of a step: distance at which a curve has come back to its start
CLOSE_IN = 1e-13  # of a step, tolerance of the place where a function is zero
GROWTH = 1.5
EASY = 3  # Newton iterations of a step after which the next may be longer


class Point(eqx.Module):
    """A point of a curve, `u` (n+1,), with its unit tangent and Jacobian there.

    Attributes:
        u: coordinates, the state and then the free parameter.
        tangent: unit tangent of the curve.
        jacobian: derivative of the residual in u.
        arclength: length of the curve up to this point.
        iterations: Newton iterations that the point took.
    """

    u: Float[np.ndarray, " n+1"]
    tangent: Float[np.ndarray, " n+1"]
    jacobian: Float[np.ndarray, "n n+1"]
    arclength: float
    iterations: int


class Method(NamedTuple):
    """How a curve is corrected, by the form of its Jacobian.

    Attributes:
        linearise: the equations of a step of Newton's method, as `dense`.
        orientation: of a point, as `_orientation`.
        columns: units of length of the last axis of Jacobians, from `scales`.
        branching: whether branch points are looked for on a step.
    """

    linearise: Callable[..., Linearised]
    orientation: Callable[[Point], float]
    columns: Callable[[np.ndarray], np.ndarray]
    branching: bool


class Curve(Iterator[Point]):
    """A curve of zeros, point by point: iterate to go on, stop at any time.

    `points` are those found so far; `result` is a code that indexes `RESULTS`,
    "unfinished" while there is more to come; `outside` is the first point that is not
    `inside`, where the curve has left.
    """

    def __init__(
        self,
        residual,
        start,
        *,
        direction,
        settings,
        inside,
        scales,
        method,
    ):
        self._method = method
        self._columns = self._method.columns(scales)
        self.settings = settings
        self.scales = scales
        self.points: list[Point] = []
        self.result: int = UNFINISHED
        self.outside: Point | None = None
        self._residual = Scaled(residual, jnp.asarray(scales))
        self._start = start / scales
        self._row = direction
        self._inside = inside
        self._step = settings.first_step
        self._size = 0.0  # largest norm of the Jacobian so far

    @property
    def reason(self) -> str:
        """How the continuation ended, in a word."""
        return RESULTS[self.result]

    def __next__(self) -> Point:
        if self.result != UNFINISHED:
            raise StopIteration
        point = self._advance() if self.points else self._begin()
        if point is None:
            raise StopIteration
        self.points.append(point)
        return point

    def leave(self, outside: Point) -> None:
        """End before the last point: the way to it has led through one outside."""
        self.points.pop()
        self.result, self.outside = LEFT_RANGE, outside

    def _begin(self) -> Point | None:
        corrected = self._correct(self._start, self._row)
        self.result = int(corrected.code) if corrected.code != CONVERGED else UNFINISHED
        if self.result == UNFINISHED and not self._inside(self._unscaled(corrected)):
            self.result = LEFT_RANGE
        self._size = float(np.linalg.norm(corrected.jacobian))
        return None if self.result != UNFINISHED else self._point(corrected, 0.0)

    def _advance(self) -> Point | None:
        last = self.points[-1]
        if len(self.points) >= self.settings.max_points:
            self.result = MAX_POINTS
            return None
        u, tangent = last.u / self.scales, last.tangent / self.scales
        while True:
            step = self._step
            corrected = self._correct(u + step * tangent, tangent)
            code = self._accept(last, corrected, u + step * tangent)
            if code == CONVERGED:
                break
            if step <= self.settings.smallest_step:
                self.result = self._diagnose(code, u, tangent, step)
                return None
            self._step = max(step / 2, self.settings.smallest_step)
        length = float(np.linalg.norm(corrected.u - u))
        return self._goes_on(last, self._point(corrected, last.arclength + length))

    def _accept(self, last: Point, correction: Correction, guess) -> int:
        """Whether the step may be taken, and may be followed by a longer one."""
        if correction.code != CONVERGED:
            return int(correction.code)
        if np.linalg.norm(correction.u - guess) > OFF * self._step:
            return NOT_CONVERGED
        size = max(self._size, float(np.linalg.norm(correction.jacobian)))
        change = (
            np.linalg.norm(correction.jacobian - last.jacobian * self._columns) / size
        )
        if change > self.settings.bend:
            return NOT_DIFFERENTIABLE
        turn = np.linalg.norm(correction.tangent - last.tangent / self.scales)
        if turn > LARGEST_TURN or self._jumps(last, self._point(correction, 0.0)):
            return NOT_CONVERGED
        self._size = size
        if correction.iterations <= EASY and change < self.settings.bend / 2:
            self._step = min(GROWTH * self._step, self.settings.largest_step)
        return CONVERGED

    def _jumps(self, last: Point, point: Point) -> bool:
        """Whether the point lies on another curve.

        The orientation differs there.  On one curve it changes only at a branch point,
        which is then found between the two; where it is not, a step much smaller than
        the largest one is taken in good faith.
        """
        small = self._step <= SMALL * self.settings.largest_step
        orientation = self._method.orientation
        if small or orientation(last) == orientation(point):
            return False
        if not self._method.branching:
            return True
        residual = self._residual.residual
        corrected = locate(residual, BRANCHING, (last.u + point.u) / 2)
        place = place_on_step(last, point, corrected.u, self.scales)
        return not corrected.converged or place is None

    def _diagnose(self, code: int, u, tangent, step) -> int:
        """Why the smallest step failed: a tangent is no tangent at a kink or a jump."""
        value = self._residual(jnp.asarray(u + 2 * step * tangent))
        off = np.linalg.norm(value) > self.settings.bend * step * self._size
        return NOT_DIFFERENTIABLE if code == NOT_CONVERGED and off else code

    def _goes_on(self, last: Point, point: Point) -> Point | None:
        """The point, the first one again where the curve closes, or None at an end."""
        if not self._inside(point.u):
            self.result, self.outside = LEFT_RANGE, point
        elif np.linalg.norm(point.u / self.scales) > self.settings.bound:
            self.result = DIVERGED
        elif len(self.points) > 1 and self.passes(self.points[0], last, point):
            self.result = CLOSED
            length = np.linalg.norm((self.points[0].u - last.u) / self.scales)
            arclength = last.arclength + float(length)
            return dataclasses.replace(self.points[0], arclength=arclength)
        return None if self.result != UNFINISHED else point

    def passes(self, first: Point, last: Point, point: Point) -> bool:
        """Whether the arc from `last` to `point` runs through a point, along it."""
        chord = (point.u - last.u) / self.scales
        length = float(np.linalg.norm(chord))
        offset = (first.u - last.u) / self.scales
        place = float(chord @ offset) / length**2
        if not 0 < place <= 1:
            return False
        near = (interpolate(last, point, place) - first.u) / self.scales
        along = float(first.tangent / self.scales @ (point.tangent / self.scales))
        return bool(np.linalg.norm(near) < NEAR_START * length and along > 0)

    def _correct(self, guess, row) -> Correction:
        corrected = correct(
            self._residual,
            jnp.asarray(guess),
            jnp.asarray(row),
            jnp.asarray(self.settings.tolerance),
            jnp.asarray(self.settings.max_iterations),
            self._method.linearise,
        )
        return jax.tree.map(np.asarray, corrected)

    def _unscaled(self, correction: Correction):
        return correction.u * self.scales

    def _point(self, correction: Correction, arclength: float) -> Point:
        return Point(
            u=np.asarray(correction.u) * self.scales,
            tangent=np.asarray(correction.tangent) * self.scales,
            jacobian=np.asarray(correction.jacobian) / self._columns,
            arclength=arclength,
            iterations=int(correction.iterations),
        )

    def between(self, a: Point, b: Point, fraction: float) -> Point | None:
        """The point of the curve at a fraction of the way from a to b; None if lost."""
        arclength = a.arclength + fraction * (b.arclength - a.arclength)
        return self.onto(interpolate(a, b, fraction), b.u - a.u, arclength)

    def zero(self, test: Callable[[Point], float], a: Point, b: Point) -> Point | None:
        """The point between two at which a function changes its sign; None if lost."""

        def value(fraction: float) -> float:
            point = self.between(a, b, fraction)
            return np.nan if point is None else test(point)

        try:
            return self.between(a, b, zero_of(value))
        except ValueError:  # not a number, or no change of sign after all
            return None

    def onto(self, guess, direction, arclength: float) -> Point | None:
        """The point of the curve in the plane through `guess` across `direction`."""
        row = direction / self.scales
        corrected = self._correct(guess / self.scales, row / np.linalg.norm(row))
        return (
            self._point(corrected, arclength) if corrected.code == CONVERGED else None
        )


def follow(
    residual: Callable[[Float[Array, " n+1"]], Float[Array, " n"]],
    start: Annotated[Numbers, "n+1"],
    *,
    direction: Numbers = 1,
    settings: Settings | None = None,
    inside: Callable[[Float[np.ndarray, " n+1"]], bool] | None = None,
    scales: Annotated[Numbers, "n+1"] | None = None,
    method: Method | None = None,
) -> Curve:
    """Follow the curve of zeros of any JAX residual through a point near `start`.

    The first point is the zero in the plane through `start` across `direction`, which
    its tangent follows: a vector, or 1 or -1 for the last coordinate.  `residual` is
    R^{n+1} -> R^n, an `eqx.Module` or a function defined once, so that it is compiled
    once; `scales` are units of length of the coordinates.
    """
    require_double()
    first = np.asarray(start, float)
    units = np.ones_like(first) if scales is None else np.asarray(scales, float)
    if units.shape != first.shape or not (units > 0).all():
        raise ValueError(f"scales must be {first.size} positive numbers; got {units}.")
    out = jax.eval_shape(residual, jnp.asarray(first)).shape
    if first.ndim != 1 or out != (first.size - 1,):
        raise ValueError(
            "residual must map (n+1,) to (n,); "
            f"got {first.shape} to {out} at this start."
        )
    return Curve(
        residual,
        first,
        direction=_unit(direction, units),
        settings=settings or Settings(),
        inside=inside or (lambda u: True),
        scales=units,
        method=method or DENSE,
    )


def _unit(direction, scales):
    if np.ndim(direction) == 0:
        if direction not in (1, -1):
            raise ValueError(f"direction must be 1, -1 or a vector; got {direction}.")
        return np.append(np.zeros(scales.size - 1), float(direction))
    row = np.asarray(direction, float) / scales
    if row.shape != scales.shape or not np.linalg.norm(row) > 0:
        raise ValueError(
            f"direction must be a non-zero vector {scales.shape}; got {row.shape}."
        )
    return row / np.linalg.norm(row)


def _orientation(point: Point) -> float:
    """Sign of det (DG; t): it changes at branch points only, or between curves."""
    matrix = np.vstack([point.jacobian, point.tangent])
    return float(np.linalg.slogdet(matrix)[0])


DENSE = Method(dense, _orientation, lambda scales: scales, True)


def zero_of(function: Callable[[float], float]) -> float:
    """Zero in [0, 1] of a function of opposite signs at the ends."""
    root: Any = brentq(function, 0.0, 1.0, xtol=CLOSE_IN)
    return float(root)


def place_on_step(a: Point, b: Point, u, scales) -> float | None:
    """How far along the chord from a to b u lies, 0 to 1; None if not near it."""
    chord, offset = (b.u - a.u) / scales, (u - a.u) / scales
    place = float(offset @ chord / (chord @ chord))
    away = np.linalg.norm(offset - place * chord) / np.linalg.norm(chord)
    return place if -ALMOST <= place <= 1 + ALMOST and away < AWAY else None


def interpolate(a: Point, b: Point, fraction: float) -> Float[np.ndarray, " n+1"]:
    """Point at a fraction of the way from a to b, by cubic Hermite interpolation."""
    s, length = fraction, b.arclength - a.arclength
    return (
        (1 + 2 * s) * (1 - s) ** 2 * a.u
        + s * (1 - s) ** 2 * length * a.tangent
        + s**2 * (3 - 2 * s) * b.u
        - s**2 * (1 - s) * length * b.tangent
    )
