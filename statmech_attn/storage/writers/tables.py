"""Results as tables: a row for every point, a column for every number of it.

A point is what `Kind.rows` says of a file's kind; of other data sets, what all their
variables share.  A variable with further dimensions gives several columns, such as
`lyapunov_1` to `lyapunov_4`, named for the coordinates on them; one that would give
more than `WIDEST` is left out, and so is every variable that has none of the dimensions
of points.  Codes become their words.
"""

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from statmech_attn import kinds
from statmech_attn.labels import unit_of
from statmech_attn.storage.writers.replacing import replaced


WIDEST = 48  # columns of one variable


class Table(NamedTuple):
    """The table of a data set, a row for every point.

    `attributes` are `long_name` and `units` of every column; `left_out` variables have
    too many numbers for each point, or none.
    """

    frame: pd.DataFrame
    attributes: dict[str, dict[str, str]]
    left_out: list[str]


def table(dataset: xr.Dataset, *names: str) -> pd.DataFrame:
    """A row for every point of a result, a column for every number of it.

    Args:
        dataset: a result.
        names: variables; when omitted, all that fill `WIDEST` columns at most, and the
            fixed parameters.

    Returns:
        Data frame; codes are words, and `lyapunov_1` is the first exponent.

    Raises:
        ValueError: a name that there is not, or a variable of more columns.

    Example:
        >>> import xarray as xr
        >>> scan = xr.Dataset(
        ...     {"lyapunov": (("beta", "exponent"), [[0.1, -0.2], [0.3, -0.4]]),
        ...      "period": ("beta", [0, 0])},
        ...     {"beta": [1.0, 2.0], "exponent": [1, 2]})
        >>> print(table(scan).to_string(index=False))
         beta  lyapunov_1  lyapunov_2  period
          1.0         0.1        -0.2       0
          2.0         0.3        -0.4       0
    """
    if not names:
        return tabulate(dataset).frame
    if missing := [name for name in names if name not in dataset.variables]:
        raise ValueError(f"there is no variable {missing[0]!r} in this result.")
    dims = point_dimensions(dataset)
    along = {
        name: x.variable
        for name, x in dataset.coords.items()
        if x.dims and set(x.dims) <= set(dims)
    }
    selected = dataset[list(names)].reset_coords(drop=True).assign_coords(along)
    chosen = tabulate(selected, dims)
    if wide := [name for name in names if name in chosen.left_out]:
        rest = [str(dim) for dim in dataset[wide[0]].dims if dim not in dims]
        count = math.prod(dataset.sizes[dim] for dim in rest)
        raise ValueError(
            f"{wide[0]} has {count} numbers for every point, along {', '.join(rest)}; "
            f"a table takes {WIDEST}: select some, or call its to_dataframe()."
        )
    return chosen.frame


def tabulate(dataset: xr.Dataset, rows: Sequence[str] = ()) -> Table:
    """The table of a data set, of which no more is read than the table holds.

    `rows` are the dimensions of what a row stands for; those of points when empty.
    """
    for name in rows:
        if name not in dataset.dims:
            known = ", ".join(map(str, dataset.dims))
            raise ValueError(f"no dimension {name!r}; this file has {known}.")
    dims = list(rows) or point_dimensions(dataset)
    shape = [dataset.sizes[dim] for dim in dims]
    empty = xr.DataArray(np.broadcast_to(np.int8(0), shape), dims=dims)
    columns: dict[str, np.ndarray] = {}
    attributes, left_out = {}, []
    for name in [*dataset.coords, *dataset.data_vars]:
        variable = dataset[name]
        others = [str(dim) for dim in variable.dims if dim not in dims]
        count = math.prod(variable.sizes[dim] for dim in others)
        if len(others) == variable.ndim > 0 or count > WIDEST:
            if name not in dataset.dims:
                left_out.append(str(name))
            continue
        points = variable.load().broadcast_like(empty).transpose(*dims, *others)
        values = _words(points).reshape(math.prod(shape), count)
        attrs = {"units": "", **variable.attrs}
        said = {"long_name": str(attrs.get("long_name", "")), "units": unit_of(attrs)}
        for number, label in enumerate(_labels(dataset, others)):
            columns[f"{name}{label}"] = values[:, number]
            attributes[f"{name}{label}"] = said
    frame = pd.DataFrame(columns)
    row = kinds.of_file(dataset.attrs.get("kind"), dataset.dims)
    if row and row.padding in frame:
        listed = frame[row.padding]
        numbers = listed.notna() if listed.dtype.kind == "f" else listed > 0
        frame = frame.loc[numbers.to_numpy()]
    return Table(frame, attributes, left_out)


def point_dimensions(dataset: xr.Dataset) -> list[str]:
    """Dimensions of what a row stands for, in the order of the data set.

    Those that its kind names; of other data sets those that all variables share, or
    the first one.
    """
    row = kinds.of_file(dataset.attrs.get("kind"), dataset.dims)
    rows = row.rows.split() if row else []
    dims = {dim for n in rows if n in dataset.variables for dim in dataset[n].dims}
    dims |= {name for name in rows if name in dataset.dims}
    if not dims:
        every = [set(x.dims) for x in dataset.data_vars.values() if x.ndim]
        dims = set.intersection(*every) if every else set()
    ordered = [str(dim) for dim in dataset.dims if dim in dims]
    return ordered or [str(dim) for dim in dataset.dims][:1]


def write_csv(table: Table, path: Path) -> None:
    """The table with a line of names; nothing stands where there is no number."""
    with replaced(path) as part:
        table.frame.to_csv(part, index=False)


def write_json(table: Table, path: Path, dataset: xr.Dataset) -> None:
    """An object: what the file is, its columns with their units, and its points.

    JSON has neither NaN, which becomes null, nor infinities, which become texts.
    """
    head = {name: dataset.attrs.get(name) for name in ("kind", "study")}
    with replaced(path) as part, part.open("w", encoding="utf-8") as file:
        file.write(f"{json.dumps(head)[:-1]}, ")
        file.write(f'"columns": {json.dumps(table.attributes, ensure_ascii=False)},')
        file.write(' "points": [')
        names = list(table.frame)
        for number, row in enumerate(table.frame.itertuples(index=False, name=None)):
            point = dict(zip(names, map(_plain, row), strict=True))
            text = json.dumps(point, ensure_ascii=False, allow_nan=False)
            file.write(f"{',' * bool(number)}\n{text}")
        file.write("\n]}\n")


def _labels(dataset: xr.Dataset, dims: Sequence[str]) -> Iterator[str]:
    """Endings of the columns of a variable: the coordinates on its other dimensions."""
    named = [
        dataset[dim].values
        if dim in dataset.coords
        else range(1, dataset.sizes[dim] + 1)
        for dim in dims
    ]
    for values in itertools.product(*named):
        yield "".join(f"_{value}" for value in values)


def _words(variable: xr.DataArray) -> np.ndarray:
    """The values of a variable; words for codes, none where there is no word."""
    if "flag_values" not in variable.attrs:
        return variable.values
    meanings = str(variable.attrs["flag_meanings"]).split()
    codes = np.atleast_1d(variable.attrs["flag_values"]).tolist()
    words = dict(zip(codes, meanings))
    of_points = [words.get(code) for code in variable.values.ravel().tolist()]
    return np.array(of_points, dtype=object).reshape(variable.shape)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
