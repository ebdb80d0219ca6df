"""Result files as one table: a row for every point, a column for every number of it.

A point is what `Kind.rows` says.  A variable with other dimensions gives several
columns, such as `lyapunov_1` to `lyapunov_4`, named for the coordinates on them; one
that would give more than `WIDEST` is left out, and every variable without a dimension
of the points too.  Codes become their words.
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


WIDEST = 48  # columns of one variable


class Flat(NamedTuple):
    """A table of a file.

    Attributes:
        frame: a row for every point.
        attributes: `long_name` and `units` of every column.
        left_out: variables that have too many numbers for each point, or none.
    """

    frame: pd.DataFrame
    attributes: dict[str, dict[str, str]]
    left_out: list[str]


def flat(dataset: xr.Dataset, rows: Sequence[str] = ()) -> Flat:
    """The table of a data set, of which no more is read than the table holds.

    Args:
        rows: dimensions of what a row stands for; those of the kind when empty.

    Raises:
        ValueError: the data set lacks one of them.

    Example:
        >>> data = xr.Dataset({"y": (("beta", "i"), [[1.0, 2.0]])}, {"beta": [0.5]})
        >>> flat(data, ["beta"]).frame.to_dict("list")
        {'beta': [0.5], 'y_1': [1.0], 'y_2': [2.0]}
    """
    for name in rows:
        if name not in dataset.dims:
            known = ", ".join(map(str, dataset.dims))
            raise ValueError(f"no dimension {name!r}; this file has {known}.")
    row = kinds.of_file(dataset.attrs.get("kind"), dataset.dims)
    dims = list(rows) or _rows(dataset, row)
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
        points = variable.load().broadcast_like(_shape(dataset, dims))
        points = points.transpose(*dims, *others)
        values = _words(points).reshape(-1, count)
        said = {key: str(variable.attrs.get(key, "")) for key in ("long_name", "units")}
        for number, label in enumerate(_labels(dataset, others)):
            columns[f"{name}{label}"] = values[:, number]
            attributes[f"{name}{label}"] = said
    frame = pd.DataFrame(columns)
    if row and row.padding in frame:
        listed = frame[row.padding]
        numbers = listed.notna() if listed.dtype.kind == "f" else listed > 0
        frame = frame.loc[numbers.to_numpy()]
    return Flat(frame, attributes, left_out)


def write_csv(table: Flat, path: Path) -> None:
    """The table with a line of names; nothing stands where there is no number."""
    table.frame.to_csv(path, index=False)


def write_json(table: Flat, path: Path, dataset: xr.Dataset) -> None:
    """An object: what the file is, its columns with their units, and its points.

    JSON has neither NaN, which becomes null, nor infinities, which become texts.
    """
    head = {name: dataset.attrs.get(name) for name in ("kind", "study")}
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{json.dumps(head)[:-1]}, ")
        file.write(f'"columns": {json.dumps(table.attributes, ensure_ascii=False)},')
        file.write(' "points": [')
        names = list(table.frame)
        for number, row in enumerate(table.frame.itertuples(index=False, name=None)):
            point = dict(zip(names, map(_plain, row), strict=True))
            text = json.dumps(point, ensure_ascii=False, allow_nan=False)
            file.write(f"{',' * bool(number)}\n{text}")
        file.write("\n]}\n")


def _rows(dataset: xr.Dataset, row: kinds.Kind | None) -> list[str]:
    """Dimensions of what a row stands for, in the order of the file."""
    asked = row.rows.split() if row else []
    dims = {dim for n in asked if n in dataset.variables for dim in dataset[n].dims}
    dims |= {name for name in asked if name in dataset.dims}
    ordered = [str(dim) for dim in dataset.dims if dim in dims]
    return ordered or [str(dim) for dim in dataset.dims][:1]


def _shape(dataset: xr.Dataset, dims: Sequence[str]) -> xr.DataArray:
    """Nothing, in the shape of the points."""
    shape = [dataset.sizes[dim] for dim in dims]
    return xr.DataArray(np.broadcast_to(np.int8(0), shape), dims=dims)


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
    """Values, of codes their words; -1 has none."""
    words = str(variable.attrs.get("flag_meanings", "")).split()
    codes = variable.values
    if not words or "flag_masks" in variable.attrs or codes.dtype.kind not in "iu":
        return codes
    table = np.array([*words, ""], dtype=object)
    return table[np.where((codes >= 0) & (codes < len(words)), codes, -1)]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
