"""The demonstration from an empty folder: files, phases and agreement."""

import pathlib
import subprocess
import sys

import pytest
import xarray as xr


pytestmark = pytest.mark.slow


ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_demo_goes_from_study_to_figure(tmp_path):
    command = [sys.executable, ROOT / "analysis" / "demo.py", "--smoke", "--out", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    files = {path.name for path in tmp_path.iterdir()}
    assert {"scan.h5", "theory.h5", "simulation.h5", "agreement.h5"} <= files
    assert {"bifurcation.png", "agreement.png"} <= files
    assert "theory against simulation" in done.stdout
    *_, phases, agreement, _, look, then = done.stdout.splitlines()
    assert phases.startswith("phases at 16 values of beta: fixed ")
    assert agreement.startswith("theory beside 50 networks of N = 3000 to 9000 spins")
    assert look.startswith("look at bifurcation.png")
    assert then.endswith("statmech-attn explore scan.h5")
    with xr.open_dataset(tmp_path / "scan.h5", engine="h5netcdf") as scan:
        # Fixed below the first instability at beta = 1.2434, cycles at the end.
        assert (scan.phase.sel(beta=slice(0, 1.2)) == 0).all()
        assert scan.phase.values[-1] == 1


def test_a_failing_step_stops_the_demo(tmp_path):
    (tmp_path / "out").write_text("in the way")
    command = [sys.executable, ROOT / "analysis" / "demo.py", "--smoke", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr and "Traceback" not in done.stderr
