"""`statmech-attn score`: heads of a file of arrays, with errors, file and figures."""

import warnings

import numpy as np
import pytest

from statmech_attn import storage
from statmech_attn.tasks import arrays


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return arrays.write_example(tmp_path_factory.mktemp("scored"))


@pytest.mark.slow
def test_a_file_is_scored_stored_drawn_and_described(call, file, tmp_path):
    output = tmp_path / "scores.h5"
    words = (
        "score",
        file,
        "-o",
        output,
        "--resamples",
        3,
        "--heads",
        "decisive, 2.1,2.2",
    )
    said = call(*words, "--figures", tmp_path / "figures").stdout
    assert "decisive" in said and "content" not in said and f"wrote {output}" in said
    dataset = storage.read(output)
    assert dataset.attention_head.values.tolist() == ["decisive", "chosen", "noise"]
    assert dataset.head_score_resampled.shape == (3, 3)
    drawn = {path.name for path in (tmp_path / "figures").glob("*.png")}
    assert drawn == {"head_scores.png", "heads_together.png"}
    assert "head scores" in call("info", output).stdout
    assert said.splitlines()[1].split() == ["head", "score", "floor"]
    assert "an example is predicted from all others with mean squared error" in said


@pytest.mark.parametrize(
    "options, code, words",
    (
        (["--heads", "two"], 1, "arrays.npz: there is no head two; the layers have"),
        (["--skip", "one"], 2, "--skip takes numbers with commas"),
        (["--heads", "3.1"], 1, "arrays.npz: there is no head 3.1"),
        (["--queries", "rows"], 1, 'pass queries="columns"'),
        (["--queries", "both"], 1, 'queries must be "columns" or "rows"'),
        (["--memory", "1e-6"], 1, "do not fit into 9.99e-07 GiB; 0 do: choose some"),
        (["--memory", "nan"], 2, "a finite number of GiB above 0; got nan"),
        (["--memory", "-1"], 2, "a finite number of GiB above 0; got -1"),
        (["--temperature", "-1"], 1, "temperature must be at least 0"),
    ),
)
def test_a_wrong_option_is_one_line(call, file, tmp_path, options, code, words):
    result = call("score", file, "-o", tmp_path / "scores.h5", *options, code=code)
    said = " ".join(result.stderr.replace("│", " ").split())
    assert words in said and not list(tmp_path.iterdir())


def test_the_file_itself_is_not_overwritten(call, file):
    said = call("score", file, "-o", file, "--overwrite", code=1).stderr
    assert "arrays.npz" in said and arrays.load(file).heads == (2, 2)


@pytest.fixture
def digits(file, tmp_path):
    """A file with spaces and brackets in its name, and with numbers of classes."""
    with np.load(file) as stored:
        changed: dict = dict(stored)
    changed["Y"] = np.where(changed["Y"] > 0, 8, 3)
    path = tmp_path / "my [own] heads.npz"
    np.savez(path, **changed)
    return path


@pytest.mark.slow
def test_without_an_output_all_is_written_beside_the_file(call, digits):
    words = (
        "score",
        digits,
        "--resamples",
        2,
        "--heads",
        "1.2,2.1",
        "--classes",
    )
    said = call(*words).stdout
    output, folder = (
        digits.with_name(f"my [own] heads-scores{x}") for x in (".h5", "-figures")
    )
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        f"{name}.{form}"
        for name in ("head_scores", "heads_together")
        for form in ("pdf", "png")
    ]
    for path in (output, *folder.iterdir()):
        assert f"wrote {path}" in said.replace("\n", " ")
    before = output.read_bytes()
    said = call(*words, "--temperature", 0.2, code=1).stderr
    assert "exists and holds another study" in said and output.read_bytes() == before
    call(*words, "--temperature", 0.2, "--overwrite")
    assert output.read_bytes() != before


@pytest.mark.slow
def test_what_is_odd_about_a_file_is_said_in_one_line(call, file, tmp_path):
    with np.load(file) as stored:
        changed = dict(stored)
    changed["attention_2"] = 0.997 * changed["attention_2"]
    changed["Y"] = np.ones(60)
    np.savez(tmp_path / "odd.npz", **changed)
    words = ("--resamples", 0, "-o", tmp_path / "scores.h5")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        said = call("score", tmp_path / "odd.npz", *words).stderr.splitlines()
    assert said == [
        "statmech-attn: attention: in layer 2 the weights of a query add up to one "
        "within 0.003 only, as numbers of 16 bits do; they were divided by their sum.",
        "statmech-attn: all labels are the same, so there is nothing to be told from "
        "the inputs, and no head that tells it.",
    ]


def test_labels_that_are_classes_are_refused_with_the_option(call, digits):
    said = call("score", digits, code=1).stderr
    assert "own] heads.npz: Y holds whole numbers as of 2 classes, 3, 8;" in said
    assert "--classes makes -1 and 1 of them." in said
    assert [path.name for path in digits.parent.iterdir()] == [digits.name]


def test_columns_are_no_numbers_of_classes(call, file, tmp_path):
    with np.load(file) as stored:
        changed = dict(stored) | {"Y": np.eye(3)[np.arange(60) % 3]}
    np.savez(tmp_path / "columns.npz", **changed)
    said = call("score", tmp_path / "columns.npz", "--classes", code=1).stderr
    assert "got (60, 3): one-hot columns are learned as they are" in said


def test_a_file_that_is_not_there_is_one_line(call, tmp_path):
    said = call("score", tmp_path / "none.npz", code=1).stderr
    assert "none.npz: no such file." in said
    said = call("score", tmp_path, code=1).stderr
    assert "Is a directory." in said and not list(tmp_path.iterdir())
