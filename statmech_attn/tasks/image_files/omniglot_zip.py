"""One zip of Omniglot: FOLDER/ALPHABET/characterNN/NNNN_DD.png.

NN numbers the character within its alphabet, NNNN within all, DD is the drawer.
"""

import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from statmech_attn.reporting import visible
from statmech_attn.tasks.image_files.pictures import decoded, pillow, resized


_MEMBER = re.compile(
    r"(?:.*/)?(?P<name>[^/]+/character\d+)/\d+_(?P<drawer>\d{1,9})\.png", re.ASCII
)

MAX_PIXELS = 2**27  # of a character; the published ones have 20 drawings of 105 x 105
MAX_BYTES = 2**20  # of a drawing; the published ones have some hundred
MIDDLE = 128  # grey; the darkest published drawing has a mean of 207
# An encrypted member is a RuntimeError.
_UNREADABLE = (
    zipfile.BadZipFile,
    EOFError,
    lzma.LZMAError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)


def characters(
    path: Path, size: int
) -> Iterator[tuple[str, Float32[np.ndarray, "D S S"]]]:
    """Name and drawings of each character, sorted; bright strokes on dark.

    Each image is resized as it is read, so that the full set stays small in memory.
    """
    pillow()
    side = None
    with _opened(path) as opened:
        for name, members in sorted(_layout(path, opened.namelist()).items()):
            bright = []
            for member in members:
                values = _drawing(path, opened, member)
                side = side or len(values)
                said = _wrong(values, side, len(members))
                if said:
                    raise ValueError(
                        f"{path}: {_shown(member)}: {said}; fetch the zip anew."
                    )
                bright.append(resized(255 - values, size))
            yield name, np.asarray(bright, np.float32) / np.float32(255)


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _UNREADABLE as error:
        said = f"{path}: no readable zip ({error}); fetch it anew."
        raise ValueError(said) from error


def _layout(path: Path, members: list[str]) -> dict[str, list[str]]:
    """Members by character, in the order of the drawers."""
    by_name: dict[str, dict[int, str]] = {}
    for member in members:
        match = _MEMBER.fullmatch(member)
        if match is None or member.startswith("__MACOSX/"):
            continue
        drawings = by_name.setdefault(match["name"], {})
        drawer = int(match["drawer"])
        if drawer in drawings:
            raise ValueError(
                f"{path}: {_shown(member)} and {_shown(drawings[drawer])} are the same "
                "drawing."
            )
        drawings[drawer] = member
    if not by_name:
        raise ValueError(f"{path}: no ALPHABET/characterNN/NNNN_DD.png in this zip.")
    return {
        name: [drawings[drawer] for drawer in sorted(drawings)]
        for name, drawings in by_name.items()
    }


def _drawing(path: Path, opened: zipfile.ZipFile, member: str):
    try:
        if opened.getinfo(member).file_size > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES / 2**20:g} MiB")
        return decoded(opened.read(member))
    except _UNREADABLE as error:
        raise ValueError(
            f"{path}: {_shown(member)}: {error}; fetch the zip anew."
        ) from error


def _wrong(values: np.ndarray, side: int, count: int) -> str:
    """What is wrong with one of so many drawings of a character, in words."""
    if len(values) != side:
        return f"{len(values)} pixels a side, the others {side}"
    if count * side**2 > MAX_PIXELS:
        return f"{count} drawings of {side} pixels a side, more than are read"
    if values.min() == values.max():
        return "nothing is drawn"
    inverted = "more ink than paper; published drawings are black (0) on white (255)"
    return inverted if values.mean() < MIDDLE else ""


def _shown(member: str) -> str:
    return visible(member if len(member) < 80 else f"{member[:40]}…{member[-30:]}")
