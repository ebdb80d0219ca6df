"""One zip of Omniglot: FOLDER/ALPHABET/characterNN/NNNN_DD.png.

NN numbers the character within its alphabet, NNNN within all, DD is the drawer.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from statmech_attn.tasks.pictures import decoded, resized


_MEMBER = re.compile(
    r"(?:.*/)?(?P<name>[^/]+/character\d+)/\d+_(?P<drawer>\d+)\.png", re.ASCII
)


def characters(
    path: Path, size: int
) -> Iterator[tuple[str, Float32[np.ndarray, "D S S"]]]:
    """Name and drawings of each character, sorted; bright strokes on dark.

    Each image is resized as it is read, so that the full set stays small in memory.
    """
    try:
        with zipfile.ZipFile(path) as opened:
            for name, members in sorted(_layout(path, opened.namelist()).items()):
                drawings = [_drawing(path, opened, m, size) for m in members]
                yield name, _inverted(drawings)
    except (zipfile.BadZipFile, OSError) as error:
        raise ValueError(f"{path}: not a readable zip ({error}); fetch it anew.") from (
            error
        )


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
                f"{path}: {member} and {drawings[drawer]} are the same drawing."
            )
        drawings[drawer] = member
    if not by_name:
        raise ValueError(f"{path}: no ALPHABET/characterNN/NNNN_DD.png in this zip.")
    return {
        name: [drawings[drawer] for drawer in sorted(drawings)]
        for name, drawings in by_name.items()
    }


def _drawing(path: Path, opened: zipfile.ZipFile, member: str, size: int):
    try:
        return resized(255 - decoded(opened.read(member)), size)
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path}: {member}: {error}; fetch the zip anew.") from error


def _inverted(drawings) -> Float32[np.ndarray, "D S S"]:
    return np.asarray(drawings, np.float32) / np.float32(255)
