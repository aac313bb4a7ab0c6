"""What is in a PNG file, without decoding it, and writing one with exactly these numbers.

Chunks and their order are those of ISO/IEC 15948. The writer is for what encoders of pictures do
not do: keep palettes and few bits as they were. It does not filter rows, which suits masks.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.image.colours import Colour

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
_HEADER = struct.Struct(">II5B")
_LEVEL = 6


class Chunk(NamedTuple):
    """A piece of a PNG file."""

    name: bytes
    body: bytes


class Header(NamedTuple):
    """What the first chunk says.

    bits: of a channel, or of an index.
    """

    height: int
    width: int
    bits: int
    colour_type: int


def read_header(data: bytes | memoryview) -> Header | None:
    """The header of a PNG; None if it is none."""
    if data[:8] != SIGNATURE or data[12:16] != b"IHDR" or len(data) < 33:
        return None
    width, height, bits, colour_type, *_ = _HEADER.unpack_from(data, 16)
    return Header(height, width, bits, colour_type)


def chunks_before_pixels(data: bytes) -> Iterator[Chunk]:
    """The chunks between the header and the pixels: palette, transparency, colour profile, …"""
    at = 33
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name = data[at + 4 : at + 8]
        if name == b"IDAT" or at + 12 + length > len(data):
            return
        yield Chunk(name, data[at + 8 : at + 8 + length])
        at += 12 + length


def transparent_colour(data: bytes) -> tuple[int, ...] | None:
    """The one colour of a grey or RGB picture that is transparent; None where none is."""
    for name, body in chunks_before_pixels(data):
        if name == b"tRNS" and len(body) in (2, 6):
            return struct.unpack(f">{len(body) // 2}H", body)
    return None


def palette_colours(data: bytes) -> tuple[Colour, ...]:
    """The colours of a palette PNG in the order of their numbers; none of another PNG."""
    for name, entries in chunks_before_pixels(data):
        if name == b"PLTE":
            return tuple(zip(entries[::3], entries[1::3], entries[2::3], strict=False))
    return ()


def encode_png_values(
    values: npt.NDArray[np.uint8 | np.uint16],
    *,
    bits: int,
    colour_type: int,
    chunks: Iterable[Chunk] = (),
) -> bytes:
    """A PNG of these very numbers, (height, width) or (height, width, channels).

    Args:
        bits: 1, 2, 4 for one channel, 8 or 16; all numbers fit.
        chunks: to be put in front of the pixels, such as the palette.
    """
    height, width = values.shape[:2]
    rows: Any = values.reshape(height, -1)
    if bits == 16:
        rows = rows.astype(">u2").view(np.uint8)
    elif bits < 8:
        single = np.unpackbits(rows.astype(np.uint8)[:, :, np.newaxis], axis=2)[:, :, 8 - bits :]
        rows = np.packbits(single.reshape(height, -1), axis=1)
    filtered = np.zeros((height, 1 + rows.shape[1]), np.uint8)  # each row begins with its filter
    filtered[:, 1:] = rows
    header = _HEADER.pack(width, height, bits, colour_type, 0, 0, 0)
    pixels = zlib.compress(filtered.data, _LEVEL)
    pieces = [(b"IHDR", header), *chunks, (b"IDAT", pixels), (b"IEND", b"")]
    return SIGNATURE + b"".join(encode_chunk(name, body) for name, body in pieces)


def encode_chunk(name: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(body, zlib.crc32(name))
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", checksum)
