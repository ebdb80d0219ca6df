"""What is computed on the spot, from the study that a file holds.

The programs are compiled for one point at a time and kept: a click computes the
transient, the window with its exponents, and the section of any point, as a run of the
study does.
"""

import threading
from typing import Any

import jax
import numpy as np
import xarray as xr

from statmech_attn import batches, dynamics, scan, studies
from statmech_attn.dynamics import diagrams
from statmech_attn.explore.result_files.cancellation import Questions, Stoppable
from statmech_attn.explore.result_files.files import File, rounded
from statmech_attn.explore.result_files.stored_study import study_of, Uncomputable
from statmech_attn.explore.views import points
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.storage import toml


ORBIT = 4096  # steps of the orbit that is shown
BLOCKS = 64  # of the running exponents
RUNNING = 8192  # steps over which they run
DROPPED = ("refine", "confirm", "starts")  # keys of [run] that concern several points
Values = dict[str, float]


class Live:
    """Points of the study of a file, computed one at a time.

    With `allow_code` code that its study names may run; `Uncomputable` says why nothing
    can be computed.
    """

    def __init__(self, file: File, *, allow_code: bool = False):
        self.file, self.names = file, file.axes
        if diagrams.listed_parameters(file.dataset):
            raise Uncomputable("Points of a list are not computed one at a time.")
        self.tree = _tree(file)
        self._lock, self.questions = threading.Lock(), Questions()
        self._last: tuple[Values, Any] | None = None  # point whose transient is done
        low = {name: [float(file.dataset[name].min())] for name in self.names}
        self.study = study_of(file, self.tree_of(low), allow_code)

    def tree_of(self, ranges: dict[str, Any]) -> dict[str, Any]:
        """The study of the file at other values of its scanned parameters.

        `ranges` are numbers, lists or ranges by name.
        """
        return self.tree | {"parameters": self.tree["parameters"] | ranges}

    def checked(self, tree: dict[str, Any]) -> studies.StudyTable:
        """A study that has been checked; files that it names are beside this file."""
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
        self.questions.close()

    def verdict(self, values: Values, page: int = 0) -> dict[str, Any]:
        """The verdict of a point, computed as in the file, and its section.

        A later question of the same `page` ends this one: `Cancelled`.
        """
        self._require(values)
        stop = self.questions.begin(page)
        with self._lock:
            dataset = self.computed(values, Stoppable(stop))
        answer = points.verdict(dataset, self.names)
        section = np.ravel(dataset.section.values)
        return answer | {"section": rounded(section[np.isfinite(section)])}

    def computed(self, values: Values, report: Reporter = Silent()) -> xr.Dataset:
        """The result of a scan of one point."""
        at = [np.array([values[name]]) for name in self.names]
        return scan.in_memory(self.one.at(*at), report)

    def orbit(self, values: Values, page: int = 0) -> dict[str, Any]:
        """The orbit after the transient: what is shown, over time, and its spectrum."""
        self._require(values)
        stop = self.questions.begin(page)
        with self._lock:
            compiled, points_of, state = self._start(values, stop)
            parts = []
            for _ in range(ORBIT // diagrams.SEGMENT):
                after, displayed = compiled.record(
                    points_of.size, compiled.arrays, points_of.params, state
                )
                parts.append([np.asarray(x)[:, 0] for x in displayed[:2]])
                state = after
        first, second = np.concatenate(parts, axis=1)
        answer = {"first": rounded(first), "second": rounded(second)}
        if np.isfinite(first).all():
            spectrum = dynamics.power_spectrum(first, window="hann")
            answer |= {
                "frequency": rounded(spectrum.frequency),
                "power": rounded(spectrum.power),
            }
        return answer

    def running(self, values: Values, page: int = 0) -> dict[str, Any]:
        """Exponents averaged up to each time, after the transient."""
        self._require(values)
        stop = self.questions.begin(page)
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
            "running": [rounded(column) for column in running.T],
            "steps": (length * np.arange(1, BLOCKS + 1)).tolist(),
        }

    def _start(self, values: Values, stop: threading.Event):
        """Programs, a point in every lane, and where its transient ends.

        Those of the last point are kept, for its orbit and its exponents.
        """
        if self._last is None or self._last[0] != values:
            work = self.one.at(*(np.array([values[name]]) for name in self.names))
            compiled, points_of = work.scan, work.lanes()
            tick = Stoppable(stop).advance
            state = compiled.advanced(points_of, work.plan.transient, stop, tick)
            tick(0)
            self._last = dict(values), (compiled, points_of, state)
        return self._last[1]

    def _require(self, values: Values) -> None:
        """Refuse values that the study would refuse."""
        self._study(values)

    def _study(self, values: Values) -> studies.StudyTable:
        """The study of one point, in which what was scanned remains so."""
        return self.checked(self.tree_of({n: [x] for n, x in values.items()}))


def _tree(file: File) -> dict[str, Any]:
    """The study of a file without what concerns several points together."""
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
    wanted = run.get("compiler", batches.AUTO)
    run["compiler"] = batches.stored_compiler(wanted, file.dataset.attrs).name
    return tree | {"run": run}
