r"""Basins on a plane along a parameter (docs/theory/attractors.md, section 7).

At every value the attractors are found anew, and all states of the plane are followed
(`PlaneBasins`).  What the borders are like is one number each: basin entropy, the same
over boxes on borders, and the uncertainty exponent (`basin_borders`).  Attractors of
neighbouring values are one where their sets are nearest, so that a basin keeps its
number along the parameter.

    diagram = PlaneDiagram(system, state, x, y, {"a": values, "b": 0.3})
    diagram.compute()           the data set
    diagram.run("planes.h5")    the same in a file, in chunks
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from statmech_attn.batches import require_double
from statmech_attn.dynamics import diagrams
from statmech_attn.dynamics.arrivals import NoAttractor
from statmech_attn.dynamics.basin_borders import basin_entropy, uncertainty_exponent
from statmech_attn.dynamics.basins import NOT_SETTLED
from statmech_attn.dynamics.matching import distances, identities, match_by_distance
from statmech_attn.dynamics.observables import label_observables, OBSERVABLES
from statmech_attn.dynamics.options import BasinPlan, Search
from statmech_attn.dynamics.plane_basins import PlaneBasins, ROWS
from statmech_attn.dynamics.starts import start_of_each
from statmech_attn.dynamics.systems import as_system, System
from statmech_attn.labels import STEP, Variable, Variables
from statmech_attn.scan import Assembled, Contents, FAILURE, Points, Results, Tick


POINTS = 64  # of an attractor that are kept
FEWEST = 32  # states along an axis: distances of 1, 2 and 4 cells at least
OF_BORDERS = (
    "basin_entropy",
    "border_entropy",
    "border_share",
    "uncertainty_exponent",
    "uncertainty_exponent_stderr",
)
BORDER = (
    Variable("basin_entropy", "", "basin entropy", "nat", "S_b", group=""),
    Variable(
        "border_entropy",
        "",
        "basin entropy of the border",
        "nat",
        "S_bb",
        group="",
        note="above ln 2 the border is a fractal; NaN without a border",
    ),
    Variable("border_share", "", "boxes with more than one basin", symbol="p_b"),
    Variable(
        "uncertainty_exponent",
        "",
        "uncertainty exponent",
        symbol="α",
        parts="_stderr",
        group="",
        note="1 of a smooth border; NaN without one",
    ),
)


def plane_diagram_variables(
    parameters: Iterable[Variable], unit: str = STEP
) -> Variables:
    """Labels of the variables of a file.

    Args:
        parameters: their labels.
        unit: of time.

    Returns:
        `Variables`, as `PlaneDiagram` takes them.

    Example:
        >>> table = plane_diagram_variables([Variable("F", "", "force", "N", "F")])
        >>> table.attributes("F")["units"]
        'N'
    """
    of_plane = {row.name: row for row in ROWS}
    rows = (
        of_plane["basin"]._replace(
            note="numbers go on along the parameter; -1: on none of them within the "
            "horizon, -2: diverged"
        ),
        of_plane["fraction"],
        of_plane["period"]._replace(
            long_name=f"{of_plane['period'].long_name}, -1 where there is no such set"
        ),
        of_plane["points"],
        *BORDER,
        FAILURE,
        of_plane["x"],
        of_plane["y"],
        *OBSERVABLES,
        *parameters,
    )
    return Variables(*(row.in_steps(unit) for row in rows))


VARIABLES = plane_diagram_variables(())


class PlaneDiagram(Points):
    """Basins on a plane of initial states at every value of a parameter.

    Args:
        system: a `System`, or its step (state, parameters) -> state; parameters are a
            dictionary with the names of the grid.
        state, x, y, along, seeds, search, coarse: as `PlaneBasins` takes them.
        grid: parameters by name, one with several values, the others a number; or
            their `diagrams.Axes`.
        box: cells along the edge of a box of the basin entropy.
        furthest: largest distance of attractors that are one, in units of the plane's
            larger side.
        observables: labels of what is observed of a state; x_1, x_2, ... when omitted.
        variables: of the file, as `plane_diagram_variables` labels them.
        about: attributes of the file.

    Raises:
        ValueError: a plane, grid or choice that makes no sense.

    Example:
        >>> import jax.numpy as jnp
        >>> two = lambda z, p: jnp.stack([p["a"] * jnp.tanh(z[0] + p["h"]), z[1] / 2])
        >>> side = np.linspace(-1, 1, 32)
        >>> diagram = PlaneDiagram(
        ...     two, jnp.zeros(2), side, side, {"a": [0.8, 1.5], "h": 0.01})
        >>> planes = diagram.compute()
        >>> planes.fraction.values.tolist(), planes.uncertainty_exponent.values.round(2)
        ([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]], array([nan,  1.]))
    """

    title = "plane-diagram"
    numbers = ("basin_entropy",)

    def __init__(
        self,
        system: Callable[..., PyTree] | System,
        state: PyTree,
        x: Sequence[float] | np.ndarray,
        y: Sequence[float] | np.ndarray,
        grid: Mapping[str, Any] | diagrams.Axes,
        *,
        along: Sequence[Any] = (0, 1),
        seeds: int = 256,
        search: Search = Search(),
        coarse: int = 1,
        box: int = 5,
        furthest: float = BasinPlan.furthest,
        observables: Sequence[Variable] = (),
        variables: Variables | None = None,
        about: Mapping[str, Any] | None = None,
    ):
        require_double()
        self.system, self.state = as_system(system), state
        self.x, self.y = np.asarray(x, float), np.asarray(y, float)
        if min(self.x.size, self.y.size) < FEWEST or self.x.ndim + self.y.ndim != 2:
            raise ValueError(f"x and y must be lists of {FEWEST} values or more.")
        if not 2 <= box <= FEWEST:
            raise ValueError(f"box must lie in 2..{FEWEST}; got {box}.")
        axes = diagrams.one_axis_of(grid)
        self.grid, self.axes = axes, axes.scanned
        self.box, self.furthest = box, furthest
        self.plane: dict[str, Any] = dict(
            along=along, seeds=seeds, search=search, coarse=coarse
        )
        unit = self.system.unit
        self.variables = variables or plane_diagram_variables(axes.labels, unit)
        name = getattr(self.system.step, "__name__", type(system).__name__)
        lane = start_of_each(state, None, np.zeros(1, int))
        count = jax.eval_shape(self.system.seen, lane).shape[0]
        names = [f"x_{i + 1}" for i in range(count)]
        plain = [Variable(name, "", name, "1", name) for name in names]
        self.observables = tuple(observables) or tuple(plain)
        self.about = about or {"system": name, "unit": unit}

    def row(self, number: int, tick: Tick, folder: Path | None) -> Mapping[str, Any]:
        """Basins and borders at a value; attractors in as many slots as seeds."""
        of_value = self.grid.at(np.array([[number]]))
        parameters = jax.tree.map(lambda values: values[..., 0], of_value)
        slots = self.plane["seeds"]
        row = {
            "basin": np.full((self.y.size, self.x.size), NOT_SETTLED, np.int16),
            "fraction": np.zeros(slots),
            "period": np.full(slots, -1),
            "points": np.full((slots, POINTS, len(self.observables)), np.nan),
            **dict.fromkeys(OF_BORDERS, np.nan),
        }
        try:
            plane = PlaneBasins(
                self.system,
                self.state,
                self.x,
                self.y,
                parameters=parameters,
                **self.plane,
            )
        except NoAttractor:
            return row
        dataset = plane.compute()
        count = dataset.sizes["attractor"]
        sampled = np.linspace(0, dataset.sizes["point"] - 1, POINTS).round().astype(int)
        row["points"][:count] = dataset.points.values[:, sampled]
        row["fraction"][:count], row["period"][:count] = (
            dataset.fraction,
            dataset.period,
        )
        basin = dataset.basin.values
        return row | {"basin": basin} | self._of_borders(basin)

    def _of_borders(self, basin: np.ndarray) -> dict[str, float]:
        """Numbers of the borders of a plane."""
        boxes, exponent, stderr = basin_entropy(basin, self.box), np.nan, np.nan
        try:
            exponent, stderr = uncertainty_exponent(basin)[:2]
        except ValueError:  # no border at a distance: the plane is long enough
            pass
        return dict(zip(OF_BORDERS, (*boxes, exponent, stderr), strict=True))

    def derived(self, columns: Contents) -> Contents:
        """Attractors numbered along the parameter, and no slots without one."""
        of = {name: values for name, (_, values) in columns.items()}
        present = of["period"] >= 0
        sets = [list(rows[there]) for rows, there in zip(of["points"], present)]
        reach = self.furthest * max(np.ptp(self.x), np.ptp(self.y))
        parents = [np.full(len(sets[0]), NOT_SETTLED)]
        for earlier, later in zip(sets, sets[1:]):
            parents.append(match_by_distance(distances(earlier, later), reach))
        numbers = identities(parents)
        count = 1 + max((int(x.max()) for x in numbers if x.size), default=0)
        basin = of["basin"].copy()
        contents = dict(columns)
        for name, blank in (("fraction", 0.0), ("period", -1), ("points", np.nan)):
            dims, values = columns[name]
            numbered = np.full((len(values), count, *values.shape[2:]), blank)
            for i, places in enumerate(numbers):
                numbered[i, places] = values[i, present[i]]
            contents[name] = dims, numbered.astype(values.dtype)
        for i, places in enumerate(numbers):
            on_one = basin[i] >= 0
            basin[i][on_one] = places[basin[i][on_one]]
        contents["basin"] = columns["basin"][0], basin
        return contents

    def coordinates(self) -> Mapping[str, Any]:
        names = [row.name for row in self.observables]
        return {"x": self.x, "y": self.y, "observable": names}

    def attributes(self) -> Mapping[str, Any]:
        along = self.plane["along"]
        shown = self.system.observe is None and all(np.ndim(x) == 0 for x in along)
        about = {"kind": self.title, "parameter": self.grid.names[0], **self.about}
        return about | ({"along": np.array(along)} if shown else {})

    def assemble(self, results: Results) -> Assembled:
        """With the other parameters, and labels of what is observed."""
        dataset, rows = super().assemble(results).dataset, self.observables
        labels = rows, self.grid.others(), self.variables
        return Assembled(label_observables(dataset, *labels))
