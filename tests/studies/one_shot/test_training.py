"""Studies of one-shot training, on made images."""

import copy
import json
import pathlib
import re
import tomllib
import types

import jax
import numpy as np
import pytest

from statmech_attn import bpkr, storage, studies
from statmech_attn.batches import rng
from statmech_attn.bpkr.grids.pruned_networks import EXACT_LAW, RANDOM_ORDERS
from statmech_attn.scan.engines.local import in_memory
from statmech_attn.studies.one_shot import examples
from statmech_attn.studies.one_shot.tables import ONE_SHOT_PRESETS, OneShotTrainingStudy
from statmech_attn.studies.one_shot.trained import TrainedNetworks
from statmech_attn.studies.one_shot.trained_tables import TrainedTask
from statmech_attn.tasks import images, one_shot as one_shot_task
from statmech_attn.training import attention_heads, one_shot_networks, value_weights
from statmech_attn.training.stochastic import precision_here, StochasticTrainer
from statmech_attn.training.transformer import outputs


SMALL = {
    "kind": "training",
    "task": {
        "name": "one-shot",
        "image_size": 8,
        "patch": 4,
        "channels": 1,
        "n_test": 40,
        "elsewhere": ["mnist"],
    },
    "network": {"heads": [2, 2], "width": 6, "key_size": 5},
    "run": {
        "steps": 50,
        "block": 20,
        "batch": 16,
        "validation_batches": 2,
        "restarts": 2,
        "gain": 1.7,
        "learning_rate": 0.01,
    },
}


def changed(table, **values):
    tree = copy.deepcopy(SMALL)
    tree[table] |= values
    return tree


