"""The folder of a study while it is computed: finished chunks and who works on others.

    manifest.json             the study and how it is cut, written once, before all else
    chunk-0000017.h5          rows of the points of a chunk (`chunk_file`)
    chunk-0000017.claim       the name of the process that computes it (`claims`)
    blocks-0000017/           what a chunk that takes long has so far, for some kinds
    workers/                  a file for each process at work
    environments/             versions and device that chunks were computed with
    quarantine/               chunks that turned out damaged

Everything is written so that a kill at any moment loses at most the chunks that were
being computed, and any number of processes may work on one folder at once.
"""

import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from statmech_attn import inputs, refusals, storage
from statmech_attn.scan.chunks import chunk_file
from statmech_attn.scan.chunks.chunk_file import Damaged, Newer, Stored
from statmech_attn.scan.chunks.claims import Claims
from statmech_attn.scan.chunks.work import Chunk, Work
from statmech_attn.storage import StorageError


SCHEMA_VERSION = 1
CHUNKS = re.compile(r"chunk-(\d{7})\.(h5|claim)")
MANIFEST = "manifest.json"
MAX_BYTES = 2**26  # of a JSON file; a study has 4 MiB at most
OWN = re.compile(
    r"^(manifest\.json|(chunk-\d{7}|merge)\.\w+|.*\.part)$|"
    r"^(workers|environments|quarantine|blocks-\d{7})/"
)


