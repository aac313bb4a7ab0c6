"""Data in which labels, boxes or samples were once lost or changed silently."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import recordsmith as rs

from .annotated import image


def test_rows_without_boxes_do_not_decide_the_units(tmp_path: Path) -> None:
    rows = ["filename,class,xmin,ymin,xmax,ymax", "3.png,a,0.1,0.1,0.5,0.5"]
    for number in range(6):
        image(tmp_path / f"{number}.png")
        rows += [] if number == 3 else [f"{number}.png,,,,,"]
    (tmp_path / "boxes.csv").write_text("\n".join(rows) + "\n")
    listing = rs.CsvBoxes(tmp_path).list_samples()
    sample = next(each for each in listing.samples if each.name == "3.png")
    content = listing.reader.read(sample)
    assert isinstance(content, dict)
    np.testing.assert_allclose(content["image/object/bbox/xmax"], [0.5])


def test_images_without_ids_are_all_listed(tmp_path: Path) -> None:
    image(tmp_path / "here.png")
    names = ["here.png", *(f"missing{n}.png" for n in range(5))]
    entries = "".join(f'<image name="{name}" width="40" height="20"></image>' for name in names)
    (tmp_path / "annotations.xml").write_text(
        f"<annotations><version>1.1</version>{entries}</annotations>"
    )
    assert len(rs.Cvat(tmp_path).list_samples().samples) == 6


def test_label_files_without_an_image_are_counted(tmp_path: Path) -> None:
    for name in ("a", "b"):
        image(tmp_path / f"images/train/{name}.jpg")
        (tmp_path / "labels/train").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"labels/train/{name}.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "labels/train/ghost.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "data.yaml").write_text("train: images/train\nnames: [cat]\n")
    notices = rs.Yolo(tmp_path).list_samples().notices
    assert [notice for notice in notices if "ghost.txt" in notice]


def test_another_column_of_classes_keeps_what_was_detected(tmp_path: Path) -> None:
    rows = ["image_id,breed,colour"]
    for number in range(6):
        image(tmp_path / f"train/{number}.jpg")
        rows.append(f"{number},{'ab'[number % 2]},{'xyz'[number % 3]}")
    (tmp_path / "train.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "test.csv").write_text("image_id\n9\n")
    detected = rs.detect(tmp_path, label_column="colour")
    listing = detected.source.list_samples()
    assert listing.class_names == ("x", "y", "z")
    assert len(listing.samples) == 6
    content = listing.reader.read(listing.samples[0])
    assert isinstance(content, dict)
    assert content["image/encoded"]


def test_a_table_that_names_images_is_not_packed_without_them(tmp_path: Path) -> None:
    rows = ["image_id,label"]
    for number in range(4):
        image(tmp_path / f"train/{number}.jpg")
        rows.append(f"{number},{'ab'[number % 2]}")
    table = tmp_path / "train.csv"
    table.write_text("\n".join(rows) + "\n")
    with pytest.raises(rs.SourceError):
        _ = rs.detect(table).source
    assert len(rs.detect(table, "table").source.list_samples().samples) == 4
    found = rs.detect(table, image_column="image_id", images=tmp_path / "train")
    listing = found.source.list_samples()
    content = listing.reader.read(listing.samples[0])
    assert isinstance(content, dict)
    assert content["image/encoded"]
