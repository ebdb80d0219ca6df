"""A kill or a full disk at any moment leaves the old file or the new one, whole."""

import errno
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage
from statmech_attn.storage import writing


LABELS = {"long_name": "x", "units": "1", "symbol": "x"}
STUDY = 'kind = "test"'


def filled(value: float, size: int = 200_000) -> xr.Dataset:
    rng = np.random.default_rng(0)
    return xr.Dataset({"x": ("i", rng.normal(value, size=size), LABELS)})


WRITER = """
import sys, numpy as np, xarray as xr
from statmech_attn import storage
labels = {"long_name": "x", "units": "1", "symbol": "x"}
sets = [xr.Dataset({"x": ("i", np.full(500_000, v), labels)}) for v in (0, 1)]
for turn in range(100_000):
    storage.write(sys.argv[1], sets[turn % 2], study='kind = "test"')
"""


@pytest.mark.parametrize("delay", (0.0, 0.003, 0.01, 0.03))
def test_killed_while_writing_leaves_the_old_file_or_the_new(tmp_path, delay):
    path = tmp_path / "a.h5"
    parts = lambda: list(tmp_path.glob(".a.h5.*.part"))
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command) as process:
        try:
            deadline = time.monotonic() + 60
            while not (path.exists() and parts()):
                assert process.poll() is None and time.monotonic() < deadline
            time.sleep(delay)
        finally:
            process.kill()
    values = storage.read(path).x.values
    assert values.size == 500_000
    assert values[0] in (0, 1) and (values == values[0]).all()
    if delay == 0:
        assert len(parts()) == 1  # it was killed in the middle
        storage.write(path, filled(2.0, 10), study=STUDY)
        assert storage.read(path).x.size == 10


LIMITED = """
import resource, sys, numpy as np, xarray as xr
from statmech_attn import storage
x = np.random.default_rng(2).normal(size=200_000)
ds = xr.Dataset({"x": ("i", x, {"long_name": "x", "units": "1", "symbol": "x"})})
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    storage.write(sys.argv[1], ds, study='kind = "test"')
except storage.StorageError as error:
    sys.exit(str(error))
"""


def test_a_file_the_system_cuts_off_says_what_was_needed(tmp_path):
    path = tmp_path / "a.h5"
    storage.write(path, filled(0.0), study=STUDY)
    before = path.read_bytes()
    command = [sys.executable, "-c", LIMITED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "File too large: 1.3" in done.stderr
    assert "MiB needed" in done.stderr
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


def _full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _interrupted(*_):
    raise KeyboardInterrupt


STAGES = ("fsync", "chmod", "replace")


@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_keeps_the_old_file_and_leaves_nothing(
    tmp_path, monkeypatch, stage
):
    path = tmp_path / "a.h5"
    storage.write(path, filled(0.0), study=STUDY)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(writing.os, stage, _full)
        with pytest.raises(storage.StorageError, match="No space left.* MiB needed"):
            storage.write(path, filled(1.0), study=STUDY)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_keeps_the_old_file_and_leaves_nothing(
    tmp_path, monkeypatch, stage
):
    path = tmp_path / "a.h5"
    storage.write(path, filled(0.0), study=STUDY)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(writing.os, stage, _interrupted)
        with pytest.raises(KeyboardInterrupt):
            storage.write(path, filled(1.0), study=STUDY)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


def test_a_disk_that_lies_is_found_out_before_the_old_file_goes(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    storage.write(path, filled(0.0), study=STUDY)
    before = path.read_bytes()

    def flip_a_byte(handle):
        name = pathlib.Path(os.readlink(f"/proc/self/fd/{handle}"))
        if name.suffix == ".part":
            content = bytearray(name.read_bytes())
            content[len(content) // 2] ^= 1
            name.write_bytes(content)

    with monkeypatch.context() as patch:
        patch.setattr(writing.os, "fsync", flip_a_byte)
        with pytest.raises(storage.StorageError, match="damaged"):
            storage.write(path, filled(1.0), study=STUDY)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


def test_permissions_are_those_of_the_replaced_or_of_a_new_file(tmp_path):
    path = tmp_path / "a.h5"
    (tmp_path / "plain").touch()
    storage.write(path, filled(0.0, 10), study=STUDY)
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o640)
    storage.write(path, filled(1.0, 10), study=STUDY)
    assert path.stat().st_mode & 0o777 == 0o640
