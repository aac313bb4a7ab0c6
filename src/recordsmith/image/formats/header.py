"""What is known of an image before it is decoded."""

from __future__ import annotations

from typing import NamedTuple

from recordsmith.jpeg import find_frame
from recordsmith.support.errors import CorruptDataError, Defect


class ImageHeader(NamedTuple):
    """The header of an image, which its format reads once.

    format: as TensorFlow names it: jpeg, png, gif, bmp, webp, tiff, …
    height, width: in pixels, as stored, without applying the EXIF orientation.
    channels: as stored; 3 for palettes.
    variant: animated (GIF, WebP), 16-bit (PNG), or empty.
    """

    format: str
    height: int
    width: int
    channels: int
    variant: str = ""


def read_jpeg_header(data: bytes | memoryview) -> ImageHeader | None:
    """The header of a JPEG, even if garbage precedes it; None for other bytes."""
    frame = find_frame(data)
    if frame is None:
        return None
    return ImageHeader("jpeg", frame.height, frame.width, frame.component_count)


def unreadable(
    problem: str, *, found: str = "", expected: str = "", remedy: str = ""
) -> CorruptDataError:
    """The error for bytes that are not an image, or not the expected kind of image."""
    return CorruptDataError(
        Defect.UNREADABLE_IMAGE, problem, found=found, expected=expected, remedy=remedy
    )
