"""What may happen to a chunk folder and to points: nothing done is lost.

Runs are made in this process, of a study that costs nothing.
"""

import datetime
import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from statmech_attn import storage, studies
from statmech_attn.scan import chunk_file, claims, engines, folder, forecast
from statmech_attn.scan.engines.local import in_memory
from statmech_attn.storage import StorageError
from statmech_attn.studies import files


class Notes:
    """A `Reporter` that keeps what it is told."""

    def __init__(self):
        self.said = []

    def note(self, text):
        self.said.append(text)

    def begin(self, description, points, work):
        pass

    def advance(self, work):
        pass

    def finish(self):
        pass


def compute(study: Path, output: Path, **options) -> list[str]:
    notes = Notes()
    options = {"points_per_chunk": 5} | options
    files.compute(*studies.load(study), output, notes, **options)
    return notes.said


def chunks(output: Path) -> Path:
    return output.with_name(f"{output.name}.chunks")


def stop_before_merging(*_, **__):
    raise StorageError("not now")


@pytest.fixture
def begun(toy, study, tmp_path, monkeypatch):
    """Computes the chunks of a study and does not merge them."""

    def begin(output=tmp_path / "out.h5", **keys):
        path = study(points=20, **keys)
        with monkeypatch.context() as patch:
            patch.setattr(files, "merge", stop_before_merging)
            with pytest.raises(StorageError, match="not now"):
                compute(path, output)
        return path, output

    return begin


@pytest.fixture
def expected(toy):
    """What a study gives that is computed at once in memory."""
    return lambda path: in_memory(studies.work(studies.load(path)[0]))


def equal(output, whole) -> bool:
    found = storage.read(output)
    return set(found) == set(whole) and all(
        found[name].values.tobytes() == whole[name].values.tobytes() for name in whole
    )


def test_chunks_in_a_file_are_those_in_memory(toy, study, tmp_path, expected):
    path, output = study(points=20, rounds=3), tmp_path / "out.h5"
    compute(path, output)
    assert equal(output, expected(path))
    assert sorted(os.listdir(tmp_path)) == ["out.h5", "toy.toml"]


# Damage.


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(b"\0" * 5000)


def other_chunk(path):
    shutil.copy(path.with_name("chunk-0000000.h5"), path)


@pytest.mark.parametrize("harm", (truncate, flip, empty, garbage, other_chunk))
@pytest.mark.parametrize("rounds", (1, 2))
def test_a_damaged_chunk_is_put_aside_and_computed_again(begun, expected, harm, rounds):
    path, output = begun(rounds=rounds)
    harm(chunks(output) / "chunk-0000002.h5")
    said = compute(path, output)
    note = next(line for line in said if "computed again" in line)
    assert "chunk-0000002" in note
    assert equal(output, expected(path))


def test_a_damaged_chunk_stays_in_quarantine(begun, tmp_path, monkeypatch):
    path, output = begun()
    for _ in range(2):  # twice: neither is overwritten
        flip(chunks(output) / "chunk-0000002.h5")
        monkeypatch.setattr(files, "remove", stop_before_merging)
        with pytest.raises(StorageError):
            compute(path, output)
        output.unlink()
    aside = sorted(p.name for p in (chunks(output) / "quarantine").iterdir())
    assert aside == ["chunk-0000002.1.h5", "chunk-0000002.h5"]


def test_a_chunk_of_another_study_is_found_out(begun, expected, tmp_path):
    _, other = begun(tmp_path / "other.h5", width=2)
    path, output = begun()
    name = "chunk-0000003.h5"
    shutil.copy(chunks(other) / name, chunks(output) / name)
    said = compute(path, output)
    assert f"{chunks(output) / name}: belongs to another study. It is computed" in (
        " ".join(said)
    )
    assert equal(output, expected(path))


def test_a_chunk_that_vanishes_is_computed_again(begun, expected, monkeypatch):
    path, output = begun()
    ordinary = files.merge

    def merge(found, *rest, **options):
        (found.path / "chunk-0000001.h5").unlink(missing_ok=True)
        monkeypatch.setattr(files, "merge", ordinary)
        ordinary(found, *rest, **options)

    monkeypatch.setattr(files, "merge", merge)
    compute(path, output)
    assert equal(output, expected(path))


