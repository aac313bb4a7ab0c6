"""Every source packs the same bytes from files, from memory and from a store without folders."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest

import recordsmith as rs
from recordsmith.sources import Source, make_source
from recordsmith.stores import Location, PlaceLike, as_folder

from ..raising import raises
from ..stores.delayed import DelayedStore
from .annotated import coco, image, voc, write

PAIRS = [("images/a.jpg", "masks/a.png")]
BOX = ("cat", 1, 2, 30, 18)
CAT = {"category_id": 1, "bbox": [1, 2, 10, 8]}
CSV = "image,x,y\n" + "".join(f"images/{n}.jpg,{n},text {n}\n" for n in range(4))


def _class_folders(root: Path, images: ModuleType) -> None:
    images.make_folder(root, {"cat": 3, "dog": 2})
    write(root / "cat" / "notes.txt", "x")


def _pairs(root: Path, images: ModuleType) -> None:
    for name in "abc":
        image(root / "images" / f"{name}.jpg")
        mask = images.encode(images.noise(40, 20, "L"), "PNG")
        (root / "masks").mkdir(exist_ok=True)
        (root / "masks" / f"{name}.png").write_bytes(mask)
    write(root / "lists" / "pairs.txt", "images/a.jpg masks/a.png\n/x/images/c.jpg masks/c.png\n")


def _voc(root: Path, images: ModuleType) -> None:
    voc(root, {"a": [BOX], "b": []})


def _coco(root: Path, images: ModuleType) -> None:
    for name in ("a.jpg", "b.png"):
        image(root / "images" / name)
    coco(root / "annotations" / "all.json", {"a.jpg": [CAT], "b.png": []}, {1: "cat"})


def _yolo(root: Path, images: ModuleType) -> None:
    write(root / "data.yaml", "train: images/train\nval: images/val\nnames: [cat, dog]\n")
    for name in ("train/a", "train/b", "val/c"):
        image(root / "images" / f"{name}.jpg")
        write(root / "labels" / f"{name}.txt", "1 0.5 0.5 0.2 0.2\n")


def _archives(root: Path, images: ModuleType) -> None:
    root.mkdir()
    for number in range(2):
        with tarfile.open(root / f"train-{number}.tar", "w") as archive:
            for name, data in (
                ("a.txt", b"text"),
                ("a.cls", b"3"),
                ("b.txt", b""),
                ("b.cls", b"1"),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    compressed = gzip.compress((root / "train-0.tar").read_bytes())
    (root / "more").mkdir()
    (root / "more" / "x.tar.gz").write_bytes(compressed)


def _tables(root: Path, images: ModuleType) -> None:
    write(root / "rows.csv", CSV)
    (root / "wide.csv").write_bytes(CSV.encode("utf-16"))
    (root / "rows.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    write(root / "rows.jsonl", "".join(f'{{"x": {n}, "y": [1, {n}]}}\n' for n in range(5)))
    for number in range(4):
        image(root / "images" / f"{number}.jpg")


def _arrow(root: Path, images: ModuleType) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    root.mkdir()
    table = pa.table({"x": range(100), "y": [f"text {n}" for n in range(100)]})
    parquet.write_table(table, root / "rows.parquet", row_group_size=30)
    feather.write_feather(table, root / "rows.feather")


def _metadata(root: Path, images: ModuleType) -> None:
    for split in ("train", "test"):
        image(root / split / "a.jpg")
        write(root / split / "metadata.csv", "file_name,x\na.jpg,1\n")


CASES: dict[str, tuple[Callable[[Path, ModuleType], None], Callable[[Any], Source]]] = {
    "class folders": (_class_folders, rs.ImageFolder),
    "files": (_class_folders, lambda root: rs.ImageFiles(root, class_pattern="^[a-z]+")),
    "pairs": (_pairs, rs.ImagePairs),
    "folders of pairs": (_pairs, lambda root: rs.ImagePairs(root, images="images", masks="masks")),
    "list of pairs": (_pairs, lambda root: rs.ImagePairs(root, pairs="lists/pairs.txt")),
    "given pairs": (_pairs, lambda root: rs.ImagePairs(root, pairs=PAIRS)),
    "voc": (_voc, rs.Voc),
    "coco": (_coco, lambda root: rs.Coco(root, object_masks=None)),
    "coco file": (_coco, lambda root: rs.Coco(as_folder(root) / "annotations/all.json")),
    "coco options": (
        _coco,
        lambda root: rs.Coco(root, annotations="annotations/all.json", images="images"),
    ),
    "yolo": (_yolo, rs.Yolo),
    "yolo file": (_yolo, lambda root: rs.Yolo(as_folder(root) / "data.yaml")),
    "archives": (_archives, rs.WebDataset),
    "archive pattern": (_archives, lambda root: rs.WebDataset(as_folder(root) / "train-*.tar")),
    "archive numbers": (
        _archives,
        lambda root: rs.WebDataset(as_folder(root) / "train-{0..1}.tar"),
    ),
    "compressed archives": (_archives, lambda root: rs.WebDataset(as_folder(root) / "more")),
    "csv": (_tables, lambda root: rs.Table(as_folder(root) / "rows.csv")),
    "csv.gz": (_tables, lambda root: rs.Table(as_folder(root) / "rows.csv.gz")),
    "utf-16": (_tables, lambda root: rs.Table(as_folder(root) / "wide.csv", encoding="utf-16")),
    "jsonl": (_tables, lambda root: rs.Table(as_folder(root) / "rows.jsonl")),
    "named images": (
        _tables,
        lambda root: rs.Table(as_folder(root) / "rows.csv", image_column="image"),
    ),
    "parquet": (_arrow, lambda root: rs.Table(as_folder(root) / "rows.parquet")),
    "feather": (_arrow, lambda root: rs.Table(as_folder(root) / "rows.feather")),
    "metadata": (_metadata, rs.Table),
}  # fmt: skip


@pytest.fixture(params=["memory", "delayed"])
def place(request: pytest.FixtureRequest) -> Iterator[PlaceLike]:
    """An empty folder in another store."""
    url = f"memory://{uuid4()}/source"
    yield url if request.param == "memory" else Location(DelayedStore(), "some/source")
    for found in as_folder(url).list():
        found.delete()


def _copied(root: Path, place: PlaceLike) -> None:
    folder = as_folder(place)
    for path in root.rglob("*"):
        if path.is_file():
            (folder / path.relative_to(root).as_posix()).put(path.read_bytes())


def _packed(source: Source, out: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    report = rs.pack(source, out)
    return {path.name: path.read_bytes() for path in out.glob("*.tfrecord")}, report.splits


@pytest.mark.parametrize("case", CASES)
def test_the_same_bytes_from_every_store(
    case: str, place: PlaceLike, tmp_path: Path, images: ModuleType
) -> None:
    write_files, make = CASES[case]
    root = tmp_path / "source"
    write_files(root, images)
    _copied(root, place)
    expected = _packed(make(root), tmp_path / "from files")
    source = make(place)
    assert _packed(source, tmp_path / "from store") == expected
    assert source.describe() == make(root).describe()
    listing, local = source.list_samples(), make(root).list_samples()
    assert list(listing.samples) == list(local.samples)
    assert len(listing.notices) == len(local.notices)


def test_two_folders_in_two_stores(place: PlaceLike, tmp_path: Path, images: ModuleType) -> None:
    root = tmp_path / "source"
    _pairs(root, images)
    _copied(root, place)
    masks = f"{place}/masks" if isinstance(place, str) else place / "masks"
    apart = rs.ImagePairs(root, images="images", masks=masks)
    expected = _packed(rs.ImagePairs(root), tmp_path / "one")
    assert _packed(apart, tmp_path / "two") == expected


@pytest.mark.parametrize("kind", ["class folders", "pairs", "voc", "coco", "yolo", "archives"])
def test_the_type_is_detected_in_every_store(
    kind: str, place: PlaceLike, tmp_path: Path, images: ModuleType
) -> None:
    CASES[kind][0](tmp_path / "source", images)
    _copied(tmp_path / "source", place)
    found, local = make_source(place), make_source(tmp_path / "source")
    assert (found.format, found.options, found.reading) == (
        local.format,
        local.options,
        local.reading,
    )


def test_versions_change_when_objects_are_written_again(
    place: PlaceLike, tmp_path: Path, images: ModuleType
) -> None:
    _class_folders(tmp_path / "source", images)
    _copied(tmp_path / "source", place)
    source = rs.ImageFolder(place)
    before = {sample.name: sample.version for sample in source.list_samples().samples}
    again = as_folder(place) / "cat/001.jpg"
    again.put(again.read())
    after = {sample.name: sample.version for sample in source.list_samples().samples}
    assert {name for name in before if before[name] != after[name]} == {"cat/001.jpg"}


def test_what_is_missing_in_a_store(place: PlaceLike) -> None:
    for make in (rs.ImageFolder, rs.ImageFiles, rs.Voc, rs.Coco, rs.Yolo, rs.ImagePairs, rs.Table):
        with raises(rs.FileAccessError, path=str(place), operation="read"):
            make(place).list_samples()  # type: ignore[operator]
    with raises(rs.FileAccessError, path=str(place), operation="read"):
        make_source(place)
