"""Result files of the explorer: opened once, watched, and read a piece at a time."""

import json
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn import kinds, plotting, storage
from statmech_attn.labels import unit_of
from statmech_attn.layout import require_layout


SCANS = ("bifurcation", "diagram")  # kinds of files


class Gone(Exception):
    """A file that was opened is not there any more, or has been replaced."""


class File:
    """A result file that stays open.

    Attributes:
        path: of the file.
        dataset: what it holds, read when it is asked for.
        source: what identifies its content.
        version: counts how often it has been opened.
        lock: held while something is read.
    """

    def __init__(self, path: Path):
        self.path, self.version = path, 0
        self.lock = threading.RLock()
        self._opened = ExitStack()
        self.open()

    def open(self) -> None:
        """Open the file, again where it has been replaced."""
        with self.lock:
            self._opened.close()
            identity = _identity(self.path)
            self.dataset = self._opened.enter_context(storage.opened(self.path))
            require_layout(self.dataset, self.path)
            self.source = storage.stored_seal(self.path).decode().strip()
            self._identity = identity
            self.version += 1

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self._opened.close()

    def require_there(self) -> None:
        """Refuse a file that has been replaced or removed since it was opened."""
        identity = _identity(self.path)
        if identity is None:
            raise Gone(f"{self.path.name} has been removed.")
        if identity != self._identity:
            raise Gone(f"{self.path.name} has been replaced.")

    @property
    def kind(self) -> str:
        """Kind of study that the file is a result of."""
        return str(self.dataset.attrs.get("kind", ""))

    @property
    def axes(self) -> tuple[str, ...]:
        """The scanned parameters of a scan; none of another file."""
        if self.kind not in SCANS or "section_count" not in self.dataset:
            return ()
        dims = [str(d) for d in self.dataset.section_count.dims if d != "start"]
        if "point" in dims:
            dims = [str(d) for d in self.dataset.dims if str(d).endswith("_grid")]
            dims.sort(key=lambda name: list(self.dataset.coords).index(name))
        return tuple(name.removesuffix("_grid") for name in dims)

    @property
    def view(self) -> str:
        """What the page shows of it: "line", "plane" or "pictures"."""
        return {1: "line", 2: "plane"}.get(len(self.axes), "pictures")

    @property
    def pictures(self) -> list[str]:
        """Names of the pictures that it has."""
        row = kinds.of_file(self.kind, self.dataset.dims)
        return list(plotting.names(self.dataset)) if row and row.pictures else []

    def described(self) -> dict[str, Any]:
        """What the page needs to know of any file."""
        attributes = self.dataset.attrs
        return {
            "name": self.path.name,
            "version": self.version,
            "kind": self.kind,
            "view": self.view,
            "title": str(attributes.get("title", self.kind)),
            "study": str(attributes.get("study", "")),
            "finished": str(attributes.get("finished", "")),
            "package": str(attributes.get("package_version", "")),
            "pictures": self.pictures,
            "fixed": _fixed(self.dataset),
        }


def labelled(dataset: xr.Dataset, name: str) -> dict[str, str]:
    """Name, words, symbol and unit of a variable."""
    attributes = dataset[name].attrs
    unit, symbol = unit_of(attributes), attributes["symbol"]
    return {
        "name": name,
        "words": attributes["long_name"].partition(": values of")[0],
        "symbol": plotting.plain(f"${symbol}$") if "\\" in symbol else symbol,
        "unit": "" if unit == "1" else unit.replace(" / ", "/"),
    }


def finite(value: Any) -> float | str | None:
    """A number as JSON has it: infinite ones in words, none where there is none."""
    number = float(value)
    if np.isnan(number):
        return None
    return number if np.isfinite(number) else ("-∞" if number < 0 else "∞")


def rounded(values: Any) -> list[float | None]:
    """Numbers of seven digits, as JSON has them; none where one is not finite."""
    numbers = np.asarray(values, float)
    return [float(f"{x:.7g}") if np.isfinite(x) else None for x in numbers]


def cell_edges(centres: np.ndarray) -> np.ndarray:
    """Edges of the cells around values in order, half way between neighbours."""
    if len(centres) == 1:
        return centres[0] + np.array([-0.5, 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    ends = 2 * centres[[0, -1]] - middle[[0, -1]]
    return np.concatenate([ends[:1], middle, ends[1:]])


def packed(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """A header and arrays in one message; page/packed.js reads it.

    Its length in 4 bytes, the header as JSON with type, shape and place of every array,
    filled up with blanks to a multiple of 8, and the arrays, each filled up likewise.
    """
    bodies, place = [], 0
    listed = {}
    for name, array in arrays.items():
        body = np.ascontiguousarray(array).tobytes()
        listed[name] = {
            "type": array.dtype.name,
            "shape": array.shape,
            "place": place,
            "size": array.size,
        }
        bodies.append(body + b"\0" * (-len(body) % 8))
        place += len(bodies[-1])
    text = json.dumps(header | {"arrays": listed}, ensure_ascii=False).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return len(text).to_bytes(4, "little") + text + b"".join(bodies)


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _fixed(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """Parameters that have one value."""
    return [
        labelled(dataset, str(name)) | {"value": finite(value)}
        for name, value in dataset.coords.items()
        if value.ndim == 0 and np.issubdtype(value.dtype, np.number)
    ]
