"""Captions of images and attributes of objects, in annotation files."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.sources import Coco

from ..raising import raises
from .annotated import coco, image, read

BOX = {"category_id": 1, "bbox": [4, 5, 10, 10]}
KEY = "image/object/attribute/"


def _write(folder: Path, attributes: list[Any], *, more: Any = None) -> Path:
    """An image, with an object for each of these attributes; None for an object without."""
    image(folder / "a.jpg")
    items = [BOX | ({} if value is None else {"attributes": value}) for value in attributes]
    return coco(folder / "a.json", {"a.jpg": [*items, *(more or ())]}, {1: "car", 2: "bus"})


def _attributes(features: Any) -> dict[str, list[Any]]:
    return {key.removeprefix(KEY): values for key, values in features.items() if KEY in key}


@pytest.mark.parametrize(
    ("given", "stored", "kind"),
    [
        (["red", None, ""], [b"red", b"", b""], "bytes"),
        ([1, 2, -(2**63) + 1], [1, 2, -(2**63) + 1], "int64"),
        ([1, 2.5, 0], [1, 2.5, 0], "float"),
        ([1, None, 2.5], [b"1", b"", b"2.5"], "bytes"),
        ([True, False, None], [b"true", b"false", b""], "bytes"),
        ([1, "1", 2], [b"1", b"1", b"2"], "bytes"),
        ([2**63, 1, 1], [str(2**63).encode(), b"1", b"1"], "bytes"),
        ([1e39, 1, 1], [b"1e+39", b"1", b"1"], "bytes"),
        ([["a", "\xfc"], {"b": 1}, 1], ['["a", "\xfc"]'.encode(), b'{"b": 1}', b"1"], "bytes"),
    ],
)
def test_attributes_are_texts_unless_all_are_numbers(
    tmp_path: Path, given: list[Any], stored: list[Any], kind: str
) -> None:
    """Those of CVAT's COCO files as well, without the rotation, which is that of the box."""
    _write(tmp_path / "in", [{"x": value, "rotation": 0.0, "occluded": False} for value in given])
    source = Coco(tmp_path / "in")
    assert _attributes(read(source)[0]) == {"x": stored, "occluded": [b"false"] * 3}
    rs.pack(source, tmp_path / "out")
    assert rs.open(tmp_path / "out").schema.columns[f"{KEY}x"].kind == kind


def test_attributes_of_other_tools(tmp_path: Path) -> None:
    given = [None, ["a"], 3, "x", {"caption": "y", "": 1}]
    _write(tmp_path, given, more=[BOX | {"caption": "a car", "score": 0.5, "x": 1}])
    listing = Coco(tmp_path).list_samples()
    assert [*listing.notices] == ["fields of annotations in a.json left out: score and x"]
    features, notes = read(Coco(tmp_path))
    assert _attributes(features) == {"caption": [b"", b"", b"", b"", b"y", b"a car"]}
    place = "a.json, annotation 5 (car)"
    assert notes == [("attributes without a name were left out", place)]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ([{f"n{n}": n for n in range(65)}], "at most 64"),
        ([{f"n{n}": 1} for n in range(65)], "at most 64"),
        ([{"a/b": 1}], "without /"),
        ([{"a\nb": 1}], "without /"),
    ],
)
def test_attributes_that_no_feature_can_hold(
    tmp_path: Path, attributes: Any, expected: str
) -> None:
    _write(tmp_path, attributes)
    with raises(rs.SourceError, match=f"a.json, annotation {len(attributes)} .*{expected}"):
        Coco(tmp_path).list_samples()
    _write(tmp_path, [{f"n{n}": n for n in range(64)}])
    assert len(_attributes(read(Coco(tmp_path))[0])) == 64


def test_an_attribute_as_the_class(tmp_path: Path) -> None:
    given = [{"kind": "suv"}, {"kind": 7}, None, {"kind": "suv"}]
    _write(tmp_path, given)
    source = Coco(tmp_path, class_from="kind", boxes="drop")
    assert source.list_samples().class_names == (None, "7", "suv")
    features, notes = read(source)
    assert features["image/object/class/label"] == [2, 1, 2]
    assert features["image/object/class/text"] == [b"suv", b"7", b"suv"]
    assert ["'kind' is missing" in where for _, where in notes] == [True]
    with raises(rs.SourceError, match="'kind' is missing"):
        read(Coco(tmp_path, class_from="kind"))
    with raises(rs.OptionError, option="class_from", value="kid", expected="kind"):
        Coco(tmp_path, class_from="kid").list_samples()
    coco(tmp_path / "b.json", {"b.jpg": [BOX, BOX]}, {1: "car", 2: "bus"})
    image(tmp_path / "b.jpg")
    files = {"train": "a.json", "val": "b.json"}
    with raises(rs.SourceError, path="b.json", match="none of its 2 objects has the attribute"):
        Coco(tmp_path, class_from="kind", annotations=files).list_samples()
    dropping = Coco(tmp_path, class_from="kind", annotations=files, boxes="drop")
    assert len(dropping.list_samples().samples) == 2


