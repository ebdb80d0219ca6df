"""What pictures of one-shot image classification share: sets, chance, size of data."""

from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from statmech_attn.plotting.frame import notes, style


SETS = {
    "omniglot": "Omniglot, unseen characters",
    "omniglot-validation": "Omniglot, validation",
    "fashion-mnist": "FashionMNIST 0/1",
    "mnist": "MNIST 0/1",
}
CHANCE = 0.5
PUBLISHED_CHARACTERS = 1028  # that it was trained with


def chance_level(axis: Axes) -> Line2D:
    """Draw, below everything else, the accuracy of guessing."""
    return axis.axhline(
        CHANCE, color=style.GREY, lw=0.6, ls=":", zorder=0, label="chance"
    )


def size_words(dataset: xr.Dataset, trainings: int) -> str:
    """How much data a one-shot file rests on, and how much was published."""
    task = network_task(dataset)
    characters, N_0 = task["characters"], task["channels"] * task["patch"] ** 2
    fewer = characters < PUBLISHED_CHARACTERS
    published = f" (published: {PUBLISHED_CHARACTERS})" if fewer else ""
    P = f"$P = {task['n_train']}$, " if "n_train" in task else ""
    plural = "" if trainings == 1 else "s"
    turned = " in eight orientations" if task.get("turned") else ""
    return (
        f"{characters} training characters{turned}{published}, {P}$N_0 = {N_0}$, "
        f"{trainings} training{plural}"
    )


def are_shown(dataset: xr.Dataset) -> bool:
    """Whether a file is about a network that was trained on images."""
    return "characters" in network_task(dataset)


def are_chosen(dataset: xr.Dataset) -> bool:
    """Whether a temperature was chosen for each width, on images of a split."""
    return "accuracy_chosen" in dataset and are_shown(dataset)


def set_title(dataset: xr.Dataset, name: str) -> str:
    """A test set in words: its own name, unless it is one of images."""
    return SETS.get(name, name) if are_shown(dataset) else name


def network_task(dataset: xr.Dataset) -> dict[str, Any]:
    """Images and network of the training that a file is about."""
    task = notes.of_task(dataset)
    return task.get("training", {}) | task
