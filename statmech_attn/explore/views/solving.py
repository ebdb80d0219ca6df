"""Saddle points on the spot, at any width and temperature, from the study of a file.

What is computed is what a study of order parameters that had this width and this
temperature as well would hold: the temperatures of a width are a chain from the highest
one down (`bpkr.SaddlePoints`).
"""

import threading
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn import batches, studies
from statmech_attn.bpkr import SaddlePoints
from statmech_attn.explore.result_files.cancellation import Questions, Stoppable
from statmech_attn.explore.result_files.files import File
from statmech_attn.explore.result_files.stored_study import study_of, Uncomputable
from statmech_attn.storage import toml


NAMES = ("width", "temperature")


class Solving:
    """Saddle points of the study of a file, one at a time.

    With `allow_code` code that its study names may run; `Uncomputable` says why nothing
    can be computed.
    """

    def __init__(self, file: File, *, allow_code: bool = False):
        self.file, self.questions = file, Questions()
        self._lock = threading.Lock()
        try:
            tree: dict[str, Any] = toml.loads(str(file.dataset.attrs.get("study", "")))
        except ValueError as error:
            raise Uncomputable(f"Nothing can be computed: {error}") from None
        self.tree = tree
        self.study = study_of(file, tree, allow_code)

    @batches.once
    def work(self) -> SaddlePoints:
        """The work of the study, whose problem and programs every point uses."""
        batches.runtime.prepare()
        work = studies.work(self.study)
        assert isinstance(work, SaddlePoints)
        return work

    def warm(self) -> None:
        """Compile what a point needs, at the first one of the file."""
        first = lambda name: float(np.ravel(self.file.dataset[name].values)[0])
        self.solved({name: first(name) for name in NAMES})

    def close(self) -> None:
        """End what is being computed at the next look."""
        self.questions.close()

    def solved(self, values: dict[str, float], page: int = 0) -> xr.Dataset:
        """Order parameters, accuracy, evidence and scores at a point.

        `values` are width and temperature; a later question of the same `page` ends
        this one: `Cancelled`.
        """
        if set(values) != set(NAMES):
            raise ValueError("values should be of width and temperature.")
        network = self.tree["network"] | values
        studies.parse(self.tree | {"network": network})
        stop = self.questions.begin(page)
        with self._lock:
            work, tick = self.work, Stoppable(stop).advance
            tick(0.0)
            row: dict[str, Any] = work.between(**values, tick=tick)
        if row["result"] != 0:
            raise ValueError("There is no saddle point, or it was not reached.")
        dims = lambda name, x: work.inner_dims(name, np.asarray(x)[None])
        variables = {name: (dims(name, x), x) for name, x in row.items()}
        variables = work.with_accuracies(variables)
        named = {
            name: self.file.dataset[name]
            for name in ("attention_head", "test_set")
            if name in self.file.dataset
        }
        paths = {
            dim: self.file.dataset[dim]
            for dims, _ in variables.values()
            for dim in dims
            if dim.startswith("path_")
        }
        return xr.Dataset(variables, named | paths | values)
