from __future__ import annotations

from pathlib import Path
from typing import Any

import recordsmith as rs


def test_labels_have_a_folder_next_to_the_images(
    write: Any, image: Any, box_features: Any, box_kinds: Any, tmp_path: Path, files: Any
) -> None:
    boxes = box_features((0.25, 0.5, 0.75, 1), (0, 0, 0.125, 1), label=2, name='the "dog"')
    empty = box_features()
    source = write(
        box_kinds,
        train=[image("a.jpg", more=boxes), image("d/b.jpg", seed=1, more=empty)],
        val=[image("c.jpg", seed=2, more=box_features((0, 0, 1, 1), label=1, name="cät"))],
    )
    report = rs.export(source, tmp_path / "out", "yolo")
    assert (report.dropped_features, report.problems) == ({}, [])
    written = files(tmp_path / "out")
    assert {name for name in written if name.endswith(".jpg")} == {
        *("images/train/a.jpg", "images/train/d/b.jpg", "images/val/c.jpg")
    }
    assert written["labels/train/a.txt"] == b"1 0.5 0.75 0.5 0.5\n1 0.0625 0.5 0.125 1\n"
    assert written["labels/train/d/b.txt"] == b""
    assert written["labels/val/c.txt"] == b"0 0.5 0.5 1 1\n"
    assert written["data.yaml"].decode() == (
        'train: "images/train"\nval: "images/val"\nnames:\n  0: "cät"\n  1: "the \\"dog\\""\n'
    )


def test_labels_with_gaps_are_renumbered(
    write: Any, image: Any, box_features: Any, tmp_path: Path, files: Any
) -> None:
    examples = [
        image(f"{label}.jpg", more=box_features((0, 0, 1, 1), label=label, name=f"n{label}"))
        for label in (7, 3, 90)
    ]
    report = rs.export(write(train=examples), tmp_path / "out", "yolo")
    written = files(tmp_path / "out")
    assert written["data.yaml"].endswith(b'names:\n  0: "n3"\n  1: "n7"\n  2: "n90"\n')
    assert written["labels/train/90.txt"].startswith(b"2 ")
    (problem,) = report.problems
    assert problem.endswith("3 became 0, 7 became 1, 90 became 2")


def test_labels_from_0_and_known_names(
    write: Any, image: Any, box_features: Any, tmp_path: Path, files: Any
) -> None:
    folder = write(train=[image("a.jpg", more=box_features((0, 0, 1, 1), label=0, name="cat"))])
    (folder / "labels.txt").write_text("0:cat\n1:dog\n")
    report = rs.export(folder, tmp_path / "out", "yolo")
    assert report.problems == []
    written = files(tmp_path / "out")
    assert written["data.yaml"].endswith(b'names:\n  0: "cat"\n  1: "dog"\n')
    assert written["labels/train/a.txt"].startswith(b"0 ")


def test_edge_that_cannot_be_restored_is_reported(
    write: Any, image: Any, box_features: Any, tmp_path: Path
) -> None:
    more = box_features((1e-30, 0, 1, 1))
    report = rs.export(write(train=[image("a.jpg", more=more)]), tmp_path / "out", "yolo")
    assert len(report.problems) == 1
    assert "restored exactly" in report.problems[0]


def test_features_that_yolo_cannot_hold(
    write: Any, image: Any, box_features: Any, tmp_path: Path
) -> None:
    more = box_features((0, 0, 1, 1)) | {"image/object/difficult": [1], "weather": "rain"}
    report = rs.export(write(train=[image("a.jpg", more=more)]), tmp_path / "out", "yolo")
    assert report.dropped_features == {"image/object/difficult": 1, "weather": 1}
