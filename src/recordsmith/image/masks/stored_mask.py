"""Rotate and resize a mask like its image, keeping its class numbers.

An unchanged mask keeps its bytes. Others are written as PNG with the same palette, transparency and
bit depth, so that every reader gets the same class numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from recordsmith.image.formats.pillow import read_by_pillow
from recordsmith.image.formats.png import (
    PALETTE,
    Chunk,
    chunks_before_pixels,
    encode_png_values,
    read_header,
)
from recordsmith.image.geometry.rotation import apply_orientation
from recordsmith.image.masks.mask import MaskValues, decode_mask, encode_mask, resize_nearest


class StoredMask(NamedTuple):
    """A mask as it is stored.

    Attributes:
        data: the file, or raw values.
        format: png, or raw: rows of values; None if the bytes were kept.
        dtype: uint8 or uint16.
        is_changed: whether the bytes differ from the original.
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
    """Rotate and resize a mask like its image.

    Args:
        data: the mask file.
        height, width: of the stored image.
        orientation_applied: the EXIF orientation that was applied to the image.
        raw: store rows of values, (height, width), instead of a file.

    Returns:
        The mask, resized by nearest neighbour, so that no new class numbers appear.

    Raises:
        CorruptDataError: unreadable-image: the mask cannot be decoded, or stores colours.
    """
    values = decode_mask(data)
    dtype = str(values.dtype)
    if (values.shape, orientation_applied, raw) == ((height, width), 1, False):
        return StoredMask(data, None, dtype, is_changed=False)
    moved = resize_nearest(apply_orientation(values, orientation_applied), height, width)
    if raw:
        return StoredMask(moved.tobytes(), "raw", dtype, is_changed=True)
    return StoredMask(_encode_like(data, moved), "png", dtype, is_changed=True)


def _encode_like(data: bytes, values: MaskValues) -> bytes:
    """Encode values as PNG with the palette and bit depth of another mask."""
    header = read_header(data)
    if header is not None:
        kept = [chunk for chunk in chunks_before_pixels(data) if chunk.name in (b"PLTE", b"tRNS")]
        return encode_png_values(
            values, bits=header.bits, colour_type=header.colour_type, chunks=kept
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
