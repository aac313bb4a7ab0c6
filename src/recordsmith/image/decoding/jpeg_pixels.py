"""Decode JPEG to the same pixels as TensorFlow, accepting and rejecting the same images.

simplejpeg (libjpeg-turbo) uses the fast DCT, as TensorFlow does. It stops either at every warning
of libjpeg or at none, so it cannot separate damage that TensorFlow decodes from damage that it
rejects. Pillow can: it raises on errors, ignores warnings and never reads past the end. It checks
the few images for which simplejpeg reports a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.image.decoding.memory import convert_rows, image_to_array, reserve_more
from recordsmith.image.formats.header import unreadable
from recordsmith.image.formats.pillow import read_by_pillow
from recordsmith.jpeg import (
    END,
    read_frame,
    sampling_factors,
    unfinished_segment,
    with_plain_header,
)
from recordsmith.support.buffers import BytesLike

OnDamage: TypeAlias = Callable[[str], None]
"""Called with a description of damage that does not stop the decoder."""

_ADOBE = b"\xff\xee\x00\x0eAdobe"  # its CMYK is stored inverted
_FRAME_CUT_OFF = re.compile(rb"\xff[\xc0-\xc2].{1,7}\Z", re.DOTALL)
_MODES = {1: "L", 3: "RGB", 4: "CMYK"}
_DAMAGED_PEAK = 13  # bytes per pixel: several decoders read it
_BARRIER = b"\xff\xd8" * 33_000
"""A decoder that reads on here fails: start markers, longer than any segment."""
_SMOOTH_UPSAMPLING = frozenset(((2, 1), (2, 2), (1, 2)))  # ratios that libjpeg interpolates
_PLAIN_OPTIONS = (True, False)  # of simplejpeg: fast DCT, no fast upsampling
_LEFT_OVER = re.compile(r"Corrupt JPEG data: \d+ extraneous bytes before marker 0xd9")
_DAMAGE = ("Corrupt JPEG data", "Premature end", "Inconsistent progression")
"""The starts of libjpeg's warnings about wrong pixels; other warnings are harmless."""


def decode_jpeg(
    data: BytesLike,
    height: int,
    width: int,
    component_count: int,
    *,
    channels: int = 3,
    divisor: int = 1,
    on_damage: OnDamage | None = None,
    out: npt.NDArray[np.uint8] | None = None,
) -> npt.NDArray[np.uint8]:
    """Decode a JPEG.

    Args:
        height, width, component_count: as in the frame header.
        channels: 1 for grey pixels, except of CMYK; otherwise 1 or 3 as in the file.
        divisor: 2, 4 or 8 to decode at 1/`divisor` of the size, with sides rounded up.
        out: contiguous, used for the pixels if they have its shape.

    Returns:
        (height, width, 1 or 3). A damaged image may have another shape.
    """
    from recordsmith.support.libraries import simplejpeg

    is_cmyk = component_count == 4
    is_grey = component_count == 1 or (channels == 1 and not is_cmyk)
    colours = "CMYK" if is_cmyk else "GRAY" if is_grey else "RGB"
    options = (colours, *_PLAIN_OPTIONS, *_least_sides(height, width, divisor), 1, None)
    if divisor > 1 or (out is not None and out.shape != (height, width, 1 if is_grey else 3)):
        out = None
    try:
        pixels = simplejpeg.decode_jpeg(data, *options[:-1], out, True)
        if out is not None and pixels.shape == out.shape:
            return out
    except ValueError as error:
        reserve_more(_DAMAGED_PEAK * height * width)
        data = with_plain_header(bytes(data))
        try:
            whole = simplejpeg.decode_jpeg(data, colours, *_PLAIN_OPTIONS, 0, 0, 1, None, False)
        except ValueError:
            return _decode_unusual(data, is_grey, divisor)
        _check_by_pillow(data, whole.shape, str(error))
        if on_damage is not None and str(error).startswith(_DAMAGE):
            on_damage(
                f"the JPEG image is damaged: {error}; it can be decoded, but pixels after the "
                "damage may be wrong"
            )
        pixels = whole if divisor == 1 else simplejpeg.decode_jpeg(data, *options, False)
    if not is_cmyk:
        return pixels  # type: ignore[no-any-return]
    is_inverted = _ADOBE in bytes(data)
    return convert_rows(pixels, lambda rows: _from_cmyk(rows, is_inverted=is_inverted))


