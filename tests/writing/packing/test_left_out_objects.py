"""Objects that are left out are counted by class; a job that would pack none of them stops."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.writing import PackReport
from recordsmith.writing.building.shards import MAX_PLACES, Occurrences

from ...places import contents
from ...raising import raises
from ...repeating_engine import RepeatingEngine
from ...sources.annotated import coco, image, voc, write

GOOD, OUTSIDE, EMPTY = (2, 2, 8, 8), (30, 2, 50, 8), (5, 2, 5, 8)
DROPPED = "objects were dropped because their box is invalid"


def _voc(root: Path, *, has_good: bool = True) -> Path:
    """Four images with two cats and a dog that are invalid, and maybe a good cat."""
    samples: dict[str, Any] = {
        "a": [("cat", *EMPTY), ("Dog", *OUTSIDE)],
        "b": [("cat", *EMPTY)],
        "c": [],
        "d": [("cat", *GOOD)] if has_good else [],
    }
    return voc(root, samples)


def _by_pack(source: Any, out: Path) -> PackReport:
    return rs.pack(source, out, shards=2)


def _by_engine(source: Any, out: Path) -> PackReport:
    return rs.pack(source, out, shards=2, engine=RepeatingEngine())


def _by_plan(source: Any, out: Path) -> PackReport:
    plan = rs.plan(source, out, shards=2)
    tasks = [json.loads(json.dumps(task.to_json())) for task in plan.tasks()]
    return rs.finish(plan, [json.loads(json.dumps(rs.run(task).to_json())) for task in tasks])


Pack = Callable[[Any, Path], PackReport]
WAYS = pytest.mark.parametrize("pack", [_by_pack, _by_engine, _by_plan])


@WAYS
@pytest.mark.parametrize(("boxes", "counts"), [("drop", (2, 1)), ("clip", (2, 0))])
def test_dropped_objects_are_counted_by_class(
    tmp_path: Path, pack: Pack, boxes: Any, counts: tuple[int, int]
) -> None:
    report = pack(rs.Voc(_voc(tmp_path / "in"), boxes=boxes), tmp_path / "out")
    classes = {"cat": counts[0], "Dog": counts[1]}
    left_out = {name: number for name, number in classes.items() if number}
    assert report.notes[DROPPED].left_out == left_out
    assert report.to_json()["notes"][DROPPED]["left_out"] == left_out
    (notice,) = report.notices
    assert notice == "objects dropped: 2 of cat" + " and 1 of Dog" * (counts[1] > 0)


def test_dropped_objects_of_unknown_classes(tmp_path: Path) -> None:
    write(tmp_path / "in" / "classes.txt", "cat\n")
    rows = {"a": "0 0.5 0.5 0.5 0.5\n7 0.5 0.5 0.5 0.5\n", "b": "0 0.5 0.5 0.5\n"}
    for name, text in rows.items():
        image(tmp_path / "in" / f"{name}.jpg")
        write(tmp_path / "in" / f"{name}.txt", text)
    report = rs.pack(rs.Yolo(tmp_path / "in", boxes="drop"), tmp_path / "out")
    assert {what: noted.left_out for what, noted in report.notes.items()} == {
        DROPPED: {"cat": 1},
        "objects were dropped because their class is unknown": {"unknown classes": 1},
    }


def test_classes_are_bounded() -> None:
    noted = Occurrences()
    for number in range(MAX_PLACES + 5):
        noted.add("a", f"class {number}")
    noted.add("a", "class 3")
    assert len(noted.left_out) <= MAX_PLACES + 1
    assert noted.left_out["class 3"] == 2
    assert (sum(noted.left_out.values()), noted.left_out[""]) == (MAX_PLACES + 6, 5)
    assert Occurrences.from_json(json.loads(json.dumps(vars(noted)))) == noted


@WAYS
def test_a_job_that_would_pack_no_object_stops(tmp_path: Path, pack: Pack) -> None:
    root = _voc(tmp_path / "in", has_good=False)
    out = tmp_path / "out"
    for _ in range(2):  # the second one resumes
        with raises(rs.SourceError, match="format='files'") as caught:
            pack(rs.Voc(root, boxes="drop"), out)
        (problem,) = caught.value.problems
        assert problem.startswith(f"3 {DROPPED}: Annotations/")
        assert not (out / "dataset.json").exists()
        assert not list(out.glob("*.tfrecord"))
    assert rs.pack(rs.detect(root, "files").source, out).sample_count == 4
    assert rs.verify(out).is_good


def _labelme(shapes: list[Any]) -> str:
    size = {"imageWidth": 40, "imageHeight": 20}
    return json.dumps(
        {"version": "5.0", "flags": {}, "shapes": shapes, "imagePath": "a.jpg", **size}
    )


def _cvat(inside: str) -> str:
    return (
        "<annotations><version>1.1</version>"
        f'<image id="0" name="a.jpg" width="40" height="20">{inside}</image>'
        '<image id="1" name="b.jpg" width="40" height="20"></image></annotations>'
    )


POINT = {"label": "cat", "shape_type": "point", "points": [[1, 1]]}
LOSSES: dict[str, tuple[str, str, type[Any], str]] = {
    "points of LabelMe": ("a.json", _labelme([POINT]), rs.LabelMe, "points"),
    "lines of CVAT": (
        "annotations.xml",
        _cvat('<polyline label="cat" points="1,1;2,2"/>'),
        rs.Cvat,
        "shape",
    ),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_annotations_without_boxes_stop_the_job(tmp_path: Path, kind: str) -> None:
    name, text, source, word = LOSSES[kind]
    image(tmp_path / "in" / "a.jpg")
    write(tmp_path / "in" / name, text)
    image(tmp_path / "in" / "b.jpg")
    write(tmp_path / "in" / "b.json", _labelme([])) if source is rs.LabelMe else None
    for pack in (_by_pack, _by_plan):
        with raises(rs.SourceError) as caught:
            pack(source(tmp_path / "in"), tmp_path / "out")
        (problem,) = caught.value.problems
        assert word in problem
        assert name in problem
    assert contents(tmp_path / "out").keys() & {"dataset.json"} == set()


def test_unreadable_annotations_stop_the_job(tmp_path: Path) -> None:
    root = _voc(tmp_path / "in", has_good=False)
    with raises(rs.SourceError) as caught:
        rs.pack(rs.Voc(root), tmp_path / "out", skip_errors=True)
    assert len(caught.value.problems) == 2
    (tmp_path / "in" / "Annotations" / "a.xml").unlink()
    (tmp_path / "in" / "Annotations" / "b.xml").unlink()
    report = rs.pack(rs.Voc(root), tmp_path / "out", skip_errors=True)
    assert report.sample_count == 2


# -- datasets without objects ----------------------------------------------------------------------


def _empty_coco(root: Path) -> Path:
    image(root / "images" / "a.jpg")
    coco(root / "a.json", {"a.jpg": []}, {})
    return root


def _empty_labelme(root: Path) -> Path:
    image(root / "a.jpg")
    write(root / "a.json", _labelme([]))
    return root


EMPTY_SOURCES: dict[str, Callable[[Path], Any]] = {
    "voc": lambda root: rs.Voc(voc(root, {"a": []})),
    "coco": lambda root: rs.Coco(_empty_coco(root)),
    "labelme": lambda root: rs.LabelMe(_empty_labelme(root)),
}


@pytest.mark.parametrize("kind", EMPTY_SOURCES)
def test_a_dataset_without_objects(tmp_path: Path, kind: str) -> None:
    """It is complete: it verifies, and it can be changed like any other."""
    source = EMPTY_SOURCES[kind](tmp_path / "in")
    report = rs.pack(source, tmp_path / "out")
    assert (report.sample_count, report.class_count, report.notices) == (
        1,
        0,
        ("no image has an object",),
    )
    assert rs.verify(tmp_path / "out", deep=True).is_good
    rs.reshard(tmp_path / "out", tmp_path / "again", shards=1)
    rs.append(tmp_path / "again", tmp_path / "out")
    assert rs.open(tmp_path / "out").class_names == ()
    full = voc(tmp_path / "full", {"b": [("cat", *GOOD)]})
    rs.pack(rs.Voc(full), tmp_path / "full-out")
    for paths in (("out", "full-out"), ("full-out", "out")):
        both = tmp_path / "-".join(paths)
        rs.reshard([tmp_path / path for path in paths], both, shards=1)
        assert rs.verify(both).is_good
        assert rs.open(both).class_names == (None, "cat")
    rs.append(tmp_path / "again", tmp_path / "full-out", allow_missing=True)
    for name in ("out", "again", "full-out"):
        assert rs.verify(tmp_path / name, deep=True).is_good
