"""From the rows of a diagram to its labelled data set."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn.batches import Compiler
from statmech_attn.dynamics.diagrams.axes import Axes
from statmech_attn.dynamics.diagrams.diagram_variables import ROWS
from statmech_attn.dynamics.diagrams.refinement import Grid
from statmech_attn.dynamics.diagrams.stages.lanes import Verdicts
from statmech_attn.dynamics.diagrams.stages.outcomes import Outcome
from statmech_attn.dynamics.diagrams.stages.stages import irreversible
from statmech_attn.dynamics.maps.systems import System
from statmech_attn.dynamics.options import Confirm, Plan
from statmech_attn.labels import Variables
from statmech_attn.scan import Arrays, Assembled, FAILURE
from statmech_attn.storage import Column


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
    "rotation_error": lambda v: v.rotation_error,
    "rotation_oriented": lambda v: v.evidence.oriented.astype(np.int8),
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
PRODUCTION = (
    "entropy_production",
    "entropy_production_weighted",
    "entropy_production_stderr",
)
CONFIRMATION_RUNS = 96  # runs of a point that a doubtful one is run again for
OF_ALL = ("log_det", "sum_rule")  # stored beside all exponents only
CONFIRMED = (
    "confirmed",
    "final_phase",
    "final_period",
    "final_lyapunov",
    "final_lyapunov_stderr",
    "final_starts",
)
Start = Callable[[PyTree, np.ndarray], PyTree]


class Diagram(NamedTuple):
    """A diagram to be computed: system, axes, initial state and options.

    Attributes:
        start: parameters and numbers of the starts of some points -> their states.
        starts: of every point.
        refine: levels of halving where neighbours differ.
        sweep: "up" or "down": attractors are followed along the first axis; "": every
            point begins at its start.
        confirm: how doubtful rows are run again.
        seed: of the perturbed starts.
        variables, attributes: of the data set.
    """

    system: System
    axes: Axes
    start: Start
    plan: Plan
    variables: Variables
    starts: int = 1
    refine: int = 0
    sweep: str = ""
    confirm: Confirm = Confirm()
    seed: int = 0
    attributes: Mapping[str, Any] = {}

    @property
    def again(self) -> Confirm | None:
        """`confirm` with its horizon; None where no row is run again."""
        confirm, plan = self.confirm, self.plan
        if not (confirm.starts and plan.exponents):
            return None
        horizon = confirm.horizon or CONFIRMATION_RUNS * (plan.transient + plan.steps)
        return replace(confirm, horizon=horizon)


class Rows(Protocol):
    """Results with a row for each point of a scan (as `work.Results`)."""

    def column(self, name: str) -> np.ndarray: ...

    def blocks(self, name: str) -> Iterator[np.ndarray]: ...

    def like(self, name: str) -> np.ndarray: ...

    def failure(self) -> np.ndarray: ...

    def reasons(self) -> list[str]: ...


class Places(NamedTuple):
    """Where the points of a scan lie on its axes.

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
    columns = {
        "section": outcome.section,
        "section_count": outcome.section_count,
        "strobe": outcome.strobe,
        "finite": _finite(outcome.final),
    }
    if outcome.verdicts is not None:
        verdicts = outcome.verdicts
        columns |= {name: of(verdicts) for name, of in VERDICTS.items()}
    if outcome.production is not None:
        columns |= dict(zip(PRODUCTION, outcome.production, strict=True))
    return {name: np.ascontiguousarray(x) for name, x in columns.items()}


def _finite(state: PyTree) -> np.ndarray:
    """Which of the points have numbers in all their coordinates."""
    leaves = [np.asarray(x) for x in jax.tree.leaves(state) if np.ndim(x)]
    floats = [x for x in leaves if np.issubdtype(x.dtype, np.inexact)]
    finite = [np.isfinite(x).reshape(-1, x.shape[-1]).all(axis=0) for x in floats]
    return np.logical_and.reduce(finite)


def tree_rows(name: str, tree: PyTree, count: int) -> Arrays:
    """A tree of points on the last axis as rows; shared leaves are repeated."""
    leaves = [np.asarray(x) for x in jax.tree.leaves(tree)]
    return {
        f"{name}_{i}": np.moveaxis(x, -1, 0) if x.ndim else np.repeat(x, count)
        for i, x in enumerate(leaves)
    }


