"""`pack(like=...)`: the options and class numbers of another dataset."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import read_manifest
from recordsmith.stores import as_folder

from ...raising import raises


@pytest.fixture
def old(images: ModuleType, tmp_path: Path) -> Path:
    folder = images.make_folder(tmp_path / "old", {"a": 2, "b": 2, "c": 2})
    options: Any = {"keys": {"image/class/label": "y", "image/filename": None}}
    options["image_options"] = rs.ImageOptions(store="png", shorter_side=3)
    rs.pack(rs.ImageFolder(folder), tmp_path / "out", compression="zlib", **options)
    return tmp_path / "out"


def test_options_and_classes_of_a_dataset(old: Path, images: ModuleType, tmp_path: Path) -> None:
    folder = images.make_folder(tmp_path / "new", {"c": 2, "b": 3})
    rs.pack(rs.ImageFolder(folder), tmp_path / "packed", like=old)
    found = rs.open(tmp_path / "packed")
    assert found.class_names == ("a", "b", "c")
    texts = [example["image/class/text"][0] for example in found]
    labels = [example["y"][0] for example in found]
    assert sorted(zip(labels, texts, strict=True)) == [*[(1, b"b")] * 3, *[(2, b"c")] * 2]
    schemas = [rs.open(path).schema.features.keys() for path in (old, tmp_path / "packed")]
    assert schemas[0] == schemas[1]
    manifest = read_manifest(as_folder(tmp_path / "packed"))
    assert manifest is not None
    assert manifest.compression == "zlib"
    assert {min(e["image/height"][0], e["image/width"][0]) for e in found} == {3}


def test_a_flat_split_with_a_table_of_its_classes(images: ModuleType, tmp_path: Path) -> None:
    """ImageNet: `train/` has class folders, `val/` none, and its table lacks a class."""
    data = tmp_path / "data"
    images.make_folder(data / "train", {"a": 2, "b": 2})
    images.make_folder(data, {"val": 2})
    rs.pack(data, tmp_path / "out")
    names = sorted(path.name for path in (data / "val").iterdir())
    (tmp_path / "val.csv").write_text("file,class\n" + "".join(f"{name},b\n" for name in names))
    table = rs.Table(
        tmp_path / "val.csv", image_column="file", images=data / "val", label_column="class"
    )
    rs.pack(table, tmp_path / "val", like=tmp_path / "out")
    rs.append(tmp_path / "val", tmp_path / "out")
    packed = rs.open(tmp_path / "out")
    assert {name: len(split) for name, split in packed.splits.items()} == {"train": 4, "val": 2}
    rows = [(*e["image/class/label"], *e["image/class/text"]) for e in packed.splits["val"]]
    assert rows == [(1, b"b")] * 2


def test_options_that_are_given_have_precedence(
    old: Path, images: ModuleType, tmp_path: Path
) -> None:
    folder = images.make_folder(tmp_path / "new", {"c": 1, "b": 1})
    rs.pack(
        rs.ImageFolder(folder),
        tmp_path / "packed",
        like=old,
        keys={"image/class/label": "z"},
        image_options=rs.ImageOptions(store="png"),
        compression="none",
    )
    (first, *_) = rs.open(tmp_path / "packed")
    assert "z" in first
    assert min(first["image/height"][0], first["image/width"][0]) > 3


def test_objects_get_the_numbers_of_the_dataset(images: ModuleType, tmp_path: Path) -> None:
    for name, classes in (("one", ["a", "b"]), ("two", ["b", "a"])):
        folder = tmp_path / f"{name}-images"
        folder.mkdir()
        images.noise(8, 8).save(folder / "0.png")
        document = {
            "images": [{"id": 1, "file_name": "0.png", "width": 8, "height": 8}],
            "categories": [{"id": n, "name": text} for n, text in enumerate(classes)],
            "annotations": [
                {"id": n, "image_id": 1, "category_id": label, "bbox": [0, 0, 4, 4]}
                for n, label in enumerate((0, 0, 1))
            ],
        }
        (folder / "annotations.json").write_text(json.dumps(document))
        like = {} if name == "one" else {"like": tmp_path / "one"}
        rs.pack(rs.Coco(folder), tmp_path / name, **like)
    (example,) = rs.open(tmp_path / "two")
    names = rs.open(tmp_path / "one").class_names
    text = [value.decode() for value in example["image/object/class/text"]]
    assert text == ["b", "b", "a"]
    assert [names[label] for label in example["image/object/class/label"]] == text


def test_what_cannot_be_like_a_dataset(old: Path, images: ModuleType, tmp_path: Path) -> None:
    folder = images.make_folder(tmp_path / "new", {"B": 1, "c": 1})
    with raises(rs.SourceError, match="known classes: a, b and c"):
        rs.pack(rs.ImageFolder(folder), tmp_path / "packed", like=old)
    with raises(rs.OptionError, option="like"):
        rs.pack(rs.ImageFolder(folder), tmp_path / "packed", like=tmp_path / "new")
    rs.edit(old, tmp_path / "edited", drop=["y"])
    with raises(rs.OptionError, option="like"):
        rs.pack(rs.ImageFolder(folder), tmp_path / "packed", like=tmp_path / "edited")
    rs.pack(rs.Rows([{"x": 1}]), tmp_path / "rows")
    with raises(rs.SourceError, match="class names"):
        rs.pack(rs.ImageFolder(folder), tmp_path / "packed", like=tmp_path / "rows")
    assert not (tmp_path / "packed").exists()
