"""What is computed on the spot, from the study that a file holds.

The programs are compiled for one point at a time and kept: a click computes the
transient, the window with its exponents, and the section of any point, as a run of the
study does.
"""

import json
import threading
from typing import Any

import jax
import numpy as np
import xarray as xr

from statmech_attn import batches, dynamics, scan, studies
from statmech_attn.dynamics import diagrams
from statmech_attn.explore import points
from statmech_attn.explore.files import File
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.storage import toml


ORBIT = 4096  # steps of the orbit that is shown
BLOCKS = 64  # of the running exponents
RUNNING = 8192  # steps over which they run
DROPPED = ("refine", "confirm", "starts")  # keys of [run] that concern several points
Values = dict[str, float]


class Cancelled(Exception):
    """Raised in a computation that nobody waits for any more."""


class Stoppable(Silent):
    """A reporter that ends what it is told of, once it is to stop."""

    def __init__(self, stop: threading.Event):
        self.stop = stop

    def advance(self, work: float) -> None:
        if self.stop.is_set():
            raise Cancelled


class Uncomputable(ValueError):
    """A file from which nothing can be computed; why, in one line."""


class Live:
    """Points of the study of a file, computed one at a time.

    Args:
        file: a scan.
        allow_code: whether code that its study names may run.

    Raises:
        Uncomputable: why nothing can be computed.
    """

    def __init__(self, file: File, *, allow_code: bool = False):
        self.file, self.names = file, file.axes
        self.tree = _tree(file)
        self._lock, self._guard = threading.Lock(), threading.Lock()
        self._stops: dict[int, threading.Event] = {}  # of what pages wait for
        low = {name: float(file.dataset[name].min()) for name in self.names}
        self.study = self._study(low)
        if self.study.code() and not allow_code:
            raise Uncomputable(
                "The study names code in Python. Start the explorer with --allow-code "
                "to compute with it."
            )
        try:
            inputs = self.study.inputs()
        except OSError as error:
            raise Uncomputable(f"{error.filename}: {error.strerror}.") from None
        stored = json.loads(file.dataset.attrs.get("inputs", "{}"))
        if changed := scan.changed_inputs(stored, inputs):
            raise Uncomputable(f"The file was computed with another {changed}.")

    def tree_of(self, ranges: dict[str, Any]) -> dict[str, Any]:
        """The study of the file at other values of its scanned parameters.

        Args:
            ranges: numbers, lists or ranges by name.
        """
        return self.tree | {"parameters": self.tree["parameters"] | ranges}

    def checked(self, tree: dict[str, Any]) -> studies.StudyTable:
        """A study that has been checked, with the files that it names beside the file.

        Raises:
            ValueError: in one line.
        """
        return studies.parse(tree).beside(self.file.path.parent)

    def work(self, study: studies.StudyTable) -> diagrams.GridWork:
        """The work of a study."""
        batches.runtime.prepare()
        work = studies.work(study)
        assert isinstance(work, diagrams.GridWork)
        return work

    @batches.once
    def one(self) -> diagrams.GridWork:
        """The work of one point, whose programs every click uses."""
        return self.work(self.study)

    def warm(self) -> None:
        """Compile what a click needs, with the first point of the scan."""
        values = {n: float(self.file.dataset[n].values.flat[0]) for n in self.names}
        self.running(values)

    def close(self) -> None:
        """End what is being computed at the next look."""
        with self._guard:
            for stop in self._stops.values():
                stop.set()

    def verdict(self, values: Values, page: int = 0) -> dict[str, Any]:
        """The verdict of a point, computed as in the file, and its section.

        Args:
            page: who asks; a later question of the same page ends this one.

        Raises:
            Cancelled: there was one.
        """
        self._require(values)
        stop = self._asked(page)
        with self._lock:
            dataset = self.computed(values, Stoppable(stop))
        told = points.verdict(dataset, self.names)
        section = np.ravel(dataset.section.values)
        return told | {"section": _rounded(section[np.isfinite(section)])}

    def computed(self, values: Values, report: Reporter = Silent()) -> xr.Dataset:
        """A scan of one point."""
        at = [np.array([values[name]]) for name in self.names]
        return scan.in_memory(self.one.at(*at), report)

    def orbit(self, values: Values, page: int = 0) -> dict[str, Any]:
        """The orbit after the transient: what is shown, over time, and its spectrum."""
        self._require(values)
        stop = self._asked(page)
        with self._lock:
            compiled, points_of, state = self._start(values, stop)
            parts = []
            for _ in range(ORBIT // diagrams.SEGMENT):
                after, shown = compiled.record(
                    points_of.size, compiled.arrays, points_of.params, state
                )
                parts.append([np.asarray(x)[:, 0] for x in shown[:2]])
                state = after
        first, second = np.concatenate(parts, axis=1)
        told = {"first": _rounded(first), "second": _rounded(second)}
        if np.isfinite(first).all():
            spectrum = dynamics.power_spectrum(first, window="hann")
            told |= {
                "frequency": _rounded(spectrum.frequency),
                "power": _rounded(spectrum.power),
            }
        return told

    def running(self, values: Values, page: int = 0) -> dict[str, Any]:
        """Exponents averaged up to each time, after the transient."""
        self._require(values)
        stop = self._asked(page)
        with self._lock:
            compiled, points_of, state = self._start(values, stop)
            system, count = compiled.system, compiled.plan.exponents
            if not count:
                return {"running": [], "steps": []}
            lane = (lambda x: x[..., :1]) if system.batched else (lambda x: x[..., 0])
            of_one = lambda x: lane(x) if np.ndim(x) else x
            params, state = jax.tree.map(of_one, (points_of.params, state))
            spectrum = dynamics.lyapunov_spectrum(
                system, state, params, steps=RUNNING, exponents=count, blocks=BLOCKS
            )
        running = np.asarray(spectrum.running).reshape(BLOCKS, count)
        length = int(spectrum.steps) // BLOCKS
        return {
            "running": [_rounded(column) for column in running.T],
            "steps": (length * np.arange(1, BLOCKS + 1)).tolist(),
        }

    def _asked(self, page: int) -> threading.Event:
        """Ends what a page has asked for before, and is set to end this."""
        with self._guard:
            if page in self._stops:
                self._stops[page].set()
            self._stops[page] = threading.Event()
            return self._stops[page]

    def _start(self, values: Values, stop: threading.Event):
        """Programs, a point in every lane, and where its transient ends."""
        work = self.one.at(*(np.array([values[name]]) for name in self.names))
        compiled, plan = work.scan, work.plan
        points_of = work.lanes()
        tick = Stoppable(stop).advance
        state = compiled.advanced(points_of, plan.transient, stop, tick)
        tick(0)
        return compiled, points_of, state

    def _require(self, values: Values) -> None:
        """Refuse values that the study would refuse."""
        self._study(values)

    def _study(self, values: Values) -> studies.StudyTable:
        """The study of one point, in which what was scanned remains so."""
        return self.checked(self.tree_of({n: [x] for n, x in values.items()}))


def _tree(file: File) -> dict[str, Any]:
    """The study of a file without what concerns several points together."""
    if file.view == "pictures":
        raise Uncomputable("Only points of a scan are computed here.")
    try:
        tree = toml.loads(str(file.dataset.attrs.get("study", "")))
        if tree.get("kind") != "bifurcation" or "parameters" not in tree:
            raise ValueError("the file holds no study of kind bifurcation")
        studies.parse(tree)
    except ValueError as error:
        raise Uncomputable(f"Nothing can be computed: {error}") from None
    run = {k: v for k, v in tree.get("run", {}).items() if k not in DROPPED}
    if str(run.get("start", "")).startswith("continue"):
        del run["start"]
    return tree | {"run": run}


def _rounded(values: np.ndarray) -> list[float | None]:
    """Numbers of seven digits, as JSON has them."""
    return [
        float(f"{x:.7g}") if np.isfinite(x) else None for x in np.asarray(values, float)
    ]
