"""Parse the structure of PNG files without decoding them, and encode exact values.

Follows ISO/IEC 15948. Unlike image encoders, `encode_png_values` keeps palettes and bit depths. It
does not filter rows, which suits masks.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.image.colours import Colour
from recordsmith.image.formats.header import ImageHeader, unreadable

try:
    from zlib_ng.zlib_ng import crc32
except ImportError:  # the extra `speed` is not installed
    from zlib import crc32

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
_HEADER = struct.Struct(">II5B")
_LENGTH_AND_NAME = struct.Struct(">I4s").unpack_from
_CHECKSUM = struct.Struct(">I").unpack_from
_LEVEL = 6
_BITS = {
    GREY: (1, 2, 4, 8, 16),
    RGB: (8, 16),
    PALETTE: (1, 2, 4, 8),
    GREY_ALPHA: (8, 16),
    RGBA: (8, 16),
}
_SCALES = {1: 255, 2: 85, 4: 17}  # from grey levels of few bits to 0-255
_CRITICAL = frozenset((b"IHDR", b"PLTE", b"IDAT", b"IEND"))
_PEAKS = {GREY: 4, RGB: 6, PALETTE: 6, GREY_ALPHA: 8, RGBA: 8}  # OpenCV decodes into a copy
_PEAK_OF_MORE = 12  # with a transparent colour, or animated
_LONGEST_SIDE = 1_000_000  # of libpng
_PIECE = 1 << 16  # bytes to decompress at once


class Chunk(NamedTuple):
    name: bytes
    body: bytes


class PngHeader(NamedTuple):
    """The header chunk; `bits` are those of a channel, or of a palette index."""

    height: int
    width: int
    bits: int
    colour_type: int


def read_png_header(data: bytes | memoryview) -> PngHeader | None:
    """The header chunk of a PNG; None for other bytes."""
    if data[:8] != SIGNATURE or data[12:16] != b"IHDR" or len(data) < 33:
        return None
    width, height, bits, colour_type, *_ = _HEADER.unpack_from(data, 16)
    return PngHeader(height, width, bits, colour_type)


def read_header(data: bytes | memoryview) -> ImageHeader | None:
    """The header of a PNG; without channels if the colour type is invalid."""
    header = read_png_header(data)
    if header is None:
        return None
    channels = 3 if header.colour_type == PALETTE else CHANNELS.get(header.colour_type, 0)
    variant = "16-bit" if header.bits == 16 else ""
    return ImageHeader("png", header.height, header.width, channels, variant)


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


def bytes_per_pixel(data: memoryview, channels: int, _: int) -> int:
    """The peak memory of decoding a PNG."""
    encoded = bytes(data)  # not copied if it was bytes
    header = read_png_header(encoded)
    assert header is not None
    names = {chunk.name for chunk in chunks_before_pixels(encoded)}
    peak = _PEAKS.get(header.colour_type, 8)
    if b"acTL" in names or b"tRNS" in names:
        peak = _PEAK_OF_MORE
    if channels == 4:
        peak = max(peak, 7)  # alpha is added to a copy
    return peak * (2 if header.bits == 16 else 1)


def check_chunks(data: bytes) -> None:
    """Verify the checksums of all chunks of a PNG without decoding it."""
    at = len(SIGNATURE)
    for name, whole, is_intact in _checked_chunks(data):
        if not is_intact:
            raise unreadable(
                f"the PNG image is damaged: the {len(whole) - 12:,} bytes of its {name!r} chunk at "
                f"byte {at:,} do not match their checksum"
            )
        at += len(whole)


def transparent_colour(data: bytes, header: PngHeader) -> tuple[int, ...] | None:
    """The transparent colour of a grey or RGB image in 8 or 16 bits; None if missing.

    Grey levels of fewer bits are scaled to 0-255, as the decoded pixels are.
    """
    highest = (1 << header.bits) - 1
    scale = _SCALES.get(header.bits, 1)
    for name, body in chunks_before_pixels(data):
        if name == b"tRNS" and len(body) == 2 * CHANNELS[header.colour_type]:
            levels = struct.unpack(f">{len(body) // 2}H", body)
            return tuple((level & highest) * scale for level in levels)
    return None


def plain_png(data: bytes, on_damage: Callable[[str], None] | None = None) -> bytes:
    """Remove all chunks that do not affect pixels, and validate the others as libpng does.

    libpng prints warnings, so it only gets chunks that it accepts silently. Chunks that
    TensorFlow's libpng ignores, such as a damaged comment, are removed.

    Args:
        on_damage: called with a description of a damaged chunk that does not affect pixels.
    """
    header = read_png_header(data)
    if header is None:
        raise unreadable("the PNG image is damaged: its header is missing")
    if header.bits not in _BITS.get(header.colour_type, ()) or any(data[26:28]) or data[28] > 1:
        raise unreadable("the PNG image is damaged: its header is invalid")
    if max(header.height, header.width) > _LONGEST_SIDE:
        raise unreadable(
            "the PNG image is too large for libpng",
            found=f"{header.width:,} x {header.height:,} pixels",
            expected=f"at most {_LONGEST_SIDE:,} per side",
        )
    kept: list[memoryview] = []
    seen: dict[bytes, int] = {}
    previous = b""
    for name, whole, is_intact in _checked_chunks(data):
        if not name[0] & 0x20 and name not in _CRITICAL:
            raise unreadable(f"the PNG image has an unknown critical chunk, {name!r}")
        if not is_intact:
            if not name[0] & 0x20:
                raise unreadable(
                    f"the PNG image is damaged: its {name!r} chunk does not match its checksum"
                )
            if on_damage is not None:
                on_damage(
                    f"the PNG image is damaged: its {name!r} chunk does not match its checksum"
                )
        elif _matters(name, len(whole) - 12, header, seen, previous):
            kept.append(whole)
            seen[name] = len(whole) - 12
        elif name == b"PLTE":
            seen.setdefault(name, 0)
        previous = name
    if b"IDAT" not in seen or (header.colour_type == PALETTE and b"PLTE" not in seen):
        raise unreadable("the PNG image is damaged: its pixels or palette are missing")
    if sum(map(len, kept)) + len(SIGNATURE) == len(data):
        return data
    return b"".join((SIGNATURE, *kept))


def _checked_chunks(data: bytes) -> Iterator[tuple[bytes, memoryview, bool]]:
    """Iterate over the chunks up to the end mark: name, all bytes, whether the checksum matches."""
    view = memoryview(data)
    at, name = len(SIGNATURE), b""
    while name != b"IEND":
        length, name = _LENGTH_AND_NAME(data, at) if at + 12 <= len(data) else (len(data), b"")
        stop = at + 12 + length
        if stop > len(data):
            raise unreadable("the PNG image is truncated: its end mark is missing")
        if not name.isalpha():
            raise unreadable(f"the PNG image is damaged: {name!r} is not a valid chunk name")
        (checksum,) = _CHECKSUM(data, stop - 4)
        yield name, view[at:stop], crc32(view[at + 4 : stop - 4]) == checksum
        at = stop


def _matters(
    name: bytes, length: int, header: PngHeader, seen: dict[bytes, int], previous: bytes
) -> bool:
    """Whether a chunk affects the pixels that libpng decodes."""
    is_palette = header.colour_type == PALETTE
    if name == b"IHDR":
        if seen or length != _HEADER.size:
            raise unreadable("the PNG image is damaged: it has two headers")
        return True
    if not seen:
        raise unreadable("the PNG image is damaged: it does not start with its header")
    if name == b"PLTE":
        if name in seen:
            raise unreadable("the PNG image is damaged: it has two palettes")
        is_right = 0 < length <= 768 and length % 3 == 0
        if is_palette and not is_right and b"IDAT" not in seen:
            raise unreadable(f"the PNG image is damaged: its palette has {length} bytes")
        return is_palette and b"IDAT" not in seen
    if name == b"tRNS":
        if name in seen or b"IDAT" in seen or header.colour_type in (GREY_ALPHA, RGBA):
            return False
        if is_palette:
            return 0 < length <= min(seen.get(b"PLTE", 0) // 3, 1 << header.bits)
        return length == 2 * CHANNELS[header.colour_type]
    if name == b"IDAT":
        if is_palette and b"PLTE" not in seen:
            raise unreadable("the PNG image is damaged: its palette is missing")
        return name not in seen or previous == name
    return name == b"IEND"


def is_interlaced(data: bytes | memoryview) -> bool:
    """Whether the rows of a PNG are spread over its data."""
    return data[28] != 0


def with_height(data: bytes, height: int) -> bytes:
    """Write another height into the header of a PNG.

    Decoders stop at a smaller height; libpng warns of the other rows, Pillow does not.
    """
    body = data[16:20] + struct.pack(">I", height) + data[24:29]
    return b"".join((SIGNATURE, encode_chunk(b"IHDR", body), memoryview(data)[33:]))


def first_rows(data: bytes, header: PngHeader, row_count: int) -> bytearray | None:
    """Return the first rows of a PNG as a PNG of its own, whose pixels are not compressed.

    Returns:
        The file; None if these rows cannot be decompressed.
    """
    row_bits = header.width * CHANNELS[header.colour_type] * header.bits
    left = row_count * (1 + (row_bits + 7) // 8)  # each row begins with its filter
    unpacker, packer = zlib.decompressobj(), zlib.compressobj(0)
    file = bytearray(with_height(data[:33], row_count))
    start = 0  # of the pixels
    for name, whole, _ in _checked_chunks(data):
        if name == b"IDAT":
            if not start:
                start = len(file)
                file += b"\0\0\0\0IDAT"
            for at in range(8, len(whole) - 4, _PIECE):
                piece: bytes | memoryview = whole[at : min(at + _PIECE, len(whole) - 4)]
                while left:
                    try:
                        rows = unpacker.decompress(piece, min(left, _PIECE))
                    except zlib.error:
                        return None
                    if not rows:
                        break
                    left -= len(rows)
                    file += packer.compress(rows)
                    piece = unpacker.unconsumed_tail
            if not left:
                break
        elif name != b"IHDR":
            file += whole
    if left:
        return None
    file += packer.flush()
    struct.pack_into(">I", file, start, len(file) - start - 8)
    file += struct.pack(">I", zlib.crc32(memoryview(file)[start + 4 :]))
    file += encode_chunk(b"IEND", b"")
    return file


def palette_colours(data: bytes) -> tuple[Colour, ...]:
    """The palette of a PNG in the order of its indices; empty for other kinds of PNG."""
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
    """Encode exact values, (height, width) or (height, width, channels), as PNG.

    Args:
        bits: 8 or 16; for one channel also 1, 2 or 4. All values must fit.
        chunks: inserted before the pixels, such as the palette.
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
    """Encode one chunk with its length and checksum."""
    checksum = zlib.crc32(body, zlib.crc32(name))
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", checksum)
