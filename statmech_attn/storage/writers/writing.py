"""Atomic writing: a kill at any moment leaves the old file or the new one.

A temporary file in the destination's folder is filled and sealed, flushed to disk, read
back and verified, and only then renamed over the destination.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.inputs import require_unicode
from statmech_attn.options import NotNegative
from statmech_attn.storage.changes import in_one_line, study_differences
from statmech_attn.storage.columns import Column, storage_options
from statmech_attn.storage.provenance import provenance
from statmech_attn.storage.reading import info, is_own, opened, require_readable
from statmech_attn.storage.schema import (
    is_text,
    PROVENANCE,
    same_study,
    seal_of,
    StorageError,
    validate,
)
from statmech_attn.storage.writers.replacing import replaced, target_of, unwritable
from statmech_attn.storage.writers.streaming import DIFFERS, needed, write_content


def write(
    path: str | Path,
    dataset: xr.Dataset,
    *,
    study: str,
    kind: str | None = None,
    keys: Mapping[str, Any] | None = None,
    started: datetime | None = None,
    elapsed: NotNegative | None = None,
    busy: NotNegative | None = None,
    overwrite: bool = False,
    columns: Mapping[str, Column] = {},
) -> None:
    """Write a data set with its provenance; folders on the way are made.

    Args:
        path: destination, conventionally `.h5`.
        dataset: every variable has `long_name`, `units` and `symbol`; provenance that
            it carries from another file is written anew.
        study: the full TOML text of the study.
        kind: what the file is; the study's own `kind` when omitted.
        keys: random keys or seeds by name.
        started: when the computation began, see `now`.
        elapsed: seconds that it took, by a clock that is never set, such as
            `time.monotonic`.
        busy: seconds that its workers took, added up.
        overwrite: replace a file of this package, whatever it holds.  One of the same
            study is always replaced.
        columns: more variables, by name, which are read and written block by block.

    Raises:
        ValueError: the data set, a column or the study cannot be stored.
        StorageError: the destination is taken, cannot be written, or the disk is full.

    Example:
        >>> import xarray as xr
        >>> import tempfile
        >>> from statmech_attn.storage import read
        >>> words = {"long_name": "position", "units": "m", "symbol": "x"}
        >>> dataset = xr.Dataset({"x": ("t", [1.0, 2.0], words)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(f"{folder}/x.h5", dataset, study='kind = "example"')
        ...     read(f"{folder}/x.h5").x.values.tolist()
        [1.0, 2.0]
    """
    path = Path(path)
    check_output(path, study=study, overwrite=overwrite)
    validate(_whole(dataset, columns))
    attributes = {k: v for k, v in dataset.attrs.items() if k not in PROVENANCE}
    attributes |= provenance(
        study,
        kind=kind,
        keys=keys,
        started=started,
        elapsed=elapsed,
        busy=busy,
        history=dataset.attrs.get("history", ""),
    )
    dataset = _stored_form(dataset, attributes)
    # The destination may be a symbolic link: its target is replaced, not the link.
    target = Path(os.path.realpath(path))
    encoding = {str(name): _encoding(v) for name, v in dataset.variables.items()}
    size = needed(dataset, columns)
    _require_space(target, size)
    with replaced(target, size) as part:
        with part.open("x+b") as file:
            write_content(file.fileno(), dataset, encoding, columns)
            file.write(seal_of(file, file.seek(0, os.SEEK_END)))
            file.flush()
            os.fsync(file.fileno())
        with opened(part) as stored:
            for name, variable in dataset.variables.items():
                if not stored.variables[name].equals(variable):
                    raise StorageError(DIFFERS)


def reseal(path: str | Path) -> None:
    """Seal a file as it is, after another program has opened it for changes.

    All that it holds is read, and nothing else changed: what it held before is unknown.

    Args:
        path: of a file of this package; one with its seal stays.

    Raises:
        StorageError: it is of another program, cut off, or cannot be read or written.

    Example:
        `reseal("scan.h5")`
    """
    if is_own(path):
        with opened(path):
            return
    require_readable(path)
    with replaced(path) as part:
        shutil.copyfile(path, part)
        with part.open("r+b") as file:
            file.write(seal_of(file, file.seek(0, os.SEEK_END)))


def _whole(dataset: xr.Dataset, columns: Mapping[str, Column]) -> xr.Dataset:
    """The data set with its columns, which have zeros that take no memory."""
    if twice := sorted(columns.keys() & set(dataset.variables)):
        raise ValueError(f"column {twice[0]!r}: is a variable of the data set too.")
    return dataset.assign(
        {
            name: (x.dims, np.broadcast_to(np.zeros((), x.dtype), x.shape), x.attrs)
            for name, x in columns.items()
        }
    )


def check_output(
    path: str | Path,
    *,
    study: str,
    overwrite: bool = False,
    inputs: Iterable[str | Path] = (),
) -> None:
    """Refuse a destination before a long computation, as `write` would after it.

    Args:
        path: a file.
        study: full text of a study (TOML).
        overwrite: replace a file of this package that holds something else.
        inputs: files that the result is made from, which stay as they are.

    Raises:
        ValueError: the path is not UTF-8.
        StorageError: the destination is one of the inputs, exists and holds something
            else than this study, is no regular file, or its folder cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     check_output(f"{folder}/new.h5", study='kind = "bifurcation"')
    """
    path = Path(path)
    if not check_place(path):
        return
    require_no_input(path, inputs)
    if overwrite:
        _require_own(path)
        return
    try:
        stored = info(path).study
    except StorageError as error:
        raise StorageError(f"{error} It is kept: {_WAYS_OUT}") from None
    if not same_study(stored, study):
        changes = in_one_line(study_differences(stored, study))
        raise StorageError(
            f"{path}: exists and holds another study ({changes}): {_WAYS_OUT}"
        )


def check_place(path: Path) -> bool:
    """Whether there is a file at a destination; folders on the way are made."""
    if path.name in ("", ".."):
        raise StorageError(f"{str(path)!r}: is no name of a file.")
    require_unicode(path)
    _make_folder(path)
    try:
        exists = target_of(path).exists()
        path.with_name(LONGEST.format(path.name)).exists()  # or the name is too long
    except OSError as error:
        raise unwritable(path, error) from None
    if exists and not path.is_file():
        raise StorageError(f"{path}: exists and is not a file; choose another output.")
    return exists


def require_no_input(path: Path, inputs: Iterable[str | Path]) -> None:
    """Refuse to write over a file that is read."""
    if path.exists() and any(os.path.exists(x) and path.samefile(x) for x in inputs):
        raise StorageError(
            f"{path}: is read to make this result; choose another output."
        )


def _require_own(path: Path) -> None:
    """Refuse to replace what this package did not write."""
    if path.stat().st_size and not is_own(path):
        raise StorageError(
            f"{path}: is no file of statmech-attn and stays: --overwrite "
            "(overwrite=True) replaces such files only; choose another output."
        )


LONGEST = ".{}.chunks.0123456789ab.part"  # name beside an output, see `scan.folder`
_WAYS_OUT = "choose another output, or pass --overwrite (overwrite=True)."


def _make_folder(path: Path) -> None:
    folder = Path(os.path.realpath(path)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise unwritable(path, error) from None


def _stored_form(dataset: xr.Dataset, attributes: dict[str, Any]) -> xr.Dataset:
    """The data set as it will be read back."""
    dataset = dataset.copy()
    for name, variable in dataset.variables.items():
        dataset[name].encoding.clear()
        for flags in {"flag_values", "flag_masks"} & variable.attrs.keys():
            # CF asks for the type of the codes themselves.
            codes = np.asarray(variable.attrs[flags], variable.dtype)
            dataset[name].attrs[flags] = codes
        if is_text(variable):
            dataset[name] = variable.astype(str)
        elif not variable.dtype.isnative:
            native = variable.dtype.newbyteorder("=")
            dataset[name] = variable.astype(native)
    dataset.attrs = attributes
    return dataset


def _encoding(variable: xr.Variable) -> dict[str, Any]:
    if is_text(variable):
        return {"dtype": "S1"}  # characters, along a dimension of their own
    options = storage_options(variable.shape, variable.dtype)
    if "chunks" in options:
        options["chunksizes"] = options.pop("chunks")
    return options | ({"_FillValue": None} if variable.dtype.kind == "f" else {})


def _require_space(target: Path, size: int) -> None:
    free = shutil.disk_usage(target.parent).free
    if size > free:
        raise unwritable(target, OSError(errno.ENOSPC, ""), needed=size)
