"""What is known of an image before it is decoded."""

from __future__ import annotations

from typing import NamedTuple


class ImageHeader(NamedTuple):
    """The header of an image, which its format reads once.

    Attributes:
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
