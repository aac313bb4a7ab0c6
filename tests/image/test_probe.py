"""Format and size from the header: as Pillow says, for every odd picture; cut ones are refused."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.image import (
    PICTURE_SUFFIXES,
    ImageInfo,
    channel_count,
    is_picture,
    probe_image,
    read_picture_header,
)


def test_odd_pictures_are_what_pillow_says(pictures: ModuleType) -> None:
    for name, data in pictures.odd().items():
        assert tuple(probe_image(data)) == pictures.size_by_pillow(data), name
        assert is_picture(io.BytesIO(data)), name


@pytest.mark.parametrize("size", [(1, 1), (300, 2), (2, 300), (256, 65), (1000, 1)])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF"])
def test_height_and_width_are_not_mixed_up(
    pictures: ModuleType, kind: str, size: tuple[int, int]
) -> None:
    info = probe_image(pictures.encode(Image.new("RGB", size), kind))
    assert (info.format, info.width, info.height) == (kind.lower(), *size)


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
]


@pytest.mark.parametrize(("kind", "options"), CUT, ids=str)
def test_pictures_that_are_cut_off_are_refused(
    pictures: ModuleType, kind: str, options: dict[str, Any]
) -> None:
    """Wherever Pillow does not get all pixels."""
    data = pictures.encode(pictures.noise(20, 16), kind, **options)
    accepted = [stop for stop in range(len(data)) if _probed(data[:stop]) is not None]
    wrong = [stop for stop in accepted if not pictures.opens_whole(data[:stop])]
    assert wrong == []


def test_thumbnail_does_not_hide_a_cut(pictures: ModuleType) -> None:
    """The end mark of the thumbnail is not that of the picture."""
    data = pictures.odd()["jpeg with a thumbnail"]
    for stop in range(len(data) - 40, len(data) - 2):
        with pytest.raises(CorruptDataError):
            probe_image(data[:stop])


def test_jpeg_without_its_end_mark_but_with_all_pixels_is_a_picture(pictures: ModuleType) -> None:
    data = pictures.jpeg()
    assert data.endswith(b"\xff\xd9")
    if pictures.opens_whole(data[:-2]):
        assert tuple(probe_image(data[:-2])) == pictures.size_by_pillow(data)
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
        b"words, not a picture",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        bytes(1000),
    ],
)
def test_what_is_no_picture(data: bytes) -> None:
    with pytest.raises(CorruptDataError) as caught:
        probe_image(data)
    assert caught.value.defect is Defect.UNREADABLE_IMAGE
    assert caught.value.detail


@given(
    data=st.binary(max_size=300),
    head=st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"]),
)
@example(data=b"\xff\xc0\0\0\0", head=b"\xff\xd8")
def test_any_bytes_are_a_picture_or_a_named_defect(data: bytes, head: bytes) -> None:
    info = _probed(head + data)
    if info is not None:
        assert info.height > 0
        assert info.width > 0


def _probed(data: bytes) -> ImageInfo | None:
    """None for what is refused as it should be; any other exception passes."""
    try:
        return probe_image(data)
    except CorruptDataError as error:
        if error.defect is not Defect.UNREADABLE_IMAGE:
            raise
    return None


def test_flipped_headers_are_a_picture_or_a_named_defect(pictures: ModuleType) -> None:
    for data in (pictures.jpeg(), pictures.encode(pictures.noise(4, 4), "PNG")):
        for place in range(min(len(data), 300)):
            damaged = bytearray(data)
            damaged[place] ^= 0xFF
            info = _probed(bytes(damaged))
            assert info is None or info.height > 0


def test_is_picture_reads_little(pictures: ModuleType) -> None:
    file = io.BytesIO(pictures.jpeg(width=100, height=100))
    assert is_picture(file)
    assert file.tell() <= 4096
    for data in (b"", b"x", b"words about pictures", b"{}", bytes(100)):
        assert not is_picture(io.BytesIO(data))


CAMERA_AND_VECTOR_SUFFIXES = {".cr2", ".dng", ".exr", ".heic", ".heif", ".jxl", ".nef", ".svg"}


def test_suffixes_are_of_the_formats_that_pillow_knows() -> None:
    Image.init()
    assert {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff"} <= PICTURE_SUFFIXES
    for suffix in PICTURE_SUFFIXES:
        assert suffix == suffix.lower()
        is_known = suffix in Image.registered_extensions()
        assert is_known or suffix in CAMERA_AND_VECTOR_SUFFIXES, suffix


def test_headers_alone_say_what_the_whole_picture_says(pictures: ModuleType) -> None:
    for name, data in pictures.odd().items():
        expected = (*probe_image(data), channel_count(data))
        assert read_picture_header(data) == expected, name
        assert read_picture_header(memoryview(data)) == expected, name


def test_headers_of_pictures_that_were_cut_off(pictures: ModuleType) -> None:
    """The rest of a picture is not asked for; what has no header that is whole has none."""
    for kind in ("JPEG", "PNG", "GIF"):
        data = pictures.encode(pictures.noise(20, 16), kind)
        assert read_picture_header(data[: len(data) * 3 // 4]) == (kind.lower(), 16, 20, 3)
        assert read_picture_header(data[:11]) is None
    assert read_picture_header(b"") is None
    assert read_picture_header(b"\xff\xd8\xff" + bytes(30)) is None


@given(st.binary(max_size=80), st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a"]))
def test_headers_of_anything(data: bytes, start: bytes) -> None:
    header = read_picture_header(start + data)
    assert header is None or (header.height > 0 and header.width > 0)
