"""The data set of a continuation: branches, special points, curves (docs/hdf5.md).

Branches and curves have different lengths: rows are padded with NaN along `point` and
`curve_point`.  What was not found has no variables.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from statmech_attn import dmft
from statmech_attn.dmft import Network
from statmech_attn.dynamics import continuation
from statmech_attn.labels import Variable, Variables
from statmech_attn.studies import build


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
        "result", group="", flags=continuation.RESULTS,
    ),
    Variable(
        "special_kind", "special", "special point: kind of bifurcation", "1", "kind",
        group="special", flags=continuation.KINDS,
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
        "kind", group="curves", flags=continuation.KINDS,
    ),
    Variable(
        "curve_origin", "curve",
        "curve of critical cycles: special point from which it was followed", "1", "n",
    ),
    Variable(
        "curve_result", "curve end",
        "curve of critical cycles: how the iteration ended",
        "1", "result", flags=continuation.CURVE_RESULTS,
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
        group="degenerate", flags=continuation.CODIMENSION_TWO,
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


def variables(
    parameters: Variables, *, unit: str, state: str, shown: Variable
) -> Variables:
    """What the file of a continuation holds.

    Args:
        parameters: of the system.
        unit: what a step is.
        state: what the coordinates of a point are, in words, with their symbol after a
            comma.
        shown: what a diagram shows of a state.
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


SHOWN = Variable("strobe", "", "m_o_se_1", "1", "m^{o,SE}_1")
VARIABLES, WHERE_COPIED = (
    variables(build.PARAMETERS, unit="token", state=words, shown=SHOWN)
    for words in (
        "attention window of a point of the cycle at clock 0, A",
        "newest class means and older overlaps at clock 0, x",
    )
)
DIMS = {
    "arclength": ("branch", "point"),
    "state": ("branch", "point", "coordinate"),
    "multiplier_re": ("branch", "point", "multiplier"),
    "multiplier_im": ("branch", "point", "multiplier"),
    "n_unstable": ("branch", "point"),
    "strobe": ("branch", "point", "strobe_sample"),
    "branch_period": ("branch",),
    "branch_parent": ("branch",),
    "branch_result": ("branch", "end"),
}
DIMS_OF_SPECIAL = {
    "special_kind": ("special",),
    "special_branch": ("special",),
    "special_arclength": ("special",),
    "special_error": ("special",),
    "special_period": ("special",),
    "special_coefficient": ("special",),
    "special_criticality": ("special",),
    "special_rotation": ("special",),
    "special_strobe": ("special", "strobe_sample"),
}
DIMS_OF_CURVES = {
    "curve_kind": ("curve",),
    "curve_origin": ("curve",),
    "curve_result": ("curve", "end"),
    "curve_unresolved": ("curve",),
    "curve_coefficient": ("curve", "curve_point"),
    "curve_rotation": ("curve", "curve_point"),
    "degenerate_kind": ("degenerate",),
    "degenerate_curve": ("degenerate",),
    "degenerate_coefficient": ("degenerate",),
    "degenerate_rotation": ("degenerate",),
}


def dimensions(free: str, second: str) -> dict[str, tuple[str, ...]]:
    """Dimensions of all variables that a file may have.

    Args:
        second: the other parameter of the curves, "" where none are followed.
    """
    table = {free: ("branch", "point")} | DIMS
    table |= {f"special_{free}": ("special",)} | DIMS_OF_SPECIAL
    if second:
        for name in (free, second):
            table[f"curve_{name}"] = ("curve", "curve_point")
            table[f"degenerate_{name}"] = ("degenerate",)
        table |= DIMS_OF_CURVES
    return table


Strobe = Callable[[continuation.Problem, Sequence], np.ndarray]


def arrays(
    strobe: Strobe, steps: int, tracks: Sequence, lines: Sequence, second: str
) -> dict[str, np.ndarray]:
    """Everything that was computed, by the names of `dimensions`; the rest is empty.

    Args:
        strobe: problem and points -> what a diagram shows of their cycles.
        steps: of a period of the drive.
    """
    turns = max(int(track.problem.period) for track in tracks)
    special = [s for track in tracks for s in track.special]
    owners = [i for i, track in enumerate(tracks) for _ in track.special]
    free = tracks[0].problem.free
    columns: dict[str, Any] = _branches(strobe, steps, tracks, free, turns)
    if special:
        columns |= _special(strobe, steps, tracks, special, owners, free, turns)
    if lines:
        columns |= _curves(lines, free, second)
    degenerate = [(i, two) for i, line in enumerate(lines) for two in line.degenerate]
    if degenerate:
        columns |= _degenerate(degenerate, free, second)
    return {
        name: np.asarray(columns.get(name, np.empty((0,) * len(dims))))
        for name, dims in dimensions(free, second).items()
    }


