"""Runs of toy studies in this process, and what tests do to their files."""

from pathlib import Path

from statmech_attn import storage, studies
from statmech_attn.storage import StorageError
from statmech_attn.studies.files import results


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


def write(folder: Path, **keys) -> Path:
    """A study file, toy.toml, with these keys."""
    path = folder / "toy.toml"
    lines = [f"{name} = {value}" for name, value in keys.items()]
    path.write_text("\n".join(['kind = "toy"', *lines]) + "\n")
    return path


def compute(study: Path, output: Path, **options) -> list[str]:
    notes = Notes()
    options = {"points_per_chunk": 5} | options
    results.compute(*studies.load(study), output, notes, **options)
    return notes.said


def chunks(output: Path) -> Path:
    return output.with_name(f"{output.name}.chunks")


def stop_before_merging(*_, **__):
    raise StorageError("not now")


def equal(output, whole) -> bool:
    found = storage.read(output)
    return set(found) == set(whole) and all(
        found[name].values.tobytes() == whole[name].values.tobytes() for name in whole
    )


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
