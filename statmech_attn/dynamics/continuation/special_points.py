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

from collections.abc import Iterator

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
from statmech_attn.dynamics.continuation.cycles import minimal_period, multipliers
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
    reach.  `form` is the normal form, None where unresolved.

    Attributes:
        kind: one of `KINDS`.
        value: of the free parameter.
        x: coordinates of a point of the cycle.
        period: number of iterates after which the orbit closes.
        arclength: length of the branch up to this point.
        multipliers: eigenvalues of the Jacobian of one period.
        tangent: unit tangent of the branch.
        error: size of the last Newton step, and no less than what rounding moves the
            point by; NaN where unresolved.
        form: normal form with its coefficients.
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
        Variable("x", "coordinate", "a point of the cycle", line=False),
        Variable("arclength", "", "arclength", symbol="s", line=False),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


def events(problem: Problem, curve: Curve, a: Point, b: Point) -> list[SpecialPoint]:
    """The special points between two successive points, in order."""
    specials: list[SpecialPoint] = []
    for special in _events(problem, curve, a, b, SPLITS):
        again = specials and special.kind == specials[-1].kind == "unresolved"
        specials = specials[:-1] + [special] if again else [*specials, special]
    return specials


def point_at(problem: Problem, special: SpecialPoint) -> Point:
    """A special point as a point of its curve."""
    u = np.append(special.x, special.value)
    return Point(
        u=u,
        tangent=special.tangent,
        jacobian=_jacobian_of(problem, u),
        arclength=special.arclength,
        iterations=0,
    )


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
        yield _unresolved(problem, a)


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
    jacobian = _jacobian_of(problem, located.u)
    period = minimal_period(problem, located.u)
    halved = form.name == "pitchfork" and 2 * period == int(problem.period)
    return SpecialPoint(
        kind="period_halving" if halved else form.name,
        value=float(located.u[-1]),
        x=located.u[:-1],
        period=period,
        arclength=a.arclength + place * (b.arclength - a.arclength),
        multipliers=multipliers(jacobian),
        tangent=(1 - place) * a.tangent + place * b.tangent,
        error=located.error,
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
