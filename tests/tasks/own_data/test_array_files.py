"""Files of arrays that are not as they should be: what is said, and what works."""

import zipfile

import h5py
import numpy as np
import pytest

from statmech_attn.tasks import array_files, arrays, trained_arrays


P, N_0, T = 60, 12, 6  # of the example
REAL = np.ones((P, T), bool)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The example of a file."""
    return arrays.write_example(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def example(file):
    """Its arrays by name."""
    with np.load(file) as stored:
        return dict(stored)


@pytest.fixture(scope="module")
def attended(file, example):
    """The same as attentioned inputs."""
    given = arrays.load(file)
    labels = {name: example[name] for name in ("Y", "Y_test")}
    return {"xi": given.xi, "xi_test": given.xi_test, "heads": [2, 2]} | labels


def written(folder, *given):
    """A file of arrays, those of later dictionaries instead of earlier ones."""
    every = {name: x for table in given for name, x in table.items()}
    path = folder / "mine.npz"
    np.savez(path, **{name: x for name, x in every.items() if x is not None})
    return path


def changed(place, value):
    """An array with another number at a place."""

    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def swapped(*axes):
    return lambda array: np.swapaxes(array, *axes)


def one_line(path, **options):
    """What is said of a file that is refused."""
    with pytest.raises(ValueError) as error:
        arrays.load(path, **options)
    said = str(error.value)
    assert said.startswith(f"{path.name}: ") and "\n" not in said
    return said


UNDERSTOOD = (
    {"x": lambda x: x.astype(np.float32)},
    {"attention_2": lambda omega: omega.astype(np.float16)},
    {"Y": lambda Y: Y.astype(np.int8), "Y_test": lambda Y: Y.astype(int)},
    {"Y": lambda Y: Y[:, None]},
    {"head_names": lambda names: names.astype(bytes)},
    {"real": REAL, "real_test": REAL.astype(int)},
    {"real": REAL.astype(np.float32), "real_test": REAL},
    {"lengths": np.full(P, T), "lengths_test": np.full(P, float(T))},
    {"ids": np.arange(3), "notes": np.array([{}, None]), "test": np.ones(2)},
    {
        "lengths": np.full(P, T),
        "lengths_test": np.full(P, T),
        "attention_mask": REAL,
        "atention_2": REAL,
    },
    {"x": lambda x: np.asfortranarray(x)},
    {"heads_1": lambda W: W.astype(">f8")},
)
REFUSED = (
    ({"Y": None}, "no array Y; there are Y_test, attention_2"),
    ({"Y": None, "y": np.ones(P)}, "no array Y; there are"),
    ({"heads_1": None}, "no heads_1 and no attention_1; there are"),
    ({"linear_blocks": [5]}, "no heads_3 and no attention_3"),
    ({"linear_blocks": [2]}, "layer 2 is given by attention_2 and by linear_blocks"),
    ({"xi": np.ones((P, N_0, 4))}, "there are xi and x;"),
    # names that are near
    (
        {"atention_3": REAL},
        "there is atention_3, which is not read; rename it attentio",
    ),
    ({"length": np.full(P, T)}, "rename it lengths, or leave it out."),
    ({"v_1": REAL}, "rename it V_1, or leave it out."),
    (
        {"attention_mask": REAL},
        "there is attention_mask, which is not read; rename it r",
    ),
    ({"key_padding_mask": ~REAL}, "not read; real is its negation, or leave it out."),
    # labels
    ({"Y": np.arange(P)}, "of 60 classes, 0, 1, 2, 3, 4, 5, ...;"),
    ({"Y": np.arange(P) % 2}, "classes = [1, 0] in [task] makes 1 of 1 and -1 of 0."),
    ({"Y": np.eye(3)[np.arange(P) % 3]}, "Y must have one label an example, shape (P"),
    ({"Y": lambda Y: Y[None]}, "shape (1, 60); Y[0] has one label an example."),
    ({"Y": np.float64(1)}, "Y must have shape (P,), one label an example, or (P, K)"),
    ({"Y": np.ones(P + 1)}, "x must have shape (P, N_0, T) with P = 61 (labels Y), N"),
    # types and numbers
    ({"x": lambda x: x + 0j}, "x must be an array of real numbers; got complex"),
    ({"x": np.array([[1], [1, 2]], object)}, "got Python objects."),
    ({"x": changed((3, 0, 2), np.inf)}, "1 of 4320, the first at [3, 0, 2]."),
    (
        {"attention_2": changed((0, 1, 2, 3), np.nan)},
        "attention_2: head 1, example 1 the weights of query 3 are n",
    ),
    # shapes
    ({"x": swapped(1, 2)}, "T = 6 (attention_2); got (60, 6, 12)."),
    ({"x_test": lambda x: x[:, :, :5]}, "T = 6 (attention_2_test); got (60, 12, 5)."),
    (
        {"heads_1": lambda W: W[0]},
        "heads_1 must have shape (H, N_0, N_0); got (12, 12).",
    ),
    ({"heads_1": np.ones((2, 5, 5))}, "N_0 = 5 (heads_1), T = 6 (attention_2); got"),
    # weights of attention
    ({"attention_2": swapped(2, 3)}, 'the other axis of the matrix; pass queries="ro'),
    (
        {"attention_2": changed((1, 5, slice(None), 2), 0.5)},
        "attention_2: head 2, example 5 the weights of query 2 add up to 3 instead of",
    ),
    # padding
    ({"real": REAL}, "there is real and no real_test; write both"),
    ({"real": changed(4, False)(REAL), "real_test": REAL}, "real: example 4 has no to"),
    ({"real": REAL * 2, "real_test": REAL}, "real must hold truth values, or 0 and 1"),
    (
        {"lengths": np.arange(P) % 7, "lengths_test": np.full(P, T)},
        "lengths must be from 1 to T = 6; got 0 for example 0.",
    ),
    (
        dict.fromkeys(("real", "real_test"), REAL)
        | dict.fromkeys(("lengths", "lengths_test"), np.full(P, T)),
        "there are real and lengths, which both say what is padding",
    ),
    # names
    ({"head_names": ["a", "b"]}, "head_names must be 4 different names, one for every"),
    ({"head_names": ["a", "b", "c", "a"]}, "got 'a' twice."),
    ({"head_names": [1, 2, 3, 4]}, "head_names must be an array of texts; got int64"),
    (
        {"head_names": [b"\xff", b"a", b"b", b"c"]},
        "head_names holds texts that are not",
    ),
)


def spoilt(example, change):
    """Arrays of which some are changed, replaced or, with None, left out."""
    return {
        name: how(example[name]) if callable(how) else how
        for name, how in change.items()
    }


@pytest.mark.filterwarnings("ignore:attention. in layer 2 .*16 bits:UserWarning")
@pytest.mark.parametrize("change", UNDERSTOOD)
def test_what_cannot_mean_anything_else_works(file, example, tmp_path, change):
    """Up to the rounding of the types that the file has, 2^-11 for half precision."""
    given = arrays.load(written(tmp_path, example, spoilt(example, change)))
    plain = arrays.load(file)
    np.testing.assert_allclose(given.xi, plain.xi, rtol=0, atol=2e-2)
    np.testing.assert_array_equal(given.Y, plain.Y)
    assert given.names == plain.names


@pytest.mark.parametrize("change, words", REFUSED)
def test_what_cannot_be_right_is_one_line(example, tmp_path, change, words):
    assert words in one_line(written(tmp_path, example, spoilt(example, change)))


@pytest.mark.parametrize(
    "change, words",
    (
        ({"heads": None}, "xi needs heads, the number of heads of every layer"),
        ({"heads": [3, 2]}, "paths = 6 (by heads and skip); got (60, 12, 4)."),
        ({"heads": [0, 4]}, "heads must hold the number of heads of every layer, at"),
        ({"xi": lambda xi: changed((0, 0, 0), np.nan)(np.asarray(xi))}, "xi holds num"),
        ({"attention_1": np.ones(3)}, "there are xi and attention_1;"),
    ),
)
def test_attentioned_inputs_that_cannot_be_right(attended, tmp_path, change, words):
    assert words in one_line(written(tmp_path, attended, spoilt(attended, change)))


def test_one_example_and_one_head_are_enough(example, tmp_path):
    few = {name: example[name][:1] for name in ("x", "Y", "heads_1")}
    few["attention_2"] = example["attention_2"][:, :1]
    few["head_names"] = ["a", "b", "c"]
    given = arrays.load(written(tmp_path, example, few))
    assert given.xi.shape == (1, N_0, 2) and given.heads == (1, 2)


def test_sequences_of_both_sets_may_have_other_lengths(file, example, tmp_path):
    """Tokens that nobody reads change no input of a test example."""
    wider = {"x_test": np.pad(example["x_test"], ((0, 0), (0, 0), (0, 2)))}
    omega = np.pad(example["attention_2_test"], ((0, 0), (0, 0), (0, 2), (0, 2)))
    wider["attention_2_test"] = omega
    wider |= {"lengths": np.full(P, T), "lengths_test": np.full(P, T)}
    given = arrays.load(written(tmp_path, example, wider))
    np.testing.assert_allclose(given.xi_test, arrays.load(file).xi_test, rtol=1e-12)


def test_heads_are_taken_by_name_or_number(file, attended, tmp_path):
    """Paths through them are columns of all paths."""
    every = arrays.load(file)
    for chosen in (["decisive", "chosen"], ["1.2", "2.1"], ["2.1", "decisive"]):
        some = arrays.load(file, heads=chosen)
        assert some.heads == (1, 1) and some.names == ("decisive", "chosen")
        np.testing.assert_allclose(some.xi, every.xi[:, :, [2]], rtol=1e-12)
        np.testing.assert_allclose(some.xi_test, every.xi_test[:, :, [2]], rtol=1e-12)
    of_layer = arrays.load(file, heads=["noise"])  # and all of the other layer
    assert of_layer.names == ("content", "decisive", "noise")
    columns = arrays.load(written(tmp_path, attended), heads=["2.2"])
    assert columns.names == ("1.1", "1.2", "2.2")
    np.testing.assert_array_equal(columns.xi, every.xi[:, :, [1, 3]])
    said = one_line(file, heads=["desicive"])
    assert "there is no head desicive; the layers have 2, 2 heads" in said
    assert "names content, decisive, chosen, noise." in said


def test_two_classes_are_taken_with_their_examples(file, example, tmp_path):
    """In every array that has examples, and -1 and 1 in the order asked for."""
    digits = np.arange(P) % 5
    every = arrays.load(file)
    for Y in (digits, digits.astype("u1"), digits[:, None], np.eye(5)[digits]):
        path = written(
            tmp_path,
            example,
            {"Y": Y, "Y_test": Y},
            {"real": REAL, "real_test": REAL},
        )
        given = arrays.load(path, classes=[3, 1])
        rows = (digits == 3) | (digits == 1)
        np.testing.assert_array_equal(given.Y, np.where(digits[rows] == 3, 1, -1))
        np.testing.assert_allclose(given.xi, every.xi[rows], rtol=1e-12)
        np.testing.assert_allclose(given.xi_test, every.xi_test[rows], rtol=1e-12)
        assert "Y has no example of class 8, of classes = [3, 8]; it holds" in one_line(
            path, classes=[3, 8]
        )
    path = written(tmp_path, example, {"Y": np.ones((P, 2))})
    assert "or one-hot columns, for classes = [0, 1]" in one_line(path, classes=[0, 1])


def test_what_is_not_needed_is_not_read(example, tmp_path):
    """Neither arrays of other names, nor a test set where heads are scored."""
    path = tmp_path / "mine.h5"
    with h5py.File(path, "w") as file:
        for name, values in example.items():
            file[name] = values.astype(bytes) if values.dtype.kind == "U" else values
        del file["x_test"]
        file["x_test"] = np.full((P, N_0, T), np.nan)
        file.create_dataset("huge", (2**45,), "f8", chunks=(2**10,))  # 256 TiB
    assert trained_arrays.load_scored(path).heads == (2, 2)
    assert "x_test holds numbers that are not finite" in one_line(path)


def grouped(file):
    file["data/Y"] = np.ones(P)


def linked(file):
    file["Y"] = h5py.ExternalLink("arrays.npz", "/Y")


def null(file):
    file["Y"] = h5py.Empty("f8")


def never_written(file):
    file.create_dataset("Y", (P,), "f8")


@pytest.mark.parametrize(
    "fill, words",
    (
        (grouped, "no array Y; there are none (data: no array at the top of the file"),
        (linked, "no array Y; there are none (Y: no array at the top of the file"),
        (null, "Y must have shape (P,), one label an example"),
        (never_written, "Y declares 60 values, more than are stored."),
    ),
)
def test_hdf5_without_its_arrays_is_one_line(tmp_path, fill, words):
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        fill(file)
    assert words in one_line(tmp_path / "mine.h5")


@pytest.mark.parametrize("name", ("mine.npz", "mine.h5", "mine.txt"))
@pytest.mark.parametrize(
    "content, words",
    (
        (b"", "is empty"),
        (b"PK\x03\x04 nothing", "cannot be read as npz (it may be cut off) or HDF5"),
        (b"\x89HDF\r\n\x1a\n" + bytes(90), "cannot be read"),
        (b"\x93NUMPY and so on", "is a single array of numpy.save"),
    ),
)
def test_what_is_no_file_of_arrays_is_one_line(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    assert words in one_line(tmp_path / name)


def test_a_damaged_archive_is_one_line(file, tmp_path):
    path, content = tmp_path / "mine.npz", bytearray(file.read_bytes())
    content[3000:3100] = bytes(100)
    path.write_bytes(content)
    assert "mine.npz: cannot be read" in one_line(path)
    path.write_bytes(file.read_bytes()[:-400])
    assert "mine.npz: cannot be read" in one_line(path)
    packed(path, **{"Y.npy": np.random.default_rng(0).normal(size=500)})
    content = bytearray(path.read_bytes())
    content[60:90] = bytes(30)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read: Corrupt input data"):
        array_files.opened(path).numbers("Y")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"of another program")
    assert "(archive/data.pkl: no array at the top of the file" in one_line(path)


def packed(path, **members):
    """An archive of such members, an array as one of numpy."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in members.items():
            with archive.open(name, "w") as stream:
                if isinstance(content, bytes):
                    stream.write(content)
                else:
                    np.save(stream, content)


