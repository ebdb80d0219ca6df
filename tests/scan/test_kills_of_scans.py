"""Bifurcation scans whose threads compile narrow batches are killed and go on."""

import os
import random
import subprocess
import sys
import time

import pytest

from statmech_attn import storage


STUDY = """
kind = "bifurcation"
[parameters]
beta = { start = 1.2, stop = 2.9, num = 240 }
[run]
transient = 2000
steps = 4000
exponents = 2
max_doublings = 3
section_samples = 16
strobe_samples = 8
"""


def started(study, output, programs):
    words = ["run", study, "-o", output, "--chunk", "20", "--workers", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "statmech_attn.cli", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(programs)},
    )


def finished(process) -> None:
    said, _ = process.communicate()
    assert process.returncode == 0, said


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Study, programs, result and duration of a run that nothing happens to."""
    folder = tmp_path_factory.mktemp("scan")
    study, programs, output = (folder / n for n in ("s.toml", "programs", "whole.h5"))
    study.write_text(STUDY)
    begun = time.monotonic()
    finished(started(study, output, programs))
    return study, programs, storage.read(output), time.monotonic() - begun


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_scan_in_narrow_batches_goes_on_after_every_kill(undisturbed, tmp_path, seed):
    """Two threads, chunks of 20 points: no run ends with an error, no bit changes."""
    study, programs, whole, duration = undisturbed
    moments, output = random.Random(seed), tmp_path / "out.h5"
    for _ in range(3):
        process = started(study, output, programs)
        try:
            process.wait(moments.uniform(0, duration))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        else:
            finished(process)
        finished(started(study, output, programs))
        assert storage.read(output).drop_attrs().identical(whole.drop_attrs())
        output.unlink()
