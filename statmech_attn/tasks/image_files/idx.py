"""IDX files of MNIST and FashionMNIST: big-endian header, then bytes.

Header: two zeros, 8 for unsigned bytes, the number of dimensions, each size as 32 bits.
"""

import gzip
import io
import struct
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from statmech_attn import inputs


IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
MAX_BYTES = 2**28  # of a file, unpacked; the largest published one has 47 MB


def files(folder: Path, prefix: str) -> list[Path]:
    """The files that `labelled` reads; none where there are no images."""
    paths = [_gzipped_or_plain(folder, f"{prefix}-{part}") for part in (IMAGES, LABELS)]
    return [path for path in paths if path is not None] if paths[0] else []


def labelled(
    folder: Path, prefix: str
) -> tuple[UInt8[np.ndarray, "P S S"], UInt8[np.ndarray, " P"]] | None:
    """Images and labels of the files `prefix`-*, or None where there are no images."""
    images_at = _gzipped_or_plain(folder, f"{prefix}-{IMAGES}")
    if images_at is None:
        return None
    labels_at = _gzipped_or_plain(folder, f"{prefix}-{LABELS}")
    if labels_at is None:
        raise ValueError(f"{images_at}: its {prefix}-{LABELS}(.gz) is missing.")
    images, labels = read(images_at, 3), read(labels_at, 1)
    if len(images) != len(labels):
        raise ValueError(
            f"{labels_at}: {len(labels)} labels for the {len(images)} images of "
            f"{images_at.name}."
        )
    if images.shape[1] != images.shape[2] or not images.shape[1]:
        raise ValueError(
            f"{images_at}: images must be square; got {images.shape[1:]} pixels."
        )
    return images, labels


def read(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """The array of an IDX file of unsigned bytes, gzipped or plain."""
    content = _content(path)
    start = 4 + 4 * dimensions
    if content[:4] != bytes((0, 0, 8, dimensions)) or len(content) < start:
        raise ValueError(
            f"{path}: not an IDX file of bytes in {dimensions} dimensions; it begins "
            f"{content[:4].hex(' ') or 'with nothing'}."
        )
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    wanted, there = int(np.prod(shape, dtype=object)), len(content) - start
    if wanted != there:
        state = "truncated" if there < wanted else "too long"
        raise ValueError(
            f"{path}: {state}: its header says {shape}, {wanted} bytes; got {there}."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _gzipped_or_plain(folder: Path, name: str) -> Path | None:
    candidates = (folder / f"{name}.gz", folder / name)
    return next((path for path in candidates if path.is_file()), None)


def _content(path: Path) -> bytes:
    content = inputs.content(path, MAX_BYTES)
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            unpacked = packed.read(MAX_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path}: broken gzip file ({error}).") from error
    if len(unpacked) > MAX_BYTES:
        raise ValueError(f"{path}: unpacks to more than {MAX_BYTES / 2**20:g} MiB.")
    return unpacked
