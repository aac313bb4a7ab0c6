"""Masks stay on their images, whatever becomes of these."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.image import encode_mask
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

FITS: list[dict[str, Any]] = [
    {"size": (31, 17)},
    {"size": (100, 90)},
    {"size": (40, 41), "fit": "crop-or-pad"},
    {"size": (9, 130), "fit": "crop-or-pad"},
    {"size": (20, 20), "fit": "center-crop"},
    {"size": (24, 33), "fit": "center-crop", "shorter_side": 35},
    {"size": (33, 20), "fit": "contain"},
    {"size": (32, 32), "fit": "random-crop"},
    {"size": (1, 1), "fit": "random-crop"},
    {"fit": "pad"},
    {"fit": "pad", "shorter_side": 15},
]
SIDES = [(60, 50), (61, 47), (1, 1), (1, 80), (33, 2), (64, 64)]


def _dataset(path: Path, pairs: list[tuple[bytes, bytes]], **more: Any) -> rs.Dataset:
    keys = "image/encoded", "image/segmentation/class/encoded"
    return written(path, [dict(zip(keys, pair, strict=True)) | more for pair in pairs])


def _batch(dataset: rs.Dataset, features: dict[str, Any], **options: Any) -> Any:
    (batch,) = rs.Loader(dataset, features, batch_size=len(dataset), threads=0, **options)
    return batch


def _classes(height: int, width: int) -> np.ndarray:
    """Blocks of classes 1 to 6."""
    rng = np.random.default_rng(height * 1000 + width)
    blocks = rng.integers(1, 7, (-(-height // 8), -(-width // 8))).astype(np.uint8)
    return np.kron(blocks, np.ones((8, 8), np.uint8))[:height, :width]


def _pairs(images: ModuleType) -> list[tuple[bytes, bytes]]:
    """Images whose grey is 40 times their class."""
    masks = [_classes(*sides) for sides in SIDES]
    return [(images.encode(Image.fromarray(mask * 40), "PNG"), encode_mask(mask)) for mask in masks]


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("flip", [None, "horizontal", "vertical", "both"])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_masks_stay_on_their_images(
    tmp_path: Path, images: ModuleType, fit: dict[str, Any], flip: Any, layout: Any
) -> None:
    """The image by the nearest neighbour is the mask, pixel for pixel; padding is 0 in both."""
    is_scaled = fit.get("fit") != "crop-or-pad" and fit != {"fit": "pad"}
    how = {"interpolation": "nearest"} if is_scaled else {}
    image = rs.Image(**fit, **how, flip=flip, channels=1, layout=layout)
    dataset = _dataset(tmp_path, _pairs(images))
    for seed in range(4):
        batch = _batch(dataset, {"mask": rs.Mask(), "image": image}, seed=seed)
        grey = batch["image"][..., 0] if layout == "HWC" else batch["image"][:, 0]
        assert batch["mask"].dtype == np.uint8
        assert batch["mask"].shape == grey.shape
        np.testing.assert_array_equal(batch["mask"] * 40, grey)


def test_jpegs_at_a_part_of_their_size_lie_under_their_masks(
    tmp_path: Path, images: ModuleType
) -> None:
    mask = np.kron(np.array([[1, 6, 2], [5, 1, 6]], np.uint8), np.ones((130, 110), np.uint8))
    encoded = images.encode(Image.fromarray(mask * 40), "JPEG", quality=95)
    dataset = _dataset(tmp_path, [(encoded, encode_mask(mask))] * 8)
    for fit in ("resize", "center-crop", "random-crop", "contain"):
        area = {"crop_area": (0.6, 1.0)} if fit == "random-crop" else {}
        image = rs.Image(size=(50, 60), fit=fit, channels=1, flip="both", **area)  # type: ignore[arg-type]
        batch = _batch(dataset, {"image": image, "mask": rs.Mask()})
        off = np.abs(batch["mask"] * 40.0 - batch["image"][..., 0]) > 60
        assert off.mean() < 0.05  # the pixels at edges only: a pixel's shift would make 0.09
        assert not off[:, 10, 10].any()


def test_16_bit_masks_need_room(tmp_path: Path, images: ModuleType) -> None:
    deep = np.array([[1, 2], [3, 700]], np.uint16)
    encoded = images.encode(images.noise(2, 2), "PNG")
    dataset = _dataset(tmp_path, [(encoded, encode_mask(deep))])
    image = rs.Image(size=2)
    found = _batch(dataset, {"image": image, "mask": rs.Mask(dtype="uint16")})["mask"]
    np.testing.assert_array_equal(found[0], deep)
    with raises(CorruptDataError, found="700", expected="at most 255"):
        _batch(dataset, {"image": image, "mask": rs.Mask()})
    shallow = _dataset(tmp_path, [(encoded, encode_mask(deep % 256))])
    found = _batch(shallow, {"image": image, "mask": rs.Mask()})["mask"]
    np.testing.assert_array_equal(found[0], deep % 256)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("sides", [("h", "w"), ("h", "w", 1), (6, 5)])
def test_rows_of_numbers(
    tmp_path: Path, images: ModuleType, dtype: str, sides: tuple[Any, ...]
) -> None:
    numbers = np.arange(30).reshape(6, 5).astype(dtype)
    image = images.encode(images.noise(5, 6), "PNG")
    dataset = _dataset(tmp_path, [(image, numbers.tobytes())], h=6, w=5)
    mask = rs.Mask(raw_shape=sides, raw_dtype=dtype)  # type: ignore[arg-type]
    found = _batch(dataset, {"image": rs.Image(size=(6, 5)), "mask": mask})["mask"]
    np.testing.assert_array_equal(found[0], numbers)


def test_masks_without_images_have_a_size_of_their_own(tmp_path: Path, images: ModuleType) -> None:
    dataset = _dataset(tmp_path, _pairs(images)[:2])
    batch = _batch(dataset, {"mask": rs.Mask(size=(60, 50), fit="crop-or-pad")})
    np.testing.assert_array_equal(batch["mask"][0], _classes(60, 50))
    assert _batch(dataset, {"mask": rs.Mask(size=7)})["mask"].shape == (2, 7, 7)
    padded = _batch(dataset, {"mask": rs.Mask(fit="pad", fill=9)})
    assert padded["mask"].shape == (2, 61, 50)
    np.testing.assert_array_equal(padded["mask_sizes"], [(60, 50), (61, 47)])
    assert (padded["mask"][1, :, 47:] == 9).all()


def test_of_several_images_one_is_named(tmp_path: Path, images: ModuleType) -> None:
    dataset = _dataset(tmp_path, _pairs(images))
    small, large = rs.Image(size=4), rs.Image(size=8)
    batch = _batch(dataset, {"mask": rs.Mask(of="b"), "a": small, "b": large})
    assert batch["mask"].shape == (6, 8, 8)
    with raises(OptionError, option="of"):
        rs.Loader(dataset, {"mask": rs.Mask(), "a": small, "b": large}, batch_size=1)
    with raises(OptionError, option="of"):
        rs.Loader(dataset, {"mask": rs.Mask(of="c"), "a": small}, batch_size=1)
    with raises(OptionError, option="size"):
        rs.Loader(dataset, {"mask": rs.Mask()}, batch_size=1)


def test_a_mask_of_another_size_than_its_image_is_an_error(
    tmp_path: Path, images: ModuleType
) -> None:
    good = _pairs(images)[0]
    bad = (good[0], encode_mask(_classes(50, 60)))
    dataset = _dataset(tmp_path, [good, bad, good])
    features = {"image": rs.Image(size=8), "mask": rs.Mask()}
    with raises(
        CorruptDataError, found="60 x 50", expected="50 x 60", defect=Defect.FEATURE_SHAPE, record=1
    ):
        _batch(dataset, features)
    assert len(_batch(dataset, features, skip_errors=1)["mask"]) == 2


def test_bad_masks_and_bad_images_are_skipped_together(tmp_path: Path, images: ModuleType) -> None:
    good = _pairs(images)[0]
    colour = (images.encode(images.noise(50, 60), "PNG"),) * 2
    dataset = _dataset(tmp_path, [good, (good[0], b"?"), (b"?", good[1]), colour, good])
    for fit in ({"size": 8}, {"fit": "pad"}):
        features = {"image": rs.Image(**fit), "mask": rs.Mask()}
        batch = _batch(dataset, features, skip_errors=3)
        assert len(batch["image"]) == len(batch["mask"]) == 2
        np.testing.assert_array_equal(batch["mask"][0], batch["mask"][1])


@pytest.mark.parametrize(
    "image",
    [
        rs.Image(size=8, flip="horizontal"),
        rs.Image(size=8, fit="random-crop"),
        rs.Patches(8, 2),
    ],
)
@pytest.mark.parametrize(("own", "option"), [({"size": 8}, "size"), ({"fit": "pad"}, "fit")])
def test_a_mask_that_would_not_follow_its_image_is_refused(
    image: Any, own: dict[str, Any], option: str
) -> None:
    """It has a size of its own, but the only image there is lies elsewhere each time."""
    from recordsmith.format.example import Schema
    from recordsmith.loading.features.declaration import declare_features
    from recordsmith.loading.preview import Preview

    features = {"image": image, "mask": rs.Mask(**own)}
    with raises(OptionError, option=option):
        declare_features(features, Preview(Schema.merged([]), is_complete=True))
    still = {**features, "still": rs.Image(size=8)}
    assert declare_features(still, Preview(Schema.merged([]), is_complete=True)) == still
