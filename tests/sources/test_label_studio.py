"""Label Studio's JSON: regions against a plain reading, annotators, names of images, bad input."""

from __future__ import annotations

import cmath
import contextlib
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import LabelStudio, Source
from recordsmith.sources.boxes.annotation import AnnotatedImage, AnnotationFile
from recordsmith.sources.boxes.formats.label_studio import parse
from recordsmith.stores import as_location

from ..raising import raises
from .annotated import boxes_of, image, mask_of, problems_of, read, write
from .source_contract import SourceContract, left_out

WIDTH, HEIGHT = 40, 20
SIZE = {"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0}
CAT = {"x": 10, "y": 25, "width": 25, "height": 50, "rotation": 0, "rectanglelabels": ["cat"]}
BOX = (0.25, 0.1, 0.75, 0.35)  # of CAT: ymin, xmin, ymax, xmax


def region(value: Any, key: str = "r", kind: str = "rectanglelabels", **more: Any) -> Any:
    return {"id": key, "type": kind, "from_name": "label", "value": value, **SIZE, **more}


def annotation(*results: Any, by: Any = 1, **more: Any) -> Any:
    known = {"id": 5, "completed_by": by, "was_cancelled": False, "result": results}
    return known | more


def project(root: Path, *annotations: Any, address: str = "a.jpg", **more: Any) -> Path:
    """A task with some annotations."""
    image(root / "a.jpg", (WIDTH, HEIGHT))
    task = {"id": 7, "annotations": annotations, "data": {"image": address}, "predictions": []}
    write(root / "project.json", json.dumps([task | more]))
    return root


def parsed(root: Path, **columns: str) -> tuple[list[AnnotatedImage], list[str]]:
    path = as_location(root / "project.json")
    file = AnnotationFile(path, path.name, with_outlines=True, columns=columns)
    return list(parse(file)), file.notices


class TestContractOfLabelStudio(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        tasks = []
        for number, name in enumerate("abcd"):
            image(folder / "images" / f"{name}.jpg")
            data = {"image": f"/data/upload/3/0f3a9b7c-{name}.jpg"}
            results = [region(CAT), region({"choices": ["x"]}, "c", "choices")]
            tasks.append({"id": number, "annotations": [annotation(*results)], "data": data})
        write(folder / "project.json", json.dumps(tasks))
        return LabelStudio(folder, object_masks="instance")


# -- regions ---------------------------------------------------------------------------------------


def rle(values: Sequence[int], rng: random.Random) -> list[int]:
    """Label Studio's run lengths, as a text of bits."""
    sizes = [rng.randint(1, 16) for _ in range(4)]
    bits = f"{len(values):032b}{7:05b}" + "".join(f"{size - 1:04b}" for size in sizes)
    at = 0
    while at < len(values):
        choice = rng.randrange(4)
        longest = min(1 << sizes[choice], len(values) - at)
        alike = 1
        while alike < longest and values[at + alike] == values[at]:
            alike += 1
        is_run = alike > 1 or rng.random() < 0.5
        length = alike if is_run else rng.randint(1, min(longest, 9))
        bits += f"{is_run:d}{choice:02b}{length - 1:0{sizes[choice]}b}"
        bits += "".join(f"{value:08b}" for value in values[at : at + (1 if is_run else length)])
        at += length
    bits += "0" * (-len(bits) % 8 or 8)
    return [int(bits[start : start + 8], 2) for start in range(0, len(bits), 8)]


def drawn(rng: random.Random, key: str) -> tuple[Any, Any]:
    """A random region, and (name, xmin, ymin, xmax, ymax, corners, mask) by a plain reading."""
    x, y, degrees = rng.uniform(30, 50), rng.uniform(30, 50), rng.choice([0, rng.uniform(0, 360)])
    across, down = rng.uniform(2, 20), rng.uniform(2, 20)
    sx, sy = WIDTH / 100, HEIGHT / 100
    turn = cmath.exp(1j * math.radians(degrees))
    name, kind = (
        rng.choice(["cat", "Dog"]),
        rng.choice(["rectangle", "polygon", "ellipse", "brush"]),
    )
    value: Any = {"x": x, "y": y, "rotation": degrees, f"{kind}labels": [name]}
    quad, mask = None, None
    if kind == "rectangle":
        value |= {"width": across, "height": down}
        ends = [complex(a * across * sx, b * down * sy) * turn for a, b in CORNERS]
        points = [end + complex(x * sx, y * sy) for end in ends]
        quad = [side for end in points for side in (end.real, end.imag)] if degrees else None
    elif kind == "polygon":
        value["points"] = [[x + rng.random(), y + rng.random()] for _ in range(5)]
        points = [complex(px * sx, py * sy) for px, py in value["points"]]
    elif kind == "ellipse":
        value |= {"radiusX": across, "radiusY": down}
        a, b, angle = across * sx, down * sy, math.radians(degrees)
        half = math.hypot(a * math.cos(angle), b * math.sin(angle))
        high = math.hypot(a * math.sin(angle), b * math.cos(angle))
        middle = complex(x * sx, y * sy)
        points = [middle - complex(half, high), middle + complex(half, high)]
    else:
        mask = np.zeros((HEIGHT, WIDTH), np.uint8)
        left, top = rng.randrange(WIDTH - 9), rng.randrange(HEIGHT - 9)
        mask[top : top + 9, left : left + 9] = np.array(rng.choices([0, 1], k=81)).reshape(9, 9)
        mask[top, left] = 1
        colours = np.stack([np.full_like(mask, rng.choice([0, 9]))] * 3 + [mask * 255], axis=2)
        value |= {"format": "rle", "rle": rle(colours.ravel().tolist(), rng)}
        rows, columns = np.nonzero(mask)
        points = [complex(columns.min(), rows.min()), complex(columns.max() + 1, rows.max() + 1)]
    xs, ys = [point.real for point in points], [point.imag for point in points]
    box = (min(xs), min(ys), max(xs), max(ys))
    return region(value, key, f"{kind}labels"), (kind, name, box, quad, mask)


CORNERS = ((0, 0), (1, 0), (1, 1), (0, 1))


@pytest.mark.parametrize("seed", range(30))
def test_regions_are_those_of_a_plain_reading(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    regions = [drawn(rng, f"r{number}") for number in range(6)]
    results = [result for result, _ in regions]
    point = {"x": 50.0, "y": 25.0, "width": 0.2, "keypointlabels": ["nose"]}
    results.insert(rng.randrange(6), region(point, "k", "keypointlabels", parentID="r3"))
    ((found,), _) = parsed(project(tmp_path, annotation(*results)))
    assert (found.size, found.id, found.file_name) == ((WIDTH, HEIGHT), 7, "a.jpg")
    for number, (item, (_, (kind, name, box, quad, _))) in enumerate(
        zip(found.objects, regions, strict=True)
    ):
        assert (item.where, item.name, item.fault) == (f"task 7, region r{number}", name, "")
        near = 0.02 if kind == "ellipse" else 1e-9  # of 64 points
        np.testing.assert_allclose(item.corners, box, atol=near)
        assert bool(item.quad) == (quad is not None)
        np.testing.assert_allclose(item.quad, quad or [], atol=1e-9)
        assert item.points == ({"nose": (20, 5, 2)} if number == 3 else {})
    features, _ = read(LabelStudio(tmp_path, boxes="clip", object_masks="instance"))
    for data, (_, (*_, mask)) in zip(features["image/object/mask"], regions, strict=True):
        assert mask is None or np.array_equal(mask_of(data), mask)


def test_results_with_one_id_are_one_region(tmp_path: Path) -> None:
    shape = {key: value for key, value in CAT.items() if key != "rectanglelabels"}
    results = [
        region(shape, kind="rectangle"),
        region(shape | {"labels": ["cat", "pet"]}, kind="labels"),
        region(shape | {"choices": ["left", "wet"]}, kind="choices", from_name="pose"),
        region(shape | {"text": ["Tom"]}, kind="textarea", from_name="name"),
        region(shape | {"number": 3}, kind="number", from_name="age"),
        region(shape | {"taxonomy": [["a", "b"]]}, kind="taxonomy", from_name="kind"),
        region({"choices": ["day", "wet"]}, "w", "choices"),
        region({"text": "A cat."}, "t", "textarea"),
        region({"rating": 4}, "s", "rating"),
        {"type": "relation", "from_id": "r", "to_id": "w"},
    ]
    ((found,), _) = parsed(project(tmp_path, annotation(*results)))
    about = {"pose": "left, wet", "name": "Tom", "age": 3, "kind": "a/b"}
    assert [(item.name, item.attributes) for item in found.objects] == [
        ("cat", about),
        ("pet", about),
    ]
    assert (found.labels, found.captions) == ({"day": 1, "wet": 1}, ["A cat."])
    left = [where.rpartition(": ")[2] for _, where in found.notes]
    assert left == ["rating", "relation"]
    assert boxes_of(read(LabelStudio(tmp_path))[0]) == [BOX, BOX]


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        (region(CAT | {"x": None}), "x: found None"),
        (region(CAT | {"width": "x"}), "width: found 'x'"),
        (region(CAT | {"rotation": "inf"}), "rotation"),
        (region(CAT | {"rectanglelabels": []}), "no label"),
        (region(CAT, original_width=None), "original_width"),
        (region(CAT, original_width=80), "original_width 80"),
        (region(CAT, image_rotation=90), "image_rotation 90"),
        (region({"points": [[1, 2], [3]], "polygonlabels": ["cat"]}), "invalid"),
        (region({"points": [[1, 2]], "polygonlabels": ["cat"]}), "two points"),
        (region({"points": {}, "polygonlabels": ["cat"]}), "invalid"),
        (region({"rle": "x", "brushlabels": ["cat"]}), "invalid"),
        (region({"rle": [256], "brushlabels": ["cat"]}), "range"),
        (region({"rle": [0, 0], "brushlabels": ["cat"]}), "truncated"),
        (region({"rle": [255] * 4 + [56] + [0] * 9, "brushlabels": ["cat"]}), "expected 3,200"),
        (region({"rle": [0, 0, 12, 128, 56] + [0] * 9, "brushlabels": ["cat"]}), "truncated"),
        (region({"rle": rle([0] * 3200, random.Random(1)), "brushlabels": ["cat"]}), "opaque"),
        (region({"rle": rle([9] * 3300, random.Random(1)), "brushlabels": ["cat"]}), "3,300"),
        (region({"x": 1, "y": 2, "keypointlabels": ["nose"]}, "k"), "parentID"),
        (region({"x": 1, "y": 2, "keypointlabels": ["nose"]}, "k", parentID="q"), "parentID"),
    ],
)
def test_wrong_regions_are_named(tmp_path: Path, result: Any, fault: str) -> None:
    root = project(tmp_path, annotation(region(CAT, "good"), result))
    (problem,) = problems_of(LabelStudio(root))
    assert problem.startswith(f"project.json, task 7, region {result['id']}")
    assert fault in problem
    assert boxes_of(read(LabelStudio(root, boxes="drop"))[0]) == [BOX]


def test_a_second_point_of_a_name_and_many_labels(tmp_path: Path) -> None:
    points = [region({"x": 1, "y": 2, "keypointlabels": ["nose"]}, k, parentID="r") for k in "kl"]
    labels = region(CAT | {"rectanglelabels": [*"abcdefghijklmnopq"]})
    for results, text in (([region(CAT), *points], "another"), ([labels], "17 labels")):
        root = project(tmp_path, annotation(*results))
        assert any(text in problem for problem in problems_of(LabelStudio(root)))


# -- tasks -----------------------------------------------------------------------------------------


def test_annotators_are_chosen(tmp_path: Path) -> None:
    ann = {"id": 2, "email": "ann@x.org"}
    dog = region(CAT | {"rectanglelabels": ["Dog"]})
    cancelled = annotation(dog, by=3, was_cancelled=True)
    root = project(tmp_path, annotation(region(CAT)), annotation(dog, by=ann), cancelled)
    with raises(rs.SourceError, path="project.json", match="task 7 .* 1 and 2") as caught:
        LabelStudio(root).list_samples()
    assert "annotator" in caught.value.remedy
    for annotator, name in (("1", "cat"), ("2", "Dog"), ("ann@x.org", "Dog")):
        source = rs.detect(root, annotator=annotator).source
        assert source.list_samples().class_names == (None, name)
        assert source.describe()["annotator"] == annotator
    _, notices = parsed(root, annotator="1")
    assert notices == [
        "cancelled annotations in project.json left out: 1",
        "annotations of other annotators in project.json left out: 1",
    ]
    with raises(rs.SourceError, match="no images .* other annotators in project.json left out: 2"):
        LabelStudio(root, annotator="3").list_samples()


def test_the_ground_truth_is_chosen_of_one_annotator(tmp_path: Path) -> None:
    both = annotation(region(CAT)), annotation(ground_truth=True)
    root = project(tmp_path, *both, drafts=[{"result": []}])
    assert boxes_of(read(LabelStudio(root))[0]) == []
    assert parsed(root)[1] == [
        "drafts in project.json left out: 1",
        "annotations that are not the ground truth in project.json left out: 1",
    ]
    with raises(rs.SourceError, match="2 annotations of annotator 1"):
        LabelStudio(project(tmp_path, both[0], both[0])).list_samples()


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    root = project(tmp_path, annotation(region(CAT)), predictions=[{"result": []}, 3])
    tasks = json.loads((root / "project.json").read_text())
    for name, listed in (("b", []), ("c", [annotation(was_cancelled=True)])):
        image(root / f"{name}.jpg")
        tasks.append({"id": name, "annotations": listed, "data": {"image": f"{name}.jpg"}})
    write(root / "project.json", json.dumps(tasks))
    listing = LabelStudio(root).list_samples()
    assert [sample.name for sample in listing.samples] == ["a.jpg"]
    assert listing.notices[:3] == (
        "predictions in project.json left out: 2",
        "cancelled annotations in project.json left out: 1",
        "tasks without annotation in project.json left out: 2",
    )
    assert [*left_out(listing).values()] == [["b.jpg", "c.jpg"]]


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("/data/upload/3/0f3a9b7c-my%20cat.jpg", "my cat.jpg"),
        ("/data/upload/3/0f3a9b7c-my%20cat.jpg", "0f3a9b7c-my cat.jpg"),
        ("/data/upload/3/0f3a9b7c-my_cat_1.jpg", "pets/my cat (1).jpg"),
        ("/data/local-files/?d=pets%2Fmy%20cat.jpg", "pets/my cat.jpg"),
        ("/data/local-files/?d=pets/a+b.jpg&x=1", "pets/a+b.jpg"),
        ("s3://bucket/pets/my%20cat.jpg", "pets/my cat.jpg"),
        ("https://x.org/pets/k%C3%A4fer.jpg?AWSAccessKeyId=1&Expires=2", "pets/käfer.jpg"),
        ("deadbeef-a.jpg", "deadbeef-a.jpg"),
        ("data/my%20cat.jpg", "data/my%20cat.jpg"),
    ],
)
def test_images_are_found_by_their_addresses(tmp_path: Path, address: str, path: str) -> None:
    root = project(tmp_path, annotation(region(CAT)), address=address)
    (root / "a.jpg").unlink()
    image(root / path)
    image(root / "others" / "b.jpg")
    ((sample,), reader) = (listing := LabelStudio(root).list_samples()).samples, listing.reader
    assert sample.name == path
    assert boxes_of(reader.read(sample)) == [BOX]


