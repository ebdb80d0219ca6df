"""Which attractor goes on as which along the parameter of a file of basins.

By distance from the points that the file holds; by flow from where its attractors went
when they were followed at the next value (docs/theory/attractors.md, section 3).
"""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from statmech_attn.dynamics.along_parameter.basin_variables import ATTRACTOR
from statmech_attn.dynamics.attractors.basins import CLOSE, SCATTERS
from statmech_attn.dynamics.attractors.matching import (
    directed_distance,
    distances,
    identities,
    match_by_distance,
    match_by_flow,
    resolution,
    set_distance,
)
from statmech_attn.dynamics.attractors.settled_orbits import (
    CYCLE,
    KIND_DIVERGED,
    Orbits,
    UNSETTLED,
)
from statmech_attn.options import Positive


def match_attractors(
    dataset: xr.Dataset,
    furthest: Positive = 0.1,
    *,
    targets: Callable[[xr.Dataset], list[np.ndarray]] | None = None,
) -> xr.Dataset:
    """Number the attractors of a file along its parameter, from what it holds.

    Args:
        dataset: of kind `basins`, as `BasinDiagram` computes it.
        furthest: attractors are one at neighbouring values up to this distance, in
            units of the extent of all points of the file.
        targets: function of the data set, such as `BasinDiagram.targets`: for every
            value but the last, in their order, the attractor at the next value to which
            each one flows, or -1.  Attractors are matched by distance when omitted.

    Returns:
        The data set with other numbers `attractor`, and attributes that say how they
        were found.

    Raises:
        ValueError: another kind of file, or a distance that is not positive and finite.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn.dynamics import BasinDiagram, BasinPlan, Search
        >>> cubic = lambda x, p: p["r"] * x - x**3
        >>> diagram = BasinDiagram(
        ...     cubic, jnp.array([-0.6, -0.2, 0.3]), {"r": [0.9, 1.1, 1.3]},
        ...     search=Search(horizon=6000, record=128), plan=BasinPlan(steps=1000))
        >>> basins = diagram.compute()
        >>> match_attractors(basins, 0.3).attractor.values.tolist()
        [[0, -1], [0, 1], [0, 1]]
        >>> match_attractors(basins, 0.01).attractor.values.tolist()
        [[0, -1], [1, 2], [3, 4]]
        >>> match_attractors(basins, targets=diagram.targets).matching
        'flow'
    """
    if dataset.attrs.get("kind") != "basins":
        raise ValueError(
            "dataset must be of kind 'basins', which has sets; got "
            f"{dataset.attrs.get('kind')!r}."
        )
    name = scanned(dataset)
    order = np.argsort(dataset[name].values, kind="stable")
    sets = sets_of(dataset.isel({name: order}))
    flows = targets(dataset) if targets else None
    parents = [np.full(len(sets[0]), -1)]
    for i in range(len(sets) - 1):
        between = distances(sets[i], sets[i + 1])
        parents.append(
            match_by_distance(between, furthest * _extent(dataset))
            if flows is None
            else match_by_flow(flows[i], between)
        )
    numbers = np.full(dataset["count"].shape, -1)
    for i, numbered in zip(order, identities(parents), strict=True):
        numbers[i, : len(numbered)] = numbered
    attractor = dataset["count"].dims, numbers, ATTRACTOR.attributes()
    return dataset.assign(attractor=attractor).assign_attrs(
        matching="distance" if flows is None else "flow", furthest=furthest
    )


def scanned(dataset: xr.Dataset) -> str:
    """Name of the parameter along which a `basins` file has its attractors."""
    return str(dataset["count"].dims[0])


def sets_of(dataset: xr.Dataset) -> list[list[np.ndarray]]:
    """Points (points, d) of all attractors of every value in a `basins` file."""
    points = dataset.points.transpose(scanned(dataset), "slot", "point", ...).values
    number, present = dataset.n_points.values, (dataset["count"] > 0).sum("slot").values
    return [
        [points[i, k, : int(number[i, k])] for k in range(count)]
        for i, count in enumerate(present)
    ]


def _extent(dataset: xr.Dataset) -> float:
    """The largest range of a coordinate over all sets of the file."""
    points = dataset.points.transpose(scanned(dataset), "slot", "point", ...).values
    points = points.reshape(-1, points.shape[-1])
    points = points[np.isfinite(points).all(axis=1)]
    return float(np.ptp(points, axis=0).max()) if len(points) else 0.0


def set_of_orbit(
    orbits: Orbits, lane: int, sets: Sequence[np.ndarray], periods: np.ndarray
) -> int:
    """The set on which an orbit ended; -1: on none of them.

    All stored points of a cycle are points of the one it is, whose period it has; there
    may be fewer of them than the cycle has.  `sets` are (points, d) each; `periods` of
    these are in steps, 0 where they do not recur, and may be followed by others.
    """
    if orbits.kind[lane] in (KIND_DIVERGED, UNSETTLED) or not sets:
        return -1
    ended, recurs = orbits.set_of(lane), orbits.kind[lane] == CYCLE
    apart = np.array(
        [
            directed_distance(points, ended) if recurs else set_distance(ended, points)
            for points in sets
        ]
    )
    if recurs:
        apart[periods[: len(sets)] != orbits.period[lane]] = np.inf
    nearest = int(np.argmin(apart))
    if recurs:
        reach = 10 * CLOSE * (1 + np.abs(ended).max())
    else:
        points = sets[nearest]
        spacing = resolution(points) if len(points) > 3 else 0.0
        reach = SCATTERS * max(orbits.scatter[lane], spacing)
    return nearest if apart[nearest] <= reach else -1
