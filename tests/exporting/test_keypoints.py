"""Keypoints exported to COCO and YOLO: equal when they are packed again, and to other readers."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import KeypointClass
from recordsmith.stores import Location, MemoryStore

from ..keypoints import random_coco, set_keypoint_classes
from .test_round_trips import examples_in

POINT = "image/object/keypoint/"
COUNT = 8  # random datasets
EXTRA = {f"image/object/{key}" for key in ("id", "area", "is_crowd")}
SLOW = pytest.param(300, marks=pytest.mark.slow)


def exported(folder: Path, seed: int, format: str) -> tuple[Any, Any, rs.ExportReport]:
    """A random document, its packed dataset, and the report of its export to folder/out."""
    document = random_coco(folder / "source", seed)
    packed = Location(MemoryStore(), "packed")
    rs.pack(rs.Coco(folder / "source"), packed, shuffle=False)
    return document, packed, rs.export(packed, folder / "out", format)


def points_of(document: Any) -> Counter[Any]:
    """The keypoints of annotations with any, as shares that are float32, by image and class."""
    sizes = {item["id"]: (item["width"], item["height"], 1) for item in document["images"]}
    files = {item["id"]: item["file_name"] for item in document["images"]}
    names = {item["id"]: item["name"] for item in document["categories"]}
    found: Counter[Any] = Counter()
    for item in document["annotations"]:
        points = np.array(item.get("keypoints", []), np.float64).reshape(-1, 3)
        if points[:, 2].any():
            shares = (points / sizes[item["image_id"]]).astype(np.float32)
            assert item["num_keypoints"] == np.count_nonzero(points[:, 2])
            owner = files[item["image_id"]], names[item["category_id"]]
            found[(*owner, tuple(shares.ravel().tolist()))] += 1
    return found


def read_coco(path: Path) -> Any:
    """Read a file by pycocotools where it is installed."""
    if find_spec("pycocotools") is None:
        return json.loads(path.read_text())
    from pycocotools.coco import COCO

    with redirect_stdout(None):
        coco = COCO(path)
    annotations = [item for number in coco.getImgIds() for item in coco.imgToAnns[number]]
    known = {"images": coco.loadImgs(coco.getImgIds()), "annotations": annotations}
    return known | {"categories": coco.loadCats(coco.getCatIds())}


@pytest.mark.parametrize("count", [COUNT, SLOW])
def test_coco(count: int) -> None:
    for seed in range(count):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            document, packed, report = exported(folder, seed, "coco")
            assert (report.problems, report.dropped_features) == ([], {})
            written = read_coco(folder / "out/annotations/instances_train.json")
            assert points_of(written) == points_of(document)
            keys = ("name", "keypoints", "skeleton")
            categories = [
                {tuple(map(repr, map(known.get, keys))) for known in one["categories"]}
                for one in (document, written)
            ]
            assert categories[0] == categories[1]
            again = Location(MemoryStore(), "again")
            rs.pack(rs.Coco(folder / "out"), again, shuffle=False)
            assert examples_in(again) == examples_in(packed)
            assert rs.open(again).keypoint_classes == rs.open(packed).keypoint_classes


@pytest.mark.parametrize("count", [COUNT, SLOW])
def test_yolo(count: int) -> None:
    """As plain Python reads it: every row has kpt_shape points, and float32 is restored."""
    yaml = pytest.importorskip("yaml")
    for seed in range(count):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _, packed, report = exported(folder, seed, "yolo")
            dataset = rs.open(packed)
            data = yaml.safe_load((folder / "out/data.yaml").read_text())
            most = max(len(known.names) for known in dataset.keypoint_classes.values())
            assert data["kpt_shape"] == [most, 3]
            assert data["kpt_names"] == {
                label - 1: [*known.names] for label, known in dataset.keypoint_classes.items()
            }
            for example in dataset:
                stem = Path(example["image/filename"][0].decode()).stem
                text = (folder / f"out/labels/train/{stem}.txt").read_text()
                rows = np.array(text.split(), np.float64).reshape(-1, 5 + 3 * most)
                points = rows[:, 5:].reshape(-1, 3)
                for axis, key in enumerate(("x", "y", "visibility")):
                    kept = example[POINT + key]
                    assert points[:, axis].astype(kept.dtype).tolist() == kept.tolist()
            assert {*report.dropped_features} <= EXTRA


FLIPS: list[tuple[str, list[Any], list[int] | None]] = [  # names, pairs of classes, flip_idx
    ("abcd", [[(0, 1), (3, 2)]], [1, 0, 3, 2]),
    ("abcd", [[]], [0, 1, 2, 3]),
    ("abcd", [None], None),
    ("abcd", [[(0, 1)], [(0, 1)]], [1, 0, 2, 3]),
    ("abcd", [[(0, 1)], []], None),
    ("a,lEye,rEye,b", [None], [0, 2, 1, 3]),
]


@pytest.mark.parametrize(("names", "pairs", "expected"), FLIPS)
def test_flip_idx(
    write: Any, image: Any, box_features: Any, tmp_path: Path, names: str, pairs: Any, expected: Any
) -> None:
    more = box_features((0, 0, 1, 1)) | {f"{POINT}{axis}": [0.5] * 4 for axis in "xy"}
    folder = write(train=[image("a.jpg", more=more | {f"{POINT}visibility": [2, 1, 2, 1]})])
    rs.reshard(folder, tmp_path / "new")
    points = tuple(names.split(",") if "," in names else names)
    known = {n: KeypointClass(points, (), pair) for n, pair in enumerate(pairs, 1)}
    set_keypoint_classes(tmp_path / "new", known)
    report = rs.export(tmp_path / "new", tmp_path / "out", "yolo")
    found = [
        line for line in (tmp_path / "out/data.yaml").read_text().splitlines() if "flip" in line
    ]
    assert found == ([] if expected is None else [f"flip_idx: {expected}"])
    assert len(report.problems) == (expected is None)


def test_refused(write: Any, image: Any, box_features: Any, tmp_path: Path) -> None:
    """Records whose objects have other keypoints than the others, or not as many values each."""
    boxes = box_features((0, 0, 1, 1), (0, 0, 1, 0.5))
    points = {"x": [0.5] * 4, "y": [0.25] * 4, "visibility": [2, 1, 2, 0]}
    cases: dict[str, dict[str, Any]] = {
        "good": points,
        "fewer": {key: values[:2] for key, values in points.items()},
        "uneven": {key: values[:3] for key, values in points.items()},
        "unequal": points | {"y": [0.25] * 2},
        "infinite": points | {"x": [np.inf] * 4},
    }
    folder = write(
        train=[
            image(f"{name}.jpg", more=boxes | {POINT + key: case[key] for key in case})
            for name, case in cases.items()
        ]
    )
    for name, skipped in (("yolo", [1, 2, 3, 4]), ("coco", [2, 3, 4])):
        report = rs.export(folder, tmp_path / name, name, skip_errors=True)
        assert report.skipped_positions == skipped


@pytest.mark.parametrize("format", ["webdataset", "huggingface", "parquet"])
def test_names_are_lost(tmp_path: Path, format: str) -> None:
    _, _, report = exported(tmp_path, 0, format)
    assert [problem.count("names, skeletons") for problem in report.problems] == [1]
