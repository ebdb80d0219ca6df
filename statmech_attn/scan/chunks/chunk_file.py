"""One chunk in one HDF5 file: whole or not there.

The file's image is written to a temporary file in the same folder, flushed to disk,
read back and compared with what was computed, and only then renamed into place.  It
ends with the same seal as result files, a SHA-256 of everything before it.
"""

import hashlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import jax
import numpy as np

from statmech_attn import inputs
from statmech_attn.scan.chunks.work import Arrays, Chunk, FAILURES
from statmech_attn.storage import plain, SEAL, seal, SEAL_LENGTH, StorageError


SCHEMA = "statmech_attn chunk"
SCHEMA_VERSION = 1
HEADER, ROWS = "header", "rows"
COMPRESSED_FROM = 4096  # elements


class Damaged(StorageError):
    """A chunk file that cannot be trusted; `chunk` is its number."""

    def __init__(self, message: str, chunk: int):
        super().__init__(message)
        self.chunk = chunk


class Newer(StorageError):
    """A chunk file that a newer version wrote; there is nothing wrong with it."""


class Stored(NamedTuple):
    """What a chunk file holds.

    Attributes:
        arrays: rows of its points; empty if none of them could be computed.
        failures: why points have no numbers, by row: code and reason.
        seconds: time it took to compute, by a clock that is never set.
        finished: when that was done, seconds since 1970 by the computer's clock.
        environment: digest of what computed it, see `Folder.environments`.
        study: digest of the study.
        payload: digest of what it was computed from, see `Work.payload`.
    """

    chunk: Chunk
    arrays: Arrays
    failures: dict[int, tuple[int, str]]
    seconds: float
    finished: float
    environment: str
    study: str
    payload: str = ""


def write(path: Path, stored: Stored, writer: str) -> None:
    """Write and verify a chunk; a temporary file has the name of the `writer`."""
    image = _image(stored)
    temporary = path.with_name(f".{path.name}.{writer}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(image)
            file.write(seal(hashlib.sha256(image).hexdigest()))
            file.flush()
            os.fsync(file.fileno())
        if not _same(read(temporary).arrays, stored.arrays):
            raise StorageError(f"{path}: reads back differently from what was written.")
        _put(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put(temporary: Path, path: Path) -> None:
    """Put a chunk into place, unless another process was faster."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError:  # no hard links on this file system
        os.replace(temporary, path)
        return
    temporary.unlink()


def digest(payload: Any) -> str:
    """SHA-256 of what a chunk was computed from; empty where that is nothing."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(payload)]
    checksum = hashlib.sha256()
    for leaf in leaves:
        checksum.update(f"{leaf.dtype.str} {leaf.shape}".encode())
        checksum.update(leaf.tobytes())
    return checksum.hexdigest() if leaves else ""


def read(path: Path, names: Sequence[str] | None = None) -> Stored:
    """Read a chunk, or the arrays of these names, and verify its checksum."""
    inputs.require_regular(path)
    content = path.read_bytes()
    image, trailer = content[:-SEAL_LENGTH], content[-SEAL_LENGTH:]
    if not trailer.startswith(SEAL):
        raise StorageError(f"{path}: is truncated or no chunk.")
    if trailer != seal(hashlib.sha256(image).hexdigest()):
        raise StorageError(f"{path}: is damaged: its checksum does not match.")
    try:
        with h5py.File.in_memory(image) as file:
            return _content(path, file, names)
    except StorageError:
        raise
    except Exception as error:  # HDF5 reports damage by many types of exception
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StorageError(f"{path}: is damaged ({reason[:200]}).") from None


def is_whole(path: Path) -> bool:
    """Whether a file ends with a seal: a cheap look that finds truncation."""
    try:
        inputs.require_regular(path)
        with open(path, "rb") as file:
            file.seek(-SEAL_LENGTH, os.SEEK_END)
            return file.read(len(SEAL)) == SEAL
    except OSError:
        return False


def _image(stored: Stored) -> bytes:
    with h5py.File.in_memory() as file:
        header = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "chunk": stored.chunk,
            "failures": stored.failures,
            "seconds": stored.seconds,
            "finished": stored.finished,
            "environment": stored.environment,
            "study": stored.study,
            "payload": stored.payload,
        }
        file[HEADER] = json.dumps(header)
        rows = file.create_group(ROWS)
        for name, values in stored.arrays.items():
            if len(values) != stored.chunk.size:
                raise ValueError(
                    f"{name}: needs one row for each of {stored.chunk.size} points; "
                    f"got {len(values)}."
                )
            pressed: dict[str, Any] = (
                {"compression": "gzip", "compression_opts": 1, "shuffle": True}
                if values.size >= COMPRESSED_FROM
                else {}
            )
            rows.create_dataset(name, data=values, **pressed)
        file.flush()
        return file.id.get_file_image()


def _content(path: Path, file: h5py.File, names: Sequence[str] | None) -> Stored:
    header = json.loads(plain.dataset(file, HEADER)[()])
    if header["schema"] != SCHEMA:
        raise StorageError(f"{path}: is no chunk that statmech-attn wrote.")
    if header["schema_version"] > SCHEMA_VERSION:
        raise Newer(
            f"{path}: has schema version {header['schema_version']}, this "
            f"statmech-attn reads up to {SCHEMA_VERSION}; upgrade statmech-attn."
        )
    rows = plain.group(file, ROWS)
    wanted = rows.keys() if names is None else [n for n in names if n in rows]
    failures = header["failures"].items()
    stored = Stored(
        Chunk(*map(int, header["chunk"])),
        {name: np.asarray(plain.dataset(rows, name)) for name in wanted},
        {int(i): (int(code), str(why)) for i, (code, why) in failures},
        float(header["seconds"]),
        float(header["finished"]),
        str(header["environment"]),
        str(header["study"]),
        str(header["payload"]),
    )
    _require_sense(stored)
    return stored


def _require_sense(stored: Stored) -> None:
    count = stored.chunk.size
    if not (0 <= stored.seconds < math.inf and math.isfinite(stored.finished)):
        raise ValueError(f"{stored.seconds} s until {stored.finished} is no time")
    for name, values in stored.arrays.items():
        if values.dtype.kind not in "biuf" or values.shape[:1] != (count,):
            raise ValueError(f"{name} has no row of numbers for each of {count} points")
    for row, (code, _) in stored.failures.items():
        if not 0 <= row < count or not 0 <= code < len(FAILURES):
            raise ValueError(f"failure {code} of row {row} of {count}")


def _same(stored: Arrays, computed: Arrays) -> bool:
    """Equal to the last bit, NaN included."""
    return stored.keys() == computed.keys() and all(
        x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()
        for x, y in ((stored[name], np.asarray(computed[name])) for name in stored)
    )
