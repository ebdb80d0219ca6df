"""From the rows of a bifurcation scan to its labelled data set."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from statmech_attn.comparison import network_digest
from statmech_attn.dynamics import cycles, PHASES, REASONS, System
from statmech_attn.dynamics.diagrams import Grid, Outcome, Plan, Verdicts
from statmech_attn.labels import NATS, Variable, Variables, words
from statmech_attn.scan import Arrays, Assembled
from statmech_attn.storage import Column
from statmech_attn.studies import build
from statmech_attn.studies.dmft_tables import BifurcationRun


Coordinates = dict[str, tuple[tuple[str, ...], np.ndarray]]
VERDICTS: dict[str, Callable[[Verdicts], Any]] = {
    "lyapunov": lambda v: v.exponents.T,
    "lyapunov_weighted": lambda v: v.weighted.T,
    "lyapunov_stderr": lambda v: v.stderr.T,
    "lyapunov_source": lambda v: v.source.T.astype(np.int8),
    "log_det": lambda v: v.log_det,
    "sum_rule": lambda v: v.sum_rule,
    "phase": lambda v: v.phase.astype(np.int8),
    "phase_paper": lambda v: v.phase_paper.astype(np.int8),
    "reasons": lambda v: v.reasons.astype(np.int32),
    "period": lambda v: v.period,
    "rotation_number": lambda v: v.rotation_number,
    "n_resolved": lambda v: v.resolved,
    "n_positive": lambda v: v.evidence.positive,
    "n_zero": lambda v: v.evidence.zeros,
    "recurrence_error": lambda v: v.evidence.recurrence_error,
    "zero_one": lambda v: v.evidence.zero_one,
    "broadband": lambda v: v.evidence.broadband,
    "convergence_digits": lambda v: v.evidence.digits,
    "quarter_disagreement": lambda v: v.evidence.quarters,
    "drift": lambda v: v.evidence.drift,
    "window": lambda v: v.window,
    "horizon": lambda v: v.horizon,
}
_EXPONENTS = "NaN: not resolved, -inf: exact collapse"
_EVIDENCE = "evidence of the phase, docs/theory/dynamics.md"
_GRID = "of a refined file"
# Files have the scanned parameters as dimensions before these, or `point`.
VARIABLES = Variables(
    Variable(
        "section", "sample", "m_o_se_1 on the section |m_o_se_2| < tolerance", "1",
        "m^{o,SE}_1", group="",
    ),
    Variable(
        "strobe", "strobe_sample", "m_o_se_1 at the clock's phase 0", "1",
        "m^{o,SE}_1", group="",
    ),
    Variable(
        "section_count", "", "visits to the section in the recorded steps", "1", "n",
        group="",
    ),
    Variable(
        "lyapunov", "exponent", "Lyapunov exponents, plain average, largest first",
        NATS, "λ_i", group="verdicts", note=_EXPONENTS,
    ),
    Variable(
        "lyapunov_weighted", "exponent", "Lyapunov exponents, weighted average", NATS,
        "λ_i", note=_EXPONENTS,
    ),
    Variable(
        "lyapunov_stderr", "exponent", "standard error of the plain average", NATS,
        "δλ_i", group="verdicts",
    ),
    Variable(
        "lyapunov_source", "exponent", "what the exponent was taken from", "1",
        "source", flags=cycles.SOURCES,
        note="of a cycle itself the errors are those of rounding",
    ),
    Variable(
        "log_det", "", "average of ln|det| of the Jacobian", NATS, "⟨ln|det J|⟩",
        note="beside all exponents",
    ),
    Variable(
        "sum_rule", "", "sum of the averages less log_det", NATS,
        "Σλ - ⟨ln|det J|⟩", note="beside all exponents",
    ),
    Variable("n_resolved", "", "leading exponents above round-off", "1", "n"),
    Variable(
        "phase", "", "phase of the orbit", "1", "phase", group="verdicts", flags=PHASES
    ),
    Variable(
        "phase_paper", "", "phase by the sign of the plain average", "1", "phase",
        group="verdicts", flags=PHASES,
    ),
    Variable(
        "period", "", "period of the orbit, 0 if none", "token", "p", group="verdicts"
    ),
    Variable(
        "rotation_number", "", "strongest frequency, cycles per clock period", "1", "ρ"
    ),
    Variable(
        "reasons", "", "why no phase was given", "1", "reasons", flags=words(REASONS),
        masks=True,
    ),
    Variable("n_positive", "", "positive exponents", "1", "n_+", note=_EVIDENCE),
    Variable("n_zero", "", "zero exponents", "1", "n_0", note=_EVIDENCE),
    Variable(
        "recurrence_error", "", "largest |x(t+p) - x(t)|, relative", "1", "δ",
        note=_EVIDENCE,
    ),
    Variable("zero_one", "", "K of the 0-1 test", "1", "K", note=_EVIDENCE),
    Variable(
        "broadband", "", "median over mean spectral power", "1", "S", note=_EVIDENCE
    ),
    Variable(
        "convergence_digits", "", "digits to which weighted half averages agree", "1",
        "d", note=_EVIDENCE,
    ),
    Variable(
        "quarter_disagreement", "", "exponents by quarter, standard errors", "1",
        "z_λ", note=_EVIDENCE,
    ),
    Variable(
        "drift", "", "observables by quarter (means, ranges), standard errors", "1",
        "z_m", note=_EVIDENCE,
    ),
    Variable("window", "", "steps of the window that decided", "token", "n"),
    Variable("horizon", "", "steps for which the verdict has held", "token", "t"),
    Variable(
        "doubtful", "", "whether a neighbour makes the verdict doubtful", "1",
        "doubtful", flags=("no", "yes"),
    ),
    Variable(
        "confirmed", "", "perturbed starts that kept to the verdict, -1: none run",
        "1", "n",
        note="of `confirm_starts`, over `confirm_horizon` tokens; with run.confirm",
    ),
    build.FAILURE,
    Variable(
        "beta", "", "inverse temperature of the output softmax", "1", "β",
        parts="_index _grid",
    ),
    Variable(
        "gamma", "", "inverse temperature of attention", "1", "γ", parts="_index _grid"
    ),
    Variable(
        "epsilon", "", "weight of the positional part", "1", "ε", parts="_index _grid"
    ),
    Variable(
        "level", "", "level of refinement, 0 is the coarse grid", "1", "l", note=_GRID
    ),
    Variable("start", "start", "random start", "1", "s"),
    Variable("exponent", "exponent", "rank of the Lyapunov exponent", "1", "i"),
    Variable(
        "sample", "sample", "sample on the section |m_o_se_2| < tolerance", "1", "n"
    ),
    Variable(
        "strobe_sample", "strobe_sample", "sample at the clock's phase 0, latest last",
        "1", "n",
    ),
    attributes=("section_tolerance",),
)  # fmt: skip
OF_ALL = ("log_det", "sum_rule")  # stored beside all exponents only
TRAILING = {
    "section": "sample",
    "strobe": "strobe_sample",
    "lyapunov": "exponent",
    "lyapunov_weighted": "exponent",
    "lyapunov_stderr": "exponent",
    "lyapunov_source": "exponent",
}


class Scanned(Protocol):
    """What the data set says of the scan beside its rows."""

    made: build.Model
    system: System
    axes: build.Axes
    options: BifurcationRun
    plan: Plan


class Rows(Protocol):
    """As `work.Results`, a row for each point."""

    def column(self, name: str) -> np.ndarray: ...

    def blocks(self, name: str) -> Iterator[np.ndarray]: ...

    def like(self, name: str) -> np.ndarray: ...

    def failure(self) -> np.ndarray: ...

    def reasons(self) -> list[str]: ...


class Places(NamedTuple):
    """Where the points of a scan are.

    Attributes:
        order: of the rows, where they come in another one than that of the points.
    """

    dims: tuple[str, ...]
    coordinates: Coordinates
    order: np.ndarray | None


def rows(outcome: Outcome) -> Arrays:
    """Rows of the points of an outcome, named as in the file.

    `finite`, which the file lacks, says whether the orbit ended in numbers.
    """
    found = {
        "section": outcome.section,
        "section_count": outcome.section_count,
        "strobe": outcome.strobe,
        "finite": np.isfinite(outcome.final.attention).all(axis=(0, 1)),
    }
    if outcome.verdicts is not None:
        verdicts = outcome.verdicts
        found |= {name: of(verdicts) for name, of in VERDICTS.items()}
    return {name: np.ascontiguousarray(x) for name, x in found.items()}


def whole(axes: build.Axes) -> Places:
    """Every point of the grid."""
    along = zip(axes.names, axes.values, strict=True)
    return Places(axes.names, {n: ((n,), values) for n, values in along}, None)


def computed(grid: Grid, finest: build.Axes, index: np.ndarray) -> Places:
    """Computed points of a refined grid: a line, or a list of points.

    Args:
        index: of the points on the finest grid, in the order of their rows.
    """
    order = np.lexsort(index.T[::-1])
    index = index[order]
    level = grid.level_of(index).astype(np.int8)
    dims = finest.names if len(finest.names) == 1 else ("point",)
    coordinates: Coordinates = {"level": (dims, level)}
    for name, values, column in zip(finest.names, finest.values, index.T, strict=True):
        coordinates[name] = (dims, values[column])
        if dims == ("point",):
            coordinates[f"{name}_index"] = (dims, column.astype(np.int32))
            coordinates[f"{name}_grid"] = ((f"{name}_grid",), values)
    return Places(dims, coordinates, order)


def assembled(scan: Scanned, rows: Rows, places: Places | None = None) -> Assembled:
    """The data set of a scan, large variables as columns."""
    places = places or whole(scan.axes)
    options, starts = scan.options, scan.options.starts
    own = {
        "sample": np.arange(scan.plan.section_samples),
        "strobe_sample": np.arange(scan.plan.strobe_samples),
    }
    names = ["section", "section_count", "strobe"]
    if scan.plan.exponents:
        own["exponent"] = np.arange(1, scan.plan.exponents + 1)
        whole_spectrum = scan.plan.exponents == scan.made.net.dimension
        names += [n for n in VERDICTS if whole_spectrum or n not in OF_ALL]
        names += ["doubtful", *(["confirmed"] if options.confirm else [])]
    dims, shape = places.dims, _shape(places)
    if starts > 1:
        own["start"] = np.arange(starts)
        dims, shape = (*dims, "start"), (*shape, starts)
    order = None if places.order is None else _with_starts(places.order, starts)
    columns = {name: _column(rows, name, dims, shape, order) for name in names}
    dataset = VARIABLES.labelled({}, own).assign_coords(
        {
            n: (along, x, VARIABLES.attributes(n))
            for n, (along, x) in places.coordinates.items()
        }
    )
    net = scan.made.net
    dataset = dataset.assign_attrs(
        kind="bifurcation", network=network_digest(net), context=net.context,
        start=build.describe_start(options, scan.made),
        clock_period=scan.system.drive_period,
        section_tolerance=options.section_tolerance, transient=options.transient,
        steps=options.steps, max_doublings=scan.plan.max_doublings,
        refine=options.refine,
        **_confirm_attributes(options),
        direction=(options.start or "").partition("continue-")[2],
    )  # fmt: skip
    failure = rows.failure()
    if failure.any():
        failure = failure if order is None else failure[order]
        dataset["failure"] = (dims, failure.reshape(shape), build.FAILURE.attributes())
        dataset.attrs["failure_reasons"] = rows.reasons()
    return Assembled(build.with_fixed(dataset, scan.axes), columns)


def _confirm_attributes(options: BifurcationRun) -> dict[str, int]:
    asked = options.confirm
    if asked is None:
        return {}
    return {"confirm_starts": asked.starts, "confirm_horizon": asked.horizon}


def _shape(places: Places) -> tuple[int, ...]:
    found = places.coordinates
    return tuple(len(found["level" if d == "point" else d][1]) for d in places.dims)


def _with_starts(order: np.ndarray, starts: int) -> np.ndarray:
    """The order of rows, starts fastest, from that of points."""
    return (order[:, None] * starts + np.arange(starts)).ravel()


def _column(rows: Rows, name: str, dims, shape, order) -> Column:
    like = rows.like(name)
    trailing = (TRAILING[name],) if name in TRAILING else ()

    def blocks() -> Iterator[np.ndarray]:
        if order is None:
            return rows.blocks(name)
        return iter([rows.column(name)[order]])

    return Column(
        (*dims, *trailing),
        (*shape, *like.shape[1:]),
        like.dtype,
        VARIABLES.attributes(name),
        blocks,
    )
