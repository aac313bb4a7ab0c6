"""Public annotations, compared with the records that others packed from them."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ..reading import read_sample

SIDES = ("ymin", "xmin", "ymax", "xmax")


def _boxes(example: Any, prefix: str = "image/object/") -> list[tuple[Any, ...]]:
    """(text, label, ymin, xmin, ymax, xmax) of each object, sorted; sides as float32."""
    bbox = f"{prefix}bbox/" if prefix else ""
    sides = [np.asarray(example[f"{bbox}{side}"], np.float32).tolist() for side in SIDES]
    kind = f"{prefix}class/" if prefix else ""
    labels = np.asarray(example[f"{kind}label"], np.int64).tolist()
    return sorted(zip(example[f"{kind}text"], labels, *sides, strict=True))


def _unpacked(source: Any, folder: Path, **options: Any) -> list[Any]:
    rs.pack(source, folder, **options)
    return list(rs.open(folder))


def _only(example: Any, key: str) -> Any:
    (value,) = example[key]
    return value


def test_raccoon_matches_its_table(shared_data: Path, tmp_path: Path) -> None:
    root = shared_data / "sources" / "datitran+raccoon_dataset"
    expected = defaultdict(list)
    with open(root / "data" / "raccoon_labels.csv", newline="") as file:
        for row in csv.DictReader(file):
            size = {"x": int(row["width"]), "y": int(row["height"])}
            sides = [np.float32(int(row[side]) / size[side[0]]).item() for side in SIDES]
            expected[row["filename"]].append((row["class"].encode(), 1, *sides))
    examples = _unpacked(rs.Voc(root), tmp_path / "out")
    found = {_only(example, "image/source_id").decode(): _boxes(example) for example in examples}
    assert len(found) == 200
    assert found == {name: sorted(boxes) for name, boxes in expected.items()}


def test_raccoon_matches_the_published_record(shared_data: Path, tmp_path: Path) -> None:
    root = shared_data / "sources" / "datitran+raccoon_dataset"
    ours = {
        _only(example, "image/source_id"): example
        for example in _unpacked(rs.Voc(root), tmp_path / "out")
    }
    theirs = list(rs.open(root / "data" / "test.record"))
    assert len(theirs) == 40
    for example in theirs:
        own = ours[_only(example, "image/filename")]
        assert _boxes(own) == _boxes(example)
        for key in ("image/encoded", "image/height", "image/width"):
            assert _only(own, key) == _only(example, key)


@pytest.mark.parametrize("split", ["train", "test"])
def test_captcha_matches_the_published_record(
    shared_data: Path, tmp_path: Path, split: str
) -> None:
    root = shared_data / "sources" / "HaskSy+CaptchaBreaker"
    label_map = root / "annotations" / "label_map.pbtxt"
    source = rs.Voc(root, label_map=label_map)
    listing = source.list_samples()
    assert listing.splits == ("train", "test")
    ours = {}
    for sample in listing.samples:
        if sample.split == split:
            notes: list[Any] = []
            example = read_sample(source, sample, lambda *note, notes=notes: notes.append(note))
            ours[example["image/source_id"]] = example
            assert notes == []
    path = shared_data / "zoo" / "HaskSy+CaptchaBreaker" / f"{split}.record"
    theirs: list[Any] = list(rs.open(path))
    assert len(theirs) == len(ours) == 100
    prefix = "image/" if "image/encoded" in theirs[0] else ""
    for example in theirs:
        own = ours[_only(example, f"{prefix}filename")]
        assert own["image/encoded"] == _only(example, f"{prefix}encoded")
        assert own["image/width"] == _only(example, f"{prefix}width")
        assert _boxes(own) == _boxes(example, "image/object/" if prefix else "")


def test_a_list_that_names_a_missing_image(shared_data: Path, tmp_path: Path) -> None:
    root = shared_data / "sources" / "AlexeyAB+Yolo_mark"
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(rs.Yolo(root), tmp_path / "out")
    words = "x64/Release/data/train.txt, line 7: image 'data/img/air7.jpg' not found"
    assert words in str(caught.value)
    report = rs.pack(rs.Yolo(root), tmp_path / "out", skip_errors=True)
    assert report.sample_count == 10
    assert len(report.skipped) == 1
    for example in map(dict, rs.open(tmp_path / "out")):
        folder = root / "x64" / "Release" / "data" / "img"
        name = Path(_only(example, "image/source_id").decode())
        assert _only(example, "image/encoded") == (folder / name).read_bytes()
        text = (folder / name).with_suffix(".txt").read_text()
        lines = [line.split() for line in text.splitlines()]
        labels = np.asarray(example["image/object/class/label"])
        assert labels.tolist() == [int(line[0]) + 1 for line in lines]
        numbers = np.array([line[1:] for line in lines], np.float64)
        ymin, xmin, ymax, xmax = (example[f"image/object/bbox/{side}"] for side in SIDES)
        np.testing.assert_allclose((xmin + xmax) / 2, numbers[:, 0], atol=1e-6)
        np.testing.assert_allclose((ymin + ymax) / 2, numbers[:, 1], atol=1e-6)
        np.testing.assert_allclose(xmax - xmin, numbers[:, 2], atol=1e-6)
        np.testing.assert_allclose(ymax - ymin, numbers[:, 3], atol=1e-6)