# Another version, another study.


def rewrite(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_folder_of_a_newer_version_is_refused(begun):
    path, output = begun()
    rewrite(chunks(output) / "manifest.json", schema_version=99, unknown=1)
    before = sorted(chunks(output).rglob("*"))
    with pytest.raises(StorageError, match="schema version 99.*upgrade"):
        compute(path, output)
    assert sorted(chunks(output).rglob("*")) == before


def test_a_chunk_of_a_newer_version_is_refused_and_kept(begun, monkeypatch):
    path, output = begun()
    found = folder.Folder.open(chunks(output))
    stored = found.verified(1, None)
    found.file(1).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(chunk_file, "SCHEMA_VERSION", 99)
        found.write(stored, "newer")
    with pytest.raises(StorageError, match="schema version 99.*upgrade"):
        compute(path, output)
    assert found.file(1).exists()
    assert list((found.path / "quarantine").iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1, 2]", "is damaged"),
        (b'{"schema_version": 1}', "study: Field required"),
    ],
)
def test_a_damaged_manifest_is_refused(begun, content, words):
    path, output = begun()
    (chunks(output) / "manifest.json").write_bytes(content)
    with pytest.raises(StorageError, match=words) as caught:
        compute(path, output)
    assert "manifest.json" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(list(chunks(output).glob("chunk-*.h5"))) == 4


def test_a_changed_study_is_refused_with_the_difference(begun, study, expected):
    _, output = begun()
    edited = study(points=20, width=5)
    with pytest.raises(StorageError) as caught:
        compute(edited, output)
    assert "was begun with another study (" in str(caught.value)
    assert "width" in str(caught.value) and "--overwrite" in str(caught.value)
    compute(edited, output, overwrite=True)
    assert equal(output, expected(edited))


def test_a_study_that_reads_the_same_goes_on(begun):
    path, output = begun()
    path.write_text("# a comment\nkind = 'toy'\npoints  =  20\n")
    compute(path, output)
    assert storage.read(output).sizes["point"] == 20


def test_two_studies_do_not_fight_for_one_folder(begun, study, monkeypatch):
    """Another run begins the folder anew while this one is at work."""
    path, output = begun()
    ordinary = files.merge

    def merge(*rest, **options):
        folder.remove(chunks(output))
        begun(width=5)
        monkeypatch.setattr(files, "merge", ordinary)
        ordinary(*rest, **options)

    monkeypatch.setattr(files, "merge", merge)
    with pytest.raises(StorageError, match="begun with another study"):
        compute(path, output)
    assert len(list(chunks(output).glob("chunk-*.h5"))) == 4
    assert list((chunks(output) / "quarantine").iterdir()) == []


# Points.


@pytest.mark.parametrize("rounds", (1, 2))
def test_points_that_fail_are_marked_and_change_no_other(
    toy, study, tmp_path, expected, rounds
):
    whole = expected(study(points=20))
    path = study(points=20, raises=[7, 12], nan=[3], rounds=rounds)
    output = tmp_path / "out.h5"
    compute(path, output)
    found = storage.read(output)
    failed = np.isin(np.arange(20), [3, 7, 12])
    assert ((found.failure.values != 0) == np.tile(failed, rounds)).all()
    assert found.failure.values[[3, 7]].tolist() == [1, 2]
    assert np.isnan(found.x.values[[7, 12]]).all()
    assert (found.number.values[[7, 12]] == -1).all()
    for name in ("x", "number"):  # the second round depends on the first
        others = found[name].values[:20][~failed]
        assert others.tobytes() == whole[name].values[~failed].tobytes()
    assert found.x.values[3, 0] == whole.x.values[3, 0]
    assert list(found.attrs["failure_reasons"]) == [
        f"not finite ({rounds} points)",
        f"point 12 cannot be computed ({rounds} points)",
        f"point 7 cannot be computed ({rounds} points)",
    ]


def test_a_chunk_of_which_every_point_fails(toy, study, tmp_path, expected):
    path, output = study(points=20, raises=list(range(5))), tmp_path / "out.h5"
    compute(path, output)
    assert storage.read(output).failure.values.tolist() == 5 * [2] + 15 * [0]
    assert equal(output, expected(path))


