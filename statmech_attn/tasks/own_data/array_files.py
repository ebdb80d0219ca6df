"""A file of arrays, npz or HDF5: what it holds, and its arrays one by one.

Names, shapes and types are read from the headers when a file is opened; an array is
read when it is asked for, so that what is not needed takes neither time nor memory.
Which of both formats a file has is seen from its content.
"""

import difflib
import lzma
import math
import re
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import h5py
import numpy as np
from jaxtyping import Bool, Float, Int

from statmech_attn import storage
from statmech_attn.batches import available_memory
from statmech_attn.inputs import require_regular


Sizes = Mapping[str, tuple[int, str]]  # of axes by their names, and what says so
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_NO_HEADER = (  # of Python's parser
    KeyError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
)
_KINDS = {  # of types that are no real numbers
    "O": "Python objects",
    "S": "texts",
    "U": "texts",
    "c": "complex numbers",
    "V": "records",
    "M": "dates",
    "m": "times",
}
_PLACES = re.compile(  # names of arrays that are read
    r"heads|head_names|linear_blocks|a|(V|heads)_\d+|"
    r"(Y|x|xi|real|lengths|attention_\d+)(_test(_.*)?)?"
)
_PARTS = re.compile(r"(.*?)_?(\d*)((?:_test(?:_.*)?)?)", re.DOTALL)  # of names
_NUMBERED = "heads", "V"  # of layers
_STEMS = ("attention", "heads", "head_names", "linear_blocks", "real", "lengths")
_LIKE = 0.85  # how near a misspelt name is, from 0 to 1 by difflib
_MASKS = {  # of transformers and of PyTorch
    "attention_mask": "rename it {}",
    "key_padding_mask": "{} is its negation",
}
_SHOWN = 12  # names of arrays in a message


class Stored(NamedTuple):
    """Shape and type of an array, from the header of its file."""

    shape: tuple[int, ...]
    dtype: np.dtype


