from __future__ import annotations

import base64
import csv
import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_scalars_lists_and_gaps(write: Any, tmp_path: Path, files: Any) -> None:
    examples = [
        {
            "count": -(2**63),
            "score": 0.1,
            "whole": 3.0,
            "text": 'comma, "quote"\nand a line',
            "many": [1, 2],
            "floats": [0.5, float("nan")],
            "words": ["a", 'ö"'],
            "binary": b"\xff\x00",
            "blobs": [b"\xff", b""],
        },
        {"score": float("inf"), "many": [], "words": ["x"], "text": ""},
    ]
    report = rs.export(write({"many": "int64"}, train=examples, val=[{}]), tmp_path / "out", "csv")
    assert report.dropped_features == {}
    assert sorted(files(tmp_path / "out")) == ["train.csv", "val.csv"]
    first, second = table(tmp_path / "out" / "train.csv")
    assert first["count"] == str(-(2**63))
    assert first["score"] == "0.1"  # the float32, in the fewest digits
    assert first["whole"] == "3.0"
    assert first["text"] == 'comma, "quote"\nand a line'
    assert json.loads(first["many"]) == [1, 2]
    assert math.isnan(json.loads(first["floats"])[1])
    assert json.loads(first["words"]) == ["a", 'ö"']
    assert base64.b64decode(first["binary/base64"]) == b"\xff\x00"
    assert list(map(base64.b64decode, json.loads(first["blobs/base64"]))) == [b"\xff", b""]
    assert float(second["score"]) == math.inf
    assert (second["count"], second["many"], second["words"]) == ("", "[]", '["x"]')
    assert table(tmp_path / "out" / "val.csv") == [dict.fromkeys(first, "")]


def test_images_are_files_next_to_the_table(
    write: Any, image: Any, images: ModuleType, tmp_path: Path, files: Any
) -> None:
    mask = images.encode(images.noise(12, 8, "P"), "PNG")
    more = {"weight": 2.5, "image/segmentation/class/encoded": mask, "thumb": images.jpeg(9)}
    examples = [image("cat/a.jpg", more=more), image("b.jpg", seed=1, more={"weight": 1.0})]
    rs.export(write(train=examples), tmp_path / "out", "csv")
    written = files(tmp_path / "out")
    assert {name: data for name, data in written.items() if name != "metadata.csv"} == {
        "cat/a.jpg": examples[0]["image/encoded"],
        "b.jpg": examples[1]["image/encoded"],
        "mask/cat/a.png": mask,
        "thumb/cat/a.jpg": more["thumb"],
    }
    assert table(tmp_path / "out" / "metadata.csv") == [
        {
            "file_name": "cat/a.jpg",
            "mask_file_name": "mask/cat/a.png",
            "thumb_file_name": "thumb/cat/a.jpg",
            "weight": "2.5",
        },
        {"file_name": "b.jpg", "mask_file_name": "", "thumb_file_name": "", "weight": "1.0"},
    ]


def test_each_split_has_a_folder(write: Any, image: Any, tmp_path: Path, files: Any) -> None:
    rs.export(write(train=[image("a.jpg")], val=[image("a.jpg")]), tmp_path / "out", "csv")
    assert sorted(files(tmp_path / "out")) == [
        *("train/a.jpg", "train/metadata.csv", "val/a.jpg", "val/metadata.csv")
    ]
    assert table(tmp_path / "out" / "val" / "metadata.csv") == [{"file_name": "a.jpg"}]


@pytest.mark.parametrize(
    ("labels", "columns"),
    [("0:cat\n1:dog\n", {"label"}), ("1:cat\n2:dog\n", {"label", "label_id"})],
)
def test_label_ids_are_written_if_names_do_not_imply_them(
    write: Any, image: Any, tmp_path: Path, labels: str, columns: set[str]
) -> None:
    more = {"image/class/text": "dog", "image/class/label": int(labels[-6])}
    folder = write(train=[image("a.jpg", more=more)])
    (folder / "labels.txt").write_text(labels)
    rs.export(folder, tmp_path / "out", "csv")
    (row,) = table(tmp_path / "out" / "metadata.csv")
    assert row.keys() == {"file_name", *columns}
    assert row["label"] == "dog"
    assert row.get("label_id", labels[-6]) == labels[-6]


def test_two_columns_with_the_same_name(write: Any, image: Any, tmp_path: Path) -> None:
    source = write(train=[image("a.jpg", more={"file_name": "x"})])
    with pytest.raises(rs.OptionError, match="same name"):
        rs.export(source, tmp_path / "out", "csv")


def test_raw_pixels_are_files_too(write: Any, tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    example = {
        "image/encoded": pixels.tobytes(),
        "image/format": "raw",
        "image/height": 4,
        "image/width": 5,
        "image/depth": 3,
        "image/dtype": "uint8",
    }
    rs.export(write(train=[example]), tmp_path / "out", "csv")
    (row,) = table(tmp_path / "out" / "metadata.csv")
    assert row == {"file_name": "000000.png"}
    assert np.array_equal(np.asarray(Image.open(tmp_path / "out" / "000000.png")), pixels)