# -- captions -------------------------------------------------------------------------------------


def _captions(images: dict[str, list[str]], first: int = 100) -> dict[str, Any]:
    """A file as COCO has it, without categories; some tools write an empty list."""
    ids = {name: first + number for number, name in enumerate(images)}
    pairs = [(ids[name], text) for name, texts in images.items() for text in texts]
    random.Random(0).shuffle(pairs)
    return {
        "info": {"year": 2014},
        **({"categories": []} if len(images) % 2 else {}),
        "images": [{"id": number, "file_name": name} for name, number in ids.items()],
        "annotations": [
            {"image_id": of, "id": number, "caption": text}
            for number, (of, text) in enumerate(pairs)
        ],
    }


def _expected(document: dict[str, Any]) -> dict[str, list[str]]:
    """The captions of each image in the order of the file, read in another way."""
    names = {entry["id"]: entry["file_name"] for entry in document["images"]}
    found = defaultdict(list)
    for item in document["annotations"]:
        found[names[item["image_id"]]].append(item["caption"].strip())
    return {name: found[name] for name in names.values()}


def _read(folder: Path, out: Path) -> dict[str, list[str]]:
    rs.pack(folder, out)
    return {
        example["image/source_id"][0].decode(): [t.decode() for t in example["image/caption"]]
        for example in rs.open(out)
    }


TEXTS = {"a.jpg": ["a cat\n", " \xfc dog ", "a cat"], "b.jpg": [], "c.jpg": ["", "x\ny"]}


@pytest.mark.parametrize("has_instances", [False, True])
def test_captions_of_coco(tmp_path: Path, has_instances: bool) -> None:
    folder = tmp_path / "data"
    for name in TEXTS:
        image(folder / "val2017" / name)
    document = _captions(TEXTS | {"gone.jpg": ["z"]} if has_instances else TEXTS)
    (folder / "annotations").mkdir()
    (folder / "annotations/captions_val2017.json").write_text(json.dumps(document))
    if has_instances:
        coco(folder / "annotations/instances_val2017.json",
             {name: [BOX] for name in TEXTS}, {1: "car"})  # fmt: skip
    listing = rs.detect(folder).source.list_samples()
    ids = {str(entry["id"]): entry["file_name"] for entry in document["images"]}
    found = {ids[number]: texts for number, texts in _read(folder, tmp_path / "out").items()}
    assert found == {name: _expected(document)[name] for name in TEXTS}
    dataset = rs.open(tmp_path / "out")
    assert ("image/object/bbox/xmin" in dataset.schema.columns) is has_instances
    assert listing.class_names == ((None, "car") if has_instances else None)
    assert dataset.class_names == listing.class_names
    gone = [notice for notice in listing.notices if "captions of 1 image" in notice]
    assert len(gone) == has_instances
    loader = rs.Loader(dataset, {"all": rs.Text("image/caption", "ragged")}, batch_size=3)
    (batch,) = loader
    assert sorted(batch["all"].tolist()) == sorted(_expected(document)[name] for name in TEXTS)


def test_a_file_of_keypoints_is_chosen_next_to_instances(tmp_path: Path) -> None:
    """With its split and captions, as if it was alone; where both are, it is hinted at."""
    image(tmp_path / "val2017/a.jpg")
    chosen = "annotations/person_keypoints_val2017.json"
    for name, text in (("instances", "car"), ("person_keypoints", "person")):
        coco(tmp_path / f"annotations/{name}_val2017.json", {"a.jpg": [BOX]}, {1: text})
    path = tmp_path / "annotations/captions_val2017.json"
    path.write_text(json.dumps(_captions({"a.jpg": ["x"]})))
    (hint,) = rs.detect(tmp_path).reading.hints.values()
    assert chosen in hint
    detection = rs.detect(tmp_path, annotations=chosen)
    assert (detection.reading.hints, chosen in detection.reading.what) == ({}, True)
    listing = detection.source.list_samples()
    assert (listing.only_split, listing.class_names) == ("val", (None, "person"))
    assert read(listing)[0]["image/caption"] == [b"x"]


