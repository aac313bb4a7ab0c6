"""Convert an encoded image to the form that `ImageOptions` requests.

An image that already has the requested format, size and orientation keeps its bytes. Others are
decoded with all channels and bits, rotated, resized and encoded. Then, if requested, the file is
recompressed losslessly, converted to baseline or divided into tiles. The result is deterministic.
The codecs release the interpreter lock, except oxipng, which has its own threads.

- PNG and raw keep grey, alpha and 16 bits. Palettes become RGB, with alpha if an entry is
  transparent, unless the file keeps its bytes.
- JPEG has neither alpha nor 16 bits. Opaque alpha is dropped; other alpha is composited on the
  background, dropped if requested, or an error. 16 bits are an error.
- CMYK becomes RGB, and only the first frame is kept; both are reported.
- With `store="original"`, an image that must be encoded becomes JPEG if it was one, otherwise PNG.
- Resizing averages by area.
- An EXIF orientation that is not applied and the colour profile are copied if the new file can hold
  them.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from recordsmith.image.decoding.decoders import ExactPixels
from recordsmith.image.decoding.memory import (
    check_size,
    convert_rows,
    reserve_for_decoding,
    reserve_memory,
)
from recordsmith.image.decoding.pixels import decode_exact
from recordsmith.image.decoding.probe import exif_orientation, probe_image
from recordsmith.image.formats.header import ImageHeader
from recordsmith.image.formats.pillow import read_by_pillow
from recordsmith.image.formats.png import SIGNATURE, encode_chunk
from recordsmith.image.geometry.rotation import apply_orientation, swaps_sides
from recordsmith.image.image_options import ImageOptions
from recordsmith.image.storing.encode import (
    check_bits_for_jpeg,
    encode_jpeg,
    encode_png,
    flatten_alpha,
)
from recordsmith.image.storing.lossless import MIN_SIDE, NotLosslessError, add_tiles
from recordsmith.image.storing.shrinking import shrink_jpeg, shrink_png, to_baseline
from recordsmith.jpeg import APP0, APP1, APP2, EXIF, START, is_progressive, segments
from recordsmith.support.errors import CorruptDataError, SourceError, option

TURNED = "images were rotated upright by their EXIF orientation"
RESIZED = "images were resized"
ENCODED = {
    "jpeg": "images were encoded as JPEG",
    "png": "images were encoded as PNG",
    "raw": "images were decoded and stored as raw pixels",
}
ON_BACKGROUND = "transparent images were composited on the background"
DROPPED = "transparent images lost their alpha and kept their colours"
OPAQUE = "opaque images lost their alpha"
FIRST_FRAME = "animated images were stored with their first frame only"
FROM_CMYK = "CMYK images were converted to RGB"
NO_PROFILE = "images lost their colour profile, because the new format cannot hold it"
NO_ORIENTATION = "images lost their EXIF orientation, because raw pixels cannot hold it"
TO_BASELINE = "JPEGs were converted to baseline losslessly"
SHRUNK = "image files were recompressed losslessly"
TILED = "JPEGs were divided into tiles losslessly"
PROGRESSIVE = (
    f"progressive JPEGs were kept without tiles; pass {option('baseline', True)} to convert them"
)
REQUESTED = frozenset({TURNED, RESIZED, *ENCODED.values(), TO_BASELINE, SHRUNK, TILED})
"""The changes that options request; the others may be unexpected."""
_REWRITING = 12  # bytes per pixel
NOT_REWRITTEN = "image files were kept, because they cannot be rewritten losslessly"


class StoredImage(NamedTuple):
    """An image as it is stored.

    data: the file, or raw pixels.
    format: as `probe_image` names it, or raw: rows of grey, RGB or RGBA pixels.
    height, width: of the pixels in `data`.
    depth: channels of raw pixels; otherwise None.
    dtype: uint8 or uint16 in native byte order for raw pixels; otherwise None.
    orientation_applied: the EXIF orientation that was applied to the pixels; 1 if none was.
    changes: a sentence for each change; empty if the bytes were kept.
    """

    data: bytes
    format: str
    height: int
    width: int
    depth: int | None = None
    dtype: str | None = None
    orientation_applied: int = 1
    changes: tuple[str, ...] = ()


def store_image(data: bytes, options: ImageOptions) -> StoredImage:
    """Convert an encoded image to the requested form.

    Args:
        data: the image file.
        options: the requested form.

    Returns:
        The image; `data` itself if it already has the requested form.
    """
    info = probe_image(data)
    upright = info.height, info.width
    if options.orientation == "apply" and swaps_sides(exif_orientation(data)):
        upright = info.width, info.height
    size = _target_size(*upright, options)
    is_kept = (
        options.store in ("original", info.format)
        and not options.recompress
        and size == upright
        and (options.orientation == "keep" or exif_orientation(data) == 1)
    )
    if is_kept:
        stored = StoredImage(data, info.format, *size)
    else:
        # after decoding: another copy to encode; for alpha, also rows as floats
        extra = 4 if size == upright else 4 + 16 * size[1] // upright[1]
        with reserve_for_decoding(data, info, max_pixels=options.max_pixels, extra=extra):
            stored = _reencode(data, info, size, options)
    return _rewrite(stored, options)


def _target_size(height: int, width: int, options: ImageOptions) -> tuple[int, int]:
    side = options.shorter_side or options.longer_side
    if side is None:
        return height, width
    length = min(height, width) if options.shorter_side else max(height, width)
    if length <= side:
        return height, width
    return max(1, _rounded(height * side, length)), max(1, _rounded(width * side, length))


def _rounded(number: int, divisor: int) -> int:
    return (2 * number + divisor) // (2 * divisor)


def _reencode(
    data: bytes, header: ImageHeader, size: tuple[int, int], options: ImageOptions
) -> StoredImage:
    decoded, format_ = decode_exact(data, header), str(options.store)
    if format_ == "original":
        format_ = "jpeg" if header.format == "jpeg" else "png"
    reports = ((FIRST_FRAME, decoded.is_animated), (FROM_CMYK, decoded.was_cmyk))
    changes = [change for change, applies in reports if applies]
    pixels = decoded.pixels
    orientation = exif_orientation(data)
    applied, kept = (orientation, 1) if options.orientation == "apply" else (1, orientation)
    if applied != 1:
        pixels = apply_orientation(pixels, applied)
        changes.append(TURNED)
    if format_ == "jpeg":
        check_bits_for_jpeg(pixels)
    if decoded.has_alpha and (format_ == "jpeg" or options.drop_alpha):
        pixels, change = _without_alpha(pixels, options)
        changes.append(change)
    if pixels.shape[:2] != size:
        pixels = _smaller(pixels, *size)
        changes.append(RESIZED)
    changes.append(ENCODED[format_])
    profile = colour_profile(data)
    fits = format_ != "raw" and (profile or b"")[16:20] == _SPACE_OF_CHANNELS[pixels.shape[2]]
    if profile is not None and not fits:
        profile = None
        changes.append(NO_PROFILE)
    depth, dtype = pixels.shape[2], str(pixels.dtype)
    if format_ == "raw":
        if kept != 1:
            changes.append(NO_ORIENTATION)
        return StoredImage(pixels.tobytes(), "raw", *size, depth, dtype, applied, tuple(changes))
    if format_ == "jpeg":
        encoded = encode_jpeg(pixels, quality=options.quality, optimizes=options.baseline)
    else:
        encoded = encode_png(pixels)
    if kept != 1 or profile:
        encoded = add_metadata(encoded, orientation=kept, profile=profile)
    return StoredImage(encoded, format_, *size, None, None, applied, tuple(changes))


def _without_alpha(pixels: ExactPixels, options: ImageOptions) -> tuple[ExactPixels, str]:
    """Remove alpha. Returns grey or RGB pixels and a sentence about the change."""
    opaque = np.iinfo(pixels.dtype).max
    transparent_count = int(np.count_nonzero(pixels[:, :, -1] != opaque))
    if options.drop_alpha or not transparent_count:
        colours = convert_rows(pixels, lambda rows: rows[:, :, :-1].copy())
        return colours, DROPPED if transparent_count else OPAQUE
    if options.background is None:
        raise SourceError(
            f"the image has {transparent_count:,} transparent pixels, which a JPEG cannot hold",
            remedy=(
                f"Choose a background with {option('background', (255, 255, 255))}, keep the "
                f"colours with {option('drop_alpha', True)}, or store it as PNG or unchanged."
            ),
        )
    background = options.background
    return convert_rows(pixels, lambda rows: flatten_alpha(rows, background)), ON_BACKGROUND


def _smaller(pixels: ExactPixels, height: int, width: int) -> ExactPixels:
    """Resize by area, weighting colours by their alpha."""
    from recordsmith.support.libraries import cv2

    channel_count = pixels.shape[2]
    if channel_count in (1, 3):
        resized = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
        return resized.reshape(height, width, channel_count)  # type: ignore[return-value]

    def narrowed(rows: ExactPixels) -> Any:
        weighted: Any = rows.astype(np.float32 if rows.dtype == np.uint8 else np.float64)
        weighted[:, :, :-1] *= weighted[:, :, -1:]
        lower = height if len(rows) == len(pixels) else len(rows)
        return cv2.resize(weighted, (width, lower), interpolation=cv2.INTER_AREA)

    summed: Any = convert_rows(pixels, narrowed)
    if len(summed) != height:  # large image: first the width strip by strip, then the height
        summed = cv2.resize(summed, (width, height), interpolation=cv2.INTER_AREA)
    colours = summed[:, :, :-1] / np.maximum(summed[:, :, -1:], 1e-9)
    whole = np.concatenate((colours, summed[:, :, -1:]), axis=2)
    smaller: ExactPixels = np.rint(whole).astype(pixels.dtype)
    return smaller


def _rewrite(stored: StoredImage, options: ImageOptions) -> StoredImage:
    """Rewrite a file losslessly, if requested: smaller, as baseline, or in tiles."""
    recompresses = (stored.format == "png" and options.shrink) or (
        stored.format == "jpeg"
        and (options.shrink or (options.baseline and is_progressive(stored.data)))
    )
    adds_tiles = options.tiles and stored.format == "jpeg"
    try:
        if recompresses:  # by packages that have no limit
            check_size(stored.height, stored.width, options.max_pixels)
            with reserve_memory(_REWRITING * stored.height * stored.width):
                stored = _recompressed(stored, options)
        if adds_tiles and min(stored.height, stored.width) >= MIN_SIDE:
            stored = _tiled(stored, options)
    except NotLosslessError:
        return stored._replace(changes=(*stored.changes, NOT_REWRITTEN))
    return stored


def _recompressed(stored: StoredImage, options: ImageOptions) -> StoredImage:
    if stored.format == "png":
        return _changed(stored, shrink_png(stored.data), SHRUNK)
    if not options.baseline:
        return _changed(stored, shrink_jpeg(stored.data), SHRUNK)
    if is_progressive(stored.data):
        return _changed(stored, to_baseline(stored.data), TO_BASELINE)
    if options.shrink and not stored.changes:  # images encoded here already have optimal tables
        smaller = to_baseline(stored.data)
        return _changed(stored, min(smaller, stored.data, key=len), SHRUNK)
    return stored


def _tiled(stored: StoredImage, options: ImageOptions) -> StoredImage:
    if is_progressive(stored.data):
        return stored._replace(changes=(*stored.changes, PROGRESSIVE))
    return _changed(stored, add_tiles(stored.data, max_pixels=options.max_pixels), TILED)


def _changed(stored: StoredImage, data: bytes, change: str) -> StoredImage:
    if data == stored.data:
        return stored
    return stored._replace(data=data, changes=(*stored.changes, change))


_PROFILE_MARK = b"ICC_PROFILE\0"
_PROFILE_PART = 65_533 - len(_PROFILE_MARK) - 2  # a segment holds 65,533 bytes
_PROFILE_LIMIT = 1 << 24
_SPACE_OF_CHANNELS = {1: b"GRAY", 2: b"GRAY", 3: b"RGB ", 4: b"RGB "}  # ICC.1, table 19


def colour_profile(data: bytes) -> bytes | None:
    """The ICC profile of an image; None if missing or too large."""
    is_jpeg = data[:2] == START
    if is_jpeg and data.find(_PROFILE_MARK, 0, 1 << 17) < 0:
        return None
    if data[:8] == SIGNATURE and data.find(b"iCCP", 0, 1 << 12) < 0:
        return None
    try:
        with read_by_pillow(data) as image:
            profile = image.info.get("icc_profile")
    except CorruptDataError:
        return None
    return profile if isinstance(profile, bytes) and len(profile) <= _PROFILE_LIMIT else None


def add_metadata(encoded: bytes, *, orientation: int, profile: bytes | None) -> bytes:
    """Add an orientation and a profile to a newly encoded JPEG or PNG."""
    if encoded[:2] == START:
        return _in_jpeg(encoded, orientation, profile)
    return _in_png(encoded, orientation, profile)


def _in_jpeg(encoded: bytes, orientation: int, profile: bytes | None) -> bytes:
    first = next(segments(encoded))
    at = first.stop if first.marker == APP0 else 2
    added = b""
    if orientation != 1:
        added += _segment(APP1, EXIF + _orientation_tiff(orientation))
    if profile:
        parts = [
            profile[start : start + _PROFILE_PART]
            for start in range(0, len(profile), _PROFILE_PART)
        ]
        for number, part in enumerate(parts, 1):
            added += _segment(APP2, _PROFILE_MARK + bytes((number, len(parts))) + part)
    return encoded[:at] + added + encoded[at:]


def _in_png(encoded: bytes, orientation: int, profile: bytes | None) -> bytes:
    added = b""
    if profile:
        added += encode_chunk(b"iCCP", b"icc\0\0" + zlib.compress(profile))
    if orientation != 1:
        added += encode_chunk(b"eXIf", _orientation_tiff(orientation))
    return encoded[:33] + added + encoded[33:]


def _segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def _orientation_tiff(orientation: int) -> bytes:
    """A TIFF structure with one directory and one entry."""
    return b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
