"""Files that a study names are a part of it: their content, wherever one stands."""

import hashlib
import json
from importlib import resources
from pathlib import Path

import pytest

from statmech_attn import storage, studies
from statmech_attn.scan import signals
from statmech_attn.scan.folder import Folder
from statmech_attn.storage import StorageError
from statmech_attn.studies import files, spec


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
    stop = files.Stop()
    task = files._Task(
        study, text, study.inputs(), output, studies.Silent(), False,
        files.local.engine(), stop, signals.Signals(stop, studies.Silent()),
    )  # fmt: skip
    files._opened(task, files.chunks_of(output), 1)
    return output


def test_a_result_holds_the_digest_of_a_file_and_another_is_refused(place):
    output = place / "out.h5"
    digest = hashlib.sha256((place / "mine.json").read_bytes()).hexdigest()
    found = files.produce(place / "study.toml", output)
    assert json.loads(found.attrs["inputs"]) == {"mine.json": digest}
    study, text = studies.load(place / "study.toml")
    assert files.holds(output, text, study.inputs())
    edit(place)
    assert not files.holds(output, text, study.inputs())
    with pytest.raises(StorageError, match="computed with another mine.json; choose"):
        files.compute(study, text, output)
    files.compute(study, text, output, overwrite=True)
    stored = json.loads(storage.info(output).attributes["inputs"])
    assert stored == study.inputs() != {"mine.json": digest}


def test_an_edited_file_does_not_go_on(place):
    output = begun(place)
    edit(place)
    study, text = studies.load(place / "study.toml")
    refused = "was begun with another mine.json; put that back, choose"
    with pytest.raises(StorageError, match=refused):
        files.compute(study, text, output)
    with pytest.raises(StorageError, match=refused):
        files.opened(output)
    files.compute(study, text, output, overwrite=True)
    assert files.holds(output, text, study.inputs())


def test_a_folder_is_opened_from_elsewhere(place, tmp_path, monkeypatch):
    chunks = files.chunks_of(begun(place)).absolute()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    folder, study, _ = files.opened(chunks)
    assert Folder.open(chunks).manifest.inputs == study.inputs() != {}
    assert folder.path == chunks


def test_a_preset_is_no_file():
    study = studies.parse(STUDY | {"network": {"patterns": "poclopez-pe2"}})
    assert study.inputs() == {}
