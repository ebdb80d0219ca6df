"""The explorer from the command line, and in a notebook."""

import html
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from statmech_attn import extras, storage
from statmech_attn.explore.result_files import private_files


try:
    import uvicorn

    from statmech_attn.explore.serving.connections import Patient
    from statmech_attn.explore.serving.guard import HOST
    from statmech_attn.explore.serving.server import Server
except ModuleNotFoundError as error:
    needed = extras.needed("explore", str(error.name), "explore")
    raise ModuleNotFoundError(needed, name=error.name) from None


HEIGHT = 760  # pixels of a cell in a notebook
FRAME = (
    '<iframe src="{}" title="explorer" width="100%" height="{}" '
    'style="border:1px solid #ccc"></iframe>'
)


class Explorer:
    """A page of result files, served by a thread of this process until it is closed.

    Args:
        paths: of the files.
        port: of this computer; a free one when 0.
        allow_code: whether code that the studies of the files name may run.
        framed: whether a notebook on this computer may show the page in a cell.
        warm: compile what a click needs before anyone clicks.

    Raises:
        StorageError: a file that is not there, or no HDF5 file.
        ValueError: a port that is taken.

    Attributes:
        address: of the page, with the token that opens it.

    Example:
        `with Explorer(["scan.h5"]) as explorer: print(explorer.address)`
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        port: int = 0,
        allow_code: bool = False,
        framed: bool = False,
        warm: bool = True,
    ):
        paths = [Path(path) for path in paths]
        for path in paths:
            storage.require_hdf5(path)
        self._server = Server(paths, allow_code=allow_code, framed=framed, warm=warm)
        self._socket = _listening(port)
        self._server.port = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self._server.app,
            http=Patient,
            ws="none",
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        self._web = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._web.run, args=([self._socket],), daemon=True
        )
        self._thread.start()
        while not self._web.started and self._thread.is_alive():
            time.sleep(0.01)
        self._server.prepare()
        self.address = self._server.address

    def wait(self) -> None:
        """Wait until the server ends, such as by Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.2)

    def redirect(self) -> Path:
        """A file for the user alone that leads a browser to the page.

        Returns:
            Its path, which unlike the address may stand on a command line.
        """
        return private_files.redirect(self.address)

    def close(self) -> None:
        """End the server and what it computes."""
        self._web.should_exit = True
        self._server.close()
        self._thread.join(10)
        self._socket.close()

    def __enter__(self) -> "Explorer":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return FRAME.format(html.escape(self.address), HEIGHT)


def explore(*paths: str | Path, allow_code: bool = False) -> Explorer:
    """Show result files in a cell of a notebook, or give the address of their page.

    Args:
        paths: of the files.
        allow_code: run the code that the studies of the files name, if they name any.

    Returns:
        `Explorer`, which a notebook shows as the page; `close()` ends it.

    Raises:
        StorageError: a file that is not there, or no HDF5 file.
        ValueError: no file is given.

    Example:
        `statmech_attn.explore("scan.h5")` in the last line of a cell.
    """
    if not paths:
        raise ValueError("explore() takes the path of a result file, or several.")
    return Explorer(paths, allow_code=allow_code, framed=True)


def _listening(port: int) -> socket.socket:
    """A socket of the loopback address."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((HOST, port))
    except (OSError, OverflowError) as error:
        opened.close()
        reason = getattr(error, "strerror", None) or "it is no port"
        raise ValueError(f"--port {port}: {reason}.") from None
    return opened
