"""CSV, LabelMe and CVAT: the contract, options, and what is wrong in their files."""

from __future__ import annotations

import base64
import cmath
import io
import itertools
import json
import math
import random
import re
import shlex
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

import recordsmith as rs
from recordsmith.cli import load_command
from recordsmith.sources import (
    Coco,
    CsvBoxes,
    Cvat,
    LabelMe,
    Sample,
    Source,
    Voc,
    Yolo,
    open_reader,
)
from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
)
from recordsmith.sources.boxes.annotation_files import PerImageAnnotationSource
from recordsmith.sources.boxes.detection import find_candidates
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.formats import BOX_SUFFIXES, FORMATS, OPTIONS
from recordsmith.stores import as_folder

from ..raising import places, raises
from .annotated import boxes_of, coco, corners_of, image, mask_of, problems_of, read, voc, write
from .source_contract import SourceContract, left_out

HEADER = "filename,width,height,class,xmin,ymin,xmax,ymax\n"
CAT = "cat,4,5,14,15"
BOX = (0.25, 0.1, 0.75, 0.35)  # of CAT: ymin, xmin, ymax, xmax
CSV = "".join(f"{name}.jpg,40,20,{CAT}\n" for name in "abcd")
OPEN_IMAGES = "ImageID,LabelName,XMin,XMax,YMin,YMax,IsTruncated,IsGroupOf\n"


def _csv(root: Path, rows: str = CSV, header: str = HEADER, images: str = "abcd") -> Path:
    for name in images:
        image(root / "images" / f"{name}.jpg")
    write(root / "boxes.csv", header + rows)
    return root


def _shape(*points: tuple[float, float], kind: str = "polygon", label: Any = "cat") -> Any:
    return {"label": label, "shape_type": kind, "points": [list(point) for point in points]}


def _labelme(root: Path, *shapes: Any, name: str = "a", **more: Any) -> Path:
    path = root / f"{name}.jpg"
    document = {"version": "5", "shapes": shapes, "imagePath": path.name, "imageData": None}
    image(path)
    write(path.with_suffix(".json"), json.dumps(document | more))
    return root


def _cvat(root: Path, shapes: str = "", images: str = "abcd", values: str = "") -> Path:
    elements = []
    for name in images:
        image(root / "images" / f"{name}.jpg")
        elements.append(f'<image id="7{name}" name="{name}.jpg" {values}>{shapes}</image>')
    write(root / "annotations.xml", f"<annotations>\n<version/>{''.join(elements)}</annotations>")
    return root


class TestContractOfCsv(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return CsvBoxes(_csv(folder))


class TestContractOfLabelMe(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        for name in "abcd":
            _labelme(folder, _shape((1, 1), (9, 1), (9, 9)), name=name)
        return LabelMe(folder, object_masks="class")


class TestContractOfTags(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return Cvat(_cvat(folder, '<tag label="cat"/>'))


class TestContractOfCvat(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        box = '<box label="cat" xtl="1" ytl="2" xbr="3" ybr="4"/>'
        return Cvat(_cvat(folder, box), object_masks="instance")


# -- text and limits -----------------------------------------------------------------------------


def test_text_that_is_not_unicode(tmp_path: Path) -> None:
    root = _csv(tmp_path / "csv", "a.jpg,40,20,cat,4,5,14,15\n", images="a")
    (root / "boxes.csv").write_bytes((root / "boxes.csv").read_bytes().replace(b"cat", b"caf\xe9"))
    with raises(rs.SourceError, path="boxes.csv", line=2, match="UTF-8"):
        CsvBoxes(root).list_samples()
    root = _labelme(tmp_path / "json", _shape((1, 1), (9, 1), (9, 9), label="\ud800"))
    with raises(rs.SourceError, path="a.json", match="invalid JSON"):
        read(LabelMe(root))


def _much_coco(root: Path, annotations: str) -> Path:
    image(root / "a.jpg")
    (root / "x.json").write_text(
        '{"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 1, "name": "a"}],\n'
        f'"annotations": [{annotations}]}}'
    )
    return root


def _much_cvat(root: Path, shapes: str) -> Path:
    image(root / "a.jpg")
    (root / "x.xml").write_text(
        f'<annotations><image id="0" name="a.jpg">\n{shapes}</image></annotations>'
    )
    return root


ENTRY = '{"image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5]}'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "words"),
    [  # each would take a hundred bytes and more for each byte, or time without end
        (
            lambda root: Coco(_much_coco(root, f'{ENTRY[:-1]}, "x": [{"[]," * 3_000_000}1]}}')),
            "line 2: an entry is longer than 8,388,608 bytes",
        ),
        (lambda root: Coco(_much_coco(root, f"{ENTRY}," * 100_000 + ENTRY)), "100,000 objects"),
        (
            lambda root: Cvat(_much_cvat(root, f'<polygon points="{"1,2;" * 3_000_000}"/>')),
            "line 2: a tag or text is longer than 4,194,304 bytes",
        ),
        (
            lambda root: Cvat(_much_cvat(root, '<box label="a"/>' * 100_001)),
            "more than 100,000 objects",
        ),
        (
            lambda root: CsvBoxes(_csv(root, f"a.jpg,40,20,{CAT}\n" * 100_002)),
            "line 2 has more than 100,000 objects",
        ),
        (
            lambda root: Voc(voc(root, {"a": [("a", 4, 5, 14, 15)] * 30_000})),
            "more than 250,000 elements",
        ),
        (
            lambda root: LabelMe(_labelme(root, _shape(*[(1, 2), (3, 4), (5, 6)] * 120_000))),
            "more than 1,000,000 values",
        ),
    ],
    ids=["coco entry", "coco objects", "cvat polygon", "cvat objects", "csv", "voc", "labelme"],
)
def test_limits_of_annotations(tmp_path: Path, make: Any, words: str) -> None:
    with pytest.raises(rs.SourceError, match=words):
        listing = make(tmp_path).list_samples()
        list(map(listing.reader.read, listing.samples))


# -- CSV -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (HEADER, f"a.jpg,40,20,{CAT}"),
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
    listing = CsvBoxes(_csv(tmp_path, f"{row}\n", header, "a")).list_samples()
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
    root = _csv(tmp_path, "".join(f"{row}\n" for row in rows), header, "ab")
    if notation is None:
        with raises(rs.SourceError, path="boxes.csv", line=1, match="boxes_as='"):
            CsvBoxes(root).list_samples()
        return
    for given in (None, notation):
        listing = CsvBoxes(root, boxes_as=given).list_samples()
        assert np.allclose(boxes_of(read(listing)[0])[0], BOX)
        assert sum(f"as {notation}" in notice for notice in listing.notices) == (given is None)


def test_boxes_as_overrules_the_names(tmp_path: Path) -> None:
    root = _csv(tmp_path, "a,cat,4,5,10,10\n", "file,class,xmin,ymin,xmax,ymax\n", "a")
    assert boxes_of(read(CsvBoxes(root, boxes_as="xywh").list_samples())[0]) == [BOX]
    bare = _csv(tmp_path / "bare", "a.jpg,9,10,10,10,cat\n", "", "a")
    assert boxes_of(read(CsvBoxes(bare, boxes_as="cxcywh").list_samples())[0]) == [BOX]
    with raises(rs.OptionError, option="boxes_as", value="yxyx"):
        CsvBoxes(root, boxes_as="yxyx")  # type: ignore[arg-type]


def test_columns_of_other_names(tmp_path: Path) -> None:
    root = _csv(tmp_path, "a,1,4,5,14,15,cat\na,2,0,0,2,2,dog\n", "pic,id,l,t,r,b,what\n", "a")
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
        CsvBoxes(_csv(tmp_path, f"{row}\n", f"\n{header}", "a")).list_samples()


def test_cells_without_four_numbers(tmp_path: Path) -> None:
    rows = ["4 5 10 10", "30 5 10 10", "", "1 2 3", "1 2 3 4 5"]
    root = _csv(tmp_path, "".join(f"a,{row}\n" for row in rows), "image_id,bbox\n", "a")
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
    root = _csv(tmp_path, text, "file,class,xmin,ymin,xmax,ymax\n", "a")
    assert boxes_of(read(CsvBoxes(root).list_samples())[0]) == boxes


def test_a_tsv_of_boxes_in_a_folder(tmp_path: Path) -> None:
    root = _csv(tmp_path, "a\tcat\t4\t5\t14\t15\n", "file\tclass\tx1\ty1\tx2\ty2\n", "a")
    (root / "boxes.csv").rename(root / "boxes.tsv")
    detection = rs.detect(root)
    assert detection.reading.format == "csv-boxes"
    assert boxes_of(read(detection.source.list_samples())[0]) == [BOX]


def test_images_without_rows_and_rows_without_images(tmp_path: Path) -> None:
    """keras-retinanet writes rows without a box for images without objects."""
    root = _csv(tmp_path, "images/a.jpg,4,5,14,15,cat\nimages/b.jpg,,,,,\nx.jpg,1,1,2,2,cat\n", "")
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
    root = _csv(tmp_path, f"{text}\n")
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
        (f"{HEADER}a.jpg,40,20,cat,1,2\n", 2),
        (f'{HEADER}a.jpg,"{"x" * 200_000}', 2),
        (f'{HEADER}a.jpg,40,20,{CAT}\na.jpg,40,20,{CAT},"open\nb.jpg,40,20,{CAT}\n', 3),
    ],
)
def test_broken_csv(tmp_path: Path, text: str, line: int) -> None:
    root = _csv(tmp_path, text, "")
    with raises(rs.SourceError, path="boxes.csv", line=line):
        CsvBoxes(root).list_samples()


