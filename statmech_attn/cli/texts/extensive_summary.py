"""What files of patterns growing with N found, as short tables."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
import xarray as xr

from statmech_attn.cli.texts.tables import (
    Cell,
    Content,
    formatted,
    SHOWN,
    Summary,
    tabled,
    with_error,
)
from statmech_attn.presentation import quantity


WIDE = 6  # standard errors; a bound above them tells little
PARAMETERS = ("alpha", "beta", "gamma", "epsilon")
SHORT = {"n_spins": "N", "context": "C"}


def theory(dataset: xr.Dataset) -> Content:
    """Per point: overlaps in the end, crosstalk, and how well they are known."""
    yield from _table(
        f"patterns growing with N, {dataset.attrs['method']}",
        dataset,
        _scanned(dataset),
        {
            "steps": _steps,
            "last overlap": lambda p: formatted(_last(p, "m_o_se", "m_o_se"), ".4f"),
            "error": lambda p: formatted(p.m_o_se_error.max(), ".1e"),
            "last crosstalk": lambda p: formatted(p.noise_std[-1], ".4f"),
            "K": lambda p: int(p.trajectories) or "-",
        },
    )
    if not dataset.reached.all():
        yield (
            "errors are larger than asked at "
            f"{int((~dataset.reached.astype(bool)).sum())} points: raise "
            "run.trajectories"
        )


def simulation(dataset: xr.Dataset) -> Content:
    """Per point and N: overlaps in the end with their errors and spreads."""
    last = lambda p, name: _last(p, f"m_o_se_{name}", "m_o_se_mean")
    yield from _table(
        "spins",
        dataset,
        ["n_spins", *_scanned(dataset)],
        {
            "steps": _steps,
            "last overlap": lambda p: with_error(last(p, "mean"), last(p, "stderr")),
            "spread": lambda p: formatted(last(p, "spread"), ".2g"),
        },
    )
    yield f"{dataset.attrs['samples']} samples of the patterns"


def capacity(dataset: xr.Dataset) -> Content:
    """Per context and point: the end of retrieval."""
    columns = {
        "alpha_c": "capacity .5f",
        "error": "capacity_error .1e",
        "overlap there": "retrieved_overlap .4f",
    }
    yield from _table("capacity", dataset, ["context", *_scanned(dataset)], columns)


def compared(dataset: xr.Dataset) -> Content:
    """Per point: verdict, largest differences, exponents in N."""
    nothing = xr.DataArray(np.nan)
    mean = lambda name: lambda p: formatted(p.get(name, nothing).mean(), ".2f")
    largest = lambda name: lambda p: formatted(p.get(name, nothing).max(), ".2f")
    columns = {
        "verdict": "verdict ?",
        "largest |z|": largest("largest_z"),
        "N → ∞": largest("largest_limit_z"),
        "spread ~ N^": mean("spread_slope"),
        "bias ~ N^": mean("bias_slope"),
    }
    yield from _table("theory against spins", dataset, _scanned(dataset), columns)
    yield (
        f"with this many comparisons |z| up to {float(dataset.threshold):.2f}, and "
        f"{float(dataset.limit_threshold):.2f} after extrapolation, is consistent with "
        "chance; exponents are means over observables"
    )
    if float(dataset.limit_threshold) > WIDE:
        yield (
            f"a bound above {WIDE} standard errors: so few samples tell little number "
            "by number; take more"
        )
    yield from _visible(dataset)


def _visible(dataset: xr.Dataset) -> Iterator[str]:
    """What the summed differences say of every parameter, and could have said."""
    if "smallest_error_all" not in dataset:
        yield (
            "which errors would have been found is not known: the files have no "
            "samples or derivatives; run both studies again"
        )
        return
    for name in dataset.parameter.values:
        of_parameter = dataset.sel(parameter=name)
        sharpest = int(of_parameter.smallest_error_all.values.argmin())
        for i in range(of_parameter.sizes["summed"]):
            line, beyond = _of_group(of_parameter.isel(summed=i))
            if (i == sharpest or beyond) and line:
                yield f"{name}: {line}"


def _of_group(group: xr.Dataset) -> tuple[str, bool]:
    """What one group says of one parameter, and whether that is beyond chance."""
    visible, bound = (
        float(group[name])
        for name in ("smallest_error_all", "relative_error_all_threshold")
    )
    if not np.isfinite(visible):
        return "", False
    error, stderr = (
        100 * float(group[f"relative_error_all{end}"]) for end in ("", "_stderr")
    )
    z = abs(error) / stderr
    return (
        f"theory off by {quantity(error, stderr)} % by {group.summed.item()}, {z:.1f} "
        f"errors of {bound:.1f} allowed; {100 * visible:.2g} % would be found with "
        "probability 0.9"
    ), z > bound


def _table(
    title: str, dataset: xr.Dataset, axes: list[str], columns: Mapping[str, Cell]
) -> Content:
    """A row for every point, as many as are shown, and how many there are more."""
    shape = tuple(dataset.sizes[name] for name in axes)
    places = islice(np.ndindex(shape), SHOWN)
    points = (dataset.isel(dict(zip(axes, place))) for place in places)
    scanned = {SHORT.get(x, x): f"{x} .6g" for x in axes}
    yield tabled(title, {**scanned, **columns}, points)
    if (more := math.prod(shape) - SHOWN) > 0:
        yield f"and {more} points more"


def _scanned(dataset: xr.Dataset) -> list[str]:
    return [name for name in PARAMETERS if name in dataset.dims]


def _steps(point: xr.Dataset) -> int:
    return point.sizes["time"] - 1


def _last(point: xr.Dataset, name: str, overlap: str) -> xr.DataArray:
    """An entry at the end, of the pattern with the largest overlap there."""
    last = point.isel(time=-1)
    return last[name][int(np.abs(last[overlap].values).argmax())]


THEORY = Summary(
    theory,
    "m_o_se m_o_se_error noise_std trajectories reached alpha beta gamma epsilon",
)
SIMULATION = Summary(simulation, "m_o_se_* alpha beta gamma epsilon n_spins")
CAPACITIES = Summary(capacity, "capacity capacity_error retrieved_overlap beta gamma")
COMPARED = Summary(
    compared,
    "verdict largest_* threshold limit_threshold spread_slope bias_slope parameter "
    "summed relative_error_all* smallest_error_all "
    "alpha beta gamma epsilon observable n_spins",
)
