"""The table of image formats, with files that Pillow, OpenCV and TensorFlow write."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, features

from recordsmith.checking.linting.sample_check import wrong_extension
from recordsmith.format.example import SchemaSurvey, encode_example
from recordsmith.format.wire.other_formats import detect_other_format
from recordsmith.image import (
    IMAGE_SUFFIXES,
    decode_image,
    exif_orientation,
    find_format,
    find_image_header,
    is_image,
    named_format,
    probe_image,
    read_image_header,
    starts_like_image,
    usual_name,
)
from recordsmith.image.formats import registry

HEIGHT, WIDTH = 21, 34
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
    by_pillow = [each.name for each in registry._FORMATS]
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
    header = probe_image(data)
    assert header[:3] == (name, *size)
    assert read_image_header(data) == header
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
        assert find_image_header(data) == (name, HEIGHT, WIDTH, 3, "")
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
    data = _by_pillow(name)
    foreign = detect_other_format(data)
    assert foreign is not None
    assert named_format(name).title in foreign.name
    payload = encode_example({"a": data})
    schema = SchemaSurvey()
    schema.update(payload, np.zeros(1, np.int64), np.array([len(payload)], np.int64))
    assert schema.finish().features["a"].content == "image"


def test_short_signatures_are_not_images_in_unknown_values() -> None:
    for data in (b"BM is text", b"", b"\xff", b"RIFF1234WAVE"):
        assert not starts_like_image(data)
    assert find_format(b"BM is text").name == "bmp"
    assert find_format(b"text").name == ""
