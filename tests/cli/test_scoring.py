"""`statmech-attn score`: heads of a file of arrays, with errors, file and figures."""

import json

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
    assert "head scores" in call("info", output, "--check").stdout
    again = json.loads(call(*words, "--json").stdout)
    assert again["heads"] == ["decisive", "chosen", "noise"]
    np.testing.assert_allclose(again["score"], dataset.head_score, rtol=1e-12)
    np.testing.assert_allclose(again["stderr"], dataset.head_score_stderr, rtol=1e-12)


@pytest.mark.parametrize(
    "options, code, words",
    (
        (["--heads", "two"], 1, "arrays.npz: there is no head two; the layers have"),
        (["--skip", "one"], 2, "--skip takes numbers with commas"),
        (["--heads", "3.1"], 1, "arrays.npz: there is no head 3.1"),
        (["--queries", "rows"], 1, 'pass queries="columns"'),
        (["--queries", "both"], 1, 'queries must be "columns" or "rows"'),
        (["--memory", "0.0001"], 1, "do not fit into 0.0001 GiB; 0 do: choose some"),
        (["--temperature", "-1"], 1, "temperature must be finite"),
    ),
)
def test_a_wrong_option_is_one_line(call, file, tmp_path, options, code, words):
    result = call("score", file, "-o", tmp_path / "scores.h5", *options, code=code)
    said = " ".join(result.stderr.replace("│", " ").split())
    assert words in said and not list(tmp_path.iterdir())


def test_the_file_itself_is_not_overwritten(call, file):
    said = call("score", file, "-o", file, "--overwrite", code=1).stderr
    assert "arrays.npz" in said and arrays.load(file).heads == (2, 2)
