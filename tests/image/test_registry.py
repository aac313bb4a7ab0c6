"""The table of image formats, with files that Pillow, OpenCV, TensorFlow and libjxl write."""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, features

import recordsmith as rs
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import SchemaSurvey, encode_example
from recordsmith.image import (
    IMAGE_SUFFIXES,
    ImageOptions,
    channel_count,
    decode_image,
    exif_orientation,
    find_format,
    is_image,
    named_format,
    probe_image,
    probe_mask,
    read_image_header,
    starts_like_image,
    store_image,
    usual_name,
)
from recordsmith.image.decoding.pixels import read_image_head
from recordsmith.image.formats import jxl, registry
from recordsmith.linting.sample_check import wrong_extension
from recordsmith.wire.other_formats import detect_other_format

from ..raising import raises

HEIGHT, WIDTH = 21, 34
ONE_COLOUR = (10, 200, 30)
CODESTREAM = bytes.fromhex(  # libjxl: lossless, WIDTH x HEIGHT in ONE_COLOUR
    "ff0aa000428048080001005c004b188b1500d48831c6ff187f0265eb06b8dc09d2388203"
)
CONTAINER = (
    jxl.CONTAINER
    + b"\0\0\0\x14ftypjxl \0\0\0\0jxl "
    + (len(CODESTREAM) + 8).to_bytes(4, "big")
    + b"jxlc"
    + CODESTREAM
)
LOSSLESS = ("png", "gif", "bmp", "webp", "tiff", "ppm", "jpeg2000", "pcx", "tga")
HAS_AVIF = features.check("avif")