def dataset(
    table: Variables, found: Mapping[str, np.ndarray], free: str, second: str
) -> xr.Dataset:
    """What is not empty, labelled."""
    filled = {
        name: (dims, found[name])
        for name, dims in dimensions(free, second).items()
        if found[name].size
    }
    return table.labelled(filled, {"end": np.arange(2)})


def _branches(strobe_of: Strobe, steps: int, tracks, free: str, turns: int):
    rows = lambda read: _padded([[read(p) for p in t.points] for t in tracks])
    outside = lambda p: float(np.sum(np.abs(p.multipliers) > 1))
    values = _padded([[p.value for p in t.points] for t in tracks])
    strobe = np.full((*values.shape, turns), np.nan)
    for i, track in enumerate(tracks):
        strobes = strobe_of(track.problem, track.points)
        strobe[i, : strobes.shape[0], : strobes.shape[1]] = strobes
    return {
        free: values,
        "arclength": rows(lambda p: p.arclength),
        "state": rows(lambda p: p.x),
        "multiplier_re": rows(lambda p: p.multipliers.real),
        "multiplier_im": rows(lambda p: p.multipliers.imag),
        "n_unstable": rows(outside),
        "strobe": strobe,
        "branch_period": [steps * int(t.problem.period) for t in tracks],
        "branch_parent": [t.parent for t in tracks],
        "branch_result": _codes(t.results for t in tracks),
    }


def _special(
    strobe_of: Strobe, steps: int, tracks, special, owners, free: str, turns: int
):
    form = lambda read, s: np.nan if s.form is None else read(s.form)
    strobe = np.full((len(special), turns), np.nan)
    for i, (owner, point) in enumerate(zip(owners, special, strict=True)):
        strobes = strobe_of(tracks[owner].problem, [point])
        strobe[i, : strobes.shape[1]] = strobes[0]
    word = lambda s: "" if s.form is None else s.form.criticality
    return {
        "special_kind": _codes(continuation.KINDS.index(s.kind) for s in special),
        "special_branch": owners,
        f"special_{free}": [s.value for s in special],
        "special_arclength": [s.arclength for s in special],
        "special_error": [s.error for s in special],
        "special_period": [steps * s.period for s in special],
        "special_coefficient": [form(lambda f: f.coefficient, s) for s in special],
        "special_criticality": _codes(CRITICALITY.index(word(s)) for s in special),
        "special_rotation": [form(lambda f: f.rotation, s) for s in special],
        "special_strobe": strobe,
    }


def _curves(lines, free: str, second: str):
    rows = lambda read: _padded([[read(p) for p in line.points] for line in lines])
    return {
        "curve_kind": _codes(continuation.KINDS.index(line.kind) for line in lines),
        "curve_origin": [line.origin for line in lines],
        "curve_result": _codes(line.results for line in lines),
        "curve_unresolved": [len(line.unresolved) for line in lines],
        f"curve_{free}": rows(lambda p: p.values[0]),
        f"curve_{second}": rows(lambda p: p.values[1]),
        "curve_coefficient": rows(lambda p: p.coefficient),
        "curve_rotation": rows(lambda p: p.rotation_number),
    }


def _degenerate(found, free: str, second: str):
    points = [two.point for _, two in found]
    return {
        "degenerate_kind": _codes(
            continuation.CODIMENSION_TWO.index(two.name) for _, two in found
        ),
        "degenerate_curve": [i for i, _ in found],
        f"degenerate_{free}": [p.values[0] for p in points],
        f"degenerate_{second}": [p.values[1] for p in points],
        "degenerate_coefficient": [p.coefficient for p in points],
        "degenerate_rotation": [p.rotation_number for p in points],
    }


def strobe_samples(net: Network, problem, points) -> Float[np.ndarray, "n period"]:
    """m^{o,SE}_1 of the tokens that cycles draw at clock 0, as a scan's strobe has."""
    turns, tokens = int(problem.period), problem.map.tokens
    if not points:
        return np.zeros((0, turns))
    x = jnp.asarray(np.stack([p.x for p in points], axis=-1))
    free = jnp.asarray([p.value for p in points])
    values = {n: jnp.broadcast_to(v, free.shape) for n, v in problem.parameters.items()}
    params = dmft.Parameters(**(values | {problem.free: free}))
    windows = x.reshape(net.context, net.n_patterns, -1)
    return np.asarray(_strobe(net, params, windows, turns, tokens)).T


@partial(jax.jit, static_argnames=("turns", "tokens"))
def _strobe(net, params, windows, turns, tokens):
    def turn(state, _):
        _, observed = dmft.observe(net, params, state)
        return dmft.advance(net, params, state, tokens), observed.m_o_se[0]

    state = dmft.from_window(net, params, windows, 0)
    return jax.lax.scan(turn, state, None, length=turns)[1]


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
