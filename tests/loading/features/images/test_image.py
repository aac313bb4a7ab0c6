"""Images of a batch: TensorFlow's pixels, the declared numbers, and options that make sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.image import jpeg_decoder
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

FITS: list[dict[str, Any]] = [
    {"size": (11, 7)},
    {"size": (9, 20), "fit": "crop-or-pad"},
    {"size": (8, 8), "fit": "center-crop"},
    {"size": (8, 6), "fit": "center-crop", "shorter_side": 10},
    {"size": (12, 9), "fit": "contain"},
    {"size": (6, 8), "fit": "random-crop"},
    {"fit": "pad"},
    {"fit": "pad", "longer_side": 10},
]


Records = Callable[..., rs.Dataset]


@pytest.fixture
def records(tmp_path: Path) -> Records:
    """A shard of images, or of other features, opened."""
    return lambda *images: written(
        tmp_path,
        [{"image/encoded": one} if isinstance(one, bytes) else one for one in images],
    )


def _batch(dataset: rs.Dataset, image: rs.Image, **options: Any) -> Any:
    options = {"batch_size": len(dataset), "threads": 0} | options
    (batch,) = rs.Loader(dataset, {"image": image}, **options)
    return batch


# -- against TensorFlow --------------------------------------------------------------------------


def _resized(tf: Any, data: bytes, size: tuple[int, int], channels: int = 3) -> np.ndarray:
    pixels = tf.io.decode_image(data, channels=channels, expand_animations=False)
    return tf.image.resize(pixels, size).numpy()


SIZES = [(192, 192), (224, 224), (500, 333), (37, 53), (1, 1), (3, 700)]
LARGEST_DIFFERENCE = 0.02  # levels of 255, of one pixel: float32 has no more in large images
MEAN_DIFFERENCE = 0.0002


@pytest.mark.slow
def test_exact_is_tensorflows_decode_jpeg_and_resize(
    tf: Any, records: Records, images: ModuleType, shared_data: Path
) -> None:
    """To floats: the largest difference and the mean one, in units of 255, are printed with -s."""
    paths = sorted((shared_data / "sources").rglob("*.jpg"))[::12]
    encoded = [path.read_bytes() for path in paths]
    encoded += [images.encode(images.noise(99, 67), "JPEG"), images.odd()["progressive jpeg"]]
    _assert_exact(tf, records, encoded)


def test_exact_is_tensorflows_also_for_drawn_images(
    tf: Any, records: Records, images: ModuleType
) -> None:
    odd = images.odd()
    encoded = [data for name, data in odd.items() if name not in ("tiff", "ppm", "16-bit png")]
    encoded += [images.encode(images.smooth(301, 203), "JPEG", quality=90)]
    _assert_exact(tf, records, encoded)


def _assert_exact(tf: Any, records: Records, encoded: list[bytes]) -> None:
    assert len(encoded) > 10
    dataset = records(*encoded)
    for size in SIZES:
        image = rs.Image(size=size, exact=True, dtype="float32")
        found = _batch(dataset, image)["image"]
        differences = [
            np.abs(of_row * 255 - _resized(tf, data, size))
            for of_row, data in zip(found, encoded, strict=True)
        ]
        largest = max(float(difference.max()) for difference in differences)
        mean = float(np.mean([difference.mean() for difference in differences]))
        print(f"exact, {len(encoded)} images to {size}: largest {largest:.6f}, mean {mean:.8f}")
        assert largest <= LARGEST_DIFFERENCE
        assert mean <= MEAN_DIFFERENCE
        whole = _batch(dataset, rs.Image(size=size, exact=True))["image"]
        assert np.abs(whole - found * 255).max() <= 0.501


@pytest.mark.parametrize("size", [(384, 384), (100, 500), (7, 8), (1, 1)])
def test_crop_or_pad_is_tensorflows_bit_by_bit(
    tf: Any, records: Records, images: ModuleType, size: tuple[int, int]
) -> None:
    encoded = [
        images.encode(images.noise(*sides), kind)
        for sides in ((301, 400), (7, 7), (1, 1), (500, 99))
        for kind in ("JPEG", "PNG")
    ]
    found = _batch(records(*encoded), rs.Image(size=size, fit="crop-or-pad"))["image"]
    for pixels, data in zip(found, encoded, strict=True):
        whole = tf.io.decode_image(data, channels=3, expand_animations=False)
        expected = tf.image.resize_with_crop_or_pad(whole, *size).numpy()
        np.testing.assert_array_equal(pixels, expected)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_floats_are_tensorflows_from_8_and_from_16_bits(
    tf: Any, records: Records, images: ModuleType, channels: int
) -> None:
    for name in ("grey png", "16-bit png"):
        data = images.odd()[name]
        image = rs.Image(size=(9, 13), channels=channels, dtype="float32")
        expected = tf.io.decode_image(data, channels, tf.float32, expand_animations=False).numpy()
        np.testing.assert_allclose(_batch(records(data), image)["image"][0], expected, atol=1e-6)


# -- numbers, layouts, frames --------------------------------------------------------------------


@pytest.mark.parametrize("options", FITS)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_layouts_and_types_hold_the_same_pixels(
    records: Records, images: ModuleType, options: dict[str, Any], channels: int
) -> None:
    encoded = [images.encode(images.noise(*s), "PNG") for s in ((13, 9), (1, 1), (40, 31))]
    dataset = records(*encoded)
    options = options | {"channels": channels, "flip": "both"}
    plain = _batch(dataset, rs.Image(**options), seed=3)["image"]
    planes = _batch(dataset, rs.Image(**options, layout="CHW"), seed=3)["image"]
    np.testing.assert_array_equal(planes.transpose(0, 2, 3, 1), plain)
    mean, std = (0.4, 0.5, 0.6, 0.1)[:channels], (0.2, 0.3, 0.25, 0.5)[:channels]
    expected = ((plain / 255 - mean) / std).astype(np.float32)
    for layout, axes in (("HWC", (0, 1, 2, 3)), ("CHW", (0, 2, 3, 1))):
        image = rs.Image(**options, layout=layout, dtype="float32", mean=mean, std=std)  # type: ignore[arg-type]
        floats = _batch(dataset, image, seed=3)["image"]
        assert floats.dtype == np.float32
        np.testing.assert_array_equal(floats.transpose(axes), expected)
    deep = _batch(dataset, rs.Image(**options, dtype="uint16"), seed=3)["image"]
    assert np.abs(deep / 257 - plain).max() <= 1


def test_padded_to_the_largest_of_the_batch(records: Records, images: ModuleType) -> None:
    batch_images = [images.noise(*sides) for sides in ((13, 9), (5, 30), (1, 1))]
    dataset = records(*[images.encode(image, "PNG") for image in batch_images])
    batch = _batch(dataset, rs.Image(fit="pad", flip="both"), seed=5)
    assert batch["image"].shape == (3, 30, 13, 3)
    np.testing.assert_array_equal(batch["image_sizes"], [(9, 13), (30, 5), (1, 1)])
    for pixels, image in zip(batch["image"], batch_images, strict=True):
        whole = np.array(image)
        height, width = whole.shape[:2]
        turned = [whole, whole[::-1], whole[:, ::-1], whole[::-1, ::-1]]
        assert any(np.array_equal(pixels[:height, :width], one) for one in turned)
        assert np.count_nonzero(pixels[height:]) == np.count_nonzero(pixels[:, width:]) == 0
    small = _batch(dataset, rs.Image(fit="pad", shorter_side=4, longer_side=8))
    np.testing.assert_array_equal(small["image_sizes"], [(4, 6), (8, 1), (4, 4)])
    seen = []
    loader = rs.Loader(
        dataset,
        {"image": rs.Image(fit="pad")},
        batch_size=3,
        threads=0,
        map_examples=lambda example, _: seen.append(example["image_sizes"].tolist()) or example,
    )
    assert next(iter(loader))["image_sizes"].tolist() == seen == [[9, 13], [30, 5], [1, 1]]


def test_frames_that_would_be_too_large_are_refused(records: Records, images: ModuleType) -> None:
    wide = images.encode(images.noise(1, 1).resize((40_000, 1)), "PNG")
    high = images.encode(images.noise(1, 1).resize((1, 40_000)), "PNG")
    with raises(OptionError, option="longer_side"):
        _batch(records(wide, high), rs.Image(fit="pad"))


def test_40000_pixels_wide(records: Records, images: ModuleType) -> None:
    for kind in ("JPEG", "PNG"):
        strip = images.smooth(30, 16).resize((40_000, 16))
        data = images.encode(strip, kind)
        for options in FITS[:6]:
            for exact in {False, jpeg_decoder() == "simplejpeg"}:
                batch = _batch(records(data), rs.Image(**options, exact=exact))
                assert batch["image"].shape == (1, *options["size"], 3)
        found = _batch(records(data), rs.Image(size=(16, 40), exact=False))["image"][0]
        expected = np.array(strip.resize((40, 16)))
        assert np.abs(found.astype(int) - expected).mean() < 8
        image = rs.Image(size=8, max_pixels=40_000 * 16 - 1)
        with raises(CorruptDataError, defect="unreadable-image", record=0):
            _batch(records(data), image)


def test_crops_and_flips_belong_to_the_record(records: Records, images: ModuleType) -> None:
    """Whatever the threads and the batches; others in each epoch."""
    dataset = records(*[images.jpeg(seed, 40, 30) for seed in range(10)])
    image = rs.Image(size=(12, 12), fit="random-crop", flip="both")

    def rows(**options: Any) -> np.ndarray:
        options = {"batch_size": 10, "threads": 0, "seed": 1} | options
        loader = rs.Loader(dataset, {"image": image}, **options)
        return np.concatenate([batch["image"] for batch in loader])

    expected = rows()
    np.testing.assert_array_equal(rows(threads=2, batch_size=3), expected)
    assert not np.array_equal(rows(seed=2), expected)
    first, second = np.split(rows(epochs=2), 2)
    np.testing.assert_array_equal(first, expected)
    assert not np.array_equal(second, expected)


# -- rows of pixels ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_rows_of_pixels(records: Records, images: ModuleType, dtype: str, channels: int) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 256, (h, w, channels), dtype) for h, w in ((5, 7), (1, 1), (9, 4))]
    dataset = records(
        *[
            {"image_raw": array.tobytes(), "height": array.shape[0], "width": array.shape[1]}
            for array in arrays
        ]
    )
    image = rs.Image(
        "image_raw",
        (5, 7),
        "crop-or-pad",
        raw_shape=("height", "width", channels),
        raw_dtype=dtype,  # type: ignore[arg-type]
        channels=max(1, channels // 2 * 2 + channels % 2) if channels != 2 else 4,
        dtype=dtype,  # type: ignore[arg-type]
    )
    found = _batch(dataset, image)["image"]
    if channels == 2:
        np.testing.assert_array_equal(found[0], arrays[0][:, :, [0, 0, 0, 1]])
    else:
        np.testing.assert_array_equal(found[0], arrays[0])
    assert np.count_nonzero(found[1].any(-1)) <= 1
    fixed = records({"image_raw": arrays[0].tobytes()})
    image = rs.Image("image_raw", (5, 7), raw_shape=(5, 7, channels), raw_dtype=dtype)  # type: ignore[arg-type]
    assert _batch(fixed, image)["image"].shape == (1, 5, 7, 3)


@pytest.mark.parametrize(
    ("record", "found", "expected"),
    [
        (
            {"h": 5, "w": 7, "raw": bytes(104)},
            "104 bytes",
            "105 for h x w x 3 = 5 x 7 x 3 of uint8",
        ),
        ({"h": -5, "w": -7, "raw": bytes(105)}, "h x w x 3 = -5 x -7 x 3", "positive integers"),
        ({"h": 0, "w": 7, "raw": b""}, "h x w x 3 = 0 x 7 x 3", "positive integers"),
        ({"h": 2**40, "w": 2**40, "raw": bytes(105)}, "105 bytes", "3,626,"),
    ],
)
def test_rows_of_pixels_that_are_not_there(
    records: Records, record: dict[str, Any], found: str, expected: str
) -> None:
    image = rs.Image("raw", 4, raw_shape=("h", "w", 3))
    with pytest.raises(CorruptDataError) as caught:
        _batch(records({"h": 1, "w": 1, "raw": bytes(3)}, record), image)
    assert caught.value.defect is Defect.FEATURE_SHAPE
    assert (caught.value.record, caught.value.feature) == (1, "raw")
    assert caught.value.found == found
    assert caught.value.expected.startswith(expected)
    large = rs.Image("raw", 4, raw_shape=("h", "w", 3), max_pixels=34)
    with raises(CorruptDataError, defect="feature-shape-mismatch", record=0):
        _batch(records({"h": 5, "w": 7, "raw": bytes(105)}), large)


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("uint8", ""),
        ("uint16", "uint16'"),
        ("float32", "raw_dtype='float32'"),
        ("float64", "raw_dtype='float64'"),
        ("complex128", ""),
    ],
)
def test_pixels_of_another_type_name_what_reads_them(
    records: Records, dtype: str, words: str
) -> None:
    data = np.zeros((5, 7, 3), dtype).tobytes()
    image = rs.Image("raw", 4, raw_shape=("h", "w", 3))
    dataset = records({"h": 5, "w": 7, "raw": data})
    if dtype == "uint8":
        assert _batch(dataset, image)["image"].shape == (1, 4, 4, 3)
        return
    with pytest.raises(CorruptDataError) as caught:
        _batch(dataset, image)
    assert words in caught.value.remedy
    if dtype != "complex128":
        right = rs.Image("raw", 4, raw_shape=("h", "w", 3), raw_dtype=dtype)  # type: ignore[arg-type]
        assert _batch(dataset, right)["image"].shape == (1, 4, 4, 3)
        return
    with pytest.raises(rs.OptionError) as refused:
        rs.Image("raw", 4, raw_shape=("h", "w", 3), raw_dtype=dtype)  # type: ignore[arg-type]
    assert (refused.value.option, dtype in refused.value.remedy) == ("raw_dtype", True)


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("fit", FITS)
def test_bad_images_are_named_or_skipped(
    records: Records, images: ModuleType, fit: dict[str, Any]
) -> None:
    good = images.jpeg(1, 40, 30)
    for bad in (b"", b"no image", good[:-300], images.odd()["png"][:-30]):
        dataset = records(good, bad, good)
        with raises(CorruptDataError, defect=Defect.UNREADABLE_IMAGE, record=1):
            _batch(dataset, rs.Image(**fit))
        loader = rs.Loader(
            dataset, {"image": rs.Image(**fit)}, batch_size=3, threads=0, skip_errors=1
        )
        (batch,) = loader
        assert len(batch["image"]) == 2
        assert [error.record for error in loader.skipped] == [1]


def test_a_key_that_holds_no_images(records: Records) -> None:
    dataset = records({"image/encoded": [1, 2], "h": b"5"})
    with raises(OptionError, expected="bytes"):
        rs.Loader(dataset, {"image": rs.Image(size=4)}, batch_size=1)
    with raises(OptionError, option="features"):
        image = rs.Image("h", size=4, raw_shape=("h", 5, 3))
        rs.Loader(dataset, {"image": image}, batch_size=1)


def test_opencv_has_one_thread_once_a_loader_is_made(records: Records, images: ModuleType) -> None:
    import cv2

    from recordsmith.loading.features.images.frames import one_thread_in_opencv

    before = cv2.getNumThreads()
    one_thread_in_opencv.cache_clear()
    try:
        cv2.setNumThreads(2)
        rs.Loader(records(images.jpeg()), {"image": rs.Image(size=4)}, batch_size=1)
        assert cv2.getNumThreads() == 1
    finally:
        cv2.setNumThreads(before)
