"""Picture bytes -> pixels, and pixels of one size -> another. OpenCV, with Pillow behind it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike
from recordsmith.image.pillow import read_by_pillow

Pixels: TypeAlias = npt.NDArray[np.uint8]


def decode_image(data: BytesLike) -> Pixels:
    """Decode a picture as it is stored; an EXIF orientation is not applied, as in TensorFlow.

    Returns:
        uint8, (height, width, 3), RGB, 0-255. Grey is spread over the three channels, alpha is
        left out.

    Raises:
        CorruptDataError: unreadable-image.
    """
    import cv2

    flags = cv2.IMREAD_COLOR_RGB if hasattr(cv2, "IMREAD_COLOR_RGB") else cv2.IMREAD_COLOR
    encoded = np.frombuffer(data, np.uint8)
    pixels: Any = None
    if len(encoded):
        with suppress(cv2.error):  # a header that asks for too much: Pillow says so in words
            pixels = cv2.imdecode(encoded, flags | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:  # GIF, odd modes: what OpenCV does not know
        return _decode_with_pillow(bytes(data))
    return pixels if flags != cv2.IMREAD_COLOR else np.ascontiguousarray(pixels[:, :, ::-1])


def resize_image(pixels: Pixels, height: int, width: int) -> Pixels:
    """Resize to (height, width, channels): by area when shrinking, bilinear when growing."""
    import cv2

    shrinks = height < pixels.shape[0] and width < pixels.shape[1]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    resized = cv2.resize(pixels, (width, height), interpolation=method)
    return resized.reshape(height, width, pixels.shape[2]).astype(np.uint8, copy=False)


def _decode_with_pillow(data: bytes) -> Pixels:
    with read_by_pillow(data) as image:
        return np.array(image.convert("RGB"))
