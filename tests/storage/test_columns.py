"""Variables that come in blocks make the file that they would make from memory."""

import math
import os
import tracemalloc
from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
import xarray as xr
from hypothesis import example, given, settings

from statmech_attn import storage
from statmech_attn.storage import columns as in_columns, reading
from statmech_attn.storage.columns import slabs
from statmech_attn.storage.writers import streaming


STUDY = 'kind = "test"'
LABELS = {"long_name": "x", "units": "1", "symbol": "x"}
TYPES = ("f8", ">f8", "f4", "i1", "i8", "u4", "?")


def column(values: np.ndarray, cuts=(), leading: int = 1, attrs=LABELS):
    """Values as blocks of rows; the rows run over the leading dimensions."""
    rows = values.reshape(math.prod(values.shape[:leading]), *values.shape[leading:])
    dims = tuple(f"d{i}" for i in range(values.ndim))
    blocks = lambda: iter(np.split(rows, sorted(cuts)))
    return storage.Column(dims, values.shape, values.dtype, attrs, blocks)


@st.composite
def arrays(draw):
    """An array, how many of its dimensions are rows, and where the blocks end."""
    shape = draw(st.lists(st.integers(0, 7), min_size=1, max_size=4))
    leading = draw(st.integers(1, len(shape)))
    rows = math.prod(shape[:leading])
    cuts = draw(st.lists(st.integers(0, rows), max_size=5))
    bits = np.random.default_rng(draw(st.integers(0, 99))).bytes(8 * math.prod(shape))
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    values = np.frombuffer(bits, "u8").reshape(shape)
    return (values % 5).astype(dtype) / dtype.type(2), leading, cuts


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    made=arrays(),
    chunk=st.sampled_from([16, 64, 2**19]),
    slab=st.sampled_from([24, 100, 2**25]),
)
def test_blocks_and_memory_give_the_same_file(tmp_path_factory, made, chunk, slab):
    values, leading, cuts = made
    folder = tmp_path_factory.mktemp("any")
    along = values.shape[0]
    small = xr.Dataset(
        {"label": ("d0", np.array(["a"] * along, object), LABELS)},
        coords={
            "d0": ("d0", np.arange(along), LABELS),
            "level": ("d0", np.arange(along) % 2, LABELS),
        },
        attrs={"note": "kept"},
    )
    other = column(np.arange(9.0), cuts=(2,))._replace(dims=("n",))
    both = {"x": column(values, cuts, leading), "other": other}
    whole = small.assign({n: (c.dims, c.values(), c.attrs) for n, c in both.items()})
    with (
        mock.patch.multiple(in_columns, CHUNK=chunk, COMPRESSED_FROM=8),
        mock.patch.object(streaming, "SLAB", slab),
    ):
        storage.write(folder / "a.h5", small, study=STUDY, columns=both)
        storage.write(folder / "b.h5", whole, study=STUDY)
        streamed, written = (storage.read(folder / f"{n}.h5") for n in "ab")
    assert streamed.drop_attrs(deep=False).identical(written.drop_attrs(deep=False))
    assert set(streamed.attrs) == set(written.attrs)
    with (
        xr.open_dataset(folder / "a.h5", engine="h5netcdf") as streamed,
        xr.open_dataset(folder / "b.h5", engine="h5netcdf") as written,
    ):
        for name, variable in written.variables.items():
            stored, same = variable.encoding, streamed[name].encoding
            assert {**stored, "source": ""} == {**same, "source": ""}


@given(
    shape=st.lists(st.integers(0, 6), max_size=4),
    most=st.integers(1, 50),
    chunk=st.integers(1, 60),
)
@example(shape=[6], most=5, chunk=3)
def test_slabs_are_the_array_in_order(shape, most, chunk):
    numbers = np.arange(math.prod(shape)).reshape(shape)
    parts = [numbers[box].ravel() for box in slabs(shape, most)]
    assert all(0 < part.size <= most for part in parts)
    assert np.array_equal(np.concatenate([[], *parts]), numbers.ravel())
    with mock.patch.object(in_columns, "CHUNK", chunk):
        chunks = in_columns._chunk_shape(shape, 1)
    assert math.prod(chunks) <= chunk
    boxes = list(slabs(shape, most, chunks))
    parts = [numbers[box].ravel() for box in boxes]
    assert np.array_equal(np.concatenate([[], *parts]), numbers.ravel())
    if chunk <= most:  # no chunk is in two slabs
        for axis, length in enumerate(chunks):
            assert all(box[axis].start % length == 0 for box in boxes)


