"""Files that a study names are a part of it: their content, wherever one stands."""

import hashlib
import json
from importlib import resources
from pathlib import Path

import pytest
import xarray as xr

from statmech_attn import storage, studies
from statmech_attn.inputs import require_regular
from statmech_attn.scan import jobs, signals
from statmech_attn.scan.chunks.folder import Folder, Manifest
from statmech_attn.scan.engines import local
from statmech_attn.storage import StorageError
from statmech_attn.studies.files import digests, results, spec
from statmech_attn.studies.one_shot.tables import ONE_SHOT_PRESETS
from statmech_attn.studies.tables import StudyTable


STUDY = {
    "kind": "trajectory",
    "network": {"patterns": "mine.json"},
    "parameters": {"beta": [1.3, 1.4]},
    "run": {"steps": 4},
}


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder, named from the one above it, with a study and its pattern file."""
    folder = tmp_path / "study"
    folder.mkdir()
    preset = resources.files("statmech_attn.dmft") / "presets" / "poclopez-pe2.json"
    (folder / "mine.json").write_text(preset.read_text())
    (folder / "study.toml").write_text(spec.dump(STUDY))
    monkeypatch.chdir(tmp_path)
    return Path("study")


def edit(place: Path) -> None:
    with open(place / "mine.json", "a") as file:
        file.write("\n")


def begun(place: Path) -> Path:
    """A chunk folder without chunks."""
    study, text = studies.load(place / "study.toml")
    output = place / "out.h5"
    stop, silent = signals.Stop(), studies.Silent()
    task = jobs._Task(
        results.job(study, text),
        output,
        silent,
        False,
        local.engine(),
        stop,
        signals.Signals(stop, silent),
    )
    jobs._opened(task, jobs.chunks_of(output), 1)
    return output


def test_a_result_holds_the_digest_of_a_file_and_another_is_refused(place):
    output = place / "out.h5"
    digest = hashlib.sha256((place / "mine.json").read_bytes()).hexdigest()
    found = results.produce(place / "study.toml", output)
    assert json.loads(found.attrs["inputs"]) == {"mine.json": digest}
    study, text = studies.load(place / "study.toml")
    assert results.holds(output, text, study.inputs())
    edit(place)
    assert not results.holds(output, text, study.inputs())
    with pytest.raises(StorageError, match="computed with another mine.json; choose"):
        results.compute(study, text, output)
    results.compute(study, text, output, overwrite=True)
    stored = json.loads(storage.info(output).attributes["inputs"])
    assert stored == study.inputs() != {"mine.json": digest}


def test_an_edited_file_does_not_go_on(place):
    output = begun(place)
    edit(place)
    study, text = studies.load(place / "study.toml")
    refused = "was begun with another mine.json; put that back, choose"
    with pytest.raises(StorageError, match=refused):
        results.compute(study, text, output)
    with pytest.raises(StorageError, match=refused):
        results.opened(output)
    results.compute(study, text, output, overwrite=True)
    assert results.holds(output, text, study.inputs())


def test_a_folder_is_opened_from_elsewhere(place, tmp_path, monkeypatch):
    chunks = jobs.chunks_of(begun(place)).absolute()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    folder, study, _ = results.opened(chunks)
    assert Folder.open(chunks).manifest.inputs == study.inputs() != {}
    assert folder.path == chunks


def test_a_preset_is_no_file():
    study = studies.parse(STUDY | {"network": {"patterns": "poclopez-pe2"}})
    assert study.inputs() == {}


TRAINING = {"kind": "training", "task": {"name": "one-shot", "elsewhere": ["mnist"]}}
ZIPS = [
    "omniglot/images_background_small1.zip",
    "omniglot/images_background_small2.zip",
]
DIGITS = [f"mnist/t10k-{part}-ubyte.gz" for part in ("images-idx3", "labels-idx1")]


@pytest.fixture
def data(made_images, tmp_path, monkeypatch) -> Path:
    """A folder of images."""
    folder = tmp_path / "data"
    made_images.write_omniglot(folder, characters=1, drawings=1, side=8)
    made_images.write_digits(folder, side=8)
    monkeypatch.setenv("STATMECH_ATTN_DATA", str(folder))
    return folder


def trained(tmp_path, **attributes) -> tuple[StudyTable, str, Path]:
    """A study of training with a result of its own."""
    study, text = studies.parse(TRAINING), spec.dump(TRAINING)
    output = tmp_path / "trained.h5"
    numbers = xr.Dataset(attrs=attributes)
    storage.write(output, numbers, study=text, overwrite=True)
    return study, text, output


def test_images_and_the_values_of_a_preset_are_read_by_a_training(data, monkeypatch):
    found = studies.parse(TRAINING).inputs()
    assert list(found) == ["preset laptop", *ZIPS, *DIGITS]
    for name in (*ZIPS, *DIGITS):
        assert found[name] == hashlib.sha256((data / name).read_bytes()).hexdigest()
    assert studies.parse(TRAINING | {"preset": "paper"}).inputs() == {
        ("preset paper" if name == "preset laptop" else name): digest
        for name, digest in found.items()
    } | {"preset paper": digests.of_values(ONE_SHOT_PRESETS["paper"])}
    (data / ZIPS[0]).write_bytes(b"other images")
    changed = studies.parse(TRAINING).inputs()
    assert {name for name in found if changed[name] != found[name]} == {ZIPS[0]}
    monkeypatch.delenv("STATMECH_ATTN_DATA")
    (name,) = studies.parse(TRAINING).inputs()
    assert name == "preset laptop"


def test_a_training_on_other_images_is_not_the_same(data, tmp_path):
    before = json.dumps(studies.parse(TRAINING).inputs())
    study, text, output = trained(tmp_path, inputs=before)
    assert results.holds(output, text, study.inputs())
    (data / ZIPS[1]).unlink()
    with pytest.raises(StorageError, match=f"computed with another {ZIPS[1]}; choose"):
        results.compute(study, text, output)
    (data / DIGITS[0]).write_bytes(b"other images")
    with pytest.raises(StorageError, match=f"another {DIGITS[0]}, {ZIPS[1]}; choose"):
        results.compute(study, text, output)


def test_a_result_holds_without_images_and_one_of_no_named_images(
    data, tmp_path, monkeypatch
):
    before = studies.parse(TRAINING).inputs()
    for attributes in ({}, {"inputs": "{}"}, {"inputs": '{"preset laptop": "0"}'}):
        study, text, output = trained(tmp_path, **attributes)
        assert results.holds(output, text, study.inputs()) == (
            "0" not in str(attributes)
        )
    study, text, output = trained(tmp_path, inputs=json.dumps(before))
    monkeypatch.delenv("STATMECH_ATTN_DATA")
    assert results.holds(output, text, study.inputs())


def test_a_changed_preset_does_not_go_on(data, tmp_path, monkeypatch):
    """Neither the result nor the chunks: the study's text is still the same."""
    inputs = studies.parse(TRAINING).inputs()
    study, text, output = trained(tmp_path, inputs=json.dumps(inputs))
    manifest = Manifest(
        schema_version=1,
        study=text,
        study_sha256=storage.study_digest(text),
        resolved=text,
        points_per_chunk=1,
        batch=1,
        started="",
        inputs=inputs,
    )
    folder = Folder.begin(tmp_path / "chunks", manifest)
    folder.require(text, study.inputs())
    monkeypatch.setitem(ONE_SHOT_PRESETS["laptop"]["run"], "steps", 5000)
    changed = studies.parse(TRAINING)
    with pytest.raises(StorageError, match="computed with another preset laptop; choo"):
        results.compute(changed, text, output)
    with pytest.raises(StorageError, match="begun with another preset laptop; put th"):
        folder.require(text, changed.inputs())


def test_a_file_is_read_again_only_when_it_has_changed(tmp_path, monkeypatch):
    path, read = tmp_path / "file", []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: read.append(1) or digest(*a))
    for content in (b"one", b"two!"):
        path.write_bytes(content)
        for _ in range(3):
            assert digests.of_file(path) == hashlib.sha256(content).hexdigest()
    assert len(read) == 2


def test_the_digest_of_values_is_that_of_any_order():
    assert digests.of_values({"a": 1, "b": 0.5}) == digests.of_values(
        {"b": 0.5, "a": 1}
    )


def test_a_device_is_no_file_to_read():
    with pytest.raises(OSError, match="/dev/null: is not a regular file"):
        require_regular("/dev/null")
