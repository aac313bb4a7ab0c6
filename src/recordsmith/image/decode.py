"""Picture bytes -> pixels as anyone looks at them, and pixels of one size -> another."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike
from recordsmith.image.options import MOST_PIXELS
from recordsmith.image.pillow import unreadable
from recordsmith.image.pixels import decode_pixels, look_at_picture

Pixels: TypeAlias = npt.NDArray[np.uint8]


def decode_image(data: BytesLike) -> Pixels:
    """Decode a picture as it is stored; an EXIF orientation is not applied, as in TensorFlow.

    Returns:
        uint8, (height, width, 3), RGB, 0-255. Grey is spread over the three channels, alpha is
        left out.

    Raises:
        CorruptDataError: unreadable-image.
    """
    head = look_at_picture(data, max_pixels=None)
    if head.height * head.width > MOST_PIXELS:
        raise unreadable(
            f"the picture is larger than is ever decoded: {head.width:,} x {head.height:,} pixels"
        )
    pixels: Any = decode_pixels(data, head)
    return pixels  # type: ignore[no-any-return]


def resize_image(pixels: Pixels, height: int, width: int) -> Pixels:
    """Resize to (height, width, channels): by area when shrinking, bilinear when growing."""
    import cv2

    shrinks = height < pixels.shape[0] and width < pixels.shape[1]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    resized = cv2.resize(pixels, (width, height), interpolation=method)
    return resized.reshape(height, width, pixels.shape[2]).astype(np.uint8, copy=False)