def test_captions_of_another_image(tmp_path: Path) -> None:
    image(tmp_path / "a.jpg")
    coco(tmp_path / "instances.json", {"a.jpg": [BOX]}, {1: "car"})
    (tmp_path / "captions.json").write_text(json.dumps(_captions({"b.jpg": ["x"]})))
    with raises(rs.SourceError) as caught:
        Coco(tmp_path).list_samples()
    assert "'a.jpg', but 'b.jpg' in captions.json" in caught.value.problems[0]


# -- LabelMe and CVAT -----------------------------------------------------------------------------


def test_attributes_of_labelme(tmp_path: Path) -> None:
    """Flags and descriptions of shapes; what X-AnyLabeling has besides; points have none."""
    image(tmp_path / "a.jpg")
    flags = {"attributes": {"age": 7}, "flags": {"wet": True, "": True}, "difficult": False}
    others = {"attributes": {"age": 2.5}, "flags": None, "description": "red \xfc", "group_id": 1}
    empty = {"attributes": {"age": 1}, "flags": {}, "description": "", "difficult": True}
    shapes = [
        {"label": "car", "shape_type": kind, "points": points, **more}
        for kind, points, more in (
            ("rectangle", [[4, 5], [14, 15]], flags),
            ("polygon", [[4, 5], [14, 15], [9, 18]], others),
            ("rotation", [[20, 5], [30, 9], [28, 14], [18, 10]], empty),
            ("point", [[9, 10]], {"group_id": 1, "flags": {"lost": True}}),
        )
    ]
    (tmp_path / "a.json").write_text(json.dumps({"version": "5", "shapes": shapes}))
    features, notes = read(rs.LabelMe(tmp_path))
    assert _attributes(features) == {
        "wet": [b"true", b"", b""],
        "age": [7, 2.5, 1],
        "difficult": [b"false", b"", b"true"],
        "description": [b"", "red \xfc".encode(), b""],
    }
    assert ("attributes without a name were left out", "a.json, shape 1 (car)") in notes
    features, _ = read(rs.LabelMe(tmp_path, class_from="age"))
    assert features["image/object/class/text"] == [b"7", b"2.5", b"1"]


SHAPE = '{}<attribute name="age">{}</attribute>\n <attribute name="a &amp; b">{}</attribute></{}>'


def test_attributes_of_cvat(tmp_path: Path) -> None:
    """Numbers where CVAT declares some; those of tags are counted, and other shapes have none."""
    image(tmp_path / "a.jpg")
    box = '<box label="car" group_id="7" occluded="0" xtl="4" ytl="5" xbr="14" ybr="15">'
    polygon = '<polygon label="car" points="20,2;30,2;30,18">'
    shapes = [
        SHAPE.format(box, 7, "red &lt;\xfc", "box"),
        SHAPE.format('<polyline label="car" points="1,1;2,2">', 1, "line", "polyline"),
        SHAPE.format(polygon, "2.5", "true", "polygon"),
        SHAPE.format('<tag label="wet">', 1, "tag", "tag"),
        '<skeleton label="car"><attribute name="a &amp; b">x</attribute>',
        '<points label="a" points="1,1"><attribute name="age">0</attribute>',
        '</points><points label="b" points="9,9"/><attribute name="age">3</attribute></skeleton>',
    ]
    attributes = "".join(
        f"<attribute><name>{name}</name><input_type>{kind}</input_type></attribute>"
        for name, kind in (("a &amp; b", "text"), ("age", "number"))
    )
    label = f"<label><name>car</name><attributes>{attributes}</attributes></label>"
    (tmp_path / "annotations.xml").write_text(
        f"<annotations><meta><labels>{label}</labels></meta>"
        f'<image id="0" name="a.jpg" width="40" height="20">{"".join(shapes)}</image></annotations>'
    )
    features, notes = read(rs.Cvat(tmp_path))
    assert _attributes(features) == {
        "group_id": [7, 0, 0],
        "age": [7, 2.5, 3],
        "a & b": ["red <\xfc".encode(), b"true", b"x"],
    }
    assert [what for what, _ in notes if "attributes" in what] == [
        "attributes were left out, because tags and points of skeletons have none"
    ] * 3
    features, _ = read(rs.Cvat(tmp_path, class_from="age", boxes="drop"))
    assert features["image/object/class/text"] == [b"7", b"2.5", b"3"]
