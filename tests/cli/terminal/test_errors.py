"""Whatever goes wrong is one line on stderr, and text is shown as text."""

import io
import os
import resource
import subprocess
import sys

import jax
import numpy as np
import psutil
import pytest
import xarray as xr
from rich.table import Table
from typer.testing import CliRunner

from statmech_attn import dmft, storage, studies
from statmech_attn.cli import app
from statmech_attn.cli.terminal.screen import Terminal
from statmech_attn.reporting import duration, line_of, moment, visible


STUDY = 'kind = "trajectory"\n[parameters]\nbeta = 0.5\n[run]\nsteps = 5\n'


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def line(result) -> str:
    (only,) = result.stderr.splitlines()
    assert only.startswith("statmech-attn: "), only
    return only


# --- exceptions ---


def not_foreseen():
    return np.zeros(2) + np.zeros(3)  # a ValueError of numpy


def a_name_that_is_none():
    return {}["phase"]


def test_an_error_about_input_is_its_line(call, monkeypatch):
    monkeypatch.setattr(
        studies.reference, "schema", lambda: dmft.parameters(-1.0, 1.0, 0.0)
    )
    assert line(call("schema", code=1)).endswith("beta must be at least 0; got -1.0.")


@pytest.mark.parametrize("unbuffered", ("", "1"))
@pytest.mark.parametrize(
    "words", (["schema"], ["score", "--help"], ["--help"], ["--version"], ["nothing"])
)
def test_a_reader_that_has_ended_is_no_error(words, unbuffered):
    """Standard output and error are a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "statmech_attn.cli", *words],
        stdout=writing,
        stderr=writing if words == ["nothing"] else subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )
    os.close(writing)
    assert done.returncode == 141 and not done.stderr


@pytest.mark.parametrize("broken", (not_foreseen, a_name_that_is_none))
def test_an_error_of_the_package_says_so(call, monkeypatch, broken):
    monkeypatch.setattr(studies.reference, "schema", broken)
    said = line(call("schema", code=70))
    assert "this is an error of statmech-attn, not of its input" in said
    assert "--debug" in said
    shown = call("--debug", "schema", code=70).stderr
    assert f"in {broken.__name__}" in shown and said in shown


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("Unable to allocate 32 GiB"), "not enough memory (Unable to"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
        (jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 1 GB"), "RESOURCE_EXHAUSTED"),
    ],
)
def test_a_fault_of_the_machine_is_none_of_the_package(call, monkeypatch, error, words):
    def full():
        raise error

    monkeypatch.setattr(studies.reference, "schema", full)
    assert words in line(call("schema", code=1))


@pytest.mark.parametrize("error", (AssertionError(), RuntimeError("no such backend")))
def test_a_platform_without_devices_is_named(call, study, monkeypatch, error):
    def none():
        raise error

    monkeypatch.setattr(jax, "devices", none)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    said = line(call("run", study, "-o", study.with_suffix(".h5"), code=1))
    assert "JAX_PLATFORMS=cuda" in said


def test_a_limit_of_addresses_under_which_compilations_crash_is_refused(
    call, study, monkeypatch
):
    left = psutil.Process().memory_info().vms + 2**30
    limits = lambda what: (left, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", limits)
    said = line(call("run", study, "-o", study.with_suffix(".h5"), code=1))
    assert "ulimit -v" in said and "at least" in said


# --- text ---


def test_control_characters_are_written_out():
    assert visible("a\x1b[31m\u202e\x85\udcff\n") == (
        "a\\x1b[31m\\u202e\\x85\\udcff\\n"
    )
    assert visible("Jörg β λ₁ ± 1\u00a0m") == "Jörg β λ₁ ± 1\u00a0m"


def test_times_and_errors_are_one_line():
    assert (duration(75), duration(7300)) == ("1 min 15 s", "2 h 2 min")
    assert moment("2026-11-27T14:06:58.129841+00:00") == "2026-11-27 14:06:58 UTC"
    said = line_of(ValueError("beta must be >= 0.\nMore of it"))
    assert said == "beta must be >= 0."


def test_tables_and_lines_show_markup_as_text():
    table = Table("[bold]column")
    table.add_row("[/b] :smile: \x1b[2J")
    terminal = Terminal(file=io.StringIO(), width=60)
    terminal.print(table)
    terminal.say("two\nlines [red]")
    said = terminal.file.getvalue()
    assert "[bold]column" in said and "[/b] :smile: \\x1b[2J" in said
    assert "two\\nlines [red]\n" in said


def test_an_encoding_without_greek_letters_ends_no_run(call, tmp_path):
    path = tmp_path / "λ.h5"
    study = tmp_path / "s.toml"
    study.write_text(STUDY)
    words = ["run", str(study), "-o", str(path)]
    result = CliRunner(charset="ascii").invoke(app, words)
    assert result.exit_code == 0 and "\\u03bb.h5" in result.output


# --- outputs ---


def test_an_output_that_is_the_study_is_refused(call, study):
    for words in (("-o", study), ("-o", study, "--overwrite")):
        assert "study.toml: " in line(call("run", study, *words, code=1))
        assert study.read_text() == STUDY


def test_an_output_that_is_compared_is_refused(call, tmp_path):
    theory = tmp_path / "theory.h5"
    labels = {"long_name": "x", "units": "1", "symbol": "x"}
    found = {"A": (("beta", "time", "pattern"), np.zeros((1, 2, 3)), labels)}
    storage.write(theory, xr.Dataset(found), study=STUDY)
    before = theory.read_bytes()
    words = (theory, theory, "-o", theory, "--overwrite")
    for command in ("compare", "hysteresis"):
        said = line(call(command, *words, code=1))
        assert "is read to make this result" in said
    assert theory.read_bytes() == before


def test_studies_name_their_files(tmp_path):
    task = {"name": "one-shot", "trained": "nets.h5", "elsewhere": []}
    network = {"width": 10, "temperature": 0.1}
    saddle = {"kind": "order-parameter", "task": task, "network": network}
    orbits = {"kind": "trajectory", "parameters": {"beta": 1.0}}
    patterns = {"network": {"patterns": "p.json"}}
    assert tmp_path / "nets.h5" in studies.parse(saddle).beside(tmp_path).files()
    assert studies.parse(orbits).files() == []
    named = studies.parse(orbits | patterns).beside(tmp_path)
    assert named.files() == [tmp_path / "p.json"]


def test_a_path_that_is_not_utf_8_is_refused_before_computing(call, study):
    output = study.parent / os.fsdecode(b"\xff.h5")
    said = line(call("run", study, "-o", output, code=1))
    assert "paths must be UTF-8" in said and "\\udcff.h5" in said
    assert not list(study.parent.glob("*.chunks"))
