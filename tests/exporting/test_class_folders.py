from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs


def classified(picture: Any, name: str | None, text: Any, label: Any, seed: int = 0) -> Any:
    more = {"image/class/text": text, "image/class/label": label}
    return picture(name, seed=seed, more={k: v for k, v in more.items() if v is not None})


def test_one_folder_for_each_class(write: Any, picture: Any, tmp_path: Path, files: Any) -> None:
    examples = [
        classified(picture, "cat/a.jpg", "cat", 0, seed=1),
        classified(picture, "photos/b.jpg", "dog", 1, seed=2),
        classified(picture, None, "dog", 1, seed=3),
        classified(picture, "c.jpg", None, 7, seed=4),
        picture("d/e.jpg", seed=5),
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
    assert report.left_out == {}


def test_labels_have_the_names_that_the_dataset_knows(
    write: Any, picture: Any, tmp_path: Path, files: Any
) -> None:
    folder = write(train=[classified(picture, "a.jpg", None, label) for label in (1, 0)])
    (folder / "labels.txt").write_text("0:cat\n1:dog\n")
    rs.export(folder, tmp_path / "out")
    assert set(files(tmp_path / "out")) == {"cat/a.jpg", "dog/a.jpg"}


def test_names_of_classes_are_made_safe_and_kept_apart(
    write: Any, picture: Any, tmp_path: Path, files: Any
) -> None:
    texts = ("a/b", "..", "Cat", "cat", "", b"\xff")
    examples = [
        classified(picture, "x.jpg", text, label, seed=label) for label, text in enumerate(texts)
    ]
    report = rs.export(write(train=examples), tmp_path / "out")
    names = ["a_b", "_", "Cat", "cat-2", "_-2", "_-3"]
    assert files(tmp_path / "out") == {
        f"{name}/x.jpg": example["image/encoded"]
        for name, example in zip(names, examples, strict=True)
    }
    changed = {change.name: change.file for change in report.changed_names}
    assert changed == {"a/b": "a_b", "..": "_", "cat": "cat-2", "": "_-2", "\udcff": "_-3"}


def test_several_splits_have_a_folder_each(
    write: Any, picture: Any, tmp_path: Path, files: Any
) -> None:
    cat = classified(picture, "cat/a.jpg", "cat", 0)
    rs.export(write(train=[cat], val=[cat, picture("b.jpg")]), tmp_path / "out")
    assert set(files(tmp_path / "out")) == {"train/cat/a.jpg", "val/cat/a.jpg", "val/images/b.jpg"}


@pytest.mark.parametrize("mode", ["P", "L", "1", "I;16"])
def test_masks_lie_beside_their_pictures(
    write: Any, picture: Any, pictures: ModuleType, tmp_path: Path, files: Any, mode: str
) -> None:
    image = pictures.noise(12, 8, "L").convert("I;16") if mode == "I;16" else None
    mask = pictures.encode(image or pictures.noise(12, 8, mode), "PNG")
    masked = {
        "image/segmentation/class/encoded": mask,
        "image/segmentation/class/format": "png",
    }
    examples = [picture("a.jpg", more=masked), picture("a.png", seed=1, more=masked)]
    rs.export(write(train=examples), tmp_path / "out")
    written = files(tmp_path / "out")
    assert sorted(written) == ["images/a-2.jpg", "images/a.jpg", "masks/a-2.png", "masks/a.png"]
    assert written["masks/a.png"] == written["masks/a-2.png"] == mask
    with Image.open(io.BytesIO(mask)) as one, Image.open(tmp_path / "out/masks/a.png") as other:
        assert one.mode == other.mode
        assert one.getpalette() == other.getpalette()
        assert np.array_equal(np.asarray(one), np.asarray(other))


def test_a_mask_of_another_size_is_reported(
    write: Any, picture: Any, pictures: ModuleType, tmp_path: Path
) -> None:
    mask = pictures.encode(pictures.noise(11, 8, "L"), "PNG")
    source = write(train=[picture("a.jpg", more={"image/segmentation/class/encoded": mask})])
    report = rs.export(source, tmp_path / "out")
    assert report.problems == ["record 0: the mask has 11 x 8 pixels, its picture 12 x 8"]


def test_what_folders_cannot_tell_is_reported(
    write: Any, picture: Any, box_features: Any, tmp_path: Path
) -> None:
    examples = [
        classified(picture, "a.jpg", ["cat", "dog"], [3, 4]) | box_features((0, 0, 1, 1)),
        classified(picture, "b.jpg", "dog", 4) | {"other": []},
    ]
    report = rs.export(write(train=examples), tmp_path / "out")
    assert report.left_out["image/object/bbox/xmin"] == 1
    assert "other" not in report.left_out  # it had no value
    assert "several classes" in report.problems[0]
    assert "cat is 3 in the records and becomes 0" in report.problems[1]
