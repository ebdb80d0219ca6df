"""Networks that a study of training has left in its file."""

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from statmech_attn import storage
from statmech_attn.tasks import one_shot
from statmech_attn.training import (
    DIVERGED,
    one_shot_networks,
    RESULTS,
    Transformer,
    VANISHED,
)


# What became of trainings without a network that can be used, by their result.
LOST = {-1: "was not computed"}
LOST |= {code: RESULTS[code] for code in (DIVERGED, VANISHED)}


class TrainedNetworks(NamedTuple):
    """All networks of a file, in the order of its restarts.

    Attributes:
        task: of the file, as stored.
        setting: of the tasks that the networks were trained on.
        split: name of the split of the classes.
        turned: whether turned and mirrored training characters are classes, too.
        heads: number of heads of every layer.
        transformers: the networks.
        results: indices into `training.RESULTS`; -1 of a network that has no numbers.
    """

    task: dict[str, Any]
    setting: one_shot.Setting
    split: str
    turned: bool
    heads: tuple[int, ...]
    transformers: list[Transformer]
    results: list[int]


def load_trained(path: str | Path) -> TrainedNetworks:
    """Read the networks of a one-shot training.

    Args:
        path: result file of a training study with the one-shot task.

    Returns:
        The setting of the task, the split of the classes, and the heads and weights of
        every network.

    Raises:
        ValueError: a file of another kind or task.
        StorageError: missing or damaged.

    Example:
        `load_trained("training.h5").heads`
    """
    dataset = storage.read(path)
    kind, task = dataset.attrs.get("kind"), _task(dataset)
    if kind != "training" or task.get("name") != "one-shot":
        of_task = f" of task {task['name']!r}" if "name" in task else ""
        raise ValueError(
            f"{path}: need the training of one-shot networks; "
            f"got kind {kind!r}{of_task}."
        )
    sizes = {field.name: task[field.name] for field in fields(one_shot.Setting)}
    return TrainedNetworks(
        task,
        one_shot.Setting(**sizes),
        task["split"],
        task.get("turned", False),
        tuple(task["heads"]),
        [
            one_shot_networks.network_of(dataset.isel(restart=r))
            for r in range(dataset.sizes["restart"])
        ],
        dataset.training_result.values.tolist(),
    )


def usable(results: Iterable[int]) -> list[int]:
    """Trainings that ended with a network that answers, by their place in a file.

    Args:
        results: indices into `training.RESULTS`; -1 where none was computed.

    Example:
        >>> usable([RESULTS.index("converged"), DIVERGED, VANISHED, -1, 0])
        [0, 4]
    """
    return [place for place, code in enumerate(results) if code not in LOST]


def _task(dataset: xr.Dataset) -> dict[str, Any]:
    return json.loads(dataset.attrs.get("task", "{}"))
