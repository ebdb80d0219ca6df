"""`statmech-attn slurm`, where SLURM does not answer."""

import os
import re
import subprocess

import pytest


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "Jörg's scans"
    folder.mkdir()
    text = 'kind = "trajectory"\n\n[parameters]\nbeta = 1.3\n'
    (folder / "study.toml").write_text(text)
    return folder


@pytest.fixture
def command(call, folder, monkeypatch):
    """The command for the study in `folder`; further words are its options."""
    (folder / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    (folder / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    words = ("slurm", folder / "study.toml", "--output", folder / "scan.h5")
    return lambda *more, code=0: call(*words, *more, code=code)


def test_the_command_writes_a_script_and_says_how_to_submit_it(command, folder):
    printed = command("--tasks", 3, "--set", "run.steps=5").output
    assert printed.splitlines()[-1].startswith("sbatch '")
    file = folder / "scan.h5.sh"
    text = file.read_text()
    assert "#SBATCH --array=0-2\n" in text and "--set run.steps=5" in text
    assert subprocess.run(["bash", "-n", file]).returncode == 0
    assert (folder / "scan.h5.logs").is_dir()
    assert "or pass --overwrite" in command("--tasks", 4, code=1).stderr
    command("--tasks", 4, "--overwrite")
    assert "#SBATCH --array=0-3\n" in file.read_text()


def test_the_command_replaces_nothing_of_the_user(command, folder):
    (folder / "mine.sh").write_text("echo mine\n")
    for words, said in ((), "pass --overwrite"), (["--overwrite"], "is no script of"):
        refused = command("--script", folder / "mine.sh", *words, code=1)
        assert said in refused.stderr
    assert (folder / "mine.sh").read_text() == "echo mine\n"
    (folder / "scan.h5").touch()
    assert "is there already; name another output" in command(code=1).stderr


def test_the_command_checks_the_study_before_anything_is_submitted(command, folder):
    refused = command("--set", "run.stesp=5", code=1)
    assert "did you mean 'steps'" in refused.stderr
    assert not (folder / "scan.h5.sh").exists()


@pytest.mark.slow
def test_chunks_are_small_enough_for_all_tasks(command, folder):
    many = ("--set", "parameters.beta={start=1.1,stop=1.5,num=6400}", "--cpus", 2)
    assert "busy" not in command(*many, "--tasks", 20).output
    (line,) = re.findall(r"--chunk (\d+)", (folder / "scan.h5.sh").read_text())
    assert int(line) <= 6400 / 20 / 2
