"""Minibatches: learning, its records, its ends, and that it goes on after a kill."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.montecarlo.blocks import BlockFolder, BlockMemory
from statmech_attn.reporting import Silent
from statmech_attn.tasks import one_shot
from statmech_attn.training import (
    ClassPatches,
    DIVERGED,
    initial,
    Minibatches,
    outputs,
    RUNNING,
    StochasticTrainer,
    VANISHED,
)


SETTING = one_shot.Setting(image_size=4, patch=4, channels=1)
CHOICES = Minibatches(
    1e-2, steps=250, block=100, batch=64, validation_batches=4, patience=100
)
KEY = jax.random.key(1)


def drawings(classes, seed):
    """One patch a drawing: a vector of its class and a third of it as noise."""
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(classes, 1, 1, 16)) + 0.3 * draws.normal(
        size=(classes, 6, 1, 16)
    )
    x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    return jnp.asarray(x, jnp.float32)


CODES = jax.tree.map(np.float32, one_shot.codes(SETTING))


def start(seed=0):
    sizes = {"n_inputs": 16, "heads": (2, 2), "width": 16, "key_size": 8}
    return initial(jax.random.key(seed), gain=3**0.5, **sizes)


def scaled(factor):
    return jax.tree.map(lambda w: factor * w, start())


@pytest.fixture(scope="module")
def trainer():
    patches = ClassPatches(drawings(40, 1), drawings(20, 2), CODES)
    return StochasticTrainer(CHOICES, patches, start(), jax.random.key(5))


def trained(trainer, weights, **options):
    return trainer.run(KEY, weights, BlockMemory(warmup=0), **options)


@pytest.fixture(scope="module")
def found(trainer):
    return trained(trainer, start())


def test_classes_that_were_never_seen_are_told_apart(found):
    new = drawings(30, 3)
    sizes = {"n_classes": 30, "n_drawings": 6, "examples": 1000}
    x, y = one_shot.sequences(new, one_shot.choose(KEY, **sizes), CODES)
    right = float((jnp.sign(outputs(found.weights, x)) == y).mean())
    assert right > 0.5 + 5 * 0.5 / 1000**0.5
    assert found.result == RUNNING and found.steps == 250
    # Records at every tenth of a block; the last block is cut at the end of the run.
    assert CHOICES.recorded.tolist() == list(range(0, 251, 10))
    assert found.loss.shape == found.accuracy.shape == (26,)
    assert found.loss[-1] < 0.5 < found.loss[1] and found.output_rms[-1] > 0.5


def test_the_weights_that_are_kept_are_the_best_on_the_validation_tasks(trainer, found):
    best = np.argmax(found.accuracy)
    assert found.best_step == CHOICES.recorded[best]
    _, again = trainer.start(KEY, found.weights)
    for name in ("accuracy", "output_rms", "loss_validation"):
        assert float(again[name]) == getattr(found, name)[best]
    assert found.accuracy[best] > found.accuracy[0]


def test_a_pass_takes_no_pair_of_classes_twice(trainer, monkeypatch):
    """Of 780 pairs 12 whole batches of 64; the next pass begins with others."""
    used = pairs_used(trainer, 24, monkeypatch)
    assert used.shape == (24, 64, 2) and (used[..., 0] != used[..., 1]).all()
    assert used.min() == 0 and used.max() == 39
    passes = np.sort(used, axis=-1).reshape(2, 12 * 64, 2)
    for pairs in passes:
        assert len(np.unique(pairs, axis=0)) == 12 * 64
    # In the same place once in 780 pairs: one place, and five errors of sqrt(1).
    assert (passes[0] == passes[1]).all(1).sum() <= 6


def pairs_used(trainer, steps, monkeypatch):
    """Classes of the tasks that the first steps of a run learn from."""
    shown, choose = [], one_shot.choose

    def told(*key, classes, **sizes):
        shown.append(classes)
        return choose(*key, classes=classes, **sizes)

    def step(state, _):
        state, _ = trainer._step(trainer.patches, state, jnp.float32(0))
        return state, shown.pop()

    monkeypatch.setattr(one_shot, "choose", told)
    # Nothing is learned, which compiles faster.
    monkeypatch.setattr(trainer, "_loss", lambda weights, x, y: 0 * weights.a.sum())
    state = trainer._fresh(KEY, start())
    _, used = jax.jit(lambda state: jax.lax.scan(step, state, length=steps))(state)
    return np.asarray(used)


def test_weight_decay_is_a_part_of_the_gradient(trainer):
    """Without readout nothing but the decay moves a weight: by the whole rate."""
    none = scaled(0.0)
    silent = start()._replace(V=none.V, a=none.a)
    state, _ = trainer.start(KEY, silent)
    last = eqx.tree_at(lambda s: s.steps, state, jnp.asarray(CHOICES.steps - 1))
    after, _ = trainer.advance(last)
    assert after.steps == CHOICES.steps
    for before, moved in zip(
        jax.tree.leaves(silent), jax.tree.leaves(after.weights), strict=True
    ):
        # Adam's first step is g / (|g| + 1e-8).
        pull = CHOICES.weight_decay * np.asarray(before)
        expected = CHOICES.learning_rate * pull / (abs(pull) + 1e-8)
        np.testing.assert_allclose(before - moved, expected, atol=1e-6)


def test_a_network_without_outputs_has_vanished(trainer):
    """No weights at all are a saddle of the loss: f = 0, L = 1."""
    found = trained(trainer, scaled(0.0))
    assert found.result == VANISHED and found.steps == CHOICES.patience
    assert (found.output_rms == 0).all() and (found.loss == 1).all()
    assert (found.accuracy == 0).all() and found.best_step == 0
    assert all((w == 0).all() for w in jax.tree.leaves(found.weights))


def test_weights_that_overflow_are_told(trainer):
    found = trained(trainer, scaled(1e12))
    assert found.result == DIVERGED and found.steps < CHOICES.steps
    assert np.isnan(found.loss[1:]).all() and np.isnan(found.accuracy[1:]).all()


def test_a_run_that_is_stopped_goes_on_with_the_same_bits(trainer, found, tmp_path):
    store = lambda: BlockFolder(
        tmp_path, warmup=0, study='kind = "test"', run="run", report=Silent()
    )
    blocks = []

    def stop(steps):
        blocks.append(steps)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.run(KEY, start(), store(), stop)
    resumed = trainer.run(KEY, start(), store(), blocks.append)
    assert blocks == [100, 100, 50]
    for one, other in zip(
        jax.tree.leaves(resumed), jax.tree.leaves(found), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow  # a program of its own; outputs agree in the fast tests
def test_mixed_precision_learns_as_well(found):
    patches = ClassPatches(drawings(40, 1), drawings(20, 2), CODES)
    choices = CHOICES._replace(precision="mixed")
    trainer = StochasticTrainer(choices, patches, start(), jax.random.key(5))
    mixed = trained(trainer, start())
    assert not np.array_equal(mixed.loss, found.loss)
    # 256 validation tasks: a standard error of 0.03 at most.
    assert abs(mixed.accuracy.max() - found.accuracy.max()) < 0.1
    assert all(w.dtype == jnp.float32 for w in jax.tree.leaves(mixed.weights))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be finite and > 0; got 0.0"),
        ({"weight_decay": -1.0}, "weight_decay must be finite and >= 0; got -1.0"),
        ({"block": 15}, "block must be a multiple of 10; got 15"),
        ({"steps": 0}, "steps must be at least 1; got 0"),
        ({"patience": 0}, "patience must be at least 1; got 0"),
        ({"precision": "half"}, 'precision must be "single" or "mixed"; got \'half\''),
    ],
)
def test_impossible_choices_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        CHOICES._replace(**changes).check()
