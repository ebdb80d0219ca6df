"""Files that only the user of this process can read or write."""

import atexit
import os
import secrets
import shutil
import tempfile
from functools import cache
from pathlib import Path

from statmech_attn.batches import runtime


SECRET = 32  # bytes
REDIRECT = (
    '<!doctype html><meta charset="utf-8"><title>statmech_attn</title>'
    '<meta http-equiv="refresh" content="0; url={0}"><a href="{0}">the explorer</a>\n'
)


@cache
def secret() -> bytes:
    """What seals files that this user makes, and that nobody else can know.

    It is kept in the user's cache; where none can be kept, this process has its own.
    """
    path = runtime.cache_folder() / "secret"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(SECRET))
        status, content = path.stat(), path.read_bytes()
    except OSError:
        return secrets.token_bytes(SECRET)
    ours = status.st_uid == os.getuid() and not status.st_mode & 0o077
    complete = len(content) == SECRET
    return content if ours and complete else secrets.token_bytes(SECRET)


def redirect(address: str) -> Path:
    """A page that leads the browser to an address, removed when this process ends.

    The command line of a browser is seen by everybody on the computer, and the address
    holds the token that opens the explorer; the file that stands there instead is
    readable by its user alone.
    """
    folder = temporary_folder()
    page = folder / "explorer.html"
    with os.fdopen(os.open(page, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(REDIRECT.format(address))
    return page


def temporary_folder() -> Path:
    """A folder of mode 0700 that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
