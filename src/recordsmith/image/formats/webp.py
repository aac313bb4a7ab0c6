"""Parse the header of a WebP file (RFC 9649).

Pillow only opens files that are intact in every part; libwebp decodes others, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.image.formats.header import ImageHeader

_ANIMATED, _HAS_ALPHA = 0x02, 0x10
ANIMATED_PEAK = 20  # bytes per pixel
_LOSSY_START = b"\x9d\x01\x2a"
_LOSSLESS_START = 0x2F
_LOSSLESS_ALPHA = 1 << 28


def read_header(data: bytes | memoryview) -> ImageHeader | None:
    """The header of a WebP; None if it is damaged, or for other bytes."""
    head = bytes(data[:30])
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:
        return None
    if head[12:16] == b"VP8X":
        channels = 4 if head[20] & _HAS_ALPHA else 3
        variant = "animated" if head[20] & _ANIMATED else ""
        height, width = _number(head[27:30]) + 1, _number(head[24:27]) + 1
        return ImageHeader("webp", height, width, channels, variant)
    if head[12:16] == b"VP8L" and head[20] == _LOSSLESS_START:
        sides = _number(head[21:25])
        channels = 4 if sides & _LOSSLESS_ALPHA else 3
        return ImageHeader("webp", (sides >> 14 & 0x3FFF) + 1, (sides & 0x3FFF) + 1, channels)
    if head[12:16] == b"VP8 " and head[23:26] == _LOSSY_START:
        height, width = _number(head[28:30]) & 0x3FFF, _number(head[26:28]) & 0x3FFF
        return ImageHeader("webp", height, width, 3)
    return None


def has_end(data: bytes) -> bool:
    """Whether a WebP has as many bytes as its header says."""
    return len(data) - 8 >= _number(data[4:8])


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
    for name, _ in chunks(data, 30):
        if name == b"ALPH":
            return data[:20] + bytes((data[20] | _HAS_ALPHA,)) + data[21:]
        if name in (b"VP8 ", b"VP8L"):
            break
    return data


def chunks(data: bytes, start: int = 12) -> Iterator[tuple[bytes, int]]:
    """The name of each chunk from `start` on, and the offset of its content."""
    while start + 8 <= len(data):
        yield data[start : start + 4], start + 8
        size = _number(data[start + 4 : start + 8])
        start += 8 + size + size % 2


def _number(part: bytes) -> int:
    return int.from_bytes(part, "little")
