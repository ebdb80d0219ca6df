"""What files of patterns growing with N found, as short tables."""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from rich.table import Table

from statmech_attn.cli.texts.tables import (
    Content,
    formatted,
    SHOWN,
    Summary,
    titled,
    with_error,
)
from statmech_attn.presentation import quantity


WIDE = 6  # standard errors; a bound above them tells little
PARAMETERS = ("alpha", "beta", "gamma", "epsilon")


def theory(dataset: xr.Dataset) -> Content:
    """Per point: overlaps in the end, crosstalk, and how well they are known."""
    names = _scanned(dataset)
    columns = (*names, "steps", "last overlap", "error", "last crosstalk", "K")
    table = titled(f"patterns growing with N, {dataset.attrs['method']}", columns)
    for values, point in _points(dataset, names):
        last = point.isel(time=-1)
        place = int(np.abs(last.m_o_se.values).argmax())
        table.add_row(
            *values,
            str(point.sizes["time"] - 1),
            formatted(last.m_o_se.values[place], ".4f"),
            formatted(point.m_o_se_error.max(), ".1e"),
            formatted(last.noise_std, ".4f"),
            str(int(point.trajectories)) if point.trajectories else "-",
        )
    yield from _complete(table, dataset, names)
    if not dataset.reached.all():
        yield (
            "errors are larger than asked at "
            f"{int((~dataset.reached.astype(bool)).sum())} points: raise "
            "run.trajectories"
        )


def simulation(dataset: xr.Dataset) -> Content:
    """Per point and N: overlaps in the end with their errors and spreads."""
    names = _scanned(dataset)
    table = titled("spins", ("N", *names, "steps", "last overlap", "spread"))
    for values, point in _points(dataset, ["n_spins", *names]):
        last = point.isel(time=-1)
        place = int(np.abs(last.m_o_se_mean.values).argmax())
        table.add_row(
            *values,
            str(point.sizes["time"] - 1),
            with_error(last.m_o_se_mean[place], last.m_o_se_stderr[place]),
            formatted(last.m_o_se_spread[place], ".2g"),
        )
    yield from _complete(table, dataset, ["n_spins", *names])
    yield f"{dataset.attrs['samples']} samples of the patterns"


def capacity(dataset: xr.Dataset) -> Content:
    """Per context and point: the end of retrieval."""
    names = _scanned(dataset)
    table = titled("capacity", ("C", *names, "alpha_c", "error", "overlap there"))
    for values, point in _points(dataset, ["context", *names]):
        table.add_row(
            *values,
            formatted(point.capacity, ".5f"),
            formatted(point.capacity_error, ".1e"),
            formatted(point.retrieved_overlap, ".4f"),
        )
    yield from _complete(table, dataset, ["context", *names])


def compared(dataset: xr.Dataset) -> Content:
    """Per point: verdict, largest differences, exponents in N."""
    names = _scanned(dataset)
    columns = (*names, "verdict", "largest |z|", "N → ∞", "spread ~ N^", "bias ~ N^")
    table = titled("theory against spins", columns)
    words = dataset.verdict.attrs["flag_meanings"].split()
    none = xr.DataArray(np.nan)
    for values, point in _points(dataset, names):
        slopes = []
        for name in ("spread_slope", "bias_slope"):
            slope = point.get(name, none).mean()
            slopes.append(formatted(slope, ".2f"))
        table.add_row(
            *values,
            words[int(point.verdict)].replace("_", " "),
            formatted(point.largest_z.max(), ".2f"),
            formatted(point.get("largest_limit_z", none).max(), ".2f"),
            *slopes,
        )
    yield from _complete(table, dataset, names)
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


def _complete(table: Table, dataset: xr.Dataset, names: list[str]) -> Content:
    """A table, and how many rows it lacks."""
    yield table
    points = int(np.prod([dataset.sizes[name] for name in names]))
    if points > SHOWN:
        yield f"and {points - SHOWN} points more"


def _scanned(dataset: xr.Dataset) -> list[str]:
    return [name for name in PARAMETERS if name in dataset.dims]


def _points(
    dataset: xr.Dataset, names: list[str]
) -> Iterator[tuple[list[str], xr.Dataset]]:
    """Values and data of every point, as many as are shown."""
    shape = tuple(dataset.sizes[name] for name in names)
    for place in list(np.ndindex(shape))[:SHOWN]:
        point = dataset.isel(dict(zip(names, place)))
        yield [f"{float(point[name]):.6g}" for name in names], point


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
