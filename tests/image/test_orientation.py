"""EXIF orientations: read, and applied to pixels and boxes, compared with Pillow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from recordsmith.image import (
    apply_orientation,
    exif_orientation,
    inverse_orientation,
    orient_box,
    probe_image,
    read_jpeg_info,
    swaps_sides,
)

from ..images import encode, noise, segment

ALL = range(1, 9)


def with_exif(
    image: Image.Image, orientation: int | None, kind: str = "PNG", order: str = "<", **options: Any
) -> bytes:
    exif = Image.Exif()
    exif.endian = order
    exif[0x010F] = "a maker, so that the tag is not the first"
    if orientation is not None:
        exif[0x0112] = orientation
    return encode(image, kind, exif=exif, **options)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
@pytest.mark.parametrize("orientation", [None, *ALL])
@pytest.mark.parametrize("order", ["<", ">"])
def test_orientation_is_read(kind: str, orientation: int | None, order: str) -> None:
    Image.init()
    if kind not in Image.SAVE:
        pytest.skip("this Pillow writes no AVIF")
    data = with_exif(Image.new("RGB", (8, 4)), orientation, kind, order)
    assert exif_orientation(data) == (orientation or 1)


def test_exif_after_the_pixels_is_ignored() -> None:
    turned = with_exif(noise(8, 4), 6, "JPEG")
    scan = segment(0xDA, b"\x01\x01\0\0\x3f\0")
    assert exif_orientation(turned[:2] + scan + turned[2:]) == 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_damaged_files_still_give_an_orientation(kind: str) -> None:
    data = with_exif(Image.new("RGB", (8, 4)), 6, kind)
    for stop in range(len(data)):
        assert exif_orientation(data[:stop]) in ALL

    @given(st.integers(0, len(data) - 1), st.integers(0, 255))
    def change(place: int, value: int) -> None:
        assert exif_orientation(data[:place] + bytes([value]) + data[place + 1 :]) in ALL

    change()


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
@pytest.mark.parametrize("orientation", ALL)
def test_rotation_matches_pillow(orientation: int, mode: str) -> None:
    image = noise(13, 9, mode)
    data = with_exif(image, orientation)
    upright = np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    turned = apply_orientation(np.array(image), orientation)
    np.testing.assert_array_equal(turned, upright)
    assert turned.flags.c_contiguous
    assert swaps_sides(orientation) == (turned.shape[:2] == (13, 9))
    np.testing.assert_array_equal(
        apply_orientation(turned, inverse_orientation(orientation)), np.array(image)
    )


@pytest.mark.parametrize("orientation", ALL)
def test_boxes_follow_pixels(orientation: int) -> None:
    pixels = np.zeros((8, 16), np.uint8)
    pixels[2:4, 3:8] = 1  # four different margins
    ymin, xmin, ymax, xmax = orient_box((2 / 8, 3 / 16, 4 / 8, 8 / 16), orientation)
    turned = apply_orientation(pixels, orientation)
    height, width = turned.shape
    rows, columns = np.nonzero(turned)
    assert (ymin * height, ymax * height) == (rows.min(), rows.max() + 1)
    assert (xmin * width, xmax * width) == (columns.min(), columns.max() + 1)


def test_markers_between_segments_are_skipped() -> None:
    """Fill bytes, and markers without a length."""
    data = with_exif(noise(9, 9), 6, "JPEG", progressive=True)
    for odd in (b"\xff", b"\xff\xff", b"\xff\x01", b"\xff\xd0", b"\xff\xd8"):
        for at in (2, 2 + 2 + int.from_bytes(data[4:6], "big")):  # before and behind a segment
            assert read_jpeg_info(data[:at] + odd + data[at:]) == (True, 6), odd


def test_a_header_is_not_that_of_the_image_before() -> None:
    """The last header is remembered."""
    small, large = (with_exif(noise(*size), 6, "JPEG") for size in ((9, 9), (9, 10)))
    upright = with_exif(noise(9, 9), 1, "JPEG")
    for data, expected in ((small, 6), (upright, 1), (small, 6), (large, 6), (upright, 1)):
        assert read_jpeg_info(data) == (False, expected)
        info = probe_image(data)
        with Image.open(io.BytesIO(data)) as image:
            assert (info.width, info.height) == image.size
    assert read_jpeg_info(small[: small.index(b"\xff\xc0") + 6]) == (False, 6)  # truncated
