"""What may happen to the machine under a chunk folder: nothing done is lost.

Runs are made in this process, of a study that costs nothing.
"""

import datetime
import errno
import os
import shutil
import subprocess
import threading
import time
from functools import partial
from pathlib import Path

import psutil
import pytest
from toy_runs import chunks, compute, equal, flip, stop_before_merging

from statmech_attn import storage
from statmech_attn.scan import engines, forecast, jobs
from statmech_attn.scan.chunks import claims
from statmech_attn.storage import StorageError


def test_a_clock_that_jumps_back_changes_nothing(begun, expected, monkeypatch):
    path, output = begun()
    for file in chunks(output).rglob("*"):
        os.utime(file, (2e10, 2e10))  # in the year 2603
    (chunks(output) / "chunk-0000001.h5").unlink()
    start = time.time()
    monkeypatch.setattr(time, "time", lambda: start - 1e8 * (time.monotonic() % 2))
    past = datetime.datetime(1990, 1, 1, tzinfo=datetime.UTC)
    monkeypatch.setattr(storage, "now", lambda: past)
    compute(path, output)
    assert equal(output, expected(path))
    info = storage.info(output)
    assert 0 <= info.elapsed <= info.busy


def test_what_dead_processes_left_is_removed(begun, expected):
    path, output = begun()
    place = chunks(output)
    for number in range(2000):
        (place / f"chunk-{number:07d}.claim").write_text(f"{number}-dead")
    (place / "chunk-0000001.claim").write_text("")
    (place / "chunk-0000002.claim").write_bytes(b"\xff\xfe\0/../x")
    (place / "chunk-0000003.claim").write_text("x" * 5000)
    for number in range(100):
        (place / "workers" / f"{number}-dead").write_text(f"{claims.machine()}\n3\n")
    (place / ".chunk-0000003.h5.7-dead.part").write_bytes(b"half")
    (place / ".manifest.json.abcd.part").write_bytes(b"half")
    (place / "chunk-0000003.h5").unlink()
    beside = output.parent / ".out.h5.abcd1234.part"  # of a merge
    beside.mkdir()
    (beside / output.name).write_bytes(b"half")
    begin = time.monotonic()
    compute(path, output)
    assert time.monotonic() - begin < 10
    assert equal(output, expected(path))
    assert not place.exists()
    assert list(output.parent.glob(".*")) == []


def test_files_that_somebody_keeps_in_the_folder_stay(begun):
    path, output = begun()
    (chunks(output) / "notes.txt").write_text("mine")
    (chunks(output) / "mine").mkdir()
    (chunks(output) / "mine" / "chunk-0000001.h5").write_text("a copy")
    compute(path, output)
    left = [p for p in chunks(output).rglob("*") if p.is_file()]
    assert sorted(p.name for p in left) == ["chunk-0000001.h5", "notes.txt"]


def test_long_names_and_names_that_are_patterns(toy, study, tmp_path, expected):
    path = study(points=10)
    deep = tmp_path.joinpath(*[f"a folder with [blanks] {n:3d}" * 4 for n in range(20)])
    output = deep / "out*[1]?.h5"
    assert len(str(output)) > 2000
    compute(path, output)
    assert equal(output, expected(path))
    with pytest.raises(OSError, match="File name too long"):
        compute(path, tmp_path / ("x" * 245 + ".h5"))


def test_a_run_leaves_no_thread_and_no_open_file(begun, monkeypatch):
    path, output = begun(rounds=2)
    opened = lambda: sorted(os.listdir("/proc/self/fd"))
    files_before, threads_before = opened(), threading.active_count()
    monkeypatch.setattr(jobs, "merge", stop_before_merging)
    for number in range(4):
        flip(chunks(output) / f"chunk-000000{number}.h5")  # found as round 2 begins
        with pytest.raises(StorageError, match="not now"):
            compute(path, output)
    assert opened() == files_before
    assert threading.active_count() == threads_before
    assert list((chunks(output) / "workers").iterdir()) == []


ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("mount"), reason="needs root to mount"
)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)],
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, leave: int) -> Path:
    """A file that leaves so many bytes free, whatever else is written meanwhile."""
    ballast = place / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 2**16):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC
        file.truncate(file.tell() - leave)
    return ballast


