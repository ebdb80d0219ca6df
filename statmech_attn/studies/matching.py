"""Numbers of the sets of a basin file along its parameter, from what the file holds.

By distance nothing is followed anew.  By flow the states kept of every set are followed
at the next value of the parameter; no new starts are drawn.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn.dynamics import (
    attractors,
    basins,
    directed_distance,
    distances,
    follow_with,
    Follower,
    identities,
    match_by_distance,
    match_by_flow,
    most_common,
    Orbits,
    resolution,
    Search,
    set_distance,
    starts_of,
)
from statmech_attn.labels import Variable
from statmech_attn.storage import toml
from statmech_attn.studies import code, posed
from statmech_attn.studies.basins_table import BasinsStudy, SystemBasinsStudy
from statmech_attn.studies.posed import Posed
from statmech_attn.studies.spec import dump, parse
from statmech_attn.studies.tables import chosen


LOOKS = 8  # for how long states are followed at the next value


def rematch(
    dataset: xr.Dataset,
    matching: str = "distance",
    furthest: float = 0.1,
    folder: Path = Path(),
    *,
    allow_code: bool = False,
) -> xr.Dataset:
    """Match the sets of a basin file along the parameter again.

    Args:
        dataset: a file of kind `basins`.
        matching: "distance", from the stored points, or "flow", from the stored states
            and the network that the study in the file names.
        furthest: sets are one at neighbouring values up to this distance, in units of
            the extent of all points of the file.
        folder: where the files are that the study names.
        allow_code: run the code that the study names, if it names any, which matching
            by flow does.

    Returns:
        The data set with other numbers of the sets; its attribute `study` is the study
        that gives these.

    Raises:
        ValueError: another kind of file, an unknown way of matching, a distance that
            is not positive and finite, or a study that names another network than
            that of the file.

    Example:
        `rematch(storage.read("basins.h5"), "distance", furthest=0.05)`
    """
    if not 0 < furthest < np.inf:
        raise ValueError(f"furthest must be > 0 and finite; got {furthest:g}.")
    if dataset.attrs.get("kind") != "basins":
        raise ValueError(
            "dataset must be of kind 'basins', which has sets; got "
            f"{dataset.attrs.get('kind')!r}."
        )
    if matching not in ("flow", "distance"):
        raise ValueError(f"matching must be 'flow' or 'distance'; got {matching!r}.")
    if not dataset.attrs.get("study"):
        raise ValueError(
            "dataset must be that of a file: only a file names its study; store the "
            "data set first."
        )
    tree = toml.loads(dataset.attrs["study"])
    study = parse(tree).beside(folder)
    assert isinstance(study, BasinsStudy | SystemBasinsStudy)
    problem = None
    if matching == "flow":
        if study.code() and not allow_code:
            raise ValueError(
                f"matching by flow runs {code.brief(study.code()[0])}; pass "
                "--allow-code to run it, or match by distance."
            )
        problem = posed.pose(study)
        if isinstance(study, BasinsStudy):
            _require_network(problem, dataset)
    rematched = matched(dataset, problem, furthest, how=chosen(Search, study.run))
    wanted = {"matching": matching, "furthest": furthest}
    changed = {k: v for k, v in wanted.items() if getattr(study.run, k) != v}
    if not changed:
        return rematched
    run = tree.get("run", {}) | changed
    return rematched.assign_attrs(study=dump(tree | {"run": run}))


def _require_network(problem: Posed, dataset: xr.Dataset) -> None:
    if problem.attributes["network"] != dataset.attrs["network"]:
        raise ValueError(
            "network: the study names a network that is not the file's; its patterns "
            "may have changed."
        )


ATTRACTOR = Variable(
    "attractor",
    "slot",
    "number of the set along the parameter, -1: none",
    "1",
    "k",
    group="",
)


def matched(
    dataset: xr.Dataset,
    problem: Posed | None,
    furthest: float,
    how: Follower | Search,
) -> xr.Dataset:
    """Add the variable `attractor`; by flow where the system is given.

    Args:
        how: the compiled map, or how it is to be followed.
    """
    name = str(dataset["count"].dims[0])
    order = np.argsort(dataset[name].values, kind="stable")
    sets = [_sets(dataset.isel({name: i})) for i in order]
    reach = furthest * _extent(dataset)
    flows = None
    if problem is not None:
        flows = _flows(dataset.isel({name: order}), name, problem, sets, how)
    parents = [np.full(len(sets[0]), -1)]
    for i in range(len(sets) - 1):
        between = distances(sets[i], sets[i + 1])
        parents.append(
            match_by_distance(between, reach)
            if flows is None
            else match_by_flow(flows[i], between)
        )
    numbers = np.full(dataset["count"].shape, -1)
    for i, numbered in zip(order, identities(parents), strict=True):
        numbers[i, : len(numbered)] = numbered
    variable = (dataset["count"].dims, numbers, ATTRACTOR.attributes())
    return dataset.assign(attractor=variable).assign_attrs(
        matching="distance" if problem is None else "flow", furthest=furthest
    )


def _sets(here: xr.Dataset) -> list[np.ndarray]:
    """The points of every set of one value of the parameter."""
    present = range(int((here["count"] > 0).sum()))
    points = here.points.transpose("slot", "point", ...).values
    return [points[k, : int(here.n_points[k])] for k in present]


def _extent(dataset: xr.Dataset) -> float:
    """The largest range of a coordinate over all sets of the file."""
    points = dataset.points.transpose(..., _observed(dataset)).values
    points = points.reshape(-1, points.shape[-1])
    points = points[np.isfinite(points).all(axis=1)]
    return float(np.ptp(points, axis=0).max()) if len(points) else 0.0


def _observed(dataset: xr.Dataset) -> str:
    """The dimension of what is observed of a state."""
    return "pattern" if "pattern" in dataset.points.dims else "observable"


def _flows(
    dataset: xr.Dataset, name: str, problem: Posed, sets, how: Follower | Search
) -> list[np.ndarray]:
    """For every value but the last: where its sets flow at the next value."""
    places = [
        (i, k) for i, sets_there in enumerate(sets[:-1]) for k in range(len(sets_there))
    ]
    periods = dataset.period.transpose(name, "slot").values
    flows = [np.full(len(sets_there), -1) for sets_there in sets[:-1]]
    if not places:
        return flows
    states = dataset.states.transpose(name, "slot", "turn", ...).values
    windows = np.concatenate([states[i, k] for i, k in places])
    after = np.repeat([i + 1 for i, _ in places], states.shape[2])
    column = lambda key: np.broadcast_to(dataset[key].values, dataset.sizes[name])[
        after
    ]
    axes = problem.axes
    params = axes.make({key: column(key) for key in (*axes.names, *axes.fixed)})
    start = problem.layout.state(params, jnp.moveaxis(jnp.asarray(windows), 0, -1))
    start, params = starts_of((start, params))
    if isinstance(how, Search):
        how = Follower(problem.system, how, start, params)
    short = how.until(LOOKS * how.steps_per_look)
    orbits = follow_with(short, start, params)
    for j, (i, k) in enumerate(places):
        row = range(j * states.shape[2], (j + 1) * states.shape[2])
        there = sets[i + 1], periods[i + 1]
        arrived = [_arrival(orbits, lane, *there) for lane in row]
        flows[i][k] = most_common(np.array(arrived))
    return flows


def _arrival(orbits: Orbits, lane: int, sets: list[np.ndarray], periods) -> int:
    """The set on which an orbit ended, -1: on none of them.

    All stored points of a cycle are points of the one it is, whose period it has; there
    may be fewer of them than the cycle has.
    """
    if orbits.kind[lane] in (attractors.GONE, attractors.UNSETTLED) or not sets:
        return -1
    ended, recurs = orbits.set_of(lane), orbits.kind[lane] == attractors.CYCLE
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
        reach = 10 * basins.CLOSE * (1 + np.abs(ended).max())
    else:
        reach = basins.SCATTERS * max(orbits.scatter[lane], _spacing(sets[nearest]))
    return nearest if apart[nearest] <= reach else -1


def _spacing(points: np.ndarray) -> float:
    return resolution(points) if len(points) > 3 else 0.0
