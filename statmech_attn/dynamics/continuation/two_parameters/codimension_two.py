r"""Test functions of codimension two along curves (docs/theory/two_parameters.md, 3).

Along a curve of critical cycles a second condition holds at single points.  Each has a
function of the point that is smooth there and changes its sign; with J = DF of the
cycle, v and w its critical right and left vectors, and mu all multipliers:

    degenerate coefficient  b, c, Re d              cusp, generalized flip, Chenciner
    <w, v>                                         1:1 (fold), 1:2 resonance (doubling)
    sin theta                                      1:1, 1:2 resonance (Neimark-Sacker)
    cos theta + 1/2,  cos theta                    1:3, 1:4 resonance
    prod (mu + 1), prod (mu - 1)                   a second multiplier at -1 or +1
    prod (mu_i mu_j - 1)                           a complex pair besides the critical

The coefficients b and c have poles where <w, v> = 0, and c and d where a second
multiplier is +1; they are multiplied by these functions, so that a pole is no change of
sign.  Products leave out the critical multipliers and are scaled factor by factor.
The sign of b is that for the direction v, which is continuous along the curve.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float

from statmech_attn.dynamics.continuation.augmented_systems import (
    DOUBLING,
    FOLD as LOCATE_FOLD,
    Located,
    TORUS,
)
from statmech_attn.dynamics.continuation.normal_forms import normal_form
from statmech_attn.dynamics.continuation.two_parameters.extended_systems import (
    Extended,
    FOLD,
    jacobian,
    NEIMARK_SACKER,
    Parts,
    PERIOD_DOUBLING,
)


LOCATED_AS = {FOLD: LOCATE_FOLD, PERIOD_DOUBLING: DOUBLING, NEIMARK_SACKER: TORUS}
POLES = ("overlap", "plus", "third")  # where the coefficient is not defined
NAMES = {
    FOLD: {
        "coefficient": "cusp",
        "overlap": "resonance_1_1",
        "minus": "fold_flip",
        "pair": "fold_neimark_sacker",
    },
    PERIOD_DOUBLING: {
        "coefficient": "generalized_flip",
        "overlap": "resonance_1_2",
        "plus": "fold_flip",
        "pair": "flip_neimark_sacker",
    },
    NEIMARK_SACKER: {
        "coefficient": "chenciner",
        "third": "resonance_1_3",
        "fourth": "resonance_1_4",
        "plus": "fold_neimark_sacker",
        "minus": "flip_neimark_sacker",
        "pair": "double_neimark_sacker",
    },
}
CODIMENSION_TWO = tuple(
    dict.fromkeys(name for kind in NAMES.values() for name in kind.values())
)


class Linear(NamedTuple):
    """Linearisation of a critical cycle: J, its multipliers, and the left vector."""

    jacobian: Float[np.ndarray, "d d"]
    multipliers: Complex[np.ndarray, " d"]
    left: np.ndarray  # (d,), unit length; complex for Neimark-Sacker


def linearise(system: Extended, parts: Parts, previous: Linear | None) -> Linear:
    """J, multipliers, and the left critical vector, oriented like the previous one."""
    matrix = np.asarray(jacobian(system, parts.state, parts.values))
    critical = np.exp(1j * float(parts.angle))
    if system.kind != NEIMARK_SACKER:
        critical = critical.real
    shifted = matrix - critical * np.eye(len(matrix))
    vector = np.linalg.svd(shifted)[0][:, -1]
    if system.kind != NEIMARK_SACKER and previous is not None:
        vector = vector * (1.0 if vector @ previous.left >= 0 else -1.0)
    return Linear(matrix, np.linalg.eigvals(matrix), vector)


def coefficient(system: Extended, parts: Parts) -> float:
    """Coefficient of the normal form: b, c or Re d (`normal_forms`); NaN at a pole."""
    free = system.problem.free  # any: the coefficient is that of the cycle alone
    values = system.at(parts.values)
    problem = system.problem.with_parameters(**values)
    u = np.append(parts.state, values[free])
    located = Located(u, float(parts.angle), 0.0)
    try:
        form = normal_form(problem, LOCATED_AS[system.kind], located)
    except np.linalg.LinAlgError:
        return np.nan
    if system.kind != FOLD:
        return form.coefficient
    return form.coefficient * float(np.sign(np.real(form.vector) @ parts.vector))


def tests(
    system: Extended, parts: Parts, linear: Linear, coefficient: float
) -> dict[str, float]:
    """Values of all test functions of the kind at one point, by name."""
    kind, critical = system.kind, np.exp(1j * float(parts.angle))
    others = _without(linear.multipliers, critical)
    values = {}
    if kind == NEIMARK_SACKER:
        others = _without(others, critical.conjugate())
        values |= {"third": critical.real + 0.5, "fourth": critical.real}
    values["plus"], values["minus"] = _near(others, 1.0), _near(others, -1.0)
    values["pair"] = _pairs(others)
    values["coefficient"] = coefficient
    if kind != NEIMARK_SACKER:
        values["overlap"] = float(linear.left @ np.asarray(parts.vector))
        values["coefficient"] *= values["overlap"]
    if kind != FOLD:
        values["coefficient"] *= values["plus"]
    return {name: float(values[name]) for name in NAMES[kind]}


def confirmed(name: str, linear: Linear, kind: str, angle: float) -> bool:
    """Whether a change of sign is what it is called: a pair must be a complex one.

    Two real multipliers with product one change the sign of the same function.
    """
    if name != "pair":
        return True
    critical = np.exp(1j * angle)
    others = _without(linear.multipliers, critical)
    if kind == NEIMARK_SACKER:
        others = _without(others, critical.conjugate())
    off = np.where(np.imag(others) > 0, np.abs(np.abs(others) - 1), np.inf)
    return bool(off.min(initial=np.inf) < 1e-4)


def _without(multipliers, critical):
    """All but the one nearest to the critical value."""
    return np.delete(multipliers, np.argmin(np.abs(multipliers - critical)))


def _near(multipliers, value: float) -> float:
    """prod (mu - value), each factor scaled to at most one in size."""
    return float(np.prod((multipliers - value) / (1 + np.abs(multipliers))).real)


def _pairs(multipliers) -> float:
    """prod (mu_i mu_j - 1) over all pairs, scaled in the same way."""
    i, j = np.triu_indices(len(multipliers), 1)
    product = multipliers[i] * multipliers[j]
    return float(np.prod((product - 1) / (1 + np.abs(product))).real)
