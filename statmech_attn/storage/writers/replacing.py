"""Everything that is written: beside its destination first, then in its place at once.

A kill at any moment, or a disk that is full, leaves the old file or folder, or the new
one.  After a kill a hidden `.NAME.*.part` may stay beside it.
"""

import atexit
import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from statmech_attn.options import WholeNumber
from statmech_attn.storage.schema import StorageError


HERE, EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2


@contextmanager
def replaced(path: str | Path, needed: WholeNumber = 0) -> Iterator[Path]:
    """A path beside a destination, whose file or folder takes its place at the end.

    Args:
        path: destination; of a symbolic link, its target is replaced.
        needed: bytes that are to be written, for the message of a full disk.

    Raises:
        StorageError: it cannot be written; what was there stays.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replaced(Path(folder, "x.txt")) as part:
        ...         _ = part.write_text("whole")
        ...     Path(folder, "x.txt").read_text()
        'whole'
    """
    try:
        target = target_of(path)
        beside = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
        part = beside / target.name
        # A signal may end this in any line, also in the one that removes the folder.
        remove = partial(shutil.rmtree, beside, ignore_errors=True)
        atexit.register(remove)
        try:
            beside.mkdir(mode=0o700)
            yield part
            _sync(part)
            if part.is_dir():
                _put_folder(part, target, beside / ".old")
            else:
                os.chmod(part, _mode(target))
                os.replace(part, target)
        finally:
            remove()
            atexit.unregister(remove)
        sync_folder(target.parent)
    except OSError as error:
        raise unwritable(Path(path), error, needed) from None


def target_of(path: str | Path) -> Path:
    """What a path leads to through symbolic links; `OSError` where they form a loop."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def write_text(path: str | Path, text: str) -> None:
    """Write a text as a file, as UTF-8."""
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")


def require_replaceable(
    path: Path, overwrite: bool, like: Callable[[Path], bool], what: str
) -> None:
    """Refuse a destination that is there, unless it is of the kind to be written.

    `like` tells whether a file, or a folder, is of this kind, which `what` names.
    """
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise StorageError(
            f"{path}: already exists; choose another, or pass --overwrite."
        )
    if not like(path):
        raise StorageError(f"{path}: is no {what} and stays; choose another place.")


def require_new(path: str | Path) -> None:
    """Refuse a destination that is there."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def begins(path: Path, most: WholeNumber = 4096) -> str:
    """The first characters of a regular file; nothing of anything else."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(most).decode(errors="replace")


def _put_folder(part: Path, target: Path, old: Path) -> None:
    """Into place; a folder cannot be renamed over one that is not empty."""
    if not target.exists():
        os.replace(part, target)
        return
    if _exchanged(part, target):
        return
    os.replace(target, old)
    try:
        os.replace(part, target)
    except BaseException:
        os.replace(old, target)
        raise


def _exchanged(one: Path, other: Path) -> bool:
    """Swap two folders at once; whether this system and its disk can."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)  # of Linux
    if swap is None:
        return False
    return not swap(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE)


def _sync(path: Path) -> None:
    """A file, or a folder with all that is in it, to the disk."""
    if path.is_dir():
        for folder, _, files in os.walk(path):
            for name in files:
                _sync(Path(folder, name))
            sync_folder(Path(folder))
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, so that a crash does not lose them."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _mode(target: Path) -> int:
    """Permissions of the file that is replaced, or those of any new file."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def unwritable(path: Path, error: OSError, needed: WholeNumber = 0) -> StorageError:
    """One line for a failure to write; it says the space if that was missing."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        free = f"{shutil.disk_usage(path.parent).free / 2**20:.3g} MiB free"
        known = f"{needed / 2**20:.3g} MiB needed, " if needed else ""
        return StorageError(
            f"{path}: cannot be written: {os.strerror(error.errno)}: {known}{free}."
        )
    return StorageError(f"{path}: cannot be written: {error.strerror or error}.")
