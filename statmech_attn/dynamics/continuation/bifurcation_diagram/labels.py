"""The data set of a bifurcation diagram: branches, special points, curves.

docs/hdf5.md lists it.  Branches and curves have different lengths: rows are padded with
NaN along `point` and `curve_point`.  What was not found has no variables.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import jax.numpy as jnp
import numpy as np

from statmech_attn.dynamics.continuation.bifurcation_diagram.turns import Turns
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import RESULTS
from statmech_attn.dynamics.continuation.special_points import KINDS
from statmech_attn.dynamics.continuation.two_parameters.codimension_two import (
    CODIMENSION_TWO,
)
from statmech_attn.dynamics.continuation.two_parameters.critical_curves import (
    CURVE_RESULTS,
)
from statmech_attn.labels import Variable, Variables


CRITICALITY = ("none", "supercritical", "subcritical", "degenerate")
_POINT = "branch point"
_COEFFICIENT = "coefficient of the normal form: b, c or Re d", "b, c, Re d"
_ROTATION = "rotation number, turns per period of the cycle", "ρ"


def _rows(part: str, parent: str, group: str) -> Callable[..., Variable]:
    """Rows of a branch, special point, curve or point of codimension two."""

    def row(name: str, words: str, symbol: str, dims: str = "", **more: Any):
        options: dict[str, Any] = {"group": group} | more
        words, dims = f"{parent}: {words}", f"{part} {dims}".rstrip()
        return Variable(f"{part}_{name}", dims, words, symbol=symbol, **options)

    return row


_branch = _rows("branch", "branch", "")
_special = _rows("special", "special point", "special")
_curve = _rows("curve", "curve of critical cycles", "curves")
_degenerate = _rows("degenerate", "point of codimension two", "degenerate")


def _of_form(name: str) -> Callable[[Any], Any]:
    return lambda special: getattr(special.form, name, np.nan)


# Braces of `variables` beside those of `labels.Variable`.  A value is that of a point,
# a branch, a special point, ...; periods are counted in turns there.
_ROWS = (
    Variable("{free}", _POINT, "{free}", "1", "{free}", group="", value="value"),
    Variable(
        "arclength", _POINT, "length along the branch, in units of its steps", "1", "s",
        group="", value="arclength",
        note="from the cycle that was simulated, negative below it",
    ),
    Variable(
        "state", f"{_POINT} coordinate", "{state}", "1", "{state_symbol}", value="x"
    ),
    Variable(
        "multiplier_re", f"{_POINT} multiplier", "multipliers of the cycle, real part",
        "1", "Re μ", value="multipliers.real",
    ),
    Variable(
        "multiplier_im", f"{_POINT} multiplier",
        "multipliers of the cycle, imaginary part", "1", "Im μ",
        value="multipliers.imag",
    ),
    Variable(
        "n_unstable", _POINT, "multipliers outside the unit circle", "1", "n_u",
        group="", value=lambda point: np.sum(np.abs(point.multipliers) > 1),
    ),
    Variable(
        "strobe", f"{_POINT} strobe_sample", "{shown} at the clock's phase 0",
        "{shown_unit}", "{symbol}", group="",
    ),
    _branch("period", "period of the orbit, 0 if none", "p", units="{unit}",
            value="problem.period"),
    _branch("parent", "special point on which it was born, -1 if none", "n", group=None,
            value="parent"),
    _branch("result", "how the iteration ended", "result", "end", flags=RESULTS,
            value="results"),
    _special("kind", "kind of bifurcation", "kind", flags=KINDS,
             value=lambda special: KINDS.index(special.kind)),
    _special("branch", "branch", "n"),
    _special("{free}", "{free}", "{free}", value="value"),
    _special("arclength", "length along the branch, in units of its steps", "s",
             value="arclength"),
    _special("error", "last Newton step, or rounding", "δ", group=None, value="error"),
    _special("period", "period of the orbit, 0 if none", "p", units="{unit}",
             value="period"),
    _special("coefficient", *_COEFFICIENT, value=_of_form("coefficient")),
    _special("criticality", "whether what is born is stable", "criticality",
             flags=CRITICALITY, value=lambda special: CRITICALITY.index(
                 getattr(special.form, "criticality", "") or "none")),
    _special("rotation", *_ROTATION, value=_of_form("rotation")),
    _special("strobe", "{shown} at the clock's phase 0", "{symbol}", "strobe_sample",
             units="{shown_unit}"),
    _curve("kind", "kind of bifurcation", "kind", flags=KINDS,
           value=lambda curve: KINDS.index(curve.kind)),
    _curve("origin", "special point from which it was followed", "n", group=None,
           value="origin"),
    _curve("result", "how the iteration ended", "result", "end", group=None,
           flags=CURVE_RESULTS, value="results"),
    _curve("unresolved", "changes of sign that were not closed in on", "n", group=None,
           note="points of codimension two that may be missing",
           value=lambda curve: len(curve.unresolved)),
    _curve("{free}", "{free}", "{free}", "curve_point", value=lambda p: p.values[0]),
    _curve("{second}", "{second}", "{second}", "curve_point",
           value=lambda p: p.values[1]),
    _curve("coefficient", *_COEFFICIENT, "curve_point", value="coefficient"),
    _curve("rotation", *_ROTATION, "curve_point", value="rotation_number"),
    _degenerate("kind", "kind of bifurcation", "kind", flags=CODIMENSION_TWO,
                value=lambda two: CODIMENSION_TWO.index(two.name)),
    _degenerate("curve", "curve", "n"),
    _degenerate("{free}", "{free}", "{free}", value=lambda two: two.point.values[0]),
    _degenerate("{second}", "{second}", "{second}",
                value=lambda two: two.point.values[1]),
    _degenerate("coefficient", *_COEFFICIENT, group=None, value="point.coefficient"),
    _degenerate("rotation", *_ROTATION, value="point.rotation_number"),
    Variable("end", "end", "end of a branch or curve, 0 before its first point", "1",
             "end"),
)  # fmt: skip


def diagram_variables(
    parameters: Variables, *, unit: str, state: str, shown: Variable
) -> Variables:
    """What the file of a continuation holds."""
    words, _, symbol = state.partition(", ")
    replacements = {
        "{unit}": unit,
        "{state}": words,
        "{state_symbol}": symbol or "x",
        "{shown}": shown.long_name,
        "{shown_unit}": shown.units,
        "{symbol}": shown.symbol,
    }

    def fill(text: str) -> str:
        for place, words in replacements.items():
            text = text.replace(place, words)
        return text

    rows = [row.filled(fill) for row in _ROWS]
    return Variables(*rows, parameters, attributes=("free",))


def dimensions(free: str, second: str) -> dict[str, tuple[str, ...]]:
    """Dimensions of all variables that a file may have, in their order.

    `second` is "" where no curves are followed.
    """
    name = lambda row: row.name.format(free=free, second=second)
    return {name(row): tuple(row.dims.split()) for row in _ROWS}


def columns(
    turns: Turns, free: str, second: str, branches: Sequence, curves: Sequence
) -> dict[str, np.ndarray]:
    """All that branches and curves of a diagram hold, by the names of its variables."""
    most = max(int(branch.problem.period) for branch in branches)
    samples = partial(_samples, turns, most=most)
    special = [(i, s) for i, branch in enumerate(branches) for s in branch.special]
    degenerate = [(i, two) for i, c in enumerate(curves) for two in c.degenerate]
    parts = {
        "branch": branches,
        "special": [s for _, s in special],
        "curve": curves,
        "degenerate": [two for _, two in degenerate],
    }
    named = lambda row: row.name.format(free=free, second=second)
    arrays = {
        named(row): _column(row, items, turns.steps)
        for row in _ROWS
        if row.value and (items := parts[row.dims.split()[0]])
    }
    arrays["strobe"] = _padded([samples(b.problem, b.points) for b in branches])
    if special:
        strobes = [samples(branches[i].problem, [point])[0] for i, point in special]
        arrays["special_branch"] = np.array([i for i, _ in special])
        arrays["special_strobe"] = np.array(strobes)
    if degenerate:
        arrays["degenerate_curve"] = np.array([i for i, _ in degenerate])
    return {name: values for name, values in arrays.items() if values.size}


def _column(row: Variable, items: Sequence, steps: int) -> np.ndarray:
    """Values of a row, of items or of their points."""
    read = attrgetter(row.value) if isinstance(row.value, str) else row.value
    if "point" in row.dims:
        return _padded([[read(point) for point in item.points] for item in items])
    values = np.array([read(item) for item in items])
    if row.flags:
        return values.astype(np.int8)
    return steps * values if row.units == "{unit}" else values


def _samples(turns: Turns, problem: Problem, points: Sequence, most: int) -> np.ndarray:
    """What is shown of cycles, a turn apart, (points, most)."""
    period = int(problem.period)
    samples = np.full((len(points), most), np.nan)
    if points:
        x = jnp.asarray(np.stack([p.x for p in points], axis=-1))
        free = jnp.asarray([p.value for p in points])
        fixed = problem.parameters.items()
        values = {n: jnp.broadcast_to(value, free.shape) for n, value in fixed}
        displayed = turns.shown(x, values | {problem.free: free}, period)
        samples[:, :period] = np.asarray(displayed).T
    return samples


def _padded(rows: Sequence) -> np.ndarray:
    """Rows of different lengths as one array, filled up with NaN."""
    rows = [np.asarray(row, float) for row in rows]
    inner = max((row.shape[1:] for row in rows if row.size), default=())
    full = np.full((len(rows), max(map(len, rows)), *inner), np.nan)
    for i, row in enumerate(rows):
        if row.size:
            full[i, : len(row)] = row
    return full