def test_a_missing_image_fails_alone(tmp_path: Path) -> None:
    root = project(tmp_path, annotation(region(CAT)), address="data:image/png;base64," + "A" * 9999)
    with raises(rs.SourceError, path="project.json", match="task 7: image 'data:image") as caught:
        read(LabelStudio(root))
    assert "JSON" in caught.value.remedy
    assert len(str(caught.value)) < 500


def test_the_key_of_the_image(tmp_path: Path) -> None:
    data = {"text": "x", "left": "a.jpg", "right": "b.jpg"}
    root = project(tmp_path, annotation(region(CAT)), data=data)
    with raises(rs.SourceError, path="project.json", match="'left' and 'right'"):
        LabelStudio(root).list_samples()
    assert read(LabelStudio(root, image_column="left"))[0]["image/filename"] is not None
    with raises(rs.SourceError, match="middle"):
        LabelStudio(root, image_column="middle").list_samples()
    for data in ({"left": "a.jpg"}, {"image": "a.jpg", "mask": "b.png"}):
        assert len(LabelStudio(project(root, annotation(), data=data)).list_samples().samples) == 1


@pytest.mark.parametrize(
    ("names", "boxes"),
    [
        (["left", "right", "right", None], 2),
        (["right"], 0),
        (["img"], 1),  # the only image
        (["img1", "img2"], None),
        (["left", "img2"], 1),
    ],
)
def test_regions_are_those_of_the_image(
    tmp_path: Path, names: Sequence[str | None], boxes: int | None
) -> None:
    results = [region(CAT, str(n), to_name=name) for n, name in enumerate(names)]
    results.append(region({"choices": ["x"]}, "c", "choices", to_name="text"))
    root = project(tmp_path, annotation(*results), data={"left": "a.jpg", "right": "b.jpg"})
    if boxes is None:
        with raises(rs.SourceError, match="task 7: regions on the images img1 and img2"):
            parsed(root, image_column="left")
        return
    ((found,), notices) = parsed(root, image_column="left")
    assert len(found.objects) == boxes
    count = f"results about other images in project.json left out: {len(results) - boxes}"
    assert notices == ([count] if names != ["img"] else [])


