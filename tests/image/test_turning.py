"""Applying EXIF orientations to pixels and boxes, compared with Pillow."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from recordsmith.image import (
    apply_orientation,
    exif_orientation,
    inverse_orientation,
    is_progressive,
    orient_box,
    probe_image,
    read_jpeg_info,
    swaps_sides,
)

ALL = range(1, 9)


def with_exif(image: Image.Image, orientation: int, kind: str = "PNG", **options: Any) -> bytes:
    exif = Image.Exif()
    exif[0x010E] = "words before"
    exif[0x0112] = orientation
    out = io.BytesIO()
    image.save(out, kind, exif=exif, **options)
    return out.getvalue()


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
@pytest.mark.parametrize("orientation", ALL)
def test_rotation_matches_pillow(images: ModuleType, orientation: int, mode: str) -> None:
    image = images.noise(13, 9, mode)
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


def test_markers_between_segments_are_skipped(images: ModuleType) -> None:
    """Fill bytes, and markers without a length."""
    data = with_exif(images.noise(9, 9), 6, "JPEG", progressive=True)
    for odd in (b"\xff", b"\xff\xff", b"\xff\x01", b"\xff\xd0", b"\xff\xd8"):
        for at in (2, 2 + 2 + int.from_bytes(data[4:6], "big")):  # before and behind a segment
            assert read_jpeg_info(data[:at] + odd + data[at:]) == (True, 6), odd


def test_look_at_jpeg_matches_the_separate_functions(images: ModuleType) -> None:
    opened = dict(images.odd())
    for orientation in ALL:
        for progressive in (False, True):
            data = with_exif(images.noise(9, 9), orientation, "JPEG", progressive=progressive)
            assert read_jpeg_info(data) == (progressive, orientation)
            opened[f"{orientation} {progressive}"] = data
    for name, data in opened.items():
        if data[:2] != b"\xff\xd8":
            assert read_jpeg_info(data) == (False, 1)
            continue
        assert read_jpeg_info(data) == (is_progressive(data), exif_orientation(data)), name
        for place in range(2, min(700, len(data))):
            damaged = bytearray(data)
            damaged[place] ^= 0xFF
            is_one, orientation = read_jpeg_info(bytes(damaged))
            assert isinstance(is_one, bool)
            assert orientation in ALL


def test_a_header_is_not_that_of_the_image_before(images: ModuleType) -> None:
    """The last header is remembered."""
    small, large = (with_exif(images.noise(*size), 6, "JPEG") for size in ((9, 9), (9, 10)))
    upright = with_exif(images.noise(9, 9), 1, "JPEG")
    for data, expected in ((small, 6), (upright, 1), (small, 6), (large, 6), (upright, 1)):
        assert read_jpeg_info(data) == (False, expected)
        info = probe_image(data)
        with Image.open(io.BytesIO(data)) as image:
            assert (info.width, info.height) == image.size
    assert read_jpeg_info(small[: small.index(b"\xff\xc0") + 6]) == (False, 6)  # truncated


def test_damaged_exif_gives_an_orientation_or_none(images: ModuleType) -> None:
    data = images.odd()["rotated jpeg"]
    for place in range(2, 120):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        assert exif_orientation(bytes(damaged)) in ALL
        assert exif_orientation(data[:place]) in ALL
