from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs


def documents(out: Path) -> dict[str, Any]:
    return {
        path.name: json.loads(path.read_text("utf-8")) for path in (out / "annotations").iterdir()
    }


def test_each_split_has_a_folder_and_a_document(
    write: Any, image: Any, box_features: Any, box_kinds: Any, tmp_path: Path, files: Any
) -> None:
    more = box_features((0.25, 0.5, 0.75, 1.0), (0, 0, 1 / 3, 1), label=17) | {
        "image/source_id": "42",
        "image/object/is_crowd": [0, 1],
        "image/object/area": [10.5, 0.1],
    }
    empty = box_features() | {"image/source_id": "7"}
    source = write(
        box_kinds,
        train=[image("train/d/a.jpg", more=more), image("b.jpg", seed=1, more=empty)],
        val=[image("c.jpg", seed=2, more=box_features((0, 0, 1, 1), label=3, name="dog"))],
    )
    report = rs.export(source, tmp_path / "out", "coco")
    assert report.dropped_features == {}
    assert report.problems == []
    assert sorted(files(tmp_path / "out")) == [
        *("annotations/instances_train.json", "annotations/instances_val.json"),
        *("train/b.jpg", "train/d/a.jpg", "val/c.jpg"),
    ]
    found = documents(tmp_path / "out")
    categories = [{"id": 3, "name": "dog"}, {"id": 17, "name": "cat"}]
    assert found["instances_train.json"] == {
        "images": [
            {"id": 42, "file_name": "d/a.jpg", "width": 12, "height": 8},
            {"id": 7, "file_name": "b.jpg", "width": 12, "height": 8},
        ],
        "annotations": [
            {
                "id": 1,
                "image_id": 42,
                "category_id": 17,
                "bbox": [3, 4, 6, 4],
                "area": 10.5,
                "iscrowd": 0,
            },
            {
                "id": 2,
                "image_id": 42,
                "category_id": 17,
                "bbox": [0, 0, 4, 8],
                "area": 0.1,
                "iscrowd": 1,
            },
        ],
        "categories": categories,
    }
    assert found["instances_val.json"]["categories"] == categories
    assert found["instances_val.json"]["annotations"][0]["area"] == 96


@pytest.mark.parametrize(
    ("ids", "expected", "skipped"),
    [
        (["7", "-3", "9223372036854775807"], [7, -3, 2**63 - 1], []),
        (["7", None, "7", "x", "9223372036854775808", "8"], [7, 8], [1, 2, 3, 4]),
        ([None, "7", "x"], [1, 2, 3], []),
        (["007a", "7"], [1, 2], []),
    ],
)
def test_ids_of_images(
    write: Any, image: Any, box_features: Any, tmp_path: Path, ids: Any, expected: Any, skipped: Any
) -> None:
    """The first image of a split decides whether source ids are kept or images are numbered."""
    records = []
    for number, name in enumerate(ids):
        more = {} if name is None else {"image/source_id": name}
        records.append(image(f"{number}.jpg", more=box_features((0, 0, 1, 1)) | more))
    source = write(train=records, val=records[:1])
    if skipped:
        with pytest.raises(rs.SourceError, match="edit"):
            rs.export(source, tmp_path / "out", "coco")
    report = rs.export(source, tmp_path / "out", "coco", skip_errors=True)
    assert report.skipped_positions == skipped
    found = documents(tmp_path / "out")["instances_train.json"]
    assert [image["id"] for image in found["images"]] == expected
    assert [annotation["image_id"] for annotation in found["annotations"]] == expected
    (other,) = documents(tmp_path / "out")["instances_val.json"]["images"]
    assert other["id"] == (expected[0] if ids[0] == "7" else len(ids) + 1)


