"""What the file of basins along a parameter holds, and how it is labelled."""

from collections.abc import Iterable

from statmech_attn.dynamics.diagrams.diagram_variables import ROWS
from statmech_attn.dynamics.maps.observables import OBSERVABLES
from statmech_attn.labels import STEP, Variable, Variables
from statmech_attn.scan import FAILURE


_SETS = "by number of starts; 0 or -1 where a value has fewer sets"
_WILSON = "end of Wilson's interval, one standard error"
ATTRACTOR = Variable(
    "attractor",
    "slot",
    "number of the set along the parameter, -1: none",
    symbol="k",
    group="",
)
# Files have the scanned parameter as the first dimension; braces stand for the unit.
_ROWS = (
    Variable(
        "count", "slot", "starts that ended on the set", "1", "n_k", group="",
        note=_SETS,
    ),
    Variable("fraction", "slot", "share of the starts", "1", "n_k/n", group=""),
    Variable("fraction_low", "slot", f"lower {_WILSON}", "1", "p", group=""),
    Variable("fraction_high", "slot", f"upper {_WILSON}", "1", "p", group=""),
    ROWS["period"].over("slot", group=""),
    Variable(
        "points", "slot point observable",
        "observables on the set at the clock's phase 0", "1", "x",
    ),
    Variable("n_points", "slot", "points of the set before they repeat", "1", "n"),
    ROWS["phase"].over("slot", group=""),
    *(
        ROWS[name].over("slot")
        for name in ("rotation_number", "rotation_error", "rotation_oriented")
    ),
    *(
        ROWS[name].over("slot exponent", group=None, note="")
        for name in ("lyapunov", "lyapunov_stderr")
    ),
    Variable("states", "slot turn coordinate", "states on the set", "1", "z"),
    Variable(
        "lifetime", "start", "steps before the neighbourhood was entered for good",
        "{unit}", "τ", group="",
    ),
    Variable(
        "lifetime_ended", "start", "False: still on the way after the lifetime", "1",
        "ended", group="",
    ),
    Variable(
        "lifetime_exact", "start", "False: settled at the lifetime or before", "1",
        "exact",
    ),
    Variable(
        "label", "start", "slot of the set, -1 not settled, -2 diverged", "1", "k",
        group="", note="slots count from 0",
    ),
    Variable(
        "escape_rate", "", "rate at which transients end", "nat / {unit}", "κ",
        parts="_stderr", group="",
        note="NaN where it is not constant or more than 10 % of the lifetimes are "
        "inexact",
    ),
    Variable(
        "escape_events", "", "transients that ended after escape_after", "1", "e"
    ),
    Variable(
        "escape_after", "", "beginning of the exponential tail", "{unit}", "t_0",
        group="",
    ),
    Variable(
        "escape_constancy", "", "early minus late rate over its error", "1", "z"
    ),
    Variable(
        "count_inexact", "", "starts with an upper bound as their lifetime", "1", "n"
    ),
    Variable(
        "count_unsettled", "", "starts that did not settle before the horizon", "1",
        "n", group="",
    ),
    Variable("count_diverged", "", "starts that diverged", "1", "n", group=""),
    FAILURE,
    ATTRACTOR,
    Variable(
        "slot", "slot", "set on which starts ended, by number of starts", "1", "k",
    ),
    ROWS["start"],
    Variable("point", "point", "point of a set", "1", "i"),
    Variable("turn", "turn", "clock periods between states on the set", "1", "i"),
    ROWS["exponent"],
)  # fmt: skip
OF_SYSTEM = (
    Variable("coordinate", "coordinate", "number of the coordinate", "1", "i"),
    *OBSERVABLES,
)


def basin_variables(
    parameters: Iterable[Variable],
    *,
    unit: str = STEP,
    of_states: Iterable[Variable] = OF_SYSTEM,
) -> Variables:
    """The table of a file of basins."""
    labels = {row.name: row for row in of_states}
    rows = [labels.pop(row.name, row) for row in _ROWS]
    units = lambda row: row._replace(units=row.units.replace("{unit}", unit))
    return Variables(*map(units, rows), *labels.values(), *parameters)
