"""Keys of studies of one's own arrays, and what is refused before anything runs."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from statmech_attn import studies
from statmech_attn.cli import app
from statmech_attn.studies.learning.tasks import learning
from statmech_attn.tasks import arrays


KINDS = {  # with the keys that each needs for a computation of seconds
    "order-parameter": "corrections = false",
    "posterior": "draws = 20\nwarmup = 20\nchains = 2",
    "learning-curve": "examples = [10, 20]\ntraining_sets = 2",
    "model-selection": "",
    "pruning": "random_orders = 2",
    "training": "learning_rate = 0.01\nsteps = 20\nblock = 10",
}


@pytest.fixture
def loaded(tmp_path):
    """A study beside changed arrays of the example; the study as `load` gives it."""
    with np.load(arrays.write_example(tmp_path)) as file:
        example = dict(file)

    def loaded(change=None, task="", kind="order-parameter", file="arrays.npz"):
        np.savez(tmp_path / "arrays.npz", **(example | (change or {})))
        path = tmp_path / f"{kind}.toml"
        path.write_text(
            f'kind = "{kind}"\n[task]\nname = "arrays"\nfile = "{file}"\n{task}\n'
            f"[network]\nwidth = 20\ntemperature = 0.1\n[run]\n{KINDS[kind]}\n"
        )
        return studies.load(path)[0]

    return loaded


def test_heads_and_classes_are_those_of_the_library(loaded, tmp_path):
    digits = np.arange(60) % 4
    task = 'heads = ["decisive", "2.1"]\nclasses = [3, 1]'
    made = learning(loaded({"Y": digits, "Y_test": digits}, task).task)
    given = arrays.load(
        tmp_path / "arrays.npz", heads=["decisive", "2.1"], classes=[3, 1]
    )
    np.testing.assert_array_equal(made.xi, given.xi)
    np.testing.assert_array_equal(made.Y_test, given.Y_test)
    assert made.heads == (1, 1) and made.names == ("decisive", "chosen")


def test_the_file_says_how_many_examples_are_learned_and_tested(loaded):
    described = json.loads(learning(loaded().task).description)
    assert (described["n_train"], described["n_test"]) == (60, 60)


def test_another_choice_is_another_task(loaded):
    described = [
        learning(loaded(task=task).task).description
        for task in ("", 'heads = ["1.1"]', 'heads = ["1.2"]')
    ]
    assert len(set(described)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_refuses_before_it_computes(loaded, kind):
    """When its work is prepared, which `run --dry-run` does as well."""
    study = loaded({"x": np.ones((60, 6, 12))}, kind=kind)
    with pytest.raises(ValueError, match=r"arrays.npz: x must have shape \(P, N_0, T"):
        studies.work(study)


@pytest.mark.parametrize(
    "task, words",
    (
        ("classes = [3]", "classes must be two different numbers, such as"),
        ("classes = [3, 3]", "classes must be two different numbers, such as"),
        ("classes = [1, 2, 3]", "classes must be two different numbers, such as"),
        ("classes = [0.5, 1]", "task.classes.0: should be a whole number"),
        ("heads = []", "task.heads: should hold at least 1 value"),
        ("heads = [1.2]", "task.heads.0: should be a text in quotes"),
        ('queries = "row"', "task.queries: should be 'columns' or 'rows'"),
    ),
)
def test_a_key_of_the_task_is_refused_in_one_line(loaded, task, words):
    with pytest.raises(ValueError) as error:
        loaded(task=task)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_the_file_is_named_from_the_study_from_home_or_from_the_root(
    loaded, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    where = tmp_path / "home" / "my [own] data.npz"
    arrays.load(tmp_path / "arrays.npz")
    where.write_bytes((tmp_path / "arrays.npz").read_bytes())
    for file in ("home/my [own] data.npz", "~/my [own] data.npz", str(where)):
        (named,) = loaded(file=file).files()
        assert named == where
        assert learning(loaded(file=file).task).heads == (2, 2)


def test_a_dry_run_refuses_a_file_that_does_not_fit(loaded, tmp_path):
    """Without a word that the study is valid, and with no traceback."""
    loaded({"Y": np.arange(60) % 3})
    study = str(tmp_path / "order-parameter.toml")
    result = CliRunner().invoke(app, ["run", study, "--dry-run"])
    assert result.exit_code == 1 and "valid" not in result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("statmech-attn: arrays.npz: Y holds whole numbers as of 3")


def test_the_example_has_examples_enough_for_every_template(tmp_path):
    path = tmp_path / "study.toml"
    words = ["new", "learning-curve", "--task", "arrays", "--output", str(path)]
    assert not CliRunner().invoke(app, words).exit_code
    studies.work(studies.load(path)[0])
