"""`run --dry-run`, and what `status` says from before the first chunk to the end."""

import json
import os

import pytest

from statmech_attn import scan, studies
from statmech_attn.scan import jobs
from statmech_attn.scan.chunks.claims import Claims


STUDY = """
kind = "monte-carlo"
[parameters]
beta = [0.5, 1.4]
[run]
start = "token"
n_spins = [300, 900]
runs = 20
steps = 5
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def stop_after(monkeypatch):
    """Makes a run end after so many chunks, as a kill would."""

    def stop_after(count: int) -> None:
        write = scan.folder.Folder.write

        def limited(folder, stored, writer):
            if len(folder.listing()[0]) == count:
                raise KeyboardInterrupt
            write(folder, stored, writer)

        monkeypatch.setattr(scan.folder.Folder, "write", limited)

    return stop_after


def asked(call, path) -> dict:
    return json.loads(call("status", path, "--json").stdout)


@pytest.mark.slow
def test_a_dry_run_forecasts_and_writes_nothing(call, study, tmp_path):
    said = call("run", study, "--dry-run", "-o", tmp_path / "out.h5").stdout
    assert "the study is valid: monte-carlo" in said
    assert "4 points" in said and "of memory" in said and "not begun" in said
    assert os.listdir(tmp_path) == ["study.toml"]
    assert "4 points" in call("run", study, "--dry-run").stdout


def test_a_run_needs_an_output(call, study):
    assert "--output" in call("run", study, code=2).stderr


def test_a_dry_run_refuses_what_a_run_would(call, study):
    said = call("run", study, "--dry-run", "--set", "run.runs=1", code=1).stderr
    assert "run.runs" in said
    said = call("run", study, "--dry-run", "-o", study, code=1).stderr
    assert str(study) in said


@pytest.mark.slow
def test_status_answers_before_during_and_after_a_run(
    call, study, tmp_path, stop_after, monkeypatch
):
    out = tmp_path / "out.h5"
    assert asked(call, out)["state"] == "not begun"
    with monkeypatch.context() as patch:
        patch.setattr(scan.folder.Folder, "write", scan.folder.Folder.write)
        stop_after(3)
        call("run", study, "-o", out, "--chunk", 1, "--workers", 1, code=130)
    stopped = asked(call, out)
    assert stopped["state"] == "stopped" and stopped["chunks_known"] == 4
    assert stopped["chunks_done"] == stopped["points_done"] == 3
    assert asked(call, scan.jobs.chunks_of(out)) == stopped
    assert "the same run command continues" in call("status", out).stdout
    with Claims(tmp_path / "out.h5.chunks"):
        assert asked(call, out)["state"] == "running"
    monkeypatch.undo()
    call("run", study, "-o", out)
    finished = asked(call, out)
    assert finished["state"] == "finished" and finished["chunks_known"] is None
    assert 0 < finished["wall_seconds"] <= finished["worker_seconds"]
    assert (
        "holds the result of a study of kind monte-carlo" in call("status", out).stdout
    )


def test_a_folder_whose_chunks_are_all_there_is_computed(call, study, tmp_path):
    out, kept = tmp_path / "out.h5", tmp_path / "kept.h5.chunks"
    checked, text = studies.load(study)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "merge", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            studies.compute(checked, text, out, engine=scan.engines.local.engine(1))
    os.rename(f"{out}.chunks", kept)
    assert asked(call, kept)["state"] == "computed"
    assert "statmech-attn merge" in call("status", kept).stdout


def test_status_of_a_file_of_something_else_is_refused(call, study):
    assert str(study) in call("status", study, code=1).stderr
