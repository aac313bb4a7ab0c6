"""Mask headers compared with Pillow."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.image import MaskInfo, probe_mask


def _palette_image(colours: int) -> Image.Image:
    image = Image.fromarray(np.arange(13 * 9, dtype=np.uint8).reshape(9, 13) % colours, "L")
    image = image.convert("P")
    image.putpalette([channel for number in range(colours) for channel in (number, 99, 200)])
    return image


def test_kinds_and_bits_of_png(images: ModuleType) -> None:
    noise = images.noise(13, 9)
    deep = Image.fromarray(np.arange(117, dtype=np.uint16).reshape(9, 13) * 500)
    expected = {
        images.encode(noise.convert("1"), "PNG"): ("grey", 1, False),
        images.encode(noise.convert("L"), "PNG"): ("grey", 8, False),
        images.encode(deep, "PNG"): ("grey", 16, False),
        images.encode(noise.convert("LA"), "PNG"): ("grey", 8, True),
        images.encode(noise, "PNG"): ("colour", 8, False),
        images.encode(noise.convert("RGBA"), "PNG"): ("colour", 8, True),
        images.encode(_palette_image(2), "PNG", bits=1): ("palette", 1, False),
        images.encode(_palette_image(4), "PNG", bits=2): ("palette", 2, False),
        images.encode(_palette_image(16), "PNG", bits=4): ("palette", 4, False),
        images.encode(_palette_image(50), "PNG", bits=8): ("palette", 8, False),
    }
    for data, (kind, bits, has_alpha) in expected.items():
        assert probe_mask(data) == MaskInfo("png", 9, 13, kind, bits, has_alpha)  # type: ignore[arg-type]


def test_kinds_of_other_formats(images: ModuleType) -> None:
    noise = images.noise(13, 9)
    deep = Image.fromarray(np.arange(117, dtype=np.uint16).reshape(9, 13))
    fractions = Image.fromarray(np.zeros((9, 13), np.float32))
    for image, form, kind, bits in (
        (noise.convert("L"), "TIFF", "grey", 8),
        (noise.convert("1"), "TIFF", "grey", 1),
        (deep, "TIFF", "grey", 16),
        (noise.convert("I"), "TIFF", "grey", 32),
        (fractions, "TIFF", "float", 8),
        (noise.convert("P"), "GIF", "palette", 8),
        (noise.convert("L"), "BMP", "grey", 8),
        (noise, "PPM", "colour", 8),
        (noise, "WEBP", "colour", 8),
    ):
        info = probe_mask(images.encode(image, form))
        assert info == MaskInfo(form.lower(), 9, 13, kind, bits), form  # type: ignore[arg-type]


def test_jpeg_is_lossy_in_any_container(images: ModuleType) -> None:
    grey = images.noise(13, 9, "L")
    assert probe_mask(images.encode(grey, "JPEG")).is_lossy
    assert probe_mask(images.encode(grey, "TIFF", compression="jpeg")).is_lossy
    assert not probe_mask(images.encode(grey, "TIFF", compression="tiff_lzw")).is_lossy


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-20], lambda data: data[:25] + b"\x05" + data[26:], lambda _: b""]
)
def test_damaged_masks(images: ModuleType, damage) -> None:
    data = damage(images.encode(images.noise(13, 9, "L"), "PNG"))
    with pytest.raises(rs.CorruptDataError) as caught:
        probe_mask(data)
    assert caught.value.defect is rs.Defect.UNREADABLE_IMAGE
