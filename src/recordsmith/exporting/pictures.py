"""The picture and the mask of an example, as the bytes of a file. Encoded ones are not touched.

What a header says is compared with what the record says; the header is believed. Arrays of raw
pixels become PNG, which holds them without loss.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recordsmith.errors import CorruptDataError, SourceError
from recordsmith.example import Features
from recordsmith.example.keys import (
    DEPTH,
    DTYPE,
    FILENAME,
    FORMAT,
    HEIGHT,
    MASK,
    MASK_DTYPE,
    MASK_FORMAT,
    PICTURE,
    WIDTH,
)
from recordsmith.exporting.values import bytes_of, has, int_of, text_of
from recordsmith.image import PICTURE_SUFFIXES, encode_png, probe_image

PICTURE_KEYS = frozenset((PICTURE, FORMAT, HEIGHT, WIDTH, DEPTH, DTYPE, FILENAME))
MASK_KEYS = frozenset((MASK, MASK_FORMAT, MASK_DTYPE))

Tell = Callable[[str], None]
"""Called with a sentence about something that is not as it should be."""

_SUFFIXES = {
    "jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "png": (".png",),
    "gif": (".gif",),
    "bmp": (".bmp", ".dib"),
    "webp": (".webp",),
    "tiff": (".tif", ".tiff"),
    "ppm": (".ppm", ".pgm", ".pbm", ".pnm"),
    "jpeg2000": (".jp2", ".j2k"),
    "ico": (".ico",),
    "avif": (".avif",),
    "pcx": (".pcx",),
    "tga": (".tga",),
}
_OTHER_SPELLINGS = {"jpg": "jpeg", "tif": "tiff"}
_RAW_TYPES = {"bool": "uint8", "uint8": "uint8", "uint16": "uint16"}


class Picture(NamedTuple):
    """The bytes of a picture file.

    format: what its bytes are, or if those say nothing, what the record says; None if neither does.
    height, width: in pixels, as stored; 0 where nothing tells.
    """

    data: bytes
    format: str | None
    height: int
    width: int

    def split_name(self, name: str) -> tuple[str, str]:
        """A file name as stem and suffix; the suffix is one of this format, the name's if it is."""
        stem, suffix = os.path.splitext(name)
        if self.format is None:
            return (stem, suffix) if suffix.lower() in PICTURE_SUFFIXES else (name, ".bin")
        suffixes = _SUFFIXES.get(self.format, (f".{self.format}",))
        if suffix.lower() in suffixes:
            return stem, suffix
        return (stem if suffix.lower() in PICTURE_SUFFIXES else name), suffixes[0]


def read_picture(example: Features, tell: Tell) -> Picture:
    """The picture of an example.

    Raises:
        SourceError: there is none, or its raw pixels cannot become a PNG.
    """
    data = bytes_of(example, PICTURE)
    if data is None:
        keys = ", ".join(sorted(example)[:5]) or "no features"
        raise SourceError(f"there is no picture: expected {PICTURE}, found {keys}")
    declared = _declared_format(example, FORMAT)
    height, width = int_of(example, HEIGHT), int_of(example, WIDTH)
    if declared == "raw":
        return _from_raw(example, data, height, width)
    picture = _from_encoded(data, declared, tell)
    if picture.height == 0:
        return picture._replace(height=height or 0, width=width or 0)
    said = (height or picture.height, width or picture.width)
    if said != (picture.height, picture.width):
        tell(
            f"the record says {said[1]} x {said[0]} pixels, the picture's header "
            f"{picture.width} x {picture.height}"
        )
    return picture


def read_mask(example: Features, picture: Picture, tell: Tell) -> Picture | None:
    """The mask of an example, or None if it has none; of raw bytes one in the picture's size."""
    data = bytes_of(example, MASK)
    if data is None:
        return None
    declared = _declared_format(example, MASK_FORMAT)
    if declared == "raw":
        guessed = "uint8" if len(data) == picture.height * picture.width else "uint16"
        kind = (text_of(example, MASK_DTYPE) or guessed).lower()
        return _as_png(data, (picture.height, picture.width, 1), kind, "the mask")
    mask = _from_encoded(data, declared, tell, "mask")
    if mask.height and (mask.height, mask.width) != (picture.height, picture.width):
        tell(
            f"the mask has {mask.width} x {mask.height} pixels, its picture "
            f"{picture.width} x {picture.height}"
        )
    return mask


def _declared_format(example: Features, key: str) -> str | None:
    text = (text_of(example, key) or "").lower().lstrip(".")
    return _OTHER_SPELLINGS.get(text, text) or None


def _from_encoded(data: bytes, declared: str | None, tell: Tell, noun: str = "picture") -> Picture:
    try:
        info = probe_image(data)
    except CorruptDataError as error:
        tell(f"the {noun} cannot be read, and comes out as it is: {error.detail}")
        return Picture(data, declared if declared in _SUFFIXES else None, 0, 0)
    if declared not in (None, info.format):
        tell(f"the record says that the {noun} is {declared}, it is {info.format}")
    return Picture(data, info.format, info.height, info.width)


def _from_raw(example: Features, data: bytes, height: int | None, width: int | None) -> Picture:
    if not height or not width:
        raise SourceError("raw pixels without image/height and image/width")
    depth = int_of(example, DEPTH)
    if depth is None and not has(example, DEPTH):
        depth = len(data) // (height * width)
    kind = (text_of(example, DTYPE) or "uint8").lower()
    return _as_png(data, (height, width, depth or 0), kind, "the picture")


def _as_png(data: bytes, shape: tuple[int, int, int], kind: str, noun: str) -> Picture:
    if kind not in _RAW_TYPES:
        raise SourceError(
            f"{noun} is raw {kind}, which no picture file holds without loss; export as npz or "
            "parquet"
        )
    dtype = np.dtype(_RAW_TYPES[kind]).newbyteorder("<")
    if len(data) != shape[0] * shape[1] * shape[2] * dtype.itemsize:
        raise SourceError(
            f"{noun} has {len(data)} raw bytes; expected height x width x depth x bytes a value = "
            f"{shape[0]} x {shape[1]} x {shape[2]} x {dtype.itemsize}"
        )
    if not (0 < shape[0] < 2**31 and 0 < shape[1] < 2**31 and 1 <= shape[2] <= 4):
        raise SourceError(
            f"{noun} has {shape[1]} x {shape[0]} raw pixels with {shape[2]} channels; PNG holds 1 "
            "to 4 channels, and no empty pictures"
        )
    pixels = np.frombuffer(data, dtype).astype(dtype.newbyteorder("=")).reshape(shape)
    return Picture(encode_png(pixels), "png", shape[0], shape[1])
