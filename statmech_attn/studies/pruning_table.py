"""Tables of a pruning study."""

import hashlib
import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt

from statmech_attn.studies.bpkr_tables import Positive
from statmech_attn.studies.one_shot_tables import Elsewhere
from statmech_attn.studies.tables import Count, Seed, StudyTable, Table


class PruningTask(Table):
    """[task]: the file of the trained networks, and the tasks that are drawn."""

    name: Literal["one-shot"] = "one-shot"
    trained: str
    seed: Seed = 0
    n_train: Count = 600
    n_test: Count = 1000
    elsewhere: Elsewhere = ["fashion-mnist", "mnist"]


class PruningNetwork(Table):
    """[network]: width and temperature at which heads are scored."""

    width: Positive = 10.0
    temperature: Positive = 0.5


class PruningRun(Table):
    """[run]: draws of the exact law, counted for each chain, and random orders."""

    seed: Seed = 0
    exact: StrictBool = True
    draws: Annotated[StrictInt, Field(ge=4)] = 250
    warmup: Count | None = None
    chains: Count = 4
    random_orders: Annotated[StrictInt, Field(ge=2)] = 20


class PruningStudy(StudyTable):
    kind: Literal["pruning"]
    task: PruningTask
    network: PruningNetwork = PruningNetwork()
    run: PruningRun = PruningRun()

    @property
    def seeds(self) -> dict[str, int]:
        return {"task": self.task.seed, "run": self.run.seed}

    def inputs(self) -> dict[str, str]:
        path = Path(self.task.trained)
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}

    def beside(self, folder: Path) -> Self:
        path = os.path.abspath(folder / self.task.trained)
        task = self.task.model_copy(update={"trained": path})
        return self.model_copy(update={"task": task})
