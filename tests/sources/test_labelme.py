"""LabelMe: shapes, rotated rectangles, masks, images inside files, and what is wrong in them."""

from __future__ import annotations

import base64
import itertools
import shlex
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

import recordsmith as rs
from recordsmith.sources import (
    LabelMe,
    Source,
)

from ..raising import places, raises
from .annotated import (
    BOX,
    STAIRS,
    TILTED,
    UPRIGHT,
    boxes_of,
    corners_of,
    image,
    labelme,
    mask_of,
    overlap,
    png_text,
    problems_of,
    read,
    shape_of,
    write,
)
from .source_contract import SourceContract, left_out


class TestContractOfLabelMe(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        for name in "abcd":
            labelme(folder, shape_of((1, 1), (9, 1), (9, 9)), name=name)
        return LabelMe(folder, object_masks="class")


def test_shapes_of_labelme(tmp_path: Path) -> None:
    shapes = (
        shape_of((4, 5), (14, 5), (14, 15), (4, 15)),
        shape_of((30, 18), (20, 2), kind="rectangle", label="Dog"),
        shape_of((30, 10), (30, 15), kind="circle"),
        shape_of((1, 1), (2, 2), kind="line"),
    )
    listing = LabelMe(labelme(tmp_path, *shapes), object_masks="instance").list_samples()
    assert listing.class_names == (None, "Dog", "cat")
    features, notes = read(listing)
    assert boxes_of(features) == [BOX, (0.1, 0.5, 0.9, 0.75), (0.25, 0.625, 0.75, 0.875)]
    assert [where for _, where in notes] == ["a.json, shape 4: line"]
    polygon, rectangle, circle = map(mask_of, features["image/object/mask"])
    assert np.argwhere(polygon)[[0, -1]].tolist() == [[5, 4], [14, 13]]
    assert polygon.sum() == 100
    assert rectangle[2:18, 20:30].all()
    assert rectangle.sum() == 160
    drawn = Image.new("1", (40, 20))
    ImageDraw.Draw(drawn).ellipse((25, 5, 35, 15), fill=1)
    assert (np.array(drawn) != circle).mean() < 0.05


@pytest.mark.parametrize("corners", [*itertools.permutations(UPRIGHT)])
def test_rectangles_of_four_points(tmp_path: Path, corners: Any) -> None:
    root = labelme(tmp_path, shape_of(*corners, kind="rectangle"))
    features, notes = read(LabelMe(root, object_masks="instance"))
    assert boxes_of(features) == [BOX]
    assert notes == read(LabelMe(root))[1] == []
    expected = np.zeros((20, 40), np.uint8)
    expected[5:15, 4:14] = 1
    assert np.array_equal(mask_of(features["image/object/mask"][0]), expected)


@pytest.mark.parametrize("kind", ["rotation", "oriented_rectangle", "rectangle"])
@pytest.mark.parametrize("step", [1, -1])
def test_rotated_rectangles_of_labelme(tmp_path: Path, kind: str, step: int) -> None:
    """Corners are clockwise, from the first one; those of upright rectangles are of the box."""
    shapes = (
        shape_of(*TILTED[::step], kind=kind),
        shape_of(*UPRIGHT[::2], kind="rectangle"),
    )
    root = labelme(tmp_path, *shapes)
    features, notes = read(LabelMe(root))
    assert (boxes_of(features), notes) == ([(0.1, 0.375, 0.85, 0.75), BOX], [])
    first = TILTED if step == 1 else [TILTED[3], *TILTED[:3]]
    shares = np.divide([first, UPRIGHT], (40, 20)).reshape(2, 8)
    assert corners_of(features) == shares.tolist()
    features, notes = read(LabelMe(root, object_masks="instance"))
    assert notes == []
    assert overlap(mask_of(features["image/object/mask"][0]), TILTED) > 0.9


@pytest.mark.parametrize(
    ("kind", "points", "is_rotated"),
    [
        ("rectangle", UPRIGHT, False),
        ("rotation", [*UPRIGHT[1:], UPRIGHT[0]], True),  # by a quarter
        ("polygon", TILTED, False),
        ("rectangle", [(4, 5), (14, 5), (14, 15), (4, 5)], True),
        ("rectangle", [(4, 5), (14, 5), (14, 15), (4, 12)], True),
    ],
)
def test_which_shapes_have_corners(
    tmp_path: Path, kind: str, points: Any, is_rotated: bool
) -> None:
    features, _ = read(LabelMe(labelme(tmp_path, shape_of(*points, kind=kind))))
    assert ("image/object/corner/x" in features) == is_rotated
    if is_rotated:
        assert boxes_of(features) == [BOX]
        assert corners_of(features) == [np.divide(points, (40, 20)).ravel().tolist()]


@pytest.mark.parametrize(
    "png",
    [png_text(STAIRS), png_text(STAIRS * np.uint8(255)), png_text(STAIRS * np.uint8(1), "P")],
)
def test_masks_of_labelme(tmp_path: Path, png: str) -> None:
    """LabelMe fills the rows 5 to 10 and the columns 30 to 38 with the PNG."""
    shape = shape_of((30, 5), (38, 10), kind="mask") | {"mask": png}
    root = labelme(tmp_path, shape)
    expected = np.zeros((20, 40), bool)
    expected[5:11, 30:39] = STAIRS
    for masks, key in (
        ("instance", "image/object/mask"),
        ("class", "image/segmentation/class/encoded"),
    ):
        features, _ = read(LabelMe(root, object_masks=masks))
        (data,) = [features[key]] if masks == "class" else features[key]
        assert np.array_equal(mask_of(data) == 1, expected)
        assert boxes_of(features) == [(0.25, 0.75, 0.55, 0.975)]
    ((what, where),) = read(LabelMe(root))[1]
    assert ("outlines" in what, where) == (True, "a.json, shape 1 (cat)")


def _header(width: int, height: int) -> str:
    """A PNG that is only its header."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk
    return base64.b64encode(data + struct.pack(">I", zlib.crc32(chunk))).decode()


@pytest.mark.parametrize(
    ("start", "png"),
    [
        ((32, 5), png_text(STAIRS)),
        ((30, 15), png_text(STAIRS)),
        ((-10, 5), png_text(STAIRS)),
        ((30, -10), png_text(STAIRS)),
        ((1e300, 5), png_text(STAIRS)),
        ((30, 5), _header(100_000, 100_000)),
        ((30, 5), _header(9, 6)),
        ((30, 5), "*"),
        ((30, 5), "iVBO"),
        ((30, 5), png_text(np.zeros((6, 9, 3), np.uint8))),
        ((30, 5), None),
        ((30, 5), [1]),
    ],
)
def test_wrong_masks_of_labelme(tmp_path: Path, start: Any, png: Any) -> None:
    good = shape_of((4, 5), (14, 15), kind="rectangle")
    bad = shape_of((30, 5), (38, 10), kind="mask") | {"mask": png}
    bad["points"][0] = list(start)
    root = labelme(tmp_path, good, bad)
    assert places(problems_of(LabelMe(root, object_masks="class"))) == ["a.json, shape 2 (cat)"]
    features, _ = read(LabelMe(root, object_masks="class", boxes="drop"))
    assert boxes_of(features) == [BOX]


def test_images_inside_labelme_files(tmp_path: Path) -> None:
    """The remedy is a command that writes them."""
    encoded = image(tmp_path / "stored/x.jpg")
    for name in "ab":
        data = base64.b64encode(encoded).decode()
        labelme(tmp_path / "in", shape_of(*UPRIGHT), name=name, imageData=data)
        (tmp_path / f"in/{name}.jpg").unlink()
    with raises(rs.SourceError, path="a.json", problem_count=2) as caught:
        LabelMe(tmp_path / "in").list_samples()
    assert caught.value.problems == ("a.json", "b.json")
    (tmp_path / "in/b.json").rename(tmp_path / "b.json")
    with raises(rs.SourceError, path="a.json", match="'a.jpg' not found"):
        read(LabelMe(tmp_path / "in"))  # one fails alone
    (tmp_path / "b.json").rename(tmp_path / "in/b.json")
    command = shlex.split(caught.value.remedy.partition(": ")[2])
    assert command[:2] == ["python", "-c"]
    subprocess.run([sys.executable, *command[1:]], cwd=tmp_path / "in", check=True)
    for number in range(2):
        features, _ = read(LabelMe(tmp_path / "in"), number)
        assert features["image/encoded"] == encoded
        assert boxes_of(features) == [BOX]


@pytest.mark.parametrize("label", ["a\rb", "a\nb", "\ud800"])
def test_labels_that_cannot_be_class_names(tmp_path: Path, label: str) -> None:
    root = labelme(tmp_path / "in", shape_of((1, 2), (3, 4), (5, 6), label=label))
    with pytest.raises(rs.SourceError, match=r"invalid class name|invalid JSON"):
        rs.pack(LabelMe(root), tmp_path / "out")


def test_classes_of_labelme_in_a_file(tmp_path: Path) -> None:
    write(tmp_path / "class_names.txt", "__ignore__\n_background_\nDog\ncat\nfox\n")
    root = labelme(tmp_path, shape_of((1, 1), (9, 1), (9, 9)))
    ((what, where),) = read(LabelMe(root).list_samples())[1]
    assert (what.startswith("outlines"), where) == (True, "a.json, shape 1 (cat)")
    listing = LabelMe(root).list_samples()
    assert listing.class_names == (None, "Dog", "cat", "fox")
    assert read(listing)[0]["image/object/class/label"] == [2]
    labelme(tmp_path, shape_of((1, 1), (9, 1), (9, 9), label="Cat"))
    (problem,) = problems_of(LabelMe(root).list_samples())
    assert "class_names.txt" in problem
    assert "known classes: Dog, cat and fox" in problem


@pytest.mark.parametrize(
    "shape",
    [
        7,
        shape_of((1, 1)),
        shape_of((1, 1), (float("nan"), 2), (3, 3)),
        shape_of((1, 1), kind="circle"),
        shape_of((1, 1), (2, 2), kind="star"),
        shape_of((1, 1), (9, 1), (9, 9), label=None),
        shape_of((1, 1), (99, 1), (9, 9)),
        {"label": "cat"},
        {"label": "cat", "points": [[1, 2, 3]]},
    ],
)
def test_wrong_shapes(tmp_path: Path, shape: Any) -> None:
    good = shape_of((4, 5), (14, 15), kind="rectangle")
    root = labelme(tmp_path, good, shape)
    (problem,) = problems_of(LabelMe(root).list_samples())
    assert problem.startswith("a.json, shape 2")
    features, notes = read(LabelMe(root, boxes="drop").list_samples())
    assert boxes_of(features) == [BOX]
    dropped = [where for what, where in notes if "dropped" in what]
    assert places(dropped)[0].startswith("a.json, shape 2")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"shapes": [}', "\x00"])
def test_broken_labelme_files_fail_alone(tmp_path: Path, text: str) -> None:
    root = labelme(tmp_path, shape_of((4, 5), (14, 5), (14, 15)))
    write(root / "b.json", text)
    write(root / "settings.json", '{"x": 1}')
    listing = LabelMe(root).list_samples()
    assert [sample.name for sample in listing.samples] == ["a.jpg", "b.json"]
    assert left_out(listing) == {"not images": ["settings.json"]}
    with raises(rs.SourceError, path="b.json"):
        listing.reader.read(listing.samples[1])
