"""Tables of boxes: what columns and numbers mean, Open Images, and what is wrong in rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import (
    CsvBoxes,
    Sample,
    Source,
    open_reader,
)

from ..raising import places, raises
from .annotated import (
    BOX,
    CAT,
    CSV_HEADER,
    CSV_ROWS,
    OPEN_IMAGES,
    boxes_of,
    csv_boxes,
    image,
    problems_of,
    read,
    write,
)
from .source_contract import SourceContract


class TestContractOfCsv(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return CsvBoxes(csv_boxes(folder))


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (CSV_HEADER, f"a.jpg,40,20,{CAT}"),
        ("\ufeffImage_Path;X1;Y1;X2;Y2;Label\n", "images/a.jpg;4;5;14;15;cat"),
        ("class\timage\tleft\ttop\tright\tbottom\n", "cat\ta\t4\t5\t14\t15"),
        ("", "/data/x/images/a.jpg,4,5,14,15,cat"),
        ("\n\nfilename,class,xmin,ymin,xmax,ymax,score\n\n", '"a.jpg"," cat ",4.0,5,14, 15 ,1'),
        ("file,label,xmin,ymin,xmax,ymax\n", "a.jpg,cat,0.1,0.25,0.35,0.75"),
        ("fname,bbox_x1,bbox_y1,bbox_x2,bbox_y2,class\n", "a.jpg,4,5,14,15,cat"),
        ("image|BoxXMin|BoxYMin|BoxXMax|BoxYMax|label\n", "a.jpg|4|5|14|15|cat"),
        ("img_path,x0,y0,x1,y1,category\n", "images/a.jpg,4,5,14,15,cat"),
        ("image_id,minx,miny,maxx,maxy,species\n", "a,4,5,14,15,cat"),
        ("image,name,bndbox.xmin,bndbox.ymin,bndbox.xmax,bndbox.ymax\n", "a,cat,4,5,14,15"),
        ("image,class,bb_left,bb_top,bb_width,bb_height\n", "a.jpg,cat,4,5,10,10"),
        ("image,class,left,top,width,height\n", "a.jpg,cat,4,5,10,10"),
        ("image_name,label_name,x1,y1,w,h\n", "a.jpg,cat,4,5,10,10"),
        ("file,width,height,class,bbox_xmin,bbox_ymin,bbox_w,bbox_h\n", "a,40,20,cat,4,5,10,10"),
        ("file,width,height,class,x_min,y_min,w,h\n", "a,40,20,cat,4,5,10,10"),
        ("file,class,cx,cy,w,h\n", "a,cat,9,10,10,10"),
        ("file,class,x_center,y_center,width,height\n", "a,cat,0.225,0.5,0.25,0.5"),
        (
            "score,file,class,x,y,w,h,bbox_left,bbox_top,bbox_right,bbox_bottom\n",
            "1,a,cat,1,1,2,2,4,5,14,15",
        ),
        ("file,class,bbox_xyxy\n", 'a,cat,"[4, 5, 14, 15]"'),
        ("file,class,box-xywh\n", "a,cat,4 5 10 10"),
    ],
)
def test_columns_of_a_csv(tmp_path: Path, header: str, row: str) -> None:
    listing = CsvBoxes(csv_boxes(tmp_path, f"{row}\n", header, "a")).list_samples()
    features, _ = read(listing)
    assert [sample.name for sample in listing.samples] == ["images/a.jpg"]
    assert boxes_of(features) == [BOX]
    assert features["image/object/class/text"] == [b"cat"]
    left_out = [notice for notice in listing.notices if "not packed" in notice]
    assert len(left_out) == ("score" in header)
    assert len(listing.notices) - len(left_out) == ("0.25" in row)  # relative


_XYWH = "file,class,x,y,w,h\n"


_CELL = "file,class,width,height,bbox\n"


@pytest.mark.parametrize(
    ("header", "rows", "notation"),
    [
        (_XYWH, ["a,cat,4,5,10,10", "a,cat,0,0,5,5"], "xywh"),
        ("file,class,width,height,x,y,w,h\n", ["a,cat,40,20,9,10,10,10", "a,cat,40,20,38,10,4,4"],
         "cxcywh"),
        ("file,class,x,y,width,height\n", ["a,cat,.1,.25,.25,.5", "a,cat,0,0,.1,.1"], "xywh"),
        ("file,class,x,y,width,height\n", ["a,cat,.225,.5,.25,.5", "a,cat,.9,.9,.2,.2"], "cxcywh"),
        ("file,class,bbox_x,bbox_y,bbox_w,bbox_h\n", ["a,cat,4,5,10,10"], "xywh"),
        (_XYWH, ["a,cat,9,10,10,10", "a,cat,20,10,4,4"], None),
        (_XYWH, ["a,cat,4,5,10,10"], None),  # one row an image may be no box
        (_XYWH, ["a,cat,4,5,10,10", "a,cat,0,0,5,5", *["b,cat,20,10,4,4"] * 150], None),
        (_CELL, ['a,cat,40,20,"[4, 5, 10, 10]"', 'a,cat,40,20,"[30.0, 5, 10, 10]"'], "xywh"),
        (_CELL, ['a,cat,40,20,"[4, 5, 14, 15]"', 'a,cat,40,20,"(20, 10, 40, 20)"'], "xyxy"),
        (_CELL, ["a,cat,40,20,9 10 10 10", "a,cat,40,20,36 16 8 8"], "cxcywh"),
        (_CELL, ["a,cat,40,20,4;5;14;15"], None),
        ("file,class,width,height,x,y,w,h\n",
         [*["a,cat,40,20,4,5,10,10"] * 99, "a,cat,40,20,35,5,10,10"], None),
        (_CELL, [*["a,cat,40,20,4 5 10 10"] * 99, "a,cat,40,20,30 5 0 10"], None),
        ("file,class,bbox\n", ['a,cat,"[4, 5, 14, 15]"', 'a,cat,"[20, 10, 40, 20]"'], None),
    ],
)  # fmt: skip
def test_what_four_numbers_are(
    tmp_path: Path, header: str, rows: Sequence[str], notation: Any
) -> None:
    root = csv_boxes(tmp_path, "".join(f"{row}\n" for row in rows), header, "ab")
    if notation is None:
        with raises(rs.SourceError, path="boxes.csv", line=1, match="boxes_as='"):
            CsvBoxes(root).list_samples()
        return
    for given in (None, notation):
        listing = CsvBoxes(root, boxes_as=given).list_samples()
        assert np.allclose(boxes_of(read(listing)[0])[0], BOX)
        assert sum(f"as {notation}" in notice for notice in listing.notices) == (given is None)


def test_boxes_as_overrules_the_names(tmp_path: Path) -> None:
    root = csv_boxes(tmp_path, "a,cat,4,5,10,10\n", "file,class,xmin,ymin,xmax,ymax\n", "a")
    assert boxes_of(read(CsvBoxes(root, boxes_as="xywh").list_samples())[0]) == [BOX]
    bare = csv_boxes(tmp_path / "bare", "a.jpg,9,10,10,10,cat\n", "", "a")
    assert boxes_of(read(CsvBoxes(bare, boxes_as="cxcywh").list_samples())[0]) == [BOX]
    with raises(rs.OptionError, option="boxes_as", value="yxyx"):
        CsvBoxes(root, boxes_as="yxyx")  # type: ignore[arg-type]


def test_columns_of_other_names(tmp_path: Path) -> None:
    root = csv_boxes(tmp_path, "a,1,4,5,14,15,cat\na,2,0,0,2,2,dog\n", "pic,id,l,t,r,b,what\n", "a")
    source = CsvBoxes(root, image_column="pic", label_column="what", boxes_as="xyxy")
    features, _ = read(source.list_samples())
    assert features["image/object/class/text"] == [b"cat", b"dog"]
    assert boxes_of(features) == [BOX, (0, 0, 0.1, 0.05)]
    assert source.describe()["image_column"] == "pic"
    unnamed = CsvBoxes(root, image_column="pic", boxes_as="xyxy").list_samples()
    assert unnamed.class_names == (None, "object")
    assert any("what" in notice for notice in unnamed.notices)
    with raises(rs.OptionError, option="label_column", value="kind"):
        CsvBoxes(root, image_column="pic", label_column="kind", boxes_as="xyxy").list_samples()


@pytest.mark.parametrize(
    ("header", "row", "match"),
    [
        ("file,class,height,class,xmin,ymin,xmax,ymax\n", "a,40,20,cat,4,5,14,15", "names: class"),
        ("file,class,x1,y1,x2,y2,x3,y3,x4,y4\n", "a,cat,4,5,14,5,14,15,4,15", "x3, y3"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, header: str, row: str, match: str) -> None:
    with raises(rs.SourceError, path="boxes.csv", line=2, match=match):
        CsvBoxes(csv_boxes(tmp_path, f"{row}\n", f"\n{header}", "a")).list_samples()


def test_cells_without_four_numbers(tmp_path: Path) -> None:
    rows = ["4 5 10 10", "30 5 10 10", "", "1 2 3", "1 2 3 4 5"]
    root = csv_boxes(tmp_path, "".join(f"a,{row}\n" for row in rows), "image_id,bbox\n", "a")
    listing = CsvBoxes(root, boxes_as="xywh").list_samples()
    assert places(problems_of(listing)) == ["boxes.csv, line 5", "boxes.csv, line 6"]
    features, _ = read(CsvBoxes(root, boxes_as="xywh", boxes="drop").list_samples())
    assert boxes_of(features) == [BOX, (0.25, 0.75, 0.75, 1)]


@pytest.mark.parametrize(
    ("rows", "boxes"),
    [
        (["0,0,1,1"], [(0, 0, 0.05, 0.025)]),  # integers are pixels
        (["0,0,1.0,1.0"], [(0, 0, 1, 1)]),
        (["0,0,1,1", "4,5,14,15"], [(0, 0, 0.05, 0.025), BOX]),
        (["0,0,1,1", ".1,.25,.35,.75"], [(0, 0, 1, 1), BOX]),
        (["0.5,0,1,1", "4,5,14,15"], [(0, 0.0125, 0.05, 0.025), BOX]),
        (["0,0,1,20", "0,0,1,20.0"], [(0, 0, 1, 0.025)] * 2),
    ],
)
def test_relative_boxes(
    tmp_path: Path, rows: Sequence[str], boxes: Sequence[tuple[float, ...]]
) -> None:
    text = "".join(f"a,cat,{row}\n" for row in rows)
    root = csv_boxes(tmp_path, text, "file,class,xmin,ymin,xmax,ymax\n", "a")
    assert boxes_of(read(CsvBoxes(root).list_samples())[0]) == boxes


def test_a_tsv_of_boxes_in_a_folder(tmp_path: Path) -> None:
    root = csv_boxes(tmp_path, "a\tcat\t4\t5\t14\t15\n", "file\tclass\tx1\ty1\tx2\ty2\n", "a")
    (root / "boxes.csv").rename(root / "boxes.tsv")
    detection = rs.detect(root)
    assert detection.reading.format == "csv-boxes"
    assert boxes_of(read(detection.source.list_samples())[0]) == [BOX]


def test_images_without_rows_and_rows_without_images(tmp_path: Path) -> None:
    """keras-retinanet writes rows without a box for images without objects."""
    root = csv_boxes(
        tmp_path, "images/a.jpg,4,5,14,15,cat\nimages/b.jpg,,,,,\nx.jpg,1,1,2,2,cat\n", ""
    )
    listing = CsvBoxes(root).list_samples()
    assert [sample.name for sample in listing.samples] == [
        "boxes.csv/3",
        "images/a.jpg",
        "images/b.jpg",
    ]
    (notice,) = listing.notices
    assert notice.startswith("2 images missing from annotation files skipped; these name 1 that")
    assert places(problems_of(listing)) == ["boxes.csv"]
    restored = Sample.from_json(json.loads(json.dumps(listing.samples[0].to_json())))
    with raises(rs.SourceError, path="boxes.csv", match="x.jpg"):
        open_reader(json.loads(json.dumps(listing.reader.to_json()))).read(restored)
    assert boxes_of(read(listing, 2)[0]) == []


def test_wrong_rows_are_listed_with_their_lines(tmp_path: Path) -> None:
    rows = ["", "\ncat,4,5,50,15", "cat,x,5,9,15", ",1,2,3,4", "\ncat,9,5,3,15", CAT]
    text = "\n".join(f"a.jpg,40,20,{row}" if "," in row else row for row in rows).replace(
        "20,\n", "20,"
    )
    root = csv_boxes(tmp_path, f"{text}\n")
    lines = (root / "boxes.csv").read_text().split("\n")
    listing = CsvBoxes(root).list_samples()
    found = [place.partition(" (")[0] for place in places(problems_of(listing))]
    wrong = ("cat,4,5,50,15", "cat,x", ",,1,2", "cat,9,5")
    numbers = [n for n, line in enumerate(lines, 1) if any(each in line for each in wrong)]
    assert found == [f"boxes.csv, line {number}" for number in numbers]
    features, notes = read(CsvBoxes(root, boxes="clip").list_samples())
    assert BOX in boxes_of(features)
    assert len(notes) == len(wrong)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{CSV_HEADER}a.jpg,40,20,cat,1,2\n", 2),
        (f'{CSV_HEADER}a.jpg,"{"x" * 200_000}', 2),
        (f'{CSV_HEADER}a.jpg,40,20,{CAT}\na.jpg,40,20,{CAT},"open\nb.jpg,40,20,{CAT}\n', 3),
    ],
)
def test_broken_csv(tmp_path: Path, text: str, line: int) -> None:
    root = csv_boxes(tmp_path, text, "")
    with raises(rs.SourceError, path="boxes.csv", line=line):
        CsvBoxes(root).list_samples()


def test_rows_of_an_image_with_other_sizes(tmp_path: Path) -> None:
    rows = f"a.jpg,40,20,{CAT}\na.jpg,80,40,cat,8,10,28,30\n"
    listing = CsvBoxes(csv_boxes(tmp_path, rows)).list_samples()
    with raises(rs.SourceError, match=r"boxes\.csv, line 3: another image size than line 2"):
        read(listing)


def test_class_names_of_open_images_that_are_not_csv(tmp_path: Path) -> None:
    write(tmp_path / "class-descriptions.csv", f'/m/1,{"x" * 200_000}\n/m/2,"open\n/m/3,cat\n')
    root = csv_boxes(tmp_path, "a,/m/3,0.1,0.35,0.25,0.75,0,0\n", OPEN_IMAGES)
    with raises(rs.SourceError, path="class-descriptions.csv", line=2):
        CsvBoxes(root).list_samples()


def test_the_csv_of_one_split_may_be_outside(tmp_path: Path) -> None:
    root = csv_boxes(tmp_path / "data")
    outside = (root / "boxes.csv").rename(tmp_path / "boxes.csv")
    listing = CsvBoxes(root, annotations=outside).list_samples()
    assert boxes_of(read(listing)[0]) == [BOX]


def test_features_of_open_images(tmp_path: Path) -> None:
    write(tmp_path / "class-descriptions.csv", "/m/1,cat\n/m/2,Dog\n/m/3,Dog\n")
    rows = "a,/m/1,0.1,0.35,0.25,0.75,-1,1\na,/m/9,0,1,0,1,1,0\na,/m/2,0,1,0,1,1,0\n"
    listing = CsvBoxes(csv_boxes(tmp_path, rows, OPEN_IMAGES)).list_samples()
    assert listing.class_names == (None, "/m/9", "Dog", "cat")
    features, notes = read(listing)
    assert notes == []
    assert boxes_of(features)[0] == BOX
    assert features["image/object/class/text"] == [b"cat", b"/m/9", b"Dog"]
    assert features["image/object/is_crowd"] == [1, 0, 0]
    assert features["image/object/truncated"] == [0, 1, 1]


def test_files_may_have_other_columns(tmp_path: Path) -> None:
    root = csv_boxes(tmp_path, CSV_ROWS)
    (root / "boxes.csv").rename(root / "train.csv")
    (root / "train.csv").write_text(f"{CSV_HEADER}a.jpg,40,20,{CAT}\n")
    write(root / "test.csv", "filename;class;xmin;ymin;xmax;ymax\nb.jpg;cat;4;5;14;15\n")
    listing = CsvBoxes(root).list_samples()
    assert [sample.split for sample in listing.samples] == ["train", "test"]
    assert boxes_of(read(listing, 0)[0]) == boxes_of(read(listing, 1)[0]) == [BOX]


def test_a_table_that_repeats_those_of_splits(tmp_path: Path) -> None:
    """As next to the most copied tutorial of detection: all rows, those to train and to test on."""
    rows = {name: f"{name}.jpg,20,10,cat,1,1,5,5\n" for name in ("a", "b", "c")}
    header = "filename,width,height,class,xmin,ymin,xmax,ymax\n"
    for name, chosen in {"cats": "abc", "train": "ab", "test": "c"}.items():
        text = header + "".join(rows[one] for one in chosen)
        (tmp_path / f"{name}_labels.csv").write_text(text)
    for name in rows:
        image(tmp_path / f"{name}.jpg")
    for reading in (lambda: CsvBoxes(tmp_path).list_samples(), lambda: rs.detect(tmp_path).source):
        with raises(rs.SourceError, match="without distinct splits") as caught:
            reading()
        assert "leave_out='cats_labels.csv'" in caught.value.remedy
    chosen = rs.detect(tmp_path, annotations="cats_labels.csv").source
    assert len(chosen.list_samples().samples) == 3
    found = rs.detect(tmp_path, leave_out="cats_labels.csv")
    assert {sample.split for sample in found.source.list_samples().samples} == {"train", "test"}


def test_splits_in_a_table_of_boxes(tmp_path: Path) -> None:
    for number in range(4):
        image(tmp_path / "images" / f"{number}.jpg")
    rows = [f"{number}.jpg,cat,1,1,9,9,{'train' if number < 3 else 'val'}" for number in range(4)]
    write(tmp_path / "a.csv", "\n".join(["name,species,xmin,ymin,xmax,ymax,subset", *rows]))
    source = rs.detect(tmp_path).source
    listing = source.list_samples()
    assert isinstance(source, CsvBoxes)
    assert (listing.class_names, listing.splits) == ((None, "cat"), ("train", "val"))
    assert [sample.split for sample in listing.samples] == ["train"] * 3 + ["val"]
    text = (tmp_path / "a.csv").read_text().replace("val", "night")
    write(tmp_path / "a.csv", text)
    assert CsvBoxes(tmp_path, image_column="name").list_samples().splits == ()


def test_images_of_a_split_that_is_annotated_in_part_stop(tmp_path: Path) -> None:
    for name in ("a/1", "a/2", "b/3", "b/4"):
        image(tmp_path / "train" / f"{name}.jpg")
    rows = ["train/a/1.jpg,cat,1,1,9,9", "train/a/2.jpg,cat,1,1,9,9"]
    write(tmp_path / "a.csv", "\n".join(["filename,class,xmin,ymin,xmax,ymax", *rows]))
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(tmp_path, tmp_path.parent / f"{tmp_path.name} out")
    assert "train/b" in str(caught.value.remedy)
