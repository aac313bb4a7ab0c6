"""`pack(like=...)`: the options and class numbers of another dataset."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import read_manifest
from recordsmith.stores import as_folder

from ..raising import raises


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
    datasets = pytest.importorskip("datasets")
    for name, classes in (("one", ["a", "b"]), ("two", ["b", "a"])):
        label = datasets.ClassLabel(names=classes)
        box = datasets.List(datasets.Value("float32"), length=4)
        objects = datasets.List({"bbox": box, "category": label})
        features = datasets.Features({"image": datasets.Image(), "objects": objects})
        objects = [{"bbox": [0, 0, 4, 4], "category": n} for n in (0, 0, 1)]
        rows = [{"image": images.noise(8, 8), "objects": objects}]
        dataset = datasets.Dataset.from_list(rows, features=features)
        source = rs.HuggingFace(dataset, box_format="xyxy")
        rs.pack(source, tmp_path / name, **({} if name == "one" else {"like": tmp_path / "one"}))
    (example,) = rs.open(tmp_path / "two")
    assert np.array_equal(example["image/object/class/label"], [1, 1, 0])
    assert example["image/object/class/text"] == [b"b", b"b", b"a"]


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