class Manifest(BaseModel):
    """The study of a chunk folder and how it is cut; never changed.

    Attributes:
        resolved: the study with all defaults, and files by their full path.
        inputs: SHA-256 of what the study reads, see `StudyTable.inputs`.
        decisions: what the run decided for itself when it began, see `Work`.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    schema_version: int
    study: str
    study_sha256: str
    resolved: str
    points_per_chunk: int = Field(ge=1)
    batch: int = Field(ge=1)
    started: str
    inputs: dict[str, str] = {}
    decisions: dict[str, str] = {}


class Folder:
    """A chunk folder that exists; see `begin` and `open`."""

    def __init__(self, path: Path, manifest: Manifest):
        self.path, self.manifest = path, manifest

    @classmethod
    def begin(cls, path: Path, manifest: Manifest) -> "Folder":
        """Make a folder; where another process was faster, its manifest holds."""
        path.mkdir(parents=True, exist_ok=True)
        for name in ("environments", "quarantine"):
            (path / name).mkdir(exist_ok=True)
        write_once(path / MANIFEST, manifest.model_dump_json(indent=1))
        folder = cls.open(path)
        folder.require(manifest.study, manifest.inputs)
        return folder

    @classmethod
    def open(cls, path: Path) -> "Folder":
        """Open the chunk folder at `path`."""
        manifest = path / MANIFEST
        try:
            content = json.loads(inputs.content(manifest, MAX_BYTES))
        except OSError as error:
            raise StorageError(
                f"{path}: is no folder of chunks: {MANIFEST}: "
                f"{error.strerror or str(error)}."
            ) from None
        except (ValueError, RecursionError):
            raise StorageError(f"{manifest}: is damaged: not JSON.") from None
        version = content.get("schema_version") if isinstance(content, dict) else None
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise StorageError(
                f"{path}: has schema version {version}, this statmech-attn reads up to "
                f"{SCHEMA_VERSION}; upgrade statmech-attn."
            )
        try:
            stored = Manifest.model_validate(content)
            digest = storage.study_digest(stored.study)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "content"
            raise StorageError(
                f"{manifest}: is damaged: {key}: {refusals.words(first)}."
            ) from None
        except ValueError as error:
            raise StorageError(f"{manifest}: is damaged: {error}.") from None
        if digest != stored.study_sha256:
            raise StorageError(f"{manifest}: is damaged: its study was changed.")
        return cls(path, stored)

    def work(self, build: Callable[[int | None], Work]) -> Work:
        """The work that the folder was begun for, with what was decided then."""
        work = build(self.manifest.batch)
        again = getattr(work, "with_decisions", None)
        try:
            return again(self.manifest.decisions) if again else work
        except ValueError as error:
            raise StorageError(f"{self.path}: cannot go on here: {error}") from None

    def require(self, study: str, inputs: Mapping[str, str]) -> None:
        """Refuse to go on with another study, or with other files that it names."""
        if storage.same_study(study, self.manifest.study):
            if changed := changed_inputs(self.manifest.inputs, inputs):
                raise StorageError(
                    f"{self.path}: was begun with another {changed}; put that back, "
                    "choose another output, or pass --overwrite to begin again."
                )
            return
        changes = storage.study_differences(self.manifest.study, study)
        raise StorageError(
            f"{self.path}: was begun with another study ({'; '.join(changes)}); "
            "choose another output, or pass --overwrite to begin again."
        )

    def file(self, number: int) -> Path:
        return self.path / f"chunk-{number:07d}.h5"

    def claim(self, number: int) -> Path:
        return self.path / f"chunk-{number:07d}.claim"

    def blocks(self, number: int) -> Path:
        """Folder in which a long chunk keeps its blocks."""
        return self.path / f"blocks-{number:07d}"

    def listing(self) -> tuple[set[int], set[int]]:
        """Numbers of the chunks that are done, and of those that are claimed."""
        numbers: dict[str, set[int]] = {"h5": set(), "claim": set()}
        with os.scandir(self.path) as entries:
            for entry in entries:
                if match := CHUNKS.fullmatch(entry.name):
                    numbers[match[2]].add(int(match[1]))
        return numbers["h5"], numbers["claim"]

    def write(self, stored: Stored, writer: str) -> None:
        """Keep a finished chunk."""
        path = self.file(stored.chunk.number)
        try:
            chunk_file.write(path, stored, writer)
        except StorageError:
            raise
        except OSError as error:
            raise storage.unwritable(path, error) from None
        shutil.rmtree(self.blocks(stored.chunk.number), ignore_errors=True)

    def read(self, chunk: Chunk, names: Sequence[str] | None = None) -> Stored:
        """Read a finished chunk."""
        stored = self.verified(chunk.number, names)
        if stored.chunk != chunk:
            where = self.file(chunk.number)
            raise Damaged(f"{where}: holds other points.", chunk.number)
        return stored

    def verified(self, number: int, names: Sequence[str] | None = ()) -> Stored:
        """Read the chunk with a number and verify it (`read`)."""
        path = self.file(number)
        try:
            stored = chunk_file.read(path, names)
        except Newer:
            raise
        except StorageError as error:
            raise Damaged(str(error), number) from None
        except FileNotFoundError:
            if not self.path.exists():
                raise
            raise Damaged(f"{path}: has vanished.", number) from None
        if stored.study != self.manifest.study_sha256:
            raise Damaged(f"{path}: belongs to another study.", number)
        if stored.chunk.number != number:
            raise Damaged(f"{path}: holds other points.", number)
        return stored

    def truncated(self) -> list[int]:
        """Chunks that lack their end, by a look that takes seconds for 10^5 of them."""
        done, _ = self.listing()
        return [n for n in sorted(done) if not chunk_file.is_whole(self.file(n))]

    def quarantine(self, number: int) -> Path | None:
        """Put a chunk file aside; it will be computed again."""
        source = self.file(number)
        target = self.path / "quarantine" / source.name
        target.parent.mkdir(exist_ok=True)
        copies = 0
        while target.exists():
            copies += 1
            target = target.with_name(f"{source.stem}.{copies}.h5")
        try:
            os.replace(source, target)
        except FileNotFoundError:
            return None
        return target

    def tidy(self) -> None:
        """Remove copies of small files that a kill kept from being removed."""
        for folder in (self.path, self.path / "environments"):
            for part in folder.glob(".*.json.*.part"):
                if part.with_name(part.name[1:].rsplit(".", 2)[0]).exists():
                    part.unlink(missing_ok=True)

    def remember(self, environment: Mapping[str, str]) -> str:
        """Keep what this process computes with; its digest names it."""
        text = json.dumps(dict(environment), indent=1, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        write_once(self.path / "environments" / f"{digest}.json", text)
        return digest

    def environments(self) -> dict[str, dict[str, str]]:
        """What has computed here so far, by digest."""
        environments = {}
        for path in sorted((self.path / "environments").glob("*.json")):
            try:
                environments[path.stem] = json.loads(inputs.content(path, MAX_BYTES))
            except (OSError, ValueError):
                continue
        return environments

    def claims(self) -> Claims:
        return Claims(self.path)


def changed_inputs(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Names of what a study reads whose content differs, as far as both sides tell.

    Of files in folders, which have the folder in their names, a missing one is a
    difference too, unless one side has none at all.
    """
    names = before.keys() & now.keys()
    first, second = ({n for n in side if "/" in n} for side in (before, now))
    if first and second:
        names |= first | second
    return ", ".join(n for n in sorted(names) if before.get(n) != now.get(n))


def remove(path: Path) -> None:
    """Remove a chunk folder and what was written there; what else is in it stays.

    It goes out of the way first, so that no other process sees a part of it.
    """
    away = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        os.rename(path, away)
    except FileNotFoundError:
        return
    except OSError:  # a mounted file system, for one
        away = path
    _empty(away)
    if away != path and away.exists():
        os.rename(away, path)  # somebody keeps something here


def remove_leftovers(path: Path) -> None:
    """Go on with removals of a chunk folder that were interrupted."""
    for away in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        _empty(away)


def _empty(path: Path) -> None:
    """Remove what was written into a folder, and the folder if nothing is left."""
    for place, _, files in os.walk(path, topdown=False):
        for name in files:
            if OWN.search(os.path.relpath(os.path.join(place, name), path)):
                Path(place, name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.rmdir(place)


def write_once(path: Path, text: str) -> None:
    """Make a file with a content, unless it is there already; whole or not at all."""
    handle, temporary = tempfile.mkstemp(".part", f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # no hard links on this file system
            if not path.exists():
                os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
