"""Pixels for training: as TensorFlow decodes them, from every format that it knows, and more."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.image import pixels as pixels_module
from recordsmith.image.pixels import decode_pixels, look_at_picture
from recordsmith.image.png import encode_chunk

COLOURED = ("png", "rgba png", "palette png", "png with text")


def _decode(data: bytes, **options: Any) -> np.ndarray:
    return decode_pixels(data, look_at_picture(data), **options)


def _by_tensorflow(tf: Any, data: bytes, channels: int, dtype: Any = None) -> np.ndarray | None:
    try:
        return tf.io.decode_image(
            data, channels=channels, dtype=dtype or tf.uint8, expand_animations=False
        ).numpy()
    except tf.errors.InvalidArgumentError:
        return None


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pixels_are_tensorflows(tf: Any, pictures: ModuleType, channels: int) -> None:
    compared = 0
    for name, data in pictures.odd().items():
        pixels = _decode(data, channels=channels)
        assert pixels.shape == (9, 13, channels), name
        assert pixels.dtype == np.uint8
        assert pixels.flags.c_contiguous
        expected = _by_tensorflow(tf, data, channels)
        if expected is None:
            continue
        compared += 1
        if (name, channels) == ("1-bit png", 4):  # opaque is 1 of 255 there
            expected[:, :, 3] = 255
        is_grey_of_colours = channels == 1 and name in COLOURED
        difference = np.abs(pixels.astype(int) - expected)
        assert difference.max() <= is_grey_of_colours, name  # which is rounded down there
    assert compared >= (23 if channels == 3 else 8)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_16_bits_are_tensorflows(tf: Any, pictures: ModuleType, channels: int) -> None:
    data = pictures.odd()["16-bit png"]
    pixels = _decode(data, channels=channels, bits=16)
    assert pixels.dtype == np.uint16
    expected = tf.io.decode_png(data, channels=channels, dtype=tf.uint16).numpy()
    np.testing.assert_array_equal(pixels, expected)
    assert _decode(data, channels=channels, bits=None).dtype == np.uint16
    shallow = pictures.odd()["png"]
    assert _decode(shallow, channels=channels, bits=None).dtype == np.uint8
    if channels != 1:
        expected = tf.io.decode_png(shallow, channels=channels, dtype=tf.uint16).numpy()
        np.testing.assert_array_equal(_decode(shallow, channels=channels, bits=16), expected)


def test_16_bit_colours_keep_their_bits(tf: Any, pictures: ModuleType) -> None:
    import cv2

    colours = np.random.default_rng(0).integers(0, 65536, (5, 7, 4), np.uint16)
    for channels in (3, 4):
        data = cv2.imencode(".png", colours[:, :, :channels])[1].tobytes()
        red_first = colours[:, :, [2, 1, 0, 3]][:, :, :channels]
        np.testing.assert_array_equal(_decode(data, channels=channels, bits=16), red_first)
        expected = tf.io.decode_png(data, channels=channels).numpy()
        np.testing.assert_array_equal(_decode(data, channels=channels), expected)
    tiff = cv2.imencode(".tiff", colours[:, :, :3])[1].tobytes()
    np.testing.assert_array_equal(_decode(tiff, bits=16), colours[:, :, 2::-1])


@pytest.mark.parametrize("transparency", [0, 3])
def test_transparent_colours_are_alpha(tf: Any, pictures: ModuleType, transparency: int) -> None:
    image = pictures.noise(13, 9).quantize(7)
    data = pictures.encode(image, "PNG", transparency=transparency)
    for channels in (3, 4):
        expected = tf.io.decode_png(data, channels=channels).numpy()
        np.testing.assert_array_equal(_decode(data, channels=channels), expected)


def test_cmyk_that_is_stored_inverted_and_not(tf: Any, pictures: ModuleType) -> None:
    data = pictures.odd()["cmyk jpeg"]
    at = data.index(b"Adobe") - 4
    plain = data[:at] + data[at + 16 :]
    assert not np.array_equal(_decode(data), _decode(plain))
    for cmyk in (data, plain):
        expected = tf.io.decode_jpeg(cmyk, channels=3).numpy()
        np.testing.assert_array_equal(_decode(cmyk), expected)


def test_real_jpegs_are_tensorflows_bit_by_bit(tf: Any, shared_data: Path) -> None:
    paths = sorted((shared_data / "sources").rglob("*.jpg"))[::20]
    assert len(paths) > 5
    for path in paths:
        data = path.read_bytes()
        expected = tf.io.decode_jpeg(data, channels=3).numpy()
        np.testing.assert_array_equal(_decode(data), expected, err_msg=path.name)


@pytest.mark.parametrize("size", [(64, 48), (65, 47), (77, 90)])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("divisor", [2, 4, 8])
def test_a_part_of_the_size_is_the_mean_of_its_pixels(
    pictures: ModuleType, size: tuple[int, int], channels: int, divisor: int
) -> None:
    height, width = size
    data = pictures.encode(pictures.smooth(width, height), "JPEG", quality=98)
    small = _decode(data, channels=channels, divisor=divisor).astype(float)
    assert small.shape == (-(-height // divisor), -(-width // divisor), channels)
    whole = _decode(data, channels=channels)[
        : height // divisor * divisor, : width // divisor * divisor
    ].astype(float)
    means = whole.reshape(height // divisor, divisor, -1, divisor, channels).mean((1, 3))
    difference = np.abs(small[: means.shape[0], : means.shape[1]] - means)
    assert difference.mean() < 3
    assert difference.max() < 20


def test_cmyk_and_odd_jpegs_are_scaled_too(
    pictures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    cmyk = pictures.encode(pictures.smooth(40, 33, "CMYK"), "JPEG", quality=95)
    assert _decode(cmyk, divisor=2).shape == (17, 20, 3)
    plain = pictures.encode(pictures.smooth(40, 33), "JPEG", quality=95)
    expected = {divisor: _decode(plain, divisor=divisor) for divisor in (1, 2, 8)}
    monkeypatch.setattr(pixels_module, "_simplejpeg", lambda: None)
    for divisor, pixels in expected.items():
        other = _decode(plain, divisor=divisor)
        assert other.shape == pixels.shape
        assert np.abs(other.astype(int) - pixels).mean() < 4


def test_without_simplejpeg_pillow_decodes(
    pictures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pictures.odd()["jpeg"]
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    pixels_module._simplejpeg.cache_clear()
    try:
        assert pixels_module._simplejpeg() is None
        with Image.open(io.BytesIO(data)) as image:
            np.testing.assert_array_equal(_decode(data), np.array(image))
    finally:
        pixels_module._simplejpeg.cache_clear()


def test_a_warning_of_the_decoder_is_no_error(tf: Any, pictures: ModuleType) -> None:
    """Bytes between the last restart interval and the end mark: all pixels are there."""
    data = pictures.odd()["jpeg"]
    odd = data[:-2] + b"\x00\x01\x02\x03" + data[-2:]
    expected = tf.io.decode_jpeg(odd, channels=3).numpy()
    assert np.abs(_decode(odd).astype(int) - expected).max() <= 4


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF"])
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_what_was_cut_off_is_an_error(pictures: ModuleType, kind: str, kept: float) -> None:
    data = pictures.encode(pictures.noise(60, 50), kind)
    _decode(data)
    _fails(data[: int(kept * len(data))])


@pytest.mark.parametrize("cut", [1, 2, 100])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_that_lacks_its_end_is_an_error(
    tf: Any, pictures: ModuleType, cut: int, progressive: bool
) -> None:
    data = pictures.encode(pictures.noise(60, 50), "JPEG", progressive=progressive)[:-cut]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.decode_jpeg(data)
    assert "the JPEG picture was cut off" in _fails(data).detail
    for options in ({"channels": 1}, {"divisor": 2}):
        _fails(data, **options)


def test_the_header_is_asked_before_anything_is_decoded(pictures: ModuleType) -> None:
    data = pictures.odd()
    for name in data:
        assert look_at_picture(data[name], max_pixels=9 * 13)[1:3] == (9, 13)
        with pytest.raises(
            CorruptDataError, match="13 x 9 pixels, more than the 116 that"
        ) as caught:
            look_at_picture(data[name], max_pixels=9 * 13 - 1)
        assert caught.value.defect is Defect.UNREADABLE_IMAGE


def test_headers_that_lie(pictures: ModuleType) -> None:
    jpeg = pictures.odd()["jpeg"]
    at = jpeg.index(b"\xff\xc0") + 5
    for height, width in ((0, 13), (9, 0)):
        nothing = jpeg[:at] + struct.pack(">HH", height, width) + jpeg[at + 4 :]
        assert "has no pixels" in _fails(nothing).detail
    taller = jpeg[:at] + struct.pack(">HH", 900, 13) + jpeg[at + 4 :]
    _fails(taller)
    twelve = jpeg[: at - 1] + b"\x0c" + jpeg[at:]
    assert "12 bits a sample" in _fails(twelve).detail
    rows = zlib.compress(bytes(9 * 40))  # of 2,000
    header = struct.pack(">IIBBBBB", 13, 2000, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        (encode_chunk(b"IHDR", header), encode_chunk(b"IDAT", rows), encode_chunk(b"IEND", b""))
    )
    assert "fewer pixels than its header says" in _fails(png).detail


def test_a_size_that_was_not_in_the_header_is_an_error(pictures: ModuleType) -> None:
    for name in ("jpeg", "png", "gif"):
        data = pictures.odd()[name]
        head = look_at_picture(data)._replace(height=10)
        with pytest.raises(CorruptDataError) as caught:
            decode_pixels(data, head)
        assert "13 x 10 pixels" in caught.value.detail


@given(st.binary(max_size=60), st.integers(0, 400), st.sampled_from([1, 3, 4]))
def test_damage_gives_pixels_or_a_named_defect(
    pictures: ModuleType, bytes_: bytes, at: int, channels: int
) -> None:
    for name in ("jpeg", "png", "palette png"):
        data = pictures.odd()[name]
        damaged = data[:at] + bytes_ + data[at + len(bytes_) :]
        try:
            head = look_at_picture(damaged, max_pixels=10**6)
            pixels = decode_pixels(damaged, head, channels=channels)
        except CorruptDataError:
            continue
        assert pixels.shape == (head.height, head.width, channels)


def test_any_buffer_will_do(pictures: ModuleType) -> None:
    for name in ("jpeg", "png", "gif", "jpeg with fill bytes", "jpeg to be turned"):
        data = pictures.odd()[name]
        for buffer in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
            np.testing.assert_array_equal(
                decode_pixels(buffer, look_at_picture(buffer)), _decode(data)
            )


def _fails(data: bytes, **options: Any) -> CorruptDataError:
    with pytest.raises(CorruptDataError) as caught:
        _decode(data, **options)
    assert caught.value.defect is Defect.UNREADABLE_IMAGE
    return caught.value
