"""What may happen to chunks and to points: nothing done is lost.

Runs are made in this process, of a study that costs nothing.
"""

import json
import os
import shutil

import jax
import numpy as np
import pytest
from toy_runs import chunks, compute, equal, flip, stop_before_merging

from statmech_attn import storage
from statmech_attn.reporting import Silent
from statmech_attn.scan import jobs, RAISED
from statmech_attn.scan.chunks import chunk_file, folder
from statmech_attn.scan.chunks.results import Memory
from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.chunks.signals import Stop
from statmech_attn.storage import StorageError


def test_chunks_in_a_file_are_those_in_memory(toy, study, tmp_path, expected):
    path, output = study(points=20, rounds=3), tmp_path / "out.h5"
    compute(path, output)
    assert equal(output, expected(path))
    assert sorted(os.listdir(tmp_path)) == ["out.h5", "toy.toml"]


# Damage.


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def empty(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(b"\0" * 5000)


def other_chunk(path):
    shutil.copy(path.with_name("chunk-0000000.h5"), path)


@pytest.mark.parametrize(
    ("rounds", "harms"),
    [(1, (garbage, other_chunk)), (2, (truncate, flip, empty))],
)
def test_damaged_chunks_are_put_aside_and_computed_again(
    begun, expected, harms, rounds
):
    """One chunk in each way, all of the first round."""
    path, output = begun(rounds=rounds)
    damaged = [f"chunk-{number:07d}" for number in range(1, 1 + len(harms))]
    for harm, name in zip(harms, damaged, strict=True):
        harm(chunks(output) / f"{name}.h5")
    notes = " ".join(line for line in compute(path, output) if "computed again" in line)
    assert all(name in notes for name in damaged)
    assert equal(output, expected(path))


def test_a_damaged_chunk_stays_in_quarantine(begun, tmp_path, monkeypatch):
    path, output = begun()
    for _ in range(2):  # twice: neither is overwritten
        flip(chunks(output) / "chunk-0000002.h5")
        monkeypatch.setattr(jobs, "remove", stop_before_merging)
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
    ordinary = jobs.merge

    def merge(found, *rest, **options):
        (found.path / "chunk-0000001.h5").unlink(missing_ok=True)
        monkeypatch.setattr(jobs, "merge", ordinary)
        ordinary(found, *rest, **options)

    monkeypatch.setattr(jobs, "merge", merge)
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
        (b'{"schema_version": 1}', "study: is missing"),
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
    ordinary = jobs.merge

    def merge(*rest, **options):
        folder.remove(chunks(output))
        begun(width=5)
        monkeypatch.setattr(jobs, "merge", ordinary)
        ordinary(*rest, **options)

    monkeypatch.setattr(jobs, "merge", merge)
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


def test_every_thread_that_asks_for_the_next_round_hears_the_same_error(toy):
    work = toy.ToyWork(toy.ToyStudy(points=1))
    with Session(work, Memory(), 1, Silent(), Stop()) as session:
        session.keep(session.next(), {}, {0: (RAISED, "point 0")}, 1.0)
        for _ in range(2):
            with pytest.raises(ValueError, match="no point could be computed: point 0"):
                session.next()


def test_a_study_without_a_finite_number_ends_with_an_error(
    toy, study, tmp_path, expected
):
    path, output = study(points=4, nan=[0, 1, 2, 3]), tmp_path / "out.h5"
    with pytest.raises(ValueError, match=r"no point could .*: not finite \(4 points\)"):
        compute(path, output)
    assert not output.exists()
    with pytest.raises(ValueError, match="no point could be computed"):
        expected(path)


@pytest.mark.parametrize(
    "words", ("RESOURCE_EXHAUSTED: Out of memory", "INTERNAL: CUDA error")
)
def test_a_fault_of_the_machine_is_none_of_a_point(
    toy, study, tmp_path, monkeypatch, words
):
    def broken(*_):
        raise jax.errors.JaxRuntimeError(words)

    monkeypatch.setattr(toy.ToyWork, "rows", broken)
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


def test_removals_that_were_interrupted_go_on(tmp_path):
    (tmp_path / ".scan.h5.chunks.0123456789ab.part").mkdir()
    folder.remove_leftovers(tmp_path / "scan.h5.chunks")
    assert not os.listdir(tmp_path)
