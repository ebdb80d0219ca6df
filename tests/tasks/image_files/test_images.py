"""Readers of image files: what they return, and what they say of damaged files."""

import gzip
import hashlib
import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from statmech_attn.tasks import downloads, images
from statmech_attn.tasks.image_files import idx, pictures
from statmech_attn.tasks.image_files.pictures import resized
from statmech_attn.tasks.image_files.splits import SPLITS, zip_of


SMALL1 = "images_background_small1.zip"
SMALL2 = "images_background_small2.zip"
# Characters of each alphabet, as published.
ALPHABETS = """
    Alphabet_of_the_Magi 20, Angelic 20, Anglo-Saxon_Futhorc 29,
    Arcadian 26, Armenian 41, Asomtavruli_(Georgian) 40,
    Atemayar_Qelisayer 26, Atlantean 26, Aurek-Besh 26, Avesta 26,
    Balinese 24, Bengali 46, Blackfoot_(Canadian_Aboriginal_Syllabics) 14,
    Braille 26, Burmese_(Myanmar) 34, Cyrillic 33, Early_Aramaic 22,
    Futurama 26, Ge_ez 26, Glagolitic 45, Grantha 43, Greek 24,
    Gujarati 48, Gurmukhi 45, Hebrew 22,
    Inuktitut_(Canadian_Aboriginal_Syllabics) 16, Japanese_(hiragana) 52,
    Japanese_(katakana) 47, Kannada 41, Keble 26, Korean 40, Latin 26,
    Malay_(Jawi_-_Arabic) 40, Malayalam 47, Manipuri 40,
    Mkhedruli_(Georgian) 41, Mongolian 30, N_Ko 33,
    Ojibwe_(Canadian_Aboriginal_Syllabics) 14,
    Old_Church_Slavonic_(Cyrillic) 45, Oriya 46, Sanskrit 42, Sylheti 28,
    Syriac_(Estrangelo) 23, Syriac_(Serto) 23, Tagalog 17, Tengwar 25,
    Tibetan 42, Tifinagh 55, ULOG 26
"""
CHARACTERS = {name: int(count) for name, count in map(str.split, ALPHABETS.split(","))}


DRAWN = np.where(np.eye(21) > 0, 0, 255)  # ink is 0


@pytest.fixture(scope="module")
def made(made_images, tmp_path_factory):
    """Both small zips with 3 characters an alphabet and 4 drawings, 21 x 21."""
    return made_images.write_omniglot(tmp_path_factory.mktemp("made"), side=21)


def named(counts) -> images.ImageClasses:
    """Classes of alphabets with these numbers of characters, images of one pixel."""
    names = [
        f"{a}/character{n + 1:02}" for a in sorted(counts) for n in range(counts[a])
    ]
    return images.ImageClasses(
        tuple(names), np.zeros((len(names), 1, 1, 1), np.float32)
    )


