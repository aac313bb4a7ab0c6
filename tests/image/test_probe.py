"""Format and size from headers compared with Pillow, and detection of truncation."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image, features

from recordsmith.image import (
    IMAGE_SUFFIXES,
    ImageHeader,
    find_image_header,
    is_image,
    probe_image,
)
from recordsmith.support.errors import CorruptDataError, Defect


def test_odd_images_match_pillow(images: ModuleType) -> None:
    for name, data in images.odd().items():
        header = probe_image(data)
        assert header[:3] == images.size_by_pillow(data), name
        assert header == find_image_header(memoryview(data)), name
        with Image.open(io.BytesIO(data)) as image:
            assert header.channels == (3 if image.mode == "P" else len(image.getbands())), name
        assert is_image(io.BytesIO(data)), name


CUT = [
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("JPEG", {"restart_marker_blocks": 1}),
    ("PNG", {}),
    ("GIF", {}),
    ("BMP", {}),
    ("TIFF", {}),
    ("TIFF", {"compression": "tiff_lzw"}),
    ("WEBP", {}),
    ("PPM", {}),
    pytest.param("AVIF", {}, marks=pytest.mark.skipif(not features.check("avif"), reason="AVIF")),
]


@pytest.mark.parametrize(("kind", "options"), CUT, ids=str)
def test_truncated_images_are_rejected(
    images: ModuleType, kind: str, options: dict[str, Any]
) -> None:
    """At every length at which Pillow cannot decode all pixels."""
    data = images.encode(images.noise(20, 16), kind, **options)
    accepted = [stop for stop in range(len(data)) if _probed(data[:stop]) is not None]
    wrong = [stop for stop in accepted if not images.opens_whole(data[:stop])]
    assert wrong == []


def test_thumbnail_does_not_hide_truncation(images: ModuleType) -> None:
    """The thumbnail has an end mark of its own."""
    data = images.odd()["jpeg with a thumbnail"]
    for stop in range(len(data) - 40, len(data) - 2):
        with pytest.raises(CorruptDataError):
            probe_image(data[:stop])


def test_jpeg_without_end_mark_but_with_all_pixels_is_accepted(images: ModuleType) -> None:
    data = images.jpeg()
    assert data.endswith(b"\xff\xd9")
    if images.opens_whole(data[:-2]):
        assert probe_image(data[:-2])[:3] == images.size_by_pillow(data)
    else:
        with pytest.raises(CorruptDataError):
            probe_image(data[:-2])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"\xff\xd8",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xe0\0\0\0\0" * 4,
        b"\xff\xd8\xff" + b"\xff" * 100,
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(8) + b"\x08\x02\0\0\0" + bytes(4) + b"IEND",
        b"GIF89a",
        b"BM",
        b"words, not an image",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        bytes(1000),
    ],
)
def test_other_bytes_are_rejected(data: bytes) -> None:
    with pytest.raises(CorruptDataError) as caught:
        probe_image(data)
    assert caught.value.defect is Defect.UNREADABLE_IMAGE
    assert caught.value.detail


@given(
    data=st.binary(max_size=300),
    head=st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"]),
)
@example(data=b"\xff\xc0\0\0\0", head=b"\xff\xd8")
def test_any_bytes_are_an_image_or_raise_a_defect(data: bytes, head: bytes) -> None:
    info = _probed(head + data)
    if info is not None:
        assert info.height > 0
        assert info.width > 0


def _probed(data: bytes) -> ImageHeader | None:
    """None if CorruptDataError is raised; any other exception passes."""
    try:
        return probe_image(data)
    except CorruptDataError as error:
        if error.defect is not Defect.UNREADABLE_IMAGE:
            raise
    return None


def test_is_image_reads_little(images: ModuleType) -> None:
    file = io.BytesIO(images.jpeg(width=100, height=100))
    assert is_image(file)
    assert file.tell() <= 4096
    for data in (b"", b"x", b"words about images", b"{}", bytes(100)):
        assert not is_image(io.BytesIO(data))


CAMERA_AND_VECTOR_SUFFIXES = {".cr2", ".dng", ".exr", ".heic", ".heif", ".jxl", ".nef", ".svg"}


def test_suffixes_cover_pillow_formats() -> None:
    Image.init()
    assert {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff"} <= IMAGE_SUFFIXES
    for suffix in IMAGE_SUFFIXES:
        assert suffix == suffix.lower()
        is_known = suffix in Image.registered_extensions()
        assert is_known or suffix in CAMERA_AND_VECTOR_SUFFIXES, suffix


def test_headers_of_truncated_images(images: ModuleType) -> None:
    """Only an intact header is needed."""
    for kind in ("JPEG", "PNG", "GIF"):
        data = images.encode(images.noise(20, 16), kind)
        assert find_image_header(data[: len(data) * 3 // 4]) == (kind.lower(), 16, 20, 3, "")
        assert find_image_header(data[:11]) is None
    assert find_image_header(b"") is None
    assert find_image_header(b"\xff\xd8\xff" + bytes(30)) is None


@pytest.mark.parametrize(
    ("kind", "frames", "mode", "variant"),
    [
        ("GIF", 1, "RGB", ""),
        ("GIF", 2, "RGB", "animated"),
        ("WEBP", 1, "RGB", ""),
        ("WEBP", 2, "RGB", "animated"),
        ("TIFF", 2, "RGB", ""),
        ("PNG", 1, "I;16", "16-bit"),
        ("PNG", 1, "RGBA", ""),
        ("JPEG", 1, "CMYK", ""),
    ],
)
def test_variants(images: ModuleType, kind: str, frames: int, mode: str, variant: str) -> None:
    first, *others = [images.noise(20, 16, mode, seed) for seed in range(frames)]
    options = {"save_all": True, "append_images": others} if others else {}
    header = find_image_header(images.encode(first, kind, **options))
    assert header is not None
    assert (header.format, header.variant) == (kind.lower(), variant)
