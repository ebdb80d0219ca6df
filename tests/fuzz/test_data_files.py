"""Damaged pattern files, IDX files, Omniglot zips: read as they were, or one line."""

import gzip
import json
import random
import zipfile
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.tasks import images
from statmech_attn.tasks.image_files import idx


def many(few: int, whole: int):
    """A number of rounds: few of them, and the whole in the slow suite."""
    return pytest.mark.parametrize(
        "rounds", (few, pytest.param(whole, marks=pytest.mark.slow))
    )


def one_line(path, call, *arguments):
    """The result, or None after an error of one line that names the file."""
    try:
        return call(*arguments)
    except (OSError, ValueError) as error:
        said = str(error)
        assert len(said) < 1000 and said.isprintable() and path.name in said, said
        return None


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Some bits flipped, bytes cut out, repeated or made anew, or the end cut off."""
    data = bytearray(content)
    first, last = sorted(chance.randrange(len(data)) for _ in range(2))
    match chance.randrange(5):
        case 0:
            del data[first:]
        case 1:
            data[first : min(last, first + 50)] = chance.randbytes(chance.randrange(50))
        case 2:
            data[first:first] = data[first:last]
        case _:
            for _ in range(chance.choice((1, 1, 8))):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


# --- patterns ---

VALUES = (
    None,
    True,
    0,
    -1,
    0.5,
    1e308,
    -1e-300,
    10**400,
    4294967296,
    float("nan"),
    float("inf"),
    "",
    "text",
    "\x1b[2J",
    [],
    [[]],
    [1, -1],
    [[1], [1, -1]],
    {"o": 1},
)


def places(tree):
    """Every container of a tree of JSON, with each of its keys."""
    keys = tree if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], (dict, list)):
            yield from places(tree[key])


def changed(tree, chance: random.Random):
    """One entry of a tree replaced, taken out or doubled; rarely a table is nested."""
    container, key = chance.choice([*places(tree)])
    match chance.randrange(5):
        case 0:
            del container[key]
        case 1 if isinstance(container, list):
            container.insert(key, container[key])
        case 2:
            container[key] = [container[key]]
        case _:
            container[key] = chance.choice(VALUES)
    return tree


@many(60, 3000)
def test_damaged_pattern_files(tmp_path, rounds):
    chance, path = random.Random(rounds), tmp_path / "p.json"
    whole = 0
    for _ in range(rounds):
        dmft.save(path, dmft.load(chance.choice(dmft.presets())), overwrite=True)
        content = path.read_bytes()
        tree = json.loads(content)
        if chance.random() < 0.7:
            for _ in range(chance.randint(1, 2)):
                changed(tree, chance)
            content = json.dumps(tree).encode()
        else:
            content = damaged(content, chance)
        path.write_bytes(content)
        if (found := one_line(path, dmft.load, path)) is None:
            continue
        whole += 1
        read = json.loads(content.decode(errors="replace"))
        semantic, fractions, positional = found.patterns
        for kind, signs, bits in zip("ovqk", semantic, positional, strict=True):
            np.testing.assert_array_equal(signs, read["semantic"][kind])
            np.testing.assert_array_equal(bits, read["positional"][kind])
        assert (np.abs(semantic) == 1).all() and (np.abs(positional) == 1).all()
        assert abs(fractions.sum() - 1) < 1e-6 and (fractions >= 0).all()
        assert found.context == read["context"] and found.gamma == read["gamma"]
    assert whole < rounds


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_any_value_in_a_pattern_file(tmp_path, value):
    path = tmp_path / "p.json"
    dmft.save(path, dmft.load("poclopez-pe2"))
    text = path.read_text()
    for place in ("semantic", "positional", "fractions", "context", "gamma", "start"):
        tree = json.loads(text)
        container: Any = tree
        key, inner = place, tree[place]
        while isinstance(inner, (dict, list)):
            container, key = (
                inner,
                next(iter(inner if isinstance(inner, dict) else [0])),
            )
            inner = container[key]
        container[key] = value
        path.write_text(json.dumps(tree))
        one_line(path, dmft.load, path)


# --- images ---


def test_damaged_idx_files_unpacked(tmp_path, made_images):
    """What has no checksum is of the size that its header says, or refused."""
    chance, path = random.Random(0), tmp_path / "t10k-images-idx3-ubyte"
    content = made_images.idx(made_images.digits("mnist/t10k", (11, 8, 3), 28)[0])
    for number in range(300):
        path.write_bytes(damaged(content[: 2000 if number % 2 else None], chance))
        if (found := one_line(path, idx.read, path, 3)) is not None:
            data = path.read_bytes()
            assert found.tobytes() == data[16:] and found.ndim == 3


@many(40, 1000)
def test_damaged_idx_files(tmp_path, made_images, rounds):
    """Where gzip's checksum holds, images are as they were written."""
    chance = random.Random(rounds)
    made_images.write_digits(tmp_path, train=True)
    good = images.elsewhere(tmp_path, "mnist", size=8)
    files = sorted((tmp_path / "mnist").iterdir())
    for _ in range(rounds):
        path = chance.choice(files)
        content = path.read_bytes()
        path.write_bytes(damaged(content, chance))
        found = one_line(tmp_path, images.elsewhere, tmp_path, "mnist")
        if found is not None:
            found = images.elsewhere(tmp_path, "mnist", size=8)
            np.testing.assert_equal(found, good)
        path.write_bytes(content)


@pytest.mark.parametrize("shape", ((2**31, 2**31, 2**31), (2**32 - 1, 0, 28)))
def test_headers_of_no_size(tmp_path, made_images, shape):
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    header = made_images.idx(np.zeros((0, 0, 0), np.uint8))[:4]
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    path.write_bytes(gzip.compress(header + sizes))
    found = one_line(path, idx.read, path, 3)
    assert found is None or found.size == 0


def rezipped(content: bytes, chance: random.Random, png: bytes) -> bytes:
    """A zip, valid, of which a member is renamed, doubled, left out or another."""
    target = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(target, "w") as new:
        names = old.namelist()
        chosen = chance.choice(names)
        for name in names:
            data = old.read(name)
            if name == chosen:
                match chance.randrange(6):
                    case 0:
                        continue
                    case 1:
                        name = chance.choice(("../" + name, name + "\x1b[2J", "/", "x"))
                    case 2:
                        new.writestr(name.replace("_", "_0"), data)
                    case 3:
                        data = png
                    case 4:
                        data = damaged(data, chance)
                    case _:
                        data = chance.randbytes(chance.randrange(200))
            new.writestr(name, data)
    return target.getvalue()


@many(12, 300)
def test_damaged_omniglot_zips(tmp_path, made_images, rounds):
    """Damage that the zip's checksums see; zips that are whole, but not Omniglot."""
    chance = random.Random(rounds)
    made_images.write_omniglot(tmp_path, characters=1, drawings=2, side=21)
    place = tmp_path / "omniglot"
    path = place / "images_background_small2.zip"
    (place / "images_background_small1.zip").unlink()
    content, good = path.read_bytes(), images.omniglot(tmp_path, size=7)
    oblong = made_images.png(np.zeros((21, 20), np.uint8))
    for number in range(rounds):
        whole = number % 2
        made = rezipped(content, chance, oblong) if whole else damaged(content, chance)
        path.write_bytes(made)
        found = one_line(place, images.omniglot, tmp_path)
        if found is None:
            continue
        assert found.images.min() >= 0 and found.images.max() <= 1
        if not whole:
            np.testing.assert_equal(images.omniglot(tmp_path, size=7), good)
