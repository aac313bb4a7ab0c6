"""Pillow decodes JPEG where simplejpeg is missing: how its pixels differ, and what it refuses.

The tests with the fixture `each_jpeg_decoder` compare damage, parts and scaled decoding.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.image import decode_pixels, jpeg_decoder, read_image_header
from recordsmith.image.decoding import jpeg_pixels
from recordsmith.image.decoding.jpeg_by_pillow import decode_by_pillow
from recordsmith.support.errors import CorruptDataError, OptionError

from ..images import encode, noise, sampled_jpeg
from ..raising import raises

LUMA = {"4:4:4": (1, 1), "4:2:2": (2, 1), "4:2:0": (2, 2), "4:4:0": (1, 2), "4:1:1": (4, 1)}
INTERPOLATED = {"4:2:2", "4:2:0", "4:4:0"}
LEVELS = 5  # of these images; docs/reference/pythons.md has the difference of photographs


@pytest.fixture
def simplejpeg() -> Any:
    return pytest.importorskip("simplejpeg")


def _difference(data: bytes, monkeypatch: pytest.MonkeyPatch, **options: Any) -> int:
    """The largest difference of a pixel between both decoders."""
    head = read_image_header(data)
    expected = decode_pixels(data, head, **options)
    with monkeypatch.context() as context:
        context.setattr(jpeg_pixels, "_find_simplejpeg", lambda: None)
        pixels = decode_pixels(data, head, **options)
    assert (pixels.shape, pixels.dtype) == (expected.shape, expected.dtype)
    assert pixels.flags.c_contiguous
    assert pixels.flags.writeable
    return int(np.abs(pixels.astype(int) - expected).max())


@pytest.mark.parametrize("divisor", [1, 2, 4, 8])
@pytest.mark.parametrize("name", LUMA)
def test_only_interpolated_colours_of_whole_images_differ(
    simplejpeg: Any, monkeypatch: pytest.MonkeyPatch, name: str, divisor: int
) -> None:
    data = sampled_jpeg(83, 122, [LUMA[name], (1, 1), (1, 1)], seed=3)
    assert _difference(data, monkeypatch, channels=1, divisor=divisor) == 0
    difference = _difference(data, monkeypatch, divisor=divisor)
    if name in INTERPOLATED and divisor == 1:
        assert 0 < difference <= LEVELS
    else:
        assert difference == 0


def test_grey_cmyk_and_progressive_files(
    simplejpeg: Any, images: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("grey jpeg", "cmyk jpeg"):
        for divisor in (1, 2):
            assert _difference(images.odd()[name], monkeypatch, divisor=divisor) == 0
    for subsampling, most in ((0, 0), (2, LEVELS)):
        data = encode(noise(90, 70), "JPEG", progressive=True, subsampling=subsampling)
        assert _difference(data, monkeypatch) <= most


def test_without_simplejpeg_pillow_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    find = jpeg_pixels._find_simplejpeg
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    monkeypatch.delitem(vars(sys.modules["recordsmith.support.libraries"]), "simplejpeg", False)
    find.cache_clear()
    try:
        assert jpeg_decoder() == "Pillow"
    finally:
        find.cache_clear()


def test_truncated_files_are_refused_whatever_pillow_is_told(
    pillow_decodes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training programs often set `LOAD_TRUNCATED_IMAGES`, by which Pillow fills up with grey."""
    from PIL import ImageFile

    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    data = encode(noise(60, 50), "JPEG")
    cut_in_metadata = data[:-2] + b"\xff\xe1\x10\0abc"  # all rows are there, but not the end
    for file in (data[: len(data) // 2], data[:-2], cut_in_metadata):
        with raises(CorruptDataError, defect="unreadable-image"):
            decode_by_pillow(file, is_grey=False, divisor=1)


def test_large_images_need_memory_for_two_copies(
    pillow_decodes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("recordsmith.image.decoding.jpeg_by_pillow.reserve_more", asked.append)
    data = encode(noise(40, 30), "JPEG")
    decode_pixels(data, read_image_header(data))
    decode_pixels(data, read_image_header(data), divisor=2)
    assert asked == [(3 + 4) * 1200, (3 + 4) * 1200 // 4]


def test_exact_pixels_need_simplejpeg(pillow_decodes: None) -> None:
    rs.Image(size=8)
    rs.Image(size=8, exact=True, raw_shape=(4, 4, 3))  # is not decoded
    with raises(OptionError, option="exact", value=True, match="install simplejpeg"):
        rs.Image(size=8, exact=True)
