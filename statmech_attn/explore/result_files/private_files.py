"""Files that only the user of this process can read or write."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path


REDIRECT = (
    '<!doctype html><meta charset="utf-8"><title>statmech_attn</title>'
    '<meta http-equiv="refresh" content="0; url={0}"><a href="{0}">the explorer</a>\n'
)


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
