"""SHA-256 of what a study reads beside its own text."""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from statmech_attn import inputs, tasks


def of_file(path: Path) -> str:
    """Digest of the content of a file, which is read again only when it has changed."""
    about = inputs.require_regular(path)
    return _of_content(path.resolve(), about.st_mtime_ns, about.st_size)


def of_values(values: Mapping[str, Any]) -> str:
    """Digest of numbers and words by name, in any order."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def of_images(elsewhere: Iterable[str]) -> dict[str, str]:
    """Of the files of `image_files`, as "omniglot/NAME.zip"."""
    paths = image_files(elsewhere)
    folder = tasks.images.data_folder() if paths else Path()
    return {path.relative_to(folder).as_posix(): of_file(path) for path in paths}


def image_files(elsewhere: Iterable[str]) -> list[Path]:
    """The image files that are read for a one-shot task.

    None without a data folder: a result can be read where its images are not.
    `elsewhere` are data sets beside Omniglot.
    """
    try:
        folder = tasks.images.data_folder()
    except ValueError:
        return []
    return tasks.images.files(folder, elsewhere)


@functools.lru_cache(maxsize=64)
def _of_content(path: Path, changed: int, size: int) -> str:
    return inputs.sha256(path)
