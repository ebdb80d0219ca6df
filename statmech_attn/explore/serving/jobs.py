"""Studies of a part of a scan, computed in the background.

Points come coarse to fine, so that a rough picture of the whole part is there first.
"""

import itertools
import math
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn import scan
from statmech_attn.explore.result_files.cancellation import (
    Cancelled,
    first_line,
    Stoppable,
)
from statmech_attn.explore.result_files.files import finite
from statmech_attn.explore.views.live import Live
from statmech_attn.storage import toml


MOST = 20_000  # points of a part that is computed here
FEW = 64  # of a part for which nothing is compiled anew
NUMBERS = itertools.count(1)


class Job:
    """A part of a scan that is being computed.

    Attributes:
        number: that the page calls it by.
        study: its text, TOML.
        total: number of points.
        rows: what has been computed, a dictionary for every point.
        state: "running", "finished", "cancelled", or "failed" with an `error`; a
            compilation that has begun when a part is cancelled goes on unseen.
    """

    def __init__(self, live: Live, ranges: dict[str, Any]):
        tree = live.tree_of(ranges)
        self.live, self.study = live, toml.dumps(tree)
        self.number, self.state, self.error = next(NUMBERS), "running", ""
        checked = live.checked(tree)
        self.total = math.prod(_length(ranges[name]) for name in live.names)
        if self.total > MOST:
            raise ValueError(
                f"{self.total} points are more than {MOST}; download the study and run "
                "it with statmech-attn run."
            )
        self._values = [_values(ranges[name]) for name in live.names]
        self._work = live.one if self.total <= FEW else live.work(checked)
        self.rows: list[dict[str, Any]] = []
        self._done, self._began = 0.0, time.monotonic()
        self._cancelled, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def progress(self, since: int) -> dict[str, Any]:
        """How far the job is, with the points after so many."""
        points = max(self._done, len(self.rows))
        passed = time.monotonic() - self._began
        seconds_left = passed * (self.total - points) / points if points else None
        return {
            "number": self.number,
            "state": self.state,
            "error": self.error,
            "done": min(points, self.total),
            "total": self.total,
            "left": seconds_left if self.state == "running" else None,
            "rows": self.rows[since:],
        }

    def cancel(self) -> None:
        """End at the next look; what has been computed stays."""
        with self._lock:
            self._cancelled.set()
            if self.state == "running":
                self.state = "cancelled"

    def wait(self, seconds: float) -> None:
        """Wait for the thread of the job."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            for values in parts(self._values, self._work.batch):
                report = _Counting(self)
                dataset = scan.in_memory(self._work.at(*values), report)
                computed = rows(dataset, self.live.names)
                with self._lock:
                    if self._cancelled.is_set():
                        raise Cancelled
                    self.rows += computed
            self._end("finished")
        except Cancelled:
            self._end("cancelled")
        except BaseException as error:  # whatever ends the thread, the page is told
            self._end("failed", first_line(error))

    def _end(self, state: str, error: str = "") -> None:
        with self._lock:
            if self.state == "running":
                self.state, self.error = state, error


def _length(values: Any) -> int:
    """How many values a key of [parameters] that has been checked stands for."""
    if isinstance(values, dict):
        return values["num"]
    return len(values) if isinstance(values, list) else 1


class _Counting(Stoppable):
    """A reporter that counts finished points."""

    def __init__(self, job: Job):
        super().__init__(job._cancelled)
        self._job = job

    def advance(self, work: float) -> None:
        super().advance(work)
        self._job._done += work


def _values(values: Any) -> np.ndarray:
    """The values themselves."""
    if isinstance(values, dict):
        return np.linspace(values["start"], values["stop"], values["num"])
    return np.atleast_1d(np.asarray(values, float))


def parts(values: list[np.ndarray], batch: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Values of every axis, a batch of points at a time, coarse to fine."""
    *rest, last = values
    across = coarse_to_fine(last)
    for outer in coarse_to_fine(np.concatenate(rest)) if rest else [None]:
        for first in range(0, len(across), batch):
            chosen = np.sort(across[first : first + batch])
            yield (chosen,) if outer is None else (np.array([outer]), chosen)


def coarse_to_fine(values: np.ndarray) -> np.ndarray:
    """Values in an order in which any beginning covers the whole range."""
    count, order = len(values), [0]
    step = 1 << max(count - 1, 1).bit_length()
    while step:
        order += range(0, count, step)
        step //= 2
    return np.asarray(values)[list(dict.fromkeys(order))]


def _numbers(samples: xr.DataArray) -> list[float]:
    values = np.ravel(samples.values)
    return values[np.isfinite(values)].astype(np.float32).tolist()


def rows(dataset: xr.Dataset, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The points of a scan as the page draws them."""
    stacked = dataset.stack(place=names)
    rows_of_points = []
    for number in range(stacked.sizes["place"]):
        point = stacked.isel(place=number)
        row: dict[str, Any] = {
            "values": {name: float(point[name]) for name in names},
            "section": _numbers(point.section),
            "strobe": _numbers(point.strobe),
        }
        if "phase" in point:
            row |= {
                "phase": int(point.phase),
                "period": int(point.period),
                "exponents": [finite(x) for x in point.lyapunov.values],
            }
        rows_of_points.append(row)
    return rows_of_points
