r"""What happens on a step along a branch (docs/theory/continuation.md, section 3).

Between two points a and b of a branch, with t the tangent and A the Jacobian of f^k,

    fold              the parameter's component of t changes sign
    branch point      det (A - 1, f_p; t) changes sign
    period doubling   det (A + 1) changes sign
    Neimark-Sacker    two multipliers cross the unit circle

The number of multipliers outside the circle, not the product $\mu_i \mu_j - 1$, is what
is tested, so a pair of real ones with product 1 is no event.  A step with more than one
event is split.  At a pitchfork the branch that bifurcates turns as well; at a
transcritical point none does, so that a turn on its step is a fold beside it.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Complex, Float

from statmech_attn import presentation
from statmech_attn.dynamics.continuation.arclength import (
    Curve,
    place_on_step,
    Point,
)
from statmech_attn.dynamics.continuation.augmented_systems import (
    BRANCHING,
    DOUBLING,
    FOLD,
    linearise,
    locate,
    Located,
    TORUS,
)
from statmech_attn.dynamics.continuation.cycles import (
    Logarithms,
    logarithms_shown,
    minimal_period,
    multipliers,
    multipliers_of,
    points_shown,
)
from statmech_attn.dynamics.continuation.multiple_shooting import determinant
from statmech_attn.dynamics.continuation.normal_forms import normal_form, NormalForm
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.labels import Variable


KINDS = (
    "fold",
    "period_doubling",
    "neimark_sacker",
    "transcritical",
    "pitchfork",
    "period_halving",
    "unresolved",
)
SPLITS = 12  # splits of a step in search of one event
SPLIT_AT = 0.46  # off the middle, where a symmetric step may have its event
REAL = 1e-6  # sine of an angle at which a multiplier is no member of a pair


class SpecialPoint(eqx.Module):
    """A bifurcation on a branch.

    `kind` is one of `KINDS`; "period_halving" is the end of a branch on one of half
    its period, "unresolved" several multipliers at once or a point that Newton did not
    reach.  Of several segments a "branch_point" is either of the two that are not told
    apart there.  `form` is the normal form, None where unresolved.

    Attributes:
        kind: one of `KINDS`.
        value: of the free parameter.
        x: coordinates of a point of the cycle.
        period: number of iterates after which the orbit closes.
        arclength: length of the branch up to this point.
        multipliers: eigenvalues of the Jacobian of one period.
        tangent: unit tangent of the branch.
        error: size of the last Newton step, and no less than what rounding moves the
            point by; NaN where unresolved, and not known of several segments.
        form: normal form with its coefficients; None of several segments.
        logarithms: of the multipliers, of several segments.
    """

    kind: str
    value: float
    x: Float[np.ndarray, "*m d"]
    period: int
    arclength: float
    multipliers: Complex[np.ndarray, " d"]
    tangent: Float[np.ndarray, " n+1"]
    error: float
    form: NormalForm | None
    logarithms: Logarithms | None = None

    _shown = (
        Variable("kind", "", "kind"),
        Variable("value", "", "parameter", symbol="p", error="error"),
        Variable("period", "", "iterates after which the orbit closes", symbol="k"),
        Variable(
            "coefficient",
            "",
            "coefficient of the normal form",
            value=lambda s: s.form.coefficient if s.form else np.nan,
        ),
        Variable(
            "criticality",
            "",
            "criticality",
            value=lambda s: s.form.criticality if s.form else "",
        ),
        Variable(
            "multiplier", "coordinate", "multipliers", symbol="μ", value="multipliers"
        ),
        *logarithms_shown(),
        *points_shown(line=False),
        Variable("arclength", "", "arclength", symbol="s", line=False),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


def events(
    problem: Problem, curve: Curve, a: Point, b: Point, ends: Sequence
) -> list[SpecialPoint]:
    """The special points between two successive points, in order.

    `ends` are the logarithms of the multipliers of several segments at both.
    """
    if problem.segments > 1:
        kinds = _changes_of_segments(a, b, ends)
        found = [_closed_in(problem, curve, a, b, kind) for kind in kinds]
        return sorted(found, key=lambda special: special.arclength)
    specials: list[SpecialPoint] = []
    for special in _events(problem, curve, a, b, SPLITS):
        again = specials and special.kind == specials[-1].kind == "unresolved"
        specials = specials[:-1] + [special] if again else [*specials, special]
    return specials


def point_at(special: SpecialPoint, near: Point) -> Point:
    """A special point as a point of its curve, with the Jacobian of one near it."""
    return dataclasses.replace(
        near,
        u=np.append(special.x, special.value),
        tangent=special.tangent,
        arclength=special.arclength,
    )


def _changes_of_segments(a: Point, b: Point, ends: Sequence) -> list[str]:
    """Kinds of the events on a step of several segments.

    Next to a fold a doubling may be nearer than any step, where no multiplier is
    negative at its other end: determinants tell.
    """
    flips = lambda mu: _determinant(mu, a) * _determinant(mu, b) < 0
    outside = np.array([[(x.moduli > 0) & part for part in _parts(x)] for x in ends])
    change = np.diff(outside.sum(axis=2), axis=0)[0]
    happened = {
        "fold": _turns(a, b),
        "branch_point": flips(1.0) and not _turns(a, b),
        "period_doubling": flips(-1.0),
        "neimark_sacker": change[1] and abs(change[0]) == 2,
    }
    return [kind for kind, happens in happened.items() if happens]


def _parts(logarithms) -> tuple[np.ndarray, np.ndarray]:
    """All multipliers, and the complex ones."""
    real = np.isin(np.abs(logarithms.angles), (0.0, np.pi))
    return np.ones_like(real), ~real


def _determinant(multiplier: float, point: Point) -> float:
    return float(determinant(jnp.asarray(point.jacobian), multiplier))


def _closed_in(problem, curve: Curve, a: Point, b: Point, kind: str) -> SpecialPoint:
    """The zero of the test of a kind between two points, by Brent's method."""

    def nearest_pair(point: Point) -> float:
        logarithms = multipliers_of(problem, point.u, point.jacobian)[1]
        assert logarithms is not None
        moduli = logarithms.moduli[_parts(logarithms)[1]]
        return moduli[np.argmin(np.abs(moduli))] if moduli.size else np.nan

    test = {
        "fold": lambda point: float(point.tangent[-1]),
        "branch_point": partial(_determinant, 1.0),
        "period_doubling": partial(_determinant, -1.0),
        "neimark_sacker": nearest_pair,
    }[kind]
    point = curve.zero(test, a, b)
    if point is None:
        return _special_at(problem, a, "unresolved")
    return _special_at(problem, point, kind)


