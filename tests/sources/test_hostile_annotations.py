"""Annotation files with changed bytes, of each format."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.sources import (
    Coco,
    CsvBoxes,
    Cvat,
    LabelMe,
    Sample,
    Source,
    open_reader,
)
from recordsmith.sources.boxes.detection import find_candidates
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.stores import as_folder

from .annotated import (
    CSV_ROWS,
    OPEN_IMAGES,
    STAIRS,
    TILTED,
    boxes_of,
    coco,
    csv_boxes,
    cvat,
    image,
    labelme,
    png_text,
    shape_of,
    write,
)


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
        source: Source = CsvBoxes(csv_boxes(root, CSV_ROWS * 3))
    elif kind == "open images":
        source = CsvBoxes(csv_boxes(root, "a,/m/1,0,1,0,1,1,0\n" * 9, OPEN_IMAGES))
    elif kind == "cvat":
        box = '<box label="cat" xtl="1" ytl="2" xbr="3" ybr="4" rotation="30"/>'
        shapes = f'{box}<polygon label="cat" points="1,1;2,2;3,1"/>'
        cvat(root, shapes, values='width="40" height="20"')
        source = Cvat(root, object_masks="class")
    elif kind == "labelme":
        shapes = [
            shape_of((1, 1), (9, 1), (9, 9)),
            shape_of((3, 3), (5, 5), kind="circle"),
        ]
        shapes += [
            shape_of(*TILTED, kind="rotation"),
            shape_of((30, 5), (38, 10), kind="mask"),
        ]
        shapes[-1]["mask"] = png_text(STAIRS)
        labelme(root, *shapes, imageWidth=40, imageHeight=20)
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
