"""Where a scan swept up a parameter and one swept down end on different sets.

In a sweep the orbit at every value begins where it ended at the value before; where two
sweeps differ, the state depends on the history (docs/theory/attractors.md, section 5).
Scans are compared by the samples at the clock's phase 0 that their files hold.
"""

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from statmech_attn.dynamics.attractors.basins import CLOSE, SCATTERS
from statmech_attn.dynamics.attractors.matching import resolution, set_distance
from statmech_attn.dynamics.motion.phases import PHASES
from statmech_attn.labels import unit_of, Variable, Variables


FEWEST = 8  # samples of which a distance of sets is taken
WAYS = ("up", "down")


def _samples(direction: str, scanned: Variable) -> Variable:
    """The samples of a sweep, as those of its scan are labelled."""
    words = f"{scanned.long_name}, swept {direction}"
    name, dims = f"strobe_{direction}", "strobe_sample"
    return scanned._replace(name=name, dims=dims, long_name=words, group="")


_SHOWN = Variable("strobe", "", "displayed coordinate at the clock's phase 0", "1", "x")
# Files have the swept parameter as the first dimension.
VARIABLES = Variables(
    *(_samples(way, _SHOWN) for way in WAYS),
    Variable("phase_up", "", "phase of the orbit swept up", "1", "phase", flags=PHASES),
    Variable(
        "phase_down", "", "phase of the orbit swept down", "1", "phase", flags=PHASES
    ),
    Variable(
        "distance", "", "distance of the sets of the two sweeps", "1", "D", group=""
    ),
    Variable("differ", "", "the sweeps end on different sets", "1", "differ", group=""),
    Variable(
        "interval",
        "number edge",
        "value of the parameter around an interval of hysteresis",
        "1",
        "p",
        group="",
    ),
    Variable(
        "strobe_sample",
        "strobe_sample",
        "sample at the clock's phase 0, latest last",
        "1",
        "n",
    ),
    Variable("number", "number", "interval of hysteresis", "1", "k"),
    Variable(
        "edge",
        "edge",
        "last value before, first and last in it, first after",
        "1",
        "edge",
    ),
)


def compare_sweeps(up: xr.Dataset, down: xr.Dataset) -> xr.Dataset:
    """Where an upward and a downward sweep of a parameter differ.

    The samples at the clock's phase 0 are compared, value by value: cycles exactly,
    other orbits, and cycles with more points than samples, in units of the distance
    between the halves of their samples.

    Args:
        up, down: scans over the same values of one parameter, with exponents: those of
            `diagram` with `sweep`, or of studies of kind `bifurcation` with start
            "continue-up" and "continue-down".

    Returns:
        Data set over the parameter with the samples of both sweeps and their phases,
        `distance`, in the unit of the samples, and `differ`; and `interval`, the values
        around every stretch in which they differ, see `intervals`.

    Raises:
        ValueError: other files than scans with phases, other systems (of scans from
            Python as far as parameters and unit of a step tell), values or directions,
            or more than one parameter.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from statmech_attn.dynamics import diagram
        >>> from statmech_attn.dynamics.diagrams import Plan
        >>> jax.config.update("jax_enable_x64", True)
        >>> cubic = lambda x, p: x + 0.1 * (p["force"] + x - x**3)
        >>> grid = {"force": np.linspace(-0.7, 0.7, 8)}
        >>> plan = Plan(transient=500, steps=500, exponents=1)
        >>> sweep = lambda way: diagram(cubic, grid, jnp.array(-1.0), plan, sweep=way)
        >>> compare_sweeps(sweep("up"), sweep("down")).interval.values.round(1).tolist()
        [[-0.5, -0.3, 0.3, 0.5]]
    """
    name = _swept_parameter(up, down)
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
    fixed = {key: x for key, x in up.coords.items() if _is_parameter(x, name)}
    parameters = (_row(up[key]) for key in (name, *fixed))
    samples = (_samples(direction, _row(up.strobe)) for direction in WAYS)
    dataset = Variables(VARIABLES, *samples, *parameters).labelled(
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
    return dataset.assign_coords(fixed).assign_attrs(_whose(up), kind="hysteresis")


def _swept_parameter(up: xr.Dataset, down: xr.Dataset) -> str:
    """Name of the one parameter along which both are scans with phases."""
    for scan in (up, down):
        if not {"strobe", "phase", "period"} <= set(scan):
            raise ValueError(
                "hysteresis needs two scans with samples and phases (exponents above "
                f"0); got a data set of kind {scan.attrs.get('kind')!r}."
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
    return names[0]


def _is_parameter(coordinate: xr.DataArray, axis: str) -> bool:
    """Whether it is a fixed one, or one along a list of points."""
    return coordinate.dims in ((), (axis,)) and coordinate.name != axis


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
    """Refuse scans that are not the two sweeps of one attractor."""
    if _whose(up) != _whose(down):
        raise ValueError("the two files are of different networks or systems.")
    names = {axis} | {
        str(key)
        for scan in (up, down)
        for key, value in scan.coords.items()
        if _is_parameter(value, axis)
    }
    for name in sorted(names):
        of_up, of_down = (scan.coords.get(name, np.nan) for scan in (up, down))
        if not np.array_equal(of_up, of_down, equal_nan=True):
            raise ValueError(f"the two files have different values of {name}.")
    directions = tuple(scan.attrs.get("direction", "") for scan in (up, down))
    if directions != WAYS:
        raise ValueError(
            'hysteresis compares a sweep "up" with one "down" (run.start = '
            '"continue-up" and "continue-down" in studies); got the directions '
            f"{directions[0]!r} and {directions[1]!r}."
        )


def _compared(up: xr.Dataset, down: xr.Dataset) -> tuple[float, bool]:
    """Distance of the sets at one value, and whether they are two."""
    clouds = [_cloud(scan) for scan in (up, down)]
    if any(len(x) < FEWEST for x in clouds):
        return np.nan, bool(up.phase != down.phase)
    distance = set_distance(*clouds)
    recurs = all(
        0 < int(scan.period) <= len(cloud) * scan.attrs["clock_period"]
        for scan, cloud in zip((up, down), clouds, strict=True)
    )
    size = float(np.abs(clouds[0]).max())
    scatter = max(_scatter(x) for x in clouds)
    return distance, sets_differ(distance, scatter, size, recurs)


def _cloud(scan: xr.Dataset) -> np.ndarray:
    values = scan.strobe.values
    return values[np.isfinite(values), None]


def _scatter(cloud: np.ndarray) -> float:
    half = len(cloud) // 2
    return max(set_distance(cloud[:half], cloud[-half:]), resolution(cloud))


def intervals(
    values: Float[np.ndarray, " n"], differ: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, "k 4"]:
    """Where sweeps differ: last value before, first and last in it, first after.

    NaN where the interval reaches the end of the values.
    """
    inside = np.concatenate([[False], differ, [False]]).astype(int)
    first = np.flatnonzero(np.diff(inside) == 1)
    last = np.flatnonzero(np.diff(inside) == -1) - 1
    padded = np.concatenate([[np.nan], values, [np.nan]])
    rows = [padded[first], padded[first + 1], padded[last + 1], padded[last + 2]]
    return np.stack(rows, axis=1)


def sets_differ(distance, scatter: float, size: float, recurs: bool) -> bool:
    """Whether two sets of this distance, scatter and size are different attractors."""
    return bool(distance > (10 * CLOSE * (1 + size) if recurs else SCATTERS * scatter))
