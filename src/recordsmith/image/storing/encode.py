"""Encode pixels as JPEG or PNG with OpenCV, which releases the interpreter lock.

Pixels that a JPEG cannot hold raise SourceError: 16 bits, or sides of more than 65,500 pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordsmith.image.decoding.decoders import ExactPixels
from recordsmith.image.formats.png import GREY, GREY_ALPHA, RGB, RGBA, encode_png_values
from recordsmith.support.errors import SourceError

_PNG_LEVEL = 3  # measured: 6 makes files 3 % smaller in twice the time; `shrink` does better


def encode_jpeg(pixels: ExactPixels, *, quality: int, optimizes: bool = False) -> bytes:
    """Encode grey or RGB pixels of 8 bits as a baseline JPEG with chroma at half the resolution."""
    from recordsmith.support.libraries import cv2

    options = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_OPTIMIZE, int(optimizes)]
    encoded = _encode(".jpg", pixels, options)
    if encoded is None:
        raise SourceError(
            f"the image has {pixels.shape[1]:,} x {pixels.shape[0]:,} pixels, and a JPEG holds at "
            "most 65,500 per side",
            remedy="Store it as PNG, or resize it.",
        )
    return encoded


def check_bits_for_jpeg(pixels: ExactPixels) -> None:
    if pixels.dtype != np.uint8:
        raise SourceError(
            "the image has 16 bits per channel, and a JPEG holds 8",
            remedy="Store it as PNG, raw or unchanged, or scale its values to 0-255 first.",
        )


def encode_png(pixels: ExactPixels) -> bytes:
    """Encode 1 to 4 channels of 8 or 16 bits as PNG, without loss."""
    from recordsmith.support.libraries import cv2

    options = [cv2.IMWRITE_PNG_COMPRESSION, _PNG_LEVEL]
    if pixels.shape[2] != 2 and (encoded := _encode(".png", pixels, options)) is not None:
        return encoded
    colour_type = {1: GREY, 2: GREY_ALPHA, 3: RGB, 4: RGBA}[pixels.shape[2]]
    return encode_png_values(pixels, bits=8 * pixels.itemsize, colour_type=colour_type)


def flatten_alpha(pixels: ExactPixels, background: tuple[int, int, int]) -> ExactPixels:
    """Composite 8-bit grey or RGB pixels with alpha on a plain colour.

    Returns:
        RGB pixels, or grey ones if pixels and background are grey.
    """
    is_grey = pixels.shape[2] == 2 and len(set(background)) == 1
    colour = np.array(background[:1] if is_grey else background, np.uint32)
    alpha = pixels[:, :, -1:].astype(np.uint32)
    mixed = pixels[:, :, :-1] * alpha + colour * (255 - alpha)
    return ((2 * mixed + 255) // 510).astype(np.uint8)  # rounded to the nearest


def _encode(suffix: str, pixels: ExactPixels, options: list[int]) -> bytes | None:
    from recordsmith.support.libraries import cv2

    ordered: Any = pixels
    if pixels.shape[2] >= 3:
        order = cv2.COLOR_RGB2BGR if pixels.shape[2] == 3 else cv2.COLOR_RGBA2BGRA
        ordered = cv2.cvtColor(pixels, order)
    try:
        done, encoded = cv2.imencode(suffix, ordered, options)
    except cv2.error:
        return None
    return encoded.tobytes() if done else None
