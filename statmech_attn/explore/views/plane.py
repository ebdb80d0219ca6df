"""A scan of two parameters as the page asks for it: any of its variables as a map."""

import copy
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.dynamics import Criteria, diagrams, PHASES
from statmech_attn.explore.result_files.files import cell_edges, File, labelled, packed
from statmech_attn.explore.views import points


PLAIN = (  # variables with one number for every point
    "period",
    "rotation_number",
    "rotation_error",
    "entropy_production",
    "n_positive",
    "n_zero",
    "zero_one",
    "broadband",
    "convergence_digits",
    "window",
    "horizon",
)
DIMENSION = "dimension"
KEPT = 4  # variables that are kept in memory
BULK = 0.02, 0.98  # quantiles between which the colours of a map change


class Scan2D:
    """A scan of two parameters, on its finest grid where it is refined.

    Attributes:
        names: of the parameters, the first one across.
        edges: of the cells along each.
        variables: what can be shown, by name.
    """

    def __init__(self, file: File, tell: Callable[[float], None]):
        self.file, dataset = file, file.dataset
        self.x, self.y = self.names = file.axes
        self.refined = "point" in dataset.dims
        ending = "_grid" if self.refined else ""
        values = [dataset[n + ending].values.astype(float) for n in self.names]
        self.orders = [np.argsort(v, kind="stable") for v in values]
        self.values = [v[order] for v, order in zip(values, self.orders, strict=True)]
        self.edges = [cell_edges(v) for v in self.values]
        self.variables = self._choice(dataset)
        self._maps: dict[str, np.ndarray] = {}
        self._lock = threading.RLock()
        plain = dataset.drop_vars([n for n in points.OF_SAMPLES if n in dataset])
        count = math.prod(plain.sizes[d] for d in plain.section_count.dims)
        self._points = plain.load() if count <= points.IN_MEMORY else plain
        self.map(next(iter(self.variables)))
        tell(1.0)

    def described(self) -> dict[str, Any]:
        """What the page needs to know beside what it knows of any file."""
        dataset = self.file.dataset
        axes = [
            labelled(dataset, name)
            | {"low": edges[0], "high": edges[-1], "values": values[[0, -1]].tolist()}
            for name, edges, values in zip(
                self.names, self.edges, self.values, strict=True
            )
        ]
        return {
            "axes": axes,
            "points": int(dataset.sizes["point"])
            if self.refined
            else len(self.values[0]) * len(self.values[1]),
            "shown": labelled(dataset, "strobe"),
            "variables": list(self.variables.values()),
            "phases": PHASES,
        }

    def map(self, name: str) -> np.ndarray:
        """A variable over the plane, (y, x); NaN where a point has no number."""
        if name not in self.variables:
            raise ValueError(
                f"variable should be one of {', '.join(self.variables)}; got {name!r}."
            )
        with self._lock:
            if name not in self._maps:
                while len(self._maps) >= KEPT:
                    self._maps.pop(next(iter(self._maps)))
                self._maps[name] = self._read(name)
            return self._maps[name]

    def picture(
        self,
        name: str,
        x: tuple[float, float],
        y: tuple[float, float],
        columns: int,
        rows: int,
    ) -> bytes:
        """A variable in a window, one value for every pixel, the lowest row first."""
        values = self.map(name)
        along_x = _cells(self.edges[0], *x, columns)
        along_y = _cells(self.edges[1], *y, rows)
        inside = (along_y >= 0)[:, None] & (along_x >= 0)
        cells = values[along_y[:, None], along_x]
        cells = np.where(inside, cells, np.nan).astype(np.float32)
        header = {"x": x, "y": y, "range": self.range(name)}
        return packed(header, {"values": cells})

    def part(self, values: dict[str, float]) -> xr.Dataset:
        """The point nearest to some values, as a scan of one point."""
        dataset = self._points
        if self.refined:
            distance = 0.0
            for name in self.names:
                span = float(np.ptp(dataset[f"{name}_grid"].values)) or 1.0
                distance += np.abs(dataset[name].values - values[name]) / span
            return dataset.isel(point=[int(np.argmin(distance))])
        nearest = {
            name: [int(np.argmin(np.abs(dataset[name].values - values[name])))]
            for name in self.names
        }
        return dataset.isel(nearest)

    def thinned(self, places: Sequence[np.ndarray]) -> "Scan2D":
        """The plane with verdicts at some places of each axis, which are in memory."""
        copied = copy.copy(self)
        if not self.refined:
            chosen = {
                name: order[place]
                for name, order, place in zip(
                    self.names, self.orders, places, strict=True
                )
            }
            with self.file.lock:
                copied._points = self._points.isel(chosen).load()
        return copied

    def point(self, values: dict[str, float]) -> dict[str, Any]:
        """The verdict of the point nearest to some values."""
        with self.file.lock:
            return points.verdict(self.part(values), self.names)

    def _choice(self, dataset: xr.Dataset) -> dict[str, dict[str, Any]]:
        """What can be shown: labels and how it is coloured, by name."""
        if "phase" not in dataset:
            table = {"section_count": labelled(dataset, "section_count")}
            return {n: row | {"colours": "amount"} for n, row in table.items()}
        rows = {"phase": labelled(dataset, "phase") | {"colours": "phase"}}
        of_exponents = labelled(dataset, "lyapunov")
        for i in range(1, dataset.sizes["exponent"] + 1):
            rows[f"lyapunov_{i}"] = of_exponents | {
                "name": f"lyapunov_{i}",
                "words": "Lyapunov exponent",
                "symbol": f"λ_{i}",
                "colours": "sign",
            }
        rows[DIMENSION] = {
            "name": DIMENSION,
            "words": "Kaplan-Yorke dimension",
            "symbol": "D_KY",
            "unit": "",
            "colours": "amount",
        }
        for name in PLAIN:
            if name in dataset:
                counts = name in ("period", "window", "horizon")
                rows[name] = labelled(dataset, name) | {
                    "colours": "logarithm" if counts else "amount"
                }
        return rows

    def _read(self, name: str) -> np.ndarray:
        with self.file.lock:
            if name == DIMENSION:
                exponents = self._stored("lyapunov")
                values = kaplan_yorke(exponents, self._stored("lyapunov_weighted"))
            elif name.startswith("lyapunov_"):
                exponents = self._stored("lyapunov")
                values = exponents[..., int(name.removeprefix("lyapunov_")) - 1]
            else:
                values = self._stored(name).astype(float)
            if name == "phase" and "failure" in self.file.dataset:
                lost = (self._stored("failure") != 0) & (
                    values != PHASES.index("diverged")
                )
                values = np.where(lost, np.nan, values)
            if name == "period":
                values = np.where(values > 0, values, np.nan)
        return values.astype(np.float32)

    def _stored(self, name: str) -> np.ndarray:
        """A variable over the grid in order, (y, x, ...), of the first start."""
        dataset = self.file.dataset
        if "start" in dataset.dims:
            dataset = dataset.isel(start=0)
        if self.refined:
            dataset = diagrams.on_grid(dataset, name)
        values = dataset[name].transpose(self.y, self.x, ...).values
        return values[self.orders[1]][:, self.orders[0]]

    def range(self, name: str) -> list[float]:
        """Values of a variable between which its colours change."""
        values = self.map(name)
        finite = values[:: max(len(values) // 500, 1)]
        finite = finite[np.isfinite(finite)]
        if not finite.size:
            return [0.0, 1.0]
        if self.variables[name]["colours"] == "sign":
            bulk = np.quantile(np.append(finite, 0.0), BULK)
            scale = float(np.abs(bulk).max()) or 1.0
            return [-scale, scale]
        low, high = float(finite.min()), float(finite.max())
        return [low, high if high > low else low + 1]


def kaplan_yorke(exponents: np.ndarray, weighted: np.ndarray) -> np.ndarray:
    """Kaplan-Yorke dimension from the exponents of a file, on the last axis.

    Exponents whose weighted average counts as zero are zero.  NaN where those at hand
    add up to more than zero: more exponents are needed.
    """
    values = np.where(np.abs(weighted) <= Criteria.zero, 0.0, exponents)
    values = np.where(np.isnan(values), -np.inf, values)
    sums = np.cumsum(values, axis=-1)
    n_whole = np.cumprod(sums >= 0, axis=-1).sum(axis=-1)
    last = values.shape[-1] - 1
    pick = lambda x, i: np.take_along_axis(x, i[..., None], -1)[..., 0]
    above = np.where(n_whole > 0, pick(sums, np.maximum(n_whole - 1, 0)), 0.0)
    below = pick(values, np.minimum(n_whole, last))
    with np.errstate(divide="ignore", invalid="ignore"):
        dimension = n_whole - np.where(np.isinf(below), 0.0, above / below)
    return np.where(n_whole > last, np.nan, dimension)


def _cells(edges: np.ndarray, low: float, high: float, count: int) -> np.ndarray:
    """The cell of every pixel along an axis; -1 outside."""
    centres = low + (np.arange(count) + 0.5) * (high - low) / count
    cell = np.searchsorted(edges, centres, "right") - 1
    return np.where((cell >= 0) & (cell < len(edges) - 1), cell, -1)
