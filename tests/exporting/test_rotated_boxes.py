"""Corners of rotated boxes in files of DOTA and YOLO-OBB, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import recordsmith as rs
from recordsmith.exporting.boxes import inner_rectangle
from recordsmith.stores import Location, MemoryStore

from ..raising import raises
from .test_round_trips import examples_in

X, Y = (f"image/object/corner/{axis}" for axis in "xy")
KINDS = {X: "float", Y: "float"}
NAMES = ("cat", "Dog", "läufer")


def _objects(quads: Any, labels: Any = None, difficult: Any = None) -> dict[str, Any]:
    """The features of objects with these corners, (n, 4, 2), in the box around them."""
    quads = np.asarray(quads, np.float32).reshape(-1, 4, 2)
    labels = [1] * len(quads) if labels is None else labels
    low, high = np.clip([quads.min(axis=1), quads.max(axis=1)], 0, 1)
    sides = {"xmin": low[:, 0], "ymin": low[:, 1], "xmax": high[:, 0], "ymax": high[:, 1]}
    return {
        **{f"image/object/bbox/{side}": values for side, values in sides.items()},
        "image/object/class/label": labels,
        "image/object/class/text": [NAMES[label - 1] for label in labels],
        X: quads[:, :, 0].ravel(),
        Y: quads[:, :, 1].ravel(),
        **({} if difficult is None else {"image/object/difficult": difficult}),
    }


SOURCE_ID = ("image/source_id",)  # the records have none
QUAD = (0.2, 0.1, 0.4, 0.2, 0.35, 0.6, 0.15, 0.5)
UPRIGHT = [(0.25, 0.5, 0.75, 1.0)]


def test_files_of_dota(
    write: Any, image: Any, box_features: Any, tmp_path: Path, files: Any
) -> None:
    wide = (-0.25, 0.5, 0.5, -0.125, 1.25, 0.5, 0.5, 1.125)
    more = _objects([QUAD, wide], [1, 2], [0, 2])
    spaced = box_features(*UPRIGHT, label=3, name="large  vehicle")
    source = write(
        train=[image("a.jpg", width=40, height=20, more=more)],
        val=[image("b.jpg", seed=1, width=40, height=20, more=spaced), image("c.jpg", seed=2)],
    )
    report = rs.export(source, tmp_path / "out", "dota")
    assert report.dropped_features == {}
    assert report.problems == ["record 1: the class 'large  vehicle' became 'large-vehicle'"]
    texts = {name: data for name, data in files(tmp_path / "out").items() if "labelTxt" in name}
    assert texts == {
        "train/labelTxt/a.txt": b"8 2 16 4 14 12 6 10 cat 0\n-10 10 20 -2.5 50 10 20 22.5 Dog 2\n",
        "val/labelTxt/b.txt": b"10 10 30 10 30 20 10 20 large-vehicle 0\n",
        "val/labelTxt/c.txt": b"",
    }


@pytest.mark.parametrize(
    ("task", "line", "upright"),
    [
        (None, "0 0.2 0.1 0.4 0.2 0.35 0.6 0.15 0.5", "0 0.5 0.75 0.5 0.5"),
        ("obb", "0 0.2 0.1 0.4 0.2 0.35 0.6 0.15 0.5", "0 0.25 0.5 0.75 0.5 0.75 1 0.25 1"),
        ("detect", "0 0.275 0.35 0.25 0.5", "0 0.5 0.75 0.5 0.5"),
    ],
)
def test_tasks_of_yolo(
    write: Any, image: Any, box_features: Any, tmp_path: Path, files: Any,
    task: Any, line: str, upright: str,
) -> None:  # fmt: skip
    for features, text in ((_objects([QUAD]), line), (box_features(*UPRIGHT), upright)):
        source = write(train=[image("a.jpg", more=features)])
        report = rs.export(source, tmp_path / text, "yolo", yolo_task=task)
        dropped = {X: 1, Y: 1} if task == "detect" and X in features else {}
        assert (report.dropped_features, report.problems) == (dropped, [])
        assert files(tmp_path / text)["labels/train/a.txt"].decode() == f"{text}\n"


@pytest.mark.parametrize("values", [{X: [0.5] * 3}, {Y: [0.5] * 8}, {X: [np.nan] * 4}])
def test_wrong_corners_and_tasks(write: Any, image: Any, tmp_path: Path, values: Any) -> None:
    source = write(train=[image("a.jpg", more=_objects([QUAD]) | values)])
    for name, task in (("dota", "obb"), ("yolo", "segment")):
        with raises(rs.SourceError, match="corner"):
            rs.export(source, tmp_path / "out", name)
        with raises(rs.OptionError, option="yolo_task", value=task):
            rs.export(source, tmp_path / "out", name, yolo_task=task)


def _random_quads(generator: Any, count: int, *, spread: float) -> Any:
    """Rotated rectangles, clockwise, in a square that is `spread` times that of the image."""
    angles, halves = (generator.random((count, 1)) * size for size in (2 * np.pi, np.pi / 2))
    turns = angles + halves * [-1, 1, -1, 1] + [0, 0, np.pi, np.pi]
    radius = generator.random((count, 1, 1)) / 2
    middle = radius + generator.random((count, 1, 2)) * (1 - 2 * radius)
    quads = middle + radius * np.stack([np.cos(turns), np.sin(turns)], axis=2)
    return ((quads - 0.5) * spread + 0.5).astype(np.float32)


def test_what_reaches_over_the_edge_is_clipped(
    write: Any, image: Any, tmp_path: Path, files: Any
) -> None:
    """OpenCV intersects convex polygons, too."""
    quads = _random_quads(np.random.default_rng(3), 300, spread=3)
    square, outside = np.float32([[0, 0], [1, 0], [1, 1], [0, 1]]), 0
    for quad in quads:
        area, part = cv2.intersectConvexConvex(quad, square)
        found = inner_rectangle(quad.ravel().tolist())
        if area < 1e-7:
            assert not found or np.ptp(np.reshape(found, (4, 2)), axis=0).min() < 1e-3
            outside += 1
            continue
        (left, top), (right, bottom) = part[:, 0].min(axis=0), part[:, 0].max(axis=0)
        expected = [left, top, right, top, right, bottom, left, bottom]
        assert found == pytest.approx(expected, abs=1e-5)
    assert 50 < outside < 250
    source = write(KINDS, train=[image("a.jpg", more=_objects(quads))])
    report = rs.export(source, tmp_path / "out", "yolo")
    lines = files(tmp_path / "out")["labels/train/a.txt"].decode().split("\n")[:-1]
    numbers = np.array([line.split()[1:] for line in lines], np.float64)
    assert 0 <= numbers.min() <= numbers.max() <= 1
    is_inside = ((quads >= 0) & (quads <= 1)).all(axis=(1, 2))
    counts = [int(text.split()[0]) for text in report.problems if text[0].isdigit()]
    assert sorted(counts) == sorted([len(quads) - outside - is_inside.sum(), outside])


def _random_dataset(seed: int, image: Any, *, is_dota: bool) -> dict[str, list[dict[str, Any]]]:
    generator = np.random.default_rng(seed)
    splits: dict[str, list[dict[str, Any]]] = {"train": [], "val": []}
    for number in range(4):
        quads = _random_quads(generator, 6, spread=1.8 if is_dota else 1)
        low, high = np.clip([quads.min(axis=1), quads.max(axis=1)], 0, 1)
        is_seen = ((high - low) > 1e-3).all(axis=1) & (np.ptp(quads[:, 1:3], axis=1).max() > 1e-3)
        quads = quads[is_seen][: int(generator.integers(number < 1, 7))]
        labels = generator.integers(1, 4, len(quads)).tolist()
        labels[:3] = [1, 2, 3][: len(labels)]
        difficult = generator.integers(0, 3, len(quads)) if is_dota else None
        size = {"width": int(generator.integers(1, 99)), "height": int(generator.integers(1, 99))}
        more = _objects(quads, labels, difficult)
        splits["val" if number % 2 else "train"].append(
            image(f"{number}.jpg", seed=seed, **size, more=more)
        )
    return splits


@pytest.mark.parametrize("name", ["dota", "yolo"])
@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 1000), marks=pytest.mark.slow)], ids=len
)
def test_round_trips(write: Any, image: Any, name: str, seeds: range) -> None:
    """pack(export(x)) equals x, but for the folders in names."""
    for seed in seeds:
        records = write(KINDS, **_random_dataset(seed, image, is_dota=name == "dota"))
        folder, out = (Location(MemoryStore(), place) for place in ("folder", "out"))
        report = rs.export(records, folder, name)
        assert (report.dropped_features, report.problems, report.changed_names) == ({}, [], [])
        label_map = folder / "label_map.pbtxt"
        source = rs.Yolo(folder) if name == "yolo" else rs.Dota(folder, label_map=label_map)
        rs.pack(source, out, seed=seed)
        assert examples_in(out, SOURCE_ID) == examples_in(records)
        assert [*map(len, rs.open(out).splits.values())] == [2, 2]