def decode_cut(
    data: BytesLike,
    height: int,
    width: int,
    component_count: int,
    *,
    channels: int = 3,
    divisor: int = 1,
) -> npt.NDArray[np.uint8] | None:
    """Decode a JPEG that was cut out of another one, except CMYK; None if it is damaged.

    Bytes that are left over below its last row are not damage. libjpeg reports only its first
    warning, so that everything before them is right.
    """
    from recordsmith.support.libraries import simplejpeg

    is_grey = component_count == 1 or channels == 1
    sides = -(-height // divisor), -(-width // divisor)
    pixels = np.empty((*sides, 1 if is_grey else 3), np.uint8)
    options = (*_PLAIN_OPTIONS, *_least_sides(height, width, divisor), 1, pixels)
    try:
        decoded = simplejpeg.decode_jpeg(data, "GRAY" if is_grey else "RGB", *options, True)
    except ValueError as error:
        return pixels if _LEFT_OVER.fullmatch(str(error)) else None
    return pixels if decoded.shape == pixels.shape else None


def _least_sides(height: int, width: int, divisor: int) -> tuple[int, int]:
    """The sides that simplejpeg needs to decode at 1/`divisor` of the size."""
    return (-(-height // divisor), -(-width // divisor)) if divisor > 1 else (0, 0)


def _check_by_pillow(data: bytes, shape: tuple[int, int, int], warning: str) -> None:
    """Raise CorruptDataError if TensorFlow's libjpeg rejects the image.

    The shape must be libjpeg's own: Pillow's decoder does not check it.
    """
    cut_from = unfinished_segment(data)
    is_whole = _is_decoded(data, shape)
    if not is_whole and cut_from is not None and _FRAME_CUT_OFF.match(data, cut_from):
        is_whole = _is_decoded(
            data[:cut_from] + END, shape
        )  # older versions of libjpeg wait for the rest
    if is_whole and (cut_from is not None or _is_decoded(data + _BARRIER, shape)):
        return
    if is_whole or "Premature end" in warning:
        raise unreadable("the JPEG image is truncated: its end is missing")
    raise unreadable(f"the JPEG image is damaged: libjpeg cannot decode it: {warning}")


def _is_decoded(data: bytes, shape: tuple[int, int, int]) -> bool:
    """Whether libjpeg decodes all rows without an error; warnings are ignored."""
    from recordsmith.support.libraries import Image

    height, width, channels = shape
    mode = _MODES[channels]
    try:
        Image.frombytes(mode, (width, height), data, "jpeg", mode, "", 1, 1)
    except ValueError:
        return False
    return True


def _from_cmyk(pixels: npt.NDArray[np.uint8], *, is_inverted: bool) -> npt.NDArray[np.uint8]:
    """Convert CMYK to RGB as TensorFlow does. Adobe stores CMYK inverted."""
    light = pixels.astype(np.uint16)
    if not is_inverted:
        light = 255 - light
    return (light[:, :, :3] * light[:, :, 3:] // 255).astype(np.uint8)


def _decode_unusual(data: bytes, is_grey: bool, divisor: int) -> npt.NDArray[np.uint8]:
    """Decode with Pillow a JPEG whose chroma ratio simplejpeg does not support.

    Pillow's fast DCT repeats chroma instead of interpolating it, as libjpeg does for most of these
    ratios. For the others, the accurate DCT is closer to TensorFlow's pixels.
    """
    with read_by_pillow(data, "image") as image:
        if is_grey:
            image.draft("L", image.size)
        is_fast = is_grey or not _is_interpolated(data)
        image.decoderconfig = (1, int(is_fast))  # type: ignore[attr-defined]
        pixels: Any = image_to_array(
            image, lambda part: np.array(part if part.mode in ("L", "RGB") else part.convert("RGB"))
        )
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if divisor > 1:
        from recordsmith.support.libraries import cv2

        whole = [(0, -side % divisor) for side in pixels.shape[:2]]  # whole blocks, as in the file
        pixels = np.pad(pixels, [*whole, (0, 0)], "edge")
        size = (pixels.shape[1] // divisor, pixels.shape[0] // divisor)
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return pixels.reshape(*pixels.shape[:2], -1)  # type: ignore[no-any-return]


def _is_interpolated(data: bytes) -> bool:
    """Whether libjpeg interpolates the chroma of a JPEG, which depends on its ratio."""
    frame = read_frame(data)
    factors = (sampling_factors(data, frame) if frame else []) or [(1, 1)]
    most_across, most_down = (max(sides) for sides in zip(*factors, strict=True))
    return any(
        (most_across // max(across, 1), most_down // max(down, 1)) in _SMOOTH_UPSAMPLING
        for across, down in factors
    )
