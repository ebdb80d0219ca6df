"""Whatever cannot be stored or trusted is refused in one clear line."""

import os

import h5py
import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage
from statmech_attn.storage import plain
from statmech_attn.storage.schema import SEAL, SEAL_LENGTH, seal_of


LABELS = {"long_name": "x", "units": "1", "symbol": "x"}


def message(call, *args, error=storage.StorageError, **kwargs) -> str:
    with pytest.raises(error) as raised:
        call(*args, **kwargs)
    text = str(raised.value)
    assert "\n" not in text and len(text) > 10
    return text


def one(values, **attrs) -> xr.Dataset:
    values = np.asarray(values)
    return xr.Dataset(
        {"x": ([f"d{i}" for i in range(values.ndim)], values, LABELS | attrs)}
    )


@pytest.mark.parametrize("missing", ["long_name", "units", "symbol"])
def test_a_variable_without_its_labels(tmp_path, study, missing):
    ds = one([1.0])
    del ds.x.attrs[missing]
    text = message(storage.write, tmp_path / "a.h5", ds, study=study, error=ValueError)
    assert "'x'" in text and missing in text
    assert os.listdir(tmp_path) == []


def test_a_coordinate_without_its_labels(tmp_path, study):
    ds = one([1.0]).assign_coords(d0=[3.0])
    text = message(storage.write, tmp_path / "a.h5", ds, study=study, error=ValueError)
    assert "'d0'" in text


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([1j], "complex128"),
        (np.array([1], np.float16), "float16"),
        (np.array(["2026-01-01"], "datetime64[ns]"), "datetime64"),
        (np.array([b"a"]), "|S1"),
        (np.array([{}], object), "object"),
    ],
)
def test_types_that_netcdf_does_not_have(tmp_path, study, values, named):
    text = message(
        storage.write, tmp_path / "a.h5", one(values), study=study, error=ValueError
    )
    assert named in text and "float64" in text


@pytest.mark.parametrize(
    ("ds", "named"),
    [
        (one([1.0], units="seconds"), "seconds"),
        (one([1.0], units="days since 2000-01-01"), "days since"),
        (one([1.0], scale_factor=2.0), "scale_factor"),
        (one([1.0], extra=None), "None"),
        (one([1.0], extra=[]), "[]"),
        (one([1.0], extra=True), "True"),
        (one(["a\0b"]), "NUL"),
        (one(["\ud800"]), "Unicode"),
        (one([1.0]).rename(x="a/b"), "a/b"),
        (one([1.0]).rename(d0="1d"), "1d"),
        (one([1.0]).assign_attrs(note="a\0b"), "note"),
    ],
)
def test_what_would_not_read_back_as_written(tmp_path, study, ds, named):
    text = message(storage.write, tmp_path / "a.h5", ds, study=study, error=ValueError)
    assert named in text


@pytest.mark.parametrize("text", ["kind = ", "no toml at all"])
def test_a_study_that_is_not_toml(tmp_path, text):
    write = (storage.write, tmp_path / "a.h5", one([1.0]))
    assert "TOML" in message(*write, study=text, error=ValueError)


def test_a_file_without_a_kind(tmp_path):
    write = (storage.write, tmp_path / "a.h5", one([1.0]))
    assert "kind" in message(*write, study="a = 1", error=ValueError)
    storage.write(tmp_path / "a.h5", one([1.0]), study="a = 1", kind="comparison")
    assert storage.info(tmp_path / "a.h5").kind == "comparison"


def test_an_output_of_another_study_is_kept(tmp_path, study):
    path = tmp_path / "a.h5"
    storage.write(path, one([1.0]), study=study)
    before = path.read_bytes()
    other = study.replace("1.255", "1.256")
    for call in (
        storage.check_output,
        lambda p, **k: storage.write(p, one([2.0]), **k),
    ):
        text = message(call, path, study=other)
        assert "another study" in text and "--overwrite" in text
    assert path.read_bytes() == before
    storage.write(path, one([2.0]), study=other, overwrite=True)
    assert storage.read(path).x.item() == 2.0


