"""Two scans that follow an attractor up and down, compared (dynamics.sweeps)."""

import numpy as np
import xarray as xr

from statmech_attn.dynamics import (
    intervals,
    PHASES,
    resolution,
    set_distance,
    sets_differ,
)
from statmech_attn.labels import unit_of, Variable, Variables
from statmech_attn.storage import toml


# Files have the swept parameter as the first dimension.
VARIABLES = Variables(
    Variable(
        "strobe_up", "strobe_sample", "m_o_se_1 at the clock's phase 0, swept up", "1",
        "m^{o,SE}_1", group="",
    ),
    Variable(
        "strobe_down", "strobe_sample", "m_o_se_1 at the clock's phase 0, swept down",
        "1", "m^{o,SE}_1", group="",
    ),
    Variable(
        "phase_up", "", "phase of the orbit swept up", "1", "phase", flags=PHASES
    ),
    Variable(
        "phase_down", "", "phase of the orbit swept down", "1", "phase", flags=PHASES
    ),
    Variable(
        "distance", "", "distance of the sets of the two sweeps", "1", "D", group=""
    ),
    Variable(
        "differ", "", "the sweeps end on different sets", "1", "differ", group=""
    ),
    Variable(
        "interval", "number edge",
        "value of the parameter around an interval of hysteresis", "1", "p", group="",
    ),
    Variable(
        "strobe_sample", "strobe_sample", "sample at the clock's phase 0, latest last",
        "1", "n",
    ),
    Variable("number", "number", "interval of hysteresis", "1", "k"),
    Variable(
        "edge", "edge", "last value before, first and last in it, first after", "1",
        "edge",
    ),
)  # fmt: skip


def compare_sweeps(up: xr.Dataset, down: xr.Dataset) -> xr.Dataset:
    """Where a scan with start "continue-up" and one with "continue-down" differ.

    The samples at the clock's phase 0 are compared, value by value: cycles exactly,
    other orbits, and cycles with more points than samples, in units of the distance
    between the halves of their samples.

    Args:
        up, down: files of kind `bifurcation` over the same values of one parameter.

    Returns:
        Data set with the samples of both sweeps, their distance, and the intervals in
        which they differ.

    Raises:
        ValueError: other kinds, systems, values or directions, or more than one
            parameter.

    Example:
        `compare_sweeps(storage.read("up.h5"), storage.read("down.h5")).statmech.plot()`
    """
    for scan in (up, down):
        if scan.attrs.get("kind") != "bifurcation" or "phase" not in scan:
            raise ValueError(
                "hysteresis needs two bifurcation files with phases; "
                f"got {scan.attrs.get('kind')!r}."
            )
    names = [str(d) for d in up.strobe.dims if d != "strobe_sample"]
    if (
        len(names) != 1
        or names[0] in ("point", "start")
        or up.strobe.dims != down.strobe.dims
    ):
        raise ValueError(
            "hysteresis is shown along one scanned parameter from one start; "
            f"got the dimensions {list(up.strobe.dims)} and {list(down.strobe.dims)}."
        )
    name = names[0]
    up, down = up.sortby(name), down.sortby(name)
    _check_alike(up, down, name)
    comparisons = [
        _compared(up.isel({name: i}), down.isel({name: i}))
        for i in range(up.sizes[name])
    ]
    distance, differ = (np.array(x) for x in zip(*comparisons, strict=True))
    values = up[name].values
    ends = intervals(values, differ.astype(bool))
    over = (name, "strobe_sample")
    fixed = {key: x for key, x in up.coords.items() if not x.dims}
    table = Variables(VARIABLES, *(_row(up[key]) for key in (name, *fixed)))
    dataset = table.labelled(
        {
            "strobe_up": (over, up.strobe.transpose(*over).values),
            "strobe_down": (over, down.strobe.transpose(*over).values),
            "phase_up": ((name,), up.phase.values),
            "phase_down": ((name,), down.phase.values),
            "distance": ((name,), distance),
            "differ": ((name,), differ),
            "interval": (("number", "edge"), ends),
        },
        {
            name: values,
            "strobe_sample": up.strobe_sample.values,
            "number": np.arange(1, len(ends) + 1),
            "edge": ["before", "first", "last", "after"],
        },
    )
    for direction in ("up", "down"):
        shown = _row(up.strobe)
        words = f"{shown.long_name}, swept {direction}"
        row = shown._replace(long_name=words)
        dataset[f"strobe_{direction}"].attrs.update(row.attributes())
    return dataset.assign_coords(fixed).assign_attrs(_whose(up), kind="hysteresis")


def _whose(scan: xr.Dataset) -> dict[str, str]:
    """Attributes that say of what a scan is: of a network, or of a system."""
    names = ("network",) if "network" in scan.attrs else ("system", "inputs", "unit")
    return {name: scan.attrs[name] for name in names if name in scan.attrs}


def _row(stored: xr.DataArray) -> Variable:
    """How a stored variable is labelled."""
    name, attrs = str(stored.name), {"units": "1", **stored.attrs}
    words = attrs.get("long_name", name)
    return Variable(name, "", words, unit_of(attrs), attrs.get("symbol", name))


def _check_alike(up: xr.Dataset, down: xr.Dataset, axis: str) -> None:
    """Refuse scans that are not the two sweeps of one attractor.

    Raises:
        ValueError: in one line.
    """
    if _whose(up) != _whose(down):
        raise ValueError("the two files are of different networks or systems.")
    names = {axis} | {
        str(key)
        for scan in (up, down)
        for key, value in scan.coords.items()
        if not value.dims
    }
    for name in sorted(names):
        first, other = (scan.coords.get(name, np.nan) for scan in (up, down))
        if not np.array_equal(first, other, equal_nan=True):
            raise ValueError(f"the two files have different values of {name}.")
    first, second = _direction(up), _direction(down)
    if (first, second) != ("up", "down"):
        raise ValueError(
            'hysteresis compares a scan with run.start "continue-up" and one with '
            f'"continue-down"; got the directions {first!r} and {second!r}.'
        )


def _direction(scan: xr.Dataset) -> str:
    """up, down, or empty where the points do not go on from their neighbours."""
    if "direction" in scan.attrs:
        return scan.attrs["direction"]
    run = toml.loads(scan.attrs.get("study", "")).get("run", {})
    return run.get("start", "").partition("continue-")[2]


def _compared(up: xr.Dataset, down: xr.Dataset) -> tuple[float, bool]:
    clouds = [_samples(scan) for scan in (up, down)]
    if any(len(x) < 8 for x in clouds):
        return np.nan, bool(up.phase != down.phase)
    distance = set_distance(*clouds)
    recurs = all(
        0 < int(scan.period) <= len(cloud) * scan.attrs["clock_period"]
        for scan, cloud in zip((up, down), clouds, strict=True)
    )
    size = float(np.abs(clouds[0]).max())
    scatter = max(_scatter(x) for x in clouds)
    return distance, sets_differ(distance, scatter, size, recurs)


def _samples(scan: xr.Dataset) -> np.ndarray:
    values = scan.strobe.values
    return values[np.isfinite(values), None]


def _scatter(cloud: np.ndarray) -> float:
    half = len(cloud) // 2
    return max(set_distance(cloud[:half], cloud[-half:]), resolution(cloud))
