"""Decoding to 8-bit RGB compared with Pillow, and resizing."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from recordsmith.image import decode_image, resize_image
from recordsmith.support.errors import CorruptDataError


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