SOUND = column(np.arange(12.0).reshape(4, 3), cuts=(2,))
OTHER = SOUND._replace(dims=("i", "j"))
FAULTY = {
    "8 more": (OTHER._replace(shape=(20, 3)), "has 12 values only"),
    "too many": (OTHER._replace(shape=(3, 3)), "has more values than that"),
    "rows": (OTHER._replace(shape=(3, 4)), r"has a block of shape \(2, 3\)"),
    "type": (SOUND._replace(dtype=np.dtype("f4")), "has a block of type float64"),
    "complex": (column(np.ones(4) * 1j), "complex128"),
    "no units": (column(np.ones(4), attrs={"long_name": "x"}), "'units'"),
    "size": (SOUND._replace(shape=(4, 3), dims=("d0", "n")), "dimension 'n'"),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_column_that_is_not_what_it_says_is_refused(tmp_path, fault):
    wrong, text = FAULTY[fault]
    small = xr.Dataset({"y": ("n", np.ones(2), LABELS)})
    path = tmp_path / "a.h5"
    storage.write(path, small, study=STUDY)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=text) as raised:
        storage.write(path, small, study=STUDY, columns={"good": SOUND, "x": wrong})
    assert "\n" not in str(raised.value) and "x" in str(raised.value)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


def test_a_name_that_is_taken_is_refused(tmp_path):
    small = xr.Dataset({"x": ((), 1.0, LABELS)})
    with pytest.raises(ValueError, match="column 'x': is a variable of the data set"):
        storage.write(tmp_path / "a.h5", small, study=STUDY, columns={"x": SOUND})


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A streamed file of 200 MiB of values, and the memory that writing it took."""
    path = tmp_path_factory.mktemp("large") / "a.h5"
    block = np.full((2**15, 16), np.nan, np.float32)
    rows = 2**15 * 50
    x = storage.Column(
        ("point", "k"), (rows, 16), block.dtype, LABELS, lambda: iter([block] * 50)
    )
    flags = storage.Column(
        ("point", "k"),
        (rows, 16),
        np.dtype("i1"),
        LABELS,
        lambda: iter([np.isnan(block).view("i1")] * 50),
    )
    small = xr.Dataset({"y": ((), 1.0, LABELS)})
    tracemalloc.start()
    storage.write(path, small, study=STUDY, columns={"x": x, "flags": flags})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return path, peak


def test_memory_is_bounded_for_writing_and_verifying(large):
    path, peak = large
    assert peak < 80 * 2**20
    tracemalloc.start()
    assert len(storage.info(path).variables) == 3
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80 * 2**20


@pytest.mark.slow
def test_columns_that_come_whole_are_in_memory_one_at_a_time(tmp_path):
    numbers = np.zeros(2**22)

    def blocks():
        return iter([numbers + 1.0])  # 32 MiB

    x = storage.Column(("point",), numbers.shape, numbers.dtype, LABELS, blocks)
    columns = {f"x{i}": x for i in range(6)}
    tracemalloc.start()
    storage.write(tmp_path / "a.h5", xr.Dataset(), study=STUDY, columns=columns)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * numbers.nbytes  # a column, its checks and the slabs


def test_an_opened_file_reads_what_is_asked_for(large):
    path, _ = large
    tracemalloc.start()
    with storage.opened(path) as dataset:
        assert np.isnan(dataset.x.isel(k=0)[:10].values).all()
        assert dataset.y.item() == 1.0
        with pytest.raises(KeyError, match="nothing"):  # no storage error
            dataset["nothing"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20


def test_reading_more_than_the_memory_is_refused_with_the_numbers(large, monkeypatch):
    path, _ = large
    free = mock.Mock(available=2**26)
    monkeypatch.setattr(reading.psutil, "virtual_memory", lambda: free)
    with pytest.raises(storage.StorageError) as raised:
        storage.read(path)
    assert "holds 0.122 GiB and 0.0625 GiB of memory are free" in str(raised.value)
    assert "storage.opened" in str(raised.value)
