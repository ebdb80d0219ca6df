"""Small image files in the publishers' formats, for tests without real data.

A class is a few random strokes; a drawing of it shifts and bends them a little.
"""

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw


SMALL_ZIPS = {
    "images_background_small1.zip": (
        "Balinese",
        "Early_Aramaic",
        "Greek",
        "Korean",
        "Latin",
    ),
    "images_background_small2.zip": (
        "Greek",
        "Japanese_(katakana)",
        "Latin",
        "Sanskrit",
        "Tagalog",
    ),
}


def write_omniglot(
    folder: Path, *, characters: int = 3, drawings: int = 4, side: int = 105, seed=0
) -> Path:
    """Write both small zips to `folder`/omniglot; the alphabets of split "small".

    8 alphabets of `characters` classes; Greek and Latin are in both zips.
    """
    place = Path(folder) / "omniglot"
    place.mkdir(parents=True, exist_ok=True)
    for name, alphabets in SMALL_ZIPS.items():
        write_zip(
            place / name,
            alphabets,
            characters=characters,
            drawings=drawings,
            side=side,
            seed=seed,
        )
    return Path(folder)


def write_zip(path, alphabets, *, characters=3, drawings=4, side=105, seed=0) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for alphabet in alphabets:
            for character in range(1, characters + 1):
                strokes = class_strokes(f"{alphabet}/{character}/{seed}")
                for drawer in range(1, drawings + 1):
                    member = (
                        f"{path.stem}/{alphabet}/character{character:02}/"
                        f"{character:04}_{drawer:02}.png"
                    )
                    opened.writestr(member, png(drawn(strokes, drawer, side)))


def class_strokes(name: str) -> np.ndarray:
    """Three strokes of one class, ends in [0.15, 0.85]^2; fixed by its name."""
    seed = np.frombuffer(name.encode(), np.uint8)
    return np.random.default_rng(seed).uniform(0.15, 0.85, (3, 2, 2))


def drawn(strokes: np.ndarray, drawer: int, side: int) -> np.ndarray:
    """Black on white, 0 and 255."""
    draws = np.random.default_rng([drawer, *(strokes.ravel() * 1e6).astype(int)])
    ends = strokes + 0.02 * draws.normal(size=2) + 0.015 * draws.normal(size=(3, 2, 2))
    image = Image.new("1", (side, side), 1)
    pen = ImageDraw.Draw(image)
    for stroke in ends:
        pen.line(
            [tuple(side * end) for end in stroke], fill=0, width=max(side // 30, 1)
        )
    return np.asarray(image, np.uint8) * 255


def png(values: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(values).convert("1").save(content, "PNG")
    return content.getvalue()


def write_digits(
    folder: Path, *, counts=(11, 8, 3), side: int = 28, train=False
) -> Path:
    """Write the test split of mnist/ and fashion_mnist/, with `train` both splits.

    `counts` images of class 0, 1, ..., in a fixed random order.
    """
    for name in ("mnist", "fashion_mnist"):
        place = Path(folder) / name
        place.mkdir(parents=True, exist_ok=True)
        for prefix in ("t10k", "train") if train else ("t10k",):
            images, labels = digits(f"{name}/{prefix}", counts, side)
            write_idx(place / f"{prefix}-images-idx3-ubyte.gz", images)
            write_idx(place / f"{prefix}-labels-idx1-ubyte.gz", labels)
    return Path(folder)


def digits(name: str, counts, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Images, bright on dark, and labels."""
    data_set, prefix = name.split("/")
    labels = np.repeat(np.arange(len(counts), dtype=np.uint8), counts)
    order = np.random.default_rng(len(name)).permutation(len(labels))
    first = 1 if prefix == "t10k" else 1001
    images = [
        255 - drawn(class_strokes(f"{data_set}/{label}"), first + n, side)
        for n, label in enumerate(labels)
    ]
    return np.asarray(images, np.uint8)[order], labels[order]


def write_idx(path: Path, array: np.ndarray) -> None:
    Path(path).write_bytes(gzip.compress(idx(array), mtime=0))


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + array.tobytes()
