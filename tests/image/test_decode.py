"""Pixels: as Pillow decodes them; resized to what was asked."""

from __future__ import annotations

import io
import struct
import zlib
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.image import decode_image, resize_image

LOSSLESS = ["png", "grey png", "1-bit png", "palette png", "rgba png", "grey alpha png",
            "gif", "bmp", "lossless webp", "tiff", "ppm", "png with text"]  # fmt: skip


def _by_pillow(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        return np.array(image.convert("RGB"))


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_pictures_are_exact(pictures: ModuleType, name: str) -> None:
    data = pictures.odd()[name]
    pixels = decode_image(data)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    np.testing.assert_array_equal(pixels, _by_pillow(data))


def test_every_odd_picture_has_its_size_and_three_channels(pictures: ModuleType) -> None:
    for name, data in pictures.odd().items():
        assert decode_image(data).shape == (9, 13, 3), name


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("progressive", [True, False])
def test_jpeg_is_close(pictures: ModuleType, mode: str, progressive: bool) -> None:
    data = pictures.encode(
        pictures.smooth(40, 24, mode), "JPEG", quality=95, progressive=progressive
    )
    difference = decode_image(data).astype(int) - _by_pillow(data)
    assert np.abs(difference).max() <= 3


def test_channels_are_in_the_order_red_green_blue(pictures: ModuleType) -> None:
    for kind in ("JPEG", "PNG", "BMP", "GIF", "WEBP"):
        data = pictures.encode(Image.new("RGB", (16, 16), (250, 120, 5)), kind)
        np.testing.assert_allclose(decode_image(data)[8, 8].astype(int), [250, 120, 5], atol=6)


def test_16_bits_become_8(pictures: ModuleType) -> None:
    levels = np.arange(0, 65536, 257, dtype="<u2").reshape(16, 16)
    image = Image.frombytes("I;16", (16, 16), levels.tobytes())
    pixels = decode_image(pictures.encode(image, "PNG"))
    np.testing.assert_allclose(pixels[..., 0].astype(int), levels // 257, atol=1)


def test_orientation_is_not_applied(pictures: ModuleType) -> None:
    data = pictures.odd()["jpeg to be turned"]
    assert decode_image(data).shape == (9, 13, 3)


def test_any_buffer_will_do(pictures: ModuleType) -> None:
    data = pictures.odd()["png"]
    for buffer in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        np.testing.assert_array_equal(decode_image(buffer), decode_image(data))
    gif = pictures.odd()["gif"]
    np.testing.assert_array_equal(decode_image(memoryview(gif)), decode_image(gif))


def test_pixels_are_the_callers_own(pictures: ModuleType) -> None:
    pixels = decode_image(pictures.odd()["png"])
    pixels[:] = 0
    assert decode_image(pictures.odd()["png"]).any()


@given(st.binary(max_size=200))
def test_any_bytes_are_pixels_or_a_named_defect(data: bytes) -> None:
    try:
        pixels = decode_image(data)
    except CorruptDataError:
        return
    assert pixels.shape[2] == 3


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def test_header_that_claims_a_giant_is_a_named_defect() -> None:
    """60,000 by 60,000 pixels in a hundred bytes."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header)
    data += _chunk(b"IDAT", zlib.compress(bytes(1000))) + _chunk(b"IEND", b"")
    with pytest.raises(CorruptDataError) as caught:
        decode_image(data)
    assert caught.value.defect is Defect.UNREADABLE_IMAGE
    assert "the picture is larger than is ever decoded: " in caught.value.detail


def test_what_is_wrong_is_said_in_words(pictures: ModuleType) -> None:
    """Not with the name of an object, as Pillow does."""
    gif = pictures.encode(pictures.noise(20, 16), "GIF")
    for data, said in (
        (b"words that are no picture", "it is no picture of a known format; it begins with b'wor"),
        (b"\xff\xd8\xff", "it begins like a JPEG file, but is damaged or was cut off"),
        (gif[:-40], "the gif picture is damaged or was cut off: "),
    ):
        with pytest.raises(CorruptDataError) as caught:
            decode_image(data)
        assert caught.value.detail.startswith(said)
        assert "object at" not in str(caught.value)


# -- resizing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(5, 7), (40, 50), (5, 50), (40, 7), (16, 20), (1, 1)])
def test_resized_to_height_and_width(pictures: ModuleType, size: tuple[int, int]) -> None:
    pixels = np.array(pictures.noise(20, 16))
    resized = resize_image(pixels, *size)
    assert resized.shape == (*size, 3)
    assert resized.dtype == np.uint8
    if size == (16, 20):
        np.testing.assert_array_equal(resized, pixels)


def test_resizing_keeps_a_plain_colour() -> None:
    pixels = np.full((10, 10, 3), (10, 20, 30), np.uint8)
    for size in [(3, 3), (30, 30), (3, 30)]:
        assert (resize_image(pixels, *size) == (10, 20, 30)).all()


def test_shrinking_is_by_area() -> None:
    """Each pixel is the mean of those it stands for; nothing is left out."""
    pixels = np.random.default_rng(0).integers(0, 256, (12, 20, 3), np.uint8)
    means = pixels.reshape(3, 4, 5, 4, 3).mean((1, 3))
    np.testing.assert_allclose(resize_image(pixels, 3, 5), means, atol=0.51)


def test_growing_is_bilinear() -> None:
    pixels = np.array([[[0] * 3, [200] * 3]], np.uint8)
    row = resize_image(pixels, 1, 8)[0, :, 0].astype(int)
    assert (np.diff(row) >= 0).all()
    assert len(set(row.tolist())) > 2


def test_one_channel_stays_one_channel() -> None:
    assert resize_image(np.zeros((10, 12, 1), np.uint8), 5, 6).shape == (5, 6, 1)
