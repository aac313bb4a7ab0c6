"""Lossless rewriting keeps pixels and metadata, compared with Pillow, OpenCV and TensorFlow."""

from __future__ import annotations

import io
import sys
from types import ModuleType

import cv2
import numpy as np
import pytest
from PIL import Image

from recordsmith.image import ImageOptions, store_image
from recordsmith.image.storing.store import NOT_REWRITTEN, SHRUNK, TO_BASELINE
from recordsmith.jpeg import all_segments, is_progressive
from recordsmith.support.errors import MissingExtraError

BASELINE = ImageOptions(baseline=True)
SHRINK = ImageOptions(shrink=True)
BOTH = ImageOptions(shrink=True, baseline=True)


@pytest.fixture(autouse=True)
def _extra() -> None:
    for package in ("jpeglib", "mozjpeg_lossless_optimization", "oxipng"):
        pytest.importorskip(package)


def _pixels(data: bytes) -> list[np.ndarray]:
    encoded = np.frombuffer(data, np.uint8)
    with Image.open(io.BytesIO(data)) as image:
        mode = image.mode
        by_pillow = np.array(image)
    flags = cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION
    return [by_pillow, cv2.imdecode(encoded, flags), np.array(list(mode.encode()))]


def assert_same(first: bytes, second: bytes) -> None:
    for one, other in zip(_pixels(first), _pixels(second), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def jpegs(images: ModuleType) -> dict[str, bytes]:
    """Progressive JPEGs of every kind."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "words"
    encoded = {}
    for size in ((64, 48), (13, 9), (1, 1), (17, 33)):
        for mode in ("RGB", "L", "CMYK"):
            for name, options in {
                "plain": {},
                "full chroma": {"subsampling": 0},
                "half chroma": {"subsampling": 1},
                "poor": {"quality": 5},
                "words": {"exif": exif, "icc_profile": bytes(range(256)) * 700, "comment": b"hm"},
                "restarts": {"restart_marker_blocks": 1},
            }.items():
                image = images.noise(*size, mode)
                data = images.encode(image, "JPEG", progressive=True, **options)
                encoded[f"{name} {mode} {size}"] = data
    rgb = images.encode(images.noise(20, 30), "JPEG", progressive=True, keep_rgb=True)
    adobe = next(part for part in all_segments(rgb)[0] if part.marker == 0xEE)
    encoded["rgb"] = rgb
    encoded["rgb by the names of its components"] = rgb[: adobe.start] + rgb[adobe.stop :]
    encoded["more words than jpeglib holds"] = rgb[:2] + images.segment(0xFE, b"hm") * 60 + rgb[2:]
    return encoded


def _words(data: bytes) -> list[bytes]:
    return [
        data[part.start : part.stop]
        for part in all_segments(data)[0]
        if 0xE0 <= part.marker <= 0xEF or part.marker == 0xFE
    ]


def test_progressive_becomes_baseline(images: ModuleType) -> None:
    for name, data in jpegs(images).items():
        assert is_progressive(data), name
        stored = store_image(data, BASELINE)
        assert stored.changes == (TO_BASELINE,), name
        assert not is_progressive(stored.data)
        assert_same(data, stored.data)
        assert _words(stored.data) == _words(data), name
        assert (stored.height, stored.width) == Image.open(io.BytesIO(data)).size[::-1]


def test_optimal_tables(images: ModuleType) -> None:
    """Smaller than with the standard tables, which Pillow writes by default."""
    image = images.smooth(64, 48)
    data = images.encode(image, "JPEG", progressive=True)
    standard = images.encode(image, "JPEG")
    assert len(store_image(data, BASELINE).data) < len(standard)


def test_baseline_jpegs_are_kept_without_shrink(images: ModuleType) -> None:
    data = images.jpeg(width=64, height=48)
    assert store_image(data, BASELINE).data is data
    stored = store_image(data, BOTH)
    assert stored.changes == (SHRUNK,)
    assert len(stored.data) < len(data)
    assert not is_progressive(stored.data)
    assert_same(data, stored.data)
    assert store_image(stored.data, BOTH).data == stored.data


def test_odd_images_shrink_losslessly(images: ModuleType) -> None:
    for name, data in (images.odd() | jpegs(images)).items():
        for options in (SHRINK, BASELINE, BOTH):
            stored = store_image(data, options)
            if options is SHRINK or not is_progressive(data):
                assert len(stored.data) <= len(data), name
            if stored.data == data:
                assert stored.changes in ((), (NOT_REWRITTEN,)), name
                continue
            assert_same(data, stored.data)
            if data[:2] == b"\xff\xd8":
                assert _words(stored.data) == _words(data), name


def test_png_keeps_colour_type_bits_and_text(images: ModuleType) -> None:
    """Readers depend on them, so a grey image in RGB stays RGB, and 0 and 255 keep 8 bits."""
    ramp = images.smooth(80, 60, "L")
    grey_as_rgb = images.encode(ramp.convert("RGB"), "PNG", compress_level=1)
    two_levels = images.encode(ramp.point(lambda v: 255 * (v > 99)), "PNG", compress_level=1)
    opaque = images.encode(ramp.convert("RGBA"), "PNG", compress_level=1)
    wide = Image.frombytes("I;16", (80, 60), bytes(2 * 80 * 60))
    palette = images.encode(ramp.convert("P"), "PNG", compress_level=1)
    for data in (grey_as_rgb, two_levels, opaque, palette, images.encode(wide, "PNG")):
        stored = store_image(data, SHRINK)
        assert stored.data[24:26] == data[24:26]  # bits, colour type
        assert_same(data, stored.data)
    assert len(store_image(grey_as_rgb, SHRINK).data) < len(grey_as_rgb)
    profiled = images.encode(ramp, "PNG", icc_profile=b"p" * 500, compress_level=1)
    stored = store_image(profiled, SHRINK)
    assert Image.open(io.BytesIO(stored.data)).info["icc_profile"] == b"p" * 500


@pytest.mark.parametrize("options", [BASELINE, SHRINK, BOTH])
def test_images_that_cannot_be_rewritten_are_kept_and_reported(
    images: ModuleType, options: ImageOptions
) -> None:
    data = images.encode(images.noise(40, 30), "JPEG", progressive=True)
    second = data + data  # such as an image for the other eye
    first_scan = next(part for part in all_segments(data)[0] if part.marker == 0xDA)
    place = next(part.start for part in all_segments(data)[0] if part.start > first_scan.stop)
    between = data[:place] + images.segment(0xFE, b"words") + data[place:]
    for odd in (second, between):
        stored = store_image(odd, options)
        assert stored.data is odd
        assert stored.changes == (NOT_REWRITTEN,)
    padded = store_image(data + bytes(7), options)
    assert padded.changes != (NOT_REWRITTEN,)
    assert_same(data, padded.data)


def test_missing_packages_are_named(images: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    progressive = images.odd()["progressive jpeg"]
    for module, options, data, package in [
        ("jpeglib", BASELINE, progressive, "jpeglib"),
        ("mozjpeg_lossless_optimization", SHRINK, progressive, "mozjpeg-lossless-optimization"),
        ("oxipng", SHRINK, images.odd()["png"], "pyoxipng"),
    ]:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError) as caught:
            store_image(data, options)
        assert (caught.value.extra, caught.value.package) == ("shrink", package)
        assert store_image(images.odd()["gif"], options).changes == ()


def test_damaged_jpegs_keep_their_pixels(images: ModuleType) -> None:
    data = images.encode(images.noise(24, 16), "JPEG", progressive=True)
    flags = cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION
    for place in range(30, len(data) - 2, 31):
        damaged = bytearray(data)
        damaged[place] ^= 0x55
        try:
            stored = store_image(bytes(damaged), BASELINE)
        except ValueError:
            continue
        if stored.changes == (TO_BASELINE,):
            before, after = (
                cv2.imdecode(np.frombuffer(one, np.uint8), flags)
                for one in (bytes(damaged), stored.data)
            )
            np.testing.assert_array_equal(before, after)
