"""Encoding PNG with any channels and bits, read by Pillow and OpenCV."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
from PIL import Image

from recordsmith.image import encode_png


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 5), (1, 9), (64, 3)])
def test_round_trip(dtype: type, channels: int, height: int, width: int) -> None:
    generator = np.random.default_rng(channels)
    limit = np.iinfo(dtype).max
    pixels = generator.integers(0, limit, (height, width, channels), dtype, endpoint=True)
    data = encode_png(pixels)
    if channels == 2 and dtype is np.uint8:  # OpenCV makes four channels of these
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), pixels)
        return
    decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert decoded is not None
    assert decoded.dtype == dtype
    decoded = decoded.reshape(height, width, -1)
    if channels == 2:
        assert np.array_equal(decoded[..., [0, 3]], pixels)
        return
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[channels]
    assert np.array_equal(decoded[..., order], pixels)
