"""What is written is what is read, by this package and by general readers."""

import datetime

import h5py
import hypothesis.strategies as st
import jax
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from statmech_attn import storage


def test_everything_comes_back_bit_for_bit(tmp_path, dataset, study):
    storage.write(tmp_path / "a.h5", dataset, study=study)
    back = storage.read(tmp_path / "a.h5")
    assert set(back.variables) == set(dataset.variables)
    for name, variable in dataset.variables.items():
        assert back[name].dims == variable.dims
        assert back[name].dtype.kind == variable.dtype.kind
        assert np.array_equal(back[name].values, variable.values) or (
            back[name].values.tobytes() == variable.values.tobytes()
        )
        for key, value in variable.attrs.items():
            assert np.array_equal(back[name].attrs[key], value)
    assert back.attrs["note"] == "kept"
    assert back.attrs["n_spins"].tolist() == [1000, 2000]


def test_xarray_opens_it_with_flags_and_units(tmp_path, dataset, study):
    storage.write(tmp_path / "a.h5", dataset, study=study)
    with xr.open_dataset(tmp_path / "a.h5", engine="h5netcdf") as opened:
        assert opened.lyapunov.dims == ("beta", "exponent")
        assert opened.phase.attrs["flag_meanings"].split() == ["fixed", "chaotic"]
        assert opened.phase.attrs["flag_values"].dtype == opened.phase.dtype
        assert opened.lyapunov.sel(beta=1.25).values[3] == -np.inf


def test_dimension_scales_are_attached_as_netcdf4_asks(tmp_path, dataset, study):
    storage.write(tmp_path / "a.h5", dataset, study=study)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["beta"].is_scale
        assert file["lyapunov"].dims[0][0] == file["beta"]
        assert [d.keys() != [] for d in file["m_o_se"].dims] == [True, True]


def test_texts_of_attributes_are_characters_which_every_reader_of_netcdf_knows(
    tmp_path, dataset, study
):
    words = {"long_name": "is odd", "units": "1", "symbol": "β", "note": ""}
    blocks = lambda: iter([np.array([True, False, False])])
    odd = storage.Column(("beta",), (3,), np.dtype(bool), words, blocks)
    dataset = dataset.set_coords("reason").assign_attrs(long="é" * 40_000)
    storage.write(tmp_path / "a.h5", dataset, study=study, columns={"odd": odd})
    with h5py.File(tmp_path / "a.h5") as file:
        attributes = {
            (owner.name, key): h5py.check_string_dtype(owner.attrs.get_id(key).dtype)
            for owner in (file, *file.values())
            for key in owner.attrs
        }
        assert ("/odd", "coordinates") in attributes
        assert file["odd"].attrs["symbol"].decode() == "β"
    variable_length = {k for k, x in attributes.items() if x and x.length is None}
    assert variable_length == {("/", "long")}, "HDF5 has room for 64 KiB"
    back = storage.read(tmp_path / "a.h5")
    assert back.attrs["long"] == dataset.attrs["long"]
    assert back.odd.attrs == words
    assert back.odd.values.tolist() == [True, False, False]


def test_large_arrays_are_compressed_and_small_ones_are_not(tmp_path, dataset, study):
    signs = np.sign(dataset.m_o_se).astype(np.int64)
    dataset = dataset.assign(signs=signs, positive=signs > 0)
    words = dict(units="1", long_name="sign", symbol="s")
    dataset.signs.attrs |= words
    dataset.positive.attrs |= words
    storage.write(tmp_path / "a.h5", dataset, study=study)
    with h5py.File(tmp_path / "a.h5") as file:
        for large in (file[name] for name in ("m_o_se", "signs", "positive")):
            assert (large.compression, large.shuffle) == ("gzip", True)
        assert file["lyapunov"].compression is None
    read = storage.read(tmp_path / "a.h5")
    xr.testing.assert_equal(read.signs, dataset.signs)
    xr.testing.assert_equal(read.positive, dataset.positive)


