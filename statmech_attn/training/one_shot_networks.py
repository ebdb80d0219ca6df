"""Attention networks, heads included, trained on one-shot image classification.

Each network begins at initial weights of its own and sees tasks of its own
(docs/theory/one_shot.md, sections 3 and 4); it is tested on classes that it has not
seen.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from statmech_attn import bpkr
from statmech_attn.batches import once, rng
from statmech_attn.bpkr import quantities
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import Arrays, FAILURE, lacking, Pilot, Points, Tick
from statmech_attn.statistics import share_error
from statmech_attn.tasks import image_sets, one_shot
from statmech_attn.training import networks
from statmech_attn.training.descent import block_store
from statmech_attn.training.options import Minibatches
from statmech_attn.training.results import DIVERGED
from statmech_attn.training.stochastic import (
    ClassPatches,
    Learnt,
    PILOT_STEPS,
    precision_here,
    StochasticTrainer,
    token_embedding,
)
from statmech_attn.training.transformer import (
    initial,
    outputs,
    Transformer,
    value_weights,
)


AT_ONCE = 250  # tasks of a test set
_CURVE = "constant after the end of a run"
_BEST = "float32, at the best step"
VARIABLES = Variables(
    Variable(
        "query_{l}", "restart head_{l} key_dimension input",
        "query matrices of layer {l}", "1", "Q_{l}", note=_BEST,
    ),
    Variable(
        "key_{l}", "restart head_{l} key_dimension input", "key matrices of layer {l}",
        "1", "K_{l}", note=_BEST,
    ),
    Variable(
        "value_0", "restart neuron input", "value matrices of layer 0", "1", "V_0",
        note=_BEST,
    ),
    Variable(
        "value_{l}", "restart head_{l} neuron neuron_in", "value matrices of layer {l}",
        "1", "V_{l}", note=_BEST,
    ),
    Variable(
        "readout", "restart neuron", "weights of the readout", "1", "a", note=_BEST
    ),
    Variable(
        "loss", "restart step", "squared errors of the training tasks, mean", "1", "L",
        group="",
        note=f"since the record before, at step 0 of validation tasks; {_CURVE}",
    ),
    Variable(
        "loss_validation", "restart step",
        "squared errors of the validation tasks, mean", "1", "L", group="", note=_CURVE,
    ),
    Variable(
        "accuracy_validation", "restart step",
        "share of validation tasks with the right sign", "1", "accuracy", group="",
        note=_CURVE,
    ),
    Variable(
        "output_rms", "restart step", "root mean square of f on the validation tasks",
        "1", "rms f", group="", note=_CURVE,
    ),
    quantities.ACCURACY_SETS.over("restart test_set", group=""),
    Variable(
        "best_step", "restart", "step with the most validation tasks right", "1", "n",
        group="",
    ),
    networks.STEPS._replace(dims="restart"),
    networks.RESULT._replace(
        dims="restart",
        note=f"{networks.RESULT.note}; vanished: outputs below 0.05 (rms)",
    ),
    quantities.order_parameters("restart", group=None),
    FAILURE,
    networks.STEP,
    quantities.RESTART,
    *quantities.PATHS,
    Variable("head_{l}", "head_{l}", "head of layer {l}", "1", "h"),
    quantities.TEST_SET._replace(
        long_name="classes that the test tasks are made of"
    ),
)  # fmt: skip
_outputs = jax.jit(outputs)


class OneShotNetworks(Points):
    """Networks from initial weights of their own, each with its own tasks.

    Args:
        key: random key of JAX, of initial weights and of training tasks.
        images: that tasks are made of.
        task_key: random key of JAX, of validation tasks and of test sets.
        minibatches: steps and rate of the descent.
        heads: heads per layer.
        width: hidden width N.
        key_size: size G of queries and keys.
        gain: factor of the initial weights.
        restarts: how many networks.
        n_test: tasks of each test set, an even number.
        about: attributes of the file.

    Example:
        >>> from statmech_attn.tasks import images
        >>> drawn = lambda key: images.ImageClasses(
        ...     ("a", "b", "c"), np.asarray(jax.random.uniform(key, (3, 5, 8, 8))))
        >>> keys = jax.random.split(jax.random.key(0), 5)
        >>> setting = one_shot.Setting(image_size=8, patch=4, channels=1)
        >>> sets = image_sets.ImageSets(setting, images.Split(*map(drawn, keys[:3])))
        >>> steps = Minibatches(learning_rate=0.01, steps=50, block=20)
        >>> networks = OneShotNetworks(
        ...     keys[3], sets, keys[4], steps, heads=(2, 2), width=6, key_size=5)
        >>> networks.shape
        (1,)
    """

    title = "training"
    variables = VARIABLES
    keeps_blocks = True
    empty: Mapping[str, int] = {"training_result": -1, "best_step": -1}

    def __init__(
        self,
        key: Key[Array, ""],
        images: image_sets.ImageSets,
        task_key: Key[Array, ""],
        minibatches: Minibatches,
        *,
        heads: Sequence[int],
        width: int,
        key_size: int,
        gain: float = 1.0,
        restarts: int = 1,
        n_test: int = 1000,
        about: Mapping[str, Any] = {},
    ):
        self.key, self.images, self.task_key = key, images, task_key
        self.minibatches, self.gain, self.n_test = minibatches, gain, n_test
        self.sizes = {"heads": list(heads), "width": width, "key_size": key_size}
        self.about = about
        self.axes = {"restart": np.arange(restarts)}

    @property
    def setting(self) -> one_shot.Setting:
        return self.images.setting

    def tests(self, number: int) -> dict[str, one_shot.Examples]:
        """Tasks of every test set.

        Args:
            number: of the network.
        """
        return self.images.tests(self.task_key, number, self.n_test)

    @property
    def patches(self) -> ClassPatches:
        """The images of training and validation, cut into tokens."""
        parts, one_channel = self.images.split, replace(self.setting, channels=1)
        cut = lambda classes: jnp.asarray(
            one_shot.patches(classes.images, one_channel), jnp.float32
        )
        codes, channels = one_shot.codes(self.setting), self.setting.channels
        tokens = token_embedding(codes, channels)
        return ClassPatches(cut(parts.train), cut(parts.validation), tokens)

    @once
    def _trainer(self) -> StochasticTrainer:
        """The compiled descent."""
        key = rng.key_for(self.task_key, "validation tasks", 0)
        return StochasticTrainer(self.minibatches, self.patches, self.start(0), key)

    def start(self, number: int) -> Transformer:
        """Initial weights.

        Args:
            number: of the network.
        """
        return initial(
            rng.key_for(self.key, "initial weights", number),
            n_inputs=self.setting.n_inputs,
            gain=self.gain,
            **self.sizes,
        )

    def tasks(self, number: int) -> Key[Array, ""]:
        """Key of the tasks that are learned from.

        Args:
            number: of the network.
        """
        return rng.key_for(self.key, "training tasks", number)

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        after = lambda steps: tick(steps / self.minibatches.steps)
        settings = self.images.digests, precision_here(self.minibatches), number
        inputs = [json.dumps(settings).encode()]
        store = block_store(folder, self.identity(), inputs)
        start = self.start(number)
        return self._described(
            number, self._trainer.run(self.tasks(number), start, store, after)
        )

    def _described(self, number: int, trained: Learnt) -> dict[str, Any]:
        """What is stored of a network; no numbers where the descent diverged."""
        U, U_a = bpkr.order_parameters(value_weights(trained.weights))
        described = named(trained.weights) | {f"U_{l}": x for l, x in enumerate(U, 1)}
        described["U_a"] = U_a
        described["accuracy_sets"] = np.array(
            [accuracy(trained.weights, *x) for x in self.tests(number).values()]
        )
        if trained.result == DIVERGED:
            described = {
                name: np.full(np.shape(x), np.nan, np.asarray(x).dtype)
                for name, x in described.items()
            }
        right = described["accuracy_sets"]
        return described | {
            "accuracy_sets_stderr": share_error(right, self.n_test),
            "loss": trained.loss,
            "accuracy_validation": trained.accuracy,
            "output_rms": trained.output_rms,
            "loss_validation": trained.loss_validation,
            "best_step": np.int64(trained.best_step),
            "training_steps": np.int64(trained.steps),
            "training_result": np.int8(trained.result),
        }

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Points without numbers though their training did not diverge."""
        lost = lacking(arrays, "readout", "U_1", "accuracy_sets")
        return lost & (arrays["training_result"] != DIVERGED)

    def pilot(self) -> Pilot:
        """A few steps with the validations between them, and a validation alone."""
        trainer = self._trainer
        state, _ = trainer.start(self.tasks(0), self.start(0))
        clock = time.perf_counter()
        trainer.start(self.tasks(0), self.start(0))
        validation = time.perf_counter() - clock
        clock = time.perf_counter()
        _, records = trainer.advance(trainer.near_the_end(state))
        validations = int(np.isfinite(records["accuracy"]).sum())
        steps = time.perf_counter() - clock - validations * validation
        step = max(steps, 0) / min(PILOT_STEPS, self.minibatches.steps)
        count = len(self.minibatches.recorded)
        weights = sum(x.size for x in jax.tree.leaves(state.weights))
        return Pilot(
            step * self.minibatches.steps + validation * count,
            trainer.memory,
            stored=4 * weights + 4 * 4 * count,
        )

    def attributes(self) -> dict[str, Any]:
        return {
            "kind": self.title,
            "task": self.description(),
            **self.about,
            "images_sha256": json.dumps(self.images.digests),
            "precision": precision_here(self.minibatches),
        }

    def description(self) -> str:
        """The task, with its number of training characters, and the network as JSON."""
        images, described = self.images, {"name": "one-shot"} | asdict(self.setting)
        described |= {"turned": True} if images.turned else {}
        described |= {"split": images.name, "characters": images.characters}
        return json.dumps(described | self.sizes)

    def coordinates(self) -> dict[str, Any]:
        heads = self.sizes["heads"]
        coordinates: dict[str, Any] = {
            "step": np.array(self.minibatches.recorded),
            "test_set": self.images.tested,
        }
        for l, count in enumerate(heads):
            names = bpkr.path_names(heads[l:])
            coordinates |= dict.fromkeys((f"path_{l + 1}", f"path_{l + 1}_pair"), names)
            coordinates[f"head_{l + 1}"] = [f"{l + 1}.{h + 1}" for h in range(count)]
        return coordinates


