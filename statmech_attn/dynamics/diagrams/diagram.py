"""Diagrams of a system of one's own: in memory, or in chunks and a file."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PyTree

from statmech_attn.batches import require_double
from statmech_attn.dynamics.diagrams.axes import Axes, axes_of
from statmech_attn.dynamics.diagrams.diagram_variables import variables
from statmech_attn.dynamics.diagrams.rows import Diagram
from statmech_attn.dynamics.diagrams.work import diagram_work
from statmech_attn.dynamics.maps.starts import start_of_each
from statmech_attn.dynamics.maps.systems import as_system, System
from statmech_attn.dynamics.maps.tracing import untraced
from statmech_attn.dynamics.options import Confirm, Plan, WITHOUT_SECTION
from statmech_attn.options import WholeNumber
from statmech_attn.reporting import Reporter, Silent


@untraced
def diagram(
    system: Callable[..., PyTree] | System,
    grid: Mapping[str, Any] | Axes,
    start: PyTree | Callable[[PyTree], PyTree],
    plan: Plan | None = None,
    *,
    refine: WholeNumber = 0,
    sweep: str = "",
    confirm: Confirm = Confirm(),
    file: str | Path | None = None,
    overwrite: bool = False,
    report: Reporter = Silent(),
) -> xr.Dataset:
    """Bifurcation or phase diagram: sections, exponents and phases over a grid.

    Args:
        system: a `System`, or its step (state, parameters) -> state; parameters are a
            dictionary with the names of the grid.
        grid: parameters by name: one or two with several values, the others a number;
            or a `point_list` in any number of them.
        start: state in which every point, or every column of a sweep, begins; or a
            function (of JAX): parameters of one point -> its state.
        plan: transient, windows, exponents, and what is recorded; when omitted, the
            default one, without a section, and with as many exponents as a state has
            coordinates, 4 at most.
        refine: levels of halving where neighbours differ in phase or period.
        sweep: "up" or "down": attractors are followed along the first parameter.
        confirm: how doubtful points are run again; `Confirm(0)`: not at all.
        file: HDF5 file to be written.  It is computed in chunks beside it, so that the
            same call goes on where a killed one ended; one that holds this diagram is
            read.
        overwrite: replace a file, and chunks, of another diagram.
        report: told of the progress.

    Returns:
        data set over the grid with `section`, `strobe`, `lyapunov` (nats per step) with
        errors, `phase`, `period` and the evidence for them.

    Raises:
        ValueError: a grid, plan or system that makes no sense.
        StorageError: the file is another one's, or cannot be written.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> plan = Plan(transient=2000, steps=2000, exponents=1)
        >>> scan = diagram(logistic, {"r": [2.5, 3.2, 4.0]}, jnp.array(0.3), plan)
        >>> scan.period.values.tolist()
        [1, 2, 0]
    """
    require_double()
    if sweep not in ("", "up", "down") or (sweep and refine):
        raise ValueError(
            f'sweep must be "up" or "down", and of a grid without refine; got {sweep!r}'
            f" with refine = {refine}."
        )
    system, axes = as_system(system), axes_of(grid)
    if refine:
        axes.refined(refine)
    starts = partial(start_of_each, start)
    if plan is None:
        coordinates = _coordinates(system, axes, starts)
        exponents = min(Plan.exponents, coordinates)
        plan = Plan(exponents=exponents, **WITHOUT_SECTION)
    posed = Diagram(
        system,
        axes,
        starts,
        plan,
        variables(axes.labels, unit=system.unit),
        refine=refine,
        sweep=sweep,
        confirm=confirm,
        attributes={"kind": "diagram", "unit": system.unit},
    )
    work = diagram_work(posed)
    if file is None:
        return work.compute(report)
    return work.run(file, report, overwrite=overwrite)


def _coordinates(system: System, axes: Axes, starts) -> int:
    """Of a state, as that of the first point."""
    params = axes.at(np.zeros((1, len(axes.shape)), int))
    state = starts(params, np.zeros(1, int))
    first = jax.tree.map(jnp.asarray, (params, state))
    return jax.eval_shape(system.beside(first[0]).vector, first[1]).shape[0]