def _events(problem, curve, a, b, splits) -> Iterator[SpecialPoint]:
    kinds = _changes(a, b)
    special = _located(problem, curve, a, b, kinds[0]) if len(kinds) == 1 else None
    if special is not None and _hides_a_fold(special, a, b):
        special = None
    middle = (
        curve.between(a, b, SPLIT_AT) if kinds and special is None and splits else None
    )
    if special is not None:
        yield special
    elif middle is not None:
        yield from _events(problem, curve, a, middle, splits - 1)
        yield from _events(problem, curve, middle, b, splits - 1)
    elif kinds:
        yield _special_at(problem, a, "unresolved")


def _hides_a_fold(special: SpecialPoint, a: Point, b: Point) -> bool:
    """Whether the branch turns on the step, but not at the branch point found on it.

    A branch turns where it meets another in a pitchfork; in a transcritical point it
    goes straight through.
    """
    return special.kind == "transcritical" and _turns(a, b)


def _turns(a: Point, b: Point) -> bool:
    return bool(a.tangent[-1] * b.tangent[-1] < 0)


def _changes(a: Point, b: Point) -> list[int]:
    """Kinds of the events on a step; several entries where it must be split."""
    branching = _flips(lambda p: np.vstack([p.jacobian, p.tangent]), a, b)
    folded = _turns(a, b) and not branching
    plus_one = lambda p: p.jacobian[:, :-1] + 2 * np.eye(len(p.jacobian))
    doubled = _flips(plus_one, a, b)
    pairs = abs(_outside(b) - _outside(a)) // 2
    kinds = [BRANCHING] * branching + [FOLD] * folded + [DOUBLING] * doubled
    return kinds + [TORUS] * pairs


def _flips(matrix_of, a: Point, b: Point) -> bool:
    sign = lambda point: np.linalg.slogdet(matrix_of(point))[0]
    return bool(sign(a) * sign(b) < 0)


def _outside(point: Point) -> int:
    return int(np.sum(np.abs(multipliers(point.jacobian)) > 1))


def _located(
    problem: Problem, curve: Curve, a: Point, b: Point, kind: int
) -> SpecialPoint | None:
    """Newton from the middle of the step; None unless it ends on the step."""
    angle = _critical_angle(a, b) if kind == TORUS else 0.0
    if angle is None:
        return None
    root = locate(problem.residual, kind, (a.u + b.u) / 2, angle)
    real = kind == TORUS and abs(np.sin(root.angle)) < REAL
    place = place_on_step(a, b, root.u, curve.scales)
    if real or not root.converged or place is None:
        return None
    return _special(problem, a, b, kind, root, place)


def _critical_angle(a: Point, b: Point) -> float | None:
    """Angle of the complex multiplier that is nearest to the circle at both ends."""
    values = np.concatenate([multipliers(point.jacobian) for point in (a, b)])
    pairs = values[np.imag(values) > 0]
    if pairs.size == 0:
        return None
    return float(np.angle(pairs[np.argmin(np.abs(np.abs(pairs) - 1))]))


def _special(problem, a: Point, b: Point, kind: int, located: Located, place: float):
    form = normal_form(problem, kind, located)
    period = minimal_period(problem, located.u)
    halved = form.name == "pitchfork" and 2 * period == int(problem.period)
    point = Point(
        u=located.u,
        tangent=(1 - place) * a.tangent + place * b.tangent,
        jacobian=_jacobian_of(problem, located.u),
        arclength=a.arclength + place * (b.arclength - a.arclength),
        iterations=0,
    )
    special = _special_at(problem, point, "period_halving" if halved else form.name)
    found = {"period": period, "error": located.error, "form": form}
    return dataclasses.replace(special, **found)


def _jacobian_of(problem: Problem, u):
    return np.asarray(linearise(problem.residual, jnp.asarray(u))[1])


def _special_at(problem: Problem, point: Point, kind: str) -> SpecialPoint:
    """A special point without a normal form."""
    values, logarithms = multipliers_of(problem, point.u, point.jacobian)
    return SpecialPoint(
        kind=kind,
        value=float(point.u[-1]),
        x=point.u[:-1].reshape(problem.shape),
        period=int(problem.period),
        arclength=point.arclength,
        multipliers=values,
        tangent=point.tangent,
        error=np.nan,
        form=None,
        logarithms=logarithms,
    )
