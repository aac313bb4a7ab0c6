"""Keypoints of YOLO-pose, CVAT and LabelMe: the same objects in each of them, and what is wrong."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import KeypointClass
from recordsmith.sources import Cvat, LabelMe, Source, Yolo

from ..raising import places, raises
from .annotated import boxes_of, image, problems_of, read, write
from .test_keypoints import points_of

WIDTH, HEIGHT = 40, 20
Person = list[tuple[int, int, int]]
"""x, y in pixels, and visibility, of each keypoint."""


def _as_ultralytics(text: str, count: int, size: int) -> tuple[Any, Any]:
    """Boxes as ymin, xmin, ymax, xmax, and keypoints, as `verify_image_label` has them.

    It takes a point without visibility as labelled unless a coordinate is negative; 0, 0, where
    files have points that are missing, is not drawn by its plots.
    """
    rows = np.array([line.split() for line in text.splitlines()], np.float64)
    rows = rows.reshape(-1, 5 + count * size)
    x, y, width, height = rows[:, 1:5].T
    boxes = np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], -1)
    points = rows[:, 5:].reshape(-1, count, size)
    if size == 2:
        is_missing = (points < 0).any(-1) | (points == 0).all(-1)
        points = np.concatenate([points, np.where(is_missing, 0, 2)[:, :, None]], -1)
    return boxes, points * (points[:, :, 2:] > 0)


def _rows(rng: np.random.Generator, count: int, size: int, classes: int) -> str:
    lines = []
    for _ in range(rng.integers(0, 4)):
        width, height = rng.uniform(0.01, 0.5, 2)
        box = rng.uniform(width / 2, 1 - width / 2), rng.uniform(height / 2, 1 - height / 2)
        points = rng.uniform(0, 1, (count, 3))
        points[:, 2] = rng.integers(0, 3, count)
        points[rng.random(count) < 0.2] = 0
        if size == 2:
            points[rng.random(count) < 0.2, 0] = -0.005
        values = [*box, width, height, *points[:, :size].ravel()]
        digits = rng.choice([".6f", ".9g"])
        lines.append(f"{rng.integers(classes)} {' '.join(format(v, digits) for v in values)}")
    return "\n".join(lines)


def check_pose(folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, size, classes = map(int, (rng.integers(1, 7), rng.integers(2, 4), rng.integers(1, 4)))
    pairs = np.sort(rng.permutation(count)[: count // 2 * 2].reshape(-1, 2), axis=1)
    flip_idx = np.arange(count)
    flip_idx[pairs], names = pairs[:, ::-1], [f"p{seed}.{number}" for number in range(count)]
    has_shape, has_pairs, has_names = (rng.random(3) < 0.7).tolist()
    lines = ["train: images", f"names: {[f'c{number}' for number in range(classes)]}"]
    lines += [f"kpt_shape: [{count}, {size}]"] * has_shape
    lines += [f"flip_idx: {flip_idx.tolist()}"] * has_pairs
    lines += [f"kpt_names: {dict.fromkeys(range(classes), names)}"] * has_names
    write(folder / "data.yaml", "\n".join(lines))
    texts = [_rows(rng, count, size, classes) for _ in range(2)]
    for name, text in zip("ab", texts, strict=True):
        write(folder / f"labels/{name}.txt", text)
        if not (folder / f"images/{name}.png").exists():
            image(folder / f"images/{name}.png")
    listing = Yolo(folder, kpt_shape=None if has_shape else f"{count},{size}").list_samples()
    for number, text in enumerate(texts):
        features, notes = read(listing, number)
        boxes, points = _as_ultralytics(text, count, size)
        assert notes == []
        assert np.allclose(np.reshape(boxes_of(features), (-1, 4)), boxes, rtol=0, atol=2e-6)
        assert np.allclose(np.reshape(points_of(features), points.shape), points, rtol=0, atol=2e-6)
    known = KeypointClass(
        tuple(names) if has_names else tuple(map(str, range(count))),
        flip_pairs=tuple(sorted(map(tuple, pairs.tolist()))) if has_pairs else None,
    )
    assert listing.keypoint_classes == dict.fromkeys(range(1, classes + 1), known)


@pytest.mark.parametrize(
    "seeds", [range(50), pytest.param(range(50, 1000), marks=pytest.mark.slow)]
)
def test_pose_as_ultralytics_reads_it(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        check_pose(tmp_path, seed)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("flip_idx: [0]", "flip_idx has 1 values"),
        ("flip_idx: [1, 2, 0]", "data.yaml, line 4"),
        ("flip_idx: [0, 1, 3]", "data.yaml, line 4"),
        ("flip_idx: [0, 1, x]", "data.yaml, line 4"),
        ("kpt_names: [a, b]", "kpt_names has 2 values"),
        ("kpt_names: {0: [a, b, c], 1: [a]}", "kpt_names has 1 values"),
        ("kpt_names: {0: {a: b}}", "data.yaml, line 4"),
        ('kpt_names: [a, b, "c\\n"]', "data.yaml, line 4"),
    ],
)
def test_wrong_descriptions_of_keypoints(tmp_path: Path, line: str, problem: str) -> None:
    write(tmp_path / "data.yaml", f"train: images\nnames: [cat, Dog]\nkpt_shape: [3, 2]\n{line}")
    image(tmp_path / "images/a.jpg")
    with raises(rs.SourceError, match=problem):
        Yolo(tmp_path).list_samples()


# -- the same objects in all formats ---------------------------------------------------------------

NAMES = ("nose", "left eye", "right & <eye>")
EDGES = ((1, 0), (0, 2))


def _box(person: Person) -> tuple[int, int, int, int]:
    """xmin, ymin, xmax, ymax of the labelled points."""
    xs, ys, _ = zip(*(point for point in person if point[2]), strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _in_yolo(root: Path, people: Sequence[Person]) -> Source:
    image(root / "images/a.png")
    rows = ["1 0.5 0.5 0.5 0.5"]
    for person in people:
        left, top, right, bottom = _box(person)
        box = (left + right) / 2 / WIDTH, (top + bottom) / 2 / HEIGHT
        sides = (right - left) / WIDTH, (bottom - top) / HEIGHT
        points = [value for x, y, seen in person for value in (x / WIDTH, y / HEIGHT, seen)]
        rows.append(" ".join(map(str, (0, *box, *sides, *points))))
    write(root / "labels/a.txt", "\n".join(rows))
    write(root / "data.yaml", f"train: images\nnames: [cat, Dog]\nkpt_shape: [{len(NAMES)}, 3]")
    return Yolo(root)


def _label(name: str, inside: str = "") -> str:
    return f"<label><name>{html.escape(name)}</name>{inside}</label>"


def _cvat(root: Path, shapes: str, labels: str = "") -> Source:
    meta = f"<meta><task><labels>{labels}</labels></task></meta>" if labels else ""
    element = f'<image id="7" name="a.png" width="{WIDTH}" height="{HEIGHT}">'
    image(root / "a.png")
    write(root / "a.xml", f"<annotations>{meta}{element}\n{shapes}</image></annotations>")
    return Cvat(root)


def _in_cvat(root: Path, people: Sequence[Person]) -> Source:
    lines = (f'<line x1="1" data-node-to="{b + 1}" data-node-from="{a + 1}"/>' for a, b in EDGES)
    circles = (
        f'<circle data-label-name="{html.escape(name)}" data-node-id="{number}" r="1"></circle>'
        for number, name in enumerate(NAMES, 1)
    )
    svg = html.escape("".join([*lines, '<line data-node-from="9">', *circles]))
    parts = "".join(_label(name, "<parent>cat</parent>") for name in NAMES)
    shapes = ['<box label="Dog" xtl="10" ytl="5" xbr="30" ybr="15"/>']
    for person in people:
        points = (
            f'<points label="{html.escape(name)}" points="{x},{y}" outside="{int(seen == 0)}" '
            f'occluded="{int(seen == 1)}"/>'
            for name, (x, y, seen) in zip(NAMES, person, strict=True)
        )
        shapes.append(f'<skeleton label="cat">{"".join([*points][::-1])}</skeleton>')
    labels = f"{parts}{_label('cat', f'<svg>{svg}</svg>')}{_label('Dog')}"
    return _cvat(root, "\n".join(shapes), labels)


def _shape(kind: str, label: Any, *points: Any, group: Any = None, **more: Any) -> dict[str, Any]:
    return {"shape_type": kind, "label": label, "points": points, "group_id": group, **more}


def _labelme(root: Path, *shapes: Any) -> Source:
    image(root / "a.png")
    write(root / "a.json", json.dumps({"version": "5", "shapes": shapes, "imagePath": "a.png"}))
    return LabelMe(root)


def _in_labelme(root: Path, people: Sequence[Person]) -> Source:
    shapes = [_shape("rectangle", "Dog", (30, 15), (10, 5), group="0")]
    for group, person in enumerate(people):
        shapes += [
            _shape("point", name, (x, y), group=group, difficult=seen == 1)
            for name, (x, y, seen) in zip(NAMES, person, strict=True)
            if seen
        ][::-1]
        left, top, right, bottom = _box(person)
        shapes.append(_shape("polygon", "cat", (left, bottom), (right, top), group=group))
    write(root / "labels.txt", "\n".join(["cat", "Dog", *NAMES]))
    return _labelme(root, *shapes)


def test_formats_alike(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    people: list[Person] = []
    while len(people) < 5:
        x, y = rng.integers(0, WIDTH + 1, 3), rng.integers(0, HEIGHT + 1, 3)
        seen = rng.choice([0, 1, 2], 3, p=[0.1, 0.4, 0.5])
        person = list(zip(x.tolist(), y.tolist(), seen.tolist(), strict=True))
        if len({x for x, _, v in person if v}) > 1 < len({y for _, y, v in person if v}):
            people.append(person)
    values = np.array([[(0, 0, 0)] * 3, *people])
    points = values * (values[:, :, 2:] > 0) / (WIDTH, HEIGHT, 1)
    boxes = [(0.25, 0.25, 0.75, 0.75)]
    for left, top, right, bottom in map(_box, people):
        boxes.append((top / HEIGHT, left / WIDTH, bottom / HEIGHT, right / WIDTH))
    cat, numbered = KeypointClass(NAMES), KeypointClass(("0", "1", "2"))
    for write_in, known in (
        (_in_yolo, {1: numbered, 2: numbered}),
        (_in_cvat, {1: cat._replace(skeleton=EDGES)}),
        (_in_labelme, {1: cat}),
    ):
        listing = write_in(tmp_path / write_in.__name__, people).list_samples()
        assert (listing.class_names, listing.keypoint_classes) == ((None, "cat", "Dog"), known)
        features, notes = read(listing)
        assert [what for what, _ in notes if "outlines" not in what] == []
        assert features["image/object/class/label"] == [2, 1, 1, 1, 1, 1]
        assert np.allclose(boxes_of(features), boxes, rtol=0, atol=2e-6)
        assert np.allclose(points_of(features), points, rtol=0, atol=2e-6)


# -- points alone, and what is wrong ---------------------------------------------------------------


def test_points_without_a_box(tmp_path: Path) -> None:
    shapes = (
        '<points label="wheel" points="4,5;14,15;9,9"/><skeleton label="cat">'
        '<points label="c" points="1"/><points label="a" points="4,5"/>'
        '<points label="b" points="14,15" occluded="1"/></skeleton>'
    )
    _cvat(tmp_path / "cvat", shapes)
    features, notes = read(Cvat(tmp_path / "cvat", boxes="clip"))
    assert [where for _, where in notes if "'c'" in where] == [notes[0][1]]  # not a number
    assert boxes_of(features) == [(0.25, 0.1, 0.75, 0.35)] * 2
    points = [[(4, 5, 2), (14, 15, 2), (9, 9, 2)], [(0, 0, 0), (4, 5, 2), (14, 15, 1)]]
    assert np.allclose(np.multiply(points_of(features), (WIDTH, HEIGHT, 1)), points)
    grouped = [_shape("point", n, p, group=3) for n, p in (("a", (4, 5)), ("b", (14, 15)))]
    features, notes = read(_labelme(tmp_path / "labelme", *grouped))
    assert features["image/object/class/text"] == [b"object"]
    assert boxes_of(features) == [(0.25, 0.1, 0.75, 0.35)]
    assert places([where for _, where in notes]) == ["a.json, shape 1"]


def _skeleton(*points: str) -> str:
    inside = "".join(f'<points label="{n}" {p}/>' for n, p in zip("abca", points, strict=False))
    return f'<skeleton label="cat">{inside}</skeleton>'


AT = ('points="4,5"', 'points="9,9"', 'points="14,15"')
GOOD = _shape("rectangle", "cat", (4, 5), (14, 15))
OWNER = GOOD | {"group_id": 1}
WRONG = {
    "no points": (_cvat, ['<points label="cat"/>']),
    "invalid points": (_cvat, ['<points label="cat" points="4,5;x,2;4,9"/>']),
    "an empty skeleton": (_cvat, [_skeleton()]),
    "none labelled": (_cvat, [_skeleton(f'{AT[1]} outside="1"')]),
    "twice the same": (_cvat, [_skeleton(*AT, AT[0])]),
    "an invalid point of a skeleton": (_cvat, [_skeleton('points="1"', *AT[1:])]),
    "an unknown point": (_cvat, [_skeleton(*AT), _label("a", "<parent>cat</parent>")]),
    "outside": (_cvat, ['<points label="cat" points="4,5;9,25;3,2"/>']),
    "no group": (_labelme, [_shape("point", "a", (4, 5))]),
    "no label": (_labelme, [_shape("point", None, (4, 5), group=1), OWNER]),
    "twice the same label": (_labelme, [_shape("point", "a", (4, 5), group=1)] * 2 + [OWNER]),
    "two boxes": (_labelme, [_shape("point", "a", (4, 5), group=1), OWNER, OWNER]),
    "a group that is none": (_labelme, [_shape("point", "a", (4, 5), group={})]),
    "a point of two": (_labelme, [OWNER, _shape("point", "a", (4, 5), (5, 4), group=1)]),
    "a point outside": (_labelme, [OWNER, _shape("point", "a", (44, 5), group=1)]),
    "a shape of points": (_labelme, [_shape("points", "a", (4, 5), (9, 9), group=2)]),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_points(tmp_path: Path, kind: str) -> None:
    """Each is a problem with its place; the other object is read with `drop`."""
    write_in, shapes = WRONG[kind]
    is_cvat = write_in is _cvat
    good = '\n<box label="cat" xtl="4" ytl="5" xbr="14" ybr="15"/>' if is_cvat else GOOD
    shapes = [shapes[0] + good, *shapes[1:]] if is_cvat else [*shapes, GOOD]
    source = write_in(tmp_path, *shapes)
    found = {place.partition(" (")[0] for place in places(problems_of(source))}
    assert found == {"a.xml, line 2" if is_cvat else "a.json, shape 1"}
    features, notes = read(type(source)(tmp_path, boxes="drop"))
    assert boxes_of(features)[-1] == (0.25, 0.1, 0.75, 0.35)
    assert any("dropped" in what for what, _ in notes)


def test_limits(tmp_path: Path) -> None:
    """Objects have as many points as the class with the most: few bytes may ask for many."""
    points = [
        f'<points label="{number}" points="{number % 9},{number % 7}"/>' for number in range(1001)
    ]
    with raises(rs.SourceError, match="more than 1000 keypoints"):
        _cvat(tmp_path, f'<skeleton label="cat">{"".join(points)}</skeleton>').list_samples()
    boxes = '<box label="cat" xtl="4" ytl="5" xbr="14" ybr="15"/>' * 4200
    source = _cvat(tmp_path, f'<skeleton label="Dog">{"".join(points[1:])}</skeleton>{boxes}')
    with raises(rs.SourceError, match="at most 4,194,304"):
        read(source)
