"""The command line as a user meets it: good runs, and one line for what is wrong."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage


TRAJECTORY = """
kind = "trajectory"
[parameters]
beta = [0.5, 1.4]
[run]
start = "token"
steps = 5
noise = true
"""
BIFURCATION = """
kind = "bifurcation"
[network]
patterns = "poclopez-pe2"
[parameters]
beta = { start = 0.5, stop = 2.9, num = 5 }
[run]
transient = 500
steps = 1000
exponents = 2
max_doublings = 1
section_samples = 16
strobe_samples = 8
"""
MONTE_CARLO = """
kind = "monte-carlo"
[parameters]
beta = [0.5, 1.4]
[run]
start = "token"
n_spins = [3000, 30000]
runs = 20
steps = 5
seed = 3
"""


@pytest.fixture(scope="module")
def folder(call, logistic_study, tmp_path_factory):
    """Studies, and the file of that of a map, made by the command line."""
    folder = tmp_path_factory.mktemp("cli")
    logistic_study.write(folder)
    call("run", folder / "logistic.toml", "-o", folder / "logistic.h5")
    studies = {"theory": TRAJECTORY, "simulation": MONTE_CARLO, "scan": BIFURCATION}
    for name, text in studies.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def compared(call, folder):
    """The folder, with files of theory and simulation of a network."""
    for name in ("theory", "simulation"):
        call("run", folder / f"{name}.toml", "-o", folder / f"{name}.h5")
    return folder


@pytest.fixture(scope="module")
def scan(call, folder):
    """A scan of a network."""
    call("run", folder / "scan.toml", "-o", folder / "scan.h5")
    return folder / "scan.h5"


def opened(path):
    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        return dataset.load()


@pytest.mark.slow
def test_the_compiler_is_said_before_and_after_a_run(call, folder, scan):
    pytest.importorskip("llvmlite", exc_type=ImportError)
    why = "(native programs can be made of this system)"
    assert (
        f"compiler: llvm {why}" in call("run", folder / "scan.toml", "--dry-run").stdout
    )
    assert f"llvm {why}" in call("info", scan).stdout
    by_name = call(
        "run", folder / "scan.toml", "--dry-run", "--set", "run.compiler=xla"
    )
    assert "compiler: xla (named)" in by_name.stdout


def test_a_scan_without_exponents_holds_the_sections_only(call, folder):
    out = folder / "sections.h5"
    call("run", folder / "logistic.toml", "-o", out, "--set", "run.exponents=0")
    d = opened(out)
    assert "phase" not in d and np.isfinite(d.strobe.values).all()
    call("figure", out, "-o", folder / "sections")


@pytest.mark.slow
def test_compare_prints_and_stores_a_verdict_for_every_beta(
    call, compared, single_precision
):
    out = compared / "agreement.h5"
    result = call(
        "compare", compared / "theory.h5", compared / "simulation.h5", "-o", out
    )
    assert "theory against simulation" in result.output
    d = opened(out)
    assert d.verdict.dims == ("beta",) and d.attrs["dtype"] == "float64"
    names = d.verdict.attrs["flag_meanings"].split()
    assert "differs" not in [names[i] for i in d.verdict.values]


def test_info_says_what_a_file_is_and_found(call, folder):
    result = call("info", folder / "logistic.h5")
    for words in ("bifurcation", "phases", "periodic", "float64"):
        assert words in result.output
    study = (folder / "logistic.toml").read_text()
    assert "# A scan" in study and "# A scan" not in result.output


def refused(call, *words):
    """Exit code 1 and exactly one line on stderr, which is returned."""
    result = call(*words, code=1)
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("statmech-attn: "), result.stderr
    assert "Traceback" not in result.output
    return lines[0]


def test_missing_and_wrong_files_are_named(call, folder, tmp_path):
    out = tmp_path / "out.h5"
    assert "absent.toml: no such file" in refused(
        call, "run", tmp_path / "absent.toml", "-o", out
    )
    for content in (b"", b"kind = ", b"\xff\xfe\x00"):
        study = tmp_path / "broken.toml"
        study.write_bytes(content)
        assert "broken.toml" in refused(call, "run", study, "-o", out)
    (tmp_path / "text.h5").write_text("not HDF5")
    assert "text.h5" in refused(call, "info", tmp_path / "text.h5")
    assert "absent.h5" in refused(
        call, "figure", tmp_path / "absent.h5", "-o", tmp_path
    )
    assert not out.exists()


def test_an_unwritable_place_is_refused_before_the_run(call, folder, tmp_path):
    (tmp_path / "file").write_text("in the way")
    line = refused(
        call, "run", folder / "theory.toml", "-o", tmp_path / "file" / "x.h5"
    )
    assert "cannot be written" in line


LISTENING = """
import signal
from statmech_attn.cli import app
signal.signal(signal.SIGINT, signal.default_int_handler)  # also below nohup
app()
"""


@pytest.mark.slow
def test_ctrl_c_twice_leaves_at_once(folder, tmp_path):
    """A chunk that takes long: the first SIGINT waits for it, the second does not."""
    out = tmp_path / "long.h5"
    words = [
        "run",
        folder / "scan.toml",
        "-o",
        out,
        "--set",
        "run.transient=1000000000",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING, *map(str, words)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    with process:
        for line in process.stderr:
            if "points" in line:
                break
        process.send_signal(signal.SIGINT)
        for line in process.stderr:
            if "Ctrl-C again" in line:
                break
        process.send_signal(signal.SIGINT)
        try:
            _, rest = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "finished chunks are kept" in rest
    assert not out.exists() and not list(tmp_path.glob(".long*"))


def test_stored_provenance_repeats_the_study(folder, logistic_study):
    found = storage.info(folder / "logistic.h5")
    assert found.kind == "bifurcation"
    assert found.study.strip() == logistic_study.STUDY.strip()
    assert found.dtype == "float64"
