"""The data set of a bifurcation diagram: branches, special points, curves.

docs/hdf5.md lists it.  Branches and curves have different lengths: rows are padded with
NaN along `point` and `curve_point`.  What was not found has no variables.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from statmech_attn.dynamics.continuation.codimension_two import CODIMENSION_TWO
from statmech_attn.dynamics.continuation.curves import CURVE_RESULTS
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import RESULTS
from statmech_attn.dynamics.continuation.special import KINDS
from statmech_attn.dynamics.continuation.turns import Turns
from statmech_attn.labels import Variable, Variables


if TYPE_CHECKING:
    from statmech_attn.dynamics.continuation.bifurcation_diagram import (
        BifurcationDiagram,
    )


CRITICALITY = ("", "supercritical", "subcritical", "degenerate")

# Braces of `variables` beside those of `labels.Variable`.
_ROWS = (
    Variable("{free}", "branch point", "{free}", "1", "{free}", group=""),
    Variable(
        "arclength", "branch point", "length along the branch, in units of its steps",
        "1", "s", group="", note="from the cycle that was simulated, negative below it",
    ),
    Variable(
        "state", "branch point coordinate",
        "{state}", "1", "{state_symbol}",
    ),
    Variable(
        "multiplier_re", "branch point multiplier",
        "multipliers of the cycle, real part", "1", "Re μ",
    ),
    Variable(
        "multiplier_im", "branch point multiplier",
        "multipliers of the cycle, imaginary part", "1", "Im μ",
    ),
    Variable(
        "n_unstable", "branch point", "multipliers outside the unit circle", "1",
        "n_u", group="",
    ),
    Variable(
        "strobe", "branch point strobe_sample", "{shown} at the clock's phase 0",
        "{shown_unit}", "{symbol}", group="",
    ),
    Variable(
        "branch_period", "branch", "branch: period of the orbit, 0 if none", "{unit}",
        "p", group="",
    ),
    Variable(
        "branch_parent", "branch",
        "branch: special point on which it was born, -1 if none", "1", "n",
    ),
    Variable(
        "branch_result", "branch end", "branch: how the iteration ended", "1",
        "result", group="", flags=RESULTS,
    ),
    Variable(
        "special_kind", "special", "special point: kind of bifurcation", "1", "kind",
        group="special", flags=KINDS,
    ),
    Variable(
        "special_branch", "special", "special point: branch", "1", "n", group="special"
    ),
    Variable(
        "special_{free}", "special", "special point: {free}", "1", "{free}",
        group="special",
    ),
    Variable(
        "special_arclength", "special",
        "special point: length along the branch, in units of its steps", "1", "s",
        group="special",
    ),
    Variable(
        "special_error", "special", "special point: last Newton step, or rounding", "1",
        "δ",
    ),
    Variable(
        "special_period", "special", "special point: period of the orbit, 0 if none",
        "{unit}", "p", group="special",
    ),
    Variable(
        "special_coefficient", "special",
        "special point: coefficient of the normal form: b, c or Re d", "1",
        "b, c, Re d", group="special",
    ),
    Variable(
        "special_criticality", "special",
        "special point: whether what is born is stable",
        "1", "criticality", group="special",
        flags=("none", *CRITICALITY[1:]),
    ),
    Variable(
        "special_rotation", "special",
        "special point: rotation number, turns per period of the cycle", "1", "ρ",
        group="special",
    ),
    Variable(
        "special_strobe", "special strobe_sample",
        "special point: {shown} at the clock's phase 0", "{shown_unit}", "{symbol}",
        group="special",
    ),
    Variable(
        "curve_kind", "curve", "curve of critical cycles: kind of bifurcation", "1",
        "kind", group="curves", flags=KINDS,
    ),
    Variable(
        "curve_origin", "curve",
        "curve of critical cycles: special point from which it was followed", "1", "n",
    ),
    Variable(
        "curve_result", "curve end",
        "curve of critical cycles: how the iteration ended",
        "1", "result", flags=CURVE_RESULTS,
    ),
    Variable(
        "curve_unresolved", "curve",
        "curve of critical cycles: changes of sign that were not closed in on", "1",
        "n", note="points of codimension two that may be missing",
    ),
    *(
        Variable(
            f"curve_{name}", "curve curve_point",
            f"curve of critical cycles: {name}", "1", name, group="curves",
        )
        for name in ("{free}", "{second}")
    ),
    Variable(
        "curve_coefficient", "curve curve_point",
        "curve of critical cycles: coefficient of the normal form: b, c or Re d", "1",
        "b, c, Re d", group="curves",
    ),
    Variable(
        "curve_rotation", "curve curve_point",
        "curve of critical cycles: rotation number, turns per period of the cycle",
        "1", "ρ", group="curves",
    ),
    Variable(
        "degenerate_kind", "degenerate",
        "point of codimension two: kind of bifurcation", "1", "kind",
        group="degenerate", flags=CODIMENSION_TWO,
    ),
    Variable(
        "degenerate_curve", "degenerate", "point of codimension two: curve", "1", "n",
        group="degenerate",
    ),
    *(
        Variable(
            f"degenerate_{name}", "degenerate", f"point of codimension two: {name}",
            "1", name, group="degenerate",
        )
        for name in ("{free}", "{second}")
    ),
    Variable(
        "degenerate_coefficient", "degenerate",
        "point of codimension two: coefficient of the normal form: b, c or Re d", "1",
        "b, c, Re d",
    ),
    Variable(
        "degenerate_rotation", "degenerate",
        "point of codimension two: rotation number, turns per period of the cycle",
        "1", "ρ", group="degenerate",
    ),
    Variable("end", "end", "end of a branch or curve, 0 before its first point", "1",
             "end"),
)  # fmt: skip


def diagram_variables(
    parameters: Variables, *, unit: str, state: str, shown: Variable
) -> Variables:
    """What the file of a continuation holds.

    Args:
        parameters: of the system.
        unit: what a step is.
        state: what the coordinates of a point are, in words, with their symbol after a
            comma.
        shown: what a diagram shows of a state.

    Returns:
        `Variables`: dimensions, values and attributes by name.

    Example:
        >>> a = Variables(Variable("a", "", "growth rate", "1", "a"))
        >>> size = Variable("x", "", "size", "m", "x")
        >>> table = diagram_variables(a, unit="year", state="sizes", shown=size)
        >>> table.attributes("special_a")["long_name"]
        'special point: growth rate'
    """
    words, _, symbol = state.partition(", ")
    told = {
        "{unit}": unit,
        "{state}": words,
        "{state_symbol}": symbol or "x",
        "{shown}": shown.long_name,
        "{shown_unit}": shown.units,
        "{symbol}": shown.symbol,
    }

    def filled(text: str) -> str:
        for place, words in told.items():
            text = text.replace(place, words)
        return text

    rows = [
        row._replace(
            long_name=filled(row.long_name),
            units=filled(row.units),
            symbol=filled(row.symbol),
        )
        for row in _ROWS
    ]
    return Variables(*rows, parameters, attributes=("free",))


def dimensions(free: str, second: str) -> dict[str, tuple[str, ...]]:
    """Dimensions of all variables that a file may have, in their order.

    Args:
        free: parameter in which branches are followed.
        second: the other parameter of the curves, "" where none are followed.
    """
    name = lambda row: row.name.format(free=free, second=second)
    return {name(row): tuple(row.dims.split()) for row in _ROWS}


def columns(diagram: "BifurcationDiagram") -> dict[str, np.ndarray]:
    """All that a diagram holds, by the names of its variables.

    Args:
        diagram: branches and curves.
    """
    plan, branches, curves = diagram.plan, diagram.branches, diagram.curves
    turns = max(int(branch.problem.period) for branch in branches)
    columns = _branches(plan.turns, branches, plan.free, turns)
    if diagram.special:
        columns |= _special(plan.turns, branches, plan.free, turns)
    if curves:
        columns |= _curves(curves, plan.free, plan.second)
    degenerate = [
        (i, two) for i, curve in enumerate(curves) for two in curve.degenerate
    ]
    if degenerate:
        columns |= _degenerate(degenerate, plan.free, plan.second)
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    return {name: values for name, values in arrays.items() if values.size}


def _branches(strobed: Turns, branches: Sequence, free: str, turns: int):
    rows = lambda read: _padded([[read(p) for p in b.points] for b in branches])
    outside = lambda p: float(np.sum(np.abs(p.multipliers) > 1))
    values = rows(lambda p: p.value)
    strobe = np.full((*values.shape, turns), np.nan)
    for i, branch in enumerate(branches):
        samples = _samples(strobed, branch.problem, branch.points)
        strobe[i, : samples.shape[0], : samples.shape[1]] = samples
    return {
        free: values,
        "arclength": rows(lambda p: p.arclength),
        "state": rows(lambda p: p.x),
        "multiplier_re": rows(lambda p: p.multipliers.real),
        "multiplier_im": rows(lambda p: p.multipliers.imag),
        "n_unstable": rows(outside),
        "strobe": strobe,
        "branch_period": [strobed.steps * int(b.problem.period) for b in branches],
        "branch_parent": [b.parent for b in branches],
        "branch_result": _codes(b.results for b in branches),
    }


def _special(strobed: Turns, branches: Sequence, free: str, turns: int):
    form = lambda read, s: np.nan if s.form is None else read(s.form)
    of_branch = [(i, s) for i, branch in enumerate(branches) for s in branch.special]
    special = [s for _, s in of_branch]
    strobe = np.full((len(special), turns), np.nan)
    for i, (owner, point) in enumerate(of_branch):
        samples = _samples(strobed, branches[owner].problem, [point])
        strobe[i, : samples.shape[1]] = samples[0]
    word = lambda s: "" if s.form is None else s.form.criticality
    return {
        "special_kind": _codes(KINDS.index(s.kind) for s in special),
        "special_branch": [owner for owner, _ in of_branch],
        f"special_{free}": [s.value for s in special],
        "special_arclength": [s.arclength for s in special],
        "special_error": [s.error for s in special],
        "special_period": [strobed.steps * s.period for s in special],
        "special_coefficient": [form(lambda f: f.coefficient, s) for s in special],
        "special_criticality": _codes(CRITICALITY.index(word(s)) for s in special),
        "special_rotation": [form(lambda f: f.rotation, s) for s in special],
        "special_strobe": strobe,
    }


def _samples(strobed: Turns, problem: Problem, points: Sequence) -> np.ndarray:
    """What is shown of cycles, a turn apart, (points, turns)."""
    turns = int(problem.period)
    if not points:
        return np.zeros((0, turns))
    x = jnp.asarray(np.stack([p.x for p in points], axis=-1))
    free = jnp.asarray([p.value for p in points])
    values = {n: jnp.broadcast_to(v, free.shape) for n, v in problem.parameters.items()}
    return np.asarray(strobed.shown(x, values | {problem.free: free}, turns)).T


def _curves(curves: Sequence, free: str, second: str):
    rows = lambda read: _padded([[read(p) for p in c.points] for c in curves])
    return {
        "curve_kind": _codes(KINDS.index(c.kind) for c in curves),
        "curve_origin": [c.origin for c in curves],
        "curve_result": _codes(c.results for c in curves),
        "curve_unresolved": [len(c.unresolved) for c in curves],
        f"curve_{free}": rows(lambda p: p.values[0]),
        f"curve_{second}": rows(lambda p: p.values[1]),
        "curve_coefficient": rows(lambda p: p.coefficient),
        "curve_rotation": rows(lambda p: p.rotation_number),
    }


def _degenerate(degenerate: Sequence, free: str, second: str):
    points = [two.point for _, two in degenerate]
    return {
        "degenerate_kind": _codes(
            CODIMENSION_TWO.index(two.name) for _, two in degenerate
        ),
        "degenerate_curve": [i for i, _ in degenerate],
        f"degenerate_{free}": [p.values[0] for p in points],
        f"degenerate_{second}": [p.values[1] for p in points],
        "degenerate_coefficient": [p.coefficient for p in points],
        "degenerate_rotation": [p.rotation_number for p in points],
    }


def _padded(rows) -> np.ndarray:
    """Rows of different lengths as one array, filled up with NaN."""
    rows = [np.asarray(row, float) for row in rows]
    inner = max((row.shape[1:] for row in rows if row.size), default=())
    longest = max(len(row) for row in rows)
    full = np.full((len(rows), longest, *inner), np.nan)
    for i, row in enumerate(rows):
        if row.size:
            full[i, : len(row)] = row
    return full


def _codes(values) -> np.ndarray:
    return np.array(list(values), np.int8)