def test_rows_of_an_image_with_other_sizes(tmp_path: Path) -> None:
    rows = f"a.jpg,40,20,{CAT}\na.jpg,80,40,cat,8,10,28,30\n"
    listing = CsvBoxes(_csv(tmp_path, rows)).list_samples()
    with raises(rs.SourceError, match=r"boxes\.csv, line 3: another image size than line 2"):
        read(listing)


def test_class_names_of_open_images_that_are_not_csv(tmp_path: Path) -> None:
    write(tmp_path / "class-descriptions.csv", f'/m/1,{"x" * 200_000}\n/m/2,"open\n/m/3,cat\n')
    root = _csv(tmp_path, "a,/m/3,0.1,0.35,0.25,0.75,0,0\n", OPEN_IMAGES)
    with raises(rs.SourceError, path="class-descriptions.csv", line=2):
        CsvBoxes(root).list_samples()


def test_the_csv_of_one_split_may_be_outside(tmp_path: Path) -> None:
    root = _csv(tmp_path / "data")
    outside = (root / "boxes.csv").rename(tmp_path / "boxes.csv")
    listing = CsvBoxes(root, annotations=outside).list_samples()
    assert boxes_of(read(listing)[0]) == [BOX]


def test_features_of_open_images(tmp_path: Path) -> None:
    write(tmp_path / "class-descriptions.csv", "/m/1,cat\n/m/2,Dog\n/m/3,Dog\n")
    rows = "a,/m/1,0.1,0.35,0.25,0.75,-1,1\na,/m/9,0,1,0,1,1,0\na,/m/2,0,1,0,1,1,0\n"
    listing = CsvBoxes(_csv(tmp_path, rows, OPEN_IMAGES)).list_samples()
    assert listing.class_names == (None, "/m/9", "Dog", "cat")
    features, notes = read(listing)
    assert notes == []
    assert boxes_of(features)[0] == BOX
    assert features["image/object/class/text"] == [b"cat", b"/m/9", b"Dog"]
    assert features["image/object/is_crowd"] == [1, 0, 0]
    assert features["image/object/truncated"] == [0, 1, 1]


# -- LabelMe -------------------------------------------------------------------------------------


def test_shapes_of_labelme(tmp_path: Path) -> None:
    shapes = (
        _shape((4, 5), (14, 5), (14, 15), (4, 15)),
        _shape((30, 18), (20, 2), kind="rectangle", label="Dog"),
        _shape((30, 10), (30, 15), kind="circle"),
        _shape((1, 1), (2, 2), kind="line"),
    )
    listing = LabelMe(_labelme(tmp_path, *shapes), object_masks="instance").list_samples()
    assert listing.class_names == (None, "Dog", "cat")
    features, notes = read(listing)
    assert boxes_of(features) == [BOX, (0.1, 0.5, 0.9, 0.75), (0.25, 0.625, 0.75, 0.875)]
    assert [where for _, where in notes] == ["a.json, shape 4: line"]
    polygon, rectangle, circle = map(mask_of, features["image/object/mask"])
    assert np.argwhere(polygon)[[0, -1]].tolist() == [[5, 4], [14, 13]]
    assert polygon.sum() == 100
    assert rectangle[2:18, 20:30].all()
    assert rectangle.sum() == 160
    drawn = Image.new("1", (40, 20))
    ImageDraw.Draw(drawn).ellipse((25, 5, 35, 15), fill=1)
    assert (np.array(drawn) != circle).mean() < 0.05


UPRIGHT = [(4, 5), (14, 5), (14, 15), (4, 15)]
TILTED = [(20, 2), (30, 7), (25, 17), (15, 12)]


@pytest.mark.parametrize("corners", [*itertools.permutations(UPRIGHT)])
def test_rectangles_of_four_points(tmp_path: Path, corners: Any) -> None:
    root = _labelme(tmp_path, _shape(*corners, kind="rectangle"))
    features, notes = read(LabelMe(root, object_masks="instance"))
    assert boxes_of(features) == [BOX]
    assert notes == read(LabelMe(root))[1] == []
    expected = np.zeros((20, 40), np.uint8)
    expected[5:15, 4:14] = 1
    assert np.array_equal(mask_of(features["image/object/mask"][0]), expected)


@pytest.mark.parametrize("kind", ["rotation", "oriented_rectangle", "rectangle"])
@pytest.mark.parametrize("step", [1, -1])
def test_rotated_rectangles_of_labelme(tmp_path: Path, kind: str, step: int) -> None:
    """Corners are clockwise, from the first one; those of upright rectangles are of the box."""
    shapes = (_shape(*TILTED[::step], kind=kind), _shape(*UPRIGHT[::2], kind="rectangle"))
    root = _labelme(tmp_path, *shapes)
    features, notes = read(LabelMe(root))
    assert (boxes_of(features), notes) == ([(0.1, 0.375, 0.85, 0.75), BOX], [])
    first = TILTED if step == 1 else [TILTED[3], *TILTED[:3]]
    shares = np.divide([first, UPRIGHT], (40, 20)).reshape(2, 8)
    assert corners_of(features) == shares.tolist()
    features, notes = read(LabelMe(root, object_masks="instance"))
    assert notes == []
    assert _overlap(mask_of(features["image/object/mask"][0]), TILTED) > 0.9


