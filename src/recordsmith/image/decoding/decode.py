"""Decode images to 8-bit RGB, and resize them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike
from recordsmith.image.decoding.bands import BAND_BYTES
from recordsmith.image.decoding.memory import reserve_for_decoding
from recordsmith.image.decoding.pixels import decode_pixels, read_image_head
from recordsmith.image.storing.image_options import MOST_PIXELS

Pixels: TypeAlias = npt.NDArray[np.uint8]


def decode_image(data: BytesLike, *, threads: int = 1) -> Pixels:
    """Decode an image to RGB. Like TensorFlow, ignores the EXIF orientation.

    Args:
        threads: how many threads may decode a large JPEG with tiles.

    Returns:
        uint8, (height, width, 3), RGB, 0-255. Grey is repeated in all channels; alpha is dropped.

    Raises:
        CorruptDataError: unreadable-image: the image is damaged, unsupported or too large.
    """
    head = read_image_head(data, max_pixels=None)
    extra = BAND_BYTES if threads > 1 else 0
    with reserve_for_decoding(data, *head[:3], max_pixels=MOST_PIXELS, extra=extra):
        pixels: Any = decode_pixels(data, head, threads=threads)
    return pixels  # type: ignore[no-any-return]


def resize_image(pixels: Pixels, height: int, width: int) -> Pixels:
    """Resize to (height, width, channels): by area when shrinking, bilinear when growing."""
    import cv2

    shrinks = height < pixels.shape[0] and width < pixels.shape[1]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    resized = cv2.resize(pixels, (width, height), interpolation=method)
    return resized.reshape(height, width, pixels.shape[2]).astype(np.uint8, copy=False)
