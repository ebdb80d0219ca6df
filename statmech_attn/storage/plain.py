"""Data that a file holds itself, and no more of it than the file can hold.

HDF5 may point into other files (external links, external storage, virtual data sets),
and it may declare sizes that nothing was ever written for.  Nothing of this package
writes either; who reads a file looks here before HDF5 reads any data.
"""

import math
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np

from statmech_attn.storage.columns import slabs


DEFLATE = 1032  # bytes that one compressed byte can stand for at most (zlib)
BARE_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
OF_COORDINATE = "_Netcdf4Coordinates"  # numbers of its dimensions
LARGEST = 2**26  # bytes of a chunk, and of all texts of a variable
FEW = 16  # texts of an attribute that may be long
TEXT = 16  # bytes that HDF5 keeps for a text beside its characters


def require_plain(file: h5py.File) -> None:
    """Refuse a netCDF-4 file in which anything is not a data set of its own."""
    size = file.id.get_filesize()
    _require_few_texts(file, "the file", size)
    variables, lengths = {}, {}
    for name in map(str, file):
        variable = _own(file, name)
        _require_few_texts(variable, name, size)
        if _is_scale(variable):
            for number in _integers(variable, "_Netcdf4Dimid"):
                lengths[number] = None if number in lengths else len(variable)
        # A dimension without coordinates declares its length in values nobody reads.
        if not bytes(variable.attrs.get("NAME", b"")).startswith(BARE_DIMENSION):
            _require_stored(variable, name)
            _require_short_texts(variable, name, size)
            variables[name] = variable
    for name, variable in variables.items():  # one may refer to any other
        _require_dimensions(variable, name, lengths)


def dataset(group: h5py.Group, name: str) -> h5py.Dataset:
    """The data set of this name.

    Refused are links, groups, data of other files, and what is larger than its storage.
    """
    variable = _own(group, name)
    _require_stored(variable, name)
    return variable


def _own(group: h5py.Group, name: str) -> h5py.Dataset:
    variable = _here(group, name)
    if not isinstance(variable, h5py.Dataset):
        raise ValueError(f"{name} is no data set")
    if variable.shape is None:
        raise ValueError(f"{name} has no values")
    creation = variable.id.get_create_plist()
    if creation.get_layout() == h5py.h5d.VIRTUAL or creation.get_external_count():
        raise ValueError(f"the data of {name} are in other files")
    return variable


def _require_stored(found: h5py.Dataset, name: str) -> None:
    text = h5py.check_string_dtype(found.dtype) is not None
    if found.dtype.kind not in "biuf" and not text:
        raise ValueError(f"{name} holds neither numbers nor text")
    stored, itemsize = (
        found.id.get_storage_size(),
        TEXT if text else found.dtype.itemsize,
    )
    if found.size and itemsize * found.size > DEFLATE * stored:
        raise ValueError(f"{name} declares {found.size} values, more than are stored")

    if found.chunks and found.dtype.itemsize * math.prod(found.chunks) > LARGEST:
        raise ValueError(f"{name} has chunks of more than {LARGEST / 2**20:g} MiB")


def _require_dimensions(
    found: h5py.Dataset, name: str, lengths: Mapping[int, int | None]
) -> None:
    """Refuse axes whose netCDF dimension is missing or has another length.

    The reader would fill such a variable up to the length of the dimension.  What HDF5
    itself would follow without a look at its type is read as an attribute.  `lengths`
    are those of dimensions by the numbers that coordinates name; None for numbers that
    several share.
    """
    if _is_scale(found) and OF_COORDINATE in found.attrs:
        expected = [lengths.get(number) for number in _integers(found, OF_COORDINATE)]
    elif _is_scale(found) and "DIMENSION_LIST" not in found.attrs:
        return
    else:
        expected = _dimensions(found)
    if expected != list(found.shape):
        raise ValueError(f"{name} has not the dimensions of its data")


def _is_scale(found: h5py.Dataset) -> bool:
    kind = found.attrs.get("CLASS")
    return isinstance(kind, bytes) and kind == b"DIMENSION_SCALE" and found.ndim > 0


def _integers(found: h5py.Dataset, name: str) -> list[int]:
    """An attribute that lists integers; none of another type."""
    values = np.ravel(found.attrs.get(name, ()))
    return values.tolist() if values.dtype.kind in "iu" else []


def _dimensions(found: h5py.Dataset) -> list[int | None]:
    """Lengths of the dimension scales of all axes."""
    if "DIMENSION_LIST" not in found.attrs:
        return []
    element = h5py.check_vlen_dtype(found.attrs.get_id("DIMENSION_LIST").dtype)
    if element is None or h5py.check_ref_dtype(element) is not h5py.Reference:
        return []
    lists = np.ravel(np.asarray(found.attrs["DIMENSION_LIST"]))
    scales = [
        found.file[references[0]] if len(references) == 1 else None
        for references in lists
    ]
    return [len(x) if isinstance(x, h5py.Dataset) and x.shape else None for x in scales]


def _require_few_texts(owner: Any, name: str, size: int) -> None:
    """Refuse an attribute that lists texts which may all be the same long one.

    No text exceeds the `size` of the file.
    """
    for key in owner.attrs:
        value = owner.attrs.get_id(key)
        text = h5py.check_string_dtype(value.dtype) is not None
        count = math.prod(value.shape or ()) if text else 0
        if count > FEW and count * size > LARGEST:
            raise ValueError(f"the attribute {key} of {name} lists {count} texts")


def _require_short_texts(found: h5py.Dataset, name: str, size: int) -> None:
    """Refuse texts that take more memory than `LARGEST` together.

    No text exceeds the `size` of the file.
    """
    total, text, count = 0, h5py.check_string_dtype(found.dtype), found.size or 0
    if text is None or not count:
        return
    if text.length is not None:  # characters, which are texts along the last axis
        texts = count // (found.shape or (1,))[-1]
        parts = iter([TEXT * texts + found.nbytes])
    elif count * size <= LARGEST:
        return
    else:
        boxes = slabs(found.shape, max(LARGEST // size, 1))
        parts = (sum(map(len, np.ravel(found[box]))) for box in boxes)
    for part in parts:
        total += part
        if total > LARGEST:
            raise ValueError(f"{name} holds texts of more than {LARGEST / 2**20:g} MiB")


def group(parent: h5py.Group, name: str) -> h5py.Group:
    """The group of this name, which is no link."""
    child = _here(parent, name)
    if not isinstance(child, h5py.Group):
        raise ValueError(f"{name} is no group")
    return child


def _here(group: h5py.Group, name: str):
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is a link")
    return group[name]
