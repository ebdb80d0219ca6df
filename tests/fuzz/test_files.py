"""Whatever a file holds, it is read as it was written or refused in one line."""

import functools
import hashlib
import json
import os
import pathlib
import resource
import signal

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import example, given, settings, strategies as st

from statmech_attn import storage
from statmech_attn.scan.chunks import chunk_file
from statmech_attn.scan.chunks.chunk_file import Stored
from statmech_attn.scan.chunks.folder import Folder, Manifest
from statmech_attn.scan.chunks.work import Chunk
from statmech_attn.storage import schema
from statmech_attn.storage.schema import seal, SEAL_LENGTH


STUDY = 'kind = "trajectory"\n[parameters]\nbeta = 1.2\n'
LABELS = {"long_name": "a number", "units": "1", "symbol": "x"}
SECRET = np.full(50, 42.0)
READERS = (storage.read, storage.info)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def written(folder):
    found = xr.Dataset(
        {
            "x": (("i", "j"), np.arange(6000.0).reshape(20, 300), LABELS),
            "words": ("i", np.array([f"word {i}" for i in range(20)]), LABELS),
            "code": ("i", np.arange(20, dtype=np.int8), LABELS),
        },
        {"i": ("i", np.linspace(0, 1, 20), LABELS)},
        {"note": "kept"},
    )
    storage.write(folder / "written.h5", found, study=STUDY, keys={"seed": 1})
    return folder / "written.h5"


@pytest.fixture(scope="module")
def chunk(folder):
    arrays = {"x": np.arange(5000.0).reshape(5, 1000), "n": np.arange(5)}
    stored = Stored(Chunk(3, 0, 15, 20), arrays, {2: (1, "NaN")}, 1.5, 2.0, "e", "s")
    chunk_file.write(folder / "chunk.h5", stored, "test")
    return folder / "chunk.h5"


def one_line(call, *arguments):
    """The result, or None after an error of one line."""
    try:
        return call(*arguments)
    except storage.StorageError as error:
        assert len(str(error)) < 1000 and str(error).isprintable(), str(error)
        return None


def sealed(content):
    return content + seal(hashlib.sha256(content).hexdigest())


# --- valid HDF5, wrong content ---


def rewritten(path, written, change):
    """A copy that another program changed and gave a seal that matches."""
    path.write_bytes(written.read_bytes()[:-SEAL_LENGTH])
    with h5py.File(path, "a") as file:
        change(file)
    path.write_bytes(sealed(path.read_bytes()))
    return path


VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20),
    st.lists(st.integers(0, 9), max_size=3).map(np.array),
    st.sampled_from(["{}", "[]", "null", '{"x": 1}', "nan", STUDY, b"\xff"]),
    st.just("[" * 3000),
)
NAMES = st.sampled_from(sorted(schema.PROVENANCE))


@pytest.mark.parametrize("examples", (2, pytest.param(100, marks=pytest.mark.slow)))
def test_any_value_of_any_attribute(folder, written, examples):
    @settings(max_examples=examples, deadline=None)
    @given(NAMES, VALUES)
    @example("keys", "[" * 100_000)
    @example("schema_version", np.array([], int))
    @example("schema_version", 2)
    @example("study", 7)
    def is_read_or_refused(name, value):
        def change(file):
            file.attrs.pop(name, None)
            file.attrs[name] = value

        path = rewritten(folder / "a.h5", written, change)
        for reader in READERS:
            found = one_line(reader, path)
            if reader is storage.info and found is not None:
                assert isinstance(found.study, str) and isinstance(found.keys, dict)
                json.dumps(found.versions)
        try:
            one_line(functools.partial(storage.check_output, study=STUDY), path)
        except ValueError as error:  # what stands as its study is none
            assert str(error).isprintable()

    is_read_or_refused()


NEEDED = set(schema.PROVENANCE) - {
    *schema.CONVENTIONS,
    "git_describe",
    "started",
    "elapsed",
    "busy",
    "environment",
}


@pytest.mark.parametrize("name", schema.PROVENANCE)
def test_missing_attributes(folder, written, name):
    def change(file):
        file.attrs.pop(name, None)

    path = rewritten(folder / "a.h5", written, change)
    for reader in READERS:
        one_line(reader, path)
    assert (one_line(storage.info, path) is None) == (name in NEEDED)


def replace(name, make):
    def change(file):
        del file[name]
        make(file, name)

    return change


def elsewhere(folder):
    path = folder / "secret.h5"
    with h5py.File(path, "w") as file:
        file["code"] = SECRET
    (folder / "secret.bin").write_bytes(SECRET.tobytes())
    return path


def external_link(file, name):
    file[name] = h5py.ExternalLink(str(elsewhere(here(file))), "code")


def external_storage(file, name):
    elsewhere(here(file))
    outside = [(str(here(file) / "secret.bin"), 0, SECRET.nbytes)]
    file.create_dataset(name, (50,), "f8", external=outside)


