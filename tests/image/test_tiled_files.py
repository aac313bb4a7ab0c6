"""Other programs read JPEGs with restart markers, with the pixels of the same JPEG without."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from recordsmith.image.decoding.parts import Window, find_part
from recordsmith.image.decoding.pixels import decode_pixels, read_image_head
from recordsmith.image.kernel.tiling import with_interval

from ..images import encode, noise

Pixels = np.ndarray[Any, np.dtype[Any]]
SIZE = (203, 150)  # 13 x 10 MCUs of 16 pixels, or 26 x 19 of 8
INTERVALS = (1, 13)


def _image(mode: str) -> Image.Image:
    return noise(29, 25).resize(SIZE).convert(mode)


def _by_pillow(mode: str, subsampling: int, interval: int) -> bytes:
    options = {"subsampling": subsampling, "restart_marker_blocks": interval}
    return encode(
        _image(mode), "JPEG", **(options if mode == "RGB" else {**options, "quality": 90})
    )


def _by_opencv(mode: str, subsampling: int, interval: int) -> bytes:
    factor = (
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    )[subsampling]
    options = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factor, cv2.IMWRITE_JPEG_RST_INTERVAL, interval]
    return cv2.imencode(".jpg", np.array(_image(mode)), options)[1].tobytes()


def _by_transcoder(mode: str, subsampling: int, interval: int) -> bytes:
    return with_interval(_by_pillow(mode, subsampling, 0), interval)[1]


def _pillow(data: bytes) -> Pixels:
    with Image.open(io.BytesIO(data)) as image:
        return np.array(image)


def _opencv(data: bytes) -> Pixels:
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED))


def _recordsmith(data: bytes) -> Pixels:
    return decode_pixels(data, read_image_head(data))


ENCODERS: dict[str, Callable[[str, int, int], bytes]] = {
    "Pillow": _by_pillow,
    "OpenCV": _by_opencv,
    "transcoder": _by_transcoder,
}
DECODERS: dict[str, Callable[[bytes], Pixels]] = {
    "Pillow": _pillow,
    "OpenCV": _opencv,
    "recordsmith": _recordsmith,
}


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize(("mode", "subsampling"), [("RGB", 0), ("RGB", 1), ("RGB", 2), ("L", 0)])
@pytest.mark.parametrize("encoder", ENCODERS)
class TestTiles:
    """They do not change the pixels of a decoder."""

    def files(
        self, encoder: str, mode: str, subsampling: int, interval: int
    ) -> tuple[bytes, bytes]:
        plain, tiled = (ENCODERS[encoder](mode, subsampling, length) for length in (0, interval))
        assert tiled.count(b"\xff\xd0") > plain.count(b"\xff\xd0") == 0
        return plain, tiled

    def test_decoders(self, encoder: str, mode: str, subsampling: int, interval: int) -> None:
        plain, tiled = self.files(encoder, mode, subsampling, interval)
        assert find_part(tiled, read_image_head(tiled), Window(64, 64, 20, 20)).whole is not None
        for name, decode in DECODERS.items():
            np.testing.assert_array_equal(decode(tiled), decode(plain), err_msg=name)

    def test_tensorflow(
        self, tf: Any, encoder: str, mode: str, subsampling: int, interval: int
    ) -> None:
        plain, tiled = self.files(encoder, mode, subsampling, interval)
        for decode in (
            tf.io.decode_jpeg,
            lambda data: tf.io.decode_and_crop_jpeg(data, [30, 40, 50, 60]),
        ):
            np.testing.assert_array_equal(decode(tiled), decode(plain))
