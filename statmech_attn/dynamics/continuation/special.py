r"""What happens on a step along a branch (docs/theory/continuation.md, section 3).

Between two points a and b of a branch, with t the tangent and A the Jacobian of f^k,

    fold              the parameter's component of t changes sign
    branch point      det (A - 1, f_p; t) changes sign
    period doubling   det (A + 1) changes sign
    Neimark-Sacker    two multipliers cross the unit circle, and none of the above

The number of multipliers outside the circle, not the product $\mu_i \mu_j - 1$, is what
is tested, so a pair of real ones with product 1 is no event.  A step with more than one
event is split.
"""

from collections.abc import Iterator

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Complex, Float

from statmech_attn.dynamics.continuation.arclength import Curve, Point
from statmech_attn.dynamics.continuation.cycles import minimal_period, multipliers
from statmech_attn.dynamics.continuation.locate import (
    BRANCHING,
    DOUBLING,
    FOLD,
    linearise,
    locate,
    Located,
    TORUS,
)
from statmech_attn.dynamics.continuation.normal_forms import normal_form, NormalForm
from statmech_attn.dynamics.continuation.problem import Problem


KINDS = (
    "fold",
    "period_doubling",
    "neimark_sacker",
    "transcritical",
    "pitchfork",
    "period_halving",
    "unresolved",
)
SPLITS = 12  # halvings of a step in search of one event
ALMOST = 0.05  # by how much of the step a located point may lie beyond its ends
AWAY = 2.0  # and by how many steps off its chord


class SpecialPoint(eqx.Module):
    """A bifurcation on a branch.

    `kind` is one of `KINDS`; "period_halving" is the end of a branch on one of half
    its period, "unresolved" several multipliers at once or a point that Newton did not
    reach.  `error` is the size of the last Newton step (NaN where unresolved);
    `form` the normal form, None where unresolved.
    """

    kind: str
    value: float
    x: Float[np.ndarray, " d"]
    period: int
    arclength: float
    multipliers: Complex[np.ndarray, " d"]
    tangent: Float[np.ndarray, " d+1"]
    error: float
    form: NormalForm | None


def events(problem: Problem, curve: Curve, a: Point, b: Point) -> list[SpecialPoint]:
    """The special points between two successive points, in order."""
    found: list[SpecialPoint] = []
    for special in _events(problem, curve, a, b, SPLITS):
        again = found and special.kind == found[-1].kind == "unresolved"
        found = found[:-1] + [special] if again else [*found, special]
    return found


def _events(problem, curve, a, b, splits) -> Iterator[SpecialPoint]:
    kinds = _changes(a, b)
    found = _located(problem, a, b, kinds[0]) if len(kinds) == 1 else None
    middle = curve.between(a, b, 0.5) if kinds and found is None and splits else None
    if found is not None:
        yield found
    elif middle is not None:
        yield from _events(problem, curve, a, middle, splits - 1)
        yield from _events(problem, curve, middle, b, splits - 1)
    elif kinds:
        yield _unresolved(problem, a)


def _changes(a: Point, b: Point) -> list[int]:
    """Kinds of the events on a step; several entries where it must be split."""
    branching = _flips(_bordered, a, b)
    folded = bool(a.tangent[-1] * b.tangent[-1] < 0) and not branching
    doubled = _flips(lambda point: _shifted(point, 1.0), a, b)
    at_one = _flips(lambda point: _shifted(point, -1.0), a, b)
    crossings = abs(_outside(b) - _outside(a)) - (at_one + doubled)
    kinds = [BRANCHING] * branching + [FOLD] * folded + [DOUBLING] * doubled
    return kinds + [TORUS] * max(crossings // 2, 0)


def _flips(matrix_of, a: Point, b: Point) -> bool:
    sign = lambda point: np.linalg.slogdet(matrix_of(point))[0]
    return bool(sign(a) * sign(b) < 0)


def _bordered(point: Point):
    return np.vstack([point.jacobian, point.tangent])


def _shifted(point: Point, shift: float):
    """A + shift."""
    return point.jacobian[:, :-1] + (1 + shift) * np.eye(len(point.jacobian))


def _outside(point: Point) -> int:
    return int(np.sum(np.abs(multipliers(point.jacobian)) > 1))


def _located(problem: Problem, a: Point, b: Point, kind: int) -> SpecialPoint | None:
    """Newton from the middle of the step; None unless it ends on the step."""
    chord = b.u - a.u
    angle = _critical_angle(a, b) if kind == TORUS else 0.0
    if angle is None:
        return None
    found = locate(problem.residual, kind, (a.u + b.u) / 2, angle)
    place = float((found.u - a.u) @ chord / (chord @ chord))
    away = np.linalg.norm(found.u - a.u - place * chord) / np.linalg.norm(chord)
    on_step = -ALMOST <= place <= 1 + ALMOST and away < AWAY
    if not (found.converged and on_step):
        return None
    return _special(problem, a, b, kind, found, place)


def _critical_angle(a: Point, b: Point) -> float | None:
    """Angle of the complex multiplier that is nearest to the circle at both ends."""
    values = np.concatenate([multipliers(point.jacobian) for point in (a, b)])
    pairs = values[np.imag(values) > 0]
    if pairs.size == 0:
        return None
    return float(np.angle(pairs[np.argmin(np.abs(np.abs(pairs) - 1))]))


def _special(problem, a: Point, b: Point, kind: int, found: Located, place: float):
    form = normal_form(problem.residual, kind, found)
    jacobian = _jacobian_of(problem, found.u)
    period = minimal_period(problem, found.u)
    halved = form.name == "pitchfork" and 2 * period == int(problem.period)
    return SpecialPoint(
        kind="period_halving" if halved else form.name,
        value=float(found.u[-1]),
        x=found.u[:-1],
        period=period,
        arclength=a.arclength + place * (b.arclength - a.arclength),
        multipliers=multipliers(jacobian),
        tangent=(1 - place) * a.tangent + place * b.tangent,
        error=found.error,
        form=form,
    )


def _jacobian_of(problem: Problem, u):
    return np.asarray(linearise(problem.residual, jnp.asarray(u))[1])


def _unresolved(problem: Problem, a: Point) -> SpecialPoint:
    return SpecialPoint(
        kind="unresolved",
        value=float(a.u[-1]),
        x=a.u[:-1],
        period=int(problem.period),
        arclength=a.arclength,
        multipliers=multipliers(a.jacobian),
        tangent=a.tangent,
        error=np.nan,
        form=None,
    )
