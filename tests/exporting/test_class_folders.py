from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs

from ..raising import raises


def classified(image: Any, name: str | None, text: Any, label: Any, seed: int = 0) -> Any:
    more = {"image/class/text": text, "image/class/label": label}
    return image(name, seed=seed, more={k: v for k, v in more.items() if v is not None})


def test_one_folder_for_each_class(write: Any, image: Any, tmp_path: Path, files: Any) -> None:
    examples = [
        classified(image, "cat/a.jpg", "cat", 0, seed=1),
        classified(image, "photos/b.jpg", "dog", 1, seed=2),
        classified(image, None, "dog", 1, seed=3),
        classified(image, "c.jpg", None, 7, seed=4),
        image("d/e.jpg", seed=5),
    ]
    report = rs.export(write(train=examples), tmp_path / "out")
    assert files(tmp_path / "out") == {
        "cat/a.jpg": examples[0]["image/encoded"],
        "dog/b.jpg": examples[1]["image/encoded"],
        "dog/000002.jpg": examples[2]["image/encoded"],
        "7/c.jpg": examples[3]["image/encoded"],
        "images/d/e.jpg": examples[4]["image/encoded"],
    }
    assert report.changed_names == []
    assert report.dropped_features == {}


def test_labels_use_the_class_names_of_the_dataset(
    write: Any, image: Any, tmp_path: Path, files: Any
) -> None:
    folder = write(train=[classified(image, "a.jpg", None, label) for label in (1, 0)])
    (folder / "labels.txt").write_text("0:cat\n1:dog\n")
    rs.export(folder, tmp_path / "out")
    assert set(files(tmp_path / "out")) == {"cat/a.jpg", "dog/a.jpg"}


def test_class_names_become_distinct_safe_names(
    write: Any, image: Any, tmp_path: Path, files: Any
) -> None:
    texts = ("a/b", "..", "Cat", "cat", "", b"\xff")
    examples = [
        classified(image, "x.jpg", text, label, seed=label) for label, text in enumerate(texts)
    ]
    report = rs.export(write(train=examples), tmp_path / "out")
    names = ["a_b", "_", "Cat", "cat-2", "_-3", "_-4"]
    assert files(tmp_path / "out") == {
        f"{name}/x.jpg": example["image/encoded"]
        for name, example in zip(names, examples, strict=True)
    }
    changed = {change.name: change.file for change in report.changed_names}
    assert changed == {"a/b": "a_b", "..": "_", "cat": "cat-2", "": "_-3", "\udcff": "_-4"}


def test_a_mask_of_another_size_is_reported(
    write: Any, image: Any, images: ModuleType, tmp_path: Path
) -> None:
    mask = images.encode(images.noise(11, 8, "L"), "PNG")
    source = write(train=[image("a.jpg", more={"image/segmentation/class/encoded": mask})])
    report = rs.export(source, tmp_path / "out")
    (problem,) = report.problems
    assert problem.startswith("record 0: ")
    assert "11 x 8" in problem
    assert "12 x 8" in problem


def test_lost_class_information_is_reported(
    write: Any, image: Any, box_features: Any, tmp_path: Path
) -> None:
    examples = [
        classified(image, "a.jpg", "cat", 3) | box_features((0, 0, 1, 1)),
        classified(image, "b.jpg", "dog", 4) | {"other": []},
    ]
    report = rs.export(write(train=examples), tmp_path / "out")
    assert report.dropped_features["image/object/bbox/xmin"] == 1
    assert "other" not in report.dropped_features  # it had no value


@pytest.mark.parametrize("format", ["folder", "tfds"])
def test_several_classes_are_refused(format: str, write: Any, image: Any, tmp_path: Path) -> None:
    lists = (["cat", "dog"], [3, 4]), ("dog", 4)
    records = write(train=[classified(image, f"{n}.jpg", *of) for n, of in enumerate(lists)])
    with raises(rs.OptionError, option="format", value=format):
        rs.export(records, tmp_path / "out", format)
    if format == "folder":  # all have two
        records = write(train=[classified(image, "a.jpg", *lists[0])])
        with raises(rs.SourceError, records=(0,)):
            rs.export(records, tmp_path / "out", format)


def test_pairs_need_masks(write: Any, image: Any, images: ModuleType, tmp_path: Path) -> None:
    masked = {"image/segmentation/class/encoded": images.encode(images.noise(12, 8, "L"), "PNG")}
    records = write(train=[image("a.jpg", more=masked), image("b.jpg")])
    with raises(rs.SourceError, records=(1,)):
        rs.export(records, tmp_path / "out", "pairs")
    report = rs.export(records, tmp_path / "out", "pairs", skip_errors=True)
    assert (report.record_count, report.skipped_positions) == (1, [1])
