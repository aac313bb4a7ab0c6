"""Valid, fixed and invalid boxes, and the image that they were drawn on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.sources import Classes
from recordsmith.sources.boxes.annotation import AnnotatedObject
from recordsmith.sources.boxes.placing import BoxPlacer, Frame
from recordsmith.sources.classes import classes_by_label, make_classes

from ..raising import raises
from .annotated import boxes_of, image, read, voc

CLASSES = Classes({"cat": 1, "Dog": 2}, "the label map x.pbtxt")
NAN = float("nan")


class _Placer(BoxPlacer):
    """On an image of 40 by 20, with what it noted."""

    def __init__(
        self,
        policy: Any,
        folder: Path,
        orientation: int | None = None,
        width: int = 40,
        drawn: Any = None,
    ) -> None:
        data = image(folder / "a.jpg", (width, 20), orientation)
        self.notes: list[tuple[str, str]] = []
        size = {"image/width": width, "image/height": 20}
        super().__init__(
            {"image/encoded": data, **size}, policy, lambda *note: self.notes.append(note), drawn
        )

    def boxes(self, *corners: Any, name: str = "cat", frame: Frame | None = None) -> list[Any]:
        frame = frame or self.make_frame((40, 20), "a.xml")
        boxes = [AnnotatedObject(f"line {n}", name, c) for n, c in enumerate(corners, 1)]
        placed = self.place(boxes, frame, CLASSES, "a.xml")
        return [tuple(round(v, 9) for v in item.box) for item in placed]


@pytest.mark.parametrize("policy", ["stop", "clip", "drop"])
def test_good_boxes_are_divided_by_the_size(tmp_path: Path, policy: str) -> None:
    placer = _Placer(policy, tmp_path)
    edges = (0, 0, 40, 20)
    rounded = (-0.00003, -0.00001, 40.00003, 20.00001)
    assert placer.boxes((4, 5, 10, 10), edges, rounded) == [
        (0.25, 0.1, 0.5, 0.25),
        (0, 0, 1, 1),
        (0, 0, 1, 1),
    ]
    placer.finish("a.jpg")
    assert placer.notes == []


BAD: dict[str, tuple[Any, str, list[Any], str]] = {
    "outside": (
        (10, 5, 41, 10), "xmax 41 outside the image; expected 0 to its width, 40",
        [(0.25, 0.25, 0.5, 1)], "clipped"),
    "above": (
        (10, -2, 30, 10), "ymin -2 outside the image; expected 0 to its height, 20",
        [(0, 0.25, 0.5, 0.75)], "clipped"),
    "swapped": (
        (30, 5, 10, 10), "xmin 30 is larger than xmax 10", [(0.25, 0.25, 0.5, 0.75)], "reordered"),
    "empty": ((10, 5, 10, 10), "the box is empty: xmin and xmax are 10", [], "dropped"),
    "far off": ((50, 5, 60, 10), "xmin 50 and xmax 60 outside the image", [], "dropped"),
    "no number": ((10, NAN, 20, float("inf")), "ymin, ymax: not a number", [], "dropped"),
    "just outside": (
        (10, 5, 40.001, 10), "xmax 40.001 outside", [(0.25, 0.25, 0.5, 1)], "clipped"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_boxes(tmp_path: Path, name: str) -> None:
    """They stop the sample, are dropped, or are fixed where possible."""
    corners, fault, fixed, done = BAD[name]
    good = (4, 5, 10, 10), (0.25, 0.1, 0.5, 0.25)
    placer = _Placer("stop", tmp_path)
    assert placer.boxes(good[0], corners) == [good[1]]
    with pytest.raises(rs.SourceError) as caught:
        placer.finish("a.jpg")
    (problem,) = caught.value.problems
    assert problem.startswith("a.xml, line 2 (cat): ")
    assert fault in problem
    assert problem in str(caught.value)
    assert ("boxes='clip'" in str(caught.value)) is bool(fixed)  # only if it helps
    assert "boxes='drop'" in str(caught.value)
    for policy, expected, words in (("drop", [], "dropped"), ("clip", fixed, done)):
        placer = _Placer(policy, tmp_path)
        assert placer.boxes(corners, good[0]) == [*expected, good[1]]
        placer.finish("a.jpg")
        ((what, where),) = placer.notes
        assert words in what
        assert "box" in what
        assert where.startswith("a.xml, line 1 (cat): ")
        assert fault in where


def test_a_box_may_be_swapped_and_outside(tmp_path: Path) -> None:
    placer = _Placer("clip", tmp_path)
    assert placer.boxes((50, 12, 10, 4)) == [(0.2, 0.25, 0.6, 1)]
    assert ["clipped" in what for what, _ in placer.notes] == [False, True]
    assert "reordered" in placer.notes[0][0]


def test_every_problem_is_listed(tmp_path: Path) -> None:
    placer = _Placer("stop", tmp_path)
    placer.boxes((30, 5, 10, 30), name="cat")
    placer.boxes((1, 1, 1, 2), name="dgo")
    placer.reject("a.xml, line 30", "no bndbox")
    with pytest.raises(rs.SourceError, match="5 problems") as caught:
        placer.finish("a.jpg")
    assert caught.value.path == "a.jpg"
    assert len(caught.value.problems) == 5
    for problem in caught.value.problems:
        assert problem in str(caught.value)


# -- frames --------------------------------------------------------------------------------------

UPRIGHT_OF_6 = (5, 10, 15, 30)  # drawn on the upright image, 20 wide and 40 high


@pytest.mark.parametrize(
    ("size", "orientation", "frame", "noted"),
    [
        ((0, 0), None, Frame(40, 20), None),
        ((NAN, 20), None, Frame(40, 20), None),
        ((40, 20), None, Frame(40, 20), None),
        ((40, 20), 1, Frame(40, 20), None),
        ((40, 20), 3, Frame(40, 20), "drawn on"),
        ((40, 20), 6, Frame(40, 20), None),  # so it was drawn on the stored image
        ((0, 0), 6, Frame(40, 20), "drawn on"),
        ((20, 40), 6, Frame(20, 40, 6), "rotated"),
        ((20, 40), 8, Frame(20, 40, 8), "rotated"),
        ((20, 20), 6, Frame(20, 20), "drawn on"),  # of a square image: ambiguous
    ],
)
@pytest.mark.parametrize("policy", ["stop", "clip", "drop"])
def test_frames_that_are_clear(
    tmp_path: Path, policy: str, size: Any, orientation: Any, frame: Frame, noted: str | None
) -> None:
    placer = _Placer(policy, tmp_path, orientation, 20 if size == (20, 20) else 40)
    assert placer.make_frame(size, "a.xml") == frame
    placer.finish("a.jpg")
    assert len(placer.notes) == (noted is not None)
    assert all("drawn=" in what for what, _ in placer.notes) is (noted in (None, "drawn on"))
    if noted is not None:
        assert noted in placer.notes[0][0]
        assert placer.notes[0][1] == f"a.xml: orientation {orientation}"


@pytest.mark.parametrize(
    ("size", "orientation", "frame", "noted"),
    [
        ((20, 40), None, Frame(40, 20), "another size than"),
        ((20, 40), 3, Frame(40, 20), "another size than"),
        ((400, 300), None, Frame(40, 20), "another size than"),
        ((80, 40), None, Frame(80, 40), "boxes were scaled"),
        ((800, 403), None, Frame(800, 403), "boxes were scaled"),
        ((800, 420), None, Frame(40, 20), "another size than"),
    ],
)
def test_frames_of_another_size(
    tmp_path: Path, size: Any, orientation: Any, frame: Frame, noted: str
) -> None:
    placer = _Placer("stop", tmp_path, orientation)
    placer.make_frame(size, "a.xml")
    with pytest.raises(rs.SourceError, match=f"size {size[0]}x{size[1]}"):
        placer.finish("a.jpg")
    for policy in ("clip", "drop"):
        placer = _Placer(policy, tmp_path, orientation)
        assert placer.make_frame(size, "a.xml") == frame
        ((what, where),) = placer.notes
        assert noted in what
        assert "40x20" in where


@pytest.mark.parametrize(
    ("size", "orientation", "drawn", "frame", "noted"),
    [
        (None, 6, "upright", Frame(1, 1, 6, is_relative=True), ["rotated"]),
        (None, 6, "stored", Frame(1, 1, is_relative=True), []),
        ((0, 0), 6, "upright", Frame(20, 40, 6), ["rotated"]),
        ((0, 0), 6, "stored", Frame(40, 20), []),
        ((40, 20), 3, "upright", Frame(40, 20, 3), ["rotated"]),
        ((40, 20), 3, "stored", Frame(40, 20), []),
        ((20, 20), 6, "upright", Frame(20, 20, 6), ["rotated"]),
        ((40, 20), None, "upright", Frame(40, 20), []),
        ((40, 20), 6, "upright", Frame(40, 20), []),  # the size shows it
        ((20, 40), 6, "stored", Frame(20, 40, 6), ["rotated"]),
        ((80, 40), 3, "upright", Frame(80, 40, 3), ["scaled", "rotated"]),
        ((80, 40), 6, "upright", Frame(80, 40), ["scaled"]),
    ],
)
def test_frames_by_option(
    tmp_path: Path, size: Any, orientation: Any, drawn: str, frame: Frame, noted: list[str]
) -> None:
    width = 20 if size == (20, 20) else 40
    placer = _Placer("clip", tmp_path, orientation, width, drawn)
    assert placer.make_frame(size, "a.xml") == frame
    for (what, _), word in zip(placer.notes, noted, strict=True):
        assert word in what
        assert "drawn=" not in what


@pytest.mark.parametrize(
    ("size", "action"),
    [((80, 40), "boxes='clip' to fix"), ((400, 300), "boxes='drop' to ignore such sizes")],
)
def test_advice_for_other_sizes(tmp_path: Path, size: Any, action: str) -> None:
    placer = _Placer("stop", tmp_path)
    placer.make_frame(size, "a.xml")
    with raises(rs.SourceError, match=f"pass {action}") as caught:
        placer.finish("a.json", "a.jpg")
    assert (caught.value.sample, caught.value.path) == ("a.jpg", None)


def test_boxes_of_a_rotated_frame(tmp_path: Path) -> None:
    """Upright, 6 means: the stored top is on the right."""
    placer = _Placer("stop", tmp_path, 6)
    frame = placer.make_frame((20, 40), "a.xml")
    assert placer.boxes(UPRIGHT_OF_6, frame=frame) == [(0.25, 0.25, 0.75, 0.75)]
    assert placer.boxes((0, 0, 5, 10), frame=frame) == [(0.75, 0, 1, 0.25)]  # upper left
    assert placer.boxes((0, 0, 21, 10), frame=frame) == []  # 21 is outside of its width, 20


@pytest.mark.parametrize("source", [rs.Voc, rs.Coco, rs.LabelMe, rs.Cvat, rs.CsvBoxes, rs.Yolo,
                                    rs.CreateML, rs.Kitti, rs.SegmentAnything, rs.Via])  # fmt: skip
def test_all_sources_of_boxes_have_the_option(tmp_path: Path, source: Any) -> None:
    assert "drawn" not in source(tmp_path).describe()
    assert source(tmp_path, drawn="stored").describe()["drawn"] == "stored"
    with raises(rs.OptionError, option="drawn", value="up"):
        source(tmp_path, drawn="up")


@pytest.mark.parametrize(
    ("drawn", "box"), [("upright", (0.5, 0.75, 1, 1)), (None, (0, 0, 0.5, 0.25))]
)
def test_a_half_turn_in_a_source(tmp_path: Path, drawn: Any, box: Any) -> None:
    voc(tmp_path, {"a": [("cat", 0, 0, 10, 10)]})
    image(tmp_path / "JPEGImages" / "a.jpg", orientation=3)
    listing = rs.detect(tmp_path, **({"drawn": drawn} if drawn else {})).source.list_samples()
    assert boxes_of(read(listing)[0]) == [box]


# -- classes and options -------------------------------------------------------------------------


def test_classes_of_the_data_are_sorted_as_text() -> None:
    classes = make_classes(["b", "a", "B", "10", "9", "a"], None)
    assert classes.names() == (None, "10", "9", "B", "a", "b")
    assert classes.label_of("B") == 3


def test_an_empty_label_map(tmp_path: Path) -> None:
    path = tmp_path / "map.pbtxt"
    path.write_text("")
    with raises(rs.OptionError, option="label_map", value=path):
        make_classes(["a"], path)


def test_class_with_two_numbers_is_a_problem() -> None:
    with pytest.raises(rs.SourceError, match=r"'a' .* 1 and 3"):
        classes_by_label({1: "a", 2: "b", 3: "a"}, None, "x.names")
    with pytest.raises(rs.SourceError, match=r"'a' .* -1"):
        classes_by_label({-1: "a"}, None, "x.names").names()
