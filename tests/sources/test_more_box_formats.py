"""CreateML, KITTI, VGG Image Annotator and Segment Anything: values, and what is wrong in them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import Source
from recordsmith.sources.boxes.annotation import AnnotatedObject, AnnotationFile
from recordsmith.sources.formats import BOX_SUFFIXES, FORMATS
from recordsmith.stores import as_location

from ..raising import places, raises
from .annotated import boxes_of, image, mask_of, problems_of, read, write
from .source_contract import SourceContract

ROW = "Car 0.25 1 -1.5 4.00 5.00 14.00 15.00 1.5 1.75 3.5 -0.5 1.25 46.5 -1.5"
BOX = (0.25, 0.1, 0.75, 0.35)  # of ROW: ymin, xmin, ymax, xmax
MASK = {"size": [20, 40], "counts": [85, 10, 10, 10, 685]}  # rows 5 to 14 of two columns


def _createml(root: Path, *annotations: Any, names: str = "a") -> Path:
    for name in names:
        image(root / f"{name}.jpg")
    entries = [{"imagefilename": f"{n}.jpg", "annotation": [*annotations]} for n in names]
    write(root / "boxes.json", json.dumps(entries))
    return root


def _kitti(root: Path, text: str, names: str = "a") -> Path:
    for name in names:
        image(root / f"image_2/{name}.png")
        write(root / f"label_2/{name}.txt", text)
    return root


def _via(root: Path, *regions: Any, names: str = "a", **values: Any) -> Path:
    items = {}
    for name in names:
        image(root / f"{name}.jpg")
        items[name] = {"filename": f"{name}.jpg", "regions": [*regions], "file_attributes": values}
    write(root / "via.json", json.dumps(items))
    return root


def _region(name: str, **values: Any) -> Any:
    attributes = values.pop("attributes", {"label": "cat"})
    return {"shape_attributes": {"name": name, **values}, "region_attributes": attributes}


def _mask(**more: Any) -> Any:
    scores = {"predicted_iou": 0.9, "stability_score": 0.75}
    return {"segmentation": MASK, "bbox": [4, 5, 1, 9], "area": 20, **scores, "id": 7, **more}


def _sam(root: Path, *masks: Any, names: str = "a", is_list: bool = False) -> Path:
    for name in names:
        image(root / f"{name}.jpg")
        about = {"image_id": 3, "width": 40, "height": 20, "file_name": f"{name}.jpg"}
        document = [*masks] if is_list else {"image": about, "annotations": [*masks]}
        write(root / f"{name}.json", json.dumps(document))
    return root


CAT = {"label": "cat", "coordinates": {"x": 9, "y": 10, "width": 10, "height": 10}}
RECT = _region("rect", x=4, y=5, width=10, height=10)


class TestContractOfCreateML(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return rs.CreateML(_createml(folder, CAT, names="abcd"))


class TestContractOfKitti(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return rs.Kitti(_kitti(folder, ROW, names="abcd"))


class TestContractOfVia(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return rs.Via(_via(folder, RECT, names="abcd"), object_masks="class")


class TestContractOfSegmentAnything(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return rs.SegmentAnything(_sam(folder, _mask(), names="abcd"), object_masks="instance")


def _objects(path: Path, format: str) -> list[AnnotatedObject]:
    file = AnnotationFile(as_location(path), path.name, with_outlines=True)
    (annotated,) = FORMATS[format].box_format.images(file)
    return list(annotated.objects)


# -- values --------------------------------------------------------------------------------------


def test_values_of_kitti(tmp_path: Path) -> None:
    flat = "Van 0 3 0.5 1 2 3 4 -1 -1 -1 -1000 -1000 -1000 -10 0.5"
    dont_care = "DontCare -1 -1 -10 1 2 3 4 -1 -1 -1 -1000 -1000 -1000 -10"
    root = _kitti(tmp_path, f"{ROW}\n\n{dont_care}\n{flat}\n")
    features, notes = read(rs.Kitti(root))
    assert boxes_of(features)[0] == pytest.approx(BOX)
    assert [where for _, where in notes] == ["label_2/a.txt, line 3"]
    names = "truncated occluded alpha dimension_height dimension_width dimension_length"
    names += " location_x location_y location_z rotation_y"
    car, van = (item.attributes for item in _objects(root / "label_2/a.txt", "kitti"))
    values = map(float, (ROW.split()[1:4] + ROW.split()[8:]))
    assert car == dict(zip(names.split(), values, strict=True))
    assert van == {"truncated": 0, "occluded": 3, "alpha": 0.5, "score": 0.5}
    assert (type(van["occluded"]), type(van["truncated"])) == (int, float)


def test_lists_of_kitti(tmp_path: Path) -> None:
    """The numbers of the test images, which have no labels, are those of others."""
    root = _kitti(tmp_path / "training", ROW, names="abc").parent
    for name in "abc":
        image(root / f"testing/image_2/{name}.png")
    for split, names in {"train": "ab", "val": "c", "test": "abc"}.items():
        write(root / f"ImageSets/{split}.txt", "\n".join(names))
    listing = rs.Kitti(root).list_samples()
    assert [sample.split for sample in listing.samples] == ["train", "train", "val"]
    assert not any("two splits" in str(notice) for notice in listing.notices)


@pytest.mark.parametrize(
    ("shape", "corners"),
    [
        (_region("rect", x=4, y=5, width=10, height=10), (4, 5, 14, 15)),
        (_region("circle", cx=9, cy=10, r=5), (4, 5, 14, 15)),
        (_region("ellipse", cx=20, cy=10, rx=8, ry=4), (12, 6, 28, 14)),
        (_region("ellipse", cx=20, cy=10, rx=8, ry=4, theta=math.pi / 2), (16, 2, 24, 18)),
        (_region("polygon", all_points_x=[4, 14, 9], all_points_y=[5, 8, 15]), (4, 5, 14, 15)),
    ],
)
def test_shapes_of_via(tmp_path: Path, shape: Any, corners: Any) -> None:
    (item,) = _objects(_via(tmp_path, shape) / "via.json", "via")
    assert item.name == "cat"
    assert item.corners == pytest.approx(corners)


def test_an_ellipse_turns_clockwise(tmp_path: Path) -> None:
    shape = _region("ellipse", cx=20, cy=10, rx=10, ry=1, theta=math.pi / 6)
    features, _ = read(rs.Via(_via(tmp_path, shape), object_masks="instance"))
    mask = mask_of(features["image/object/mask"][0])
    rows, columns = np.nonzero(mask)
    assert np.corrcoef(rows, columns)[0, 1] > 0.9  # down to the right


def test_what_via_has_besides_regions(tmp_path: Path) -> None:
    attributes = {"name": "cat", "tame": {"yes": True, "no": False}, "age": 3, "note": ""}
    regions = [_region("rect", x=1, y=2, width=3, height=4, attributes=attributes),
               _region("point", cx=1, cy=2), _region("polyline", all_points_x=[1])]  # fmt: skip
    regions[1]["region_attributes"] = regions[2]["region_attributes"] = {"tame": {}}
    root = _via(tmp_path, *regions, caption="A cat.", public_domain="no")
    notes = read(rs.Via(root))[1]
    assert [where for _, where in notes] == [
        "via.json, image 1: public_domain",
        "via.json, image 1, region 2: point",
        "via.json, image 1, region 3: polyline",
    ]
    file = AnnotationFile(as_location(root / "via.json"), "via.json")
    (annotated,) = FORMATS["via"].box_format.images(file)
    (item,) = annotated.objects
    assert (item.name, item.attributes) == ("cat", {"tame": "yes", "age": 3, "note": ""})
    assert annotated.captions == ["A cat."]


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({}, "object"),
        ({"species": "cat"}, "cat"),
        ({"Label": "cat", "age": "3"}, "cat"),
        ({"name": "x", "type": "cat"}, None),
        ({"size": "x", "age": "3"}, None),
    ],
)
def test_the_class_of_via(tmp_path: Path, attributes: Any, name: str | None) -> None:
    root = _via(tmp_path, _region("rect", x=1, y=2, width=3, height=4, attributes=attributes))
    if name is None:
        with raises(rs.SourceError, path="via.json", match=" and ".join(attributes)):
            rs.Via(root).list_samples()
    else:
        assert rs.Via(root).list_samples().class_names[1] == name  # type: ignore[index]


@pytest.mark.parametrize("is_list", [False, True])
def test_masks_of_segment_anything(tmp_path: Path, is_list: bool) -> None:
    root = _sam(tmp_path, _mask(), _mask(id=None, area=None), is_list=is_list)
    features, notes = read(rs.SegmentAnything(root, object_masks="instance"))
    assert notes == []
    assert features["image/object/class/text"] == [b"object"] * 2
    assert features["image/object/id"] == [7, -1]
    assert features["image/object/area"] == pytest.approx([20, 9])
    rows, columns = np.nonzero(mask_of(features["image/object/mask"][0]))
    assert {*rows} == {*range(5, 15)}
    assert {*columns} == {4, 5}
    (first, _) = _objects(root / "a.json", "segment-anything")
    assert first.attributes == {"predicted_iou": 0.9, "stability_score": 0.75}


def test_images_without_masks(tmp_path: Path) -> None:
    _sam(tmp_path, _mask(), names="a")
    _sam(tmp_path, names="b")
    listing = rs.detect(tmp_path).source.list_samples()
    assert boxes_of(read(listing, 1)[0]) == []


# -- bad input -----------------------------------------------------------------------------------

BAD: dict[str, tuple[Any, str, str]] = {
    "coordinates": (
        lambda root: rs.CreateML(_createml(root, CAT, {"label": "cat"})),
        "boxes.json, image 1, annotation 2",
        "coordinates",
    ),
    "no list": (lambda root: rs.CreateML(_createml(root, CAT, 3)), "annotation 2", "x is missing"),
    "NaN": (
        lambda root: rs.CreateML(
            _createml(root, CAT, CAT | {"coordinates": {"x": math.nan, "y": 1}})
        ),
        "boxes.json, image 1, annotation 2",
        "x: found '",
    ),
    "short row": (
        lambda root: rs.Kitti(_kitti(root, f"{ROW}\nCar 0 0\n")),
        "label_2/a.txt, line 2",
        "3 values",
    ),
    "text in a row": (
        lambda root: rs.Kitti(_kitti(root, f"{ROW}\n{ROW.replace('0.25', 'x')}\n")),
        "label_2/a.txt, line 2",
        "truncated: found 'x'",
    ),
    "polygon": (
        lambda root: rs.Via(
            _via(root, RECT, _region("polygon", all_points_x=[1], all_points_y=[1, 2]))
        ),
        "via.json, image 1, region 2",
        "polygon",
    ),
    "radius": (
        lambda root: rs.Via(_via(root, RECT, _region("circle", cx=1, cy=2, r=math.inf))),
        "region 2",
        "circle",
    ),
    "no class": (
        lambda root: rs.Via(
            _via(root, RECT, _region("circle", cx=9, cy=9, r=2, attributes={"label": " "}))
        ),
        "region 2",
        "'label'",
    ),
    "no region": (lambda root: rs.Via(_via(root, RECT, [])), "region 2", "empty"),
    "bbox": (
        lambda root: rs.SegmentAnything(_sam(root, _mask(), _mask(bbox=[1, 2]))),
        "a.json, annotation 2",
        "[1, 2]",
    ),
    "run lengths": (
        lambda root: rs.SegmentAnything(
            _sam(root, _mask(), _mask(segmentation={"size": [20, 40], "counts": [1 << 62]})),
            object_masks="instance",
        ),
        "a.json, annotation 2 (object)",
        "add up",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_objects(tmp_path: Path, kind: str) -> None:
    make, where, what = BAD[kind]
    source = make(tmp_path)
    problems = problems_of(source)
    assert all(where in place for place in places(problems))
    assert any(what in str(problem) for problem in problems)
    source._policy = "drop"
    assert len(boxes_of(read(source)[0])) == 1


@pytest.mark.parametrize(
    ("text", "line", "match"),
    [
        ('[\n{"image": "a.jpg",,}]', 2, "invalid JSON"),
        ('[{"image": "a.jpg"', 1, "truncated"),
        ('{"image": 1}', None, "CreateML"),
        ('[{"image": 3}]', None, "image 1"),
        ('[{"image": "a.jpg", "annotations": ["' + "x" * (9 << 20) + '"]}]', None, "longer"),
        ('[{"image": "caf\udce9"}]', None, "UTF-8"),
        ("[" * 100_000, None, "deeply"),
    ],
)
def test_broken_json(tmp_path: Path, text: str, line: int | None, match: str) -> None:
    (tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    image(tmp_path / "a.jpg")
    with raises(rs.SourceError, path="a.json", line=line, match=match):
        rs.CreateML(tmp_path, annotations=tmp_path / "a.json").list_samples()


HEADER = "filename,file_attributes,region_shape_attributes,region_attributes\n"


@pytest.mark.parametrize(
    ("text", "line", "match"),
    [
        (HEADER + 'a.jpg,{},"{""name"": ""point""}",{}\na.jpg,{},[1],{}\n', 3, r"\[1\]"),
        (HEADER + "a.jpg,{}\n", 2, "2 columns"),
        ("filename,region_attributes\na.jpg,{}\n", 1, "file_attributes"),
        (HEADER + "caf\udce9.jpg,{},{},{}\n", 2, "UTF-8"),
    ],
)
def test_broken_rows_of_via(tmp_path: Path, text: str, line: int, match: str) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with raises(rs.SourceError, path="a.csv", line=line, match=match):
        rs.Via(tmp_path, annotations=tmp_path / "a.csv").list_samples()


# -- detection -----------------------------------------------------------------------------------

COCO = {"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"image_id": 1, "category_id": 1, **_mask()}]}  # fmt: skip


@pytest.mark.parametrize("with_images", [True, False])
def test_coco_with_scores_is_coco(tmp_path: Path, with_images: bool) -> None:
    document = COCO if with_images else {"annotations": COCO["annotations"]}
    head = json.dumps(document).encode()
    known = [name for name, suffixes in BOX_SUFFIXES.items() if ".json" in suffixes
             and FORMATS[name].box_format.is_format_of("a.json", head)]  # fmt: skip
    assert known == ["coco"]
    for make, name in ((_createml, "createml"), (_via, "via"), (_sam, "segment-anything")):
        item = {"createml": CAT, "via": RECT}.get(name, _mask())
        assert rs.detect(make(tmp_path / name, item)).reading.format == name
        if name != "segment-anything":
            (path,) = (tmp_path / name).glob("*.json")
            assert rs.detect(path).reading.format == name
