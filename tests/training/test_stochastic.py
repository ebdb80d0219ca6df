"""Minibatches: learning, its records, its ends, and that it goes on after a kill."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.reporting import Silent
from statmech_attn.storage.writers.blocks import BlockFolder, BlockMemory
from statmech_attn.tasks import one_shot
from statmech_attn.training import DIVERGED, Minibatches, stochastic, VANISHED
from statmech_attn.training.results import RUNNING
from statmech_attn.training.stochastic import (
    ClassPatches,
    rate,
    StochasticTrainer,
    token_embedding,
)
from statmech_attn.training.transformer import initial, outputs


SETTING = one_shot.Setting(image_size=4, patch=4, channels=1)
CHOICES = Minibatches(
    learning_rate=1e-2,
    steps=250,
    block=100,
    batch=64,
    validation_batches=4,
    patience=100,
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
TOKENS = token_embedding(CODES, SETTING.channels)


def start(seed=0):
    sizes = {"n_inputs": 16, "heads": (2, 2), "width": 16, "key_size": 8}
    return initial(jax.random.key(seed), gain=3**0.5, **sizes)


def scaled(factor, weights):
    return jax.tree.map(lambda w: factor * w, weights)


@pytest.fixture(scope="module")
def trainer():
    patches = ClassPatches(drawings(40, 1), drawings(20, 2), TOKENS)
    return StochasticTrainer(CHOICES, patches, start(), jax.random.key(5))


def trained(trainer, weights, **options):
    return trainer.run(KEY, weights, BlockMemory(warmup=0), **options)


@pytest.fixture(scope="module")
def found(trainer):
    return trained(trainer, start())


@pytest.mark.slow
def test_classes_that_were_never_seen_are_told_apart(found):
    new = drawings(30, 3)
    sizes = {"n_classes": 30, "n_drawings": 6, "examples": 1000}
    x, y = one_shot.sequences(new, one_shot.choose(KEY, **sizes), CODES)
    right = float((jnp.sign(outputs(found.weights, x)) == y).mean())
    assert right > 0.5 + 5 * 0.5 / 1000**0.5
    assert found.result == RUNNING and found.steps == 250
    # Records at every tenth of a block; the last block is cut at the end of the run.
    assert CHOICES.recorded == list(range(0, 251, 10))
    assert found.loss.shape == found.accuracy.shape == (26,)
    assert found.loss[-1] < 0.5 < found.loss[1] and found.output_rms[-1] > 0.5


@pytest.mark.slow
def test_the_records_are_of_the_validation_classes(found):
    """Of tasks drawn here again; both parts have six drawings of a class."""
    patches, sizes = drawings(20, 2), {"n_classes": 20, "n_drawings": 6, "examples": 64}
    f, y = [], []
    for key in jax.random.split(jax.random.key(5), CHOICES.validation_batches):
        x, labels = one_shot.sequences(patches, one_shot.choose(key, **sizes), CODES)
        f.append(outputs(found.weights, x))
        y.append(labels)
    f, y = np.concatenate(f).astype(float), np.concatenate(y)
    best = CHOICES.recorded.index(found.best_step)
    assert best == np.argmax(found.accuracy) > 0
    assert found.accuracy[best] == (np.sign(f) == y).mean()
    # Sums of at most 64 terms in float32, and f itself to some 1e-6.
    for name, value in {
        "output_rms": np.sqrt((f**2).mean()),
        "loss_validation": ((f - y) ** 2).mean(),
    }.items():
        assert getattr(found, name)[best] == pytest.approx(value, rel=1e-5)


def test_a_step_takes_the_gradient_of_all_its_tasks(monkeypatch):
    """In pieces, from patches of one channel; by `outputs` of whole sequences."""
    monkeypatch.setattr(stochastic, "Compiled", lambda *program, **how: None)
    setting = replace(SETTING, channels=3)
    codes = jax.tree.map(np.float32, one_shot.codes(setting))
    patches = ClassPatches(drawings(40, 1), drawings(20, 2), token_embedding(codes, 3))
    sizes = {"n_inputs": 48, "heads": (2,), "width": 16, "key_size": 8}
    network = initial(jax.random.key(0), gain=3**0.5, **sizes)
    several = StochasticTrainer(CHOICES, patches, network, jax.random.key(5))
    assert CHOICES.batch == 4 * several._piece
    sizes = {"n_classes": 40, "n_drawings": 6, "examples": CHOICES.batch}
    chosen = jax.jit(partial(one_shot.choose, **sizes))(KEY)
    loss, gradient = jax.jit(several._gradient)(patches, network, chosen)

    def whole(network):
        x, y = one_shot.sequences(jnp.tile(patches.train, 3), chosen, codes)
        return ((outputs(network, x) - y) ** 2).mean()

    expected_loss, expected = jax.jit(jax.value_and_grad(whole))(network)
    assert float(loss) == pytest.approx(float(expected_loss), rel=1e-6)
    for part, exact in zip(*map(jax.tree.leaves, (gradient, expected)), strict=True):
        # Sums of some thousand terms in float32, of either sign.
        scale = float(abs(exact).max())
        np.testing.assert_allclose(part, exact, rtol=0, atol=1e-5 * scale)


def test_the_rate_is_constant_or_falls_to_zero_at_the_end():
    assert rate(CHOICES) == 1e-2
    falling = rate(replace(CHOICES, schedule="cosine"))
    np.testing.assert_allclose(
        [falling(step) for step in (0, 125, 250)], [1e-2, 5e-3, 0.0], atol=1e-9
    )


@pytest.fixture(scope="module")
def used(trainer):
    """Choices of all tasks of the first 24 steps of a run: a row for each step."""
    shown, choose = [], one_shot.choose

    def told(*key, **sizes):
        shown.append(choose(*key, **sizes))
        return shown[-1]

    def step(state, _):
        state, _ = trainer._step(trainer.patches, state, jnp.float32(0))
        return state, shown.pop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_shot, "choose", told)
        # Nothing is learned, which compiles faster.
        nothing = lambda patches, weights, chosen: (jnp.float32(0), weights)
        patch.setattr(trainer, "_gradient", nothing)
        state = trainer._fresh(KEY, start())
        _, found = jax.jit(lambda state: jax.lax.scan(step, state, length=24))(state)
    return one_shot.Choices(*map(np.asarray, found))


@pytest.mark.slow
def test_a_pass_takes_no_pair_of_classes_twice(used):
    """Of 780 pairs 12 whole batches of 64; the next pass begins with others."""
    classes = used.classes
    assert classes.shape == (24, 64, 2) and (classes[..., 0] != classes[..., 1]).all()
    assert classes.min() == 0 and classes.max() == 39
    passes = np.sort(classes, axis=-1).reshape(2, 12 * 64, 2)
    for pairs in passes:
        assert len(np.unique(pairs, axis=0)) == 12 * 64
    # In the same place once in 780 pairs: one place, and five errors of sqrt(1).
    assert (passes[0] == passes[1]).all(1).sum() <= 6


@pytest.mark.slow
def test_every_step_draws_drawings_order_and_labels_anew(used):
    """Also in the next pass, and every drawing as often as the others."""
    for part in (used.drawings, used.match, used.y):
        # 64 bits of two steps or more agree once in 2^64 / 276 runs.
        assert len(np.unique(part.reshape(24, -1), axis=0)) == 24
    tasks = 24 * 64
    drawn = [(used.drawings[..., place] == d) for place in range(3) for d in range(6)]
    deviations = [
        (np.mean(values) - rate) / np.sqrt(rate * (1 - rate) / tasks)
        for rate, kinds in ((1 / 6, drawn), (1 / 2, [used.match == 0, used.y == 1]))
        for values in kinds
    ]
    # 20 standard normal numbers: one beyond 4.1 in 1200 tests.
    assert len(deviations) == 20 and np.abs(deviations).max() < 4.1


@pytest.fixture(scope="module")
def small():
    """The same of a small network, which compiles faster."""
    patches = ClassPatches(drawings(12, 1), drawings(8, 2), TOKENS)
    return StochasticTrainer(CHOICES, patches, faint(1.0), jax.random.key(5))


def test_weight_decay_is_a_part_of_the_gradient(small):
    """Without readout nothing but the decay moves a weight: by the whole rate."""
    none = scaled(0.0, faint(1.0))
    silent = faint(1.0)._replace(V=none.V, a=none.a)
    state, _ = small.start(KEY, silent)
    last = eqx.tree_at(lambda s: s.steps, state, jnp.asarray(CHOICES.steps - 1))
    after, _ = small.advance(last)
    assert after.steps == CHOICES.steps
    for before, moved in zip(
        jax.tree.leaves(silent), jax.tree.leaves(after.weights), strict=True
    ):
        # Adam's first step is g / (|g| + 1e-8).
        pull = CHOICES.weight_decay * np.asarray(before)
        expected = CHOICES.learning_rate * pull / (abs(pull) + 1e-8)
        np.testing.assert_allclose(before - moved, expected, atol=1e-6)


def test_a_network_without_outputs_has_vanished(small):
    """No weights at all are a saddle of the loss: f = 0, L = 1."""
    found = trained(small, scaled(0.0, faint(1.0)))
    assert found.result == VANISHED and found.steps == CHOICES.patience
    assert (found.output_rms == 0).all() and (found.loss == 1).all()
    assert (found.accuracy == 0).all() and found.best_step == 0
    assert all((w == 0).all() for w in jax.tree.leaves(found.weights))


@pytest.mark.slow
def test_a_network_that_is_silent_at_the_end_has_vanished():
    """Between two records; below an rms of 0.05 nothing has been learned."""
    still = replace(CHOICES, learning_rate=1e-12, steps=245, batch=8, patience=None)
    assert still.recorded == [*range(0, 241, 10), 245]
    patches = ClassPatches(drawings(12, 1), drawings(8, 2), TOKENS)
    trainer = StochasticTrainer(still, patches, faint(1.0), jax.random.key(5))
    whole = float(trainer.start(KEY, faint(1.0))[1]["output_rms"])
    for rms, result in ((0.04, VANISHED), (0.06, RUNNING)):
        ended = trained(trainer, faint(rms / whole))  # f is linear in the readout
        assert (ended.result, ended.steps) == (result, 245)
        assert ended.output_rms == pytest.approx(np.full(26, rms), rel=1e-5)
        assert ended.loss.shape == (26,) and np.isfinite(ended.loss).all()


def test_weights_that_overflow_are_told(small):
    found = trained(small, scaled(1e12, faint(1.0)))
    assert found.result == DIVERGED and found.steps < CHOICES.steps
    assert np.isnan(found.loss[1:]).all() and np.isnan(found.accuracy[1:]).all()


@pytest.mark.slow
def test_a_late_divergence_keeps_the_records_before_it(trainer, found, monkeypatch):
    advance = trainer.advance

    def overflowing(state):
        """In the second block."""
        factor = 1e12 if state.steps == 100 else 1
        large = scaled(factor, state.weights)
        return advance(eqx.tree_at(lambda s: s.weights, state, large))

    monkeypatch.setattr(trainer, "advance", overflowing)
    late = trained(trainer, start())
    assert late.result == DIVERGED and late.steps == 101
    for name in ("loss", "accuracy", "output_rms", "loss_validation"):
        curve = getattr(late, name)
        np.testing.assert_array_equal(curve[:11], getattr(found, name)[:11])
        assert curve.shape == (26,) and np.isnan(curve[11:]).all()
    best = np.argmax(found.accuracy[:11])
    assert late.best_step == CHOICES.recorded[best]


# Ends between two records, in the middle of a block, and learns nothing.


def faint(factor):
    sizes = {"n_inputs": 16, "heads": (1,), "width": 4, "key_size": 2}
    weights = initial(jax.random.key(0), gain=3**0.5, **sizes)
    return weights._replace(a=factor * weights.a)


@pytest.mark.slow
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


@pytest.mark.slow
def test_mixed_precision_learns_as_well(found):
    """Four errors of a difference, which answers to the same tasks make smaller."""
    patches = ClassPatches(drawings(40, 1), drawings(20, 2), TOKENS)
    choices = replace(CHOICES, precision="mixed")
    mixed = trained(
        StochasticTrainer(choices, patches, start(), jax.random.key(5)), start()
    )
    assert not np.array_equal(mixed.loss, found.loss)
    first, second = mixed.accuracy.max(), found.accuracy.max()
    right = (first + second) / 2
    assert abs(first - second) <= 4 * np.sqrt(2 * right * (1 - right) / 256)
    assert all(w.dtype == jnp.float32 for w in jax.tree.leaves(mixed.weights))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be above 0; got 0.0."),
        ({"weight_decay": -1.0}, "weight_decay must be at least 0; got -1.0."),
        ({"block": 15}, "block must be a multiple of 10; got 15."),
        ({"steps": 0}, "steps must be at least 1; got 0."),
        ({"patience": 0}, "patience must be at least 1; got 0."),
        ({"precision": "half"}, "must be 'auto', 'single' or 'mixed'; got 'half'."),
    ],
)
def test_impossible_choices_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(CHOICES, **changes)
