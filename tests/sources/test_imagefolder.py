"""Layouts of `load_dataset("imagefolder")`: equal to what `datasets` reads, or refused aloud."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("datasets")

METADATA = ("csv", "jsonl", "parquet")


class Folder:
    """A folder that a layout fills; every image is another one."""

    def __init__(self, root: Path, images: ModuleType) -> None:
        self.root = root
        self._images = images
        self._count = 0

    def add(self, *names: str) -> None:
        for name in names:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._count += 1
            self._images.noise(7 + self._count, 9).save(path)

    def metadata(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            parquet.write_table(pa.Table.from_pylist(rows), path)
        elif path.suffix == ".jsonl":
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        else:
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, rows[0].keys())
                writer.writeheader()
                writer.writerows(rows)


def class_folders(folder: Folder, _: str) -> None:
    folder.add("cat/1.png", "cat/2.png", "dog/1.png")


def class_folders_in_splits(folder: Folder, _: str) -> None:
    folder.add("train/cat/1.png", "train/dog/2.png", "test/cat/1.png", "test/dog/5.png")


def metadata_at_the_root(folder: Folder, suffix: str) -> None:
    folder.add("1.png", "2.png", "deep/er/3.png")
    names = ("2.png", "deep/er/3.png", "1.png")
    rows = [{"file_name": name, "text": f"ü {name}", "n": n} for n, name in enumerate(names)]
    folder.metadata(f"metadata.{suffix}", rows)


def metadata_in_each_split(folder: Folder, suffix: str) -> None:
    for split in ("train", "test"):
        folder.add(f"{split}/1.png", f"{split}/below/2.png")
        rows = [{"file_name": name, "score": 0.5} for name in ("1.png", "below/2.png")]
        folder.metadata(f"{split}/metadata.{suffix}", rows)


def metadata_next_to_class_folders(folder: Folder, suffix: str) -> None:
    folder.add("cat/1.png", "dog/1.png")
    rows = [{"file_name": f"{name}/1.png", "text": name} for name in ("cat", "dog")]
    folder.metadata(f"metadata.{suffix}", rows)


def images_that_no_row_names(folder: Folder, suffix: str) -> None:
    folder.add("1.png", "2.png", "3.png")
    folder.metadata(f"metadata.{suffix}", [{"file_name": f"{n}.png", "n": n} for n in (1, 2)])


Layout = Callable[[Folder, str], None]
EQUAL: list[tuple[Layout, str]] = [
    (class_folders, ""),
    (class_folders_in_splits, ""),
    *(
        (layout, suffix)
        for layout in (
            metadata_at_the_root,
            metadata_in_each_split,
            metadata_next_to_class_folders,
            images_that_no_row_names,
        )
        for suffix in METADATA
    ),
]


def pixels(data: Any) -> bytes:
    image = Image.open(io.BytesIO(data)) if isinstance(data, bytes) else data
    return repr(np.asarray(image).tolist()).encode()


def read_by_datasets(folder: Path, cache: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each split, with images as pixels and classes as names."""
    found: dict[str, list[dict[str, Any]]] = {}
    loaded = datasets.load_dataset("imagefolder", data_dir=str(folder), cache_dir=str(cache))
    for split, part in loaded.items():
        for row in part:
            if "label" in row:
                row["label"] = part.features["label"].names[row["label"]]
            values = {k: pixels(v) if isinstance(v, Image.Image) else v for k, v in row.items()}
            found.setdefault(split, []).append(values)
    return found


def read_by_recordsmith(folder: Path, out: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    rs.pack(rs.detect(folder).source, out)
    for split, part in rs.open(out).splits.items():
        for example in part:
            row: dict[str, Any] = {}
            for key, (value,) in example.items():
                if key == "image/caption":
                    row["text"] = value.decode()
                elif key == "image/encoded":
                    row["image"] = pixels(value)
                elif key == "image/class/text":
                    row["label"] = value.decode()
                elif not key.startswith("image/"):
                    row[key] = value.decode() if isinstance(value, bytes) else value.item()
            found.setdefault(split, []).append(row)
    return found


def in_order(rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {split: sorted(found, key=lambda row: row["image"]) for split, found in rows.items()}


@pytest.mark.filterwarnings(
    "ignore:unclosed file:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)  # of `datasets`
@pytest.mark.parametrize(("layout", "suffix"), EQUAL)
def test_equal_to_datasets(
    layout: Layout, suffix: str, images: ModuleType, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    layout(Folder(tmp_path / "data", images), suffix)
    expected = read_by_datasets(tmp_path / "data", tmp_path / "cache")
    found = read_by_recordsmith(tmp_path / "data", tmp_path / "out")
    assert in_order(found) == in_order(expected)


def test_images_without_a_row_are_counted(images: ModuleType, tmp_path: Path) -> None:
    images_that_no_row_names(Folder(tmp_path, images), "csv")
    (notice,) = rs.detect(tmp_path).source.list_samples().notices
    assert "3.png" in notice


@pytest.mark.parametrize("suffix", METADATA)
def test_splits_are_those_of_the_folders_that_the_metadata_names(
    suffix: str, images: ModuleType, tmp_path: Path
) -> None:
    """`datasets` reads the splits, too, but not the metadata."""
    folder = Folder(tmp_path, images)
    names = [f"{split}/{n}.png" for split in ("train", "test") for n in (1, 2)]
    folder.add(*names)
    folder.metadata(f"metadata.{suffix}", [{"file_name": name, "t": name} for name in names])
    listing = rs.detect(tmp_path).source.list_samples()
    assert listing.splits == ("train", "test")
    assert [sample.split for sample in listing.samples] == ["train", "train", "test", "test"]
    assert [notice for notice in listing.notices if "train and test" in notice]


@pytest.mark.parametrize("suffix", METADATA)
def test_other_columns_of_images_are_noticed(
    suffix: str, images: ModuleType, tmp_path: Path
) -> None:
    folder = Folder(tmp_path, images)
    folder.add("1.png", "m/1.png")
    folder.metadata(f"metadata.{suffix}", [{"file_name": "1.png", "mask_file_name": "m/1.png"}])
    listing = rs.detect(tmp_path).source.list_samples()
    assert [notice for notice in listing.notices if notice.endswith(": mask_file_name")]
    features: Any = listing.reader.read(listing.samples[0])
    assert features["mask_file_name"] == [b"m/1.png"]