def tree_of(name: str, rows: Mapping[str, np.ndarray], like: PyTree) -> PyTree:
    """The tree of such rows; what is shared is 0 in rows that failed."""
    back = lambda x, leaf: np.moveaxis(x, 0, -1) if np.ndim(leaf) else x.max()
    leaves, structure = jax.tree.flatten(like)
    filled = [back(rows[f"{name}_{i}"], leaf) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, [jnp.asarray(x) for x in filled])


def tree_names(name: str, like: PyTree) -> list[str]:
    """Names of the rows of such a tree."""
    return [f"{name}_{i}" for i in range(len(jax.tree.leaves(like)))]


def whole(axes: Axes) -> Places:
    """Every point of the grid."""
    along = {name: ((name,), values) for name, values in axes.scanned.items()}
    return Places(axes.names, along, None)


def computed(grid: Grid, finest: Axes, index: np.ndarray) -> Places:
    """Computed points of a refined grid: a line, or a list of points.

    `index` has their places on the finest grid, in the order of their rows.
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


def assembled(
    diagram: Diagram,
    dimension: int,
    rows: Rows,
    compiler: Compiler,
    places: Places | None = None,
) -> Assembled:
    """The data set of a diagram, large variables as columns."""
    axes, plan, starts = diagram.axes, diagram.plan, diagram.starts
    table, places = diagram.variables, places or whole(axes)
    numbers = {
        "sample": np.arange(plan.section_samples),
        "strobe_sample": np.arange(plan.strobe_samples),
    }
    names = ["section", "section_count", "strobe"]
    if plan.exponents:
        numbers["exponent"] = np.arange(1, plan.exponents + 1)
        names += [n for n in VERDICTS if plan.exponents == dimension or n not in OF_ALL]
        names += ["doubtful", "transient_probability"]
        names += CONFIRMED if diagram.again else ()
        names += PRODUCTION if irreversible(diagram.system, plan) else ()
    dims, shape = places.dims, _shape(places)
    if starts > 1:
        numbers["start"] = np.arange(starts)
        dims, shape = (*dims, "start"), (*shape, starts)
    order = places.order
    if order is not None:  # that of rows, starts fastest
        order = (order[:, None] * starts + np.arange(starts)).ravel()
    columns = {
        name: _column(rows, name, dims, shape, order, table.attributes(name))
        for name in names
    }
    coordinates = {n: (along, x) for n, (along, x) in places.coordinates.items()}
    coordinates |= axes.others(coordinates[axes.names[0]][1])
    dataset = table.labelled({}, numbers).assign_coords(
        {n: (along, x, table.attributes(n)) for n, (along, x) in coordinates.items()}
    )
    again = diagram.again
    confirm = (
        {}
        if again is None
        else {f"confirm_{name}": value for name, value in asdict(again).items()}
    )
    tolerance = plan.section_tolerance
    dataset = dataset.assign_attrs(
        clock_period=diagram.system.drive_period,
        section_tolerance=np.nan if tolerance is None else tolerance,
        transient=plan.transient,
        steps=plan.steps,
        max_doublings=plan.max_doublings,
        refine=diagram.refine,
        **confirm,
        direction=diagram.sweep,
        **compiler.stored(),
        **diagram.attributes,
    )
    failure = rows.failure()
    if failure.any():
        failure = failure if order is None else failure[order]
        dataset["failure"] = (dims, failure.reshape(shape), FAILURE.attributes())
        dataset.attrs["failure_reasons"] = rows.reasons()
    return Assembled(dataset, columns)


def _shape(places: Places) -> tuple[int, ...]:
    coordinates = places.coordinates
    return tuple(
        len(coordinates["level" if d == "point" else d][1]) for d in places.dims
    )


def _column(rows: Rows, name: str, dims, shape, order, attributes) -> Column:
    like = rows.like(name)
    trailing = tuple(ROWS[name].dims.split())

    def blocks() -> Iterator[np.ndarray]:
        if order is None:
            return rows.blocks(name)
        return iter([rows.column(name)[order]])

    return Column(
        (*dims, *trailing),
        (*shape, *like.shape[1:]),
        like.dtype,
        attributes,
        blocks,
    )
