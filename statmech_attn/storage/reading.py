"""Reading files back, with one clear line for each way in which a file can be wrong."""

import json
import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast, NamedTuple

import h5py
import numpy as np
import psutil
import xarray as xr

from statmech_attn.inputs import require_regular
from statmech_attn.labels import unit_of
from statmech_attn.storage.plain import require_plain
from statmech_attn.storage.schema import (
    PROVENANCE,
    REQUIRED,
    SCHEMA,
    SCHEMA_VERSION,
    SEAL,
    SEAL_LENGTH,
    seal_of,
    StorageError,
)


UNRECORDED = ("git_describe", "started")  # in some files
NOT_TEXTS = ("schema_version", "keys", "versions", "environment", "elapsed", "busy")


class VariableInfo(NamedTuple):
    """What is known of a variable without reading its data.

    Attributes:
        dims: names of the dimensions.
        shape: length of each.
        dtype: type of the numbers.
        long_name: meaning, in words.
        units: of the numbers.
        symbol: that figures show.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    long_name: str
    units: str
    symbol: str


class Info(NamedTuple):
    """What a file is and how it was made; None where it was not recorded.

    Attributes:
        path: of the file.
        size_bytes: its size.
        schema_version: version of the layout of the file.
        kind: kind of study.
        study: text of the study, TOML.
        study_sha256: digest of the canonical study.
        keys: random keys by name.
        package_version: version of this package.
        git_describe: state of its repository.
        versions: of the packages that it used, by name.
        platform: operating system and processor.
        backend: of JAX.
        device_kind: name of the device.
        dtype: of the numbers.
        environment: everything that may change the last bit.
        started: UTC time at which the run began.
        finished: UTC time at which the file was written.
        elapsed: wall time of the run, seconds.
        busy: time of all workers together, seconds.
        command: that was typed.
        attributes: all other attributes.
        variables: what the file holds, by name.
    """

    path: str
    size_bytes: int
    schema_version: int
    kind: str
    study: str
    study_sha256: str
    keys: dict[str, Any]
    package_version: str
    git_describe: str | None
    versions: dict[str, str]
    platform: str
    backend: str
    device_kind: str
    dtype: str
    environment: dict[str, str]
    started: str | None
    finished: str
    elapsed: float | None
    busy: float | None
    command: str
    attributes: dict[str, Any]
    variables: dict[str, VariableInfo]


def read(path: str | Path) -> xr.Dataset:
    """Load a whole file and verify it; nothing stays open.

    Args:
        path: result file.

    Returns:
        The data set, with its provenance as attributes.

    Raises:
        StorageError: missing, not HDF5, damaged, foreign, from a newer schema, or
            larger than the memory that is free.

    Example:
        >>> import xarray as xr
        >>> import tempfile
        >>> from statmech_attn.storage import write
        >>> words = {"long_name": "position", "units": "m", "symbol": "x"}
        >>> dataset = xr.Dataset({"x": ("t", [1.0, 2.0], words)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(f"{folder}/x.h5", dataset, study='kind = "example"')
        ...     read(f"{folder}/x.h5").attrs["study"]
        'kind = "example"'
    """
    with _guarded(path), _open(path) as dataset:
        _require_memory(path, dataset)
        loaded = dataset.load()
    for variable in loaded.variables.values():
        variable.encoding = {}
    return loaded


def require_readable(path: str | Path) -> None:
    """Refuse what is none of this package's files, or cannot be read, seal or not.

    Only its user vouches for the file: damage may end the process.
    """
    with _guarded(path), _open(path, sealed=False) as dataset:
        _texts(dataset.attrs)
        dataset.load()


@contextmanager
def opened(path: str | Path) -> Iterator[xr.Dataset]:
    """A file as a data set that reads what is asked for, when it is asked for.

    The whole file is verified when it is opened.

    Args:
        path: result file.

    Raises:
        StorageError: as `read`, of whatever size.

    Example:
        >>> with opened("scan.h5") as scan:  # doctest: +SKIP
        ...     largest = scan.lyapunov.isel(exponent=0).max().item()
    """
    with _guarded(path):
        dataset = _open(path)
    with dataset:
        yield dataset


def info(path: str | Path) -> Info:
    """What a file is and how it was made.

    The whole file is verified, a piece at a time; of its content the attributes only
    are interpreted.

    Args:
        path: result file.

    Returns:
        `Info`: kind, study, sizes, versions and variables.

    Raises:
        StorageError: as `read`, of whatever size.

    Example:
        >>> import xarray as xr
        >>> import tempfile
        >>> from statmech_attn.storage import write
        >>> words = {"long_name": "position", "units": "m", "symbol": "x"}
        >>> dataset = xr.Dataset({"x": ("t", [1.0, 2.0], words)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(f"{folder}/x.h5", dataset, study='kind = "example"')
        ...     info(f"{folder}/x.h5").kind
        'example'
    """
    with _guarded(path), _open(path) as dataset:
        attributes = dict(dataset.attrs)
        variables = {str(n): _variable_info(n, v) for n, v in dataset.variables.items()}
        _text_table({"inputs": "{}"} | attributes, "inputs")
        return Info(
            path=str(path),
            size_bytes=Path(path).stat().st_size,
            schema_version=int(attributes["schema_version"]),
            keys=_table(attributes, "keys"),
            versions=_text_table(attributes, "versions"),
            environment=_text_table({"environment": "{}"} | attributes, "environment"),
            elapsed=_number(attributes, "elapsed"),
            busy=_number(attributes, "busy"),
            attributes={k: v for k, v in attributes.items() if k not in PROVENANCE},
            variables=variables,
            **cast(dict[str, Any], _texts(attributes)),
        )


def _number(attributes: dict[str, Any], name: str) -> float | None:
    value = attributes.get(name)
    with suppress(TypeError, ValueError):
        if value is None or np.isfinite(value := float(value)):
            return value
    raise ValueError(f"its attribute {name} is no number")


def _texts(attributes: dict[str, Any]) -> dict[str, str | None]:
    names = [n for n in PROVENANCE if n in Info._fields and n not in NOT_TEXTS]
    texts = {name: attributes.get(name) for name in names}
    for name, text in texts.items():
        if not isinstance(text, str) and not (text is None and name in UNRECORDED):
            raise ValueError(f"its attribute {name} is no text")
    return texts


def _table(attributes: dict[str, Any], name: str) -> dict[str, Any]:
    try:
        table = json.loads(attributes.get(name, ""))
    except (TypeError, ValueError):
        table = None
    if not isinstance(table, dict):
        raise ValueError(f"its attribute {name} is no table")
    return table


def _text_table(attributes: dict[str, Any], name: str) -> dict[str, str]:
    table = _table(attributes, name)
    if not all(isinstance(value, str) for value in table.values()):
        raise ValueError(f"its attribute {name} is no table of texts")
    return table


def _variable_info(name: Hashable, variable: xr.Variable) -> VariableInfo:
    attrs, dims = variable.attrs, tuple(map(str, variable.dims))
    for label in REQUIRED:
        if not isinstance(attrs.get(label), str):
            raise ValueError(f"variable {name} has no attribute {label} that is a text")
    kind = "text" if variable.dtype.kind in "UOT" else variable.dtype.name
    words = attrs["long_name"], unit_of(attrs), attrs["symbol"]
    return VariableInfo(dims, variable.shape, kind, *words)


@contextmanager
def _guarded(path: str | Path) -> Iterator[None]:
    """One line for whatever goes wrong on reading."""
    try:
        yield
    except StorageError:
        raise
    except MemoryError:
        raise StorageError(f"{path}: does not fit into memory.") from None
    except Exception as error:  # HDF5 reports damage by many types of exception
        raise _damaged(path, error) from error


def _require_memory(path: str | Path, dataset: xr.Dataset) -> None:
    free = psutil.virtual_memory().available
    if dataset.nbytes > free:
        raise StorageError(
            f"{path}: holds {dataset.nbytes / 2**30:.3g} GiB and {free / 2**30:.3g} "
            "GiB of memory are free; storage.opened reads only what is asked for."
        )


def _open(path: str | Path, sealed: bool = True) -> xr.Dataset:
    """Refuse what is not a whole file of this package before xarray interprets it."""
    require_hdf5(path)
    if sealed:
        _verify_seal(path)
    with h5py.File(path, "r") as file:
        schema, version = (_listed(file, n) for n in ("schema", "schema_version"))
        if schema not in _SCHEMAS or list(map(type, version)) != [int]:
            raise StorageError(
                f"{path}: is an HDF5 file that statmech-attn did not write."
            )
        if version[0] > SCHEMA_VERSION:
            raise StorageError(
                f"{path}: has schema version {version[0]}, this statmech-attn reads up "
                f"to {SCHEMA_VERSION}; upgrade statmech-attn."
            )
        require_plain(file)
    dataset = xr.open_dataset(path, engine="h5netcdf", cache=False)
    for name, variable in dataset.variables.items():
        _variable_info(name, variable)
        if variable.dtype.kind == "O":  # characters, which xarray makes objects of
            dataset[name] = variable.astype(str)
    return dataset


_SCHEMAS = ([SCHEMA], [SCHEMA.encode()])  # as texts, and as characters


def require_hdf5(path: str | Path) -> None:
    """Refuse what is no HDF5 file."""
    try:
        require_regular(path)
        with open(path, "rb"):
            is_hdf5 = h5py.is_hdf5(path)
    except OSError as error:
        reason = error.strerror or str(error).removeprefix(f"{path}: ").rstrip(".")
        raise StorageError(f"{path}: cannot be read: {reason}.") from None
    if not is_hdf5:
        raise StorageError(f"{path}: is not an HDF5 file.")


def _listed(file: h5py.File, name: str) -> list:
    """An attribute; netCDF-4 makes arrays of one element of single numbers."""
    return np.ravel(file.attrs.get(name, "")).tolist()


def is_own(path: str | Path) -> bool:
    """Whether this package wrote a file, be it damaged: it ends with a seal."""
    try:
        require_regular(path)
        return stored_seal(path).startswith(SEAL)
    except OSError:
        return False


def stored_seal(path: str | Path) -> bytes:
    """The last line of a file of this package, which no other file has."""
    with open(path, "rb") as file:
        return _last_line(file)


def _last_line(file: BinaryIO) -> bytes:
    file.seek(max(os.fstat(file.fileno()).st_size - SEAL_LENGTH, 0))
    return file.read()


def _verify_seal(path: str | Path) -> None:
    """Refuse damage before HDF5 sees it, on which it may loop forever or crash."""
    with open(path, "rb") as file:
        stored = _last_line(file)
        if not stored.startswith(SEAL):
            raise StorageError(
                f"{path}: was opened for changes by another program, is truncated or "
                "damaged, or is a file that statmech-attn did not write: it has no "
                "seal; statmech-attn repair reads it and seals it as it is."
            )
        if stored != seal_of(file, file.tell() - SEAL_LENGTH):
            raise StorageError(f"{path}: is damaged: its checksum does not match.")


def _damaged(path: str | Path, error: Exception) -> StorageError:
    if isinstance(error, BlockingIOError) or "unable to lock file" in str(error):
        return StorageError(f"{path}: another program has locked it; read it later.")
    lacks = f"something has no {error}" if isinstance(error, KeyError) else ""
    reason = lacks or _in_one_line(str(error)) or type(error).__name__
    return StorageError(f"{path}: is truncated or damaged ({reason}).")


def _in_one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))[:200]
