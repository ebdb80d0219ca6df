"""The examples of docs/recipes.md, in every language that is installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage
from statmech_attn.bpkr.heads.scores import VARIABLES as SCORES
from statmech_attn.dynamics.diagrams import VARIABLES
from statmech_attn.labels import Variable, Variables


ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"```(\w+)\n(.*?)```", (ROOT / "docs/recipes.md").read_text(), re.DOTALL
)
PROGRAMS = {"r": "Rscript", "octave": "octave-cli", "julia": "julia", "sh": "sh"}
# What Octave, R and Julia say of a package of theirs that the example loads.
LACKS = re.compile(
    r"package \S+ is not installed|no package called|Package \S+ not found"
)
ENDINGS = {"python": "py", "r": "R", "octave": "m", "julia": "jl", "sh": "sh"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipes")
    table = Variables(VARIABLES, Variable("beta", "", "inverse temperature", "1", "β"))
    values = {
        "lyapunov": (("beta", "exponent"), [[0.25, -1.0], [-0.5, -np.inf]]),
        "phase": (("beta",), np.array([3, 1], np.int8)),
        "period": (("beta",), [0, 8]),
        "section": (("beta", "sample"), np.zeros((2, 99))),
    }
    coordinates = {"beta": [1.5, 2.0], "exponent": [1, 2]}
    dataset: xr.Dataset = table.labelled(values, coordinates)
    storage.write(path / "scan.h5", dataset, study='kind = "bifurcation"\n')
    heads = np.array(["1.1", "1.2", ""])
    over, words = "attention_head", SCORES.attributes
    scores = xr.Dataset(
        {"head_score": (over, [0.25, 1.0, 0.5], words("head_score"))},
        {over: (over, heads, words(over))},
    )
    storage.write(path / "scores.h5", scores, study="", kind="head-scores")
    return path


@pytest.mark.parametrize(
    ("language", "code"),
    [
        pytest.param(*block, marks=pytest.mark.slow if "setup()" in block[1] else ())
        for block in BLOCKS
    ],
)
def test_an_example_reads_the_file(language, code, folder):
    program = PROGRAMS.get(language, sys.executable if language == "python" else "")
    needed = code.split()[0] if language == "sh" else program
    if not shutil.which(needed):
        pytest.skip(f"{needed or language} is not installed")
    script = folder / f"example.{ENDINGS[language]}"
    script.write_text(code)
    done = subprocess.run(
        [program, str(script)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    if lacking := LACKS.search(done.stderr):
        pytest.skip(f"{program}: {lacking[0]}")
    assert done.returncode == 0, done.stderr
    assert "0.25" in done.stdout, "the largest exponent of the first point"
    if "attention_head" in code:
        assert "1.2" in done.stdout, "the name of the second head"
    if "flag_meanings" in code:
        assert "chaotic" in done.stdout, "the word of its code"


def test_a_table_has_a_row_for_every_point(folder):
    dataset = storage.read(folder / "scan.h5")
    table = storage.table(dataset)
    assert table.phase.tolist() == ["chaotic", "periodic"]
    assert list(table) == ["beta", "lyapunov_1", "lyapunov_2", "phase", "period"]
    assert len(dataset.to_dataframe()) == 2 * 2 * 99
    with pytest.raises(ValueError, match="section has 99 numbers for every point"):
        storage.table(dataset, "section")
    with pytest.raises(ValueError, match="no variable 'lambda'"):
        storage.table(dataset, "lambda")
