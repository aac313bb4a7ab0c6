"""Get values of decoded examples, and their images and masks as file bytes.

Encoded images are kept byte for byte. If the header and the record differ, the header is used and
the difference reported. Raw pixels are encoded as PNG, without loss.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recordsmith.format.example import Features
from recordsmith.format.example.feature_values import (
    first_bytes,
    first_int,
    first_text,
    first_value,
)
from recordsmith.format.example.keys import (
    DEPTH,
    DTYPE,
    FILENAME,
    FORMAT,
    HEIGHT,
    IMAGE,
    MASK,
    MASK_DTYPE,
    MASK_FORMAT,
    WIDTH,
)
from recordsmith.image import IMAGE_SUFFIXES, encode_png, named_format, probe_image, usual_name
from recordsmith.support.errors import DataError, SourceError

IMAGE_KEYS = frozenset((IMAGE, FORMAT, HEIGHT, WIDTH, DEPTH, DTYPE, FILENAME))
MASK_KEYS = frozenset((MASK, MASK_FORMAT, MASK_DTYPE))

Warn = Callable[[str], None]
"""Called with a description of a problem."""

_RAW_TYPES = {"bool": "uint8", "uint8": "uint8", "uint16": "uint16"}
_BY_SIZE = {1: "uint8", 2: "uint16", 4: "float32", 8: "float64"}  # by bytes per value


class ExportedImage(NamedTuple):
    """The bytes of an image file.

    data: the file.
    format: from the header, or else from the record; None if unknown.
    height, width: in pixels, as stored; 0 if unknown.
    """

    data: bytes
    format: str | None
    height: int
    width: int

    def split_name(self, name: str) -> tuple[str, str]:
        """Split a name into stem and suffix; a suffix of another format is replaced."""
        stem, suffix = os.path.splitext(name)
        if self.format is None:
            return (stem, suffix) if suffix.lower() in IMAGE_SUFFIXES else (name, ".bin")
        suffixes = named_format(self.format).suffixes or (f".{self.format}",)
        if suffix.lower() in suffixes:
            return stem, suffix
        return (stem if suffix.lower() in IMAGE_SUFFIXES else name), suffixes[0]


def read_image(example: Features, warn: Warn) -> ExportedImage:
    data = first_bytes(example, IMAGE)
    if data is None:
        keys = ", ".join(sorted(example)[:5]) or "no features"
        raise SourceError(
            f"the image is missing: expected {IMAGE} or another feature with an image, found {keys}"
        )
    if len(example[IMAGE]) > 1:
        warn(f"it has {len(example[IMAGE])} images, and only the first is exported")
    declared = _declared_format(example, FORMAT)
    height, width = first_int(example, HEIGHT), first_int(example, WIDTH)
    if declared == "raw":
        return _from_raw(example, data, height, width)
    image = _from_encoded(data, declared, warn)
    if image.height == 0:
        return image._replace(height=height or 0, width=width or 0)
    declared_size = (height or image.height, width or image.width)
    if declared_size != (image.height, image.width):
        warn(
            f"the record declares {declared_size[1]} x {declared_size[0]} pixels, but the image "
            f"has {image.width} x {image.height}"
        )
    return image


def read_mask(example: Features, image: ExportedImage, warn: Warn) -> ExportedImage | None:
    """The mask of an example, or None. A raw mask has the size of the image."""
    data = first_bytes(example, MASK)
    if data is None:
        return None
    declared = _declared_format(example, MASK_FORMAT)
    if declared == "raw":
        guessed = "uint8" if len(data) == image.height * image.width else "uint16"
        kind = (first_text(example, MASK_DTYPE) or guessed).lower()
        return _as_png(data, (image.height, image.width, 1), kind, "the mask")
    mask = _from_encoded(data, declared, warn, "mask")
    if mask.height and (mask.height, mask.width) != (image.height, image.width):
        warn(
            f"the mask has {mask.width} x {mask.height} pixels, but its image has "
            f"{image.width} x {image.height}"
        )
    return mask


def _declared_format(example: Features, key: str) -> str | None:
    text = (first_text(example, key) or "").lower().lstrip(".")
    return usual_name(text) or None


def _from_encoded(
    data: bytes, declared: str | None, warn: Warn, noun: str = "image"
) -> ExportedImage:
    try:
        info = probe_image(data)
    except DataError as error:
        warn(f"the {noun} cannot be read and is exported unchanged: {error.detail}")
        return ExportedImage(data, declared if named_format(declared or "").name else None, 0, 0)
    if declared not in (None, info.format):
        warn(f"the record declares the {noun} as {declared}, but it is {info.format}")
    return ExportedImage(data, info.format, info.height, info.width)


def _from_raw(
    example: Features, data: bytes, height: int | None, width: int | None
) -> ExportedImage:
    if not height or not width:
        raise SourceError(
            "the image is raw pixels of unknown size: expected a height and a width, such as "
            f"{HEIGHT} and {WIDTH}",
            remedy="Add them to the records, or export as parquet or array-record.",
        )
    depth = first_int(example, DEPTH)
    kind = (first_text(example, DTYPE) or "").lower()
    if depth is None and first_value(example, DEPTH) is None:
        depth = len(data) // (height * width)
        if depth in (2, 4, 8) and not kind:
            raise SourceError(
                f"the image has {depth} bytes per pixel, which may be channels or one number",
                remedy=f"Add {DEPTH} or {DTYPE} to the records.",
            )
    if not kind:
        kind = _BY_SIZE.get(len(data) // max(1, height * width * (depth or 0)), "uint8")
    return _as_png(data, (height, width, depth or 0), kind, "the image")


def _as_png(data: bytes, shape: tuple[int, int, int], kind: str, noun: str) -> ExportedImage:
    if kind not in _RAW_TYPES:
        raise SourceError(
            f"{noun} is raw {kind}, which PNG cannot hold without loss",
            remedy="Export as parquet or array-record.",
        )
    dtype = np.dtype(_RAW_TYPES[kind]).newbyteorder("<")
    if len(data) != shape[0] * shape[1] * shape[2] * dtype.itemsize:
        raise SourceError(
            f"{noun} has {len(data)} raw bytes, expected height x width x depth x bytes per value "
            f"= {shape[0]} x {shape[1]} x {shape[2]} x {dtype.itemsize}"
        )
    if not (0 < shape[0] < 2**31 and 0 < shape[1] < 2**31 and 1 <= shape[2] <= 4):
        raise SourceError(
            f"{noun} has {shape[1]} x {shape[0]} raw pixels with {shape[2]} channels, but PNG "
            "needs 1 to 4 channels and at least one pixel"
        )
    pixels = np.frombuffer(data, dtype).astype(dtype.newbyteorder("=")).reshape(shape)
    return ExportedImage(encode_png(pixels), "png", shape[0], shape[1])