def test_an_output_of_the_same_study_is_replaced(tmp_path, study):
    path = tmp_path / "a.h5"
    storage.write(path, one([1.0]), study=study)
    storage.write(path, one([2.0]), study="# same\n" + study)
    assert storage.read(path).x.item() == 2.0


@pytest.mark.parametrize("content", [b"", b"someone's notes"])
def test_an_output_that_is_something_else_is_kept(tmp_path, study, content):
    path = tmp_path / "a.h5"
    path.write_bytes(content)
    text = message(storage.write, path, one([1.0]), study=study)
    assert "not an HDF5 file" in text and "--overwrite" in text
    assert path.read_bytes() == content
    if content:
        overwrite = {"study": study, "overwrite": True}
        text = message(storage.write, path, one([1.0]), **overwrite)
        assert "no file of statmech-attn" in text
        assert path.read_bytes() == content
    else:
        storage.write(path, one([1.0]), study=study, overwrite=True)
        assert storage.read(path).x.item() == 1.0


def test_a_damaged_file_of_this_package_can_be_overwritten(tmp_path, study):
    path = tmp_path / "a.h5"
    storage.write(path, one([1.0]), study=study)
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    assert "damaged" in message(storage.write, path, one([2.0]), study=study)
    storage.write(path, one([2.0]), study=study, overwrite=True)
    assert storage.read(path).x.item() == 2.0


def test_files_of_others_stay_also_where_they_are_hdf5(tmp_path, study):
    path = tmp_path / "theirs.h5"
    with h5py.File(path, "w") as file:
        file["x"] = 1.0
    before = path.read_bytes()
    text = message(storage.write, path, one([1.0]), study=study, overwrite=True)
    assert "no file of statmech-attn" in text and path.read_bytes() == before


def test_an_output_that_is_read_is_refused_by_any_name(tmp_path, study):
    path, link = tmp_path / "a.h5", tmp_path / "link.h5"
    storage.write(path, one([1.0]), study=study)
    link.symlink_to(path)
    for output in (path, link):
        text = message(
            storage.check_output, output, study=study, overwrite=True, inputs=[path]
        )
        assert "is read to make this result" in text


def test_an_output_whose_name_is_not_utf_8_is_refused(tmp_path, study):
    path = tmp_path / os.fsdecode(b"\xff.h5")
    with pytest.raises(ValueError, match="paths must be UTF-8"):
        storage.check_output(path, study=study)


def test_an_output_that_is_a_folder(tmp_path, study):
    (tmp_path / "a.h5").mkdir()
    write = (storage.write, tmp_path / "a.h5", one([1.0]))
    assert "not a file" in message(*write, study=study, overwrite=True)


def test_missing_folders_are_made_and_a_link_stays_a_link(tmp_path, study):
    target = tmp_path / "new" / "deep" / "a.h5"
    link = tmp_path / "link.h5"
    storage.write(target, one([1.0]), study=study)
    link.symlink_to(target)
    storage.write(link, one([2.0]), study=study)
    assert link.is_symlink()
    assert storage.read(target).x.item() == 2.0


def test_a_folder_that_is_a_file(tmp_path, study):
    (tmp_path / "file").touch()
    write = (storage.write, tmp_path / "file" / "a.h5", one([1.0]))
    assert "cannot be written" in message(*write, study=study)


def test_a_folder_without_permission(tmp_path, study):
    storage.write(tmp_path / "warm.h5", one([1.0]), study=study)
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    write = (storage.write, folder / "a.h5", one([1.0]))
    user = os.geteuid()
    if user == 0:  # permissions do not bind root
        os.seteuid(65534)
    try:
        text = message(*write, study=study)
    finally:
        os.seteuid(user)
    assert "cannot be written" in text
    assert os.listdir(folder) == []


