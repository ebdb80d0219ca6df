"""Tables of the studies that take the heads of a trained network."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from statmech_attn.options import Even, WholeNumber
from statmech_attn.studies.files import digests
from statmech_attn.studies.learning.tables import (
    OrderParameterRun,
    OrderParameterStudy,
    PruningNetwork,
    PruningRun,
)
from statmech_attn.studies.one_shot.tables import Elsewhere
from statmech_attn.studies.tables import LearningStudy, TaskTable


class TrainedTask(TaskTable, frozen=True):
    """[task]: a file of trained networks, and the examples drawn for them.

    Half of the examples have the label +1; `n_test` is that of each test set.

    Attributes:
        name: name of the task.
        trained: result file of a one-shot training, beside the study.
        n_train: training examples, an even number.
        n_test: examples of each test set, an even number.
        elsewhere: data sets of other images that are tested.
    """

    name: Literal["one-shot"]
    trained: Annotated[str, Field(examples=["trained.h5"])]
    n_train: Even = 600
    n_test: Even = 1000
    elsewhere: Elsewhere = ["fashion-mnist", "mnist"]

    def files(self) -> list[Path]:
        """The file and the image files."""
        return [Path(self.trained), *digests.image_files(self.elsewhere)]

    def inputs(self) -> dict[str, str]:
        """SHA-256 of the file and of the image files, by name."""
        path = Path(self.trained)
        return {path.name: digests.of_file(path)} | digests.of_images(self.elsewhere)

    def beside(self, folder: Path) -> Self:
        """The same with the file looked up in a folder."""
        return self.model_copy(
            update={"trained": os.path.abspath(folder / self.trained)}
        )


class RestartTask(TrainedTask, frozen=True):
    """[task] of a study of one network of the file.

    Attributes:
        restart: number of the training.
    """

    templates: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "posterior": {
            "task.n_train": 40,
            "network.width": [100],
            "run.draws": 100,
            "run.warmup": 100,
        }
    }

    restart: WholeNumber = 0


class OneShotOrderParameterRun(OrderParameterRun, frozen=True):
    """[run] of saddle points, for more paths than corrections are cheap for.

    Attributes:
        corrections: whether corrections of order 1/N and the evidence are computed.
    """

    corrections: bool = False


class OneShotOrderParameterStudy(OrderParameterStudy, frozen=True):
    """Saddle points of Bayesian learning with the heads of a trained network."""

    run: OneShotOrderParameterRun = OneShotOrderParameterRun()


class PruningStudy(LearningStudy, frozen=True):
    """Trained networks without some of their heads.

    Attributes:
        network: width and temperature at which heads are scored.
    """

    kind: Literal["pruning"]
    task: TrainedTask
    network: PruningNetwork = PruningNetwork()
    run: PruningRun = PruningRun()
