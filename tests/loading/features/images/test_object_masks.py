"""Masks of objects are those of the boxes in the batch, wherever these are moved.

Each image shows its objects as rectangles of the grey 20 times their label, so what a mask has to
cover is seen in the image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.raising import raises
from tests.reading import only_batch, written

import recordsmith as rs
from recordsmith.format.example.keys import BOX, OBJECT_LABEL, OBJECT_MASK
from recordsmith.image import encode_mask
from recordsmith.support.errors import CorruptDataError, OptionError

SIDES = [(40, 60), (64, 32), (33, 77), (50, 50), (48, 48)]
FITS: list[dict[str, Any]] = [
    {"size": (48, 32), "interpolation": "nearest"},
    {"size": 32, "fit": "crop-or-pad"},
    {"size": 20, "fit": "center-crop", "interpolation": "nearest"},
    {"size": (30, 45), "fit": "contain", "interpolation": "nearest"},
    {"size": 40, "fit": "random-crop", "interpolation": "nearest"},
    {"fit": "pad"},
    {"fit": "pad", "shorter_side": 45, "interpolation": "nearest"},
]


def example(number: int, images: Any, **more: Any) -> dict[str, Any]:
    """Image `number` has as many objects, in cells of a grid, so that none covers another."""
    height, width = SIDES[number % len(SIDES)]
    rng = np.random.default_rng(number)
    pixels, masks, boxes = np.zeros((height, width), np.uint8), [], []
    for at in range(number % 7):
        cell = np.array([at // 3 * height // 3, at % 3 * width // 3])
        low = cell + rng.integers(0, 3, 2)
        high = low + rng.integers(3, np.array([height, width]) // 3 - 3)
        mask = np.zeros((height, width), np.uint8)
        mask[low[0] : high[0], low[1] : high[1]] = 1
        pixels += mask * np.uint8(20 * (at + 1))
        masks.append(encode_mask(mask))
        boxes.append(np.concatenate([low / (height, width), high / (height, width)]))
    sides = np.array(boxes, np.float32).reshape(-1, 4).T
    return {
        "image/encoded": images.encode(Image.fromarray(pixels), "PNG"),
        OBJECT_LABEL: np.arange(1, len(masks) + 1),
        OBJECT_MASK: masks,
        **dict(zip(BOX, sides, strict=True)),
        "id": number,
        **more,
    }


@pytest.fixture
def dataset(tmp_path: Path, images: Any) -> rs.Dataset:
    return written(tmp_path, [example(number, images) for number in range(14)])


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("flip", [None, "both"])
@pytest.mark.parametrize(
    "boxes", [{}, {"min_visible": 0.6}, {"length": 2, "too_long": "cut"}, {"length": 9}]
)
def test_each_mask_covers_the_object_of_its_box(
    dataset: rs.Dataset, fit: dict[str, Any], flip: Any, boxes: dict[str, Any]
) -> None:
    features = {
        "masks": rs.Mask(OBJECT_MASK),
        "padded": rs.Mask(OBJECT_MASK, of="boxes", count="padded", dtype="int32", fill=7),
        "boxes": rs.Boxes(unit="pixel", **boxes),
        "image": rs.Image(**fit, flip=flip, channels=1),
    }
    batch = only_batch(dataset, features, seed=5)
    grey, masks = batch["image"][..., 0], batch["masks"]
    np.testing.assert_array_equal(masks.lengths, batch["boxes_lengths"])
    np.testing.assert_array_equal(batch["padded_lengths"], batch["boxes_lengths"])
    assert batch["padded"].shape[:2] == batch["boxes"].shape[:2]
    assert batch["padded"].dtype == np.int32
    labels = batch["boxes_labels"]
    is_padding = labels == -1
    assert (batch["padded"][is_padding] == 7).all()
    for row, count in enumerate(batch["boxes_lengths"].tolist()):
        padded, boxes_of = batch["padded"][row, :count], batch["boxes"][row, :count]
        expected = grey[row] == 20 * labels[row, :count, np.newaxis, np.newaxis]
        if fit != {"fit": "pad"}:  # the padding of an image is not that of its masks
            np.testing.assert_array_equal(masks[row], expected)
        for mask, other, box in zip(masks[row], padded, boxes_of, strict=True):
            np.testing.assert_array_equal(mask == 1, other == 1)
            if mask.any():
                where = np.argwhere(mask)
                seen = np.concatenate([where.min(axis=0), where.max(axis=0) + 1])
                np.testing.assert_allclose(seen, box, atol=1)


@pytest.mark.parametrize("with_boxes", [True, False])
def test_masks_of_patches(dataset: rs.Dataset, with_boxes: bool) -> None:
    boxes = {"boxes": rs.Boxes()} if with_boxes else {}
    patches = rs.Patches(20, 3, flip="both", channels=1)
    features = {"image": patches, "masks": rs.Mask(OBJECT_MASK, count="padded"), **boxes}
    batch = only_batch(dataset, features)
    assert batch["masks"].shape[:2] == (14, 3)
    for row, patch in np.ndindex(14, 3):
        count = batch["masks_lengths"][row, patch]
        labels = np.arange(1, row % 7 + 1)
        if with_boxes:
            assert count == batch["boxes_lengths"][row, patch]
            labels = batch["boxes_labels"][row, patch, :count]
        assert count == len(labels)
        grey = batch["image"][row, patch, ..., 0]
        expected = grey == 20 * labels[:, np.newaxis, np.newaxis]
        np.testing.assert_array_equal(batch["masks"][row, patch, :count], expected)
        assert not batch["masks"][row, patch, count:].any()


def test_without_boxes_all_masks_stay(dataset: rs.Dataset) -> None:
    image, corner = rs.Image(size=8, fit="crop-or-pad"), {"size": 8, "fit": "crop-or-pad"}
    own = rs.Mask(OBJECT_MASK, **corner)
    batch = only_batch(dataset, {"image": image, "masks": OBJECT_MASK, "own": own})
    np.testing.assert_array_equal(batch["masks"].lengths, np.arange(14) % 7)
    assert (batch["masks"] == batch["own"]).all()
    cut = rs.Mask(OBJECT_MASK, count="padded", length=2, too_long="cut")
    batch = only_batch(dataset, {"image": image, "masks": cut})
    assert batch["masks"].shape == (14, 2, 8, 8)
    np.testing.assert_array_equal(batch["masks_lengths"], np.minimum(np.arange(14) % 7, 2))
    assert isinstance(
        only_batch(dataset, {"x": rs.Bytes(OBJECT_MASK, "ragged")})["x"], rs.RaggedArray
    )


def test_masks_of_dropped_boxes_are_not_decoded(tmp_path: Path, images: Any) -> None:
    good = example(2, images)
    masks = [good[OBJECT_MASK][0], b"?"]
    sides = {key: [0.1, outside] for key, outside in zip(BOX, (1.2, 1.2, 1.5, 1.5), strict=True)}
    sides |= {key: [value + 0.3, 1.5] for key, (value, _) in sides.items() if "max" in key}
    dataset = written(tmp_path, [{**good, **sides, OBJECT_MASK: masks}])
    features = {"image": rs.Image(size=30), "masks": rs.Mask(OBJECT_MASK)}
    assert only_batch(dataset, {**features, "boxes": rs.Boxes()})["masks"].lengths.tolist() == [1]
    with raises(CorruptDataError, record=0):
        only_batch(dataset, features)


IMAGE = rs.Image(size=8)
LIST = rs.Image(OBJECT_MASK, 8, count="ragged")
PADDED = rs.Mask(OBJECT_MASK, count="padded", length=3)


def test_too_many_pixels_for_one_record(tmp_path: Path, images: Any) -> None:
    """Nothing is allocated for them."""
    small, mask = images.encode(images.noise(1, 1), "PNG"), encode_mask(np.ones((1, 1), np.uint8))
    bad = {"image/encoded": small, OBJECT_MASK: [mask] * 3000, OBJECT_LABEL: [1] * 3000}
    bad |= {key: [float("max" in key)] * 3000 for key in BOX}
    dataset = written(tmp_path, [example(1, images), bad])
    image, masks = rs.Image(size=1000), rs.Mask(OBJECT_MASK)
    several: list[tuple[dict[str, Any], str]] = [
        ({"image": image, "masks": masks}, "masks"),
        ({"image": image, "masks": masks, "boxes": rs.Boxes()}, "masks"),
        ({"list": rs.Image(OBJECT_MASK, 1000, count="padded")}, "images"),
    ]
    for declared, noun in several:
        with raises(CorruptDataError, record=1, found=f"3,000 {noun} of 1,000,000 pixels"):
            only_batch(dataset, declared)
        for column in only_batch(dataset, declared, skip_errors=1).values():
            assert len(column) == 1


@pytest.mark.parametrize(
    ("features", "option"),
    [
        ({"a": IMAGE, "m": rs.Mask(OBJECT_MASK, count=2)}, "count"),
        ({"a": IMAGE, "m": rs.Mask(OBJECT_MASK, of="c")}, "of"),
        ({"a": IMAGE, "b": IMAGE, "m": rs.Mask(OBJECT_MASK)}, "of"),
        ({"a": IMAGE, "b": rs.Boxes(), "c": rs.Boxes(), "m": rs.Mask(OBJECT_MASK)}, "of"),
        ({"a": IMAGE, "b": rs.Boxes(), "c": rs.Boxes(), "m": rs.Mask(OBJECT_MASK, of="a")}, "of"),
        ({"b": rs.Boxes(), "m": rs.Mask(OBJECT_MASK)}, "size"),
        ({"a": rs.Patches(8, 2), "m": rs.Mask(OBJECT_MASK)}, "count"),
        ({"a": IMAGE, "b": rs.Boxes(length=3), "m": PADDED}, "length"),
        ({"a": rs.Image(OBJECT_MASK, 8)}, "shape"),
        ({"a": LIST, "m": PADDED}, "count"),
        ({"a": LIST, "m": rs.Mask(OBJECT_MASK, count=2)}, "count"),
        ({"a": LIST, "m": rs.Boxes()}, "of"),
    ],
)
def test_options_that_conflict(dataset: rs.Dataset, features: Any, option: str) -> None:
    with raises(OptionError, option=option):
        rs.Loader(dataset, features, batch_size=2)


def test_of_several_images_each_has_its_boxes_and_masks(dataset: rs.Dataset) -> None:
    images = {"a": rs.Image(size=30), "b": rs.Image(size=8, fit="crop-or-pad")}
    boxes = {f"in_{name}": rs.Boxes(of=name) for name in images}
    masks = {"of_a": rs.Mask(OBJECT_MASK, of="a"), "of_b": rs.Mask(OBJECT_MASK, of="in_b")}
    batch = only_batch(dataset, images | boxes | masks)
    for name, side in (("a", 30), ("b", 8)):
        assert batch[f"of_{name}"].lengths.tolist() == batch[f"in_{name}_lengths"].tolist()
        assert batch[f"of_{name}"].values.shape[1:] == (side, side)