@pytest.fixture
def written(tmp_path, dataset, study):
    path = tmp_path / "a.h5"
    storage.write(path, dataset, study=study)
    return path


def open_and_close(path):
    with storage.opened(path):
        pass


def changed(path, change):
    """As another program does it, which knows of no seal."""
    with h5py.File(path, "a") as file:
        change(file)


def resealed(path):
    content = path.read_bytes()
    with path.open("rb") as file:
        line = seal_of(file, len(content))
    path.write_bytes(content + line)


READERS = (storage.read, storage.info, open_and_close)


@pytest.mark.parametrize("reader", READERS)
def test_files_that_cannot_be_opened(tmp_path, reader):
    assert "No such file" in message(reader, tmp_path / "none.h5")
    assert "directory" in message(reader, tmp_path)
    (tmp_path / "text.h5").write_text("beta,m\n")
    assert "not an HDF5 file" in message(reader, tmp_path / "text.h5")


@pytest.mark.parametrize("reader", READERS)
def test_a_foreign_hdf5_file(tmp_path, reader):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["x"] = np.arange(3.0)
    assert "did not write" in message(reader, tmp_path / "f.h5")
    other = {"schema": "another package", "schema_version": 1}
    changed(tmp_path / "f.h5", lambda file: file.attrs.update(other))
    assert "it has no seal" in message(reader, tmp_path / "f.h5")
    resealed(tmp_path / "f.h5")
    assert message(reader, tmp_path / "f.h5").endswith("statmech-attn did not write.")


@pytest.mark.parametrize("reader", READERS)
def test_a_file_from_the_future(written, reader):
    newer = {"schema_version": storage.SCHEMA_VERSION + 1}
    changed(written, lambda file: file.attrs.update(newer))
    resealed(written)
    text = message(reader, written)
    assert f"schema version {storage.SCHEMA_VERSION + 1}" in text and "upgrade" in text


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.998])
@pytest.mark.parametrize("reader", READERS)
def test_a_truncated_file(written, reader, share):
    os.truncate(written, int(share * written.stat().st_size))
    assert "truncated or damaged" in message(reader, written)


def another_number(file):
    file["lyapunov"][0, 0] += 1e-15


def another_unit(file):
    file["lyapunov"].attrs["units"] = "per second"


def another_study(file):
    file.attrs["study"] = 'kind = "invented"'


def no_values(file):
    del file["settled"]
    file["settled"] = h5py.Empty("f8")


def no_unit(file):
    del file["lyapunov"].attrs["units"]


def number_as_unit(file):
    file["lyapunov"].attrs["units"] = 5


def no_keys(file):
    del file.attrs["keys"]


def no_name(file):
    del file["lyapunov"].attrs["long_name"]


@pytest.mark.parametrize(
    ("change", "said"),
    (
        (no_values, "settled has no values"),
        (no_name, "variable lyapunov has no attribute long_name"),
        (no_unit, "variable lyapunov has no attribute units that is a text"),
        (number_as_unit, "variable lyapunov has no attribute units that is a text"),
        (no_keys, "its attribute keys is no table"),
    ),
)
def test_what_is_missing_is_named(written, change, said):
    changed(written, change)
    resealed(written)
    assert said in message(storage.info, written)
    if "variable" in said:  # named by every command, as all of them show it
        assert said in message(storage.read, written)


@pytest.mark.parametrize("value", (5, "5", "{", "nan"))
@pytest.mark.parametrize("name", ("versions", "keys", "environment", "inputs"))
def test_attributes_that_are_no_tables_are_named(written, name, value):
    changed(written, lambda file: file.attrs.__setitem__(name, value))
    resealed(written)
    assert f"(its attribute {name} is no table)" in message(storage.info, written)