def test_all_categories_of_the_dataset_are_written(
    write: Any, image: Any, box_features: Any, tmp_path: Path
) -> None:
    folder = write(train=[image("a.jpg", more=box_features((0, 0, 1, 1), label=5, name="e"))])
    (folder / "labels.txt").write_text("1:a\n5:e\n9:ä\n", "utf-8")
    rs.export(folder, tmp_path / "out", "coco")
    found = documents(tmp_path / "out")["instances_train.json"]["categories"]
    assert [(category["id"], category["name"]) for category in found] == [
        *((1, "a"), (5, "e"), (9, "ä"))
    ]


def decoded(segmentation: Any) -> Any:
    """Uncompressed run lengths, decoded as COCO states them."""
    values = np.repeat(np.arange(len(segmentation["counts"])) % 2, segmentation["counts"])
    return values.reshape(segmentation["size"], order="F")


@pytest.mark.parametrize("seed", range(4))
def test_instance_masks_become_run_lengths(
    write: Any, image: Any, box_features: Any, images: ModuleType, tmp_path: Path, seed: int
) -> None:
    from PIL import Image

    generator = np.random.default_rng(seed)
    masks = [generator.random((8, 12)) < share for share in (0, 0.3, 0.9, 1)]
    encoded = [images.encode(Image.fromarray(mask), "PNG") for mask in masks]
    more = box_features(*[(0, 0, 1, 1)] * 4) | {"image/object/mask": encoded}
    rs.export(write(train=[image("a.jpg", more=more)]), tmp_path / "out", "coco")
    found = documents(tmp_path / "out")["instances_train.json"]["annotations"]
    for annotation, mask in zip(found, masks, strict=True):
        assert np.array_equal(decoded(annotation["segmentation"]), mask)


def test_invalid_instance_masks(
    write: Any, image: Any, box_features: Any, images: ModuleType, tmp_path: Path
) -> None:
    other = images.encode(images.noise(11, 8, "L"), "PNG")
    boxes = box_features((0, 0, 1, 1))
    wrong = [
        image("a.jpg", more=boxes | {"image/object/mask": masks})
        for masks in ([other], [other, other], [b"x"])
    ]
    with pytest.raises(rs.SourceError) as caught:
        rs.export(write(train=wrong), tmp_path / "out", "coco")
    problems = caught.value.problems
    assert "11 x 8" in problems[0]
    assert "2 values for 1" in problems[1]
    assert "cannot be read" in problems[2]


def test_split_named_annotations(write: Any, image: Any, tmp_path: Path, files: Any) -> None:
    source = write(annotations=[image("instances_annotations.json")], masks=[image("b.jpg")])
    rs.export(source, tmp_path / "out", "coco")
    assert sorted(files(tmp_path / "out")) == [
        "annotations-2/instances_annotations.json.jpg",
        "annotations/instances_annotations-2.json",
        "annotations/instances_masks-3.json",
        "masks-3/b.jpg",
    ]


def coco_folder(folder: Path, images: ModuleType, document: dict[str, Any]) -> Path:
    """A COCO folder with a file for each split; its images are drawn."""
    (folder / "annotations").mkdir(parents=True)
    (folder / "annotations" / "instances_train.json").write_text(json.dumps(document), "utf-8")
    (folder / "train").mkdir()
    for number, entry in enumerate(document["images"]):
        data = images.jpeg(number, entry["width"], entry["height"])
        (folder / "train" / entry["file_name"]).write_bytes(data)
    return folder


def coco_document(first_category: int = 3) -> dict[str, Any]:
    """Images, annotations and categories whose ids are neither sorted nor without gaps."""
    categories = {first_category: ("cat", "animal"), 17: ("dog", "animal"), 90: ("cup", None)}
    sides = {"width": 40, "height": 20}
    return {
        "images": [
            {"id": 900, "file_name": "b.jpg", **sides},
            {"id": 5, "file_name": "a.jpg", **sides},
            {"id": 77, "file_name": "c.jpg", **sides},
        ],
        "annotations": [
            {
                "id": annotation_id,
                "image_id": image_id,
                "category_id": category_id,
                "bbox": [4 + number, 5, 10.5, 10],
                "area": 100.5 + number,
                "iscrowd": number % 2,
            }
            for number, (annotation_id, image_id, category_id) in enumerate(
                [(44, 5, 90), (2**53 + 1, 900, first_category), (9, 5, 17), (7, 900, 90)]
            )
        ],
        "categories": [
            {"id": key, "name": name, **({"supercategory": above} if above else {})}
            for key, (name, above) in categories.items()
        ],
    }