@pytest.mark.parametrize(
    ("kind", "points", "is_rotated"),
    [
        ("rectangle", UPRIGHT, False),
        ("rotation", [*UPRIGHT[1:], UPRIGHT[0]], True),  # by a quarter
        ("polygon", TILTED, False),
        ("rectangle", [(4, 5), (14, 5), (14, 15), (4, 5)], True),
        ("rectangle", [(4, 5), (14, 5), (14, 15), (4, 12)], True),
    ],
)
def test_which_shapes_have_corners(
    tmp_path: Path, kind: str, points: Any, is_rotated: bool
) -> None:
    features, _ = read(LabelMe(_labelme(tmp_path, _shape(*points, kind=kind))))
    assert ("image/object/corner/x" in features) == is_rotated
    if is_rotated:
        assert boxes_of(features) == [BOX]
        assert corners_of(features) == [np.divide(points, (40, 20)).ravel().tolist()]


def _overlap(mask: Any, corners: Any) -> float:
    """The shared part of a mask and of the pixels whose middles lie in a convex polygon."""
    y, x = np.mgrid[: mask.shape[0], : mask.shape[1]] + 0.5
    edges = zip(corners, [*corners[1:], corners[0]], strict=True)
    sides = [(x2 - x1) * (y - y1) > (y2 - y1) * (x - x1) for (x1, y1), (x2, y2) in edges]
    inside = np.all(sides, axis=0)
    return float((inside & (mask > 0)).sum() / (inside | (mask > 0)).sum())


def _png(pixels: Any, mode: str | None = None) -> str:
    out = io.BytesIO()
    drawn = Image.fromarray(pixels)
    (drawn.convert(mode) if mode else drawn).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


STAIRS = np.tril(np.ones((6, 9), bool))


@pytest.mark.parametrize(
    "png", [_png(STAIRS), _png(STAIRS * np.uint8(255)), _png(STAIRS * np.uint8(1), "P")]
)
def test_masks_of_labelme(tmp_path: Path, png: str) -> None:
    """LabelMe fills the rows 5 to 10 and the columns 30 to 38 with the PNG."""
    shape = _shape((30, 5), (38, 10), kind="mask") | {"mask": png}
    root = _labelme(tmp_path, shape)
    expected = np.zeros((20, 40), bool)
    expected[5:11, 30:39] = STAIRS
    for masks, key in (
        ("instance", "image/object/mask"),
        ("class", "image/segmentation/class/encoded"),
    ):
        features, _ = read(LabelMe(root, object_masks=masks))
        (data,) = [features[key]] if masks == "class" else features[key]
        assert np.array_equal(mask_of(data) == 1, expected)
        assert boxes_of(features) == [(0.25, 0.75, 0.55, 0.975)]
    ((what, where),) = read(LabelMe(root))[1]
    assert ("outlines" in what, where) == (True, "a.json, shape 1 (cat)")


