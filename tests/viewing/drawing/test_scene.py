"""What is found in an example, whatever its keys are."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.format.example import SchemaSurvey
from recordsmith.viewing.drawing.scene import Scene, SceneReader, draw_scene

PIXELS = np.random.default_rng(0).integers(256, size=(6, 9, 3)).astype(np.uint8)
MASK = np.random.default_rng(1).integers(5, size=(6, 9)).astype(np.uint8)


def encode(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def reader_of(
    *examples: dict[str, Any], names: tuple[str | None, ...] | None = None
) -> SceneReader:
    survey = SchemaSurvey()
    for example in examples:
        payload = rs.encode_example(example)
        survey.update(payload, np.zeros(1, np.int64), np.array([len(payload)]))
    return SceneReader(survey.finish().features, names)


def scene_of(example: dict[str, Any], names: tuple[str | None, ...] | None = None) -> Scene:
    return reader_of(example, names=names).read(rs.decode_example(rs.encode_example(example)))


SIZE = {"image/height": 6, "image/width": 9}
IMAGES: dict[str, dict[str, Any]] = {
    "canonical": {"image/encoded": encode(PIXELS), "image/format": "png", **SIZE},
    "next to a larger image": {
        "image/encoded": encode(PIXELS),
        "thumbnail": encode(np.tile(PIXELS, (4, 4, 1))),
    },
    "any key": {"photo of the day": encode(PIXELS), "other": b"\xff" * 900},
    "next to a mask": {"a_mask": encode(np.tile(PIXELS, (4, 4, 1))), "photo": encode(PIXELS)},
    "raw, canonical": {
        "image/encoded": PIXELS.tobytes(),
        "image/format": "raw",
        "image/depth": 3,
        "image/dtype": "uint8",
        **SIZE,
    },
    "raw, of a tutorial": {"image_raw": PIXELS.tobytes(), "height": 6, "width": 9, "depth": 3},
    "raw, of another": {"image": PIXELS.tobytes(), "rows": 6, "cols": 9, "channels": 3},
    "raw without depth": {"image_raw": PIXELS.tobytes(), "height": 6, "width": 9},
    "raw, 16 bits": {
        "image/encoded": (PIXELS.astype(np.uint16) * 256 + 77).tobytes(),
        "image/format": "raw",
        "image/depth": 3,
        **SIZE,
    },
    "raw, fractions": {
        "image_raw": (PIXELS.astype(np.float32) / 255).tobytes(),
        "height": 6,
        "width": 9,
        "depth": 3,
    },
    "raw with alpha": {
        "image_raw": np.dstack([PIXELS, MASK]).tobytes(),
        "height": 6,
        "width": 9,
        "depth": 4,
    },
}


@pytest.mark.parametrize("kind", IMAGES)
def test_images(kind: str) -> None:
    pixels = scene_of(IMAGES[kind]).pixels
    assert pixels.dtype == np.uint8
    assert np.abs(pixels.astype(int) - PIXELS).max() <= (kind == "raw, fractions")


def test_grey_becomes_three_channels() -> None:
    scene = scene_of({"image_raw": MASK.tobytes(), "height": 6, "width": 9, "depth": 1})
    assert scene.pixels.tolist() == np.stack([MASK] * 3, -1).tolist()


@pytest.mark.parametrize(
    "features",
    [
        {},
        {"label": 1, "text": "words"},
        {"image_raw": PIXELS.tobytes()},
        {"image_raw": PIXELS.tobytes(), "height": 6},
        {"image": [1, 2, 3], "height": 6, "width": 9},
        {"mask": encode(PIXELS)},
    ],
)
def test_no_images(features: dict[str, Any]) -> None:
    assert reader_of(features).image_key is None


@pytest.mark.parametrize(
    ("example", "word"),
    [
        ({"image/encoded": encode(PIXELS, "JPEG")[:-60]}, "truncated"),
        ({"image/encoded": b"text"}, "unsupported"),
        ({"image/encoded": []}, "no image/encoded"),
        ({"other": 1}, "no image/encoded"),
        ({"image/encoded": b"\xff\x00", "image/format": "raw"}, "height and width"),
        ({"image/encoded": b"\xff\x00", "image/format": "raw", **SIZE}, "2 bytes"),
        (
            {"image/encoded": b"\xff", "image/height": -6, "image/width": 9, "image/format": "raw"},
            "height and width",
        ),
    ],
)
def test_images_that_cannot_be_shown(example: dict[str, Any], word: str) -> None:
    reader = reader_of(IMAGES["canonical"], example)
    assert reader.image_key == "image/encoded"
    with pytest.raises(rs.CorruptDataError, match=word):
        reader.read(rs.decode_example(rs.encode_example(example)))


MASKS: dict[str, dict[str, Any]] = {
    "canonical": {"image/segmentation/class/encoded": encode(MASK)},
    "16 bits": {"image/segmentation/class/encoded": encode(MASK.astype(np.uint16))},
    "raw": {
        "image/segmentation/class/encoded": MASK.astype(np.uint16).tobytes(),
        "image/segmentation/class/format": "raw",
        "image/segmentation/class/dtype": "uint16",
    },
    "of a tutorial": {"mask_raw": MASK.tobytes(), "height": 6, "width": 9},
    "any key": {"my_mask": encode(MASK)},
}


@pytest.mark.parametrize("kind", MASKS)
def test_masks(kind: str) -> None:
    image = {"image/encoded": encode(PIXELS), "image/format": "png", **SIZE}
    if kind == "of a tutorial":
        image = {"image_raw": PIXELS.tobytes()}
    mask = scene_of(image | MASKS[kind]).mask
    assert mask is not None
    assert mask.tolist() == MASK.tolist()


def test_coloured_masks_show_their_areas() -> None:
    colours = np.array([(0, 0, 0), (0, 9, 0), (200, 0, 0), (200, 0, 1), (255, 255, 255)], np.uint8)
    example = {"image/encoded": encode(PIXELS), "mask": encode(colours[MASK])}
    mask = scene_of(example).mask
    assert mask is not None
    assert mask.tolist() == MASK.tolist()


def test_instance_masks_are_merged() -> None:
    first, second = np.zeros((6, 9), np.uint8), np.zeros((6, 9), np.uint8)
    first[:4], second[3:] = 1, 255
    example = {
        "image/encoded": encode(PIXELS),
        "image/object/mask": [encode(first), encode(second)],
        **{f"image/object/bbox/{side}": [0.0, 0.5] for side in ("ymin", "xmin", "ymax", "xmax")},
        "image/object/class/label": [4, 9],
    }
    mask = scene_of(example).mask
    assert mask is not None
    assert mask[:, 0].tolist() == [4, 4, 4, 9, 9, 9]


def boxes(**sides: list[float]) -> dict[str, Any]:
    return {"image/encoded": encode(PIXELS)} | {
        f"image/object/bbox/{side}": np.array(values, np.float32) for side, values in sides.items()
    }


def test_boxes_with_their_names() -> None:
    example = boxes(ymin=[0, 0.5], xmin=[0.25, 0], ymax=[0.5, 1], xmax=[0.75, 1])
    example["image/object/class/label"] = [2, 1]
    scene = scene_of(example, (None, "dog", "cat"))
    assert scene.boxes == [(0, 0.25, 0.5, 0.75), (0.5, 0, 1, 1)]
    assert scene.box_labels == [2, 1]
    assert scene.box_texts == ["cat", "dog"]
    assert scene_of(example).box_texts == ["2", "1"]
    example["image/object/class/text"] = ["Katze\n", b"\xff"]
    assert scene_of(example, (None, "dog", "cat")).box_texts == ["Katze·", "\ufffd"]


def test_boxes_in_pixels_become_fractions() -> None:
    scene = scene_of(boxes(ymin=[0, 3], xmin=[0, 3], ymax=[6, 6], xmax=[9, 9]))
    assert scene.boxes == [(0, 0, 1, 1), (0.5, pytest.approx(1 / 3), 1, 1)]
    assert scene.box_texts == ["", ""]


def test_invalid_boxes_are_skipped() -> None:
    example = boxes(ymin=[0, np.nan], xmin=[0, 0], ymax=[1, 1], xmax=[1, np.inf])
    example["image/object/class/label"] = [b"1", b"2"]
    example["image/object/class/text"] = [3, 4]
    scene = scene_of(example)
    assert scene.boxes == [(0, 0, 1, 1)]
    assert scene_of(boxes(ymin=[], xmin=[], ymax=[], xmax=[])).boxes == []
    words = {f"image/object/bbox/{side}": ["a"] for side in ("ymin", "xmin", "ymax", "xmax")}
    assert scene_of({"image/encoded": encode(PIXELS), **words}).boxes == []


def test_class_and_name() -> None:
    image = {"image/encoded": encode(PIXELS)}
    both = image | {"image/class/label": 1, "image/class/text": "rose", "image/filename": "a/b"}
    scene = scene_of(both, ("x", "y"))
    assert (scene.label, scene.text) == (1, "rose")
    assert reader_of(both).name(rs.decode_example(rs.encode_example(both))) == "a/b"
    assert scene_of(image | {"label": 1}, ("x", "y")).text == "y"
    assert scene_of(image | {"label": 5}, ("x", "y")).text == "5"
    assert scene_of(image | {"label": -1}, ("x", "y")).text == "-1"
    assert scene_of(image).text == ""
    assert scene_of(image | {"label": [1, 2]}).label is None
    several = {"image/class/label": [1, 0, 2], "image/class/text": ["rose", "tulip", "a\nb"]}
    for shares, text in (([1.0, 0, 0], "rose"), ([1.0, 0, 0.5], "rose, a·b"), ([0.0] * 3, "")):
        scene = scene_of(image | several | {"image/class/confidence": shares})
        assert (scene.label, scene.text) == (None, text)
    assert scene_of(image | several).text == "rose, tulip, a·b"


POINTS = {"x": [0.25, 0.5, 0.75, 1], "y": [0, 0.5, 0.5, 1], "visibility": [2, 1, 0, 2]}
CORNERS = {"x": [0.0, 1, 1, 0] * 2, "y": [0.0, 0, 2, 2] * 2}


@pytest.mark.parametrize(
    ("points", "corners", "kept"),
    [
        (POINTS, CORNERS, (True, True)),
        (POINTS, {}, (True, False)),
        ({}, CORNERS, (False, True)),
        (POINTS | {"y": [0.5]}, CORNERS | {"x": [0.5] * 4}, (False, False)),
        ({key: values[:3] for key, values in POINTS.items()}, {}, (False, False)),
        (POINTS | {"x": ["a"] * 4}, {key: values[:4] for key, values in CORNERS.items()}, (0, 0)),
    ],
)
def test_keypoints_and_corners_have_the_rows_of_boxes(points: Any, corners: Any, kept: Any) -> None:
    """Those of boxes that are not drawn are left out; lists of other lengths are not drawn."""
    example = {
        **{f"image/object/keypoint/{key}": values for key, values in points.items()},
        **{f"image/object/corner/{key}": values for key, values in corners.items()},
        **{f"image/object/bbox/{side}": [np.nan, 0.5] for side in ("ymin", "xmin")},
        **{f"image/object/bbox/{side}": [1.0, 1.0] for side in ("ymax", "xmax")},
    }
    scene = scene_of(IMAGES["canonical"] | example)
    assert scene.boxes == [(0.5, 0.5, 1, 1)]
    found = [None if rows is None else rows.tolist() for rows in (scene.points, scene.corners)]
    assert found[0] == ([[[0.75, 0.5, 0], [1, 1, 2]]] if kept[0] else None)
    assert found[1] == ([[[0, 0], [1, 0], [1, 2], [0, 2]]] if kept[1] else None)
    assert draw_scene(scene, 64).shape == (42, 63, 3)


def test_keypoints_in_pixels_and_beyond() -> None:
    sides = {f"image/object/bbox/{side}": [4.0] for side in ("ymin", "xmin", "ymax", "xmax")}
    points = {"x": [4.5, 9e9, np.nan], "y": [3.0, -np.inf, 1], "visibility": [2, 2, 1]}
    more = {f"image/object/keypoint/{key}": values for key, values in points.items()}
    scene = scene_of(IMAGES["canonical"] | sides | more)
    assert scene.points is not None
    assert scene.points.tolist() == [[[0.5, 0.5, 2], [0, 0, 0], [0, 0, 0]]]
