"""Decoding pixels for training, compared with TensorFlow."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.image import check_size, decode_exact, decode_pixels, read_image_header
from recordsmith.image.formats.png import GREY, RGB, Chunk, encode_chunk, encode_png_values
from recordsmith.support.errors import CorruptDataError, Defect


def _decode(data: bytes, **options: Any) -> np.ndarray:
    return decode_pixels(data, read_image_header(data), **options)


def _by_tensorflow(tf: Any, data: bytes, channels: int, dtype: Any = None) -> np.ndarray | None:
    try:
        return tf.io.decode_image(
            data, channels=channels, dtype=dtype or tf.uint8, expand_animations=False
        ).numpy()
    except tf.errors.InvalidArgumentError:
        return None


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pixels_match_tensorflow(tf: Any, images: ModuleType, channels: int) -> None:
    compared = 0
    for name, data in images.odd().items():
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
        np.testing.assert_array_equal(pixels, expected, err_msg=name)
    assert compared >= (23 if channels == 3 else 8)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_16_bits_match_tensorflow(tf: Any, images: ModuleType, channels: int) -> None:
    data = images.odd()["16-bit png"]
    pixels = _decode(data, channels=channels, bits=16)
    assert pixels.dtype == np.uint16
    expected = tf.io.decode_png(data, channels=channels, dtype=tf.uint16).numpy()
    np.testing.assert_array_equal(pixels, expected)
    assert _decode(data, channels=channels, bits=None).dtype == np.uint16
    shallow = images.odd()["png"]
    assert _decode(shallow, channels=channels, bits=None).dtype == np.uint8
    if channels != 1:
        expected = tf.io.decode_png(shallow, channels=channels, dtype=tf.uint16).numpy()
        np.testing.assert_array_equal(_decode(shallow, channels=channels, bits=16), expected)


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("level", [0, 1, 0x101])
def test_transparent_grey_becomes_alpha(tf: Any, bits: int, level: int) -> None:
    values = (np.arange(9 * 16).reshape(9, 16) * 5 % (1 << bits)).astype(np.uint16)
    chunk = Chunk(b"tRNS", struct.pack(">H", level))
    data = encode_png_values(values, bits=bits, colour_type=GREY, chunks=[chunk])
    expected = tf.io.decode_png(data, channels=4).numpy()
    np.testing.assert_array_equal(_decode(data, channels=4), expected)
    assert decode_exact(data, read_image_header(data)).has_alpha
    assert (expected[:, :, 3] == 0).any() == (values.astype(int) == level % (1 << bits)).any()


@pytest.mark.parametrize("bits", [8, 16])
def test_grey_from_rgb_matches_tensorflow(tf: Any, bits: int) -> None:
    values = np.random.default_rng(2).integers(0, 1 << bits, (64, 64, 3), np.uint16)
    data = encode_png_values(values, bits=bits, colour_type=RGB)
    dtype = tf.uint8 if bits == 8 else tf.uint16
    expected = tf.io.decode_png(data, channels=1, dtype=dtype).numpy()
    np.testing.assert_array_equal(_decode(data, channels=1, bits=bits), expected)


def test_16_bit_colours_keep_their_bits(tf: Any, images: ModuleType) -> None:
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
def test_transparent_colours_become_alpha(tf: Any, images: ModuleType, transparency: int) -> None:
    image = images.noise(13, 9).quantize(7)
    data = images.encode(image, "PNG", transparency=transparency)
    for channels in (3, 4):
        expected = tf.io.decode_png(data, channels=channels).numpy()
        np.testing.assert_array_equal(_decode(data, channels=channels), expected)


@pytest.mark.usefixtures("each_jpeg_decoder")
def test_cmyk_stored_inverted_and_plain(tf: Any, images: ModuleType) -> None:
    data = images.odd()["cmyk jpeg"]
    at = data.index(b"Adobe") - 4
    plain = data[:at] + data[at + 16 :]
    assert not np.array_equal(_decode(data), _decode(plain))
    for cmyk in (data, plain):
        expected = tf.io.decode_jpeg(cmyk, channels=3).numpy()
        np.testing.assert_array_equal(_decode(cmyk), expected)


def test_real_jpegs_match_tensorflow_exactly(tf: Any, shared_data: Path) -> None:
    paths = sorted((shared_data / "sources").rglob("*.jpg"))[::20]
    assert len(paths) > 5
    for path in paths:
        data = path.read_bytes()
        expected = tf.io.decode_jpeg(data, channels=3).numpy()
        np.testing.assert_array_equal(_decode(data), expected, err_msg=path.name)


@pytest.mark.usefixtures("each_jpeg_decoder")
@pytest.mark.parametrize("size", [(64, 48), (65, 47), (77, 90)])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("divisor", [2, 4, 8])
def test_reduced_size_averages_pixels(
    images: ModuleType, size: tuple[int, int], channels: int, divisor: int
) -> None:
    height, width = size
    data = images.encode(images.smooth(width, height), "JPEG", quality=98)
    small = _decode(data, channels=channels, divisor=divisor).astype(float)
    assert small.shape == (-(-height // divisor), -(-width // divisor), channels)
    whole = _decode(data, channels=channels)[
        : height // divisor * divisor, : width // divisor * divisor
    ].astype(float)
    means = whole.reshape(height // divisor, divisor, -1, divisor, channels).mean((1, 3))
    difference = np.abs(small[: means.shape[0], : means.shape[1]] - means)
    assert difference.mean() < 3
    assert difference.max() < 20


# luma and chroma, across and down; libjpeg interpolates the chroma of the last two
@pytest.mark.parametrize(
    ("luma", "chroma", "tolerance"),
    [
        ((4, 2), (1, 1), 0),
        ((2, 4), (1, 1), 0),
        ((1, 4), (1, 1), 0),
        ((4, 1), (1, 1), 0),
        ((4, 1), (2, 1), 8),
        ((1, 4), (1, 2), 8),
    ],
)
def test_unusual_chroma_sampling_matches_tensorflow(
    tf: Any,
    images: ModuleType,
    luma: tuple[int, int],
    chroma: tuple[int, int],
    tolerance: int,
) -> None:
    data = images.sampled_jpeg(45, 53, [luma, chroma, chroma])
    for channels in (1, 3):
        expected = tf.io.decode_jpeg(data, channels=channels).numpy().astype(int)
        difference = np.abs(_decode(data, channels=channels) - expected).max()
        assert difference <= (tolerance if channels == 3 else 0)
    assert _decode(data, divisor=4).shape == (12, 14, 3)


# -- damaged images ----------------------------------------------------------------------------


@pytest.mark.usefixtures("each_jpeg_decoder")
@pytest.mark.parametrize("cut", [1, 2, 100])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_without_its_end_is_rejected(
    tf: Any, images: ModuleType, cut: int, progressive: bool
) -> None:
    data = images.encode(images.noise(60, 50), "JPEG", progressive=progressive)[:-cut]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.decode_jpeg(data)
    _fails(data)
    for options in ({"channels": 1}, {"divisor": 2}):
        _fails(data, **options)


def test_wrong_headers(tf: Any, images: ModuleType) -> None:
    jpeg = images.odd()["jpeg"]
    at = jpeg.index(b"\xff\xc0") + 5
    for height, width in ((0, 13), (9, 0)):
        nothing = jpeg[:at] + struct.pack(">HH", height, width) + jpeg[at + 4 :]
        assert "has no pixels" in _fails(nothing).detail
    taller = jpeg[:at] + struct.pack(">HH", 900, 13) + jpeg[at + 4 :]
    expected = tf.io.decode_jpeg(taller, channels=3).numpy()  # the rows that are missing are grey
    np.testing.assert_array_equal(_decode(taller), expected)
    twelve = jpeg[: at - 1] + b"\x0c" + jpeg[at:]
    _fails(twelve)
    rows = zlib.compress(bytes(9 * 40))  # of 2,000
    header = struct.pack(">IIBBBBB", 13, 2000, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        (encode_chunk(b"IHDR", header), encode_chunk(b"IDAT", rows), encode_chunk(b"IEND", b""))
    )
    _fails(png)


@pytest.mark.usefixtures("each_jpeg_decoder")
def test_size_that_differs_from_the_header_is_rejected(images: ModuleType) -> None:
    for name in ("jpeg", "png", "gif"):
        data = images.odd()[name]
        head = read_image_header(data)._replace(height=10)
        with pytest.raises(CorruptDataError) as caught:
            decode_pixels(data, head)
        assert caught.value.defect is Defect.UNREADABLE_IMAGE


@pytest.mark.usefixtures("each_jpeg_decoder")
@given(st.binary(max_size=60), st.integers(0, 400), st.sampled_from([1, 3, 4]))
def test_damaged_images_decode_or_raise_a_defect(
    images: ModuleType, bytes_: bytes, at: int, channels: int
) -> None:
    for name in ("jpeg", "png", "palette png"):
        data = images.odd()[name]
        damaged = data[:at] + bytes_ + data[at + len(bytes_) :]
        try:
            head = read_image_header(damaged)
            check_size(head.height, head.width, 10**6)
            pixels = decode_pixels(damaged, head, channels=channels)
        except CorruptDataError:
            continue
        assert pixels.shape == (head.height, head.width, channels)


def _fails(data: bytes, **options: Any) -> CorruptDataError:
    with pytest.raises(CorruptDataError) as caught:
        _decode(data, **options)
    assert caught.value.defect is Defect.UNREADABLE_IMAGE
    return caught.value