@ROOT
def test_a_disk_that_fills_while_chunks_are_written(toy, study, small_disk, expected):
    path, output = study(points=20, width=2000), small_disk / "out.h5"
    ordinary = toy.ToyWork.rows
    full = []

    def compute_and_fill(self, chunk, *rest):
        if chunk.number == 1 and not full:
            full.append(fill(small_disk, 0))
        return ordinary(self, chunk, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy.ToyWork, "rows", compute_and_fill)
        with pytest.raises(OSError, match="No space left on device") as caught:
            compute(path, output)
    assert "\n" not in str(caught.value) and str(chunks(output)) in str(caught.value)
    kept = {p: p.read_bytes() for p in chunks(output).glob("chunk-*.h5")}
    full[0].unlink()
    assert not compute(path, output)[0].startswith("20 points")  # no new folder
    assert equal(output, expected(path))
    assert len(kept) < 4
    assert list(small_disk.iterdir()) == [output]


@ROOT
def test_a_disk_that_is_full_while_merging(toy, study, small_disk, expected, begun):
    path, output = begun(small_disk / "out.h5", width=2000)
    before = {p: p.read_bytes() for p in chunks(output).glob("chunk-*.h5")}
    ballast = fill(small_disk, 100_000)
    with pytest.raises(StorageError, match=r"No space left.*needed.*free") as caught:
        compute(path, output)
    assert str(output) in str(caught.value)
    assert {p: p.read_bytes() for p in before} == before
    assert list(small_disk.glob(".*.part")) == []
    ballast.unlink()
    compute(path, output)
    assert equal(output, expected(path))


@ROOT
def test_a_folder_that_becomes_read_only(begun, small_disk, expected):
    path, output = begun(small_disk / "out.h5")
    (chunks(output) / "chunk-0000001.h5").unlink()
    remount = lambda how: subprocess.run(
        ["mount", "-o", f"remount,{how}", str(small_disk)], check=True
    )
    remount("ro")
    with pytest.raises(StorageError, match="Read-only file system"):
        compute(path, output)
    remount("rw")
    compute(path, output)
    assert equal(output, expected(path))


# Forecasts.


def test_a_run_that_lacks_memory_is_refused(toy, study, tmp_path, monkeypatch):
    monkeypatch.setattr(forecast, "available_memory", lambda: 2**20)
    path, output = study(memory=2**33), tmp_path / "out.h5"
    with pytest.raises(ValueError) as caught:
        compute(path, output)
    assert "GiB of memory" in str(caught.value)
    assert "are available; use fewer workers" in str(caught.value)
    assert not chunks(output).exists()


def test_memory_is_that_of_this_machine(toy):
    work = toy.ToyWork(toy.ToyStudy(memory=2**40))

    def needs(one_process, here):
        engine = engines.Engine(lambda *_: None, 3, one_process, here)
        return forecast.forecast(work, engine, 5).memory

    threads, processes = needs(True, True), needs(False, True)
    # The process may grow a little between two looks at it.
    same = partial(pytest.approx, rel=0.05)
    resident = threads - 3 * 2**40
    assert resident == same(psutil.Process().memory_info().rss)
    assert processes - 3 * 2**40 == same(4 * resident)
    assert needs(False, False) == same(resident)
    work.alone = True
    assert needs(True, True) - 2**40 == same(resident)


def test_a_run_that_lacks_disk_is_refused(toy, study, tmp_path, monkeypatch):
    usage = shutil._ntuple_diskusage(2**40, 2**40, 2**30)
    monkeypatch.setattr(forecast.shutil, "disk_usage", lambda place: usage)
    path, output = study(points=40, stored=2**25), tmp_path / "out.h5"
    with pytest.raises(ValueError) as caught:
        compute(path, output, points_per_chunk=1)
    assert "up to 2.50 GiB of disk" in str(caught.value)
    assert f"1.00 GiB are free in {tmp_path}" in str(caught.value)
    assert not chunks(output).exists()


def test_a_forecast_is_said_before_a_run(toy, study, tmp_path):
    said = compute(study(points=40, seconds=0.001), tmp_path / "out.h5")
    assert said[0].startswith("40 points in 8 chunks of 5, ")
    assert "points/s)" in said[0] and "of memory, a file of at most" in said[0]