def _header(width: int, height: int) -> str:
    """A PNG that is only its header."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk
    return base64.b64encode(data + struct.pack(">I", zlib.crc32(chunk))).decode()


@pytest.mark.parametrize(
    ("start", "png"),
    [
        ((32, 5), _png(STAIRS)),
        ((30, 15), _png(STAIRS)),
        ((-10, 5), _png(STAIRS)),
        ((30, -10), _png(STAIRS)),
        ((1e300, 5), _png(STAIRS)),
        ((30, 5), _header(100_000, 100_000)),
        ((30, 5), _header(9, 6)),
        ((30, 5), "*"),
        ((30, 5), "iVBO"),
        ((30, 5), _png(np.zeros((6, 9, 3), np.uint8))),
        ((30, 5), None),
        ((30, 5), [1]),
    ],
)
def test_wrong_masks_of_labelme(tmp_path: Path, start: Any, png: Any) -> None:
    good = _shape((4, 5), (14, 15), kind="rectangle")
    bad = _shape((30, 5), (38, 10), kind="mask") | {"mask": png}
    bad["points"][0] = list(start)
    root = _labelme(tmp_path, good, bad)
    assert places(problems_of(LabelMe(root, object_masks="class"))) == ["a.json, shape 2 (cat)"]
    features, _ = read(LabelMe(root, object_masks="class", boxes="drop"))
    assert boxes_of(features) == [BOX]


def test_images_inside_labelme_files(tmp_path: Path) -> None:
    """The remedy is a command that writes them."""
    encoded = image(tmp_path / "stored/x.jpg")
    for name in "ab":
        data = base64.b64encode(encoded).decode()
        _labelme(tmp_path / "in", _shape(*UPRIGHT), name=name, imageData=data)
        (tmp_path / f"in/{name}.jpg").unlink()
    with raises(rs.SourceError, path="a.json", problem_count=2) as caught:
        LabelMe(tmp_path / "in").list_samples()
    assert caught.value.problems == ("a.json", "b.json")
    (tmp_path / "in/b.json").rename(tmp_path / "b.json")
    with raises(rs.SourceError, path="a.json", match="'a.jpg' not found"):
        read(LabelMe(tmp_path / "in"))  # one fails alone
    (tmp_path / "b.json").rename(tmp_path / "in/b.json")
    command = shlex.split(caught.value.remedy.partition(": ")[2])
    assert command[:2] == ["python", "-c"]
    subprocess.run([sys.executable, *command[1:]], cwd=tmp_path / "in", check=True)
    for number in range(2):
        features, _ = read(LabelMe(tmp_path / "in"), number)
        assert features["image/encoded"] == encoded
        assert boxes_of(features) == [BOX]


@pytest.mark.parametrize("label", ["a\rb", "a\nb", "\ud800"])
def test_labels_that_cannot_be_class_names(tmp_path: Path, label: str) -> None:
    root = _labelme(tmp_path / "in", _shape((1, 2), (3, 4), (5, 6), label=label))
    with pytest.raises(rs.SourceError, match=r"invalid class name|invalid JSON"):
        rs.pack(LabelMe(root), tmp_path / "out")


def test_classes_of_labelme_in_a_file(tmp_path: Path) -> None:
    write(tmp_path / "class_names.txt", "__ignore__\n_background_\nDog\ncat\nfox\n")
    root = _labelme(tmp_path, _shape((1, 1), (9, 1), (9, 9)))
    ((what, where),) = read(LabelMe(root).list_samples())[1]
    assert (what.startswith("outlines"), where) == (True, "a.json, shape 1 (cat)")
    listing = LabelMe(root).list_samples()
    assert listing.class_names == (None, "Dog", "cat", "fox")
    assert read(listing)[0]["image/object/class/label"] == [2]
    _labelme(tmp_path, _shape((1, 1), (9, 1), (9, 9), label="Cat"))
    (problem,) = problems_of(LabelMe(root).list_samples())
    assert "class_names.txt" in problem
    assert "known classes: Dog, cat and fox" in problem


def test_files_may_have_other_columns(tmp_path: Path) -> None:
    root = _csv(tmp_path, CSV)
    (root / "boxes.csv").rename(root / "train.csv")
    (root / "train.csv").write_text(f"{HEADER}a.jpg,40,20,{CAT}\n")
    write(root / "test.csv", "filename;class;xmin;ymin;xmax;ymax\nb.jpg;cat;4;5;14;15\n")
    listing = CsvBoxes(root).list_samples()
    assert [sample.split for sample in listing.samples] == ["train", "test"]
    assert boxes_of(read(listing, 0)[0]) == boxes_of(read(listing, 1)[0]) == [BOX]


@pytest.mark.parametrize(
    "shape",
    [
        7,
        _shape((1, 1)),
        _shape((1, 1), (float("nan"), 2), (3, 3)),
        _shape((1, 1), kind="circle"),
        _shape((1, 1), (2, 2), kind="star"),
        _shape((1, 1), (9, 1), (9, 9), label=None),
        _shape((1, 1), (99, 1), (9, 9)),
        {"label": "cat"},
        {"label": "cat", "points": [[1, 2, 3]]},
    ],
)
def test_wrong_shapes(tmp_path: Path, shape: Any) -> None:
    good = _shape((4, 5), (14, 15), kind="rectangle")
    root = _labelme(tmp_path, good, shape)
    (problem,) = problems_of(LabelMe(root).list_samples())
    assert problem.startswith("a.json, shape 2")
    features, notes = read(LabelMe(root, boxes="drop").list_samples())
    assert boxes_of(features) == [BOX]
    dropped = [where for what, where in notes if "dropped" in what]
    assert places(dropped)[0].startswith("a.json, shape 2")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"shapes": [}', "\x00"])
def test_broken_labelme_files_fail_alone(tmp_path: Path, text: str) -> None:
    root = _labelme(tmp_path, _shape((4, 5), (14, 5), (14, 15)))
    write(root / "b.json", text)
    write(root / "settings.json", '{"x": 1}')
    listing = LabelMe(root).list_samples()
    assert [sample.name for sample in listing.samples] == ["a.jpg", "b.json"]
    assert left_out(listing) == {"not images": ["settings.json"]}
    with raises(rs.SourceError, path="b.json"):
        listing.reader.read(listing.samples[1])


# -- CVAT ----------------------------------------------------------------------------------------


def test_shapes_of_cvat(tmp_path: Path) -> None:
    shapes = (
        '<box label="cat" xtl="4" ytl="5" xbr="14" ybr="15"><attribute name="x">1</attribute></box>'
        '\n<polygon label="Dog" points="20,2;30,2;30,18;20,18"/>'
        '<polyline label="nose" points="1,1;2,2"/><tag label="indoors"/>'
    )
    values = 'width="40" height="20"'
    listing = Cvat(_cvat(tmp_path, shapes, values=values), object_masks="class").list_samples()
    assert listing.class_names == (None, "cat", "Dog", "indoors")
    for number in range(4):
        features, notes = read(listing, number)
        assert boxes_of(features) == [BOX, (0.1, 0.5, 0.9, 0.75)]
        assert [where for _, where in notes] == [f"annotations.xml, line {number + 3}: polyline"]
        assert features["image/class/label"] == [3]
    mask = mask_of(features["image/segmentation/class/encoded"])
    assert np.bincount(mask.ravel(), minlength=3).tolist() == [540, 100, 160]


POINT = '<points label="{0}" points="{1},{1}"/>'
SKELETON = f'<skeleton label="cat">{POINT.format("a", 8)}{POINT.format("b", 12)}</skeleton>'
MASK = '<mask label="cat" rle="1, 3,4,2" left="4" top="6" width="5" height="2"/>'


@pytest.mark.parametrize(
    ("shape", "box", "pixel_count"),
    [
        (MASK, (4, 6, 9, 8), 5),
        ('<ellipse label="cat" cx="20" cy="10" rx="8" ry="4"/>', (12, 6, 28, 14), math.pi * 32),
        (
            '<ellipse label="cat" cx="20" cy="10" rx="8" ry="4" rotation="90" occluded="1"/>',
            (16, 2, 24, 18),
            math.pi * 32,
        ),
        (SKELETON, (8, 8, 12, 12), 0),
    ],
)
def test_masks_ellipses_and_skeletons_of_cvat(
    tmp_path: Path, shape: str, box: Any, pixel_count: float
) -> None:
    """A skeleton has an empty mask, with a note."""
    root = _cvat(tmp_path, shape, "a", 'width="40" height="20"')
    features, notes = read(Cvat(root, object_masks="instance"))
    xmin, ymin, xmax, ymax = np.divide(box, (40, 20, 40, 20))
    assert np.allclose(boxes_of(features), [(ymin, xmin, ymax, xmax)])
    mask = mask_of(features["image/object/mask"][0])
    assert abs(int(mask.sum()) - pixel_count) <= 0.1 * pixel_count
    assert len(notes) == (pixel_count == 0)
    assert features.get("image/object/attribute/occluded") == ([1] if "occ" in shape else None)
    if shape == MASK:
        assert mask[6:8, 4:9].tolist() == [[0, 1, 1, 1, 0], [0, 0, 0, 1, 1]]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("4,2", "4,3", "add up"),
        ("4,2", "4,x", "invalid rle"),
        ("4,2", "4,-2", "invalid rle"),
        ('"4"', '"36"', "outside"),
        ('"2"/>', '"1e9"/>', "outside"),
        ('"4"', '"x"', "left: found"),
    ],
)
def test_wrong_masks_of_cvat(tmp_path: Path, old: str, new: str, fault: str) -> None:
    root = _cvat(tmp_path, MASK.replace(old, new), "a")
    (problem,) = problems_of(Cvat(root, object_masks="class"))
    assert (places([problem])[0].startswith("annotations.xml, line 2"), fault in problem) == (
        True,
    ) * 2


def test_labels_of_cvat_have_the_order_of_the_file(tmp_path: Path) -> None:
    root = _cvat(tmp_path, '<polygon label="Dog" points="20,2;30,2;30,18;20,18"/>')
    path = root / "annotations.xml"
    labels = "".join(
        f"<label><name>{name}</name><attributes><attribute><name>x</name></attribute></attributes>"
        f"{parent}</label>"
        for name, parent in (("zebra", ""), ("Dog", ""), ("tail", "<parent>Dog</parent>"))
    )
    meta = f"<meta><task><labels>{labels}</labels></task></meta>"
    path.write_text(path.read_text().replace("<version/>", f"<version/>{meta}"))
    listing = Cvat(root).list_samples()
    assert listing.class_names == (None, "zebra", "Dog")
    assert read(listing)[0]["image/object/class/label"] == [2]


def test_subsets_of_cvat_are_splits(tmp_path: Path) -> None:
    root = _cvat(tmp_path)
    path = root / "annotations.xml"
    text = path.read_text().replace('name="a.jpg"', 'name="a.jpg" subset="Train"')
    path.write_text(text)
    assert Cvat(root).list_samples().splits == ()
    for name in "bcd":
        text = text.replace(f'name="{name}.jpg"', f'name="{name}.jpg" subset="Test"')
    path.write_text(text)
    listing = Cvat(root).list_samples()
    assert {sample.name: sample.split for sample in listing.samples} == {
        "images/a.jpg": "train",
        "images/b.jpg": "test",
        "images/c.jpg": "test",
        "images/d.jpg": "test",
    }


@pytest.mark.parametrize(
    "shape",
    [
        '<box label="cat" xtl="4" ytl="5" xbr="44" ybr="15"/>',
        '<box label="cat" xtl="4" ytl="5" xbr="x" ybr="15"/>',
        '<box label="cat" xtl="4" ytl="5" xbr="14" ybr="15" rotation="x"/>',
        '<box label="cat" xtl="4" ytl="5" xbr="14" ybr="15" rotation="inf"/>',
        '<box label="cat" xtl="4" ytl="nan" xbr="14" ybr="15" rotation="30"/>',
        '<polygon label="cat" points="1,1"/>',
        '<polygon label="cat" points="1,1;2;3,3"/>',
        '<polygon label="cat"/>',
        '<box xtl="4" ytl="5" xbr="14" ybr="15"/>',
    ],
)
def test_wrong_shapes_of_cvat(tmp_path: Path, shape: str) -> None:
    root = _cvat(tmp_path, f'{shape}\n<box label="cat" xtl="4" ytl="5" xbr="14" ybr="15"/>')
    (problem,) = problems_of(Cvat(root).list_samples())
    assert problem.startswith("annotations.xml, line 2")
    features, _ = read(Cvat(root, boxes="drop").list_samples())
    assert boxes_of(features) == [BOX]


def _turned(degrees: float) -> list[tuple[float, float]]:
    """The corners of the box 14,6 to 26,12, each turned clockwise about the centre 20,9."""
    turn = cmath.exp(1j * math.radians(degrees))  # clockwise, as y goes down
    corners = (complex(x, y) * turn for x, y in ((-6, -3), (6, -3), (6, 3), (-6, 3)))
    return [(20 + corner.real, 9 + corner.imag) for corner in corners]


@pytest.mark.parametrize("degrees", [0, 30, 90, 143.7, 270, 360, 390, -25])
def test_rotated_boxes_of_cvat(tmp_path: Path, degrees: float) -> None:
    """CVAT's XML and its COCO store the box before its rotation; roLabelImg has radians."""
    box = f'<box label="cat" xtl="14" ytl="6" xbr="26" ybr="12" rotation="{degrees}"/>'
    item = {"bbox": [14, 6, 12, 6], "category_id": 1, "segmentation": [], "area": 72}
    image(tmp_path / "coco/a.jpg")
    rotated = item | {"attributes": {"occluded": False, "rotation": degrees}}
    coco(tmp_path / "coco/instances.json", {"a.jpg": [rotated]}, {1: "cat"})
    oriented = {"cx": 20, "cy": 9, "w": 12, "h": 6, "angle": math.radians(degrees)}
    values = "".join(f"<{key}>{value}</{key}>" for key, value in oriented.items())
    image(tmp_path / "voc/a.jpg")
    write(tmp_path / "voc/a.xml", f"<annotation><object><type>robndbox</type><name>cat</name>"
          f"<robndbox>{values}</robndbox></object></annotation>")  # fmt: skip
    corners = _turned(degrees)
    xs, ys = zip(*corners, strict=True)
    expected = (min(ys) / 20, min(xs) / 40, max(ys) / 20, max(xs) / 40)
    sources = (Cvat(_cvat(tmp_path / "cvat", box)), Coco(tmp_path / "coco"), Voc(tmp_path / "voc"))
    for source in sources:
        features, notes = read(source)
        assert boxes_of(features)[0] == pytest.approx(expected, abs=1e-5)
        assert notes == []
        if degrees % 360 or isinstance(source, Voc):
            shares = np.divide(corners, (40, 20)).ravel()
            assert corners_of(features)[0] == pytest.approx(shares, abs=2e-6)
        else:
            assert "image/object/corner/x" not in features
        if degrees % 360 and not isinstance(source, Voc):
            source._masks = "instance"
            features, notes = read(source)
            assert notes == []
            assert _overlap(mask_of(features["image/object/mask"][0]), corners) > 0.9


