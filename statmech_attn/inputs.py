"""Files that a user names: regular ones, and no more of them than was expected.

Reading a FIFO waits for ever, a device may have no end: both are refused unread.
"""

import errno
import hashlib
import os
import stat
from pathlib import Path


def require_regular(path: str | Path) -> os.stat_result:
    """What the system knows of a regular file."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path}: is not a regular file.")
    return status


def content(path: str | Path, most: int) -> bytes:
    """All bytes of a regular file that holds `most` of them at most."""
    require_regular(path)
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"{path}: is larger than {most / 2**20:g} MiB.")
    return data


def sha256(path: str | Path) -> str:
    """SHA-256 of a regular file."""
    require_regular(path)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_unicode(path: str | Path) -> None:
    """Refuse a path that no result file could hold in its study or command."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{path}: paths must be UTF-8; rename it.") from None
