"""Tables of the studies of one-shot image classification."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from statmech_attn.options import Count, Even, Positive, Seed
from statmech_attn.studies.files import digests
from statmech_attn.studies.tables import LearningStudy, of, Table, TaskTable
from statmech_attn.tasks import options
from statmech_attn.training import Minibatches


def _once(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("names must be distinct")
    return names


def _filled_by_preset(schema: dict[str, Any]) -> None:
    """No key of a table that a preset fills is required, but the name of the task."""
    required = [key for key in schema.get("required", ()) if key in ("name", "task")]
    schema["required"] = required


Elsewhere = Annotated[list[Literal["fashion-mnist", "mnist"]], AfterValidator(_once)]

# What a study leaves out.  "paper" is the published training; "laptop" has narrower
# layers and a longer step, for the alphabets at hand.  Its initial weights have the
# variances of the prior, gain sqrt(3): from the published ones, gain 1, some networks
# of this size stay silent for thousands of steps.
ONE_SHOT_PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "laptop": {
        "task": {"split": "small", "channels": 3},
        "network": {"heads": [4, 4], "width": 64, "key_size": 32},
        "run": {"learning_rate": 1e-3, "gain": 3**0.5, "steps": 3000, "block": 500},
    },
    "paper": {
        "task": {"split": "vinyals", "channels": 3},
        "network": {"heads": [4, 4], "width": 512, "key_size": 128},
        "run": {"learning_rate": 3e-4, "gain": 1.0, "steps": 41_240, "block": 1000},
    },
}


class ImageTaskTable(of(options.Setting), TaskTable, frozen=True):
    """[task]: images, tokens, and the test sets.

    Attributes:
        name: name of the task.
        split: which alphabets are learned and tested.
        turned: whether each training character is eight classes: turned by quarters,
            and mirrored and turned; all other characters are upright.
        n_test: tasks of each test set, an even number.
        elsewhere: data sets of other images that are tested.
    """

    model_config = ConfigDict(json_schema_extra=_filled_by_preset)

    name: Literal["one-shot"]
    split: Literal["small", "vinyals"]
    turned: bool = False
    n_test: Even = 1000
    elsewhere: Elsewhere = ["fashion-mnist", "mnist"]

    def files(self) -> list[Path]:
        return digests.image_files(self.elsewhere)

    def inputs(self) -> dict[str, str]:
        return digests.of_images(self.elsewhere)


class TransformerTable(Table, frozen=True):
    """[network]: heads of every layer, hidden width N, size G of queries and keys.

    Attributes:
        heads: number of heads of every layer.
        width: hidden width N.
        key_size: size G of queries and keys.
    """

    model_config = ConfigDict(json_schema_extra=_filled_by_preset)

    heads: Annotated[list[Count], Field(min_length=1)]
    width: Count
    key_size: Count


class OneShotRun(of(Minibatches)):
    """[run] of Adam on minibatches; steps between two writes to disk make a block.

    Attributes:
        seed: seed of the initial weights and of the training tasks.
        restarts: trainings from initial weights of their own.
        gain: factor of the initial weights.
    """

    model_config = ConfigDict(json_schema_extra=_filled_by_preset)

    seed: Seed = 0
    restarts: Count = 1
    gain: Positive = 1.0


class OneShotTrainingStudy(LearningStudy, frozen=True):
    """Training of queries, keys and weights; a preset fills what is left out.

    Attributes:
        preset: values of what is left out: the published setting, or one for a laptop.
        network: sizes of the layers.
    """

    model_config = ConfigDict(json_schema_extra=_filled_by_preset)

    kind: Literal["training"]
    preset: Literal["laptop", "paper"] = "laptop"
    task: ImageTaskTable
    network: TransformerTable
    run: OneShotRun

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, tree: Any):
        preset = tree.get("preset", "laptop")
        chosen = ONE_SHOT_PRESETS.get(preset) if isinstance(preset, str) else None
        tables = {name: tree.get(name, {}) for name in chosen or {}}
        return tree | {
            name: (chosen or {})[name] | table
            for name, table in tables.items()
            if isinstance(table, dict)
        }

    def inputs(self) -> dict[str, str]:
        """SHA-256 of the image files, and of the values that the preset stands for."""
        preset = {
            f"preset {self.preset}": digests.of_values(ONE_SHOT_PRESETS[self.preset])
        }
        return preset | super().inputs()

    @property
    def keeps_blocks(self) -> bool:
        return True
