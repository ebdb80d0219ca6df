"""Scripts of docs/users.md and docs/transformer_heads.md run from an empty folder."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from statmech_attn import bpkr, storage


ROOT = pathlib.Path(__file__).resolve().parents[1]
ANALYSIS = ROOT / "analysis"

pytestmark = pytest.mark.slow


@pytest.fixture
def call(tmp_path):
    """Run a program in an empty folder, with the package and its command at hand."""

    def call(*words, data="") -> str:
        search = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": search}
        environment |= {"STATMECH_ATTN_DATA": str(data)} if data else {}
        command = tmp_path / "statmech-attn"
        command.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -m statmech_attn.cli "$@"\n'
        )
        command.chmod(0o755)
        done = subprocess.run(
            list(map(str, words)),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_a_map_of_ones_own_is_drawn_in_ten_lines(call, tmp_path):
    script = ANALYSIS / "own_map.py"
    lines = [line for line in script.read_text().splitlines() if line.strip()]
    assert len(lines) - 1 <= 10  # without the docstring
    call(sys.executable, script)
    assert (tmp_path / "results/own_map.pdf").stat().st_size > 10_000
    scan = storage.read(tmp_path / "results/own_map.h5")
    assert int(scan.period.sel(r=3.2, method="nearest")) == 2


def test_the_head_that_knows_the_task_has_the_largest_score(call):
    *_, first, second, third, fourth = call(
        sys.executable, ANALYSIS / "own_heads.py"
    ).splitlines()
    scores = [float(line.split()[-1]) for line in (first, second, third, fourth)]
    assert second == "layer 1, head 2: score 1.000" and sorted(scores)[-2] < 0.5


def test_a_million_points_are_planned_and_a_toy_is_shared_and_merged(call, tmp_path):
    said = call("sh", ANALYSIS / "cluster_plane.sh", "work")
    assert "the study is valid" in said and "1000000 points" in said
    assert "#SBATCH --array=0-99" in (tmp_path / "work/plane.h5.sh").read_text()
    status, _ = json.JSONDecoder().raw_decode(said, said.index("{\n"))
    assert status["state"] == "finished"
    rows = (tmp_path / "work/toy.csv").read_text().splitlines()
    assert sum(not row.startswith("#") for row in rows) == 1 + 6 * 4
    assert (tmp_path / "work/phase_diagram.pdf").exists()
    logs = [path.read_text() for path in (tmp_path / "work").glob("worker-*.log")]
    assert len(logs) == 3 and any("merging the chunks" in text for text in logs)


def test_scores_of_transformers_stand_beside_their_ablation(call, tmp_path, image_data):
    """On a few examples; files and columns, no numbers."""
    script = ANALYSIS / "transformer_heads.py"
    said = call(sys.executable, script, "heads", "--quick", data=image_data)
    scores = pd.read_csv(tmp_path / "heads/scores.csv")
    assert len(scores) == 2 * 2 * 8 and np.isfinite(scores["loss gained"]).all()
    assert (scores.groupby(["task", "training"])["weights"].nunique() == 8).all()
    summary = pd.read_csv(tmp_path / "heads/summary.csv")
    assert len(summary) == 2 * 8 and "gradient" in said
    assert (tmp_path / "heads/transformer_heads.png").stat().st_size > 10_000
    words = ("score", "heads/digits_0.npz", "-o", "scores.h5", "--queries", "rows")
    said = call("statmech-attn", *words, "--skip", "1", "--resamples", "2")
    assert "skip 2" in said and "trained weights" in said


@pytest.mark.parametrize("lost", [0, 1])
def test_resamples_that_one_label_lacks_are_left_out_of_the_mean(monkeypatch, lost):
    """Rows of two labels are of the same examples, or only the first one is kept."""
    path = ANALYSIS / "transformer_heads.py"
    spec = importlib.util.spec_from_file_location("transformer_heads", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    rows = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])  # the skip, a head
    of_labels = iter(
        SimpleNamespace(
            score=label + rows[0],
            resampled=label + rows[1 + failed :],
            failed=failed,
            names=("skip 1", "1.1"),
        )
        for label, failed in ((0, 0), (2, lost))
    )
    monkeypatch.setattr(bpkr, "score", lambda *problem, **options: next(of_labels))
    draws = np.random.default_rng(0)
    x, labels = draws.normal(size=(3, 4, 5)), draws.normal(size=(3, 2))
    uniform = [np.full((1, 3, 5, 5), 0.2)]
    task = SimpleNamespace(readout="mean")
    found = script.theory(x, uniform, labels, task, None, resamples=2)
    expected = [[2.0]] if lost else [[2.0], [4.0], [6.0]]
    np.testing.assert_array_equal(found, expected)
