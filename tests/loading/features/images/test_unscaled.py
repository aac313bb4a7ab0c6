"""Raw pixels that are no levels: floats in their own range, of bytes or of lists of numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import only_batch, written

import recordsmith as rs
from recordsmith.support.errors import OptionError

from .test_image import FITS

SIZES = ((9, 14), (12, 8), (20, 17))
FLOATS: dict[str, Any] = {"raw_dtype": "float32", "raw_shape": ("height", "width", 3)}

Records = Callable[..., rs.Dataset]


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return lambda *rows: written(tmp_path, rows)


def row(pixels: np.ndarray, *, as_list: bool = False) -> dict[str, Any]:
    data = pixels.ravel() if as_list else pixels.tobytes()
    return {"x": data, "height": pixels.shape[0], "width": pixels.shape[1]}


def arrays(channels: int = 3) -> list[np.ndarray]:
    random = np.random.default_rng(4)
    return [random.normal(0, 1000, (*size, channels)).astype(np.float32) for size in SIZES]


def batch(dataset: rs.Dataset, **features: Any) -> dict[str, Any]:
    return only_batch(dataset, features)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_placed_as_levels_are(records: Records, fit: dict[str, Any], layout: Any) -> None:
    random = np.random.default_rng(0)
    levels = [random.integers(0, 256, (*size, 3), np.uint8) for size in SIZES]
    options: dict[str, Any] = {"key": "x", "flip": "both", "exact": True, "layout": layout, **fit}
    x = batch(
        records(*[row(image.astype("f4")) for image in levels]), x=rs.Image(**options, **FLOATS)
    )
    image = rs.Image(dtype="float32", **options, raw_shape=FLOATS["raw_shape"])
    expected = batch(records(*map(row, levels)), x=image)
    assert x["x"].dtype == np.float32
    np.testing.assert_allclose(x["x"] / 255, expected["x"], 0, 1e-6)
    if "x_sizes" in expected:
        np.testing.assert_array_equal(x["x_sizes"], expected["x_sizes"])


@pytest.mark.parametrize("channels", [1, 3, 13])
def test_equal_to_tensorflow(records: Records, tf: Any, channels: int) -> None:
    images = arrays(channels)
    dataset = records(*map(row, images))
    shape = {**FLOATS, "raw_shape": ("height", "width", channels), "channels": channels}
    made = batch(
        dataset,
        resized=rs.Image("x", (11, 7), interpolation="linear", **shape),
        cropped=rs.Image("x", (10, 16), "crop-or-pad", **shape),
        padded=rs.Image("x", (12, 9), "contain", interpolation="linear", **shape),
    )
    for number, image in enumerate(images):
        for name, reference, atol in (
            ("resized", tf.image.resize(image, (11, 7)), 0.01),
            ("cropped", tf.image.resize_with_crop_or_pad(image, 10, 16), 0),
            ("padded", tf.image.resize_with_pad(image, 12, 9), 0.01),
        ):
            np.testing.assert_allclose(made[name][number], reference.numpy(), 0, atol)
    area = images[2][:18, :16].reshape(3, 6, 4, 4, channels).mean((1, 3))
    even = records(row(images[2][:18, :16].copy()))
    small = batch(even, x=rs.Image("x", (3, 4), **shape))["x"]
    np.testing.assert_allclose(small[0], area, 0, 0.01)


def test_many_channels_are_each_as_alone(records: Records) -> None:
    images = arrays(6)
    for fit in FITS:
        options: dict[str, Any] = {"key": "x", "flip": "both", "raw_dtype": "float32", **fit}
        shape = {"raw_shape": ("height", "width", 6), "channels": 6}
        together = batch(records(*map(row, images)), x=rs.Image(**options, **shape))["x"]
        for channel in (0, 3, 4, 5):
            alone = records(*[row(image[..., channel]) for image in images])
            image = rs.Image(channels=1, raw_shape=("height", "width"), **options)
            found = batch(alone, x=image)["x"][..., 0]
            np.testing.assert_allclose(together[..., channel], found, 1e-4, 1e-2)


def test_mean_and_std_are_in_the_range_of_the_pixels(records: Records) -> None:
    pixels = arrays()[0]
    mean, std = (250.0, -3.0, 0.5), (100.0, 2.0, 1.0)
    options = {**FLOATS, "raw_shape": (9, 14, 3)}
    dataset = records(row(pixels))
    for layout, axes in (("HWC", (0, 1, 2)), ("CHW", (2, 0, 1))):
        image = rs.Image("x", mean=mean, std=std, layout=layout, **options)  # type: ignore[arg-type]
        expected = ((pixels - np.array(mean)) / np.array(std)).transpose(axes)
        np.testing.assert_allclose(batch(dataset, x=image)["x"][0], expected, 1e-4, 1e-3)
    special = pixels.copy()
    special[0, :4, 0] = np.nan, np.inf, -np.inf, -0.0
    for layout in ("HWC", "CHW"):
        found = batch(records(row(special)), x=rs.Image("x", layout=layout, **options))["x"][0]  # type: ignore[arg-type]
        found = found if layout == "HWC" else np.ascontiguousarray(found.transpose(1, 2, 0))
        np.testing.assert_array_equal(found, special)
        assert np.signbit(found[0, 3, 0])


@pytest.mark.parametrize("as_keys", [False, True])
@pytest.mark.parametrize(
    ("stored", "dtype"),
    [("int64", "uint8"), ("int64", "uint16"), ("int64", "int16"), ("float32", "float32"),
     ("int64", "float32"), ("float32", "float64"), ("float32", "float16")],
)  # fmt: skip
def test_lists_are_as_bytes(records: Records, stored: str, dtype: Any, *, as_keys: bool) -> None:
    random = np.random.default_rng(1)
    images = [random.integers(0, 256, (9, 14, 3)).astype(dtype) for _ in SIZES]
    shape: Any = ("height", "width", 3) if as_keys else (9, 14, 3)
    options: Any = {"key": "x", "raw_shape": shape, "raw_dtype": dtype}
    options["dtype"] = dtype if dtype in ("uint8", "uint16") else None
    features = {
        "x": rs.Image(size=(6, 8), fit="random-crop", **options),
        "patch": rs.Patches(4, 3, **options),
    }  # fmt: skip
    lists = records(*[row(pixels.astype(stored), as_list=True) for pixels in images])
    made = batch(lists, **features)
    for name, expected in batch(records(*map(row, images)), **features).items():
        np.testing.assert_array_equal(made[name], expected, strict=True)
    if not as_keys:
        whole = batch(lists, x=rs.Image(**options))["x"]
        np.testing.assert_array_equal(whole, np.array(images))
        pairs = np.array([images[:2], images[1:]])
        rows = [{"x": pair.astype(stored).ravel()} for pair in pairs]
        found = batch(records(*rows), x=rs.Image(count=2, **options))["x"]
        np.testing.assert_array_equal(found, pairs)


def test_masks_follow(records: Records) -> None:
    """Each pixel has its own number, by which the mask is compared."""
    rows = []
    for height, width in SIZES:
        ids = np.arange(1, height * width + 1, dtype=np.uint16).reshape(height, width)
        rows.append({**row(ids.astype(np.float32)), "mask": ids.tobytes()})
    floats = {**FLOATS, "key": "x", "channels": 1, "raw_shape": ("height", "width"), "flip": "both"}
    mask = rs.Mask("mask", raw_shape=("height", "width"), raw_dtype="uint16", dtype="uint16")
    crop = rs.Image(size=(7, 5), fit="random-crop", interpolation="nearest", **floats)
    for image in (crop, rs.Patches(5, 3, **floats)):
        made = batch(records(*rows), x=image, mask=mask)
        np.testing.assert_array_equal(made["x"][..., 0], made["mask"])


def test_what_the_schema_shows_is_refused_at_once(records: Records) -> None:
    floats, wholes = records({"x": [0.5] * 12}), records({"x": [1] * 12})
    for dataset, options, words in (
        (floats, {"raw_shape": (3, 4)}, "float"),  # levels are never guessed
        (floats, {}, "raw_dtype='float32'"),
        (wholes, {}, "raw_dtype='uint8'"),
        (wholes, {"raw_shape": (3, 3)}, "12 values; expected 9"),
    ):
        with raises(OptionError, match=words):
            batch(dataset, x=rs.Image("x", 4, channels=1, **options))  # type: ignore[arg-type]