@pytest.fixture(scope="module")
def data(tmp_path_factory, made_images):
    folder = tmp_path_factory.mktemp("data")
    made_images.write_omniglot(folder, characters=2)
    made_images.write_digits(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATMECH_ATTN_DATA", str(folder))
        yield folder


@pytest.fixture(scope="module")
def work(data):
    return studies.work(studies.parse(SMALL))


@pytest.fixture(scope="module")
def found(work):
    return in_memory(work)


@pytest.fixture(scope="module")
def file(found, tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "trained.h5"
    storage.write(path, found, study=studies.dump(SMALL))
    return path


@pytest.mark.slow
def test_networks_read_back_answer_as_the_file_says(work, found, file):
    """On the same tasks; the theory's forward pass and order parameters agree."""
    trained = studies.load_trained(file)
    assert trained.heads == (2, 2) and trained.setting == work.setting
    assert trained.split == "small" and trained.task["width"] == 6
    assert trained.results == found.training_result.values.tolist()
    for r, network in enumerate(trained.transformers):
        x, y = work.tests(r)["omniglot"]
        f = outputs(network, x)
        assert bpkr.accuracy(f, y) == float(found.accuracy_sets[r, 0])
        weights = value_weights(network)
        exact = bpkr.forward(weights, x, attention_heads(network), readout="mean")
        # Rounding of float32 in sums of some hundred terms.
        np.testing.assert_allclose(f, exact, atol=1e-4 * float(abs(exact).max()))
        U, U_a = bpkr.order_parameters(weights)
        for name, matrix in {"U_1": U[0], "U_2": U[1], "U_a": U_a}.items():
            np.testing.assert_allclose(found[name][r], matrix, rtol=1e-12)


def test_networks_learn_from_one_part_of_the_characters_and_validate_on_another(
    work, data
):
    parts = images.split(images.omniglot(data, size=8), "small")
    given = work.patches
    for part in ("train", "validation"):
        expected = one_shot_task.patches(getattr(parts, part).images, work.setting)
        np.testing.assert_array_equal(getattr(given, part), expected)
    assert len({images.digest(part) for part in parts}) == 3


def test_every_stream_of_a_seed_begins_with_a_key_of_its_own(data, monkeypatch):
    """Purposes and networks, and points of other studies, numbered from zero."""
    given, key_for = {}, rng.key_for

    def noted(key, purpose, number):
        given[purpose, number] = key_for(key, purpose, number)
        return given[purpose, number]

    monkeypatch.setattr(rng, "key_for", noted)
    empty = lambda *given: object.__new__(StochasticTrainer)
    monkeypatch.setattr(one_shot_networks, "StochasticTrainer", empty)
    work = studies.work(studies.parse(SMALL))
    trained = TrainedNetworks({}, work.setting, "small", False, (), [], [])
    table = TrainedTask(
        name="one-shot", trained="", n_train=4, n_test=4, elsewhere=["mnist"]
    )
    source = examples.source(table, trained)
    work._trainer
    for number in (0, 1):
        work.start(number), work.tasks(number), work.tests(number)
        given |= {
            (purpose, number): key_for(jax.random.key(0), purpose, number)
            for purpose in (EXACT_LAW, RANDOM_ORDERS)
        }
        before = len(given)
        source.drawn(number)
        assert len(given) == before + 1  # the test sets are those of the training
    assert len(given) == 1 + 2 * (2 + 3 + 2 + 1)
    streams = [*given.values(), jax.random.key(0)]
    streams += [jax.random.fold_in(key, i) for key in streams for i in range(20)]
    streams += [jax.random.fold_in(key, 0) for key in streams[len(given) + 1 :]]
    values = {tuple(jax.random.key_data(key).tolist()) for key in streams}
    assert len(values) == len(streams)


def test_training_characters_alone_are_turned(data, work):
    """Of the training and of the theory of its heads; the file says so."""
    made = studies.work(studies.parse(changed("task", turned=True)))
    upright, turned = work.images.split, made.images.split
    assert len(turned.train.names) == 8 * len(upright.train.names)
    for one, other in zip(upright[1:], turned[1:], strict=True):
        np.testing.assert_array_equal(one.images, other.images)
    described = json.loads(made.description())
    assert described["turned"] is True
    assert described["characters"] == len(upright.train.names)
    assert "turned" not in json.loads(work.description())
    trained = TrainedNetworks({}, work.setting, "small", True, (), [], [])
    table = TrainedTask(name="one-shot", trained="", elsewhere=["mnist"])
    drawn_from = examples.source(table, trained).images.split.train
    assert drawn_from.names == turned.train.names


def test_a_preset_fills_what_is_left_out_and_every_value_can_be_given():
    tree = {"kind": "training", "preset": "paper", "task": {"name": "one-shot"}}
    study = studies.parse(tree)
    assert isinstance(study, OneShotTrainingStudy)
    assert study.network.model_dump() == ONE_SHOT_PRESETS["paper"]["network"]
    assert (study.task.split, study.task.channels) == ("vinyals", 3)
    assert (study.run.steps, study.run.learning_rate) == (41_240, 3e-4)
    tree |= {"run": {"steps": 100}, "network": {"heads": [3, 3, 3]}}
    study = studies.parse(tree)
    assert (study.run.steps, study.network.heads) == (100, [3, 3, 3])
    # The stored text of all values is the same study.
    assert studies.parse(study.model_dump(exclude_none=True)) == study


def test_the_guide_shows_the_values_of_the_laptop_preset():
    guide = pathlib.Path(__file__).parents[3] / "docs" / "howto" / "images.md"
    blocks = re.findall(r"```toml\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if 'preset = "laptop"' in block)
    shown = studies.parse(tomllib.loads(block)).model_dump()
    tree = {"kind": "training", "preset": "laptop", "task": {"name": "one-shot"}}
    expected = studies.parse(tree).model_dump()
    # Written with 8 digits.
    assert shown["run"].pop("gain") == pytest.approx(expected["run"].pop("gain"), 1e-7)
    assert shown == expected
    written = tomllib.loads(block)
    for table in ("task", "network", "run"):
        left = expected[table].keys() - written[table].keys()
        assert left <= {"patience"}  # has no value of its own


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (changed("task", split="large"), "task.split: should be 'small' or 'vinyals'"),
        (changed("task", elsewhere=["mnist", "mnist"]), "elsewhere: names must be dis"),
        (
            changed("task", n_tests=1),
            "n_tests: unknown key .did you mean",
        ),
        (changed("task", n_test=41), "task.n_test: should be a multiple of 2"),
        (changed("run", block=25), "run.block: should be a multiple of 10"),
        (changed("run", precision="half"), "run.precision: should be 'auto', 'single'"),
        (SMALL | {"preset": "cluster"}, "preset: should be 'laptop' or 'paper'"),
        (SMALL | {"network": 3}, "network: should be a table"),
        (
            changed("task", name="two-shot"),
            "should be 'hidden-markov', 'one-shot' or 'arrays'",
        ),
    ],
)
def test_mistakes_are_named_with_what_is_allowed(tree, message):
    with pytest.raises(ValueError, match=message):
        studies.parse(tree)


def test_images_that_do_not_fit_are_named_before_anything_runs(data):
    with pytest.raises(ValueError, match="patch must divide image_size; got 3 and 8"):
        studies.work(studies.parse(changed("task", patch=3)))


def test_precision_follows_the_device(data, monkeypatch):
    """Several devices that are parts of a CPU are a CPU."""
    choices = studies.work(studies.parse(SMALL)).minibatches
    for platform, count, precision in (
        ("cpu", 1, "single"),
        ("cpu", 2, "single"),
        ("gpu", 1, "mixed"),
    ):
        devices = count * [types.SimpleNamespace(platform=platform)]
        monkeypatch.setattr(f"{precision_here.__module__}.devices", lambda d=devices: d)
        assert precision_here(choices) == precision