def rewrite(source, target, change=lambda name, content: [(name, content)]):
    """Copy a zip, member by member in the opposite order, through `change`."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for member in reversed(old.namelist()):
            for name, content in change(member, old.read(member)):
                new.writestr(name, content)


def folder_with(tmp_path, made, **changes):
    """A data folder whose first small zip is rewritten."""
    (tmp_path / "omniglot").mkdir()
    target = tmp_path / "omniglot" / SMALL1
    rewrite(made / "omniglot" / SMALL1, target, **changes)
    return tmp_path


def only(part, changed):
    """A change of the members whose name contains `part`."""
    return lambda name, content: (
        changed(name, content) if part in name else [(name, content)]
    )


def test_a_class_in_both_zips_is_there_once_and_names_are_sorted(made):
    found = images.omniglot(made, size=8)
    alphabets = [name.split("/")[0] for name in found.names]
    assert list(found.names) == sorted(set(found.names))
    assert {a: alphabets.count(a) for a in alphabets} == {
        alphabet: 3
        for alphabet in (*SPLITS["small"]["train"], "Early_Aramaic", "Greek", "Tagalog")
    }
    assert found.images.shape == (24, 4, 8, 8) and found.images.dtype == np.float32


def test_an_image_of_the_wanted_size_is_left_alone_but_for_its_sign(made, made_images):
    found = images.omniglot(made, size=21)
    strokes = made_images.class_strokes("Greek/2/0")
    shown = found.images[found.names.index("Greek/character02"), 2]
    assert (shown == 1 - made_images.drawn(strokes, 3, 21) / 255).all()
    assert set(np.unique(found.images)) == {0, 1}
    assert found.images.mean() < 0.5  # strokes are thin, so most is dark


def test_resizing_keeps_a_ramp_a_ramp():
    """A symmetric filter keeps linear functions away from the edges, to rounding."""
    ramp = np.tile(np.arange(20, 230, 2, dtype=np.uint8), (105, 1))
    small = resized(ramp, 32).astype(float)
    centres = (np.arange(32) + 0.5) * 105 / 32 - 0.5
    # The triangle reaches 105/32 pixels to either side: one pixel of the result.
    assert np.abs(small - (20 + 2 * centres))[:, 2:-2].max() <= 1
    assert np.ptp(small, axis=0).max() == 0


def test_the_order_of_members_and_the_name_of_the_top_folder_do_not_matter(
    made, tmp_path
):
    again = lambda name, content: [(name.replace("images_background", "x/y"), content)]
    folder = folder_with(tmp_path, made, change=again)
    (folder / "omniglot" / SMALL2).write_bytes(
        (made / "omniglot" / SMALL2).read_bytes()
    )
    found, before = images.omniglot(folder, size=8), images.omniglot(made, size=8)
    assert found.names == before.names
    assert images.digest(found) == images.digest(before)


@pytest.mark.parametrize(
    "change, said",
    [
        (only("Greek/character02/0002_03", lambda n, c: []), "character02 has 3"),
        (only("Greek/character02/0002_03", lambda n, c: [(n, b"GIF89a")]), "0002_03"),
        (only("Latin/character01/0001_01", lambda n, c: [(n, c[:60])]), "0001_01"),
        (
            only("Latin/character01/0001_01", lambda n, c: [(n, c), ("b/" + n, c)]),
            "same drawing",
        ),
        (lambda name, content: [(name[:-4] + ".txt", content)], "no ALPHABET"),
    ],
)
def test_what_is_wrong_inside_a_zip_is_named(made, tmp_path, change, said):
    folder = folder_with(tmp_path, made, change=change)
    with pytest.raises(ValueError, match=said) as error:
        images.omniglot(folder, size=8)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def test_damaged_lzma_is_named(tmp_path):
    (tmp_path / "omniglot").mkdir()
    path = tmp_path / "omniglot" / SMALL1
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        noise = np.random.default_rng(0).bytes(1600)
        archive.writestr("b/Greek/character01/0001_01.png", noise)
    content = bytearray(path.read_bytes())
    content[75:95] = bytes(20)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="0001_01.png: .*; fetch the zip anew"):
        images.omniglot(tmp_path, size=8)


GREY = np.full((21, 21), 40_000, np.uint16)
GREY[5:9] = 2000


def encoded(image):
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def test_grey_values_of_16_bits_are_scaled():
    ramp = np.array([[0, 256], [257, 65535]], np.uint16)
    decoded = pictures.decoded(encoded(Image.fromarray(ramp)))
    assert decoded.tolist() == [[0, 0], [1, 255]]
    assert np.unique(pictures.decoded(encoded(Image.fromarray(GREY)))).tolist() == [
        2000 // 257,
        40_000 // 257,
    ]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_strokes_on_nothing_are_strokes_on_white(mode):
    """Ink in the alpha channel, or in a palette with a transparent colour."""
    alpha = Image.fromarray(np.where(GREY < 5000, 255, 0).astype(np.uint8))
    if mode == "P":
        image = Image.fromarray((np.asarray(alpha) > 0).astype(np.uint8), "P")
        image.putpalette([9, 9, 9, 0, 0, 0])
        image.info["transparency"] = 0
    else:
        image = Image.new(mode, alpha.size, 0)
        image.putalpha(alpha)
    decoded = pictures.decoded(encoded(image))
    assert np.array_equal(decoded, np.where(GREY < 5000, 0, 255))


@pytest.mark.parametrize(
    ("member", "image", "said"),
    [
        ("Korean/character01/0001_02", np.full((21, 21), 255), "nothing is drawn"),
        ("Korean/character01/0001_02", 255 - DRAWN, "more ink than paper"),
        ("Korean/character01/0001_02", DRAWN // 255, "more ink than paper"),
        (f"Ko\n{'y' * 50_000}/character01/0001_02", np.zeros((2, 3)), "3 x 2 pixels"),
        ("Korean/character01/0001_02", np.zeros((20, 20)), "20 pixels a side, the oth"),
        (f"Korean/character01/1_{'2' * 5000}", np.zeros((3, 3)), "character01 has 3"),
    ],
)
def test_drawings_that_say_nothing_are_named_in_one_short_line(
    made, tmp_path, member, image, said
):
    content = encoded(Image.fromarray(image.astype(np.uint8)))
    instead = lambda name, _: [(f"b/{member}.png", content)]
    change = only("Korean/character01/0001_02", instead)
    with pytest.raises(ValueError, match=said) as error:
        images.omniglot(folder_with(tmp_path, made, change=change), size=8)
    text = str(error.value).removeprefix(str(tmp_path))
    assert "\n" not in text and len(text) < 300


def test_drawings_are_resized_one_by_one_and_bounded(made_images, tmp_path):
    (tmp_path / "omniglot").mkdir()
    white = encoded(Image.fromarray(np.full((4096, 4096), 255, np.uint8)))
    with zipfile.ZipFile(tmp_path / "omniglot" / SMALL1, "w") as archive:
        for drawer in range(9):
            archive.writestr(f"b/Greek/character01/0001_{drawer}.png", white)
    with pytest.raises(ValueError, match="9 drawings of 4096 pixels a side, more than"):
        images.omniglot(tmp_path, size=8)


def test_zips_that_disagree_about_a_class_are_an_error(made, made_images, tmp_path):
    made_images.write_omniglot(tmp_path, side=21)
    path = tmp_path / "omniglot" / SMALL2
    made_images.write_zip(path, ["Latin", "Tagalog"], side=21, seed=1)
    with pytest.raises(ValueError, match="Latin/character01 differs"):
        images.omniglot(tmp_path, size=8)


def test_a_damaged_byte_is_harmless_or_an_error_that_names_the_place(
    made_images, tmp_path
):
    """Zips have a CRC for each member; names and sizes are stored twice."""
    (tmp_path / "omniglot").mkdir()
    path = tmp_path / "omniglot" / SMALL1
    made_images.write_zip(path, ["Greek"], characters=2, drawings=2, side=21)
    whole, before = path.read_bytes(), images.digest(images.omniglot(tmp_path, size=8))
    draws = np.random.default_rng(0)
    caught = 0
    for at in draws.integers(len(whole), size=200):
        flipped = whole[at] ^ int(draws.integers(1, 256))
        path.write_bytes(whole[:at] + bytes([flipped]) + whole[at + 1 :])
        try:
            assert images.digest(images.omniglot(tmp_path, size=8)) == before, at
        except ValueError as error:
            assert str(tmp_path) in str(error), at
            caught += 1
    for length in (0, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=f"{SMALL1}: no readable zip"):
            images.omniglot(tmp_path, size=8)
    assert caught > 50


def test_missing_data_say_where_to_get_them(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="statmech-attn download omniglot --data"):
        images.omniglot(tmp_path)
    with pytest.raises(ValueError, match="statmech-attn download fashion-mnist --data"):
        images.elsewhere(tmp_path, "fashion-mnist")
    monkeypatch.delenv("STATMECH_ATTN_DATA", raising=False)
    with pytest.raises(ValueError, match="it is not set. Download: statmech-attn"):
        images.data_folder()
    monkeypatch.setenv("STATMECH_ATTN_DATA", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="no folder .*none. Download"):
        images.data_folder()
    monkeypatch.setenv("STATMECH_ATTN_DATA", str(tmp_path))
    assert images.data_folder() == tmp_path


def test_without_pillow_the_extra_is_named(made, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    needed = r"^reading images needs Pillow: .*\[images\]'\.$"
    with pytest.raises(ValueError, match=needed):
        images.omniglot(made)


def test_the_published_split_has_1028_172_and_423_characters():
    whole = named(CHARACTERS)
    assert len(whole.names) == 1623
    parts = images.split(whole, "vinyals")
    assert [len(part.names) for part in parts] == [1028, 172, 423]
    assert sorted(sum((part.names for part in parts), ())) == list(whole.names)
    # The lists cut after the 1200th class: those of the first zip, then of the second.
    listed = sorted(whole.names, key=lambda name: (zip_of(name), name))
    assert parts.test.names == tuple(listed[1200:])
    assert sum(zip_of(name) == "images_background.zip" for name in listed) == 964


def test_a_part_holds_the_images_of_its_names(made):
    whole = images.omniglot(made, size=8)
    parts = images.split(whole, "small")
    assert [len(part.names) for part in parts] == [15, 3, 6]
    for part in parts:
        rows = [whole.names.index(name) for name in part.names]
        assert (part.images == whole.images[rows]).all()
    assert len(set(sum((part.names for part in parts), ()))) == 24


@pytest.mark.parametrize(
    "split, said",
    [
        ("lake", '"small" or "vinyals"; got \'lake\''),
        ("vinyals", "Alphabet_of_the_Magi is not .* images_background.zip"),
        (dict(train=["Greek"], validation=[], test=["Korean"]), "needs the lists"),
        (
            dict(train=["Greek"], validation=["Latin"], test=["ULOG"]),
            "ULOG is not .* images_evaluation.zip. Download: .* download omniglot --",
        ),
        ("small", "Balinese is not .*small2.zip. Download: .* omniglot-small --data"),
        (
            dict(train=["Greek"], validation=["Klingon"], test=["Latin"]),
            "no such alphabet or class: Klingon.$",
        ),
        (
            dict(train=["Greek"], validation=["Latin"], test=["Greek/character02"]),
            "Greek/character02 would be in two parts",
        ),
    ],
)
def test_bad_splits_are_refused(split, said):
    classes = named({"Greek": 2, "Latin": 2, "Korean": 2})
    with pytest.raises(ValueError, match=said):
        images.split(classes, split)


def test_a_name_that_begins_another_is_not_taken_for_it():
    classes = named({"Greek": 2, "Greek_old": 2, "Latin": 1, "Korean": 1})
    lists = dict(train=["Greek"], validation=["Latin"], test=["Korean"])
    assert images.split(classes, lists).train.names == (
        "Greek/character01",
        "Greek/character02",
    )


def test_without_training_files_the_halves_of_the_test_files_are_apart(
    made_images, tmp_path
):
    made_images.write_digits(tmp_path, counts=(11, 8, 3))
    support, query = images.elsewhere(tmp_path, "mnist", size=28)
    pixels, labels = made_images.digits("mnist/t10k", (11, 8, 3), 28)
    assert support.names == query.names == ("0", "1")
    # 11 images halve to 6 and 5, 8 to 4 and 4; both classes are cut to 4.
    for label in (0, 1):
        mine = pixels[labels == label] / np.float32(255)
        half = (len(mine) + 1) // 2
        assert (support.images[label] == mine[:4]).all()
        assert (query.images[label] == mine[half : half + 4]).all()


def test_supports_come_from_the_training_files_and_queries_from_the_test_files(
    made_images, tmp_path
):
    made_images.write_digits(tmp_path, counts=(5, 7), train=True)
    support, query = images.elsewhere(tmp_path, "fashion-mnist", size=28)
    for found, prefix in ((support, "train"), (query, "t10k")):
        pixels, labels = made_images.digits(f"fashion_mnist/{prefix}", (5, 7), 28)
        for label in (0, 1):
            shown = pixels[labels == label][:5] / np.float32(255)
            assert (found.images[label] == shown).all()
    small, _ = images.elsewhere(tmp_path, "fashion-mnist", size=14)
    assert small.images.shape == (2, 5, 14, 14)


def test_plain_and_gzipped_idx_files_are_the_same(made_images, tmp_path):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    made_images.write_idx(tmp_path / "a.gz", array)
    (tmp_path / "a").write_bytes(made_images.idx(array))
    assert (idx.read(tmp_path / "a.gz", 3) == array).all()
    assert (idx.read(tmp_path / "a", 3) == array).all()


def test_images_of_no_pixels_are_refused(made_images, tmp_path):
    made_images.write_digits(tmp_path, counts=(4, 4))
    place = tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz"
    made_images.write_idx(place, np.zeros((8, 0, 0), np.uint8))
    with pytest.raises(ValueError, match="must be square; got \\(0, 0\\) pixels"):
        images.elsewhere(tmp_path, "mnist")


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda c: b"", "not an IDX file .* begins with nothing"),
        (lambda c: b"\0\0\x0d\3" + c[4:], "not an IDX file .* 00 00 0d 03"),
        (lambda c: c[:-1], r"truncated: .* \(2, 3, 4\), 24 bytes; got 23"),
        (lambda c: c + b"\0", "too long: .*got 25"),
        (lambda c: c[:4] + b"\xff" * 12 + c[16:], "truncated"),
        (lambda c: gzip.compress(c)[:12] + b"\xff" * 20, "broken gzip"),
    ],
)
def test_damaged_idx_files_are_named(made_images, tmp_path, change, said):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "a").write_bytes(change(made_images.idx(array)))
    with pytest.raises(ValueError, match=f"^{tmp_path}/a: {said}"):
        idx.read(tmp_path / "a", 3)


def test_labels_and_images_must_fit(made_images, tmp_path):
    made_images.write_digits(tmp_path, counts=(4, 4))
    labels = tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz"
    made_images.write_idx(labels, np.zeros(7, np.uint8))
    with pytest.raises(ValueError, match="7 labels for the 8 images"):
        images.elsewhere(tmp_path, "mnist")
    made_images.write_idx(labels, np.zeros(8, np.uint8))
    with pytest.raises(ValueError, match="class 1 needs two or more images; got 0"):
        images.elsewhere(tmp_path, "mnist")
    labels.unlink()
    with pytest.raises(ValueError, match="its t10k-labels.* missing"):
        images.elsewhere(tmp_path, "mnist")
    with pytest.raises(ValueError, match='"mnist" or "fashion-mnist"; got \'cifar\''):
        images.elsewhere(tmp_path, "cifar")
    with pytest.raises(ValueError, match="size must be at least 1 pixel"):
        images.elsewhere(tmp_path, "mnist", size=0)


@pytest.fixture(scope="module")
def real(image_data):
    return images.omniglot(image_data)


def test_the_small_zips_hold_242_characters_of_8_alphabets(real, image_data):
    assert real.images.shape == (242, 20, 32, 32)
    assert 0 <= real.images.min() and real.images.max() == 1
    assert real.images.mean() < 0.2
    alphabets = [name.split("/")[0] for name in real.names]
    found = {alphabet: alphabets.count(alphabet) for alphabet in alphabets}
    assert found == {alphabet: CHARACTERS[alphabet] for alphabet in found}
    assert [len(part.names) for part in images.split(real, "small")] == [179, 22, 41]
    for name, digest in downloads.SOURCES["omniglot-small"].digests.items():
        content = (image_data / "omniglot" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest


def test_real_drawings_are_of_drawers_1_to_20_upright(real, image_data):
    path = image_data / "omniglot" / SMALL1
    with zipfile.ZipFile(path) as opened:
        member = "images_background_small1/Greek/character01/0394_07.png"
        with opened.open(member) as content, Image.open(content) as image:
            small = image.convert("L").resize((32, 32), Image.Resampling.BILINEAR)
    shown = real.images[real.names.index("Greek/character01"), 6]
    assert np.abs(shown - (1 - np.asarray(small) / 255)).max() < 1.01 / 255


@pytest.mark.parametrize("name, count", [("mnist", 490), ("fashion-mnist", 45)])
def test_real_digits_and_clothes_halve(image_data, name, count):
    """980 and 1135 test images of the digits 0 and 1; 90 of each piece of clothing."""
    support, query = images.elsewhere(image_data, name)
    assert support.images.shape == query.images.shape == (2, count, 32, 32)
    assert not (support.images == query.images).all((2, 3)).any()
    # A shirt covers more than trousers, a nought more than a one.
    assert support.images[0].mean() > support.images[1].mean()


def test_turned_classes_are_the_eight_images_of_a_square():
    """Reflections and their transposes, upright ones first; names say which."""
    pixels = np.random.default_rng(0).random((3, 2, 5, 5), np.float32)
    upright = images.ImageClasses(("a", "b", "c"), pixels)
    turned = images.turned(upright)
    assert len(set(turned.names)) == len(turned.images) == 24
    np.testing.assert_array_equal(turned.images[:3], pixels)
    seen = {image.tobytes() for image in turned.images[1::3]}
    flips = [np.s_[:, ::i, ::j] for i in (1, -1) for j in (1, -1)]
    b = pixels[1]
    expected = [x[flip] for x in (b, b.swapaxes(1, 2)) for flip in flips]
    assert seen == {np.ascontiguousarray(x).tobytes() for x in expected}
    assert turned.names[4] == "b turned 90"
    assert turned.names[16] == "b mirrored turned 90"


def test_a_digest_is_that_of_names_shape_and_pixels():
    classes = images.ImageClasses(("a",), np.zeros((1, 1, 2, 2), np.float32))
    assert images.digest(classes).startswith("ee7d7670")  # files of results keep it
