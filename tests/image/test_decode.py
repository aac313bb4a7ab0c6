"""Decoding to 8-bit RGB compared with Pillow, and resizing."""

from __future__ import annotations

import io
import struct
import zlib
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.image import decode_image, resize_image

LOSSLESS = ["png", "grey png", "1-bit png", "palette png", "rgba png", "grey alpha png",
            "gif", "bmp", "lossless webp", "tiff", "ppm", "png with text"]  # fmt: skip


def _by_pillow(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        return np.array(image.convert("RGB"))


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_images_are_exact(images: ModuleType, name: str) -> None:
    data = images.odd()[name]
    pixels = decode_image(data)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    np.testing.assert_array_equal(pixels, _by_pillow(data))


def test_orientation_is_not_applied(images: ModuleType) -> None:
    data = images.odd()["rotated jpeg"]
    assert decode_image(data).shape == (9, 13, 3)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def test_image_bomb_raises_a_defect() -> None:
    """60,000 x 60,000 pixels in a hundred bytes."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header)
    data += _chunk(b"IDAT", zlib.compress(bytes(1000))) + _chunk(b"IEND", b"")
    with pytest.raises(CorruptDataError) as caught:
        decode_image(data)
    assert caught.value.defect is Defect.UNREADABLE_IMAGE
    assert caught.value.found == "60,000 x 60,000 pixels"


def test_messages_describe_the_damage(images: ModuleType) -> None:
    """Pillow's messages contain the repr of a file object."""
    gif = images.encode(images.noise(20, 16), "GIF")
    for data, message in (
        (b"text, not an image", "the image has an unsupported format; its first bytes are b'tex"),
        (b"\xff\xd8\xff", "the image starts like a JPEG file, but is damaged or truncated"),
        (gif[:-40], "the gif image is damaged or truncated: "),
    ):
        with pytest.raises(CorruptDataError) as caught:
            decode_image(data)
        assert caught.value.detail.startswith(message)
        assert "object at" not in str(caught.value)


# -- resizing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(5, 7), (40, 50), (5, 50), (40, 7), (16, 20), (1, 1)])
def test_resized_to_height_and_width(images: ModuleType, size: tuple[int, int]) -> None:
    pixels = np.array(images.noise(20, 16))
    resized = resize_image(pixels, *size)
    assert resized.shape == (*size, 3)
    assert resized.dtype == np.uint8
    if size == (16, 20):
        np.testing.assert_array_equal(resized, pixels)


def test_resizing_keeps_a_plain_colour() -> None:
    pixels = np.full((10, 10, 3), (10, 20, 30), np.uint8)
    for size in [(3, 3), (30, 30), (3, 30)]:
        assert (resize_image(pixels, *size) == (10, 20, 30)).all()


def test_shrinking_averages_by_area() -> None:
    """Each pixel is the mean of its source pixels."""
    pixels = np.random.default_rng(0).integers(0, 256, (12, 20, 3), np.uint8)
    means = pixels.reshape(3, 4, 5, 4, 3).mean((1, 3))
    np.testing.assert_allclose(resize_image(pixels, 3, 5), means, atol=0.51)


def test_growing_is_bilinear() -> None:
    pixels = np.array([[[0] * 3, [200] * 3]], np.uint8)
    row = resize_image(pixels, 1, 8)[0, :, 0].astype(int)
    assert (np.diff(row) >= 0).all()
    assert len(set(row.tolist())) > 2
