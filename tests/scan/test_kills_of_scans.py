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


@pytest.mark.slow  # 30 rounds take half an hour
@pytest.mark.parametrize("rounds", (30,))
def test_a_scan_in_narrow_batches_goes_on_after_every_kill(tmp_path, rounds):
    """Two threads, chunks of 20 points: no run ends with an error, no bit changes."""
    study, output, whole = (tmp_path / n for n in ("s.toml", "out.h5", "whole.h5"))
    study.write_text(STUDY)
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "programs")}

    def started(path):
        words = ["run", study, "-o", path, "--chunk", "20", "--workers", "2"]
        return subprocess.Popen(
            [sys.executable, "-m", "statmech_attn.cli", *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | cache,
        )  # fmt: skip

    def finished(process):
        said, _ = process.communicate()
        assert process.returncode == 0, said

    begun = time.monotonic()
    finished(started(whole))
    length = time.monotonic() - begun
    expected, moments = storage.read(whole).drop_attrs(), random.Random(1)
    for _ in range(rounds):
        process = started(output)
        try:
            process.wait(moments.uniform(0, length))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        else:
            finished(process)
        finished(started(output))
        assert storage.read(output).drop_attrs().identical(expected)
        output.unlink()
