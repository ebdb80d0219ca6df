"""Every step of the orbits of a system after a transient, along one parameter.

Orbits are iterated side by side, `batch` of them at once.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from statmech_attn.batches import once, require_double
from statmech_attn.dynamics.diagrams.axes import Axes, axes_of
from statmech_attn.dynamics.maps.coordinates import advance
from statmech_attn.dynamics.maps.observables import (
    label_observables,
    observable_names,
    OBSERVABLES,
)
from statmech_attn.dynamics.maps.starts import start_of_each
from statmech_attn.dynamics.maps.systems import as_system, System
from statmech_attn.labels import STEP, Variable, Variables
from statmech_attn.options import Count, WholeNumber
from statmech_attn.reporting import size
from statmech_attn.scan import (
    Arrays,
    Assembled,
    Chunk,
    FAILURE,
    Pilot,
    Points,
    Results,
    Tick,
)


LARGEST = 4 * 2**30  # bytes kept in memory
BATCH = 32  # orbits side by side at most
PIECE = 8192  # steps of a transient between two ticks
ROWS = (  # files have the scanned parameter as the first dimension
    Variable(
        "observed",
        "time observable",
        "what is observed of the state",
        "1",
        "x",
        group="",
        note="each with a unit of its own, `observable_unit`",
    ),
    FAILURE,
    Variable("time", "time", "time after the transient", "{unit}", "t"),
    *OBSERVABLES,
)


def trajectory_variables(*parameters: Variable, unit: str = STEP) -> Variables:
    """Labels of the variables of a file; `unit` is that of time."""
    rows = (row.in_steps(unit) for row in ROWS)
    return Variables(*rows, *parameters, attributes=("system",))


VARIABLES = trajectory_variables()


def trajectories(
    system: Callable[..., PyTree] | System,
    grid: Mapping[str, Any] | Axes,
    start: PyTree | Callable[[PyTree], PyTree],
    *,
    steps: Count,
    transient: WholeNumber = 0,
    observables: Sequence[str] | None = None,
) -> "Trajectories":
    """Orbits of any system, step by step, at every value of a parameter.

    Args:
        system: a `System`, or its step (state, parameters) -> state; parameters are a
            dictionary with the names of the grid.
        grid: parameters by name: one with several values, the others a number; or a
            `point_list`.
        start: state in which every orbit begins, or a function (of JAX): parameters of
            one orbit -> its state.
        steps: that are kept.
        transient: steps before them.
        observables: names of what is observed; x or x_1, x_2, ... when omitted.

    Returns:
        the orbits: `compute()` gives their data set, `run(path)` also writes it.

    Raises:
        ValueError: a grid, a count or names that make no sense, a map that changes its
            state's shape, or more than fits into memory.

    Example:
        >>> import jax.numpy as jnp
        >>> henon = lambda x, p: jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], 0.3 * x[0]])
        >>> orbits = trajectories(
        ...     henon, {"a": [0.2, 1.4]}, jnp.zeros(2), steps=3, observables=["x", "y"])
        >>> x = orbits.compute().observed.sel(a=1.4, observable="x")
        >>> x.values.round(2).tolist()
        [0.0, 1.0, -0.4]
    """
    require_double()
    axes, system = axes_of(grid), as_system(system)
    if len(axes.names) > 1:
        raise ValueError(
            f"grid must hold one parameter with several values; got {axes.names}."
        )
    starts, parameters = partial(start_of_each, start), axes.at(np.zeros((1, 1), int))
    first = starts(parameters, np.arange(1))
    system.check(first, parameters)
    names = observable_names(system, first, observables)
    return Trajectories(
        system,
        axes,
        starts,
        steps=steps,
        transient=transient,
        parameters=Variables(*axes.labels),
        observables=[Variable(name, "", name, "1", name) for name in names],
        about={
            "system": getattr(system.step, "__name__", "system"),
            "unit": system.unit,
        },
    )


class Trajectories(Points):
    """Orbits of any system along a parameter, step by step; see `trajectories`.

    Args:
        system: the map.
        axes: one scanned parameter, and the others.
        starts: parameters and numbers of some points -> their states, with the points
            on the last axis.
        steps: that are kept.
        transient: steps before them.
        parameters: their labels.
        observables: their labels, in order.
        about: attributes of the file; `system` is the name of the system.
        batch: orbits side by side, of which a chunk holds a multiple; a number that
            depends on the points alone when omitted.

    Raises:
        ValueError: more than fits into memory.
    """

    title = "trajectory"
    variables = VARIABLES
    numbers = ("observed",)
    segment = 2048  # kept steps between two ticks at most

    def __init__(
        self,
        system: System,
        axes: Axes,
        starts: Callable[[PyTree, np.ndarray], PyTree],
        *,
        steps: int,
        transient: int = 0,
        parameters: Variables,
        observables: Sequence[Variable],
        about: Mapping[str, Any],
        batch: int | None = None,
    ):
        self.system, self.observables = system, tuple(observables)
        table = trajectory_variables(*parameters, unit=system.unit)
        self.lost = f"{about['system']} diverges"
        self._begin(axes, starts, table, about, steps, transient)
        self.batch = batch or self._chosen_batch()
        self.require_memory(self.width)

    def _begin(
        self,
        axes: Axes,
        starts: Callable[[PyTree, np.ndarray], PyTree],
        variables: Variables,
        about: Mapping[str, Any],
        steps: int,
        transient: int,
    ) -> None:
        self.grid, self.starts, self.variables = axes, starts, variables
        self.about, self.steps, self.transient = about, steps, transient
        self.axes = axes.scanned | {name: [x] for name, x in axes.fixed.items()}
        self.single = tuple(axes.fixed)

    @property
    def width(self) -> int:
        """Numbers that are kept of a step."""
        return len(self.observables)

    def require_memory(self, numbers: int) -> None:
        """Refuse trajectories that fill the memory.

        Args:
            numbers: that are held of a step.

        Raises:
            ValueError: they do.
        """
        needed = 8 * self.total * numbers * self.steps
        if needed > LARGEST:
            raise ValueError(
                f"steps: these trajectories need {size(needed)} of memory, more than "
                f"{size(LARGEST)}; keep fewer steps or {self.grid.names[0]}, or "
                "make a bifurcation diagram."
            )

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        """(points, time, ...) of every name."""
        parts = [
            self._compute(np.arange(first, min(first + self.batch, chunk.stop)), tick)
            for first in range(chunk.first, chunk.stop, self.batch)
        ]
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def pilot(self) -> Pilot:
        """Forecast from two segments of one batch, of which the first one compiles."""
        seconds = []
        for _ in range(2):
            clock = time.perf_counter()
            self.moved(*self._start(np.arange(1)), PIECE, lambda _: None)
            moved = time.perf_counter()
            self.recorded(*self._start(np.arange(1)), 1, lambda _: None)
            seconds = [moved - clock, time.perf_counter() - moved]
        stretches = self.transient / PIECE, self.steps / self.length
        seconds_of_point = float(np.dot(stretches, seconds)) / self.batch
        arrays = 8 * self.steps * self.width
        return Pilot(seconds_of_point, 2 * self.batch * arrays, arrays)

    def coordinates(self) -> dict[str, Any]:
        names = [label.name for label in self.observables]
        return {"time": np.arange(self.steps), "observable": names}

    def attributes(self) -> dict[str, Any]:
        return {"kind": self.title, **self.about}

    def assemble(self, results: Results) -> Assembled:
        dataset = super().assemble(results).dataset
        labels = self.observables, self.grid.others(), self.variables
        return Assembled(label_observables(dataset, *labels))

    @property
    def length(self) -> int:
        """Kept steps between two ticks, equal parts of all of them."""
        return -(-self.steps // -(-self.steps // self.segment))

    def _chosen_batch(self) -> int:
        """A number that depends on the points alone: no bit depends on a device."""
        return min(BATCH, -(-self.total // 8) * 8)

    def _start(self, index: np.ndarray):
        """Parameters and start of a batch that is filled up with its last point."""
        index = np.pad(index, (0, self.batch - len(index)), mode="edge")
        params = self.grid.at(index[:, None])
        return params, self.starts(params, np.zeros(self.batch, int))

    def _compute(self, index: np.ndarray, tick: Tick) -> Arrays:
        tick_steps = lambda steps: tick(
            len(index) * steps / (self.transient + self.steps)
        )
        params, state = self._start(index)
        state = self.moved(params, state, self.transient, tick_steps)
        arrays = self.recorded(params, state, self.steps, tick_steps)
        return {name: x[: len(index)] for name, x in arrays.items()}

    def moved(self, params: PyTree, state: PyTree, steps: int, tick: Tick) -> PyTree:
        """The state after some steps.

        Args:
            params, state: of a batch, points on the last axis.
            steps: number of steps.
            tick: told of every stretch of them.
        """
        for first in range(0, steps, PIECE):
            stretch = min(PIECE, steps - first)
            state = self.advanced(params, state, stretch)
            jax.block_until_ready(state)
            tick(stretch)
        return state

    def advanced(self, params: PyTree, state: PyTree, steps: int) -> PyTree:
        """The state after so few steps that nobody waits for them.

        Args:
            params, state: of a batch, points on the last axis.
            steps: number of steps.
        """
        return advance(self.system, params, state, steps)

    def recorded(self, params: PyTree, state: PyTree, steps: int, tick: Tick) -> Arrays:
        """Rows (batch, steps, ...) from a state on, in stretches of one length.

        Args:
            params, state: of a batch, points on the last axis.
            steps: number of steps.
            tick: told of every stretch of them.
        """
        parts = []
        for first in range(0, steps, self.length):
            state, recorded = self._recorded(params, state)
            parts.append(np.moveaxis(np.asarray(recorded), -1, 0))
            tick(min(self.length, steps - first))
        return {"observed": np.concatenate(parts, axis=1)[:, :steps]}

    @once
    def _recorded(self):
        """One stretch: the state after it, and (steps, observables, points)."""
        system, length = self.system, self.length

        def step(carry, _):
            params, state = carry
            return (params, system.steps(state, params)), system.seen(state)

        def stretch(params, state):
            (_, state), recorded = jax.lax.scan(
                step, (params, state), None, length=length
            )
            return state, recorded

        return jax.jit(stretch)
