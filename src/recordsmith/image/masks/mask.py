"""Decode and encode masks: images whose pixel values are class numbers.

Values are palette indices or grey levels of 1 to 16 bits. Image decoders scale them (a 1 becomes
255, an index becomes its colour), so masks have a decoder of their own. Colours are never
interpreted.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from recordsmith.image.decoding.memory import image_to_array, reserve_for_decoding
from recordsmith.image.decoding.probe import probe_image
from recordsmith.image.formats.header import ImageHeader, unreadable
from recordsmith.image.formats.pillow import pillow_format, pillow_header, read_by_pillow
from recordsmith.image.formats.png import (
    GREY,
    GREY_ALPHA,
    PALETTE,
    RGB,
    RGBA,
    SIGNATURE,
    Chunk,
    chunks_before_pixels,
    encode_chunk,
    encode_png_values,
    read_png_header,
    with_height,
)
from recordsmith.image.geometry.placing import nearest
from recordsmith.image.geometry.rotation import apply_orientation
from recordsmith.image.image_options import HIGHEST_MAX_PIXELS
from recordsmith.support.buffers import BytesLike

MaskKind: TypeAlias = Literal["grey", "palette", "colour", "float"]

_KINDS: dict[int, MaskKind] = {
    GREY: "grey",
    RGB: "colour",
    PALETTE: "palette",
    GREY_ALPHA: "grey",
    RGBA: "colour",
}
_PILLOW_KINDS: dict[str, MaskKind] = {
    **dict.fromkeys(("1", "L", "LA", "La", "I"), "grey"),
    **dict.fromkeys(("P", "PA"), "palette"),
    "F": "float",
}


_PLAIN = bytes((8, GREY, 0, 0, 0))  # the header of a PNG after its size: not interlaced
_SUB, _UP = 1, 2  # filters: the difference to the pixel before, and to that above


class MaskInfo(NamedTuple):
    """The header of a mask.

    format: as `probe_image` names it.
    height, width: in pixels, as stored.
    kind: `grey` and `palette` store class numbers; `colour` and `float` do not.
    bits: per value: 1, 2, 4, 8, 16 or 32.
    has_alpha: whether the mask also has an alpha channel.
    is_lossy: whether compression may have changed the values, as in JPEG.
    """

    format: str
    height: int
    width: int
    kind: MaskKind
    bits: int = 8
    has_alpha: bool = False
    is_lossy: bool = False


def probe_mask(data: bytes) -> MaskInfo:
    info = probe_image(data)[:3]
    if info[0] == "jpeg":
        return MaskInfo(*info, "colour", is_lossy=True)
    header = read_png_header(data)
    if header is None:
        return _probe_with_pillow(data)
    kind = _KINDS.get(header.colour_type)
    if kind is None or header.bits not in (1, 2, 4, 8, 16):
        raise unreadable(
            "the PNG file has an invalid header",
            found=f"colour type {header.colour_type} with {header.bits} bits",
        )
    return MaskInfo(*info, kind, header.bits, has_alpha=header.colour_type in (GREY_ALPHA, RGBA))


def _probe_with_pillow(data: bytes) -> MaskInfo:
    with read_by_pillow(data, "mask") as image:
        mode, (width, height) = image.mode, image.size
        name = pillow_format(image)
        is_lossy = name in ("jpeg", "mpo") or image.info.get("compression") == "jpeg"
    bits = {"1": 1, "I": 32}.get(mode, 16 if mode.startswith("I;16") else 8)
    kind = _PILLOW_KINDS.get(mode.partition(";16")[0], "colour")
    has_alpha = mode.endswith(("A", "a"))
    return MaskInfo(name, height, width, kind, bits, has_alpha, is_lossy)


MaskValues: TypeAlias = npt.NDArray[np.uint8 | np.uint16]
Number = TypeVar("Number", bound=np.generic)

_SCALE_OF_BITS = {2: 85, 4: 17}  # Pillow scales these grey levels to 0-255
_COLOUR_MODES = {"RGB": "colour", "RGBA": "colour with alpha", "CMYK": "colour",
                 "YCbCr": "colour", "LAB": "colour", "HSV": "colour",
                 "LA": "grey with alpha", "PA": "a palette with alpha"}  # fmt: skip


def decode_mask(
    data: BytesLike, row_count: int | None = None, *, max_pixels: int | None = HIGHEST_MAX_PIXELS
) -> MaskValues:
    """Decode a mask to the class numbers that it stores.

    Args:
        row_count: decode only the first rows, of a PNG that is not interlaced.
        max_pixels: the limit, as in `reserve_for_decoding`.

    Returns:
        A new uint8 array (uint16 for 16-bit masks), (height, width): palette indices, 0 and 1 for
        1-bit masks, otherwise unscaled grey levels.
    """
    encoded = bytes(data)
    plain = _decode_plain(encoded, row_count, max_pixels)
    if plain is not None:
        return plain
    if row_count is not None:
        encoded = with_height(encoded, row_count)
    with read_by_pillow(encoded, "mask") as image:
        mode = image.mode
        if mode in _COLOUR_MODES:
            raise unreadable(
                "the mask stores colours instead of class numbers",
                found=f"{_COLOUR_MODES[mode]} (mode {mode})",
                expected="a greyscale or palette image",
                remedy="Map each colour to its class number first.",
            )
        with reserve_for_decoding(encoded, pillow_header(image), max_pixels=max_pixels, channels=1):
            scale = _grey_scale(encoded)
            return image_to_array(image, lambda part: _as_numbers(np.array(part), mode, scale))


def _decode_plain(data: bytes, row_count: int | None, max_pixels: int | None) -> MaskValues | None:
    """Decode a PNG of grey levels of 8 bits in half the time of Pillow; None for most others.

    Its pixels are in one chunk after the header, and the filters of its rows are the simple ones
    that masks have, as `encode_mask`, Pillow and OpenCV write them. Pillow reports damage.
    """
    start = SIGNATURE + encode_chunk(b"IHDR", data[16:24] + _PLAIN)
    if data[: len(start)] != start or data[37:41] != b"IDAT":
        return None
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    rows = height if row_count is None else min(row_count, height)
    stop = 41 + int.from_bytes(data[33:37], "big")
    if stop > len(data) or not rows or not width:
        return None
    header = ImageHeader("png", rows, width, 1)
    with reserve_for_decoding(data, header, max_pixels=max_pixels, channels=1):
        unpacked = b""
        with suppress(zlib.error):
            unpacked = zlib.decompressobj().decompress(data[41:stop], rows * (width + 1))
        if len(unpacked) != rows * (width + 1) or max(unpacked[:: width + 1]) > _UP:
            return None
        lines = np.frombuffer(unpacked, np.uint8).reshape(rows, width + 1)
        filters, values = lines[:, 0], lines[:, 1:].copy()
        is_sub = filters == _SUB
        values[is_sub] = np.add.accumulate(values[is_sub], axis=1, dtype=np.uint8)
        for row in np.flatnonzero(filters[1:] == _UP) + 1:
            values[row] += values[row - 1]
    return values


def encode_mask(values: MaskValues) -> bytes:
    """Encode a mask, (height, width), as a greyscale PNG of 8 or 16 bits with the same values."""
    return encode_png_values(values, bits=8 * values.itemsize, colour_type=GREY)


def resize_nearest(values: npt.NDArray[Number], height: int, width: int) -> npt.NDArray[Number]:
    """Resize a mask, (height, width), by nearest neighbour, so that no new values appear.

    Returns the same array if the size is already right.
    """
    if values.shape == (height, width):
        return values
    rows, columns = nearest(values.shape[0], height), nearest(values.shape[1], width)
    resized: npt.NDArray[Number] = values[rows[:, np.newaxis], columns]
    return resized


def _as_numbers(values: Any, mode: str, scale: int) -> MaskValues:
    if mode in ("1", "L", "P"):
        numbers: npt.NDArray[np.uint8] = values.astype(np.uint8, copy=False)
        return numbers // np.uint8(scale) if scale > 1 else numbers
    if mode.startswith("I") and not ((values < 0) | (values > 0xFFFF)).any():
        return values.astype(np.uint16, copy=False)  # type: ignore[no-any-return]
    raise unreadable(
        "the mask has values that are not class numbers",
        found=f"values from {values.min()} to {values.max()} (mode {mode})",
        expected="integers from 0 to 65,535",
    )


def _grey_scale(encoded: bytes) -> int:
    """The factor by which Pillow multiplied the grey levels of a PNG."""
    header = read_png_header(encoded)
    if header is None or header.colour_type != GREY:
        return 1
    return _SCALE_OF_BITS.get(header.bits, 1)


class StoredMask(NamedTuple):
    """A mask as it is stored.

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
    data: bytes, *, height: int, width: int, orientation_applied: int = 1, raw: bool = False
) -> StoredMask:
    """Rotate and resize a mask like its image.

    Args:
        data: the mask file.
        height, width: of the stored image.
        orientation_applied: the EXIF orientation that was applied to the image.
        raw: store rows of values, (height, width), instead of a file.

    Returns:
        The mask, resized by nearest neighbour, so that no new class numbers appear.
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
    header = read_png_header(data)
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
