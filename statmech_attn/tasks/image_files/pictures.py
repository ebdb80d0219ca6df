"""Decoding and resizing of single images, with Pillow (extra "images")."""

import io
import struct
import zlib

import numpy as np
from jaxtyping import UInt8

from statmech_attn import extras


MAX_SIDE = 4096  # pixels
# What Pillow raises on damaged files; an unknown format is an OSError.
_BROKEN = (EOFError, OSError, SyntaxError, ValueError, struct.error, zlib.error)


def decoded(content: bytes) -> UInt8[np.ndarray, "S S"]:
    """Grey values 0 to 255 of a square PNG."""
    Image = pillow()
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            if max(image.size) > MAX_SIDE:
                raise ValueError
            values = _grey(image, Image)
    except (*_BROKEN, Image.DecompressionBombError) as error:
        raise ValueError(
            f"no readable PNG image of at most {MAX_SIDE} pixels a side"
        ) from error
    if values.shape[0] != values.shape[1]:
        height, width = values.shape
        raise ValueError(f"{width} x {height} pixels, where images must be square")
    return values


def _grey(image, Image) -> UInt8[np.ndarray, "..."]:
    """Grey values of 8 bits, on white paper where there is none."""
    if image.mode.startswith("I"):  # 16 bits
        return (np.asarray(image, np.uint16) // 257).astype(np.uint8)
    if image.has_transparency_data:
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image.convert("RGBA"))
    return np.asarray(image.convert("L"))


def resized(values: UInt8[np.ndarray, "R R"], size: int) -> UInt8[np.ndarray, "S S"]:
    """Bilinear resize to `size` x `size`; an image of that size is left alone."""
    if values.shape == (size, size):
        return values
    Image = pillow()
    image = Image.fromarray(values)
    return np.asarray(image.resize((size, size), Image.Resampling.BILINEAR))


def pillow():
    """Pillow's module Image; `ValueError` where Pillow is not installed."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        if error.name != "PIL":
            raise
        raise ValueError(extras.needed("reading images", "Pillow", "images")) from None
    return Image
