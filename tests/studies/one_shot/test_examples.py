"""Theory on the heads of a trained network: what the studies hold, on made images."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr, storage, studies
from statmech_attn.batches import rng
from statmech_attn.bpkr.grids import chosen_temperature as choice
from statmech_attn.studies.learning import tasks
from statmech_attn.studies.one_shot import examples as one_shot_studies
from statmech_attn.studies.one_shot.examples import CHOICES
from statmech_attn.studies.one_shot.trained import load_trained
from statmech_attn.tasks import images, one_shot
from statmech_attn.training import attention_heads, DIVERGED, VANISHED


SETTING = one_shot.Setting(image_size=16, patch=8, channels=1)
WIDE = 1e7
SETS = ["omniglot", "omniglot-validation", "fashion-mnist", "mnist"]


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory, made_images):
    """Made images, found as the user's would be."""
    folder = tmp_path_factory.mktemp("data")
    made_images.write_omniglot(folder, side=SETTING.image_size)
    made_images.write_digits(folder, side=SETTING.image_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATMECH_ATTN_DATA", str(folder))
        yield folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory, made_trained):
    """Five networks, of which the first and the last can be used."""
    path = tmp_path_factory.mktemp("trained") / "trained.h5"
    networks = [made_trained.drawn_network(SETTING, seed) for seed in range(5)]
    codes = [0, DIVERGED, VANISHED, -1, 0]
    return made_trained.write_trained(path, networks, SETTING, codes)


def tree(trained, /, **changes):
    return {
        "kind": "order-parameter",
        "task": {
            "name": "one-shot",
            "trained": str(trained),
            "n_train": 120,
            "n_test": 60,
        }
        | changes,
        "network": {"width": [5, WIDE], "temperature": [0.05, 0.3, 3.0]},
    }


@pytest.fixture(scope="module")
def work(trained):
    return studies.work(studies.parse(tree(trained)))


