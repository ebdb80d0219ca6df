"""What a command writes replaces what it wrote before, and nothing else, at once."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage
from statmech_attn.cli.terminal import progress
from statmech_attn.cli.terminal.screen import Terminal


RESULTS = pathlib.Path(__file__).resolve().parents[2] / "paper_figs" / "results"
SCAN = RESULTS / "pe5_locking-laptop.h5"
LABELS = {"long_name": "x", "units": "1", "symbol": "x"}
STUDY = 'kind = "trajectory"\n[parameters]\nbeta = 0.5\n[run]\nsteps = 5\n'


@pytest.fixture
def result(tmp_path):
    path = tmp_path / "r.h5"
    rows = np.random.default_rng(0).normal(size=9000)
    variables = {name: ("x", rows, LABELS) for name in "ab"}
    storage.write(path, xr.Dataset(variables), study='kind = "test"')
    return path


@pytest.fixture(params=("study", "result", "text", "folder"))
def other(request, tmp_path):
    """Something that no export is."""
    path = tmp_path / "other"
    if request.param == "folder":
        path.mkdir()
    elif request.param == "result":
        dataset = xr.Dataset({"a": ("x", [1.0], LABELS)})
        storage.write(path, dataset, study='kind = "other"')
    else:
        path.write_text(STUDY if request.param == "study" else "Dear all,\nthis\n")
    return path


def content(path):
    return path.read_bytes() if path.is_file() else sorted(path.iterdir())


@pytest.mark.parametrize("form", ("csv", "json"))
def test_an_export_replaces_exports_only(call, result, other, form):
    before = content(other)
    refused = call("export", result, f"--{form}", other, "--overwrite", code=1)
    assert str(other) in refused.stderr and content(other) == before


def test_a_log_is_appended_to_logs_only(call, other, tmp_path):
    study, before = tmp_path / "s.toml", content(other)
    study.write_text(STUDY)
    output = tmp_path / "o.h5"
    refused = call("run", study, "-o", output, "--log-file", other, code=1)
    assert str(other) in refused.stderr and content(other) == before
    same = call("run", study, "-o", output, "--log-file", output, code=1)
    assert "is the output" in same.stderr and not output.exists()


def test_two_exports_need_two_places(call, result, tmp_path):
    refused = call(
        "export", result, "--csv", tmp_path / "x", "--json", tmp_path / "x", code=1
    )
    assert "is the place for csv and json" in refused.stderr
    assert not (tmp_path / "x").exists()


LIMITED = """
import resource, signal, sys
from statmech_attn.cli import app
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
app(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ("csv", "json", "html"))
def test_a_full_disk_keeps_the_old_export(call, result, tmp_path, form):
    path = tmp_path / f"x.{form}"
    words = ["export", str(result), f"--{form}", str(path)]
    if form == "html":
        words = ["explore", str(SCAN), "--export", str(path)]
    call(*words)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    command = [sys.executable, "-c", LIMITED, *words, "--overwrite"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and str(path) in done.stderr
    assert "cannot be written" in done.stderr and done.stderr.count("\n") == 1
    after = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert after == before


@pytest.mark.parametrize("path", ("", "/", ".", ".."))
@pytest.mark.parametrize(
    "words", (["status"], ["repair"], ["merge", "-o", "o.h5"], ["score"])
)
def test_names_of_no_run_are_refused(call, path, words):
    refused = call(*words, path, code=1)
    assert refused.stderr.count("\n") == 1


def test_an_output_without_a_name_is_refused(call, tmp_path):
    study = tmp_path / "s.toml"
    study.write_text(STUDY)
    for command in ("run", "slurm"):
        for path in ("", "/"):
            refused = call(command, study, "-o", path, code=1)
            assert "is no name of a file" in refused.stderr
    many = ["slurm", study, "-o", tmp_path / "o.h5", "--tasks", 99999999999]
    assert "tasks must be from 1 to" in call(*many, code=1).stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_run_outlives_the_disk_of_its_log(tmp_path, capsys):
    console = Terminal(stderr=True)
    with open("/dev/full", "ab", buffering=0) as file:
        log = progress._logger(file, tmp_path / "run.log", console)
        log("first")
        log("second")
    said = capsys.readouterr().err
    assert "run.log: cannot be written: No space left on device" in said
    assert said.count("The run goes on without it.") == 1
