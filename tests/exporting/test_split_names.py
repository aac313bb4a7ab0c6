"""Splits of any name are found by the readers of each format, in their own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

NAMES = (
    *("train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval"),
    *("unsplit", "train2017", "val2017", "test2017", "test-dev", "all", "split.1", "Train set"),
)


@pytest.fixture
def export(tmp_path: Path, image: Any, box_features: Any) -> Any:
    """Exports an image for each of some splits."""

    def export_splits(splits: tuple[str, ...], format: str) -> rs.ExportReport:
        for split in splits:
            path = tmp_path / "records" / f"{split}-00000-of-00001.tfrecord"
            path.parent.mkdir(exist_ok=True)
            with rs.ShardWriter(path) as writer:
                writer.write_example(image(f"{split}.jpg", more=box_features((0.0, 0.0, 0.5, 0.5))))
        return rs.export(tmp_path / "records", tmp_path / "out", format)

    return export_splits


@pytest.mark.parametrize(
    ("splits", "lines", "problem_count"),
    [
        (("train", "valid"), ['train: "images/train"', 'val: "images/valid"'], 0),
        (("training", "validation"), ['train: "images/training"', 'val: "images/validation"'], 0),
        (("dev", "val"), ['val: ["images/dev", "images/val"]'], 0),
        (("test2017", "train2017"), ['test: "images/test2017"', 'train: "images/train2017"'], 0),
        (("unsplit",), ['train: "images/unsplit"'], 0),
        (("other", "trainval"), ['other: "images/other"', 'train: "images/trainval"'], 1),
    ],
)
def test_yolo(
    export: Any, tmp_path: Path, splits: tuple[str, ...], lines: list[str], problem_count: int
) -> None:
    report = export(splits, "yolo")
    assert (tmp_path / "out" / "data.yaml").read_text().splitlines()[: len(lines)] == lines
    assert report.problem_count == problem_count
    again = rs.pack(rs.Yolo(tmp_path / "out"), tmp_path / "again")
    assert again.sample_count == len(splits) - problem_count


@pytest.mark.parametrize(
    ("splits", "lists"),
    [
        (("train", "valid"), {"train", "val"}),
        (("trainval2012", "testing"), {"trainval", "test"}),
        (("val", "validation"), {"val", "validation"}),
        (("dev", "validation", "unsplit"), {"val", "validation", "unsplit"}),
    ],
)
def test_voc(export: Any, tmp_path: Path, splits: tuple[str, ...], lists: set[str]) -> None:
    report = export(splits, "voc")
    assert {path.stem for path in (tmp_path / "out/ImageSets/Main").glob("*.txt")} == lists
    assert {change.name for change in report.changed_names} == set(splits) - lists


@pytest.mark.parametrize("split", NAMES)
def test_coco(export: Any, tmp_path: Path, split: str) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    export((split,), "coco")
    (path,) = (tmp_path / "out/annotations").glob("instances_*.json")
    (row,) = coco.COCO(str(path)).imgs.values()
    assert (tmp_path / "out" / path.stem.removeprefix("instances_") / row["file_name"]).is_file()


@pytest.mark.parametrize("splits", [NAMES, ("all",), ("split.1", "split_1")])
def test_hugging_face(export: Any, tmp_path: Path, splits: tuple[str, ...]) -> None:
    datasets = pytest.importorskip("datasets")
    report = export(splits, "huggingface")
    renamed = {change.name: change.file for change in report.changed_names}
    found = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in found.items()} == {
        renamed.get(split, split): 1 for split in splits
    }


@pytest.mark.parametrize("format", ["webdataset"])
@pytest.mark.parametrize(
    ("split", "known"),
    [("training", "train"), ("valid", "validation"), ("dev", "validation"), ("testing", "test")],
)
def test_folders_for_hugging_face(
    export: Any, tmp_path: Path, format: str, split: str, known: str
) -> None:
    datasets = pytest.importorskip("datasets")
    export((split,), format)
    found = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(rows) for name, rows in found.items()} == {known: 1}


@pytest.mark.parametrize("splits", [NAMES, ("split.1", "split_1")])
def test_tfds(export: Any, tmp_path: Path, tf: Any, splits: tuple[str, ...]) -> None:
    tfds = pytest.importorskip("tensorflow_datasets")
    report = export(splits, "tfds")
    renamed = {change.name: change.file for change in report.changed_names}
    builder = tfds.builder_from_directory(str(tmp_path / "out"))
    assert set(builder.info.splits) == {renamed.get(split, split) for split in splits}
    for split in builder.info.splits:
        assert len(list(builder.as_dataset(split=split))) == 1