def test_a_choice_skips_temperatures_without_numbers():
    right = np.full((2, 2, 2, 5), np.nan)
    right[0, 1] = [[1, 0, 1, 0, 1], [1, 1, 1, 1, 0]]
    temperatures, answers = choice.choose(
        right, [0.1, 1.0], dict.fromkeys(SETS[:2], right.shape[-1]), CHOICES
    )
    np.testing.assert_array_equal(temperatures, [[1.0, 1.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(answers[0], [right[0, 1]] * 2)
    assert np.isnan(answers[1]).all()


@pytest.mark.slow
def test_every_set_shows_classes_of_its_own_part_only(data, trained, monkeypatch):
    """Tokens less positions and symbols are patches of images of the right classes."""
    drawn = drawn_sets(trained, monkeypatch)
    parts = images.split(images.omniglot(data, size=16), "small")
    shown = {"train": parts.train, SETS[0]: parts.test, SETS[1]: parts.validation}
    for name, classes in shown.items():
        x = (drawn.train if name == "train" else drawn.tests[name]).x
        assert largest_distance(x, classes) < 1e-5
        for other, others in shown.items():
            assert other == name or largest_distance(x, others) > 1


@pytest.mark.slow
def test_the_chosen_network_attends_tasks_of_its_own(trained, made_trained):
    """With its own heads, and not the tasks of the first one."""
    task = studies.parse(tree(trained, restart=4)).task
    made = tasks.learning(task)
    source = one_shot_studies.source(task, load_trained(trained))
    own, first = (
        [drawn.train, *drawn.tests.values()] for drawn in map(source.drawn, (4, 0))
    )
    heads = attention_heads(made_trained.drawn_network(SETTING, 4))
    attend = jax.jit(partial(bpkr.attentioned_inputs, readout="mean"))
    found = [made.data, *made.sets.values()]
    for (x, y), (xi, labels) in zip(own, found, strict=True):
        np.testing.assert_allclose(xi, attend(x, heads), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(labels, y)
    for one, other in zip(own, first, strict=True):
        assert not np.array_equal(one.x, other.x)


def drawn_sets(trained, monkeypatch):
    """The examples before the heads attend them."""
    kept = []
    draw = one_shot_studies.Source.drawn
    monkeypatch.setattr(
        one_shot_studies.Source, "drawn", lambda *a: kept.append(draw(*a)) or kept[0]
    )
    tasks.learning(studies.parse(tree(trained)).task)
    return kept[0]


def largest_distance(x, classes) -> float:
    """Of an image in an example to the closest image of some classes."""
    codes = one_shot.codes(SETTING)
    tokens = np.swapaxes(x, 1, 2) - codes.positions
    bank = one_shot.patches(classes.images, SETTING)
    bank = bank.reshape(-1, SETTING.patches * SETTING.n_inputs).astype(float)
    seen = np.asarray(tokens).reshape(len(x), 3, 1, SETTING.patches, -1)
    seen = (seen - codes.symbols[:, None]).reshape(-1, 3, bank.shape[1])
    squares = (seen**2).sum(-1)[..., None] + (bank**2).sum(-1) - 2 * seen @ bank.T
    return float(np.sqrt(np.maximum(squares, 0).min((1, 2)).max() / bank.shape[1]))


@pytest.mark.slow
def test_sets_are_the_same_whichever_others_are_drawn(work, trained):
    less = tasks.learning(studies.parse(tree(trained, elsewhere=["mnist"])).task)
    assert list(less.sets) == [*SETS[:2], "mnist"]
    for name in SETS[:2]:
        np.testing.assert_array_equal(less.sets[name][0], work.task.sets[name][0])
    np.testing.assert_array_equal(less.xi, work.task.xi)


def test_attentioned_inputs_do_not_depend_on_how_many_are_in_memory(
    made_trained, monkeypatch
):
    heads = attention_heads(made_trained.drawn_network(SETTING, 0))
    x = rng.normal(jax.random.key(1), (7, SETTING.n_inputs, 6))
    monkeypatch.setattr(one_shot_studies, "BATCH", 3)
    found = jax.jit(one_shot_studies.attentioned.__wrapped__)(x, heads)
    whole = bpkr.attentioned_inputs(x, heads, readout="mean")
    np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-12)
    assert float(jnp.abs(whole[..., 0] - whole[..., 3]).max()) > 0.01


def test_a_file_says_what_it_was_made_of(work, trained):
    study = studies.parse(tree(trained))
    (name,) = (name for name in study.inputs() if "/" not in name)
    assert name == "trained.h5" and len(study.inputs()[name]) == 64
    folders = {name.split("/")[0] for name in study.inputs() if "/" in name}
    assert folders == {"omniglot", "fashion_mnist", "mnist"}
    for part in ("images_sha256", "attention_sha256", '"split": "small"'):
        assert part in work.task.description
    moved = tree("../trained.h5")
    assert studies.parse(moved).beside(trained.parent / "x").inputs() == study.inputs()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"restart": 1}, r"no training 1 .* it diverged; choose one of \[0, 4\]"),
        ({"restart": 2}, r"no training 2 .* it vanished; choose one of \[0, 4\]"),
        ({"restart": 3}, r"no training 3 .* it was not computed; choose one"),
        ({"restart": 5}, r"no training 5 .* there is none; choose one of \[0, 4\]"),
        ({"n_test": 61}, "task.n_test: .*multiple of 2"),
        ({"n_train": 0}, "task.n_train: should be at least 2"),
        ({"elsewhere": ["mnist"] * 2}, "task.elsewhere: names must be distinct"),
        ({"elsewhere": ["cifar"]}, "task.elsewhere.*mnist"),
        ({"preset": "four-paths"}, "task.preset: unknown key"),
        ({"trained": "nowhere.h5"}, "nowhere.h5"),
    ],
)
def test_impossible_tasks_are_refused_in_one_line(trained, task, message):
    with pytest.raises((ValueError, OSError), match=message) as caught:
        tasks.learning(studies.parse(tree(trained, **task)).task)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_kind_is_no_training(tmp_path):
    study = studies.parse({"kind": "trajectory", "parameters": {"beta": 1.4}})
    path = tmp_path / "other.h5"
    found, named = studies.run(study), '{"name": "hidden-markov"}'
    storage.write(path, found, study='kind = "trajectory"\n')
    with pytest.raises(ValueError, match="need the training of one-shot networks"):
        tasks.learning(studies.parse(tree(path)).task)
    path = tmp_path / "another.h5"
    found.attrs |= {"kind": "training", "task": named}
    storage.write(path, found, study='kind = "training"\n')
    with pytest.raises(ValueError, match="'training' of task 'hidden-markov'"):
        studies.load_trained(path)
