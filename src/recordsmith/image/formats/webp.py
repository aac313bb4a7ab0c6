"""Parse the header of a WebP file (RFC 9649).

Pillow only opens files that are intact in every part; libwebp decodes others, too.
"""

from __future__ import annotations

from typing import NamedTuple

_ANIMATED, _HAS_ALPHA = 0x02, 0x10
ANIMATED_PEAK = 20  # bytes per pixel
_LOSSY_START = b"\x9d\x01\x2a"
_LOSSLESS_START = 0x2F


class WebpHeader(NamedTuple):
    """The first chunk."""

    height: int
    width: int
    is_animated: bool
    channels: int = 0  # not parsed


def read_header(data: bytes | memoryview) -> WebpHeader | None:
    """The header of a WebP; None if it is damaged, or for other bytes."""
    head = bytes(data[:30])
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:
        return None
    if head[12:16] == b"VP8X":
        return WebpHeader(
            _number(head[27:30]) + 1, _number(head[24:27]) + 1, bool(head[20] & _ANIMATED)
        )
    if head[12:16] == b"VP8L" and head[20] == _LOSSLESS_START:
        sides = _number(head[21:25])
        return WebpHeader((sides >> 14 & 0x3FFF) + 1, (sides & 0x3FFF) + 1, False)
    if head[12:16] == b"VP8 " and head[23:26] == _LOSSY_START:
        return WebpHeader(_number(head[28:30]) & 0x3FFF, _number(head[26:28]) & 0x3FFF, False)
    return None


def bytes_per_pixel(data: memoryview, channels: int, _: int) -> int:
    """The peak memory of decoding a WebP."""
    kind = bytes(data[12:16])
    if kind == b"VP8X" and data[20] & _ANIMATED:
        return ANIMATED_PEAK
    return 8 if kind != b"VP8 " else 7 if channels == 4 else 6


def with_alpha_flag(data: bytes) -> bytes:
    """Set the alpha flag of a WebP that has alpha; OpenCV only checks this flag."""
    if data[12:16] != b"VP8X" or data[20] & _HAS_ALPHA:
        return data
    at = 30
    while data[at : at + 4] not in (b"VP8 ", b"VP8L", b""):
        if data[at : at + 4] == b"ALPH":
            return data[:20] + bytes((data[20] | _HAS_ALPHA,)) + data[21:]
        size = _number(data[at + 4 : at + 8])
        at += 8 + size + size % 2
    return data


def _number(part: bytes) -> int:
    return int.from_bytes(part, "little")
