"""What the header of an image shows about the sizes it would have in other formats."""

from __future__ import annotations

import math
from typing import NamedTuple

from recordsmith.image import read_image_header
from recordsmith.image.formats.jpeg import START, segments

_TABLES = 0xDB
_DEEP_BYTES = 2  # of a value with 16 bits


class ImageHeaderFigures(NamedTuple):
    """Figures of an image.

    value_bytes: of its pixels: height x width x channels, twice that for 16 bits.
    shorter_side: in pixels.
    coarseness: the logarithm of the sum of a JPEG's first quantization table, which is small for
        a high quality; 0 for other images.
    format: as `probe_image` names it; empty without an image.
    """

    value_bytes: int
    shorter_side: int
    coarseness: float
    format: str = ""

    @property
    def is_jpeg(self) -> bool:
        return self.format == "jpeg"


NO_IMAGE = ImageHeaderFigures(0, 0, 0.0)


def read_figures(data: bytes) -> ImageHeaderFigures:
    """Read the header of an image; NO_IMAGE if it is unreadable."""
    header = read_image_header(data)
    if header is None:
        return NO_IMAGE
    depth = _DEEP_BYTES if header.variant == "16-bit" else 1
    channels = 3 if header.format == "jpeg" and header.channels > 3 else header.channels  # CMYK
    return ImageHeaderFigures(
        header.height * header.width * channels * depth,
        min(header.height, header.width),
        _coarseness(data),
        header.format,
    )


def _coarseness(data: bytes) -> float:
    if data[:2] != START:
        return 0.0
    for marker, start, _ in segments(data):
        if marker == _TABLES:
            is_deep = data[start + 4] >> 4
            table = data[start + 5 : start + 5 + 64 * (1 + is_deep)]
            return math.log(max(1, sum(table[1::2] if is_deep else table)))
    return 0.0
