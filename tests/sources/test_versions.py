"""Which samples have changed? Those whose image or annotation has, and no others."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs
from recordsmith.sources.files.paths import common_version, files_version, size_and_version
from recordsmith.stores import as_location

from ..raising import raises
from .annotated import coco, voc_xml, write
from .source_contract import touch

CAT = ("cat", 1, 1, 9, 9)


@pytest.fixture
def folder(tmp_path: Path, images: ModuleType) -> Path:
    """Two images, with every file that sources may find next to them."""
    for name in "ab":
        (tmp_path / "images").mkdir(exist_ok=True)
        (tmp_path / "images" / f"{name}.jpg").write_bytes(images.jpeg(width=40, height=20))
        write(tmp_path / "annotations" / f"{name}.xml", voc_xml([CAT], f"{name}.jpg"))
        write(tmp_path / "labels" / f"{name}.txt", "0 0.5 0.5 0.2 0.2")
        (tmp_path / "masks").mkdir(exist_ok=True)
        mask = images.encode(images.noise(40, 20, "L"), "PNG")
        (tmp_path / "masks" / f"{name}.png").write_bytes(mask)
    write(tmp_path / "classes.txt", "cat")
    write(tmp_path / "table.csv", "image,x\nimages/a.jpg,1\nimages/b.jpg,2\n")
    return tmp_path


def changed(source: rs.Voc | rs.Yolo | rs.ImagePairs | rs.Coco | rs.Table, file: Path) -> set[str]:
    """Which samples have another version once a file has changed."""
    before = {sample.name: sample.version for sample in source.list_samples().samples}
    touch(file)
    after = {sample.name: sample.version for sample in source.list_samples().samples}
    return {Path(name).stem for name in before if after[name] != before[name]}


@pytest.mark.parametrize(
    ("kind", "annotation"),
    [(rs.Voc, "annotations/a.xml"), (rs.Yolo, "labels/a.txt"), (rs.ImagePairs, "masks/a.png")],
)
def test_one_sample_of_two(
    folder: Path, kind: type[rs.Voc | rs.Yolo | rs.ImagePairs], annotation: str
) -> None:
    source = kind(folder)
    assert changed(source, folder / "images" / "a.jpg") == {"a"}
    assert changed(source, folder / annotation) == {"a"}
    assert changed(source, folder / "table.csv") == set()


def test_what_describes_all(folder: Path) -> None:
    assert changed(rs.Yolo(folder), folder / "classes.txt") == {"a", "b"}
    coco(folder / "boxes.json", {"a.jpg": [], "b.jpg": []}, {1: "cat"})
    source = rs.Coco(folder, annotations="boxes.json")
    assert changed(source, folder / "boxes.json") == {"a", "b"}
    assert changed(source, folder / "images" / "b.jpg") == {"b"}


def test_images_of_a_table(folder: Path) -> None:
    source = rs.Table(folder / "table.csv", image_column="image")
    assert changed(source, folder / "images" / "b.jpg") == {"0000001"}
    assert changed(source, folder / "table.csv") == {"0000000", "0000001"}


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert size_and_version(as_location(tmp_path / "gone")) == (0, 0)
    with raises(rs.FileAccessError, path=tmp_path / "gone"):
        files_version([as_location(tmp_path / "gone")])


def test_times_that_move_together() -> None:
    """With a CRC, one in 200 pairs of files that became a second older had the same number."""
    image, table, second = 1795388538090380882, 1795388538090804921, 1_000_000_000
    found = {common_version((image + n * second, table + n * second)) for n in range(1000)}
    assert len(found) == 1000
    assert all(0 <= number < 1 << 63 for number in found)
