"""Paths of other machines, cut to what may be here; and version numbers that change with files."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.sources.files.paths import (
    common_version,
    is_absolute,
    leaves_folder,
    with_slashes,
)

from .annotated import coco, voc_xml, write
from .source_contract import touch


@pytest.mark.parametrize(
    ("path", "absolute", "out"),
    [
        ("a/b.jpg", False, False),
        ("a/../b.jpg", False, False),
        ("..a/b.jpg", False, False),
        ("C:b.jpg", False, False),
        ("/a/b.jpg", True, True),
        ("//server/a/b.jpg", True, True),
        (r"C:\a\b.jpg", True, True),
        ("../b.jpg", False, True),
        (r"a\..\..\b.jpg", False, True),
        ("..", False, True),
    ],
)
def test_paths_that_leave_the_folder(path: str, absolute: bool, out: bool) -> None:
    path = with_slashes(path)
    assert (is_absolute(path), leaves_folder(path)) == (absolute, out)


@pytest.fixture
def folder(tmp_path: Path, images: ModuleType) -> Path:
    """Two images, with every file that sources may find next to them."""
    mask = images.encode(images.noise(40, 20, "L"), "PNG")
    for name in "ab":
        for path, data in (
            (f"images/{name}.jpg", images.jpeg(40, 20)),
            (f"masks/{name}.png", mask),
        ):
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_bytes(data)
        write(
            tmp_path / "annotations" / f"{name}.xml", voc_xml([("cat", 1, 1, 9, 9)], f"{name}.jpg")
        )
        write(tmp_path / "labels" / f"{name}.txt", "0 0.5 0.5 0.2 0.2")
    write(tmp_path / "classes.txt", "cat")
    write(tmp_path / "table.csv", "image,x\nimages/a.jpg,1\nimages/b.jpg,2\n")
    coco(tmp_path / "boxes.json", {"a.jpg": [], "b.jpg": []}, {1: "cat"})
    return tmp_path


def _coco(root: Path) -> rs.Coco:
    return rs.Coco(root, annotations="boxes.json")


def _table(root: Path) -> rs.Table:
    return rs.Table(root / "table.csv", image_column="image")


@pytest.mark.parametrize(
    ("make", "file", "expected"),
    [
        (rs.Voc, "images/a.jpg", {"a"}),
        (rs.Voc, "annotations/a.xml", {"a"}),
        (rs.Voc, "table.csv", set()),
        (rs.Yolo, "labels/a.txt", {"a"}),
        (rs.Yolo, "classes.txt", {"a", "b"}),
        (rs.ImagePairs, "images/a.jpg", {"a"}),
        (rs.ImagePairs, "masks/a.png", {"a"}),
        (_coco, "boxes.json", {"a", "b"}),
        (_coco, "images/b.jpg", {"b"}),
        (_table, "images/b.jpg", {"0000001"}),
        (_table, "table.csv", {"0000000", "0000001"}),
    ],
)
def test_which_samples_have_changed(folder: Path, make: Any, file: str, expected: set[str]) -> None:
    source = make(folder)
    before = {sample.name: sample.version for sample in source.list_samples().samples}
    touch(folder / file)
    after = {sample.name: sample.version for sample in source.list_samples().samples}
    assert {Path(name).stem for name in before if after[name] != before[name]} == expected


def test_times_that_move_together() -> None:
    """With a CRC, one in 200 pairs of files that became a second older had the same number."""
    image, table, second = 1795388538090380882, 1795388538090804921, 1_000_000_000
    found = {common_version((image + n * second, table + n * second)) for n in range(1000)}
    assert len(found) == 1000
    assert all(0 <= number < 1 << 63 for number in found)
