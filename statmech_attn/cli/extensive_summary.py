"""What files of patterns growing with N found, as short tables."""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

from statmech_attn.cli.tables import formatted, Summary, titled, with_error
from statmech_attn.presentation import quantity


SHOWN = 40  # rows of a table
WIDE = 6  # standard errors; a bound above them tells little
PARAMETERS = ("alpha", "beta", "gamma", "epsilon")


def theory(dataset: xr.Dataset, console: Console) -> None:
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
    _print(table, dataset, names, console)
    if not dataset.reached.all():
        console.print(
            "errors are larger than asked at "
            f"{int((~dataset.reached.astype(bool)).sum())} points: raise "
            "run.trajectories",
            highlight=False,
        )


def simulation(dataset: xr.Dataset, console: Console) -> None:
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
    _print(table, dataset, ["n_spins", *names], console)
    console.print(
        f"{dataset.attrs['samples']} samples of the patterns", highlight=False
    )


def capacity(dataset: xr.Dataset, console: Console) -> None:
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
    _print(table, dataset, ["context", *names], console)


def compared(dataset: xr.Dataset, console: Console) -> None:
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
    _print(table, dataset, names, console)
    console.print(
        f"with this many comparisons |z| up to {float(dataset.threshold):.2f}, and "
        f"{float(dataset.limit_threshold):.2f} after extrapolation, is consistent with "
        "chance; exponents are means over observables",
        highlight=False,
    )
    if float(dataset.limit_threshold) > WIDE:
        console.print(
            f"a bound above {WIDE} standard errors: so few samples tell little number "
            "by number; take more",
            highlight=False,
        )
    for line in _visible(dataset):
        console.print(line, highlight=False)


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


def _print(
    table: Table, dataset: xr.Dataset, names: list[str], console: Console
) -> None:
    """A table, and how many rows it lacks."""
    console.print(table)
    points = int(np.prod([dataset.sizes[name] for name in names]))
    if points > SHOWN:
        console.print(f"and {points - SHOWN} points more", highlight=False)


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