def virtual(file, name):
    layout = h5py.VirtualLayout((50,), "f8")
    layout[:] = h5py.VirtualSource(str(elsewhere(here(file))), "code", (50,))
    file.create_virtual_dataset(name, layout)


def here(file):
    return pathlib.Path(file.filename).parent


def soft_link_to_itself(file, name):
    file[name] = h5py.SoftLink(f"/{name}")


def group_in_itself(file, name):
    file.create_group(name)[name] = file["/"]


def references(file, name):
    file.create_dataset(name, data=[file.ref], dtype=h5py.ref_dtype)


def compound(file, name):
    file[name] = np.zeros(3, [("a", "f8"), ("b", "S3")])


def gigantic(file, name):
    file.create_dataset(name, (2**20, 2**20, 2**10), "f8")


def gigantic_in_chunks(file, name):
    file.create_dataset(name, (2**40,), "f8", chunks=(2**20,), compression="gzip")


def gigantic_text(file, name):
    file.create_dataset(name, (2**35,), h5py.string_dtype(), chunks=(2**10,))


CHANGES = (
    external_link,
    external_storage,
    virtual,
    soft_link_to_itself,
    group_in_itself,
    references,
    compound,
    gigantic,
    gigantic_in_chunks,
    gigantic_text,
)
MEMORY = 300 * 2**20  # bytes that reading may take beside what is loaded already


@pytest.fixture
def bounded():
    """Little memory and little time: what takes more fails."""

    def late(*_):
        pytest.fail("still reading after 20 s")

    used = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    most = used * os.sysconf("SC_PAGE_SIZE") + MEMORY
    before = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    signal.alarm(20)
    yield
    signal.alarm(0)
    resource.setrlimit(resource.RLIMIT_AS, limits)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("make", CHANGES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ("code", "i"))
def test_files_hold_their_own_data_and_no_more(folder, written, bounded, name, make):
    path = rewritten(folder / "b.h5", written, replace(name, make))
    for reader in READERS:
        with pytest.raises(storage.StorageError, match=rf"\({name} |of {name} are"):
            reader(path)
        assert one_line(reader, path) is None


@pytest.mark.parametrize("make", CHANGES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ("header", "rows", "rows/n"))
def test_chunks_hold_their_own_data_and_no_more(folder, chunk, bounded, name, make):
    path = folder / "chunk-0000003.h5"
    path.write_bytes(chunk.read_bytes()[:-SEAL_LENGTH])
    with h5py.File(path, "a") as file:
        replace(name, make)(file)
    path.write_bytes(sealed(path.read_bytes()))
    assert one_line(chunk_file.read, path) is None


HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "schema": VALUES,
        "schema_version": VALUES,
        "chunk": st.one_of(VALUES, st.lists(st.integers(), max_size=5)),
        "failures": st.dictionaries(st.text(max_size=3), st.lists(VALUES, max_size=3)),
        "seconds": VALUES,
        "finished": VALUES,
        "environment": VALUES,
        "study": VALUES,
    },
)


@settings(max_examples=60, deadline=None)
@given(HEADERS)
@example({"failures": {"7": [1, "beyond the last row"]}})
@example({"chunk": [3, 0, 15, 2**40]})
def test_any_header_of_a_chunk(folder, chunk, changes):
    path = folder / "chunk-0000003.h5"
    path.write_bytes(chunk.read_bytes()[:-SEAL_LENGTH])
    with h5py.File(path, "a") as file:
        header = json.loads(file["header"][()]) | changes
        del file["header"]
        file["header"] = json.dumps(header, default=str)
    path.write_bytes(sealed(path.read_bytes()))
    if (found := one_line(chunk_file.read, path)) is not None:
        assert all(len(rows) == found.chunk.size for rows in found.arrays.values())
        assert set(found.failures) <= set(range(found.chunk.size))


MANIFEST = Manifest(
    schema_version=1,
    study=STUDY,
    study_sha256=storage.study_digest(STUDY),
    resolved=STUDY,
    points_per_chunk=5,
    batch=1,
    started="now",
)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_manifest(folder, data):
    content = MANIFEST.model_dump_json().encode()
    name = data.draw(st.sampled_from(sorted(MANIFEST.model_fields_set)))
    value = data.draw(VALUES | st.just("x = " + "[" * 5000) | st.just("x." * 9999))
    tree = json.loads(content) | {name: value}
    first, last = sorted(data.draw(st.integers(0, len(content))) for _ in range(2))
    cut = content[:first] + data.draw(st.binary(max_size=4)) + content[last:]
    for text in (json.dumps(tree, default=str).encode(), cut, b"[" * 100_000, b"\xff"):
        (folder / "manifest.json").write_bytes(text)
        if (found := one_line(Folder.open, folder)) is not None:
            manifest = found.manifest
            assert manifest.study_sha256 == storage.study_digest(manifest.study)
            assert manifest.points_per_chunk >= 1 and manifest.batch >= 1


# --- damaged HDF5 ---