@pytest.mark.parametrize(
    "attributes", [None, [], "rotation", *({"rotation": it} for it in ("90", True, None, {}))]
)
def test_other_attributes_of_coco_rotate_nothing(tmp_path: Path, attributes: Any) -> None:
    image(tmp_path / "a.jpg")
    item = {"bbox": [4, 5, 10, 10], "category_id": 1, "attributes": attributes}
    outlined = item | {"attributes": {"rotation": 30}, "segmentation": [[4, 5, 14, 5, 14, 15]]}
    coco(tmp_path / "x.json", {"a.jpg": [item, outlined]}, {1: "cat"})
    features, notes = read(Coco(tmp_path))
    assert (boxes_of(features), notes) == ([BOX, BOX], [])


TAGGED = '<tag label="fox"/><polyline label="nose" points="1,1;2,2"/>'


def _tags(root: Path, labels: dict[str, str]) -> Path:
    """CVAT's file with these labels declared, and tags for the image of each name."""
    _cvat(root, images="".join(labels))
    path = root / "annotations.xml"
    declared = "".join(f"<label><name>{name}</name></label>" for name in ("zebra", "cat"))
    meta = f"<version/><meta><task><labels>{declared}</labels></task></meta>"
    text = path.read_text().replace("<version/>", meta)
    for name, tags in labels.items():
        text = text.replace(f'name="{name}.jpg" >', f'name="{name}.jpg">\n{tags}')
    path.write_text(text)
    return root


def test_tags_of_cvat_are_classes(tmp_path: Path) -> None:
    tags = {"a": '<tag label="cat"/>', "b": TAGGED, "c": '<tag label="zebra"/>'}
    source = Cvat(_tags(tmp_path / "in", tags))
    listing = source.list_samples()
    assert listing.class_names == ("zebra", "cat", "fox")
    assert not listing.has_label_map
    assert [sample.label for sample in listing.samples] == [1, 2, 0]
    features, notes = read(listing, 1)
    assert features == {
        "image/encoded": (tmp_path / "in/images/b.jpg").read_bytes(),
        "image/format": "jpeg",
        "image/height": 20,
        "image/width": 40,
        "image/filename": b"images/b.jpg",
        "image/source_id": b"7b",
        "image/class/label": 2,
        "image/class/text": b"fox",
    }
    assert [where for _, where in notes] == ["annotations.xml, line 4: polyline"]
    rs.pack(source, tmp_path / "out")
    assert rs.verify(tmp_path / "out", deep=True).is_good
    assert [e["image/class/text"][0] for e in rs.open(tmp_path / "out")].count(b"cat") == 1


def test_tags_of_cvat_with_a_label_map(tmp_path: Path) -> None:
    path = write(tmp_path / "map.pbtxt", 'item { id: 7 name: "cat" }')
    tags = {"a": '<tag label="cat"/>', "b": '<tag label="zebra"/>'}
    listing = Cvat(_tags(tmp_path / "in", tags), label_map=path).list_samples()
    assert listing.has_label_map
    assert read(listing, 0)[0]["image/class/label"] == 7
    with raises(rs.SourceError, path="annotations.xml", match="image 7b: class 'zebra'"):
        read(listing, 1)


