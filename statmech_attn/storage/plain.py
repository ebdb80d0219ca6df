"""Data that a file holds itself, and no more of it than the file can hold.

HDF5 may point into other files (external links, external storage, virtual data sets),
and it may declare sizes that nothing was ever written for.  Nothing of this package
writes either; who reads a file looks here before HDF5 reads any data.
"""

import h5py


DEFLATE = 1032  # bytes that one compressed byte can stand for at most (zlib)
BARE_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
TEXT = 16  # bytes that HDF5 keeps for a text beside its characters


def require_plain(file: h5py.File) -> None:
    """Refuse a netCDF-4 file in which anything is not a data set of its own.

    Raises:
        ValueError: as `dataset`.
    """
    for name in map(str, file):
        found = _own(file, name)
        # A dimension without coordinates declares its length in values nobody reads.
        if not bytes(found.attrs.get("NAME", b"")).startswith(BARE_DIMENSION):
            _require_stored(found, name)


def dataset(group: h5py.Group, name: str) -> h5py.Dataset:
    """The data set of this name.

    Raises:
        ValueError: a link, a group, data of other files, or larger than its storage.
    """
    found = _own(group, name)
    _require_stored(found, name)
    return found


def _own(group: h5py.Group, name: str) -> h5py.Dataset:
    found = _here(group, name)
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"{name} is no data set")
    made = found.id.get_create_plist()
    if made.get_layout() == h5py.h5d.VIRTUAL or made.get_external_count():
        raise ValueError(f"the data of {name} are in other files")
    return found


def _require_stored(found: h5py.Dataset, name: str) -> None:
    text = h5py.check_string_dtype(found.dtype) is not None
    if found.dtype.kind not in "biuf" and not text:
        raise ValueError(f"{name} holds neither numbers nor text")
    stored, each = found.id.get_storage_size(), TEXT if text else found.dtype.itemsize
    if found.size and each * found.size > DEFLATE * stored:
        raise ValueError(f"{name} declares {found.size} values, more than are stored")


def group(parent: h5py.Group, name: str) -> h5py.Group:
    """The group of this name.

    Raises:
        ValueError: a link, or no group.
    """
    found = _here(parent, name)
    if not isinstance(found, h5py.Group):
        raise ValueError(f"{name} is no group")
    return found


def _here(group: h5py.Group, name: str):
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is a link")
    return group[name]