def accuracy(transformer: Transformer, x, y) -> float:
    """Share of tasks with the right sign of f."""
    f = [
        _outputs(transformer, x[first : first + AT_ONCE])
        for first in range(0, len(x), AT_ONCE)
    ]
    return bpkr.accuracy(jnp.concatenate(f), jnp.asarray(y))


def network_of(dataset: xr.Dataset) -> Transformer:
    """The network of one restart, from the variables that `named` gives it."""
    heads = [d for d in map(str, dataset.sizes) if d.startswith("head_")]
    read = lambda name: jnp.asarray(dataset[name].values)
    of_layers = lambda name: tuple(read(f"{name}_{l + 1}") for l in range(len(heads)))
    return Transformer(
        queries=of_layers("query"),
        keys=of_layers("key"),
        V_0=read("value_0"),
        V=of_layers("value"),
        a=read("readout"),
    )


def named(transformer: Transformer) -> dict[str, np.ndarray]:
    """The weights of a network by the names they are stored under."""
    weights = {"value_0": transformer.V_0, "readout": transformer.a}
    layers = zip(transformer.queries, transformer.keys, transformer.V, strict=True)
    for l, (query, key, value) in enumerate(layers, 1):
        weights |= {f"query_{l}": query, f"key_{l}": key, f"value_{l}": value}
    return {name: np.asarray(x) for name, x in weights.items()}