def by_id(document: dict[str, Any], what: str) -> dict[int, dict[str, Any]]:
    return {entry["id"]: entry for entry in document[what]}


@pytest.mark.parametrize("first_category", [3, 0])
@pytest.mark.parametrize("is_resharded", [False, True])
def test_ids_and_supercategories_there_and_back(
    images: ModuleType, tmp_path: Path, first_category: int, is_resharded: bool
) -> None:
    """Also of categories from 0, whose labels are ids plus 1."""
    document = coco_document(first_category)
    rs.pack(rs.Coco(coco_folder(tmp_path / "in", images, document)), tmp_path / "packed")
    folder = tmp_path / "packed"
    if is_resharded:
        rs.reshard(folder, tmp_path / "again", shards=2, shuffle=True)
        folder = tmp_path / "again"
    report = rs.export(folder, tmp_path / "out", "coco")
    assert (report.problems, report.dropped_features) == ([], {})
    (found,) = documents(tmp_path / "out").values()
    for what in ("images", "annotations", "categories"):
        assert by_id(found, what) == by_id(document, what)


def test_pycocotools_reads_the_same(images: ModuleType, tmp_path: Path) -> None:
    tools = pytest.importorskip("pycocotools.coco")
    document = coco_document()
    folder = coco_folder(tmp_path / "in", images, document)
    rs.pack(rs.Coco(folder), tmp_path / "packed")
    rs.export(tmp_path / "packed", tmp_path / "out", "coco")
    name = Path("annotations") / "instances_train.json"
    before, after = (tools.COCO(str(root / name)) for root in (folder, tmp_path / "out"))
    assert sorted(after.getImgIds()) == sorted(before.getImgIds())
    assert after.loadCats([3, 17, 90]) == before.loadCats([3, 17, 90])
    for chosen in ({}, {"imgIds": [5]}, {"catIds": [90]}, {"iscrowd": True}):
        ids = before.getAnnIds(**chosen)
        assert sorted(after.getAnnIds(**chosen)) == sorted(ids)
        assert after.loadAnns(sorted(ids)) == before.loadAnns(sorted(ids))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([[8, 3], [5]], [8, 3, 5]),
        ([[8, 3], [3]], None),
        ([[8, -1], [3]], None),
        ([[8, 3], None], None),
    ],
)
def test_ids_of_annotations_are_kept_if_all_differ(
    write: Any, image: Any, box_features: Any, tmp_path: Path, ids: Any, expected: Any
) -> None:
    records = []
    for number, of_image in enumerate(ids):
        more = box_features(*[(0, 0, 1, 1)] * (2 - number))
        more |= {} if of_image is None else {"image/object/id": of_image}
        records.append(image(f"{number}.jpg", more=more))
    report = rs.export(write(train=records), tmp_path / "out", "coco")
    found = documents(tmp_path / "out")["instances_train.json"]["annotations"]
    assert [annotation["id"] for annotation in found] == (expected or [1, 2, 3])
    assert len(report.problems) == (expected is None)
    assert all("image/object/id" in problem for problem in report.problems)


def test_new_ids_of_images_are_reported(write: Any, image: Any, tmp_path: Path) -> None:
    names = ({"image/source_id": text} for text in ("scene-1", "scene-2"))
    records = [image(f"{number}.jpg", more=more) for number, more in enumerate(names)]
    report = rs.export(write(train=records), tmp_path / "out", "coco")
    (line, *_) = report.problems
    assert "scene-1" in line
