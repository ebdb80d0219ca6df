"""A kill or a full disk at any moment leaves the old file or the new one, whole."""

import errno
import os
import pathlib
import signal
import subprocess
import sys
import time
from functools import partial

import h5netcdf
import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage
from statmech_attn.storage.writers import replacing, streaming, writing


LABELS = {"long_name": "x", "units": "1", "symbol": "x"}
STUDY = 'kind = "test"'


def filled(value: float, size: int = 200_000) -> xr.Dataset:
    rng = np.random.default_rng(0)
    return xr.Dataset({"x": ("i", rng.normal(value, size=size), LABELS)})


def save(path, value: float, streamed: bool) -> None:
    """Write a file, from memory or block by block."""
    dataset = filled(value)
    columns = {}
    if streamed:
        x = dataset.x.values
        blocks = lambda: iter(np.split(x, 20))
        columns["x"] = storage.Column(("i",), x.shape, x.dtype, LABELS, blocks)
        dataset = dataset.drop_vars("x")
    storage.write(path, dataset, study=STUDY, columns=columns)


WRITER = """
import sys, numpy as np, xarray as xr
from statmech_attn import storage
labels = {"long_name": "x", "units": "1", "symbol": "x"}
sets = [xr.Dataset({"x": ("i", np.full(500_000, v), labels)}) for v in (0, 1)]
def column(x):
    blocks = lambda: iter(np.split(x, 50))
    return {"x": storage.Column(("i",), x.shape, x.dtype, labels, blocks)}
columns = [column(s.x.values) for s in sets]
for turn in range(100_000):
    if sys.argv[2] == "streamed":
        whole = {"dataset": xr.Dataset(), "columns": columns[turn % 2]}
    else:
        whole = {"dataset": sets[turn % 2]}
    storage.write(sys.argv[1], study='kind = "test"', **whole)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "delay"), [("streamed", 0.03), ("memory", 0.0)])
def test_killed_while_writing_leaves_the_old_file_or_the_new(tmp_path, how, delay):
    path = tmp_path / "a.h5"
    parts = lambda: list(tmp_path.glob(".a.h5.*.part"))
    command = [sys.executable, "-c", WRITER, str(path), how]
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


@pytest.mark.slow
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


STAGES = [
    (stage, streamed)
    for stage in ("write", "fsync", "chmod", "replace")  # the first inside HDF5
    for streamed in (False, True)
]


@pytest.mark.parametrize(("stage", "streamed"), STAGES)
def test_a_full_disk_or_an_interrupt_keeps_the_old_file_and_leaves_nothing(
    tmp_path, monkeypatch, stage, streamed
):
    path = tmp_path / "a.h5"
    save(path, 0.0, streamed)
    before = path.read_bytes()
    for happens, error, words in (
        (_full, storage.StorageError, "No space left.* MiB needed"),
        (_interrupted, KeyboardInterrupt, None),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(writing.os, stage, happens)
            with pytest.raises(error, match=words):
                save(path, 1.0, streamed)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize("streamed", (False, True))
def test_a_disk_that_lies_is_found_out_before_the_old_file_goes(
    tmp_path, monkeypatch, streamed
):
    path = tmp_path / "a.h5"
    save(path, 0.0, streamed)
    before = path.read_bytes()

    def flip_a_byte(handle):
        name = pathlib.Path(os.readlink(f"/proc/self/fd/{handle}"))
        if name.parent.suffix == ".part":
            content = bytearray(name.read_bytes())
            content[len(content) // 2] ^= 1
            name.write_bytes(content)

    with monkeypatch.context() as patch:
        patch.setattr(writing.os, "fsync", flip_a_byte)
        with pytest.raises(storage.StorageError, match="damaged"):
            save(path, 1.0, streamed)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize("streamed", (False, True))
def test_what_hdf5_writes_differently_is_found_before_the_old_file_goes(
    tmp_path, monkeypatch, streamed
):
    path = tmp_path / "a.h5"
    save(path, 0.0, streamed)
    before = path.read_bytes()
    of_set, of_slab = xr.Dataset.to_netcdf, h5netcdf.Variable.__setitem__

    def another_set(dataset, *words, **options):
        return of_set(dataset + 1, *words, **options)

    def another_slab(variable, box, values):
        of_slab(variable, box, values + 1)

    with monkeypatch.context() as patch:
        patch.setattr(xr.Dataset, "to_netcdf", another_set)
        patch.setattr(h5netcdf.Variable, "__setitem__", another_slab)
        with pytest.raises(storage.StorageError, match="written: it reads back diff"):
            save(path, 1.0, streamed)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


def test_a_disk_that_is_full_at_the_very_end_is_no_damage(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    real, done = os.write, []

    def write(handle, data, allowed=10**6):
        done.append(handle)
        return real(handle, data) if len(done) < allowed else _full()

    with monkeypatch.context() as patch:
        patch.setattr(streaming.os, "write", write)
        save(path, 0.0, True)
        last = len(done)
        done.clear()
        patch.setattr(streaming.os, "write", partial(write, allowed=last))
        with pytest.raises(storage.StorageError, match="No space left.* MiB needed"):
            save(path, 1.0, True)
    assert os.listdir(tmp_path) == ["a.h5"]


class Signalled(streaming._File):
    def write(self, data, /):
        signal.raise_signal(signal.SIGINT)
        return super().write(data)


def test_ctrl_c_while_hdf5_writes_waits_for_it(tmp_path, monkeypatch):
    """A signal handler that raised inside HDF5 would crash the process."""
    path = tmp_path / "a.h5"
    save(path, 0.0, True)
    before = path.read_bytes()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(streaming, "_File", Signalled)
            with pytest.raises(KeyboardInterrupt):
                save(path, 1.0, True)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
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


def folder(path, value: str) -> None:
    with storage.replaced(path) as part:
        part.mkdir()
        (part / "x").write_text(value)


@pytest.mark.parametrize("at_once", (True, False))
def test_a_folder_replaces_a_folder(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(replacing, "_exchanged", lambda *_: False)
    for value in "ab":
        folder(tmp_path / "store", value)
        assert (tmp_path / "store" / "x").read_text() == value
        assert os.listdir(tmp_path) == ["store"]


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is of Linux")
def test_a_folder_is_there_at_every_moment(tmp_path, monkeypatch):
    folder(tmp_path / "store", "old")
    monkeypatch.setattr(os, "replace", _full)
    folder(tmp_path / "store", "new")  # the one step is no rename
    assert (tmp_path / "store" / "x").read_text() == "new"


def test_a_loop_of_links_stays(tmp_path):
    path = tmp_path / "a.h5"
    path.symlink_to("a.h5")
    for write in (save, lambda path, *_: storage.write_text(path, "x")):
        with pytest.raises(storage.StorageError, match="levels of symbolic links"):
            write(path, 0.0, False)
    assert path.is_symlink() and os.listdir(tmp_path) == ["a.h5"]
