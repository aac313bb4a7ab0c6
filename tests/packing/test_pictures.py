"""Picture options on a sample's features: picture, masks, boxes and areas together."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from recordsmith.errors import CorruptDataError, SourceError
from recordsmith.example import decode_example, encode_example
from recordsmith.image import PictureOptions, decode_mask, is_progressive
from recordsmith.packing import apply_picture_options, note_of_picture
from recordsmith.packing.pictures import (
    AREAS_SCALED,
    BOXES_TURNED,
    HAS_ORIENTATION,
    IS_PROGRESSIVE,
    MASK_FOLLOWED,
    MASK_RAW,
)

MASK = "image/segmentation/class"
BOX = "image/object/bbox"
UPRIGHT = PictureOptions(orientation="apply")


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
    """A red box on black; its mask, its instance mask, its box and area say where it is."""
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
def test_everything_stays_on_the_object(orientation: int, side: int | None) -> None:
    given = sample(orientation)
    before = dict(given)
    notes = Notes()
    options = PictureOptions(orientation="apply", longer_side=side)
    stored = apply_picture_options(given, options, notes)
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
    assert (BOXES_TURNED in notes.sentences) == (orientation != 1)
    assert (AREAS_SCALED in notes.sentences) == (side is not None)
    assert (MASK_FOLLOWED in notes.sentences) == (orientation != 1 or side is not None)
    assert {where for _, where in notes} <= {"folder/a.png"}
    encode_example(stored, {})


def test_raw() -> None:
    notes = Notes()
    stored = apply_picture_options(sample(), PictureOptions(format="raw"), notes)
    assert stored["image/format"] == stored[f"{MASK}/format"] == "raw"
    assert stored["image/dtype"] == stored[f"{MASK}/dtype"] == b"uint8"
    shape = [stored[f"image/{name}"] for name in ("height", "width", "depth")]
    assert shape == [20, 40, 3]
    pixels = np.frombuffer(stored["image/encoded"], np.uint8).reshape(shape)
    mask = np.frombuffer(stored[f"{MASK}/encoded"], np.uint8).reshape(20, 40)
    np.testing.assert_array_equal(mask > 0, pixels[:, :, 0] > 0)
    assert stored["image/object/mask"] == sample()["image/object/mask"]
    assert MASK_RAW in notes.sentences


def test_decoded_examples_are_as_good_as_fresh_features() -> None:
    """Packing existing shards anew: every feature is a list."""
    fresh = apply_picture_options(sample(6), UPRIGHT, Notes())
    decoded = decode_example(encode_example(sample(6), {}))
    again = apply_picture_options(decoded, UPRIGHT, Notes())
    assert encode_example(again, {}) == encode_example(fresh, {})


@pytest.mark.parametrize("options", [PictureOptions(), PictureOptions(format="raw")])
def test_features_without_a_picture_pass(options: PictureOptions) -> None:
    features = {"label": 3, "name": b"x", f"{BOX}/xmin": []}
    notes = Notes()
    assert apply_picture_options(features, options, notes) == features
    assert apply_picture_options({"image/encoded": []}, options, notes) == {"image/encoded": []}
    assert notes == []


@pytest.mark.parametrize("orientation", [1, 6])
def test_pictures_without_objects(orientation: int) -> None:
    features = {
        key: [] if key.startswith("image/object") else value
        for key, value in sample(orientation).items()
    }
    stored = apply_picture_options(features, UPRIGHT, Notes())
    assert all(stored[key] == [] for key in features if key.startswith("image/object"))


def test_errors_say_which_picture(pictures: ModuleType) -> None:
    transparent = pictures.encode(Image.new("RGBA", (4, 4)), "PNG")
    features = sample() | {"image/encoded": transparent}
    with pytest.raises(SourceError, match=r"folder/a\.png: the picture is transparent") as caught:
        apply_picture_options(features, PictureOptions(format="jpeg"), Notes())
    assert len(caught.value.problems) == 1
    with pytest.raises(CorruptDataError) as broken:
        apply_picture_options(sample() | {"image/encoded": b"words"}, UPRIGHT, Notes())
    assert broken.value.path == "folder/a.png"
    coloured = sample() | {f"{MASK}/encoded": sample()["image/encoded"]}
    with pytest.raises(CorruptDataError, match=r"folder/a\.png, its mask.*one number a pixel"):
        apply_picture_options(coloured, PictureOptions(format="raw"), Notes())
    coloured = sample() | {"image/object/mask": [_png(np.zeros((20, 40), np.uint8)), b"?"]}
    with pytest.raises(CorruptDataError, match="the mask of object 2"):
        apply_picture_options(coloured, PictureOptions(shorter_side=5), Notes())
    with pytest.raises(SourceError, match="has 2 values"):
        apply_picture_options(sample() | {"image/encoded": [b"a", b"b"]}, UPRIGHT, Notes())
    with pytest.raises(SourceError, match="raw pixels already"):
        apply_picture_options(sample() | {"image/format": "raw"}, UPRIGHT, Notes())


def test_what_should_be_known_of_a_picture(pictures: ModuleType) -> None:
    said = {}
    for name, data in pictures.odd().items():
        notes = Notes()
        note_of_picture({"image/encoded": data, "image/filename": b"x.jpg"}, notes)
        said[name] = notes
    assert said.pop("progressive jpeg") == [(IS_PROGRESSIVE, "x.jpg")]
    assert said.pop("jpeg to be turned") == [(HAS_ORIENTATION, "x.jpg")]
    assert all(notes == [] for notes in said.values())


def test_default_options_say_it_too(pictures: ModuleType) -> None:
    features = {"image/encoded": pictures.odd()["progressive jpeg"], "image/filename": "a/ü.jpg"}
    notes = Notes()
    assert apply_picture_options(features, PictureOptions(), notes) == features
    assert notes == [(IS_PROGRESSIVE, "a/ü.jpg")]
    pytest.importorskip("jpeglib")
    notes = Notes()
    stored = apply_picture_options(features, PictureOptions(baseline=True), notes)
    assert not is_progressive(stored["image/encoded"])
    assert IS_PROGRESSIVE not in notes.sentences
