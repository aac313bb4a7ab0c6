"""EXIF orientations and rotated boxes, compared with Pillow."""

from __future__ import annotations

import io
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordsmith.image import exif_orientation

WIDTH, HEIGHT = 40, 20
BOX = (0.1, 0.2, 0.45, 0.9)  # ymin, xmin, ymax, xmax


def _image(kind: str, orientation: int | None, order: str = "<") -> bytes:
    exif = Image.Exif()
    exif.endian = order
    exif[0x010F] = "a maker, so that the tag is not the first"
    if orientation is not None:
        exif[0x0112] = orientation
    out = io.BytesIO()
    Image.new("RGB", (8, 4)).save(out, kind, exif=exif)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
@pytest.mark.parametrize("orientation", [None, *range(1, 9)])
@pytest.mark.parametrize("order", ["<", ">"])
def test_orientation_is_read(kind: str, orientation: int | None, order: str) -> None:
    if kind == "AVIF" and "AVIF" not in Image.SAVE:
        Image.init()
        if "AVIF" not in Image.SAVE:
            pytest.skip("this Pillow writes no AVIF")
    assert exif_orientation(_image(kind, orientation, order)) == (orientation or 1)


def test_exif_after_the_pixels_is_ignored(images: ModuleType) -> None:
    turned = _image("JPEG", 6)
    scan = images.segment(0xDA, b"\x01\x01\0\0\x3f\0")
    assert exif_orientation(turned[:2] + scan + turned[2:]) == 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_damaged_files_still_give_an_orientation(kind: str) -> None:
    data = _image(kind, 6)
    for stop in range(len(data)):
        assert exif_orientation(data[:stop]) in range(1, 9)

    @given(st.integers(0, len(data) - 1), st.integers(0, 255))
    def change(place: int, value: int) -> None:
        assert exif_orientation(data[:place] + bytes([value]) + data[place + 1 :]) in range(1, 9)

    change()
