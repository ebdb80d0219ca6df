r"""Examples of the one-shot task for the heads of a trained network.

Drawn are the training set, from the training classes, and test sets from classes that
the network has not seen, each with a key of its own; docs/theory/one_shot.md.

    x                 (P, N_0, T)       examples, T tokens           `x`
    xi^pi             (P, N_0, Pi)      attentioned inputs, mean over the tokens
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from statmech_attn import bpkr
from statmech_attn.bpkr import Attended, Heads
from statmech_attn.studies.one_shot.trained import (
    load_trained,
    LOST,
    TrainedNetworks,
    usable,
)
from statmech_attn.studies.one_shot.trained_tables import RestartTask, TrainedTask
from statmech_attn.tasks import image_sets, one_shot
from statmech_attn.training import attention_heads, Transformer


# Test sets that choose the temperature.
CHOICES = {"validation": image_sets.VALIDATION, "published": image_sets.MAIN}
BATCH = 50  # examples whose attention is held at once


class Drawn(NamedTuple):
    """Examples for the heads of one network.

    Attributes:
        tests: by name of the set, unseen Omniglot classes first.
        description: of the task, with SHA-256 of all images.
    """

    train: one_shot.Examples
    tests: dict[str, one_shot.Examples]
    description: dict[str, Any]


class Source(NamedTuple):
    """What the examples of a study are drawn from; see `source`."""

    table: TrainedTask
    trained: TrainedNetworks
    images: image_sets.ImageSets

    @property
    def description(self) -> dict[str, Any]:
        """The task, with SHA-256 of all images."""
        described = self.table.model_dump(exclude={"trained", "restart"})
        digests = self.images.digests
        return described | {"training": self.trained.task, "images_sha256": digests}

    def drawn(self, restart: int) -> Drawn:
        """Training set and test sets for the heads of a network."""
        table, key = self.table, jax.random.key(self.table.seed)
        train = self.images.train(key, restart, table.n_train)
        tests = self.images.tests(key, restart, table.n_test)
        return Drawn(train, tests, self.description)

    def attended(self, restart: int) -> bpkr.LearningTask:
        """All sets as the heads of a network attend them."""
        if restart not in usable(self.trained.results):
            raise ValueError(f"training {restart} learned nothing that can be pruned.")
        return attended(self.trained.transformers[restart], self.drawn(restart))


def source(table: TrainedTask, trained: TrainedNetworks) -> Source:
    """Read the images."""
    drawn_from = trained.setting, trained.split, table.elsewhere, trained.turned
    return Source(table, trained, image_sets.read(*drawn_from))


def learning(table: RestartTask) -> bpkr.LearningTask:
    """Training and test sets as the heads of one trained network attend them."""
    trained = load_trained(table.trained)
    transformer = network(trained, table.restart, Path(table.trained).name)
    return attended(transformer, source(table, trained).drawn(table.restart))


def network(trained: TrainedNetworks, restart: int, name: str) -> Transformer:
    """A network that has learned something."""
    answering = learned(trained, name)
    if restart in answering:
        return trained.transformers[restart]
    ended = "there is none"
    if restart < len(trained.results):
        ended = f"it {LOST[trained.results[restart]]}"
    raise ValueError(
        f"task.restart: no training {restart} of {name} can be used, {ended}; "
        f"choose one of {answering}."
    )


def learned(trained: TrainedNetworks, name: str) -> list[int]:
    """Numbers of the networks that have learned something."""
    networks = usable(trained.results)
    if not networks:
        raise ValueError(f"{name}: no network has learned anything.")
    return networks


def attended(transformer: Transformer, examples: Drawn) -> bpkr.LearningTask:
    """All sets of a study as the heads of a network attend them."""
    heads = attention_heads(transformer)
    attend = lambda drawn: (attentioned(drawn.x, heads), drawn.y)
    sets: dict[str, Attended] = {n: attend(x) for n, x in examples.tests.items()}
    digest = hashlib.sha256()
    for array in jax.tree.leaves((transformer.queries, transformer.keys)):
        digest.update(np.asarray(array).tobytes())
    described = examples.description | {"attention_sha256": digest.hexdigest()}
    return bpkr.LearningTask(
        *attend(examples.train),
        *sets[image_sets.MAIN],
        bpkr.head_counts(heads),
        json.dumps(described),
        sets,
        CHOICES,
    )


@jax.jit
def attentioned(x: Float[Array, "P N_0 T"], heads: Heads) -> Float[Array, "P N_0 Pi"]:
    """Attentioned inputs, the attention of a few examples at a time in memory."""
    attended = lambda x: bpkr.attentioned_inputs(x[None], heads, readout="mean")[0]
    return jax.lax.map(attended, x, batch_size=BATCH)
