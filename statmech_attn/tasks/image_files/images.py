"""Images by class from the files of their publishers (docs/theory/one_shot.md, 2).

Omniglot: zips with ALPHABET/characterNN/NNNN_DD.png, black strokes on white, 105 x 105.
MNIST and FashionMNIST: IDX files, plain or gzipped, bright on dark, 28 x 28.  What is
returned is bright on dark, in [0, 1], resized with Pillow's bilinear filter.

    images            (C, D, S, S)     C classes of D drawings           `images`
    names             (C,)             "Greek/character01", "0", "1"     `names`
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from statmech_attn.tasks.image_files import idx, omniglot_zip
from statmech_attn.tasks.image_files.downloads import SOURCES
from statmech_attn.tasks.image_files.pictures import resized
from statmech_attn.tasks.image_files.splits import (
    ALPHABETS,
    PARTS,
    SplitTable,
    table,
    zip_of,
)


SMALL_ZIPS = (*SOURCES["omniglot-small"].digests,)
OMNIGLOT_ZIPS = (*SOURCES["omniglot"].digests, *SMALL_ZIPS)
ORIENTATIONS = 8  # of a turned class
ELSEWHERE = {name: SOURCES[name].folder for name in ("mnist", "fashion-mnist")}


class ImageClasses(NamedTuple):
    """Images of C classes, D of each; float32 in [0, 1], bright strokes on dark."""

    names: tuple[str, ...]
    images: Float[np.ndarray, "C _D S S"]


class Split(NamedTuple):
    """Classes for training, for choices of settings and for tests; no class twice."""

    train: ImageClasses
    validation: ImageClasses
    test: ImageClasses


def data_folder() -> Path:
    """Folder of the image data: the environment variable STATMECH_ATTN_DATA."""
    named = os.environ.get("STATMECH_ATTN_DATA")
    if not named or not Path(named).is_dir():
        reason = f"there is no folder {named}" if named else "it is not set"
        raise ValueError(
            f"image data: STATMECH_ATTN_DATA must name their folder; {reason}. "
            f"{_how_to_get('omniglot mnist fashion-mnist', 'FOLDER')}"
        )
    return Path(named)


def files(folder: str | Path, names: Iterable[str] = ()) -> list[Path]:
    """The files that `omniglot`, and `elsewhere` for `names`, read in a data folder."""
    place = Path(folder)
    paths = _zips(_omniglot(folder))
    for name in names:
        for prefix in ("t10k", "train"):
            paths += idx.files(place / ELSEWHERE[name], prefix)
    return paths


def omniglot(folder: str | Path, *, size: int = 32) -> ImageClasses:
    """The characters in all Omniglot zips of `folder`/omniglot, sorted by name.

    A class that is in several zips is taken once; they must agree on it.

    Args:
        folder: the data folder; any of `OMNIGLOT_ZIPS` in its folder omniglot.
        size: S, pixels of a side after resizing.

    Raises:
        ValueError: no zip, a damaged one, or two that differ in a class.

    Example:
        `omniglot("images", size=32).images.shape  # (1623, 20, 32, 32)`
    """
    place = _omniglot(folder)
    zips = _zips(place)
    if not zips:
        raise ValueError(
            f"omniglot: none of {', '.join(OMNIGLOT_ZIPS)} is in {place}. "
            f"{_how_to_get('omniglot', folder)}"
        )
    _check_size(size)
    characters: dict[str, np.ndarray] = {}
    for path in zips:
        for name, drawings in omniglot_zip.characters(path, size):
            if not np.array_equal(characters.setdefault(name, drawings), drawings):
                raise ValueError(
                    f"{path}: {name} differs from the same class in another zip of "
                    f"{place}; remove the zip that is not the published one."
                )
    return _stacked(place, characters)


def split(classes: ImageClasses, name: str | SplitTable) -> Split:
    """Divide Omniglot's classes into training, validation and test.

    Args:
        classes: all classes, as `omniglot` reads them.
        name: "small" (by alphabet, the 8 alphabets of the two small zips), "vinyals"
            (the published lists), or a table of lists "train", "validation", "test"
            whose entries are alphabets or single classes.

    Raises:
        ValueError: no such split, a class that is not there, or one in two parts.

    Example:
        >>> import numpy as np
        >>> names = ("Greek/character01", "Latin/character01", "Latin/character02")
        >>> classes = ImageClasses(names, np.zeros((3, 2, 4, 4), np.float32))
        >>> lists = dict(train=["Greek"], test=["Latin/character01"])
        >>> lists["validation"] = ["Latin/character02"]
        >>> split(classes, lists).test.names
        ('Latin/character01',)
    """
    lists = table(name)
    small = isinstance(name, str) and name == "small"
    parts = [_members(classes.names, lists[part], small) for part in PARTS]
    together = [row for rows in parts for row in rows]
    if len(set(together)) < len(together):
        twice = {classes.names[row] for row in together if together.count(row) > 1}
        raise ValueError(f"split: {', '.join(sorted(twice))} would be in two parts.")
    return Split(*(_take(classes, rows) for rows in parts))


def turned(classes: ImageClasses) -> ImageClasses:
    """Eight classes of each: turned by quarters, and mirrored and turned.

    The upright ones come first.
    """
    names, images = [], []
    for number in range(ORIENTATIONS):
        mirrored, quarters = divmod(number, 4)
        mirrored_images = classes.images[..., ::-1] if mirrored else classes.images
        images.append(np.rot90(mirrored_images, quarters, axes=(2, 3)))
        words = " mirrored" * mirrored + f" turned {90 * quarters}" * bool(quarters)
        names += [name + words for name in classes.names]
    return ImageClasses(tuple(names), np.concatenate(images))


def elsewhere(
    folder: str | Path, name: str, *, size: int = 32
) -> tuple[ImageClasses, ImageClasses]:
    """Classes 0 and 1 of another data set: images for supports, images for queries.

    Supports come from the training files, queries from the test files.  Where only the
    test files are there, the first half of each class's images are supports and the
    second half queries.  Both classes are cut to the smaller one's count.

    Args:
        folder: the data folder, with mnist/ or fashion_mnist/.
        name: "mnist" or "fashion-mnist".
        size: S, pixels of a side after resizing.

    Raises:
        ValueError: another name, files that are missing or damaged, or too few images.

    Example:
        `support, query = elsewhere("images", "mnist")`
    """
    if name not in ELSEWHERE:
        allowed = " or ".join(f'"{known}"' for known in ELSEWHERE)
        raise ValueError(f"elsewhere must be {allowed}; got {name!r}.")
    _check_size(size)
    place = Path(folder) / ELSEWHERE[name]
    test = idx.labelled(place, "t10k")
    if test is None:
        raise ValueError(
            f"{name}: no t10k-images-idx3-ubyte(.gz) in {place}. "
            f"{_how_to_get(name, folder)}"
        )
    train = idx.labelled(place, "train")
    queries = _two_classes(place, *test)
    if train is not None:
        supports = _two_classes(place, *train)
    else:
        halves = [np.array_split(images, 2) for images in queries]
        supports, queries = zip(*halves)
    return _resized_pair(supports, size), _resized_pair(queries, size)


def digest(classes: ImageClasses) -> str:
    """SHA-256 of names, shape and pixels."""
    pixels = np.ascontiguousarray(classes.images, "<f4")
    head = "\n".join([*classes.names, str(pixels.shape)])
    return hashlib.sha256(head.encode() + b"\0" + pixels.tobytes()).hexdigest()


def _omniglot(folder: str | Path) -> Path:
    return Path(folder) / SOURCES["omniglot"].folder


def _zips(place: Path) -> list[Path]:
    return [place / name for name in OMNIGLOT_ZIPS if (place / name).is_file()]


def _how_to_get(names: str, folder) -> str:
    return f"Download: statmech-attn download {names} --data {folder}"


def _check_size(size: int) -> None:
    if size < 1:
        raise ValueError(f"size must be at least 1 pixel of a side; got {size}.")


def _stacked(place: Path, characters: dict[str, np.ndarray]) -> ImageClasses:
    """All classes as one array; they must have as many drawings."""
    names = sorted(characters)
    counts = [len(characters[name]) for name in names]
    usual = max(sorted(set(counts), reverse=True), key=counts.count)
    for name, count in zip(names, counts):
        if count != usual:
            raise ValueError(
                f"{place}: {name} has {count} drawings, the others {usual}; "
                "is a file missing?"
            )
    return ImageClasses(tuple(names), np.stack([characters[name] for name in names]))


def _members(names: Iterable[str], entries, small: bool) -> list[int]:
    """Rows of the classes that the entries name, in the order of the classes."""
    rows: set[int] = set()
    for entry in entries:
        members = {
            row
            for row, name in enumerate(names)
            if name == entry or name.startswith(f"{entry}/")
        }
        if not members:
            raise ValueError(_missing(names, entry, small))
        rows |= members
    return sorted(rows)


def _missing(names: Iterable[str], entry: str, small: bool) -> str:
    """Message for a class that is missing: in which published file it is, if in any."""
    alphabet = entry.split("/")[0]
    there = any(name.startswith(f"{alphabet}/") for name in names)
    if there or alphabet not in ALPHABETS:
        return f"split: there is no such alphabet or class: {entry}."
    zips, data = zip_of(entry), "omniglot"
    if small:
        zips, data = " or ".join(SMALL_ZIPS), "omniglot-small"
    return (
        f"split: {entry} is not among the classes; it is in {zips}. "
        f"{_how_to_get(data, 'FOLDER')}"
    )


def _take(classes: ImageClasses, rows: list[int]) -> ImageClasses:
    return ImageClasses(tuple(classes.names[row] for row in rows), classes.images[rows])


def _two_classes(place: Path, images, labels) -> list[np.ndarray]:
    """Images of classes 0 and 1, in the order of the file."""
    both = [images[labels == label] for label in (0, 1)]
    for label, members in enumerate(both):
        if len(members) < 2:
            raise ValueError(
                f"{place}: class {label} needs two or more images; got {len(members)}."
            )
    return both


def _resized_pair(both, size: int) -> ImageClasses:
    count = min(len(images) for images in both)
    pixels = [[resized(image, size) for image in images[:count]] for images in both]
    return ImageClasses(("0", "1"), np.asarray(pixels, np.float32) / np.float32(255))
