"""Keypoints and corners of rotated boxes: placed on the stored image, checked, and described."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import KeypointClass
from recordsmith.image import apply_orientation, inverse_orientation
from recordsmith.sources import Coco

from .annotated import coco, image, problems_of, read

NAMES = ("nose", "left eye", "right eye")


def _with_points(
    path: Path, images: dict[str, list[Any]], categories: dict[int, Any], **options: Any
) -> None:
    """A COCO file; `categories` are dicts without their id."""
    coco(path, images, {number: known["name"] for number, known in categories.items()}, **options)
    document = json.loads(path.read_text())
    document["categories"] = [{"id": key, **known} for key, known in categories.items()]
    path.write_text(json.dumps(document))


def points_of(features: Any) -> list[list[tuple[float, float, int]]]:
    """x, y, visibility of the keypoints of each object."""
    keys = ("x", "y", "visibility")
    x, y, visible = (np.asarray(features[f"image/object/keypoint/{key}"]) for key in keys)
    count = len(features["image/object/class/label"])
    flat = [
        (round(a, 6), round(b, 6), v)
        for a, b, v in zip(x.tolist(), y.tolist(), visible.tolist(), strict=True)
    ]
    per = len(flat) // count if count else 0
    return [flat[number * per : (number + 1) * per] for number in range(count)]


PERSON = {"name": "person", "keypoints": NAMES, "skeleton": [[1, 2], [3, 1], [9, 1]]}
HAND = {"name": "hand", "keypoints": ["thumb"]}
ONE = [(0, 0, 0), (0.2, 0.3, 1), (0, 0, 0)]


def test_keypoints_of_coco(tmp_path: Path) -> None:
    """Classes with fewer points are filled up, objects without points and images without objects
    too; all that is not labelled is at 0, 0."""
    for name in ("a.jpg", "b.jpg"):
        image(tmp_path / name)
    items = [
        {"category_id": 1, "bbox": [4, 5, 10, 10], "keypoints": [8, 6, 2, 12, 10, 1, 7, 7, 0]},
        {"category_id": 2, "bbox": [4, 5, 10, 10], "keypoints": [[40, 20, 2]]},
        {"category_id": 3, "bbox": [4, 5, 10, 10]},
        {"category_id": 1, "bbox": [4, 5, 10, 10], "keypoints": [], "num_keypoints": 0},
    ]
    categories = {1: PERSON, 2: HAND, 3: {"name": "cat"}}
    _with_points(tmp_path / "x.json", {"a.jpg": items, "b.jpg": []}, categories)
    listing = Coco(tmp_path).list_samples()
    assert listing.keypoint_classes == {
        1: KeypointClass(NAMES, ((0, 1), (2, 0))),
        2: KeypointClass(("thumb",)),
    }
    features, notes = read(listing)
    none = [(0, 0, 0)] * 3
    assert points_of(features) == [
        [(0.2, 0.3, 2), (0.3, 0.5, 1), (0, 0, 0)],
        [(1, 1, 2), (0, 0, 0), (0, 0, 0)],
        none,
        none,
    ]
    assert (list(features["image/object/keypoint/num"]), notes) == ([2, 1, 0, 0], [])
    assert points_of(read(listing, 1)[0]) == []
    rs.pack(Coco(tmp_path), tmp_path.parent / f"{tmp_path.name} packed")
    dataset = rs.open(tmp_path.parent / f"{tmp_path.name} packed")
    assert dataset.keypoint_classes == listing.keypoint_classes
    assert {len(dataset[n]["image/object/keypoint/x"]) for n in (0, 1)} == {0, 12}


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([8, 6, 2, 12, 10, 1, 0, 0, 0], [8, 6, 12, 10]),
        ([40, 6, 2, 0, 0, 0, 0, 0, 0], [39.5, 5.5, 40, 6.5]),
        ([8, 6, 2, 8, 9, 1, 0, 0, 0], [7.5, 6, 8.5, 9]),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0], "no keypoint is labelled"),
        ([8, 6, 2, 12, 10, 1, 7], "7 numbers of keypoints"),
        (["x", 6, 2, 12, 10, 1, 1, 1, 1], "keypoint 'nose' at nan"),
        ([], "invalid bbox None"),
    ],
)
def test_keypoints_without_a_box(tmp_path: Path, points: Any, expected: Any) -> None:
    """They get the box around those that are labelled."""
    image(tmp_path / "a.jpg")
    item = {"category_id": 1, "keypoints": points}
    _with_points(tmp_path / "x.json", {"a.jpg": [item]}, {1: PERSON})
    if isinstance(expected, str):
        (found,) = problems_of(Coco(tmp_path))
        assert expected in found
    else:
        features = read(Coco(tmp_path))[0]
        sides = [features[f"image/object/bbox/{s}"][0] for s in ("xmin", "ymin", "xmax", "ymax")]
        assert np.allclose(np.multiply(sides, (40, 20, 40, 20)), expected)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_points_and_corners_follow_the_orientation(tmp_path: Path, orientation: int) -> None:
    """Points drawn on the upright image are where its pixels are stored."""
    image(tmp_path / "a.jpg", (8, 8), orientation)
    rng = random.Random(orientation)
    pixels = np.zeros((8, 8), np.uint8)
    x, y = rng.randrange(8), rng.randrange(8)
    pixels[y, x] = 1
    (row,), (column,) = apply_orientation(pixels, inverse_orientation(orientation)).nonzero()
    item = {
        "category_id": 1,
        "bbox": [0, 0, 8, 8],
        "keypoints": [x + 0.5, y + 0.5, 2],
        "attributes": {"rotation": 20.0},
    }
    _with_points(tmp_path / "x.json", {"a.jpg": [item]}, {1: HAND}, size=(8, 8))
    features, _ = read(Coco(tmp_path, drawn="upright"))
    assert points_of(features) == [[((column + 0.5) / 8, (row + 0.5) / 8, 2)]]
    corners = np.stack([features[f"image/object/corner/{side}"] for side in "xy"], axis=-1)
    edges = np.roll(corners, -1, axis=0) - corners
    turns = edges[:, 0] * np.roll(edges[:, 1], -1) - edges[:, 1] * np.roll(edges[:, 0], -1)
    assert (turns > 0).all()  # clockwise, as y goes down
    assert np.allclose(np.linalg.norm(edges, axis=1), 1)
    assert (corners.min() < -0.05, corners.max() > 1.05) == (True, True)
    assert features["image/object/bbox/xmax"] == [1]  # the upright box is clipped


def test_the_corners_of_a_rotated_box(tmp_path: Path) -> None:
    """From the unturned top left clockwise; an upright box has its own."""
    image(tmp_path / "a.jpg")
    turned = {"category_id": 1, "bbox": [10, 6, 8, 4], "attributes": {"rotation": 90}}
    _with_points(tmp_path / "x.json", {"a.jpg": [turned, {**turned, "attributes": {}}]}, {1: HAND})
    features, notes = read(Coco(tmp_path))
    x, y = (np.reshape(features[f"image/object/corner/{side}"], (2, 4)) for side in "xy")
    assert np.allclose(x * 40, [[16, 16, 12, 12], [10, 18, 18, 10]])
    assert np.allclose(y * 20, [[4, 12, 12, 4], [6, 6, 10, 10]])
    assert (notes, "image/object/keypoint/x" in features) == ([], False)


@pytest.mark.parametrize("points", [[[8, 6, 2], [8, 6, 777], [8, 6, 2]], [8, 6, 777] * 3])
def test_keypoints_with_a_number_beyond_floats(tmp_path: Path, points: Any) -> None:
    image(tmp_path / "a.jpg")
    item = {"category_id": 1, "bbox": [4, 5, 10, 10], "keypoints": points}
    path = tmp_path / "x.json"
    _with_points(path, {"a.jpg": [item]}, {1: PERSON})
    path.write_text(path.read_text().replace("777", "1e400"))
    (found,) = problems_of(Coco(tmp_path))
    assert found.startswith("x.json, annotation 1")


@pytest.mark.parametrize(
    ("points", "problem", "clipped"),
    [
        ([50, 5, 2, 8, 6, 1, 0, 0, 0], "keypoint 'nose' at 50, 5 is outside", ONE),
        ([8, 6, 3, 8, 6, 1, 0, 0, 0], "keypoint 'nose' has visibility 3", ONE),
        ([8, None, 2, 8, 6, 1, 0, 0, 0], "keypoint 'nose' at 8, nan", ONE),
        ([8, 6, None, 0, 0, 0, 0, 0, 0], "keypoint 'nose' has visibility nan", [(0, 0, 0)] * 3),
        ([8, 6, 2], "1 keypoint; expected 3", None),
        ([8, 6, 2, 8], "4 numbers of keypoints", None),
        ({"a": 1}, "invalid keypoints", None),
        ([[8, 6, 2]], "1 keypoint; expected 3", None),
        ([[8, 6], [8, 6], [8, 6]], "invalid keypoints", None),
    ],
)
def test_invalid_keypoints(tmp_path: Path, points: Any, problem: str, clipped: Any) -> None:
    image(tmp_path / "a.jpg")
    item = {"category_id": 1, "bbox": [4, 5, 10, 10], "keypoints": points}
    good = item | {"keypoints": [0, 0, 0] * 3}
    _with_points(tmp_path / "x.json", {"a.jpg": [good, item]}, {1: PERSON})
    (found,) = problems_of(Coco(tmp_path))
    assert found.startswith("x.json, annotation 2")
    assert problem in found
    dropped, notes = read(Coco(tmp_path, boxes="drop"))
    assert (len(points_of(dropped)), len(notes)) == (1, 1)
    fixed, notes = read(Coco(tmp_path, boxes="clip"))
    assert points_of(fixed)[1:] == ([] if clipped is None else [clipped])
    assert len(notes) == 1


def test_files_with_other_keypoints_are_refused(tmp_path: Path) -> None:
    for split, known in (("train", PERSON), ("val", {**PERSON, "keypoints": NAMES[::-1]})):
        image(tmp_path / split / f"{split}.jpg")
        item = {"category_id": 1, "bbox": [4, 5, 10, 10], "keypoints": [0, 0, 0] * 3}
        path = tmp_path / f"annotations/instances_{split}.json"
        _with_points(path, {f"{split}.jpg": [item]}, {1: known})
    with pytest.raises(rs.SourceError, match="'person' has other keypoints") as caught:
        Coco(tmp_path).list_samples()
    assert caught.value.path == "annotations/instances_val.json"
