"""A scan of one parameter as the page asks for it: densities, phases, exponents."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.dmft import PRODUCTION
from statmech_attn.dynamics import PHASES
from statmech_attn.explore.result_files.files import cell_edges, File, labelled, packed
from statmech_attn.explore.result_files.pyramid import pyramid, width_for
from statmech_attn.explore.views import points
from statmech_attn.plotting import is_swept


CLOUDS = {"section": "on the section", "strobe": "at the clock's phase 0"}
HARDLY = 0.02  # of the range of the samples, left free above and below


class Scan1D:
    """A scan of one parameter, its points in order.

    Attributes:
        name: of the parameter.
        values: of the parameter, increasing.
        edges: of the cells around them.
        clouds: pyramids of the samples, by variable.
    """

    def __init__(self, file: File, tell: Callable[[float], None]):
        self.file, (self.name,) = file, file.axes
        dataset = file.dataset
        values = dataset[self.name].values.astype(float)
        self.order = np.argsort(values, kind="stable")
        self.values = values[self.order]
        self.edges = cell_edges(self.values)
        self.failed = self._failed(dataset)
        self.clouds = {}
        self.starts = names_of_starts(dataset)
        several = range(len(self.starts)) if len(self.starts) > 1 else (None,)
        names = [(x, start) for x in CLOUDS if x in dataset for start in several]
        for number, of in enumerate(names):
            share = lambda done, number=number: tell((number + done) / len(names))
            name = "_".join(str(x) for x in of if x is not None)
            place = file.path.with_name(f"{file.path.name}.{name}.pyramid")
            cloud = pyramid(
                len(values),
                dataset.sizes[dataset[of[0]].dims[-1]],
                lambda first, stop, of=of: self._samples(*of, first, stop),
                place,
                f"{name} {file.source}",
                share,
            )
            if np.isfinite(cloud.low):
                self.clouds[name] = cloud
        self._read_verdicts(dataset)
        plain = dataset.drop_vars([n for n in points.OF_SAMPLES if n in dataset])
        self._points = plain.load() if len(values) <= points.IN_MEMORY else plain

    def described(self) -> dict[str, Any]:
        """What the page needs to know beside what it knows of any file."""
        dataset = self.file.dataset
        label = labelled(dataset, "strobe")
        low = min((c.low for c in self.clouds.values()), default=0.0)
        high = max((c.high for c in self.clouds.values()), default=1.0)
        margin = HARDLY * (high - low) or 0.05
        return {
            "axis": labelled(dataset, self.name)
            | {
                "low": self.edges[0],
                "high": self.edges[-1],
                "values": self.values[[0, -1]].tolist(),
                "points": len(self.values),
            },
            "shown": label
            | {
                "words": label["words"].partition(" at the clock")[0],
                "low": low - margin,
                "high": high + margin,
            },
            "clouds": [
                {"name": n, "words": CLOUDS[n.partition("_")[0]]} for n in self.clouds
            ],
            "phases": PHASES,
            "starts": self.starts,
            "variables": _choices(self.starts),
            "exponents": self.exponents.shape[1] // len(self.starts),
            "exponent": labelled(dataset, "lyapunov") if self.has_verdicts else None,
            "production": labelled(dataset, PRODUCTION)
            if self.has_production
            else None,
        }

    def density(
        self,
        low: float,
        high: float,
        bottom: float,
        top: float,
        columns: int,
        rows: int,
    ) -> bytes:
        """Samples in the cells of a window, columns of whole points."""
        first, stop, width = self._columns(low, high, columns)
        edges = np.linspace(bottom, top, rows + 1)
        arrays = {
            name: np.minimum(cloud.counts(first, stop, width, edges), 65535).astype(
                np.uint16
            )
            for name, cloud in self.clouds.items()
        }
        arrays["edges"] = self._edges(first, stop, width)
        header = {"bottom": bottom, "top": top, "width": width}
        return packed(header, arrays)

    def strips(self, low: float, high: float, columns: int) -> bytes:
        """Phases and exponents of a window, columns of whole points.

        Of several points in a column there are the most frequent phase, and the least
        and the largest of each exponent.
        """
        first, stop, width = self._columns(low, high, columns)
        return packed({"width": width}, self.reduced(first, stop, width))

    def reduced(self, first: int, stop: int, width: int) -> dict[str, np.ndarray]:
        """Edges, phases and exponents of columns of `width` points, up to stop - 1."""
        part = slice(first, stop)
        arrays = {"edges": self._edges(first, stop, width)}
        if self.has_verdicts:
            arrays["phase"] = _most_frequent(self.phases[part], width)
            exponents, errors = self.exponents[part], self.errors[part]
            arrays["least"] = _reduced(exponents, width, np.fmin)
            arrays["largest"] = _reduced(exponents, width, np.fmax)
            if width == 1:
                arrays["error"] = errors
                arrays["period"] = self.periods[part]
        if self.has_production:
            values, errors = (x[part] for x in self.production)
            arrays["production_least"] = _reduced(values, width, np.fmin)
            arrays["production_largest"] = _reduced(values, width, np.fmax)
            if width == 1:
                arrays["production_error"] = errors
        return arrays

    def nearest(self, value: float) -> int:
        """Number of the point nearest to a value."""
        right = int(np.searchsorted(self.values, value))
        around = [i for i in (right - 1, right) if 0 <= i < len(self.values)]
        return min(around, key=lambda i: abs(self.values[i] - value))

    def part(self, values: dict[str, float]) -> xr.Dataset:
        """The point nearest to a value of the parameter, as a scan of one point."""
        number = int(self.order[self.nearest(values[self.name])])
        return self._points.isel({self.name: [number]})

    def point(self, values: dict[str, float]) -> dict[str, Any]:
        """The verdict of the point nearest to a value of the parameter."""
        with self.file.lock:
            return points.verdict(self.part(values), (self.name,))

    def verdicts(self, numbers: np.ndarray) -> list[dict[str, Any]]:
        """Verdicts of several points, which are read together."""
        with self.file.lock:
            part = self._points.isel({self.name: self.order[numbers]}).load()
        single = (part.isel({self.name: [i]}) for i in range(len(numbers)))
        return [points.verdict(point, (self.name,)) for point in single]

    @property
    def has_verdicts(self) -> bool:
        """Whether the scan has phases and exponents."""
        return "phase" in self.file.dataset

    @property
    def has_production(self) -> bool:
        """Whether the scan has entropy production."""
        return PRODUCTION in self.file.dataset

    def _rows(self, name: str) -> xr.DataArray:
        return self.file.dataset[name].transpose(self.name, ...)

    def _samples(
        self, name: str, start: int | None, first: int, stop: int
    ) -> np.ndarray:
        """Samples of points in order, of one start where there are several."""
        chosen = self.order[first:stop]
        low, high = chosen.min(), chosen.max() + 1
        with self.file.lock:
            rows = self._rows(name).isel({self.name: slice(low, high)})
            rows = (rows if start is None else rows.isel(start=start)).values
        rows = rows[chosen - low].reshape(len(chosen), -1)
        return np.where(self.failed[chosen], np.nan, rows)

    def _failed(self, dataset: xr.Dataset) -> np.ndarray:
        """Points none of whose starts could be computed, in the order of the file."""
        if "failure" not in dataset:
            return np.zeros((len(self.values), 1), bool)
        codes = dataset.failure.transpose(self.name, ...).values
        return (codes.reshape(len(codes), -1) != 0).all(axis=1)[:, None]

    def _read_verdicts(self, dataset: xr.Dataset) -> None:
        """Phases (points, starts), exponents (points, starts exponents), in order."""
        count = len(self.values)
        self.phases = np.zeros((count, 0), np.int8)
        self.exponents = self.errors = np.zeros((count, 0), np.float32)
        if not self.has_verdicts:
            return
        of = lambda name: (
            dataset[name]
            .transpose(self.name, "start", "exponent", missing_dims="ignore")
            .values.reshape(count, -1)[self.order]
        )
        phases = dataset.phase.transpose(self.name, ...).values.reshape(count, -1)
        if "failure" in dataset:
            failure = dataset.failure.transpose(self.name, ...).values
            lost = (failure.reshape(count, -1) != 0) & (
                phases != PHASES.index("diverged")
            )
            phases = np.where(lost, -1, phases)
        self.phases = phases.astype(np.int8)[self.order]
        self.periods = of("period").astype(np.int32)
        self.exponents = of("lyapunov").astype(np.float32)
        self.errors = of("lyapunov_stderr").astype(np.float32)
        if self.has_production:
            pair = (PRODUCTION, f"{PRODUCTION}_stderr")
            self.production = [of(name).astype(np.float32) for name in pair]

    def _columns(self, low: float, high: float, columns: int) -> tuple[int, int, int]:
        """First point, the one after the last, and points of a column of a window."""
        first = max(int(np.searchsorted(self.edges, low, "right")) - 1, 0)
        stop = min(int(np.searchsorted(self.edges, high, "left")), len(self.values))
        first = min(first, len(self.values) - 1)
        stop = max(stop, first + 1)
        width, first = width_for(first, stop, columns)
        stop = min(-(-stop // width) * width, len(self.values))
        return first, stop, width

    def _edges(self, first: int, stop: int, width: int) -> np.ndarray:
        return np.append(self.edges[first:stop:width], self.edges[stop])


def names_of_starts(dataset: xr.Dataset) -> list[str]:
    """Names of the starts of a scan: ways of a sweep, or numbers."""
    if is_swept(dataset):
        return ["up", "down"]
    return [f"start {i + 1}" for i in range(dataset.sizes.get("start", 1))]


def _choices(starts: list[str]) -> list[dict[str, str]]:
    """What a reader may look at: every start, or one; nothing to choose of one."""
    words = {"all": "all starts"} | {str(i): name for i, name in enumerate(starts)}
    rows = [{"name": n, "words": w, "symbol": ""} for n, w in words.items()]
    return rows if len(starts) > 1 else []


def _most_frequent(codes: np.ndarray, width: int) -> np.ndarray:
    """Codes from -1 on (points, starts), the most frequent of every column."""
    if width == 1:
        return codes
    first = np.arange(0, len(codes), width)
    counts = [
        np.add.reduceat(codes == code, first, axis=0, dtype=np.int32)
        for code in range(-1, len(PHASES))
    ]
    return (np.argmax(counts, axis=0) - 1).astype(np.int8)


def _reduced(values: np.ndarray, width: int, choose: np.ufunc) -> np.ndarray:
    """The least or the largest of every column."""
    if width == 1:
        return values
    return choose.reduceat(values, np.arange(0, len(values), width))