@pytest.mark.parametrize(
    "other", (np.array([7.0, 7.0]), np.arange(5.0), b"no array", b"")
)
def test_an_array_is_read_from_the_member_that_was_checked(tmp_path, other):
    packed(tmp_path / "a.npz", **{"Y.npy": np.array([1.0, -1.0]), "Y": other})
    file = array_files.opened(tmp_path / "a.npz")
    assert file.numbers("Y").tolist() == [1.0, -1.0]
    assert file.numbers("Y", [1]).tolist() == [-1.0]


@pytest.mark.parametrize(
    "header",
    (b"__import__('os').abort()", b"(" * 60_000, b"{'descr': '<f8', [", b"", b"\xff"),
)
@pytest.mark.parametrize("version", (b"\x01", b"\x09"))
def test_a_header_that_is_none_names_its_array(tmp_path, header, version):
    """Python's words on such headers name objects, or say to allow pickles."""
    length = len(header).to_bytes(2, "little")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("xi.npy", b"\x93NUMPY" + version + b"\0" + length + header)
    with pytest.raises(ValueError, match="xi has no header of numpy.save"):
        array_files.opened(tmp_path / "a.npz")


def test_a_file_is_known_by_its_content_not_by_its_name(file, tmp_path):
    path = tmp_path / "of [mine], 1.NPZ.bak"
    path.write_bytes(file.read_bytes())
    assert arrays.load(path).heads == (2, 2)


def test_a_missing_file_and_a_folder_are_errors_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        arrays.load(tmp_path / "none.npz")
    with pytest.raises(IsADirectoryError):
        arrays.load(tmp_path)
