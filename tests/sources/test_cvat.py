"""CVAT for images: shapes, masks, tags, labels, subsets, and what is wrong in files."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import (
    Cvat,
    Source,
)

from ..raising import places, raises
from .annotated import (
    BOX,
    boxes_of,
    cvat,
    mask_of,
    problems_of,
    read,
    write,
)
from .source_contract import SourceContract


class TestContractOfTags(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return Cvat(cvat(folder, '<tag label="cat"/>'))


class TestContractOfCvat(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        box = '<box label="cat" xtl="1" ytl="2" xbr="3" ybr="4"/>'
        return Cvat(cvat(folder, box), object_masks="instance")


def test_shapes_of_cvat(tmp_path: Path) -> None:
    shapes = (
        '<box label="cat" xtl="4" ytl="5" xbr="14" ybr="15"><attribute name="x">1</attribute></box>'
        '\n<polygon label="Dog" points="20,2;30,2;30,18;20,18"/>'
        '<polyline label="nose" points="1,1;2,2"/><tag label="indoors"/>'
    )
    values = 'width="40" height="20"'
    listing = Cvat(cvat(tmp_path, shapes, values=values), object_masks="class").list_samples()
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
    root = cvat(tmp_path, shape, "a", 'width="40" height="20"')
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
    root = cvat(tmp_path, MASK.replace(old, new), "a")
    (problem,) = problems_of(Cvat(root, object_masks="class"))
    assert (places([problem])[0].startswith("annotations.xml, line 2"), fault in problem) == (
        True,
    ) * 2


def test_labels_of_cvat_have_the_order_of_the_file(tmp_path: Path) -> None:
    root = cvat(tmp_path, '<polygon label="Dog" points="20,2;30,2;30,18;20,18"/>')
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
    root = cvat(tmp_path)
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
    root = cvat(tmp_path, f'{shape}\n<box label="cat" xtl="4" ytl="5" xbr="14" ybr="15"/>')
    (problem,) = problems_of(Cvat(root).list_samples())
    assert problem.startswith("annotations.xml, line 2")
    features, _ = read(Cvat(root, boxes="drop").list_samples())
    assert boxes_of(features) == [BOX]


TAGGED = '<tag label="fox"/><polyline label="nose" points="1,1;2,2"/>'


def _tags(root: Path, labels: dict[str, str]) -> Path:
    """CVAT's file with these labels declared, and tags for the image of each name."""
    cvat(root, images="".join(labels))
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


@pytest.mark.parametrize(
    "text",
    [
        "<annotations><version/><image",
        '<?xml version="1.0" encoding="nonsense"?><annotations><version x="é"/></annotations>',
        '<!DOCTYPE x [<!ENTITY a "b">]><annotations><version/><image name="&a;"/></annotations>',
    ],
)
def test_broken_cvat_files(tmp_path: Path, text: str) -> None:
    root = cvat(tmp_path)
    write(root / "annotations.xml", text)
    with raises(rs.SourceError, path="annotations.xml"):
        Cvat(root).list_samples()