@pytest.mark.parametrize("column", ["label_column", "caption_column"])
def test_the_control_of_labels_and_captions(tmp_path: Path, column: str) -> None:
    """Results of two controls are not mixed, also if they are of different tasks."""
    key = "choices" if column == "label_column" else "text"
    results = [region({key: [name]}, name, key, from_name=name) for name in "ab"]
    root = project(tmp_path, annotation(*results))
    (task,) = json.loads((root / "project.json").read_text())
    tasks = [task | {"annotations": [annotation(result)]} for result in results]
    for document in ([task], tasks):
        write(root / "project.json", json.dumps(document))
        with raises(rs.SourceError, match="'a' and 'b'") as caught:
            parsed(root)
        assert column in caught.value.remedy
        for control, texts in (("a", ["a"]), ("b", ["b"]), ("", [])):
            images, notices = parsed(root, **{column: control})
            assert [t for i in images for t in [*(i.labels or ()), *i.captions]] == texts
            what = "choices" if key == "choices" else "texts"
            left = 2 - len(texts)
            assert notices == [f"{what} of other controls in project.json left out: {left}"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[{"annotations": [],\n "predictions": [], }]', 2),
        ('[{"annotations": [], "predictions": []},\n[]]', None),
        ('[\n{"annotations": [], "predictions": []}, "' + "[" * 9, 1),
        ('[{"annotations": [], "predictions": ' + "[" * 100_000, None),
        ('[{"annotations": [], "predictions": "\xff"}]', None),
    ],
)
def test_broken_files(tmp_path: Path, text: str, line: int | None) -> None:
    root = project(tmp_path)
    (root / "project.json").write_bytes(text.encode("latin-1"))
    with raises(rs.SourceError, path="project.json") as caught:
        LabelStudio(root).list_samples()
    assert line is None or caught.value.line in (line, 2)


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, [3], [[]], {"x": 1}])
def test_odd_values_are_no_crash(tmp_path: Path, value: Any) -> None:
    odd = [value, region(value), region({"choices": value, "text": value, "x": value})]
    root = project(tmp_path, annotation(*odd, by=value), data={"image": "a.jpg", "x": value})
    read(LabelStudio(root, boxes="drop"))
    for task in ({"annotations": value}, {"data": value}, {"predictions": value}):
        with contextlib.suppress(rs.SourceError):
            read(LabelStudio(project(root, annotation(region(CAT)), **task)))