@pytest.mark.parametrize("tags", ["", '<tag label=""/>'])
def test_images_need_one_tag(tmp_path: Path, tags: str) -> None:
    listing = Cvat(_tags(tmp_path, {"a": '<tag label="cat"/>', "b": tags})).list_samples()
    assert read(listing, 0)[0]["image/class/text"] == b"cat"
    with raises(rs.SourceError, path="annotations.xml", match=r"images/b\.jpg"):
        read(listing, 1)


@pytest.mark.parametrize("masks", [None, "instance"])
def test_a_polygon_of_two_points_keeps_its_box(tmp_path: Path, masks: Any) -> None:
    labelme = _labelme(tmp_path / "labelme", _shape((4, 5), (14, 15)))
    cvat = _cvat(tmp_path / "cvat", '<polygon label="cat" points="4,5;14,15"/>')
    line = {"segmentation": [[4, 5, 14, 15]], "bbox": [4, 5, 10, 10], "id": 1, "image_id": 1}
    image(tmp_path / "coco/a.jpg")
    document = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 40, "height": 20}],
        "annotations": [line | {"category_id": 1}],
        "categories": [{"id": 1, "name": "cat"}],
    }
    write(tmp_path / "coco/instances.json", json.dumps(document))
    for source in (LabelMe(labelme, object_masks=masks), Cvat(cvat, object_masks=masks),
                   rs.Coco(tmp_path / "coco", object_masks=masks)):  # fmt: skip
        features, notes = read(source.list_samples())
        assert boxes_of(features) == [BOX]
        empty = [what for what, _ in notes if "empty mask" in what]
        assert len(empty) == (masks is not None)


@pytest.mark.parametrize(
    "text",
    [
        "<annotations><version/><image",
        '<?xml version="1.0" encoding="nonsense"?><annotations><version x="é"/></annotations>',
        '<!DOCTYPE x [<!ENTITY a "b">]><annotations><version/><image name="&a;"/></annotations>',
    ],
)
def test_broken_cvat_files(tmp_path: Path, text: str) -> None:
    root = _cvat(tmp_path)
    write(root / "annotations.xml", text)
    with raises(rs.SourceError, path="annotations.xml"):
        Cvat(root).list_samples()


# -- encodings -----------------------------------------------------------------------------------

DECLARATION = '<?xml version="1.0" encoding="{}"?>'
ENCODINGS = [  # declared, encoded, class
    ("", "utf-8", "猫"),
    ("", "utf-8-sig", "猫"),
    ("", "utf-16", "猫"),
    ("utf-16", "utf-16", "猫"),
    ("utf-16", "utf-16-le", "猫"),
    ("utf-16", "utf-16-be", "猫"),
    ("UTF-16", "utf-8", "猫"),
    ("gb2312", "ascii", "cat"),
    ("nonsense", "ascii", "cat"),
    ("utf-16", "ascii", "cat"),
    ("GB2312", "gb2312", "猫"),
    ("gbk", "gbk", "貓"),
    ("GB2312", "gbk", "貓"),
    ("Shift_JIS", "shift_jis", "猫"),
    ("EUC-KR", "euc-kr", "고양이"),
    ("Big5", "big5", "貓"),
    ("windows-1252", "cp1252", "Käfer"),
    ("ISO-8859-1", "latin-1", "Käfer"),
    ("KOI8-R", "koi8-r", "кот"),
]


def _encoded(root: Path, kind: type[Source], encoding: str, declared: str, name: str) -> Source:
    """A dataset with one class in each annotation file, which are in another encoding."""
    first = DECLARATION.format(declared) if declared else ""
    if kind is Voc:
        voc(root, {"a": [(name, 4, 5, 14, 15)], "b": [(name, 4, 5, 14, 15)]})
    elif kind is Cvat:
        _cvat(root, f'<box label="{name}" xtl="4" ytl="5" xbr="14" ybr="15"/>')
    elif kind is LabelMe:
        for stem in "ab":
            _labelme(root, _shape((4, 5), (14, 15), kind="rectangle", label=name), name=stem)
    else:
        image(root / "a.jpg")
        coco(root / "x.json", {"a.jpg": [{"category_id": 1, "bbox": [4, 5, 10, 10]}]}, {1: name})
    for path in root.rglob("*.xml" if kind in (Voc, Cvat) else "*.json"):
        text = path.read_text(encoding="utf-8")
        if kind in (LabelMe, Coco):
            text = json.dumps(json.loads(text), ensure_ascii=False)
        path.write_bytes((first + text).encode(encoding))
    return kind(root)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [Voc, Cvat])
@pytest.mark.parametrize(("declared", "encoding", "name"), ENCODINGS)
def test_encodings_of_xml(
    tmp_path: Path, kind: Any, declared: str, encoding: str, name: str
) -> None:
    source = _encoded(tmp_path, kind, encoding, declared, name)
    features, _ = read(source)
    assert boxes_of(features) == [BOX]
    assert features["image/object/class/text"] == [name.encode()]
    (candidate,) = find_candidates(FileTree(as_folder(tmp_path)))
    assert (candidate.format, candidate.problem) == (source.box_format.name, "")  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [LabelMe, Coco])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_encodings_of_json(tmp_path: Path, kind: Any, encoding: str) -> None:
    source = _encoded(tmp_path, kind, encoding, "", "猫")
    if encoding == "utf-16-be":  # with a byte order mark, as the others
        for path in tmp_path.rglob("*.json"):
            path.write_bytes(b"\xfe\xff" + path.read_bytes())
    features, _ = read(source)
    assert features["image/object/class/text"] == ["猫".encode()]
    (candidate,) = find_candidates(FileTree(as_folder(tmp_path)))
    assert (candidate.format, candidate.problem) == (source.box_format.name, "")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "declared", "encoding", "words"),
    [
        (Voc, "", "cp1252", "not valid UTF-8"),
        (Voc, "utf-8", "cp1252", "not valid UTF-8"),
        (Voc, "nonsense", "cp1252", "'nonsense'"),
        (Voc, "utf-7", "cp1252", "not valid UTF-8"),
        (Voc, "punycode", "cp1252", "'punycode'"),
        (Voc, "euc-kr", "cp1252", "euc-kr"),
        (Cvat, "", "cp1252", "not valid UTF-8"),
        (Cvat, "nonsense", "cp1252", "'nonsense'"),
        (LabelMe, "", "cp1252", "not valid UTF-8"),
        (Coco, "", "cp1252", "not valid UTF-8"),
    ],
)
def test_other_encodings_are_named_once(
    tmp_path: Path, kind: Any, declared: str, encoding: str, words: str
) -> None:
    source = _encoded(tmp_path, kind, encoding, declared, "Käfer")
    with raises(rs.SourceError, match=words) as caught:
        source.list_samples()
    assert "UTF-8" in caught.value.remedy
    assert caught.value.path in ("Annotations/a.xml", "annotations.xml", "a.json", "x.json")
    if kind in (Voc, LabelMe):
        assert len(caught.value.problems) == 2


def test_one_file_in_another_encoding_fails_alone(tmp_path: Path) -> None:
    source = _encoded(tmp_path, Voc, "utf-8", "", "cat")
    voc(tmp_path, {"c": [("Käfer", 4, 5, 14, 15)]})
    path = tmp_path / "Annotations/c.xml"
    path.write_bytes(path.read_text(encoding="utf-8").encode("latin-1"))
    listing = source.list_samples()
    assert next(sample.name for sample in listing.samples) == "Annotations/c.xml"
    with raises(rs.SourceError, path="Annotations/c.xml", line=13):
        read(listing, 0)
    assert boxes_of(read(listing, 1)[0]) == [BOX]