def test_a_study_of_which_every_point_fails_says_why(toy, study, tmp_path):
    path, output = study(points=4, raises=[0, 1, 2, 3]), tmp_path / "out.h5"
    with pytest.raises(ValueError, match="no point could be computed: point 0") as no:
        compute(path, output)
    assert "\n" not in str(no.value)
    assert not output.exists()


@pytest.mark.parametrize(
    "words", ("RESOURCE_EXHAUSTED: Out of memory", "INTERNAL: CUDA error")
)
def test_a_fault_of_the_machine_is_none_of_a_point(
    toy, study, tmp_path, monkeypatch, words
):
    def broken(*_):
        raise jax.errors.JaxRuntimeError(words)

    monkeypatch.setattr(toy.ToyWork, "compute", broken)
    with pytest.raises(RuntimeError, match=words):
        compute(study(), tmp_path / "out.h5")
    assert not list(chunks(tmp_path / "out.h5").glob("chunk-*"))


def test_a_study_of_one_point_raises_what_the_point_raises(toy, study, tmp_path):
    """Its setting is wrong: nothing is kept that a corrected study would meet."""
    with pytest.raises(RuntimeError, match="^point 0 cannot be computed"):
        compute(study(points=1, raises=[0]), tmp_path / "out.h5")
    assert not list(chunks(tmp_path / "out.h5").glob("chunk-*"))


def test_a_later_round_is_computed_again_where_what_it_rests_on_has_changed(
    begun, expected
):
    """As when a damaged chunk was computed again on another kind of processor."""
    path, output = begun(rounds=2)
    first = chunks(output) / "chunk-0000000.h5"
    stored = chunk_file.read(first)
    first.unlink()
    changed = {"x": stored.arrays["x"] + 1e-12}
    chunk_file.write(first, stored._replace(arrays=stored.arrays | changed), "another")
    said = compute(path, output)
    assert sum("rests on other results" in line for line in said) == 4
    rows, whole = storage.read(output).x.values, expected(path).x.values
    assert (rows[5:20] == whole[5:20]).all()
    shift = rows[20:].mean() - whole[20:].mean()  # the second round adds the mean
    assert shift == pytest.approx(2.5e-13, rel=1e-2)


def test_a_chunk_that_is_there_is_not_replaced(begun):
    """Two processes may compute the same chunk: later rounds rest on the first."""
    _, output = begun()
    path = chunks(output) / "chunk-0000000.h5"
    stored, content = chunk_file.read(path), path.read_bytes()
    arrays = stored.arrays | {"x": stored.arrays["x"] + 1}
    chunk_file.write(path, stored._replace(arrays=arrays), "another")
    assert path.read_bytes() == content
    assert not list(chunks(output).glob("*.part"))


# The machine.


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
    assert storage.info(output).elapsed >= 0


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
    (output.parent / ".out.h5.abcd1234.part").write_bytes(b"half")
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
    monkeypatch.setattr(files, "merge", stop_before_merging)
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
    """A file that leaves so many bytes free."""
    free = shutil.disk_usage(place).free
    ballast = place / "ballast"
    ballast.write_bytes(b"\0" * (free - leave))
    return ballast


@ROOT
@pytest.mark.parametrize("leave", (0, 40_000))
def test_a_disk_that_fills_while_chunks_are_written(
    toy, study, small_disk, expected, leave
):
    path, output = study(points=20, width=2000), small_disk / "out.h5"
    ordinary = toy.ToyWork.compute
    full = []

    def compute_and_fill(self, chunk, *rest):
        if chunk.number == 1 and not full:
            full.append(fill(small_disk, leave))
        return ordinary(self, chunk, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy.ToyWork, "compute", compute_and_fill)
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
    assert 3 * 2**40 < threads < processes < 3 * 2**40 + 2**34
    resident = threads - 3 * 2**40
    assert 3 * resident < processes - 3 * 2**40 < 5 * resident
    assert needs(False, False) < 2**34
    work.alone = True
    assert needs(True, True) < 2**40 + 2**34


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
