"""What a file may hold, and what makes two studies or two data sets the same.

Every variable carries `long_name`, `units` ("1" when dimensionless) and `symbol` (the
paper's); every file carries the attributes of `PROVENANCE` (docs/hdf5.md) and ends with
a seal, the SHA-256 of all that stands before it.
"""

import hashlib
import json
from typing import Any, BinaryIO

import numpy as np
import xarray as xr

from statmech_attn.storage import toml


SCHEMA = "statmech_attn"
SCHEMA_VERSION = 1
REQUIRED = ("long_name", "units", "symbol")
CONVENTIONS = ("Conventions", "title", "history", "source")  # that CF asks for
PROVENANCE = (
    *CONVENTIONS,
    "schema",
    "schema_version",
    "kind",
    "study",
    "study_sha256",
    "keys",
    "package_version",
    "git_describe",
    "versions",
    "platform",
    "backend",
    "device_kind",
    "dtype",
    "environment",
    "started",
    "finished",
    "elapsed",
    "busy",
    "command",
)
NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS += ("float32", "float64", "bool")
# Read back by xarray as instructions instead of as attributes.
DECODED = ("_FillValue", "missing_value", "scale_factor", "add_offset", "dtype")
DECODED += ("_Unsigned", "calendar", "coordinates", "grid_mapping", "bounds")
TIME_SPANS = ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds")
TIME_SPANS += ("nanoseconds",)


# Follows the end that HDF5 sees, with 64 hexadecimal digits and a newline.
SEAL = b"\nstatmech_attn sha256 "
SEAL_LENGTH = len(SEAL) + 65


class StorageError(OSError):
    """A file that cannot be written, read or trusted; the message is one line."""


def canonical_study(study: str) -> str:
    """The study's content without comments, order, spacing or number spelling."""
    plain_text("study", study)
    try:
        content = toml.loads(study)
    except ValueError as error:
        raise ValueError(f"study: {error}") from None
    return json.dumps(_same_spelling(content), sort_keys=True, default=str)


def study_digest(study: str) -> str:
    """SHA-256 of the canonical study.

    Args:
        study: full text of a study (TOML).

    Example:
        >>> study_digest("a = 1 # one") == study_digest("a = 1.0")
        True
    """
    return hashlib.sha256(canonical_study(study).encode()).hexdigest()


def same_study(first: str, second: str) -> bool:
    """Whether two study texts ask for the same computation."""
    return canonical_study(first) == canonical_study(second)


def study_kind(study: str) -> str | None:
    """The key `kind` of a study, if it has one."""
    kind = toml.loads(study).get("kind")
    return kind if isinstance(kind, str) else None


def _same_spelling(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _same_spelling(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_same_spelling(v) for v in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def validate(dataset: xr.Dataset) -> None:
    """Refuse what the file could not hold or would not give back unchanged."""
    for name, value in dataset.attrs.items():
        if name not in PROVENANCE:
            _validate_attribute("file", name, value)
    for name, variable in dataset.variables.items():
        _validate_name("variable", name)
        for dimension in variable.dims:
            _validate_name("dimension", dimension)
        _validate_variable(str(name), variable)


def _validate_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ValueError(
            f"{what} {name!r}: names are letters, digits and underscores, and do not "
            "start with a digit."
        )


def _validate_variable(name: str, variable: xr.Variable) -> None:
    for required in REQUIRED:
        text = variable.attrs.get(required)
        if not isinstance(text, str) or not text:
            raise ValueError(
                f"variable {name!r} needs the attribute {required!r}, a text "
                '(units: "1" when dimensionless); '
                f"got {text!r}."
            )
    if variable.attrs["units"] in TIME_SPANS or " since " in variable.attrs["units"]:
        raise ValueError(
            f"variable {name!r}: units {variable.attrs['units']!r} would be read back "
            'as a date or time span; use a symbol such as "s".'
        )
    for key, value in variable.attrs.items():
        if key in DECODED:
            raise ValueError(f"variable {name!r}: the attribute {key!r} is reserved.")
        _validate_attribute(f"variable {name!r}", key, value)
    if is_text(variable):
        for text in variable.values.ravel():
            plain_text(f"variable {name!r}", text)
    elif variable.dtype.name not in NUMBERS:
        raise ValueError(
            f"variable {name!r} has type {variable.dtype}; allowed are text and "
            f"{', '.join(NUMBERS)} (a complex number as two variables)."
        )


def is_text(variable: xr.Variable) -> bool:
    """Whether a variable holds text, fixed-width or as Python strings."""
    if variable.dtype.kind in "UT":
        return True
    return variable.dtype.kind == "O" and all(
        isinstance(x, str) for x in variable.values.ravel()
    )


def _validate_attribute(owner: str, name: object, value: Any) -> None:
    where = f"{owner}: attribute {name!r}"
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ValueError(f"{where}: names are letters, digits and underscores.")
    if isinstance(value, str):
        return plain_text(where, value)
    array = np.asarray(value)
    if array.dtype.kind == "U" and array.ndim == 1 and array.size:
        for text in array:
            plain_text(where, str(text))
    elif array.dtype.kind not in "iuf" or array.ndim > 1 or array.size == 0:
        raise ValueError(
            f"{where}: allowed are a text, a number, or a non-empty list of one kind; "
            f"got {value!r}."
        )


def plain_text(where: str, text: str) -> None:
    """Refuse text that HDF5 would cut (a NUL) or cannot encode (a lone surrogate)."""
    if not isinstance(text, str):
        raise ValueError(f"{where}: needs a text; got {type(text).__name__}.")
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where}: {text[:40]!r} is not valid Unicode.") from None
    if b"\0" in encoded:
        raise ValueError(f"{where}: {text[:40]!r} holds a NUL character.")


def seal(digest: str) -> bytes:
    """What follows the HDF5 content of a file with this SHA-256."""
    return SEAL + digest.encode() + b"\n"


def seal_of(file: BinaryIO, length: int) -> bytes:
    """The seal of the first bytes of an open file, which are read a piece at a time."""
    digest = hashlib.sha256()
    file.seek(0)
    while part := file.read(min(length, 2**20)):
        digest.update(part)
        length -= len(part)
    return seal(digest.hexdigest())
