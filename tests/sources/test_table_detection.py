"""Tables in folders: how they are read, compared with the csv module and Pillow."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.sources import Source
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.tables import detection
from recordsmith.sources.tables.detection import find_candidates, read_table_head
from recordsmith.stores import as_folder
from recordsmith.support.errors import with_options

from ..raising import raises
from ..reading import read_sample
from .drawn_folders import write
from .source_contract import SourceContract, left_out

CLASSES = ("cat", "dog", "horse")


def _images(folder: Path, names: Sequence[str], images: ModuleType, form: str = "PNG") -> None:
    """Images whose bytes differ: their number is in their width."""
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(images.encode(images.noise(5 + number, 4), form))


def _table(path: Path, header: str, rows: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in (header, *rows)))


def _readings(folder: Path) -> list[LayoutCandidate]:
    return list(find_candidates(FileTree(as_folder(folder))))


def _source(folder: Path) -> tuple[LayoutCandidate, Source]:
    (reading,) = _readings(folder)
    return reading, rs.detect(folder, reading.format, **reading.options).source


class TestContract(SourceContract):
    """Names without suffix, in a folder next to the table."""

    def make_source(self, folder: Path, images: ModuleType) -> Source:
        _images(folder / "train", [f"{n}.png" for n in range(6)], images)
        _table(folder / "train.csv", "id,label", [f"{n},{CLASSES[n % 3]}" for n in range(6)])
        _table(folder / "test.csv", "id", ["7"])
        return _source(folder)[1]


def _check(source: Source, expected: Sequence[tuple[Path, str | None]]) -> None:
    """Compare with (image, class) of each row."""
    listing = source.list_samples()
    assert len(listing.samples) == len(expected)
    for sample, (path, name) in zip(listing.samples, expected, strict=True):
        features: Any = read_sample(source, sample)
        assert features["image/encoded"] == path.read_bytes()
        with Image.open(path) as image:
            assert (features["image/width"], features["image/height"]) == image.size
        if name is None:
            assert listing.class_names is None
        else:
            assert listing.class_names is not None
            assert listing.class_names[sample.label or 0] == name
            assert features["image/class/text"] == name.encode()


@pytest.mark.parametrize(
    ("table", "column", "folder", "stem", "suffix"),
    [
        ("train.csv", "image_id", "train_images", "Train_{}", ".jpg"),
        ("train.csv", "id", "train", "{}", ".jpg"),
        ("train.csv", "id", "train", "{:012x}", ".png"),
        ("train.csv", "image", "train/train", "a{}", ".JPG"),
        ("labels.csv", "filename", "images", "img{}.jpg", ""),
        ("labels.csv", "path", "", "images/img{}.png", ""),
        ("labels.csv", "path", "", "./images/img{}.png", ""),
        ("labels.csv", "path", "", "images\\img{}.png", ""),
        ("labels.csv", "file", "", "img{}.png", ""),
        ("sub/labels.csv", "file", "sub", "img{}.png", ""),
        ("annotations/labels.csv", "file", "images", "img{}.png", ""),
        ("labels.tsv", "name", "Images", "img{}", ".jpeg"),
        ("labels.jsonl", "name", "images", "img{}.png", ""),
        ("labels.parquet", "name", "images", "img{}", ".png"),
    ],
)
def test_a_column_of_images(
    tmp_path: Path,
    images: ModuleType,
    table: str,
    column: str,
    folder: str,
    stem: str,
    suffix: str,
) -> None:
    values = [stem.format(number + 1) for number in range(12)]
    form = "JPEG" if "jp" in (values[0] + suffix).lower() else "PNG"
    names = [value.replace("\\", "/") + suffix for value in values]
    _images(tmp_path / folder, names, images, form)
    classes = [CLASSES[number % 3] for number in range(12)]
    path = tmp_path / table
    rows = [{column: value, "label": name} for value, name in zip(values, classes, strict=True)]
    path.parent.mkdir(exist_ok=True)
    if table.endswith(".parquet"):
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif table.endswith(".jsonl"):
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            delimiter = "\t" if table.endswith(".tsv") else ","
            writer = csv.DictWriter(file, [column, "label"], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    reading, source = _source(tmp_path)
    assert reading.format == "table"
    assert reading.options["image_column"] == column
    assert reading.options["label_column"] == "label"
    for part in (table, f"(column {column})"):
        assert part in reading.what
    _check(source, [(tmp_path / folder / n, c) for n, c in zip(names, classes, strict=True)])
    assert source.list_samples().notices == ()


@pytest.mark.parametrize("above", ["", "images"])
def test_images_in_several_folders(tmp_path: Path, images: ModuleType, above: str) -> None:
    _images(tmp_path / above / "part_1", [f"ISIC_{n}.jpg" for n in range(6)], images, "JPEG")
    _images(tmp_path / above / "part_2", [f"ISIC_{n}.jpg" for n in range(6, 11)], images, "JPEG")
    _images(tmp_path / above / "test", [f"x{n}.jpg" for n in range(3)], images, "JPEG")
    _table(tmp_path / "metadata_of_all.csv", "image,dx", [f"ISIC_{n},{n % 2}" for n in range(10)])
    reading, source = _source(tmp_path)
    assert reading.options["images"] == (above or ".")
    paths = [tmp_path / above / f"part_{1 + (n > 5)}" / f"ISIC_{n}.jpg" for n in range(10)]
    _check(source, [(path, str(n % 2)) for n, path in enumerate(paths)])
    head = f"{above}/" if above else ""
    assert left_out(source.list_samples()) == {
        "not in the lists of the dataset": [f"{head}part_2/ISIC_10.jpg"],
        "a split without labels": [f"{head}test/x{n}.jpg" for n in range(3)],
    }
    assert json.dumps(source.describe()).count(str(tmp_path.name)) <= 1


def test_a_column_of_images_without_a_name(tmp_path: Path, images: ModuleType) -> None:
    _images(tmp_path / "images", [f"{n}.png" for n in range(6)], images)
    _table(tmp_path / "t.csv", ",label", [f"{n}.png,{CLASSES[n % 2]}" for n in range(6)])
    reading, source = _source(tmp_path)
    assert reading.options["image_column"] == "column_0"
    _check(source, [(tmp_path / f"images/{n}.png", CLASSES[n % 2]) for n in range(6)])


def test_tables_that_repeat_class_folders(tmp_path: Path, images: ModuleType) -> None:
    """All of a head counts, as rows are in the order of their folders; folders are offered, too."""
    root = tmp_path / "in"
    for split, starts in (("train", (0, 600)), ("test", (0, 20))):
        names = {name: range(start, start + 20) for name, start in zip("ab", starts, strict=True)}
        for name, numbers in names.items():
            _images(root / split / name, [f"{n}.png" for n in numbers], images)
        extra = [f"{n}.png,a" for n in range(20)] * 20  # more than 300 rows
        rows = [f"{n}.png,{name}" for name, numbers in names.items() for n in numbers]
        _table(root / f"{split}.csv", "file,class", extra + rows if split == "train" else rows)
    with raises(rs.SourceError) as caught:
        rs.detect(root).reading  # noqa: B018
    ways = [with_options(way).partition(": ")[2] for way in caught.value.problems]
    assert ways == [
        "format='table' table='test.csv' image_column='file' images='test' label_column='class'",
        "format='table' table='train.csv' image_column='file' images='train' label_column='class'",
        "format='folder'",
    ]
    for table, count in (("test", 40), ("train", 440)):
        reading = rs.detect(root, table=f"{table}.csv", images=table)
        assert rs.pack(reading.source, tmp_path / f"out_{table}").sample_count == count


def test_names_in_several_folders_are_ambiguous(tmp_path: Path, images: ModuleType) -> None:
    for folder in ("a", "b"):
        _images(tmp_path / folder, ["1.png"], images)
    _table(tmp_path / "t.csv", "image", ["1.png"])
    source = rs.Table(tmp_path, table="t.csv", image_column="image", images=".")
    assert any("1 row without an image file" in each for each in source.list_samples().notices)
    with raises(rs.SourceError):
        read_sample(source, source.list_samples().samples[0])


def test_tables_of_splits(tmp_path: Path, images: ModuleType) -> None:
    _images(tmp_path / "images", [f"{n}.png" for n in range(12)], images)
    for name, numbers in (("train", range(8)), ("val", range(8, 10)), ("test", range(10, 12))):
        rows = [f"{n}.png,{CLASSES[n % 2]}" for n in numbers]
        _table(tmp_path / f"{name}.csv", "file,class", rows)
    reading, source = _source(tmp_path)
    assert "table" not in reading.options
    listing = source.list_samples()
    assert left_out(listing) == {}
    assert listing.splits == ("train", "val", "test")
    by_split = {s: [x.split for x in listing.samples].count(s) for s in listing.splits}
    assert by_split == {"train": 8, "val": 2, "test": 2}
    _table(tmp_path / "names.csv", "number,text", ["0,a", "1,b"])
    reading, other = _source(tmp_path)
    assert reading.options["table"].split(",") == ["test.csv", "train.csv", "val.csv"]
    assert other.list_samples().samples == listing.samples
    assert left_out(other.list_samples()) == {"not images": ["names.csv"]}


def test_rows_without_images_and_images_without_rows(tmp_path: Path, images: ModuleType) -> None:
    folder = tmp_path / "d"
    _images(folder / "images", [f"{n}.png" for n in range(10)], images)
    _images(folder / "images", ["7.jpg"], images, "JPEG")
    names = [*range(9), 0, "gone", "also gone"]
    _table(folder / "t.csv", "id,label", [f"{name},a" for name in names])
    _, source = _source(folder)
    notices = source.list_samples().notices
    (rows,) = [each for each in notices if each.startswith("3 rows without an image file")]
    assert rows.endswith(": 7, gone and also gone")
    assert any(each.startswith("1 row with the image of another") for each in notices)
    (orphans,) = [each for each in notices if each.startswith("3 images without a row")]
    assert all(name in orphans for name in ("7.jpg", "7.png", "9.png"))
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(source, tmp_path / "out")
    assert caught.value.problem_count == 3
    assert rs.pack(source, tmp_path / "out", skip_errors=True).sample_count == 9


@pytest.mark.parametrize("folders", [[""], ["test", "train"]])
def test_metadata_have_classes_and_splits(
    tmp_path: Path, images: ModuleType, folders: list[str]
) -> None:
    """A column of splits is not read where folders are splits; texts are captions."""
    for folder in folders:
        _images(tmp_path / folder, ["0.png", "1.png"], images)
        rows = ["0.png,x,a,test", "1.png,x,b,train"]
        _table(tmp_path / folder / "metadata.csv", "file_name,text,label,split", rows)
    reading, source = _source(tmp_path)
    assert "column label" in reading.describe()
    assert ("split_column" in reading.options) == (folders == [""])
    listing = source.list_samples()
    assert (listing.class_names, {*listing.splits}) == (("a", "b"), {"test", "train"})
    assert read_sample(source, listing.samples[0])["image/caption"] == [b"x"]


@pytest.mark.parametrize(
    ("header", "row", "label"),
    [
        ("id,breed", lambda n: f"{n},{CLASSES[n % 3]}", "breed"),
        ("id,whatever", lambda n: f"{n},{CLASSES[n % 3]}", "whatever"),
        ("id,digit", lambda n: f"{n},{n % 10}", "digit"),
        ("id,age", lambda n: f"{n},{20 + n}", None),
        ("id,target", lambda n: f"{n},{n / 7:.3f}", None),
        ("id,caption", lambda n: f"{n},text {n}", None),
        ("id,Caption", lambda n: f"{n},{CLASSES[n % 3]}", None),
        ("id,width,height", lambda n: f"{n},{n % 2},{n % 3}", None),
        ("id,width,Label", lambda n: f"{n},{n % 2},{CLASSES[n % 3]}", "Label"),
        ("id,class_id,class_name", lambda n: f"{n},{n % 3},{CLASSES[n % 3]}", None),
        ("id,class,species", lambda n: f"{n},{n % 2},{CLASSES[n % 3]}", None),
        ("id,labels", lambda n: f'{n},"{("a, b", "a", "b")[n % 3]}"', None),
        ("id,tags", lambda n: f"{n},{' '.join(c for c in 'abc' if n >> 'abc'.index(c) & 1)}", None),
    ],
)
def test_the_column_of_classes(
    tmp_path: Path,
    images: ModuleType,
    header: str,
    row: Callable[[int], str],
    label: str | None,
) -> None:
    _images(tmp_path / "train", [f"{n}.png" for n in range(40)], images)
    _table(tmp_path / "train.csv", header, list(map(row, range(40))))
    (reading,) = _readings(tmp_path)
    assert reading.options["image_column"] == "id"
    assert reading.options.get("label_column") == label
    assert (f"column {label}" in reading.describe()) == (label is not None)
    separator = {"id,tags": " ", "id,labels": ","}.get(header)
    hints = [with_options(hint) for hint in reading.hints.values()]
    assert [f"label_separator={separator!r}" in hint for hint in hints] == [True] * bool(separator)


BOXES = [f"{n}.png,4,3,{n % 2},0,0,2,2,cat" for n in (*range(9), *range(9))]


@pytest.mark.parametrize(
    ("header", "is_known"),
    [
        ("filename,width,height,n,xmin,ymin,xmax,ymax,class", True),
        ("ImageID,Source,q,Confidence,XMin,YMin,XMax,YMax,LabelName", True),
        ("image,a,b,c,x,y,w,h,label", True),
        ("patient,a,b,c,bbox_x1,bbox_y1,bbox_x2,bbox_y2,label", False),
        ("patient,a,b,c,x,y,width,height,label", False),
    ],
)
@pytest.mark.parametrize("name", ["boxes.csv", "boxes.tsv"])
def test_tables_of_boxes_are_not_rows_of_images(
    tmp_path: Path, images: ModuleType, header: str, name: str, *, is_known: bool
) -> None:
    """Only `--format table` reads them so; a column of images that is found by its values is told
    to the source of boxes."""
    _images(tmp_path, [f"{n}.png" for n in range(9)], images)
    delimiter = "\t" if name.endswith(".tsv") else ","
    _table(tmp_path / name, *_delimited(delimiter, header, BOXES))
    column = header.partition(",")[0]
    *boxes, table = _readings(tmp_path)
    assert (table.format, table.confidence) == ("table", Confidence.POSSIBLE)
    assert rs.detect(tmp_path, "table").reading.options["image_column"] == column
    assert [(each.format, each.options) for each in boxes] == (
        [] if is_known else [("csv-boxes", {"image_column": column})]
    )
    detection = rs.detect(tmp_path)
    assert detection.reading.format == "csv-boxes"
    assert [sample.name for sample in detection.source.list_samples().samples] == [
        f"{n}.png" for n in range(9)
    ]


def _delimited(delimiter: str, header: str, rows: Sequence[str]) -> tuple[str, list[str]]:
    return header.replace(",", delimiter), [row.replace(",", delimiter) for row in rows]


NUMBERS = ["a,1,1,3,3,x", "a,0,0,2,2,y", "b,1,2,2,2,x"]


@pytest.mark.parametrize(
    ("rows", "are_boxes"),
    [
        (NUMBERS, True),
        (NUMBERS[1:], False),  # one row an image
        (["a,1,1,3,3,x", "a,0,0,2,5,y", "b,1,2,2,2,x"], False),  # images are 4 pixels high
        (["a,1,1,3,3,x", "a,0,-1,2,2,y", "b,1,2,2,2,x"], False),
        (["a,1,1,3,,x", "a,0,0,2,2,y", "b,1,2,2,2,x"], False),
    ],
)
def test_four_numbers_in_several_rows_of_an_image(
    tmp_path: Path, images: ModuleType, rows: Sequence[str], *, are_boxes: bool
) -> None:
    _images(tmp_path, ["a.png", "b.png"], images)
    _table(tmp_path / "t.csv", "file,p,q,r,s,label", rows)
    assert rs.detect(tmp_path, "table").reading.options["image_column"] == "file"
    if len(rows) == 2:  # one row an image
        assert rs.detect(tmp_path).reading.format == "table"
        return
    match = "p, q, r and s" if are_boxes else "a have different classes"
    with raises(rs.SourceError, path=tmp_path, match=match):
        _ = rs.detect(tmp_path).reading
    if are_boxes:
        source = rs.detect(tmp_path, boxes_as="xywh").source
        assert len(source.list_samples().samples) == 2


def test_boxes_in_a_table_that_is_not_text(tmp_path: Path, images: ModuleType) -> None:
    _images(tmp_path, ["a.png", "b.png"], images)
    rows = [{"file": name, "bbox": [0, 0, 1, 2], "label": "x"} for name in ("a.png", "b.png")]
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with raises(rs.SourceError, path=tmp_path, match="CSV"):
        _ = rs.detect(tmp_path).reading
    assert rs.detect(tmp_path, "table").reading.options["image_column"] == "file"


def test_tables_without_images(tmp_path: Path) -> None:
    _table(tmp_path / "a.csv", "x1,x2,y1,y2", ["1,2,3,4"])  # no image, so no box
    assert [each.confidence for each in _readings(tmp_path)] == [Confidence.ANNOTATED]
    _table(tmp_path / "a.csv", "x,y", ["1,2"])
    (reading,) = _readings(tmp_path)
    assert (reading.options, reading.noun) == ({}, "rows")
    _table(tmp_path / "b.csv", "x,y", ["3,4"])
    (reading,) = _readings(tmp_path)
    assert reading.options == {}
    _table(tmp_path / "b.csv", "z", ["3"])
    assert [each.options for each in _readings(tmp_path)] == [
        {"table": "a.csv"},
        {"table": "b.csv"},
    ]


def test_a_table_that_names_no_images_is_no_reading_of_them(
    tmp_path: Path, images: ModuleType
) -> None:
    _images(tmp_path, [f"{c}/{n}.png" for c in "ab" for n in range(3)], images)
    _table(tmp_path / "log.csv", "epoch,width,loss", ["1,1,2.5", "2,2,2.25"])
    assert _readings(tmp_path) == []


@pytest.mark.posix
@pytest.mark.parametrize(
    "content",
    [
        ",".join(f"c{n}" for n in range(1_000_000)).encode() + b"\n1\n",
        b'id,label\n1\n2,a,b\n\n"\n',
        b"id,label\n" + b"../secret.png,a\n" * 9,
        b"id,label\n" + b"/etc/passwd,a\n" * 9,
        b"id,label\n" + b"C:\\x.png,a\n" * 9,
        b"id,label\n" + b"a\0b.png,a\n" * 9,
        b"id\n" + b"x" * 500_000 + b"\n",
        b"id,label\n" + b"link/0.png,a\n" * 9,
        b"\xff\xfe\x00",
        b"",
        b"\n\n\n",
    ],
)
def test_hostile_tables_are_no_readings(tmp_path: Path, images: ModuleType, content: bytes) -> None:
    _images(tmp_path / "d" / "images", ["0.png"], images)
    _images(tmp_path, ["secret.png"], images)
    (tmp_path / "d" / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "d" / "t.csv").write_bytes(content)
    assert _readings(tmp_path / "d") == []


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
@pytest.mark.parametrize(("limit", "rows"), [(1 << 20, 300), (40_000, 20)])
def test_heads_of_tables_with_repeated_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int, rows: int
) -> None:
    """A text that the file stores once is read for as many rows as fit in the limit."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    texts = pa.array(["x" * 2_000] * 9_000).dictionary_encode()
    numbers = pa.array(range(9_000), "int32")
    write: Any = parquet.write_table if name.endswith("parquet") else feather.write_feather
    write(pa.table({"text": texts, "number": numbers}), str(tmp_path / name))
    monkeypatch.setattr(detection, "_HEAD_BYTES", limit)
    head = read_table_head(FileTree(as_folder(tmp_path)), name)
    assert head is not None
    assert rows <= len(head.columns["text"]) <= min(300, 2 * rows)
    assert head.columns["number"] == [str(n) for n in range(len(head.columns["text"]))]


def test_splits_do_not_share_images_whose_names_others_have(tmp_path: Path) -> None:
    """Rows of `val` name `0.jpg`, which is in `train/` and in `val/`."""
    files = {"train/{0-3}.jpg": "photo", "val/{0-3}.jpg": "photo"}
    rows = "".join(f"{n}.jpg,c{n % 2},{split}\n" for split in ("train", "val") for n in range(4))
    root = write(tmp_path / "x", files | {"labels.csv": f"image,label,split\n{rows}"})
    with raises(rs.SourceError, match="train and val have the image train/0.jpg") as caught:
        rs.detect(root).source.list_samples()
    assert "val/0.jpg" in caught.value.problem
    rows = "".join(f"{s}/{n}.jpg,c{n % 2},{s}\n" for s in ("train", "val") for n in range(4))
    (root / "labels.csv").write_text(f"image,label,split\n{rows}")
    listing = rs.detect(root).source.list_samples()
    images = {sample.reference["image"] for sample in listing.samples if sample.reference}
    assert len(images) == 8
