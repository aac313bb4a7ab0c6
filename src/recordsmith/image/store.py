"""How a picture is stored: bytes in, bytes out, by `PictureOptions`.

A picture that has the wanted format, size and orientation keeps its bytes; the others are decoded
with all their channels and bits, turned, made smaller and encoded. Then, if asked, the file is
shrunk or turned to baseline without touching a pixel. The same bytes and options give the same
bytes, in any thread; the codecs release the interpreter lock (oxipng holds it, and has threads of
its own).

The rules:
- grey stays grey, alpha stays alpha, 16 bits stay 16 in png and raw; palettes become RGB, with
  alpha where an entry is transparent, unless the file stays as it is;
- JPEG has neither alpha nor 16 bits: alpha is left out where it is opaque everywhere, or laid on
  the background that was chosen, or dropped if that was asked for, or else the picture is refused;
  so are 16 bits;
- CMYK becomes RGB; of several frames the first one counts; both are said;
- what has to be encoded anew and shall keep its format becomes JPEG if it was one, else PNG,
  which loses nothing;
- pixels are made smaller by area, each the mean of those that it stands for;
- an EXIF orientation that is not applied, and a colour profile, are carried over where the new
  file can hold them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recordsmith.errors import SourceError
from recordsmith.image.encode import check_bits_for_jpeg, encode_jpeg, encode_png, lay_on_background
from recordsmith.image.exact import Decoded, ExactPixels, check_size, decode_exact
from recordsmith.image.jpeg import is_progressive
from recordsmith.image.lossless import CannotKeepError, shrink_jpeg, shrink_png, to_baseline
from recordsmith.image.metadata import colour_profile, fits, with_metadata
from recordsmith.image.options import PictureOptions
from recordsmith.image.orientation import exif_orientation
from recordsmith.image.probe import probe_image
from recordsmith.image.turning import swaps_sides, turn

TURNED = "a picture was turned upright by its EXIF orientation"
RESIZED = "a picture was made smaller"
ENCODED = {
    "jpeg": "a picture was encoded anew, as JPEG",
    "png": "a picture was encoded anew, as PNG",
    "raw": "a picture was decoded and stored as raw pixels",
}
ON_BACKGROUND = "the alpha of a picture was laid on the background"
DROPPED = "the alpha of a picture was left out, and the colours under it kept"
OPAQUE = "the alpha of a picture, opaque everywhere, was left out"
FIRST_FRAME = "of a picture with several frames only the first one was stored"
FROM_CMYK = "the colours of a CMYK picture were turned into RGB"
NO_PROFILE = "the colour profile of a picture was left out, as its new form cannot hold it"
NO_ORIENTATION = "the EXIF orientation of a picture was left out, as raw pixels cannot hold it"
TO_BASELINE = "a JPEG was turned to baseline without touching its pixels"
SHRUNK = "a picture file was shrunk without touching its pixels"
NOT_REWRITTEN = "a picture file that cannot be rewritten without loss was left as it is"


class StoredPicture(NamedTuple):
    """A picture as it is stored.

    format: of the file, as `probe_image` names it, or raw: rows of pixels, red first.
    height, width: of the pixels in `data`.
    depth, dtype: of raw: channels of a pixel; uint8 or uint16, this machine's order of bytes.
        Otherwise None.
    orientation_applied: the EXIF orientation by which pixels were turned; 1: they were not.
    changes: what was done, one sentence each; empty where the bytes are the same.
    """

    data: bytes
    format: str
    height: int
    width: int
    depth: int | None = None
    dtype: str | None = None
    orientation_applied: int = 1
    changes: tuple[str, ...] = ()


def store_picture(data: bytes, options: PictureOptions) -> StoredPicture:
    """Bring an encoded picture into the form that is wanted.

    Raises:
        CorruptDataError: unreadable-image: it is no picture, is damaged, or is larger than
            `max_pixels` and would have to be decoded.
        SourceError: it cannot be stored so without losing what was not said to be lost.
        MissingExtraError: a package that shrinks or turns to baseline is not installed.
    """
    info = probe_image(data)
    upright = info.height, info.width
    if options.orientation == "apply" and swaps_sides(exif_orientation(data)):
        upright = info.width, info.height
    size = _target_size(*upright, options)
    is_kept = (
        options.format in ("original", info.format)
        and not options.recompress
        and size == upright
        and (options.orientation == "keep" or exif_orientation(data) == 1)
    )
    if is_kept:
        stored = StoredPicture(data, info.format, *size)
    else:
        stored = _store_anew(data, _target_format(info.format, options), size, options)
    return _rewrite(stored, options)


def _target_size(height: int, width: int, options: PictureOptions) -> tuple[int, int]:
    side = options.shorter_side or options.longer_side
    if side is None:
        return height, width
    given = min(height, width) if options.shorter_side else max(height, width)
    if given <= side:
        return height, width
    return max(1, _rounded(height * side, given)), max(1, _rounded(width * side, given))


def _rounded(number: int, divisor: int) -> int:
    return (2 * number + divisor) // (2 * divisor)


def _target_format(format_: str, options: PictureOptions) -> str:
    if options.format != "original":
        return options.format
    return "jpeg" if format_ == "jpeg" else "png"


def _store_anew(
    data: bytes, format_: str, size: tuple[int, int], options: PictureOptions
) -> StoredPicture:
    """Decode, turn, make smaller, encode."""
    decoded = decode_exact(data, max_pixels=options.max_pixels)
    changes = _said_of(decoded)
    pixels = decoded.pixels
    orientation = exif_orientation(data)
    applied, kept = (orientation, 1) if options.orientation == "apply" else (1, orientation)
    if applied != 1:
        pixels = turn(pixels, applied)
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
    if profile is not None and (format_ == "raw" or not fits(profile, pixels.shape[2])):
        profile = None
        changes.append(NO_PROFILE)
    depth, dtype = pixels.shape[2], str(pixels.dtype)
    if format_ == "raw":
        if kept != 1:
            changes.append(NO_ORIENTATION)
        return StoredPicture(pixels.tobytes(), "raw", *size, depth, dtype, applied, tuple(changes))
    if format_ == "jpeg":
        encoded = encode_jpeg(pixels, quality=options.quality, optimizes=options.baseline)
    else:
        encoded = encode_png(pixels)
    if kept != 1 or profile:
        encoded = with_metadata(encoded, orientation=kept, profile=profile)
    return StoredPicture(encoded, format_, *size, None, None, applied, tuple(changes))


def _said_of(decoded: Decoded) -> list[str]:
    said = []
    if decoded.is_animated:
        said.append(FIRST_FRAME)
    if decoded.was_cmyk:
        said.append(FROM_CMYK)
    return said


def _without_alpha(pixels: ExactPixels, options: PictureOptions) -> tuple[ExactPixels, str]:
    """Grey or RGB pixels, and what was done to their alpha."""
    opaque = np.iinfo(pixels.dtype).max
    seen_through = int(np.count_nonzero(pixels[:, :, -1] != opaque))
    if options.drop_alpha or not seen_through:
        colours = np.ascontiguousarray(pixels[:, :, :-1])
        return colours, DROPPED if seen_through else OPAQUE
    if options.background is None:
        raise SourceError(
            f"the picture is transparent in {seen_through:,} pixels and a JPEG cannot be; choose "
            "a background for them, such as background=(255, 255, 255) for white, or keep the "
            "colours under them with drop_alpha=True, or store the picture as png or as it is"
        )
    return lay_on_background(pixels, options.background), ON_BACKGROUND


def _smaller(pixels: ExactPixels, height: int, width: int) -> ExactPixels:
    """By area. Colours count as much as they are seen: those of transparent pixels do not."""
    import cv2

    channel_count = pixels.shape[2]
    if channel_count in (1, 3):
        resized = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
        return resized.reshape(height, width, channel_count)  # type: ignore[return-value]
    weighted: Any = pixels.astype(np.float32 if pixels.dtype == np.uint8 else np.float64)
    weighted[:, :, :-1] *= weighted[:, :, -1:]
    summed = cv2.resize(weighted, (width, height), interpolation=cv2.INTER_AREA)
    colours = summed[:, :, :-1] / np.maximum(summed[:, :, -1:], 1e-9)
    whole = np.concatenate((colours, summed[:, :, -1:]), axis=2)
    smaller: ExactPixels = np.rint(whole).astype(pixels.dtype)
    return smaller


def _rewrite(stored: StoredPicture, options: PictureOptions) -> StoredPicture:
    """Other bytes for the same pixels, as asked."""
    is_rewritten = (stored.format == "png" and options.shrink) or (
        stored.format == "jpeg"
        and (options.shrink or (options.baseline and is_progressive(stored.data)))
    )
    if not is_rewritten:
        return stored
    check_size(stored.height, stored.width, options.max_pixels)  # the packages have no cap
    try:
        if stored.format == "png":
            return _changed(stored, shrink_png(stored.data), SHRUNK)
        if not options.baseline:
            return _changed(stored, shrink_jpeg(stored.data), SHRUNK)
        if is_progressive(stored.data):
            return _changed(stored, to_baseline(stored.data), TO_BASELINE)
        if options.shrink and not stored.changes:  # encoded here it has the best tables already
            smaller = to_baseline(stored.data)
            return _changed(stored, min(smaller, stored.data, key=len), SHRUNK)
    except CannotKeepError:
        return stored._replace(changes=(*stored.changes, NOT_REWRITTEN))
    return stored


def _changed(stored: StoredPicture, data: bytes, change: str) -> StoredPicture:
    if data == stored.data:
        return stored
    return stored._replace(data=data, changes=(*stored.changes, change))
