"""The finding on image formats: made for each of them, and true of TensorFlow."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

import recordsmith as rs


def drawn(images: ModuleType) -> dict[str, bytes]:
    """An image of each format, named as in the statistics."""
    one, other = images.noise(20, 16), images.noise(20, 16, "RGB", 1)
    animated = {"save_all": True, "append_images": [other]}
    deep = Image.fromarray(np.arange(320, dtype=np.uint16).reshape(16, 20) * 200)
    return {
        "tiff": images.encode(one, "TIFF"),
        "gif": images.encode(one, "GIF"),
        "animated gif": images.encode(one, "GIF", **animated),
        "webp": images.encode(one, "WEBP"),
        "animated webp": images.encode(one, "WEBP", **animated),
        "bmp": images.encode(one.convert("P"), "BMP"),
        "16-bit png": images.encode(deep, "PNG"),
    }


def findings_of(folder: Path, data: bytes) -> dict[str, str]:
    with rs.ShardWriter(folder / "a.tfrecord") as writer:
        writer.write_example({"image/encoded": data, "id": 1})
        writer.write_example({"image/encoded": data, "id": 2})
    found = rs.stats(folder / "a.tfrecord").findings
    return {finding.kind: f"{finding.text} {finding.cure}" for finding in found}


def test_each_format_is_found(tmp_path: Path, images: ModuleType) -> None:
    from recordsmith.examining.stats.findings import _HARD_TO_READ

    examples = drawn(images)
    assert examples.keys() == _HARD_TO_READ.keys()
    for name, data in examples.items():
        (folder := tmp_path / name).mkdir()
        text = findings_of(folder, data)["image-format"]
        assert f"2 images are {name}: {_HARD_TO_READ[name]}" in text
        assert ("--store png" in text) == (name != "16-bit png")  # which stays one


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg_is_fine(tmp_path: Path, images: ModuleType, mode: str) -> None:
    assert "image-format" not in findings_of(
        tmp_path, images.encode(images.noise(9, 9, mode), "JPEG")
    )


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "LA"])
def test_png_is_fine(tmp_path: Path, images: ModuleType, mode: str) -> None:
    assert "image-format" not in findings_of(
        tmp_path, images.encode(images.noise(9, 9, mode), "PNG")
    )


def test_progressive_and_tiled_jpegs_are_counted(tmp_path: Path) -> None:
    """Intervals that do not divide a row of MCUs are no tiles: 13 of 8 pixels, 7 of 16."""
    options: list[tuple[bool, list[int]]] = [
        *((True, [cv2.IMWRITE_JPEG_RST_INTERVAL, interval]) for interval in (0, 1, 13, 12)),
        *((False, [cv2.IMWRITE_JPEG_RST_INTERVAL, interval]) for interval in (7, 13)),
        (False, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]),
    ]
    pixels = np.zeros((80, 100, 3), np.uint8)
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        for is_grey, chosen in options:
            data = cv2.imencode(".jpg", pixels[:, :, 0] if is_grey else pixels, chosen)[1]
            writer.write_example({"image/encoded": data.tobytes()})
    images = rs.stats(tmp_path / "x.tfrecord").features["image/encoded"].values["bytes"].images
    assert images.formats == {"jpeg": 7}
    assert images.variants == {"tiled jpeg": 3, "progressive jpeg": 1}


def test_what_the_finding_says_of_tensorflow(images: ModuleType, tf: Any) -> None:
    """Not of animated WebP, on which TensorFlow 2.21 aborts."""
    examples = drawn(images)
    error = tf.errors.InvalidArgumentError
    with pytest.raises(error):
        tf.io.decode_image(examples["tiff"])
    for name in ("bmp", "animated gif"):
        for decode in (tf.io.decode_jpeg, tf.io.decode_png):
            with pytest.raises(error):
                decode(examples[name])
    for name, frames in (("gif", 1), ("animated gif", 2), ("webp", 1)):
        assert tf.io.decode_image(examples[name]).shape == (frames, 16, 20, 3)
        assert tf.io.decode_image(examples[name], expand_animations=False).shape == (16, 20, 3)
    assert tf.io.decode_image(examples["bmp"]).shape == (16, 20, 1)  # of a palette
    deep = tf.io.decode_png(examples["16-bit png"], dtype=tf.uint16).numpy()
    np.testing.assert_array_equal(deep[..., 0], np.arange(320).reshape(16, 20) * 200)
    np.testing.assert_array_equal(tf.io.decode_png(examples["16-bit png"]), deep // 256)
    cmyk = images.encode(images.smooth(16, 16, "CMYK"), "JPEG")
    by_pillow = np.asarray(Image.open(io.BytesIO(cmyk)).convert("RGB"), int)
    np.testing.assert_allclose(np.asarray(tf.io.decode_jpeg(cmyk), int), by_pillow, atol=3)
