"""Image options on a sample's features: image, masks, boxes and areas together."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from recordsmith.format.example import decode_example, encode_example
from recordsmith.image import ImageOptions, decode_mask
from recordsmith.jpeg import is_progressive
from recordsmith.support.errors import CorruptDataError, SourceError
from recordsmith.writing.packing.images import (
    AREAS_SCALED,
    BOXES_ROTATED,
    HAS_ORIENTATION,
    IS_PROGRESSIVE,
    MASK_CHANGED,
    MASK_RAW,
    apply_image_options,
    find_image_note,
)

from ...raising import raises

MASK = "image/segmentation/class"
BOX = "image/object/bbox"
UPRIGHT = ImageOptions(orientation="apply")


class Notes(list[tuple[str, str]]):
    def __call__(self, what: str, where: str) -> None:
        self.append((what, where))

    @property
    def sentences(self) -> set[str]:
        return {what for what, _ in self}


def _png(values: np.ndarray, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(values).save(out, "PNG", **options)
    return out.getvalue()


def sample(orientation: int = 1) -> dict[str, Any]:
    """A red box on black, with its mask, instance mask, box and area."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[4:8, 10:30] = (255, 0, 0)
    mask = (pixels[:, :, 0] > 0).astype(np.uint8) * 7
    exif = Image.Exif()
    exif[0x0112] = orientation
    return {
        "image/encoded": _png(pixels, exif=exif),
        "image/filename": b"folder/a.png",
        "image/format": "png",
        "image/height": 20,
        "image/width": 40,
        "image/class/label": 3,
        f"{MASK}/encoded": _png(mask),
        f"{MASK}/format": "png",
        f"{BOX}/ymin": [4 / 20],
        f"{BOX}/xmin": [10 / 40],
        f"{BOX}/ymax": [8 / 20],
        f"{BOX}/xmax": [30 / 40],
        "image/object/class/label": [1],
        "image/object/area": [80.0],
        "image/object/mask": [_png(mask // 7)],
    }


def _box(features: dict[str, Any], height: int, width: int) -> tuple[slice, slice]:
    (ymin,), (xmin,), (ymax,), (xmax,) = (
        features[f"{BOX}/{side}"] for side in ("ymin", "xmin", "ymax", "xmax")
    )
    rows = slice(round(ymin * height), round(ymax * height))
    return rows, slice(round(xmin * width), round(xmax * width))


@pytest.mark.parametrize("side", [None, 20])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_masks_and_boxes_stay_on_the_object(orientation: int, side: int | None) -> None:
    given = sample(orientation)
    before = dict(given)
    notes = Notes()
    options = ImageOptions(orientation="apply", longer_side=side)
    stored = apply_image_options(given, options, notes)
    assert given == before
    with Image.open(io.BytesIO(stored["image/encoded"])) as image:
        pixels = np.array(image)
        with Image.open(io.BytesIO(given["image/encoded"])) as original:
            upright = ImageOps.exif_transpose(original)
        assert image.size == (
            upright.width * (side or 40) // 40,
            upright.height * (side or 40) // 40,
        )
    height, width = pixels.shape[:2]
    assert (stored["image/height"], stored["image/width"]) == (height, width)
    expected = np.zeros((height, width), bool)
    expected[_box(stored, height, width)] = True
    np.testing.assert_array_equal(pixels[:, :, 0] > 127, expected)
    np.testing.assert_array_equal(decode_mask(stored[f"{MASK}/encoded"]), expected * 7)
    (instance,) = stored["image/object/mask"]
    np.testing.assert_array_equal(decode_mask(instance), expected)
    assert stored["image/object/area"] == [expected.sum()]
    assert stored["image/class/label"] == 3
    assert (BOXES_ROTATED in notes.sentences) == (orientation != 1)
    assert (AREAS_SCALED in notes.sentences) == (side is not None)
    assert (MASK_CHANGED in notes.sentences) == (orientation != 1 or side is not None)
    assert {where for _, where in notes} <= {"folder/a.png"}
    encode_example(stored, {})


@pytest.mark.parametrize("orientation", range(1, 9))
def test_points_and_corners_stay_on_their_pixels(orientation: int) -> None:
    """Each lies in the middle of a pixel with a value of its own; one point is not labelled."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = np.arange(6 * 9, dtype=np.uint8).reshape(6, 9)
    corners = np.array([[[2, 1], [4, 3], [2, 5], [0, 3]], [[5, 0], [8, 0], [8, 2], [5, 2]]])
    points = np.array([[0, 0], [8, 5], [3, 1], [7, 2]])
    visibility = np.array([2, 1, 2, 0])
    x, y = ((np.concatenate((corners.reshape(8, 2), points)) + 0.5) / (9, 6)).T
    (x[11], y[11]), names = (0, 0), ("image/object/corner", "image/object/keypoint")
    given: dict[str, Any] = {"image/encoded": _png(pixels, exif=exif)}
    for name, rows in zip(names, (slice(8), slice(8, None)), strict=True):
        given |= {f"{name}/x": x[rows], f"{name}/y": y[rows]}
    given[f"{names[1]}/visibility"] = visibility
    sides = zip(("ymin", "xmin", "ymax", "xmax"), (y[4], x[4], y[6], x[6]), strict=True)
    given |= {f"{BOX}/{side}": [0, at] for side, at in sides}
    stored = apply_image_options(given, UPRIGHT, Notes())
    with Image.open(io.BytesIO(given["image/encoded"])) as image:
        upright = np.array(ImageOps.exif_transpose(image))
    places = np.array([np.concatenate([stored[f"{n}/{side}"] for n in names]) for side in "yx"])
    rows, columns = np.floor(places * np.array(upright.shape)[:, None] + 1e-9).astype(int)
    assert sorted(upright[rows, columns][:8]) == sorted(
        pixels[tuple(corners.reshape(8, 2).T[::-1])]
    )
    np.testing.assert_array_equal(upright[rows, columns][8:11], pixels[tuple(points[:3].T[::-1])])
    assert places[:, 11].tolist() == [0, 0]
    for quad in places[::-1, :8].T.reshape(2, 4, 2):  # clockwise
        assert np.linalg.det(np.diff(quad[:3], axis=0)) > 0
    assert (places[:, 4] == places[:, 4:8].min(axis=1)).all()  # an upright box, again
    assert stored[f"{names[1]}/visibility"].tolist() == visibility.tolist()


def test_raw() -> None:
    notes = Notes()
    stored = apply_image_options(sample(), ImageOptions(store="raw"), notes)
    assert stored["image/format"] == stored[f"{MASK}/format"] == "raw"
    assert stored["image/dtype"] == stored[f"{MASK}/dtype"] == b"uint8"
    shape = [stored[f"image/{name}"] for name in ("height", "width", "depth")]
    assert shape == [20, 40, 3]
    pixels = np.frombuffer(stored["image/encoded"], np.uint8).reshape(shape)
    mask = np.frombuffer(stored[f"{MASK}/encoded"], np.uint8).reshape(20, 40)
    np.testing.assert_array_equal(mask > 0, pixels[:, :, 0] > 0)
    assert stored["image/object/mask"] == sample()["image/object/mask"]
    assert MASK_RAW in notes.sentences


def test_decoded_examples_give_the_same_result() -> None:
    """In records that are packed again, every feature is a list."""
    fresh = apply_image_options(sample(6), UPRIGHT, Notes())
    decoded = decode_example(encode_example(sample(6), {}))
    again = apply_image_options(decoded, UPRIGHT, Notes())
    assert encode_example(again, {}) == encode_example(fresh, {})


@pytest.mark.parametrize("options", [ImageOptions(), ImageOptions(store="raw")])
def test_features_without_image_are_unchanged(options: ImageOptions) -> None:
    features = {"label": 3, "name": b"x", f"{BOX}/xmin": []}
    notes = Notes()
    assert apply_image_options(features, options, notes) == features
    assert apply_image_options({"image/encoded": []}, options, notes) == {"image/encoded": []}
    assert notes == []


def test_errors_name_the_image(images: ModuleType) -> None:
    transparent = images.encode(Image.new("RGBA", (4, 4)), "PNG")
    features = sample() | {"image/encoded": transparent}
    with pytest.raises(SourceError, match="transparent") as caught:
        apply_image_options(features, ImageOptions(store="jpeg"), Notes())
    assert caught.value.sample == "folder/a.png"
    assert len(caught.value.problems) == 1
    with pytest.raises(CorruptDataError) as broken:
        apply_image_options(sample() | {"image/encoded": b"words"}, UPRIGHT, Notes())
    assert broken.value.path == "folder/a.png"
    coloured = sample() | {f"{MASK}/encoded": sample()["image/encoded"]}
    with pytest.raises(CorruptDataError) as broken:
        apply_image_options(coloured, ImageOptions(store="raw"), Notes())
    assert (broken.value.path, broken.value.feature) == ("folder/a.png", f"{MASK}/encoded")
    coloured = sample() | {"image/object/mask": [_png(np.zeros((20, 40), np.uint8)), b"?"]}
    with raises(
        CorruptDataError,
        defect="unreadable-image",
        path="folder/a.png",
        feature="image/object/mask",
        match="object 2",
    ) as broken:
        apply_image_options(coloured, ImageOptions(shorter_side=5), Notes())
    assert (broken.value.path, broken.value.feature) == ("folder/a.png", "image/object/mask")
    with pytest.raises(SourceError, match="2 values") as caught:
        apply_image_options(sample() | {"image/encoded": [b"a", b"b"]}, UPRIGHT, Notes())
    assert caught.value.sample == "folder/a.png"
    with pytest.raises(SourceError, match="raw pixels") as caught:
        apply_image_options(sample() | {"image/format": "raw"}, UPRIGHT, Notes())
    assert caught.value.sample == "folder/a.png"


def test_progressive_and_rotated_jpegs_are_noted(images: ModuleType) -> None:
    noted = {}
    for name, data in images.odd().items():
        notes = Notes()
        find_image_note({"image/encoded": data, "image/filename": b"x.jpg"}, notes)
        noted[name] = notes
    assert noted.pop("progressive jpeg") == [(IS_PROGRESSIVE, "x.jpg")]
    assert noted.pop("rotated jpeg") == [(HAS_ORIENTATION, "x.jpg")]
    assert all(notes == [] for notes in noted.values())


def test_default_options_note_progressive_jpegs(images: ModuleType) -> None:
    features = {"image/encoded": images.odd()["progressive jpeg"], "image/filename": "a/ü.jpg"}
    notes = Notes()
    assert apply_image_options(features, ImageOptions(), notes) == features
    assert notes == [(IS_PROGRESSIVE, "a/ü.jpg")]
    pytest.importorskip("jpeglib")
    notes = Notes()
    stored = apply_image_options(features, ImageOptions(baseline=True), notes)
    assert not is_progressive(stored["image/encoded"])
    assert IS_PROGRESSIVE not in notes.sentences
