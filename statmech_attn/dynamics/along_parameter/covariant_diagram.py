r"""Covariant Lyapunov vectors along a parameter: where chaos is hyperbolic.

At every value the smallest angle of the expanding with the other directions is taken
along one orbit (`covariant_vectors`).  An attractor is uniformly hyperbolic only where
this angle keeps away from zero; where directions become tangent the share of steps with
a smaller angle falls no faster than with the angle itself, $\\alpha = 1$.

    diagram = CovariantDiagram(system, state, {"a": values, "b": 0.3}, steps=10_000)
    diagram.compute()              the data set
    diagram.run("angles.h5")       the same in a file, in chunks
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn.batches import require_double
from statmech_attn.dynamics import diagrams
from statmech_attn.dynamics.exponents.covariant_vectors import (
    covariant_vectors,
    NoDirection,
    ROWS,
    vectors_of,
)
from statmech_attn.dynamics.maps.observables import label_observables
from statmech_attn.dynamics.maps.systems import as_system, System
from statmech_attn.labels import STEP, Variable, Variables
from statmech_attn.options import require_least
from statmech_attn.scan import Assembled, FAILURE, Points, Results, Tick


SHARES = 0.001, 0.01, 0.1, 0.5  # of the steps whose angles are smaller
OF_VALUE = ("covariant_exponent", "smallest_angle", "tangency_exponent", "split")


def covariant_diagram_variables(
    parameters: Iterable[Variable], unit: str = STEP
) -> Variables:
    """Labels of the variables of a `CovariantDiagram` file; `unit` is that of time."""
    rows = (
        *(
            row.over(row.dims, " ".join(row.endings[1:]), group="", value="", error="")
            for row in ROWS
            if row.name in OF_VALUE
        ),
        Variable(
            "angle_quantile",
            "share",
            "angle below which a share of the steps lies",
            "rad",
            "θ_q",
            group="",
            note="NaN where no vector expands, or all do",
        ),
        Variable("share", "share", "share of the steps", symbol="q"),
        FAILURE,
        *parameters,
    )
    return Variables(*(row.in_steps(unit) for row in rows))


VARIABLES = covariant_diagram_variables(())


class CovariantDiagram(Points):
    """Covariant Lyapunov vectors at every value of a parameter.

    Args:
        system: a `System`, or its step (state, parameters) -> state; parameters are a
            dictionary with the names of the grid.
        state: where the orbit starts at every value.
        grid: parameters by name, one with several values, the others a number; or
            `diagrams.Axes`, such as a `point_list`.
        steps, transient, exponents, split, align: as `covariant_vectors` takes them;
            without `split` the angle is that of vectors that expand at the value.
        about: attributes of the file.

    Raises:
        ValueError: a grid or count that makes no sense.

    Example:
        >>> def henon(x, p):
        ...     return jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], p["b"] * x[0]])
        >>> diagram = CovariantDiagram(henon, jnp.array([0.1, 0.2]),
        ...                            {"a": [1.0, 1.4], "b": 0.3}, steps=400,
        ...                            transient=400)
        >>> angles = diagram.compute()
        >>> angles.split.values.tolist(), (angles.smallest_angle < 0.1).values.tolist()
        ([0, 1], [False, True])
    """

    title = "covariant-diagram"
    numbers = ("covariant_exponent",)

    def __init__(
        self,
        system: Callable[..., PyTree] | System,
        state: PyTree,
        grid: Mapping[str, Any] | diagrams.Axes,
        *,
        steps: int,
        transient: int = 0,
        exponents: int | None = None,
        split: int | None = None,
        align: int | None = None,
        about: Mapping[str, Any] | None = None,
    ):
        require_double()
        self.system = as_system(system)
        self.state = jax.tree.map(jnp.asarray, state)
        self.grid = diagrams.one_axis_of(grid)
        self.axes = self.grid.scanned
        require_least(1, steps=steps)
        require_least(0, transient=transient)
        first = self.system.at(self._parameters(0))
        self.window: dict[str, Any] = dict(
            steps=steps,
            transient=transient,
            exponents=vectors_of(first, self.state, exponents, split),
            split=split,
            align=align,
        )
        self.variables = covariant_diagram_variables(self.grid.labels, self.system.unit)
        name = getattr(self.system.step, "__name__", type(system).__name__)
        self.about = about or {"system": name, "unit": self.system.unit}

    def row(self, number: int, tick: Tick, folder: Path | None) -> Mapping[str, Any]:
        """Exponents and the law of the angle at a value; NaN without directions."""
        nothing = np.full(self.window["exponents"], np.nan)
        row = {
            "covariant_exponent": nothing,
            "covariant_exponent_stderr": nothing,
            "smallest_angle": np.nan,
            "angle_quantile": np.full(len(SHARES), np.nan),
            "tangency_exponent": np.nan,
            "tangency_exponent_stderr": np.nan,
            "split": -1,
        }
        try:
            vectors = covariant_vectors(
                self.system, self.state, self._parameters(number), **self.window
            )
        except NoDirection:
            return row
        power, error = vectors.tangency()
        return {
            "covariant_exponent": vectors.exponents,
            "covariant_exponent_stderr": vectors.stderr,
            "smallest_angle": vectors.angles.min(),
            "angle_quantile": np.quantile(vectors.angles, SHARES),
            "tangency_exponent": power,
            "tangency_exponent_stderr": error,
            "split": vectors.split,
        }

    def coordinates(self) -> Mapping[str, Any]:
        return {"share": np.array(SHARES)}

    def attributes(self) -> Mapping[str, Any]:
        about = {"kind": self.title, "parameter": self.grid.names[0]}
        return about | dict(self.about)

    def assemble(self, results: Results) -> Assembled:
        """With the other parameters."""
        dataset = super().assemble(results).dataset
        others = self.grid.others()
        return Assembled(label_observables(dataset, (), others, self.variables))

    def _parameters(self, number: int) -> PyTree:
        values = self.grid.at(np.array([[number]]))
        return jax.tree.map(lambda value: jnp.asarray(value)[..., 0], values)