# -- YOLO and COCO: what is refused or left out --------------------------------------------------


def _yolo(root: Path, *rows: str) -> Path:
    write(root / "data.yaml", "train: images\nnames: [cat, Dog]\n")
    for number, row in enumerate(rows):
        image(root / f"images/{number}.jpg")
        write(root / f"labels/{number}.txt", row)
    return root


def test_masks_of_yolo_on_a_rotated_image(tmp_path: Path) -> None:
    """6: the stored top is on the right; the upright image is 20 wide and 40 high."""
    root = _yolo(tmp_path, "1 0 0 0.25 0 0.25 0.25 0 0.25 0 0.1\n")
    image(root / "images/0.jpg", (40, 20), orientation=6)
    features, _ = read(Yolo(root, object_masks="class").list_samples())
    expected = np.zeros((20, 40), np.uint8)
    expected[15:, :10] = 2
    assert np.array_equal(mask_of(features["image/segmentation/class/encoded"]), expected)


def test_files_of_instances_are_preferred(tmp_path: Path) -> None:
    image(tmp_path / "images/a.jpg")
    item = {"category_id": 1, "bbox": [4, 5, 10, 10], "keypoints": [1, 2, 2]}
    names = [f"annotations/{name}_val.json" for name in ("stuff", "parts", "instances")]
    for name in names:
        coco(tmp_path / name, {"a.jpg": [item]}, {1: name})
    listing = Coco(tmp_path).list_samples()
    assert listing.class_names == (None, names[2])
    assert left_out(listing) == {"of another task": sorted(names[:2])}
    (tmp_path / names[2]).unlink()
    with raises(rs.SourceError, match="without distinct splits"):
        Coco(tmp_path).list_samples()
    assert Coco(tmp_path, annotations=names[0]).list_samples().class_names == (None, names[0])


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


def test_panoptic_files_are_refused(tmp_path: Path) -> None:
    image(tmp_path / "val2017/a.jpg")
    item = {"file_name": "a.png", "segments_info": [{"id": 3, "category_id": 1}]}
    name = "annotations/panoptic_val2017.json"
    coco(tmp_path / name, {"a.jpg": [item]}, {1: "cat"})
    with raises(rs.SourceError, path=name, match="panoptic segments are not read"):
        Coco(tmp_path).list_samples()


# -- hostile files -------------------------------------------------------------------------------


