"""Grids that are a list of points: a curve or a sample in any number of parameters.

The number of a point in the list is scanned in the place of a parameter, `index`; the
parameters are coordinates along it.
"""

import csv
import io
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import PyTree

from statmech_attn import inputs
from statmech_attn.batches import require_memory
from statmech_attn.dynamics.diagrams.axes import Axes, on_device
from statmech_attn.dynamics.diagrams.diagram_variables import INDEX


LARGEST = 2**28  # bytes of a file
AT_ONCE = 3 * 8  # bytes of memory that a number takes while it is read


def point_list(points: Any, **fixed: float) -> Axes:
    """A list of points as the grid of a diagram, of basins or of simulations.

    Args:
        points: values of every parameter along the list, all of one length: a
            dictionary, a data set or a table with names; or a CSV file of them.
        fixed: parameters that all points share.

    Returns:
        `Axes`, which functions take in the place of a grid.

    Raises:
        ValueError: no point, lists of different lengths, what is no finite number, or
            a parameter given twice.
        OSError: the file cannot be read.

    Example:
        >>> t = np.linspace(0, 1, 5)
        >>> curve = point_list({"a": 1 + t, "b": t**2}, c=0.3)
        >>> curve.points()["b"].tolist()
        [0.0, 0.0625, 0.25, 0.5625, 1.0]
    """
    columns = read_points(points) if isinstance(points, str | Path) else points
    return listed(columns, fixed, on_device)


def listed(
    columns: Any,
    fixed: Mapping[str, float],
    make: Callable[[dict[str, np.ndarray]], PyTree],
) -> Axes:
    """A list of points of a system with parameters of any form."""
    structured = getattr(getattr(columns, "dtype", None), "names", None)
    names = structured or (columns.keys() if hasattr(columns, "keys") else [])
    table = {str(name): np.asarray(columns[name], float) for name in names}
    shapes = {name: x.shape for name, x in table.items()}
    if [len(shape) for shape in set(shapes.values())] != [1]:
        raise ValueError(
            f"points must be lists of one length by name; got {shapes or 'none'}."
        )
    if INDEX.name in {*table, *fixed}:
        raise ValueError(f"points: {INDEX.name} is the number in the list already.")
    for name, column in table.items():
        if name in fixed:
            raise ValueError(f"points: {name} is one number as well.")
        if not column.size or not np.isfinite(column).all():
            place = f" at point {np.argmin(np.isfinite(column))}" if column.size else ""
            raise ValueError(f"points: {name} has no finite number{place}.")
    numbers = np.arange(len(next(iter(table.values()))), dtype=float)
    fixed = {name: float(value) for name, value in fixed.items()}
    return Axes((INDEX.name,), (numbers,), fixed, make, table)


def read_points(path: str | Path) -> dict[str, np.ndarray]:
    """Columns of a CSV file by the names in its first line."""
    name, content = Path(path).name, inputs.content(path, LARGEST)
    values = content.count(b",") + content.count(b"\n") + 1
    require_memory(f"{name}: its {values} numbers", AT_ONCE * values)
    file = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig")
    try:
        first = file.readline().lstrip("# ")
        header = _header(first)
        if len(set(header)) < len(header) or not all(map(str.isidentifier, header)):
            raise ValueError(
                f"{name}: the first line must hold names of parameters, each once; got "
                f"{', '.join(header)[:80]!r}."
            )
        return dict(zip(header, _columns(name, header, file), strict=True))
    except UnicodeDecodeError:
        raise ValueError(f"{name}: is no text file.") from None


def _header(line: str) -> list[str]:
    try:
        words = next(csv.reader([line], skipinitialspace=True, strict=True), None)
    except csv.Error:  # a quote that is not closed
        words = None
    words = words or [line]
    return [word.strip() for word in words]


def _columns(name: str, header: list[str], file: io.TextIOWrapper) -> np.ndarray:
    """Numbers of the other lines by column; an error names the line."""
    start, number, line = file.tell(), 1, ""

    def lines() -> Iterator[str]:
        nonlocal number, line
        for number, line in enumerate(file, 2):  # noqa: B007
            if line.count('"') % 2:
                raise ValueError
            if not line.isspace():
                yield line

    wrong = 0
    try:
        with warnings.catch_warnings(action="ignore"):  # where there is none
            read = partial(np.loadtxt, comments=None, delimiter=",", quotechar='"')
            rows = read(lines(), ndmin=2)
        if rows.shape[1] == len(header) and np.isfinite(rows).all():
            return rows.T
        if not rows.size:
            return np.empty((len(header), 0))
        if rows.shape[1] == len(header):
            wrong = int(np.argmin(np.isfinite(rows).all(1)))
        file.seek(start)
        next(itertools.islice(lines(), wrong, None))
    except UnicodeDecodeError:
        raise
    except ValueError:
        pass  # of the last line that was read
    raise ValueError(
        f"{name}, line {number}: must hold finite numbers of "
        f"{', '.join(header)[:80]}; got {line.strip()[:80]!r}."
    )
