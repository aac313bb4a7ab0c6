"""A mask follows its picture: turned like it, resized with it, its numbers unchanged.

What need not change keeps its bytes. Everything else is written as PNG with the palette, the
transparency and the bits that it had, so that a 1 stays a 1 in every reader.
"""

from __future__ import annotations

from typing import NamedTuple

from recordsmith.image.mask import MaskValues, decode_mask, encode_mask, resize_nearest
from recordsmith.image.pillow import read_by_pillow
from recordsmith.image.png import (
    PALETTE,
    Chunk,
    chunks_before_pixels,
    encode_png_values,
    read_header,
)
from recordsmith.image.turning import turn


class StoredMask(NamedTuple):
    """A mask as it is stored.

    format: png, or raw: rows of numbers; None where the bytes are the same.
    dtype: uint8 or uint16.
    is_changed: whether these are other bytes than before.
    """

    data: bytes
    format: str | None
    dtype: str
    is_changed: bool


def store_mask(
    data: bytes,
    *,
    height: int,
    width: int,
    orientation_applied: int = 1,
    raw: bool = False,
) -> StoredMask:
    """Turn and resize a mask as its picture was.

    Args:
        height, width: of the picture as it is stored now.
        orientation_applied: the EXIF orientation by which the picture was turned.
        raw: numbers in rows without a header, (height, width), instead of a file.

    Returns:
        The mask; resized by the nearest neighbour, so that it has no number that it had not.

    Raises:
        CorruptDataError: unreadable-image: it cannot be decoded, or has colours instead of numbers.
    """
    values = decode_mask(data)
    dtype = str(values.dtype)
    if (values.shape, orientation_applied, raw) == ((height, width), 1, False):
        return StoredMask(data, None, dtype, is_changed=False)
    moved = resize_nearest(turn(values, orientation_applied), height, width)
    if raw:
        return StoredMask(moved.tobytes(), "raw", dtype, is_changed=True)
    return StoredMask(_encode_like(data, moved), "png", dtype, is_changed=True)


def _encode_like(data: bytes, values: MaskValues) -> bytes:
    """A PNG of these numbers with palette and bits of another mask."""
    header = read_header(data)
    if header is not None:
        words = [chunk for chunk in chunks_before_pixels(data) if chunk.name in (b"PLTE", b"tRNS")]
        return encode_png_values(
            values, bits=header.bits, colour_type=header.colour_type, chunks=words
        )
    palette = _palette(data)
    if palette is not None:
        chunks = [Chunk(b"PLTE", palette)]
        return encode_png_values(values, bits=8, colour_type=PALETTE, chunks=chunks)
    return encode_mask(values)


def _palette(data: bytes) -> bytes | None:
    with read_by_pillow(data, "mask") as image:
        image.load()
        colours = image.getpalette("RGB") if image.mode == "P" else None
    return None if colours is None else bytes(colours)
