"""Every source packs the same bytes from files, from memory and from a store without folders."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import Source, open_reader
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.tables.detection import find_candidates
from recordsmith.stores import FolderEntry, Location, PlaceLike, as_folder

from ..raising import raises
from ..stores.delayed import DelayedStore
from .annotated import coco, image, voc, write
from .layouts.files import tar_bytes
from .tfds_folder import (
    image_feature,
    steps_feature,
    tensor_feature,
    text_feature,
    write_by_hand,
)

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


def _dota(root: Path, images: ModuleType) -> None:
    for name in ("train/{}/a", "train/{}/b", "val/{}/a"):
        image(root / f"{name.format('images')}.jpg")
        write(root / f"{name.format('labelTxt')}.txt", "1 1 9 3 8 7 0 5 cat 0\n")


def _labelme(root: Path, images: ModuleType) -> None:
    for name in "ab":
        image(root / f"{name}.jpg")
        shapes = '[{"label": "cat", "points": [[1, 1], [9, 1], [9, 9]]}]'
        write(root / f"{name}.json", f'{{"shapes": {shapes}, "imagePath": "{name}.jpg"}}')


def _cvat(root: Path, images: ModuleType) -> None:
    box = '<box label="cat" xtl="1" ytl="2" xbr="3" ybr="4"/>'
    for name in "ab":
        image(root / f"{name}.jpg")
    elements = "".join(f'<image id="{name}" name="{name}.jpg">{box}</image>' for name in "ab")
    write(root / "annotations.xml", f"<annotations><version/>{elements}</annotations>")


def _box_rows(root: Path, images: ModuleType) -> None:
    for name in "ab":
        image(root / f"{name}.jpg")
    write(root / "boxes.csv", "file,class,x1,y1,x2,y2\na.jpg,cat,1,2,3,4\nb.jpg,dog,1,2,9,9\n")


def _archives(root: Path, images: ModuleType) -> None:
    root.mkdir()
    members = {"a.txt": b"text", "a.cls": b"3", "b.txt": b"", "b.cls": b"1"}
    for number in range(2):
        (root / f"train-{number}.tar").write_bytes(tar_bytes(members))
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


def _arrays(root: Path, images: ModuleType) -> None:
    (root / "mnist").mkdir(parents=True)
    pixels = np.arange(5 * 8 * 6, dtype=np.uint8).reshape(5, 8, 6)
    head = bytes((0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 6))
    (root / "mnist/train-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + pixels.tobytes()))
    (root / "mnist/train-labels-idx1-ubyte").write_bytes(bytes((0, 0, 8, 1, 0, 0, 0, 5, *range(5))))
    np.savez(root / "plain.npz", images=pixels, labels=np.arange(5))
    np.savez_compressed(root / "packed.npz", images=pixels / 3, labels=np.arange(5))


def _kaggle(root: Path, images: ModuleType) -> None:
    for number in range(4):
        image(root / "train" / f"{number}.jpg")
    write(root / "train.csv", "id,label\n0,a\n1,b\n2,a\nmissing,b\n")
    write(root / "test.csv", "id\n9\n")


def _shards(root: Path, images: ModuleType) -> None:
    root.mkdir()
    for name in "ab":
        with rs.ShardWriter(root / f"{name}.tfrecord") as writer:
            writer.write(b"1")
            writer.write(b"22")


def _tfds(root: Path, images: ModuleType) -> None:
    step = {"image": image_feature(), "action": tensor_feature("float32", [2])}
    records = [
        {
            "steps/image": [images.encode(images.noise(8, 6), "PNG")] * count,
            "steps/action": [float(number)] * 2 * count,
            "name": f"episode {number}",
        }
        for number, count in enumerate((5, 2, 3, 6))
    ]
    write_by_hand(root, {"steps": steps_feature(step), "name": text_feature()}, records)


CASES: dict[str, tuple[Callable[[Path, ModuleType], None], Callable[[Any], Source]]] = {
    "class folders": (_class_folders, rs.ImageFolder),
    "files": (_class_folders, lambda root: rs.ImageFiles(root, class_pattern="^[a-z]+")),
    "pairs": (_pairs, rs.ImagePairs),
    "folders of pairs": (_pairs, lambda root: rs.ImagePairs(root, images="images", masks="masks")),
    "voc": (_voc, rs.Voc),
    "coco": (_coco, lambda root: rs.Coco(root, object_masks=None)),
    "coco file": (_coco, lambda root: rs.Coco(as_folder(root) / "annotations/all.json")),
    "coco options": (
        _coco,
        lambda root: rs.Coco(root, annotations="annotations/all.json", images="images"),
    ),
    "yolo": (_yolo, rs.Yolo),
    "yolo file": (_yolo, lambda root: rs.Yolo(as_folder(root) / "data.yaml")),
    "dota": (_dota, lambda root: rs.Dota(root, object_masks="instance")),
    "labelme": (_labelme, lambda root: rs.LabelMe(root, object_masks="class")),
    "cvat": (_cvat, rs.Cvat),
    "box rows": (_box_rows, rs.CsvBoxes),
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
    "shards": (_shards, rs.Shards),
    "idx": (_arrays, lambda root: rs.Arrays(as_folder(root) / "mnist")),
    "npz": (_arrays, lambda root: rs.Arrays(as_folder(root) / "plain.npz")),
    "compressed npz": (_arrays, lambda root: rs.Arrays(as_folder(root) / "packed.npz")),
    "tfds": (_tfds, rs.Tfds),
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    "case", ["csv", "named images", "jsonl", "archives", "shards", "idx", "npz", "compressed npz"]
)
def test_samples_are_read_elsewhere_from_every_store(
    case: str, tmp_path: Path, images: ModuleType
) -> None:
    url = f"memory://{uuid4()}/source"
    write_files, make = CASES[case]
    write_files(tmp_path / "source", images)
    _copied(tmp_path / "source", url)
    listing = make(url).list_samples()
    reader = open_reader(json.loads(json.dumps(listing.reader.to_json())))
    for sample in listing.samples:
        ours, theirs = listing.reader.read(sample), reader.read(sample)
        assert str(ours) == str(theirs)
    for found in as_folder(url).list():
        found.delete()


def test_a_table_with_images_is_found_in_every_store(
    place: PlaceLike, tmp_path: Path, images: ModuleType
) -> None:
    _kaggle(tmp_path / "source", images)
    _copied(tmp_path / "source", place)
    (reading,) = find_candidates(FileTree(as_folder(place)))
    assert [reading] == list(find_candidates(FileTree(as_folder(tmp_path / "source"))))
    source = rs.detect(place, reading.format, **reading.options).source
    references = [sample.reference for sample in source.list_samples().samples]
    assert [reference.get("image") for reference in references] == [
        "0.jpg",
        "1.jpg",
        "2.jpg",
        None,
    ]


@pytest.mark.parametrize(
    "kind", ["class folders", "pairs", "voc", "coco", "yolo", "archives", "tfds"]
)
def test_the_type_is_detected_in_every_store(
    kind: str, place: PlaceLike, tmp_path: Path, images: ModuleType
) -> None:
    CASES[kind][0](tmp_path / "source", images)
    _copied(tmp_path / "source", place)
    found, local = rs.detect(place), rs.detect(tmp_path / "source")
    assert found.reading == local.reading


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
    for make in (
        rs.ImageFolder,
        rs.ImageFiles,
        rs.Voc,
        rs.Coco,
        rs.Yolo,
        rs.CreateML,
        rs.Dota,
        rs.Kitti,
        rs.SegmentAnything,
        rs.Via,
        rs.LabelMe,
        rs.Cvat,
        rs.LabelStudio,
        rs.CsvBoxes,
        rs.ImagePairs,
        rs.Table,
    ):
        with raises(rs.FileAccessError, path=str(place), operation="read"):
            make(place).list_samples()  # type: ignore[operator]
    with raises(rs.FileAccessError, path=str(place), operation="read"):
        _ = rs.detect(place).source


@pytest.mark.parametrize("case", ["class folders", "pairs"])
def test_the_first_listing_uses_what_the_detector_listed(
    case: str, tmp_path: Path, images: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[str] = []
    list_entries = Location.list_entries

    def record(location: Location) -> Iterator[FolderEntry]:
        folders.append(str(location))
        return list_entries(location)

    write_files, _ = CASES[case]
    write_files(tmp_path, images)
    monkeypatch.setattr(Location, "list_entries", record)
    source = rs.detect(tmp_path).source
    samples = source.list_samples().samples
    assert len(samples) == len({sample.name for sample in samples})
    assert len(folders) == len(set(folders))
    for sample in [*samples][1:]:
        (tmp_path / sample.name).unlink()
    assert len(source.list_samples().samples) < len(samples)  # the second one lists again
