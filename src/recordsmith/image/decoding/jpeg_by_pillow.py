"""Decode JPEG by Pillow, which raises at the errors of libjpeg, ignores its warnings, and never
reads past the end.

Pillow has the fast DCT of TensorFlow only without interpolation of chroma. So its pixels are those
of TensorFlow where libjpeg interpolates none: grey, 4:4:4 and unusual ratios. The colours of other
images are of the accurate DCT, a few levels off.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.image.decoding.memory import image_to_array, reserve_more
from recordsmith.image.formats.header import unreadable
from recordsmith.image.formats.pillow import read_by_pillow
from recordsmith.jpeg import (
    END,
    bytes_per_pixel,
    find_frame,
    read_frame,
    sampling_factors,
    unfinished_segment,
    with_plain_header,
)
from recordsmith.support.buffers import as_view

_FRAME_CUT_OFF = re.compile(rb"\xff[\xc0-\xc2].{1,7}\Z", re.DOTALL)
_MODES = {1: "L", 3: "RGB", 4: "CMYK"}
_PEAK = 4  # bytes per pixel of Pillow's image, in addition to the array
_BARRIER = b"\xff\xd8" * 33_000
"""A decoder that reads on here fails: start markers, longer than any segment."""
_SMOOTH_UPSAMPLING = frozenset(((2, 1), (2, 2), (1, 2)))  # ratios that libjpeg interpolates
_SMOOTH_IF_SCALED = frozenset(((2, 1), (1, 2)))  # it scales chroma of 2 x 2 less instead


def decode_by_pillow(data: bytes, *, is_grey: bool, divisor: int) -> npt.NDArray[np.uint8]:
    """Decode a JPEG that TensorFlow accepts; CorruptDataError for others.

    Args:
        divisor: 2, 4 or 8 to decode at 1/`divisor` of the size, with sides rounded up.

    Returns:
        (height, width, channels): grey, RGB, or CMYK as stored.
    """
    data = with_plain_header(data)
    with read_by_pillow(data) as opened:
        shape = opened.height, opened.width, 1 if is_grey else len(opened.getbands())
    if find_frame(data) is not None:
        pixel_bytes = bytes_per_pixel(as_view(data), 3, divisor) + _PEAK / divisor**2
        reserve_more(int(pixel_bytes * shape[0] * shape[1]))
    image = _read(data + _BARRIER, shape, divisor)
    if image is None:
        check_by_pillow(data, shape)
        image = _read(_without_cut_frame(data), shape, divisor)
    pixels = image_to_array(image, np.array)
    return pixels.reshape(*pixels.shape[:2], -1)


def check_by_pillow(data: bytes, shape: tuple[int, int, int], warning: str = "") -> None:
    """Raise CorruptDataError if TensorFlow's libjpeg rejects the image.

    Args:
        shape: libjpeg's own: Pillow's decoder does not check it.
        warning: what libjpeg warned about.
    """
    is_whole = _read(_without_cut_frame(data), shape) is not None
    if is_whole and (
        unfinished_segment(data) is not None or _read(data + _BARRIER, shape) is not None
    ):
        return
    if is_whole or "Premature end" in warning:
        raise unreadable("the JPEG image is truncated: its end is missing")
    reason = f": {warning}" if warning else ""
    raise unreadable(f"the JPEG image is damaged: libjpeg cannot decode it{reason}")


def _without_cut_frame(data: bytes) -> bytes:
    """Remove a frame header that is cut off: older versions of libjpeg wait for the rest."""
    cut_from = unfinished_segment(data)
    if cut_from is not None and _FRAME_CUT_OFF.match(data, cut_from):
        return data[:cut_from] + END
    return data


def _read(data: bytes, shape: tuple[int, int, int], divisor: int = 1) -> Any:
    """Decode a JPEG as an image of Pillow; None if libjpeg stops at an error, or at the end.

    `Image.open` ignores errors if a program has set Pillow's `LOAD_TRUNCATED_IMAGES`.
    """
    from recordsmith.support.libraries import Image

    height, width, channels = shape
    mode = _MODES[channels]
    sides = -(-width // divisor), -(-height // divisor)
    is_fast = mode == "L" or not _is_interpolated(data, divisor)
    try:
        return Image.frombytes(mode, sides, data, "jpeg", mode, "", divisor, int(is_fast))
    except ValueError:
        return None


def _is_interpolated(data: bytes, divisor: int) -> bool:
    """Whether libjpeg interpolates the chroma of a JPEG, which depends on its ratio."""
    frame = read_frame(data)
    factors = (sampling_factors(data, frame) if frame else []) or [(1, 1)]
    most_across, most_down = (max(sides) for sides in zip(*factors, strict=True))
    interpolated = _SMOOTH_UPSAMPLING if divisor == 1 else _SMOOTH_IF_SCALED
    return any(
        (most_across // max(across, 1), most_down // max(down, 1)) in interpolated
        for across, down in factors
    )
