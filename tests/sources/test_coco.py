"""COCO in each of its layouts: boxes, crowds, gaps in labels, masks, and invalid annotations."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import Coco, Listing, Source
from recordsmith.support.problems import MAX_PROBLEMS

from ..raising import places, raises
from .annotated import BOX, boxes_of, coco, image, mask_of, problems_of, read, write
from .source_contract import SourceContract, left_out

CATEGORIES = {3: "cat", 90: "Dog"}
SQUARE = [4, 5, 14, 5, 14, 15, 4, 15]
CAT = {
    "category_id": 3,
    "bbox": [4, 5, 10, 10],
    "area": 100.5,
    "iscrowd": 0,
    "segmentation": [SQUARE],
}
DOG = {
    "category_id": 90,
    "bbox": [0, 0, 40, 20],
    "iscrowd": 1,
    "segmentation": {"size": [20, 40], "counts": [0, 800]},
}


def _coco(root: Path, images: dict[str, list[Any]], name: str = "annotations/instances.json",
          entries: str = "images", **options: Any) -> Path:  # fmt: skip
    for path in images:
        image(root / entries / path)
    coco(root / name, images, options.pop("categories", CATEGORIES), **options)
    return root


class TestContract(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return Coco(_coco(folder, {"b.jpg": [CAT, DOG], "a.png": [DOG], "c.jpg": [], "d.jpg": []}))


class TestContractWithInstanceMasksInSplits(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        for split, names in (("train", "ab"), ("valid", "ac")):
            samples = {f"{name}.jpg": [CAT] if name == "a" else [] for name in names}
            _coco(folder, samples, f"{split}/_annotations.coco.json", split)
        return Coco(folder, object_masks="instance")


def _notices(listing: Listing) -> tuple[str, ...]:
    """The notices but for that on segmentations, which most annotations here have."""
    return tuple(each for each in listing.notices if not each.startswith("segmentation of "))


def test_features(tmp_path: Path) -> None:
    source = Coco(_coco(tmp_path, {"a.jpg": [CAT, DOG], "b.jpg": []}))
    listing = source.list_samples()
    assert [sample.name for sample in listing.samples] == ["images/a.jpg", "images/b.jpg"]
    names = listing.class_names
    assert names is not None
    assert {n: name for n, name in enumerate(names) if name is not None} == CATEGORIES
    assert (_notices(listing), listing.splits, listing.has_label_map) == ((), (), True)
    features, notes = read(source)
    assert notes == []
    assert features == {
        "image/encoded": (tmp_path / "images/a.jpg").read_bytes(),
        "image/format": "jpeg",
        "image/height": 20,
        "image/width": 40,
        "image/filename": b"images/a.jpg",
        "image/source_id": b"100",
        "image/object/bbox/ymin": [0.25, 0],
        "image/object/bbox/xmin": [0.1, 0],
        "image/object/bbox/ymax": [0.75, 1],
        "image/object/bbox/xmax": [0.35, 1],
        "image/object/class/label": [3, 90],
        "image/object/class/text": [b"cat", b"Dog"],
        "image/object/is_crowd": [0, 1],
        "image/object/area": [100.5, 800],
        "image/object/id": [1, 2],
    }
    assert read(source, 1)[0]["image/object/bbox/ymin"] == []


# -- layouts -------------------------------------------------------------------------------------


def test_two_years_are_splits_of_their_own(tmp_path: Path) -> None:
    for year in ("2014", "2017"):
        name = f"annotations/instances_train{year}.json"
        _coco(tmp_path, {f"{year}.jpg": []}, name, f"train{year}")
    assert Coco(tmp_path).list_samples().splits == ("train2014", "train2017")


def test_options_choose_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        _coco(tmp_path, {f"{name}.jpg": [CAT]}, f"annotations/{name}.json")
    with pytest.raises(rs.SourceError, match=r"one\.json and .*two\.json"):
        Coco(tmp_path).list_samples()
    for path in (tmp_path / "annotations" / "one.json", "annotations/one.json"):
        source = Coco(tmp_path, annotations=path, images="images")
        assert [sample.name for sample in source.list_samples().samples] == ["images/one.jpg"]
        described = source.describe()
        assert (described["annotations"], described["images"]) == ("annotations/one.json", "images")
    files = {"mine": "annotations/two.json", "yours": "annotations/one.json"}
    listing = Coco(tmp_path, annotations=files).list_samples()
    assert [(sample.name, sample.split) for sample in listing.samples] == [
        ("images/one.jpg", "yours"),
        ("images/two.jpg", "mine"),
    ]
    source = Coco(tmp_path / "annotations/one.json")
    assert (str(source.root), source.describe()["annotations"]) == (
        str(tmp_path),
        "annotations/one.json",
    )
    assert [sample.name for sample in source.list_samples().samples] == ["images/one.jpg"]
    next_to_images = _coco(tmp_path / "other", {"a.jpg": [CAT]}, "x.json", ".") / "x.json"
    assert len(Coco(next_to_images).list_samples().samples) == 1
    with pytest.raises(rs.OptionError) as caught:
        Coco(tmp_path / "images", images=tmp_path / "annotations")
    assert caught.value.option == "images"
    with pytest.raises(rs.OptionError) as caught:
        Coco(tmp_path, object_masks="all")  # type: ignore[arg-type]
    assert (caught.value.option, caught.value.value) == ("object_masks", "'all'")


# -- images ------------------------------------------------------------------------------------


def test_missing_and_repeated_images_fail_alone(tmp_path: Path) -> None:
    _coco(tmp_path, {"a.jpg": [CAT], "gone.jpg": [], "images/a.jpg": []})
    (tmp_path / "images" / "gone.jpg").unlink()
    (tmp_path / "images" / "images" / "a.jpg").unlink()
    image(tmp_path / "images" / "left.jpg")
    source = Coco(tmp_path)
    listing = source.list_samples()
    assert rs.detect(tmp_path).to_json()["count"] == 1
    (notice,) = _notices(listing)
    assert notice.endswith("name 1 that was not found, such as 'gone.jpg': images/left.jpg")
    for number, (image_id, words) in enumerate(((101, "'gone.jpg' not found"), (102, "already"))):
        (problem,) = problems_of(source, number)
        assert problem.startswith(f"annotations/instances.json: image {image_id}: ")
        assert words in problem
    assert read(source, 2)[0]["image/object/class/label"] == [3]


@pytest.mark.parametrize(
    ("used", "names", "labels"),
    [
        ((1, 2), (None, "fish", "trap"), [1, 2]),
        ((2, 2), (None, "fish", "trap"), [2, 2]),
    ],
)
def test_an_unused_category_0_with_the_name_of_another(
    tmp_path: Path, used: tuple[int, int], names: Any, labels: list[int]
) -> None:
    """Roboflow puts the group of the classes first, which may have the name of one."""
    items = [CAT | {"category_id": number} for number in used]
    _coco(tmp_path, {"a.jpg": items}, categories={0: "fish", 1: "fish", 2: "trap"})
    listing = Coco(tmp_path).list_samples()
    assert listing.class_names == names
    assert read(listing)[0]["image/object/class/label"] == labels
    assert [notice for notice in listing.notices if "0, 'fish'" in notice]


def test_two_used_categories_of_one_name(tmp_path: Path) -> None:
    items = [CAT | {"category_id": number} for number in (0, 1)]
    _coco(tmp_path, {"a.jpg": items}, categories={0: "fish", 1: "fish"})
    with raises(rs.SourceError, match="'fish' has the numbers 1 and 2"):
        Coco(tmp_path).list_samples()


def test_no_image_is_found(tmp_path: Path) -> None:
    coco(tmp_path / "x.json", {"a.jpg": [CAT], "b.jpg": []}, {1: "cat"})
    image(tmp_path / "c.jpg")
    with raises(rs.SourceError, match="image 'a.jpg' not found .*like 1 other image.*with images"):
        Coco(tmp_path).list_samples()


def test_an_error_names_the_image(tmp_path: Path) -> None:
    wrong = CAT | {"bbox": [4, 5, 50, 5]}
    listing = Coco(_coco(tmp_path, {"a.jpg": [CAT], "b.jpg": [wrong]})).list_samples()
    with raises(rs.SourceError, sample="images/b.jpg", match=r"annotation 2 \(cat\)"):
        read(listing, 1)


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (True, "True is a truth value"),
        (1.0, "1.0 is a fraction"),
        ("1", "'1' is text"),
        (None, "None is missing"),
        ([1], r"[1] is a list"),
    ],
)
def test_a_category_id_is_an_integer(tmp_path: Path, number: Any, words: str) -> None:
    root = _coco(tmp_path, {"a.jpg": [CAT | {"category_id": number}]}, categories={1: "cat"})
    (problem,) = problems_of(Coco(root))
    assert words in problem


def test_wrong_annotations_are_listed_with_their_ids(tmp_path: Path) -> None:
    wrong = [
        CAT | {"bbox": [4, 5, -2, 0]},
        CAT | {"bbox": [4, 5, 50, 5]},
        CAT | {"bbox": []},
        CAT | {"bbox": [1, 2, "x", 4]},
        CAT | {"category_id": 4},
        {"category_id": 90},
        CAT,
    ]
    root = _coco(tmp_path, {"a.jpg": wrong})
    problems = problems_of(Coco(root))
    place = "annotations/instances.json, annotation"
    expected = [
        (f"{place} 1 (cat)", "xmin 4"),
        (f"{place} 1 (cat)", "ymin and ymax"),
        (f"{place} 2 (cat)", "xmax 54"),
        (f"{place} 3", "bbox []"),
        (f"{place} 4 (cat)", "xmax"),
        (f"{place} 5", "category_id 4"),
        (f"{place} 6", "bbox None"),
    ]
    assert sorted(places(problems)) == [where for where, _ in expected]
    for where, words in expected:
        assert any(p.startswith(f"{where}: ") and words in p for p in problems), words
    features, notes = read(Coco(root, boxes="drop"))
    assert features["image/object/class/label"] == [3]
    whats = Counter(what for what, _ in notes)
    assert sorted(whats.values()) == [1, 5]
    (unknown,) = (what for what, count in whats.items() if count == 1)
    assert "class" in unknown
    assert len(read(Coco(root, boxes="clip"))[0]["image/object/area"]) == 2


def test_annotations_of_unknown_images_are_noticed(tmp_path: Path) -> None:
    root = _coco(tmp_path, {"a.jpg": [CAT]})
    path = root / "annotations/instances.json"
    document = json.loads(path.read_text())
    document["annotations"] += [CAT | {"id": 77, "image_id": 5}, CAT | {"id": 78, "image_id": 5}]
    path.write_text(json.dumps(document))
    (notice,) = _notices(Coco(root).list_samples())
    assert "annotations/instances.json" in notice
    assert notice.endswith(" skipped: 77 and 78")
    document["annotations"] = document["annotations"][1:]
    path.write_text(json.dumps(document))
    with raises(rs.SourceError, path=tmp_path, match="image_id"):
        Coco(root).list_samples()


def test_entries_without_what_they_need(tmp_path: Path) -> None:
    root = _coco(tmp_path, {"a.jpg": [CAT]})
    path = root / "annotations/instances.json"
    document = json.loads(path.read_text())
    document["images"] += [{"id": 1}, 7, {"id": 100, "file_name": "b.jpg"}]
    document["annotations"] += [{"id": 9, "bbox": [1, 2, 3, 4]}]
    document["categories"] += [{"id": "x", "name": "y"}, {"id": 3, "name": "lion"}]
    path.write_text(json.dumps(document, indent=1))
    with pytest.raises(rs.SourceError) as caught:
        Coco(root).list_samples()
    assert len(caught.value.problems) == 6
    assert any("'a.jpg' and 'b.jpg'" in problem for problem in caught.value.problems)
    assert all(": " in problem and ", line " in problem for problem in caught.value.problems)
    listing = Coco(root, boxes="drop").list_samples()
    (notice,) = _notices(listing)
    assert notice.startswith("6 invalid entries dropped: ")
    assert [sample.name for sample in listing.samples] == ["images/a.jpg"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: truncated JSON"),
        ('{"images": [', "line 1: truncated JSON"),
        ('{"images": [1 2]}', "JSON at '2]}'"),
        ('{"images": []\n "annotations": []}', "line 2: invalid JSON"),
        ('{"images": [}', "invalid JSON"),
        ('\n[{"a": 1}, {"a": 2}]', "JSON Lines"),
        ("[]", "`array`"),
        ('{"annotations": []}', "images is missing"),
        ("{}", "images is missing"),
        ('{"images": [' + "[" * 100_000, "nested too deeply"),
        ('{"images": [' + "9" * 5000 + "]}", "invalid images '999"),
        ('{"images": []}\n{"images": []}', "line 2: invalid JSON"),
        ('{"images": {"1": 2}}', "`$.images`"),
        ('{"images": []}'.encode("utf-16").decode("latin-1"), "invalid JSON"),
    ],
)
def test_broken_json(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path / "x.json", text)
    with pytest.raises(rs.SourceError) as caught:
        Coco(path).list_samples()
    assert words in str(caught.value)


def test_very_many_problems_are_shortened(tmp_path: Path) -> None:
    count = 20_000
    document = {"categories": [], "annotations": [], "images": [{"id": 1}] * count}
    write(tmp_path / "x.json", json.dumps(document, indent=8))
    with pytest.raises(rs.SourceError) as caught:
        Coco(tmp_path).list_samples()
    assert caught.value.problem_count == count
    assert len(caught.value.problems) == len(caught.value.lines) - 2 == MAX_PROBLEMS
    assert caught.value.problems[-1].startswith("x.json, line 302: ")
    assert "boxes='drop'" in caught.value.lines[0]


def test_unusual_values_of_area_and_iscrowd(tmp_path: Path) -> None:
    odd = CAT | {"area": 1e300, "iscrowd": "0"}
    root = _coco(tmp_path / "d", {"a.jpg": [odd, CAT | {"area": -1, "iscrowd": 1}]})
    sample = read(Coco(root))[0]
    width, height = CAT["bbox"][2:]
    assert sample["image/object/area"] == pytest.approx([width * height] * 2)
    assert sample["image/object/is_crowd"] == [0, 1]
    rs.pack(Coco(root), tmp_path / "out")


# -- categories ----------------------------------------------------------------------------------


def test_category_0(tmp_path: Path) -> None:
    """Roboflow writes one that nothing is of; others count from 0."""
    root = _coco(tmp_path, {"a.jpg": [CAT]}, categories={0: "things", 3: "cat"})
    listing = Coco(root).list_samples()
    assert listing.class_names == (None, None, None, "cat")
    (notice,) = _notices(listing)
    assert notice.endswith(" dropped: 0, 'things'")
    root = _coco(
        tmp_path, {"a.jpg": [CAT, CAT | {"category_id": 0}]}, categories={0: "x", 3: "cat"}
    )
    source = Coco(root, object_masks="class")
    listing = source.list_samples()
    assert listing.class_names == (None, "x", None, None, "cat")
    assert "plus 1" in _notices(listing)[0]
    features, _ = read(source)
    assert features["image/object/class/label"] == [4, 1]
    assert set(np.unique(mask_of(features["image/segmentation/class/encoded"]))) == {0, 1}


def test_files_that_disagree(tmp_path: Path) -> None:
    _coco(tmp_path, {"a.jpg": [CAT]}, "train/_annotations.coco.json", "train")
    other = {3: "Dog", 90: "cat"}
    _coco(tmp_path, {"b.jpg": [CAT]}, "valid/_annotations.coco.json", "valid", categories=other)
    with pytest.raises(rs.SourceError, match="category 3 is 'Dog'"):
        Coco(tmp_path).list_samples()
    label_map = write(tmp_path / "map.pbtxt", "item{id:1 name:'cat'} item{id:2 name:'Dog'}")
    source = Coco(tmp_path, label_map=label_map)
    assert source.list_samples().class_names == (None, "cat", "Dog")
    assert read(source, 0)[0]["image/object/class/label"] == [1]
    assert read(source, 1)[0]["image/object/class/label"] == [2]


def test_segmentations_that_are_not_packed_are_counted(tmp_path: Path) -> None:
    root = _coco(tmp_path, {"a.jpg": [CAT, DOG, CAT | {"segmentation": []}]})
    (notice,) = Coco(root).list_samples().notices
    assert notice.startswith("segmentation of 2 annotations in annotations/instances.json left")
    assert Coco(root, object_masks="class").list_samples().notices == ()


# -- masks ---------------------------------------------------------------------------------------


def test_instance_masks(tmp_path: Path) -> None:
    root = _coco(tmp_path, {"a.jpg": [CAT, DOG], "b.jpg": []})
    source = Coco(root, object_masks="instance")
    features, notes = read(source)
    cat, dog = map(mask_of, features["image/object/mask"])
    assert (cat.shape, cat.dtype) == ((20, 40), np.uint8)
    expected = np.zeros((20, 40), np.uint8)
    expected[5:15, 4:14] = 1
    assert np.array_equal(cat, expected)
    assert np.array_equal(dog, np.ones((20, 40), np.uint8))
    assert notes == []
    assert read(source, 1)[0]["image/object/mask"] == []


@pytest.mark.parametrize("number", [90, 300])
def test_class_mask(tmp_path: Path, number: int) -> None:
    categories = {3: "cat", number: "Dog"}
    items = [CAT, DOG | {"category_id": number}]
    root = _coco(tmp_path, {"a.jpg": items, "b.jpg": []}, categories=categories)
    source = Coco(root, object_masks="class")
    features, _ = read(source)
    expected = np.full((20, 40), number)
    expected[5:15, 4:14] = 3
    found = mask_of(features["image/segmentation/class/encoded"])
    assert np.array_equal(found, expected)
    assert features["image/segmentation/class/format"] == "png"
    empty = mask_of(read(source, 1)[0]["image/segmentation/class/encoded"])
    assert empty.shape == (20, 40)
    assert not empty.any()
    assert found.dtype == empty.dtype == (np.uint8 if number == 90 else np.uint16)


def test_masks_of_a_rotated_image(tmp_path: Path) -> None:
    """Drawn on the upright image, 20 wide and 40 high; 6: the stored top is on the right."""
    item = CAT | {"bbox": [0, 0, 5, 10], "segmentation": [[0, 0, 5, 0, 5, 10, 0, 10]]}
    root = _coco(tmp_path, {"a.jpg": [item]}, size=(20, 40))
    image(root / "images" / "a.jpg", (40, 20), orientation=6)
    features, notes = read(Coco(root, object_masks="instance"))
    expected = np.zeros((20, 40), np.uint8)
    expected[15:, :10] = 1
    assert np.array_equal(mask_of(features["image/object/mask"][0]), expected)
    assert features["image/object/bbox/ymin"] == [0.75]
    assert features["image/object/bbox/xmax"] == [0.25]
    assert "rotated" in notes[0][0]


def test_wrong_regions_are_listed_only_where_masks_are_asked_for(tmp_path: Path) -> None:
    wrong = [CAT | {"segmentation": []}, CAT | {"segmentation": [[1, 2, 3]]}, CAT]
    root = _coco(tmp_path, {"a.jpg": wrong})
    assert len(read(Coco(root))[0]["image/object/class/label"]) == 3
    first, second = problems_of(Coco(root, object_masks="class"))
    place = "annotations/instances.json, annotation"
    assert places([first, second]) == [f"{place} {n} (cat)" for n in (1, 2)]
    assert "segmentation []" in first
    assert "two points" in second


@pytest.mark.parametrize("masks", ["instance", "class"])
@pytest.mark.parametrize("segmentation", [None, [], [[1, 2, 3]], {"size": [1, 1], "counts": [1]}])
def test_good_boxes_without_an_outline(tmp_path: Path, segmentation: Any, masks: Any) -> None:
    """`clip` keeps them, with empty masks; `drop` leaves them out. Neither blames the box."""
    bare = DOG | {"segmentation": segmentation}
    root = _coco(tmp_path, {"a.jpg": [bare, CAT]})
    features, notes = read(Coco(root, object_masks=masks, boxes="clip"))
    assert features["image/object/class/label"] == [90, 3]
    assert features["image/object/bbox/xmax"] == [1, 0.35]
    dropped, other_notes = read(Coco(root, object_masks=masks, boxes="drop"))
    assert dropped["image/object/class/label"] == [3]
    for (what, where), verb in zip(notes + other_notes, ("empty mask", "dropped"), strict=True):
        assert "segmentation" in what
        assert "box" not in what
        assert verb in what
        assert "annotation 1 (Dog): " in where
    cat = np.zeros((20, 40), bool)
    cat[5:15, 4:14] = True
    if masks == "instance":
        drawn = [mask_of(data) for data in features["image/object/mask"]]
        assert np.array_equal(drawn, [np.zeros_like(cat), cat])
    else:
        assert np.array_equal(mask_of(features["image/segmentation/class/encoded"]), cat * 3)


# -- errors about one of many files ----------------------------------------------------------------


def test_errors_name_file_image_and_object(tmp_path: Path) -> None:
    good = {"bbox": [1, 1, 5, 5], "category_id": 1}
    bad = {"bbox": [30, 1, 20, 5], "category_id": 1}
    for split, objects in (("train", [good]), ("val", [good, bad, bad])):
        name = f"{split}.jpg"
        image(tmp_path / split / name)
        coco(tmp_path / "annotations" / f"instances_{split}.json", {name: objects}, {1: "cat"})
    path = "annotations/instances_val.json"
    with raises(rs.SourceError, path=path, sample="val/val.jpg") as caught:
        read(Coco(tmp_path), 1)
    assert places(caught.value.problems) == [f"{path}, annotation {n} (cat)" for n in (2, 3)]


def test_invalid_entries_are_not_dropped_if_nothing_else_is_left(tmp_path: Path) -> None:
    image(tmp_path / "a.jpg")
    coco(tmp_path / "a.json", {"a.jpg": []}, {1: "cat"})
    document = json.loads((tmp_path / "a.json").read_text())
    document["annotations"] = [{"id": 1, "image_id": [1], "category_id": 1, "bbox": [1, 1, 2, 2]}]
    write(tmp_path / "a.json", json.dumps(document))
    with raises(rs.SourceError, path=tmp_path, match="format='files'"):
        Coco(tmp_path, boxes="drop").list_samples()


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


def test_panoptic_files_are_refused(tmp_path: Path) -> None:
    image(tmp_path / "val2017/a.jpg")
    item = {"file_name": "a.png", "segments_info": [{"id": 3, "category_id": 1}]}
    name = "annotations/panoptic_val2017.json"
    coco(tmp_path / name, {"a.jpg": [item]}, {1: "cat"})
    with raises(rs.SourceError, path=name, match="panoptic segments are not read"):
        Coco(tmp_path).list_samples()