def _pixels(channels: int = 3) -> npt.NDArray[np.uint8]:
    """A smooth image: few enough colours for GIF."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    steps = (rows // 3 * 30, columns // 5 * 30, rows // 3 * 10 + columns // 5 * 20)
    return np.stack(steps, axis=2).astype(np.uint8)[:, :, :channels]


def _by_pillow(name: str) -> bytes:
    options: dict[str, Any] = {"webp": {"lossless": True}, "avif": {"quality": 100}}.get(name, {})
    image = Image.fromarray(_pixels())
    out = io.BytesIO()
    if name == "ico":
        options = {"sizes": [image.size]}
    image.save(out, name, **options)
    return out.getvalue()


def _by_opencv(name: str) -> bytes:
    suffix = named_format(name).suffixes[0]
    flags = [cv2.IMWRITE_WEBP_QUALITY, 101] if name == "webp" else []
    encoded = cv2.imencode(suffix, _pixels()[:, :, ::-1], flags)[1]
    return encoded.tobytes()


def _written() -> list[tuple[str, Callable[[str], bytes]]]:
    by_pillow = [each.name for each in registry._FORMATS if each.name != "jxl"]
    by_opencv = ["jpeg", "png", "bmp", "webp", "tiff", "ppm"]
    return [(name, _by_pillow) for name in by_pillow] + [(name, _by_opencv) for name in by_opencv]


@pytest.mark.parametrize(("name", "write"), _written())
def test_files_are_recognised_and_decoded(name: str, write: Callable[[str], bytes]) -> None:
    if name == "avif" and not HAS_AVIF:
        pytest.skip("this Pillow writes no AVIF")
    data = write(name)
    size = (1024, 1024) if name == "icns" else (HEIGHT, WIDTH)  # Pillow writes several sizes
    known = find_format(data)
    assert known.name == (name if named_format(name).signature else "")
    assert starts_like_image(data) == bool(named_format(name).signature)
    assert probe_image(data) == (name, *size)
    assert read_image_head(data)[:3] == (name, *size)
    header = read_image_header(data)
    assert header is not None
    assert header[:3] == (name, *size)
    assert header.channels == channel_count(data)
    assert is_image(io.BytesIO(data))
    assert exif_orientation(data) == 1
    pixels = decode_image(data)
    assert pixels.shape == (*size, 3)
    if name in LOSSLESS:
        assert np.array_equal(pixels, _pixels())
    else:
        with Image.open(io.BytesIO(data)) as image:
            expected = np.array(image.convert("RGB"), np.int64)
        assert np.abs(pixels - expected).max() <= (6 if name == "jpeg" else 0)


def test_files_of_tensorflow_are_recognised(tf: Any) -> None:
    for name, encode in (("jpeg", tf.io.encode_jpeg), ("png", tf.io.encode_png)):
        data = encode(_pixels()).numpy()
        assert find_format(data).name == name
        assert read_image_header(data) == (name, HEIGHT, WIDTH, 3, "")
        assert np.array_equal(decode_image(data), tf.io.decode_image(data).numpy())


def test_names_and_suffixes_are_unique() -> None:
    names = [each.name for each in registry._FORMATS]
    suffixes = [suffix for each in registry._FORMATS for suffix in each.suffixes]
    assert len(set(names)) == len(names)
    assert len(set(suffixes)) == len(suffixes)
    assert IMAGE_SUFFIXES.issuperset(suffixes)
    for each in registry._FORMATS:
        assert each.title
        for suffix in each.suffixes:
            assert usual_name(suffix[1:]) == each.name
            assert wrong_extension(f"a{suffix}", each.name) is None
    assert wrong_extension("a.jpg", "avif") is not None


SIGNED = [each.name for each in registry._FORMATS if each.signature]


@pytest.mark.parametrize("name", SIGNED)
def test_other_places_know_the_same_signatures(name: str) -> None:
    """The kernel and the detection of files that are not TFRecord cannot ask the table."""
    if name == "avif" and not HAS_AVIF:
        pytest.skip("this Pillow writes no AVIF")
    data = CONTAINER if name == "jxl" else _by_pillow(name)
    foreign = detect_other_format(data)
    assert foreign is not None
    assert named_format(name).title in foreign.name
    payload = encode_example({"a": data})
    schema = SchemaSurvey()
    schema.update(payload, np.zeros(1, np.int64), np.array([len(payload)], np.int64))
    assert schema.finish().features["a"].content == "image"


def test_short_signatures_are_not_images_in_unknown_values() -> None:
    for data in (b"BM is text", CODESTREAM, b"", b"\xff", b"RIFF1234WAVE"):
        assert not starts_like_image(data)
    assert find_format(b"BM is text").name == "bmp"
    assert find_format(CODESTREAM).name == "jxl"
    assert find_format(b"text").name == ""


@given(st.binary(max_size=40), st.sampled_from(["", *SIGNED]))
def test_any_bytes_have_a_header_or_none(data: bytes, name: str) -> None:
    starts = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n", "bmp": b"BM", "jxl": b"\xff\n"}
    data = starts.get(name, b"") + data
    for given_ in (data, memoryview(data)):
        known = find_format(given_)
        header = known.read_header(given_)
        assert known.name == name or not name or name not in starts
        assert header is None or header.height * header.width >= 0


# JPEG XL


def _jxl_header(height: int, width: int, *, orientation: int = 1) -> bytes:
    """A codestream with sides of 30 bits (ISO/IEC 18181-1, D.2 and D.3)."""
    fields = [(0, 1), (3, 2), (height - 1, 30), (0, 3), (3, 2), (width - 1, 30)]
    fields += [(0, 1), (1, 1), (orientation - 1, 3)]
    bits = at = 0
    for value, count in fields:
        bits |= value << at
        at += count
    return jxl.CODESTREAM + bits.to_bytes(-(-at // 8), "little") + bytes(64)


@pytest.mark.parametrize("data", [CODESTREAM, CONTAINER], ids=["codestream", "container"])
def test_jxl_headers_are_read_without_a_plugin(data: bytes) -> None:
    assert jxl.read_header(data) == (HEIGHT, WIDTH, 1, 0)
    assert find_format(data).name == "jxl"
    assert read_image_head(data) == ("jxl", HEIGHT, WIDTH, 0)
    stop = data.index(CODESTREAM) + 5
    assert jxl.read_header(data[:stop]) is None


@given(st.integers(1, 1 << 30), st.integers(1, 1 << 30), st.integers(1, 8))
def test_jxl_orientation_is_applied(height: int, width: int, orientation: int) -> None:
    data = _jxl_header(height, width, orientation=orientation)
    shown = (height, width) if orientation < 5 else (width, height)
    assert jxl.read_header(data) == (*shown, 1, 0)
    assert exif_orientation(data) == 1


def test_jxl_of_a_jpeg_keeps_its_orientation() -> None:
    part = b"\0\0\0\0" + _jxl_header(5, 7, orientation=6)
    boxes = [(b"jxlp", part), (b"jbrd", b"x" * 9)]
    data = jxl.CONTAINER + b"".join(
        struct.pack(">I4s", len(body) + 8, name) + body for name, body in boxes
    )
    assert jxl.read_header(data) == (5, 7, 6, 0)
    assert exif_orientation(data) == 6


@pytest.fixture
def no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_jxl", None)


@pytest.mark.usefixtures("no_plugin")
@pytest.mark.parametrize(
    "job",
    [probe_image, decode_image, probe_mask, lambda data: store_image(data, ImageOptions("png"))],
)
def test_the_error_names_the_missing_plugin(job: Callable[[bytes], Any]) -> None:
    with pytest.raises(CorruptDataError) as caught:
        job(CODESTREAM)
    assert caught.value.defect is Defect.UNREADABLE_IMAGE
    assert "pillow-jxl-plugin" in caught.value.remedy
    assert not is_image(io.BytesIO(CODESTREAM))
    assert read_image_header(CODESTREAM) is None


def test_a_hostile_jxl_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_jxl", io)  # a plugin that adds nothing
    for data in (_jxl_header(1 << 30, 1 << 30), _jxl_header(13_378, 13_378)):
        for job in (probe_image, decode_image, probe_mask):
            with raises(CorruptDataError, defect=Defect.UNREADABLE_IMAGE, match="13,378|1,073"):
                job(data)
    with raises(CorruptDataError, match="starts like a JPEG XL"):
        probe_image(CODESTREAM[:3])


def _faults(folder: Path) -> set[str]:
    findings = rs.lint(rs.ImageFolder(folder)).findings
    return {each.check.value for each in findings if each.severity.value != "note"}


def test_jxl_is_packed_decoded_and_linted(tmp_path: Path) -> None:
    plugin = pytest.importorskip("pillow_jxl")
    assert plugin
    for name, data in (("a", CODESTREAM), ("b", CONTAINER)):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / f"{name}.jxl").write_bytes(data)
        assert probe_image(data) == ("jxl", HEIGHT, WIDTH)
        assert read_image_header(data) == ("jxl", HEIGHT, WIDTH, 3, "")
        assert (decode_image(data) == ONE_COLOUR).all()
        for stop in range(len(data)):
            with raises(CorruptDataError, defect=Defect.UNREADABLE_IMAGE):
                probe_image(data[:stop])
    assert _faults(tmp_path / "in") == {"identical-images", "conflicting-labels"}
    rs.pack(rs.ImageFolder(tmp_path / "in"), tmp_path / "out")
    records = rs.open(tmp_path / "out")
    assert [record["image/format"] for record in records] == [[b"jxl"], [b"jxl"]]
    batch = next(iter(rs.Loader(records, {"image": rs.Image(size=8)}, batch_size=2)))
    assert (batch["image"] == ONE_COLOUR).all()


def test_avif_is_packed_and_linted(tmp_path: Path) -> None:
    if not HAS_AVIF:
        pytest.skip("this Pillow reads no AVIF")
    data = _by_pillow("avif")
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "in" / "a" / "1.avif").write_bytes(data)
    assert _faults(tmp_path / "in") == set()
    (tmp_path / "in" / "a" / "2.jpg").write_bytes(data)
    assert _faults(tmp_path / "in") == {"wrong-extension", "identical-images"}
    (tmp_path / "in" / "a" / "2.jpg").unlink()
    rs.pack(rs.ImageFolder(tmp_path / "in"), tmp_path / "out")
    (record,) = rs.open(tmp_path / "out")
    assert record["image/encoded"] == [data]
    assert record["image/format"] == [b"avif"]
    for stop in range(0, len(data), 7):  # Pillow opens some of these
        with raises(CorruptDataError, defect=Defect.UNREADABLE_IMAGE):
            probe_image(data[:stop])
