"""Parse the header of a JPEG XL file (ISO/IEC 18181), so that limits apply before decoding.

The plugin for Pillow decodes an image when it opens it. The codestream is the file or in a box.
"""

from __future__ import annotations

from typing import NamedTuple

CODESTREAM = b"\xff\x0a"
CONTAINER = b"\0\0\0\x0cJXL \r\n\x87\n"
_PARSED_BYTES = 24  # more bytes than size and orientation take
_SIDE_BITS = (9, 13, 18, 30)
_RATIOS = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))  # width and height


class JxlHeader(NamedTuple):
    """The header of a JPEG XL image.

    Attributes:
        height, width: of the decoded pixels.
        orientation: that decoding leaves to the reader, as in EXIF: 1, except of a recompressed
            JPEG, which is decoded as a JPEG.
        channels: 0: not parsed.
    """

    height: int
    width: int
    orientation: int
    channels: int = 0


def read_header(data: bytes | memoryview) -> JxlHeader | None:
    """The header of a JPEG XL image; None if it is damaged, or for other bytes."""
    start, was_jpeg = _find_codestream(data)
    head = bytes(data[start : start + _PARSED_BYTES])
    if head[:2] != CODESTREAM:
        return None
    bits = _Bits(head[2:])
    height, width = _read_size(bits)
    orientation = 1
    if not bits.take(1) and bits.take(1):  # neither all defaults, nor without more fields
        orientation = 1 + bits.take(3)
    if bits.is_exceeded:
        return None
    if was_jpeg:
        return JxlHeader(height, width, orientation)
    return JxlHeader(width, height, 1) if orientation > 4 else JxlHeader(height, width, 1)


class _Bits:
    """The bits of some bytes, lowest first; zeros behind the end."""

    def __init__(self, data: bytes) -> None:
        self._bits = int.from_bytes(data, "little")
        self._left = 8 * len(data)

    def take(self, count: int) -> int:
        value = self._bits & ((1 << count) - 1)
        self._bits >>= count
        self._left -= count
        return value

    @property
    def is_exceeded(self) -> bool:
        return self._left < 0


def _read_size(bits: _Bits) -> tuple[int, int]:
    """(height, width)."""
    is_small = bits.take(1)

    def side() -> int:
        return 8 * (bits.take(5) + 1) if is_small else bits.take(_SIDE_BITS[bits.take(2)]) + 1

    height = side()
    ratio = bits.take(3)
    if not ratio:
        return height, side()
    across, down = _RATIOS[ratio - 1]
    return height, height * across // down


def _find_codestream(data: bytes | memoryview) -> tuple[int, bool]:
    """The offset of the codestream, and whether the file holds a recompressed JPEG."""
    if data[: len(CONTAINER)] != CONTAINER:
        return 0, False
    at, start, was_jpeg = len(CONTAINER), len(data), False
    while at + 8 <= len(data):
        size, name, body = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8], at + 8
        if size == 1:  # 64 bits follow
            size, body = int.from_bytes(data[at + 8 : at + 16], "big"), at + 16
        if name in (b"jxlc", b"jxlp"):
            start = min(start, body + 4 * (name == b"jxlp"))  # a part begins with its number
        was_jpeg = was_jpeg or name == b"jbrd"
        if size < 8:  # up to the end of the file, or damaged
            break
        at += size
    return start, was_jpeg
