"""Results as tables: a row for every point, as spreadsheets and data frames have it."""

import itertools
import math

import numpy as np
import pandas as pd
import xarray as xr


WIDEST = 16  # columns that a variable may fill


def table(dataset: xr.Dataset, *names: str) -> pd.DataFrame:
    """A row for every point of a result, a column for every number of it.

    Points lie along the dimensions that all variables share: the scanned parameters
    and starts of a scan.  A variable with further dimensions has a column for every
    place on them, named by it: `lyapunov_1` is the first exponent.  Codes are words.

    Args:
        names: variables; when omitted all that fill 16 columns at most, without samples
            and times.

    Raises:
        ValueError: a name that there is not, a result whose variables share no
            dimension, or a variable that would fill more columns.

    Example:
        >>> scan = xr.Dataset(
        ...     {"lyapunov": (("beta", "exponent"), [[0.1, -0.2], [0.3, -0.4]]),
        ...      "period": ("beta", [0, 0])},
        ...     {"beta": [1.0, 2.0], "exponent": [1, 2]})
        >>> print(table(scan).to_string(index=False))
         beta  lyapunov_1  lyapunov_2  period
          1.0         0.1        -0.2       0
          2.0         0.3        -0.4       0
    """
    if missing := [name for name in names if name not in dataset.variables]:
        raise ValueError(f"there is no variable {missing[0]!r} in this result.")
    chosen = [str(n) for n in names or dataset.data_vars if dataset[n].ndim]
    dims = _shared(dataset)
    columns = {}
    for name, coordinate in dataset.coords.items():
        if coordinate.dims and set(coordinate.dims) <= set(dims):
            columns[name] = _along(dataset, coordinate, dims)
    for name in chosen:
        variable = dataset[name]
        rest = [str(dim) for dim in variable.dims if dim not in dims]
        count = math.prod(dataset.sizes[dim] for dim in rest)
        if count <= WIDEST:
            columns |= _spread(dataset, name, dims, rest)
        elif names:
            raise ValueError(
                f"{name} has {count} numbers for every point, along {', '.join(rest)}; "
                f"a table takes {WIDEST}: select some, or call its to_dataframe()."
            )
    return pd.DataFrame(columns)


def _shared(dataset: xr.Dataset) -> list[str]:
    """Dimensions that all variables have, but for single numbers."""
    every = [variable.dims for variable in dataset.data_vars.values() if variable.ndim]
    shared = [str(dim) for dim in every[0] if all(dim in dims for dims in every)]
    if not shared:
        raise ValueError(
            "the variables share no dimension along which rows could stand; take some "
            "that do, such as dataset[[name, name]]."
        )
    return shared


def _spread(
    dataset: xr.Dataset, name: str, dims: list[str], rest: list[str]
) -> dict[str, np.ndarray]:
    """The columns of a variable."""
    variable = dataset[name].transpose(*dims, *rest)
    values = _words(variable).reshape(math.prod(dataset.sizes[d] for d in dims), -1)
    if not rest:
        return {name: values[:, 0]}
    places = [
        [str(x) for x in dataset[dim].values]
        if dim in dataset.coords
        else [str(i + 1) for i in range(dataset.sizes[dim])]
        for dim in rest
    ]
    names = (f"{name}_{'_'.join(place)}" for place in itertools.product(*places))
    return {column: values[:, i] for i, column in enumerate(names)}


def _along(
    dataset: xr.Dataset, coordinate: xr.DataArray, dims: list[str]
) -> np.ndarray:
    """A coordinate in every row."""
    shape = {dim: dataset.sizes[dim] for dim in dims}
    return coordinate.variable.set_dims(shape).transpose(*dims).values.ravel()


def _words(variable: xr.DataArray) -> np.ndarray:
    """The values of a variable; words for codes, none where there is no word."""
    if "flag_values" not in variable.attrs:
        return variable.values
    meanings = str(variable.attrs["flag_meanings"]).split()
    codes = np.atleast_1d(variable.attrs["flag_values"]).tolist()
    words = dict(zip(codes, meanings))
    flat = [words.get(code) for code in variable.values.ravel().tolist()]
    return np.array(flat, dtype=object).reshape(variable.shape)