@pytest.mark.parametrize("value", ("soon", np.arange(2), np.nan))
@pytest.mark.parametrize("name", ("elapsed", "busy"))
def test_attributes_that_are_no_numbers_are_named(written, name, value):
    changed(written, lambda file: file.attrs.__setitem__(name, value))
    resealed(written)
    assert f"(its attribute {name} is no number)" in message(storage.info, written)


def one_less(file):
    del file["settled"]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "change", (another_number, another_unit, another_study, one_less)
)
def test_a_file_that_another_program_changed_is_refused(written, reader, change):
    """It loses its seal, or keeps one that does not match."""
    sound = written.read_bytes()
    changed(written, change)
    assert "it has no seal" in message(reader, written)
    written.write_bytes(written.read_bytes() + sound[-SEAL_LENGTH:])
    assert "its checksum does not match" in message(reader, written)


def nothing(file):
    pass


@pytest.mark.parametrize("change", (nothing, another_number))
def test_a_file_that_was_opened_for_changes_is_taken_back(written, change):
    before, sound = storage.read(written), written.read_bytes()
    storage.reseal(written)
    assert written.read_bytes() == sound
    changed(written, change)
    with pytest.raises(storage.StorageError, match="statmech-attn repair"):
        storage.read(written)
    storage.reseal(written)
    assert storage.read(written).identical(before) == (change is nothing)
    assert change is not nothing or written.read_bytes() == sound


@pytest.mark.parametrize("share", [0.5, 0.998])
def test_a_cut_file_is_not_taken_back(written, share):
    os.truncate(written, int(share * written.stat().st_size))
    before = written.read_bytes()
    assert "is truncated or damaged" in message(storage.reseal, written)
    assert written.read_bytes() == before


def test_a_foreign_file_is_not_taken_back(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["x"] = np.arange(3.0)
    text = message(storage.reseal, tmp_path / "f.h5")
    assert text.endswith("statmech-attn did not write.")


def test_no_single_damaged_byte_changes_what_is_read(written):
    """HDF5, which may loop forever on damaged metadata, does not get to see it."""
    sound = written.read_bytes()
    content = len(sound) - SEAL_LENGTH
    rng = np.random.default_rng(5)
    anywhere = rng.choice(np.arange(8, content), 300, replace=False)
    in_the_seal = np.arange(content, len(sound))
    for position in (*anywhere, *in_the_seal):
        damaged = bytearray(sound)
        damaged[position] ^= int(rng.integers(1, 256))
        written.write_bytes(damaged)
        if content <= position < content + len(SEAL):
            assert "it has no seal" in message(storage.read, written)
        else:
            assert "its checksum does not match" in message(storage.read, written)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_without_its_seal_is_refused_and_stays(written, study, reader):
    os.truncate(written, written.stat().st_size - SEAL_LENGTH)
    before = written.read_bytes()
    assert "it has no seal" in message(reader, written)
    overwrite = {"study": study, "overwrite": True}
    text = message(storage.write, written, one([1.0]), **overwrite)
    assert "no file of statmech-attn" in text and written.read_bytes() == before


def test_a_name_without_room_for_temporary_ones_is_refused_at_once(tmp_path):
    name = "x" * 251 + ".h5"  # a file may be called so, but nothing longer
    (tmp_path / name).touch()
    with pytest.raises(storage.StorageError, match="File name too long"):
        storage.check_output(tmp_path / name, study="")


def test_texts_that_take_more_memory_than_a_reader_gives_are_refused(
    tmp_path, study, monkeypatch
):
    path, needed = tmp_path / "a.h5", 9 * (plain.TEXT + len("ab"))
    storage.write(path, one(9 * ["ab"]), study=study)
    monkeypatch.setattr(plain, "LARGEST", needed)
    assert storage.read(path).x.size == 9
    monkeypatch.setattr(plain, "LARGEST", needed - 1)
    assert "x holds texts of more than" in message(storage.read, path)