def _mutated(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, cut out or repeated, as the fuzzers do it."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randrange(len(out)), rng.randint(1, 30)
        change = rng.randrange(5)
        if change == 0:
            out[at] = rng.randrange(256)
        elif change == 1:
            del out[at : at + length]
        elif change == 2:
            out[at:at] = out[at : at + length] * rng.randint(1, 3)
        elif change == 3:
            out[at : at + length] = rng.choice(_ODD)
        elif values := [match.span() for match in _VALUE.finditer(out)]:
            start, stop = rng.choice(values)
            out[start:stop] = rng.choice(_ODD)
        out = out or bytearray(b" ")
    return bytes(out)


_ODD = (b"NaN", b"1e999", b"-1", b"null", b"[]", b"{}", b'""', b"\xff\xfe", b"\0", b"9" * 400,
        b"../x", b"&a;", b"\r\n", b'"', b",", b"<image>", b"true", b"\xed\xa0\x80",
        b'"\\ud800"', b'"\\n"', b'[{"":[]}]')  # fmt: skip
_VALUE = re.compile(rb"""[0-9.]+|"[^"]*"|[\[{][^\[\]{}]*[\]}]""")
_SIZE = {"original_width": 40, "original_height": 20, "image_rotation": 0}
_VIDEO = """<annotations><version>1.1</version><meta><task><start_frame>0</start_frame><stop_frame>1
</stop_frame><original_size><width>40</width><height>20</height></original_size></task></meta>
<track id="3" label="cat"><box frame="0" outside="0" xtl="1" ytl="2" xbr="9" ybr="9" rotation="5">
<attribute name="a">1</attribute></box><box frame="1" outside="1" xtl="1" ytl="2" xbr="9" ybr="9"/>
</track><track id="4" label="Dog"><skeleton frame="1" outside="0"><points label="x" outside="0"
points="1,1"/><points label="y" occluded="1" outside="0" points="5,9"/></skeleton></track>
</annotations>"""
_RESULTS = [
    {"id": key, "type": "x", "from_name": "y", "parentID": "1", **_SIZE, "value": value}
    for key, value in (
        ("1", {"x": 9, "y": 9, "width": 50, "height": 9, "rotation": 5, "labels": ["cat"]}),
        ("2", {"points": [[1, 2], [50, 60], [9, 70]], "polygonlabels": ["cat", "Dog"]}),
        ("3", {"x": 50, "y": 50, "radiusX": 9, "radiusY": 20, "ellipselabels": ["cat"]}),
        ("4", {"rle": [0, 0, 12, 128, 61, 128, 4, 199, 255, 240], "brushlabels": ["cat"]}),
        ("5", {"x": 20, "y": 30, "width": 1, "keypointlabels": ["nose"]}),
        ("1", {"choices": ["left"]}),
        ("6", {"choices": ["day", "wet"]}),
        ("7", {"text": ["A cat."]}),
    )
]
_TASK = {"id": 7, "data": {"image": "/data/upload/1/0f3a9b7c-a.jpg"}, "predictions": [],
         "annotations": [{"completed_by": {"id": 1}, "result": _RESULTS}]}  # fmt: skip
_REGIONS = [
    {"shape_attributes": values, "region_attributes": {"class": "cat", "tame": {"yes": True}}}
    for values in (
        {"name": "rect", "x": 1, "y": 2, "width": 3, "height": 4},
        {"name": "ellipse", "cx": 9, "cy": 9, "rx": 3, "ry": 4, "theta": 0.5},
        {"name": "polygon", "all_points_x": [1, 9, 9], "all_points_y": [1, 1, 9]},
        {"name": "point", "cx": 9, "cy": 9},
    )
]
VIA = "filename,file_attributes,region_shape_attributes,region_attributes"
_ABOUT = {"image_id": 3, "width": 40, "height": 20, "file_name": "a.jpg"}
_RUNS = {"size": [20, 40], "counts": [85, 10, 10, 10, 685]}
_MASK = {"segmentation": _RUNS, "bbox": [4, 5, 1, 9], "area": 20, "predicted_iou": 0.9, "id": 7,
         "stability_score": 0.75}  # fmt: skip
_BOX = {"label": "cat", "coordinates": {"x": 9, "y": 10, "width": 10, "height": 10}}
_CAPTIONS = {"images": [{"id": 1, "file_name": "a.jpg"}],
             "annotations": [{"id": 1, "image_id": 1, "caption": "A cat."}]}  # fmt: skip

HOSTILE: dict[str, tuple[Any, str, Any]] = {
    "dota": (rs.Dota, "labelTxt/a.txt", "imagesource:x\ngsd:0.5\n"
             + "4 5 14 6 13 15 3 14 cat 1\n9 5 14 5 14 15 9 15 Dog 0\n" * 3),
    "createml": (rs.CreateML, "a.json", [{"image": "a.jpg", "annotations": [_BOX, _BOX]}]),
    "kitti": (rs.Kitti, "label_2/a.txt", 3 * "Car 0.25 1 -1.5 4 5 14 15 1.5 1.75 3.5 -0.5 1 4 -1\n"
              + "DontCare -1 -1 -10 1 2 3 4 -1 -1 -1 -1000 -1000 -1000 -10\n"),
    "via": (rs.Via, "a.json", {"a.jpg9": {"filename": "a.jpg", "size": 9, "regions": _REGIONS,
                                          "file_attributes": {"caption": "A cat."}}}),
    "via rows": (rs.Via, "a.csv", f"{VIA}\n" + 3 * """a.jpg,{},"{""name"":""rect"",""x"":1,""y"":2,
                 ""width"":3,""height"":4}","{""class"":""cat""}"\n"""),
    "segment anything": (rs.SegmentAnything, "a.json", {"image": _ABOUT, "annotations": [_MASK]}),
    "label studio": (rs.LabelStudio, "a.json", [_TASK]),
    "cvat video": (rs.Cvat, "annotations.xml", _VIDEO),
    "celeba": (rs.ImageLabels, "list_attr_celeba.txt", "1\nBald Young Male\na.jpg 1 -1  1\n"),
    "celeba rows": (rs.ImageLabels, "list_attr_celeba.csv", "image_id,Bald,Young\na.jpg,1,-1\n"),
    "label rows": (rs.ImageLabels, "a.csv",
                   "ImageID,LabelName,Confidence\na,/m/1,1\na,/m/2,0\na,/m/1,0.5\n"),
    "coco captions": (rs.Coco, "captions_val.json", _CAPTIONS),
    "captions": (rs.CaptionedImages, "a.txt", "A cat.\n\nA dog \xfc.\n"),
}  # fmt: skip
"""By the kind: the source, its annotation file, and what is in it."""


def _hostile(root: Path, kind: str) -> tuple[Source, Path]:
    if kind in HOSTILE:
        make, name, content = HOSTILE[kind]
        for path in ("a.jpg", "frame_000000.jpg", "frame_000001.jpg"):
            image(root / path)
        file = write(root / name, content if isinstance(content, str) else json.dumps(content))
        has_outlines = getattr(getattr(make, "box_format", None), "has_outlines", False)
        return make(root, **({"object_masks": "instance"} if has_outlines else {})), file
    if kind == "csv":
        source: Source = CsvBoxes(_csv(root, CSV * 3))
    elif kind == "open images":
        source = CsvBoxes(_csv(root, "a,/m/1,0,1,0,1,1,0\n" * 9, OPEN_IMAGES))
    elif kind == "cvat":
        box = '<box label="cat" xtl="1" ytl="2" xbr="3" ybr="4" rotation="30"/>'
        shapes = f'{box}<polygon label="cat" points="1,1;2,2;3,1"/>'
        _cvat(root, shapes, values='width="40" height="20"')
        source = Cvat(root, object_masks="class")
    elif kind == "labelme":
        shapes = [_shape((1, 1), (9, 1), (9, 9)), _shape((3, 3), (5, 5), kind="circle")]
        shapes += [_shape(*TILTED, kind="rotation"), _shape((30, 5), (38, 10), kind="mask")]
        shapes[-1]["mask"] = _png(STAIRS)
        _labelme(root, *shapes, imageWidth=40, imageHeight=20)
        source = LabelMe(root, object_masks="instance")
    else:
        image(root / "a.jpg")
        outline = [[1, 1, 5, 1, 5, 9]]
        item = {"category_id": 1, "bbox": [4, 5, 10, 10], "area": 1, "segmentation": outline}
        rotated = item | {"segmentation": [], "attributes": {"rotation": 30}}
        coco(root / "x.json", {"a.jpg": [item, rotated]}, {1: "cat"})
        source = Coco(root, object_masks="class")
    (file,) = [path for path in root.rglob("*") if path.suffix in (".csv", ".json", ".xml")]
    return source, file


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "open images", "cvat", "labelme", "coco", *HOSTILE])
@pytest.mark.parametrize("policy", ["stop", "clip"])
def test_changed_bytes_are_read_or_reported(tmp_path: Path, kind: str, policy: str) -> None:
    """Either an error of ours, or records whose boxes are within their images."""
    source, file = _hostile(tmp_path, kind)
    source._policy = policy  # type: ignore[attr-defined]
    data = file.read_bytes()
    rng = random.Random(f"{kind} {policy}")
    for _ in range(300):
        file.write_bytes(_mutated(data, rng))
        try:
            list(find_candidates(FileTree(as_folder(tmp_path))))
            listing = source.list_samples()
        except rs.RecordsmithError:
            continue
        reader = open_reader(json.loads(json.dumps(listing.reader.to_json())))
        for sample in listing.samples:
            restored = Sample.from_json(json.loads(json.dumps(sample.to_json())))
            try:
                features: Any = reader.read(restored)
            except rs.RecordsmithError:
                continue
            boxes = boxes_of(features) if "image/object/bbox/xmin" in features else ()
            assert all(0 <= value <= 1 for box in boxes for value in box)


# -- another format --------------------------------------------------------------------------------


def _parse_words(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    name, *corners = file.location.read().decode().split()
    box = AnnotatedObject("line 1", name, tuple(map(float, corners)))
    yield AnnotatedImage(size=(40, 20), objects=[box])


def test_the_table_has_the_suffixes_of_each_format() -> None:
    for name, suffixes in BOX_SUFFIXES.items():
        known = FORMATS[name].box_format
        assert known.name == name
        assert (known.suffix, {known.suffix, *known.file_suffixes}) == (suffixes[0], {*suffixes})


def test_a_format_is_a_line_in_a_table(tmp_path: Path) -> None:
    class Words(
        PerImageAnnotationSource,
        box_format=BoxFormat(
            "words",
            ".words",
            lambda head: head.startswith(b"cat "),
            _parse_words,
            what="images and boxes of files such as {}",
            expected=".words files next to their images",
            has_outlines=False,
        ),
    ):
        """Images with a box each."""

    FORMATS["words"], BOX_SUFFIXES["words"] = Words, (".words",)
    OPTIONS["words"] = frozenset(("label_map", "boxes", "drawn"))
    try:
        image(tmp_path / "in" / "a.jpg")
        write(tmp_path / "in" / "a.words", CAT.replace(",", " "))
        assert rs.detect(tmp_path / "in").reading.format == "words"
        rs.pack(tmp_path / "in", tmp_path / "out")
        example = rs.open(tmp_path / "out")[0]
        keys = (f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax"))
        assert [float(example[key][0]) for key in keys] == pytest.approx(BOX)
        for command in ("detect", "pack"):
            helps = {
                param.name: str(param.help) for param in load_command.__wrapped__(command).params
            }
            assert all("words" in helps[name].split(":")[0] for name in ("format", "boxes"))
            assert "words" not in helps["object_masks"]
    finally:
        del FORMATS["words"], BOX_SUFFIXES["words"], OPTIONS["words"]
    with raises(rs.OptionError, option="format"):
        rs.detect(tmp_path / "in", "words")


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