def test_any_allowed_array_and_text_come_back(tmp_path):
    path = tmp_path / "a.h5"

    @settings(max_examples=20, deadline=None)
    @given(
        values=hnp.arrays(
            st.sampled_from(["f8", ">f8", "f4", "i1", "i8", "u4", "u8", "?"]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
        ),
        text=st.text(
            st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"),
            max_size=50,
        ),
    )
    def come_back(values, text):
        described = {"long_name": f"x{text}", "units": "1", "symbol": "x"}
        dims = [f"d{i}" for i in range(values.ndim)]
        labels = np.array([text, "", "end"])
        ds = xr.Dataset(
            {"x": (dims, values, described), "label": ("n", labels, described)},
            attrs={"note": text},
        )
        storage.write(path, ds, study='kind = "test"', overwrite=True)
        back = storage.read(path)
        native = values.astype(values.dtype.newbyteorder("="))
        assert back.x.dtype == native.dtype
        assert back.x.shape == native.shape
        assert back.x.values.tobytes() == native.tobytes()
        assert back.label.values.tolist() == labels.tolist()
        assert back.attrs["note"] == text
        assert back.x.attrs["long_name"] == f"x{text}"

    come_back()


def test_provenance_says_what_made_the_file(tmp_path, dataset, study, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/statmech-attn", "run", "a b.toml"])
    before = storage.now()
    keys = {"seed": 7, "key": jax.random.key(3)}
    path = tmp_path / "a.h5"
    storage.write(path, dataset, study=study, keys=keys, started=before)
    info = storage.info(path)
    assert (info.kind, info.study) == ("trajectory", study)
    assert info.study_sha256 == storage.study_digest(study)
    assert info.keys["seed"] == 7
    assert info.keys["key"]["data"] == jax.random.key_data(keys["key"]).tolist()
    assert info.versions["jax"] == jax.__version__
    assert info.versions["h5py"] == h5py.__version__
    assert info.dtype == "float64"
    assert info.device_kind == jax.devices()[0].device_kind
    assert info.command == "statmech-attn run 'a b.toml'"
    assert datetime.datetime.fromisoformat(info.started) == before
    finished = datetime.datetime.fromisoformat(info.finished)
    assert before <= finished <= storage.now()
    assert info.variables["lyapunov"].units == "nats per token"
    assert info.variables["reason"].dtype == "text"
    assert list(info.attributes) == ["note", "n_spins"]
    assert info.size_bytes == path.stat().st_size


def test_unknown_provenance_is_absent_not_invented(tmp_path, dataset, study):
    storage.write(tmp_path / "a.h5", dataset, study=study)
    assert storage.info(tmp_path / "a.h5").started is None
    assert "started" not in storage.read(tmp_path / "a.h5").attrs


def test_git_state_is_recorded_only_in_a_checkout(tmp_path, monkeypatch):
    from statmech_attn.storage import machine

    package = tmp_path / "statmech_attn" / "__init__.py"
    package.parent.mkdir()
    package.touch()
    monkeypatch.setattr(machine.statmech_attn, "__file__", str(package))
    describe = machine.git_describe.__wrapped__
    assert describe() is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        machine.subprocess.run([*git, *command], check=True)
    clean = describe()
    assert len(clean) >= 7 and not clean.endswith("-dirty")
    package.write_text("changed = 1")
    assert describe() == f"{clean}-dirty"


def test_a_study_of_a_megabyte_fits(tmp_path, dataset):
    study = 'kind = "test"\n# ' + "x" * 1_000_000
    storage.write(tmp_path / "a.h5", dataset, study=study)
    assert storage.info(tmp_path / "a.h5").study == study


def test_provenance_of_an_input_file_is_not_passed_on(tmp_path, dataset, study):
    storage.write(tmp_path / "a.h5", dataset, study=study, keys={"seed": 7})
    other = 'kind = "comparison"'
    storage.write(tmp_path / "b.h5", storage.read(tmp_path / "a.h5"), study=other)
    info = storage.info(tmp_path / "b.h5")
    assert (info.kind, info.study, info.keys) == ("comparison", other, {})


@pytest.mark.parametrize("same", ["a=1.0", "a = 1 # one", "\n\na=1\n"])
def test_the_same_study_in_other_words(same):
    assert storage.same_study("a = 1", same)


@pytest.mark.parametrize("other", ["a = 2", 'a = "1"', "a = 1\nb = 2", "a = true"])
def test_another_study(other):
    assert not storage.same_study("a = 1", other)


def test_a_clock_that_is_set_back_changes_nothing(
    tmp_path, dataset, study, monkeypatch
):
    started = storage.now()
    earlier = started - datetime.timedelta(days=1)
    monkeypatch.setattr("statmech_attn.storage.provenance.now", lambda: earlier)
    path = tmp_path / "a.h5"
    storage.write(path, dataset, study=study, started=started, elapsed=2.5, busy=4.0)
    info = storage.info(path)
    assert info.finished < info.started
    assert (info.elapsed, info.busy) == (2.5, 4.0)
    storage.write(path, dataset, study=study)
    assert storage.info(path).elapsed is storage.info(path).busy is None


@pytest.mark.parametrize("name", ["elapsed", "busy"])
@pytest.mark.parametrize("seconds", [-1.0, np.inf, np.nan])
def test_an_impossible_duration_is_refused(tmp_path, dataset, study, name, seconds):
    message = f"{name} must be (at least 0|a finite number)"
    with pytest.raises(ValueError, match=message):
        storage.write(tmp_path / "a.h5", dataset, study=study, **{name: seconds})


@pytest.mark.parametrize("kind", [object, "U3"])
def test_no_texts_come_back_as_no_texts(tmp_path, kind):
    described = {"long_name": "x", "units": "1", "symbol": "x"}
    ds = xr.Dataset({"label": ("n", np.array([], kind), described)})
    storage.write(tmp_path / "a.h5", ds, study='kind = "test"')
    assert storage.read(tmp_path / "a.h5").label.dtype.kind == "U"