class ArrayFile(NamedTuple):
    """The arrays of a file by name, read when asked for.

    `stored` has shape and type of every array, `groups` the names of what is no array,
    such as groups and links of HDF5; `read` takes a name, and places on the first axis
    if not all are wanted.  Methods raise `ValueError` for an array that is not there or
    is something else.
    """

    stored: Mapping[str, Stored]
    groups: tuple[str, ...]
    read: Callable[[str, Sequence[int] | None], np.ndarray]

    def __contains__(self, name: object) -> bool:
        return name in self.stored

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of an array."""
        if name not in self.stored:
            raise ValueError(f"no array {name}; there are {self.names()}.")
        return self.stored[name].shape

    def names(self) -> str:
        """Names of what the file holds, for messages."""
        names = sorted(self.stored)
        more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
        words = ", ".join(names[:_SHOWN] + more) or "none"
        if self.groups:
            words += (
                f" ({', '.join(self.groups[:_SHOWN])}: no array at the top of the "
                "file, and not read)"
            )
        return words

    def require_known(self) -> None:
        """Refuse arrays whose name is a misspelling, or says what is padding."""
        for name in sorted(self.stored):
            meant, advice = _meant(name)
            padding = {meant, meant.replace("real", "lengths")}
            if meant and not padding & self.stored.keys():
                raise ValueError(
                    f"there is {name}, which is not read; {advice}, or leave it out."
                )

    def require_shape(
        self, name: str, axes: Sequence[str], sizes: Sizes = MappingProxyType({})
    ) -> tuple[int, ...]:
        """Shape of an array, once it is known to be right.

        `axes` are the names of its axes; `sizes` are the lengths of those whose length
        is known, with its origin.  An array without entries is refused.
        """
        shape = self.require_real(name)
        if _fits(shape, axes, sizes) and 0 not in shape:
            return shape
        origins = dict.fromkeys(axis for axis in axes if axis in sizes)
        known = [f"{axis} = {sizes[axis][0]} ({sizes[axis][1]})" for axis in origins]
        words = f" with {', '.join(known)}" if known else ""
        comma = "," if len(axes) == 1 else ""
        raise ValueError(
            f"{name} must have shape ({', '.join(axes)}{comma}){words}; got {shape}"
            f"{', without entries' * (0 in shape)}."
        )

    def numbers(
        self, name: str, chosen: Sequence[int] | None = None, *, finite: bool = True
    ) -> Float[np.ndarray, "*shape"]:
        """An array of real numbers in double precision.

        With `finite` an infinite number or NaN is refused.  `chosen` are the places on
        the first axis that are read; all when omitted.
        """
        self.require_real(name)
        values = self.read(name, chosen).astype(float)
        if finite and not (good := np.isfinite(values)).all():
            place = np.unravel_index(np.argmin(good), good.shape)
            raise ValueError(
                f"{name} holds numbers that are not finite: {(~good).sum()} of "
                f"{good.size}, the first at {[int(i) for i in place]}."
            )
        return values

    def whole(self, name: str) -> Int[np.ndarray, "*shape"]:
        """An array of whole numbers, of any type."""
        values = self.numbers(name)
        if (values != np.round(values)).any():
            wrong = values[values != np.round(values)].flat[0]
            raise ValueError(f"{name} must hold whole numbers; got {wrong:g}.")
        return values.astype(int)

    def truths(self, name: str) -> Bool[np.ndarray, "*shape"]:
        """An array of truth values, or of 0 and 1 of any type."""
        values = self.numbers(name)
        if not np.isin(values, (0, 1)).all():
            wrong = values[~np.isin(values, (0, 1))].flat[0]
            raise ValueError(
                f"{name} must hold truth values, or 0 and 1; got {wrong:g}."
            )
        return values.astype(bool)

    def texts(self, name: str) -> list[str]:
        """Texts of an array, also where they are stored as bytes."""
        self.shape(name)
        dtype = self.stored[name].dtype
        if dtype.kind not in "SU":
            what = _KINDS.get(dtype.kind, str(dtype))
            raise ValueError(f"{name} must be an array of texts; got {what}.")
        texts = np.ravel(self.read(name, None)).tolist()
        try:
            return [t.decode() if isinstance(t, bytes) else str(t) for t in texts]
        except UnicodeDecodeError:
            raise ValueError(f"{name} holds texts that are not UTF-8.") from None

    def require_real(self, name: str) -> tuple[int, ...]:
        """Shape of an array of real numbers; `ValueError` where it holds others."""
        shape, dtype = self.shape(name), self.stored[name].dtype
        if dtype.kind not in "biuf":
            what = _KINDS.get(dtype.kind, str(dtype))
            raise ValueError(f"{name} must be an array of real numbers; got {what}.")
        return shape


def opened(path: str | Path) -> ArrayFile:
    """A file of arrays (npz or HDF5), of which the headers have been read."""
    path = Path(path).expanduser()
    status = require_regular(path)
    if not status.st_size:
        raise ValueError("is empty; write it with numpy.savez, or as HDF5.")
    if zipfile.is_zipfile(path):
        return _readable(_of_npz)(path)
    if h5py.is_hdf5(path):
        return _readable(_of_hdf5)(path)
    with open(path, "rb") as file:
        start = file.read(6)
    words = "cannot be read as npz (it may be cut off) or HDF5"
    if start == b"\x93NUMPY":
        words = "is a single array of numpy.save"
    raise ValueError(f"{words}; numpy.savez(FILE, x=x, Y=Y, ...) writes such a file.")


def _readable(read: Callable[..., Any]) -> Callable[..., Any]:
    """A function that reads, with its errors in one line."""

    def checked(*given):
        try:
            return read(*given)
        except (
            OSError,
            EOFError,
            KeyError,
            lzma.LZMAError,
            MemoryError,
            RuntimeError,  # of zipfile, about passwords and compression
            TypeError,
            ValueError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            words = " ".join(str(error).split())[:200].rstrip(".")
            words = words or type(error).__name__
            raise ValueError(f"cannot be read: {words}.") from None

    return checked


def _of_npz(path: Path) -> ArrayFile:
    stored, other_members = {}, []
    with zipfile.ZipFile(path) as file:
        counts = Counter(file.namelist())
        if twice := sorted(name for name, count in counts.items() if count > 1):
            raise ValueError(f"it holds {twice[0].removesuffix('.npy')} twice")
        for member in file.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                other_members.append(name)
                continue
            with file.open(member) as stream:
                stored[name] = _header(stream, name)
                size = stored[name].dtype.itemsize * math.prod(stored[name].shape)
                stored_bytes = member.file_size - stream.tell()
            if not stored[name].dtype.hasobject and size != stored_bytes:
                raise ValueError(f"{name} is cut off")

    def read(name: str, chosen: Sequence[int] | None) -> np.ndarray:
        _require_memory(name, stored[name], stored[name].shape)
        with zipfile.ZipFile(path) as file, file.open(f"{name}.npy") as stream:
            values = np.lib.format.read_array(stream, allow_pickle=False)
        return values if chosen is None else values[list(chosen)]

    return ArrayFile(stored, tuple(other_members), _readable(read))


def _header(stream, name: str) -> Stored:
    try:
        version = np.lib.format.read_magic(stream)
        shape, _, dtype = _HEADERS[version](stream)
    except _NO_HEADER:
        raise ValueError(f"{name} has no header of numpy.save") from None
    return Stored(shape, dtype)


def _of_hdf5(path: Path) -> ArrayFile:
    stored, others = {}, []
    with h5py.File(path, "r") as file:
        for name in map(str, file):
            is_stored = isinstance(file.get(name, getlink=True), h5py.HardLink)
            dataset = file[name] if is_stored else None
            if not isinstance(dataset, h5py.Dataset):
                others.append(name)
                continue
            text = h5py.check_string_dtype(dataset.dtype) is not None
            shape = (0,) if dataset.shape is None else dataset.shape
            stored[name] = Stored(shape, np.dtype(str) if text else dataset.dtype)

    def read(name: str, chosen: Sequence[int] | None) -> np.ndarray:
        with h5py.File(path, "r") as file:
            dataset = storage.plain.dataset(file, name)  # and no data of other files
            shape = stored[name].shape
            if chosen is not None:
                shape = (len(chosen), *shape[1:])
            _require_memory(name, stored[name], shape)
            if stored[name].dtype.kind == "U":
                return np.asarray(dataset.asstr()[()])
            if chosen is None:
                return np.asarray(dataset[()])
            return np.stack([dataset[place] for place in chosen])

    return ArrayFile(stored, tuple(others), _readable(read))


def _require_memory(name: str, stored: Stored, shape: Sequence[int]) -> None:
    """Refuse an array that does not fit into memory as it is and as doubles."""
    size = math.prod(shape) * (stored.dtype.itemsize + 8)
    if size > (free := available_memory()):
        raise ValueError(
            f"{name} takes {size / 2**30:.1f} GiB; {free / 2**30:.1f} GiB are free"
        )


def _meant(name: str) -> tuple[str, str]:
    """The array that another name may mean, and what to do; empty if there is none."""
    parts = _PARTS.fullmatch(name)
    if parts is None or _PLACES.fullmatch(name):
        return "", ""
    stem, number, end = parts.groups()
    if stem in _MASKS:
        return f"real{end}", _MASKS[stem].format(f"real{end}")
    near = difflib.get_close_matches(stem.lower(), _STEMS, 1, _LIKE)
    near = ["V"] if number and stem in "vV" else near
    if not near:
        return "", ""
    of_layers = {"attention": number or "1"} | dict.fromkeys(_NUMBERED, number)
    layer = of_layers.get(near[0], "")
    meant = near[0] + f"_{layer}" * bool(layer) + end
    return meant, f"rename it {meant}"


def _fits(shape: Sequence[int], axes: Sequence[str], sizes: Sizes) -> bool:
    """Whether axes have the lengths that are known, and those of one name the same."""
    lengths = {axis: length for axis, (length, _) in sizes.items()}
    return len(shape) == len(axes) and all(
        lengths.setdefault(axis, length) == length for axis, length in zip(axes, shape)
    )
