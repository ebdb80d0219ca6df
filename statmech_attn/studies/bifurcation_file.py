"""From the rows of a bifurcation scan to its labelled data set."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from statmech_attn.comparison import network_digest
from statmech_attn.dynamics import System
from statmech_attn.dynamics.diagrams import Grid, Outcome, Plan, Verdicts
from statmech_attn.labels import attributes, labelled
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
    dataset = labelled({}, own).assign_coords(
        {n: (along, x, attributes(n)) for n, (along, x) in places.coordinates.items()}
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
        dataset["failure"] = (dims, failure.reshape(shape), attributes("failure"))
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
        attributes(name),
        blocks,
    )
