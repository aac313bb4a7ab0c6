"""Boxes lie on the pixels that they were drawn around, however their image is moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.format.example.keys import BOX, CORNER_X, CORNER_Y, OBJECT_LABEL
from recordsmith.image import Placement
from recordsmith.loading import BatchRows, ColumnRequest
from recordsmith.loading.features.feature import ImageBuffer, ImageFeature, RandomNumbers
from recordsmith.support.errors import CorruptDataError, Defect, OptionError


def whole(height: int, width: int, frame: int = 100, **changed: Any) -> Placement:
    """A whole image, stretched to a square frame."""
    plain = Placement(0, 0, height, width, frame, frame, 0, 0, frame, frame)
    return plain._replace(**changed)


class Images(ImageBuffer):
    """What an Image's BatchBuffer says of its images, without any pixels."""

    def __init__(self, sizes: list[Any], placements: list[Any]) -> None:
        super().__init__({})
        self.sizes = sizes
        self.placements = placements


@dataclass(frozen=True)
class Image(ImageFeature):
    """Stands for an Image: every image is 20 high and 10 wide, and is mirrored if told."""

    is_mirrored: bool = False

    @property
    def is_random(self) -> bool:
        return False

    def requests(self) -> Mapping[str, ColumnRequest]:
        return {}

    def outputs(self, name: str) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def begin(self, name: str, rows: BatchRows) -> Images:  # noqa: ARG002
        placement = whole(20, 10, is_mirrored=self.is_mirrored)
        return Images([(20, 10)] * rows.count, [placement] * rows.count)


def records(boxes: list[list[Any]], labels: Any = None) -> dict[str, Any]:
    """Columns of records with these boxes, each ymin, xmin, ymax, xmax."""
    if labels is None:
        labels = [list(range(1, len(row) + 1)) for row in boxes]
    sides = {key: ragged([[box[i] for box in row] for row in boxes]) for i, key in enumerate(BOX)}
    return {**sides, OBJECT_LABEL: ragged(labels, np.int64)}


def ragged(rows: list[list[Any]], dtype: Any = np.float32) -> rs.RaggedArray:
    values = np.array([value for row in rows for value in row], dtype)
    return rs.RaggedArray(values, np.cumsum([0, *map(len, rows)]))


def begun(
    feature: rs.Boxes, columns: dict[str, Any], images: Images | None = None
) -> tuple[dict[str, Any], BatchRows]:
    count = len(next(iter(columns.values())))
    places = np.arange(count)
    rows = BatchRows(places, RandomNumbers(0, 0, places), columns=columns)
    if images is not None:
        rows.buffers["image"] = images
    entries = feature.begin("x", rows).entries
    assert tuple(entries) == feature.outputs("x")
    return entries, rows


# -- the geometry ----------------------------------------------------------------------------------

sides = st.integers(1, 14)


@st.composite
def scenes(draw: Any) -> tuple[tuple[int, int], Placement, list[tuple[int, int, int, int]]]:
    """An image's size, any placement of any part of it, and boxes in its pixels."""
    height, width = draw(sides), draw(sides)
    top, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
    placement = Placement(
        top, left, draw(st.integers(1, height - top)), draw(st.integers(1, width - left)),
        draw(sides), draw(sides), draw(st.integers(-9, 9)), draw(st.integers(-9, 9)),
        draw(sides), draw(sides), draw(st.booleans()), draw(st.booleans()),
    )  # fmt: skip
    boxes = []
    for _ in range(draw(st.integers(0, 3))):
        ymin, xmin = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
        ymax, xmax = draw(st.integers(ymin + 1, height)), draw(st.integers(xmin + 1, width))
        boxes.append((ymin, xmin, ymax, xmax))
    return (height, width), placement, boxes


def drawn_and_moved(
    size: tuple[int, int], box: tuple[int, int, int, int], placement: Placement
) -> Any:
    """Which pixels of the frame show the box: drawn into an image, moved pixel by pixel."""
    image = np.zeros(size, bool)
    image[box[0] : box[2], box[1] : box[3]] = True
    p = placement
    frame = np.zeros((p.frame_height, p.frame_width), bool)
    for row in range(p.frame_height):
        for column in range(p.frame_width):
            y, x = row - p.at_top, column - p.at_left  # in the part as it is resized
            if 0 <= y < p.to_height and 0 <= x < p.to_width:
                frame[row, column] = image[
                    p.top + (2 * y + 1) * p.height // (2 * p.to_height),
                    p.left + (2 * x + 1) * p.width // (2 * p.to_width),
                ]
    frame = frame[:, ::-1] if p.is_mirrored else frame
    return frame[::-1] if p.is_upside_down else frame


def assert_covers(box: Any, shown: Any) -> None:
    """Pixels whose centre is in the box show it, and no others; on the line either may be."""
    centres = np.meshgrid(*(np.arange(side) + 0.5 for side in shown.shape), indexing="ij")
    inside = [
        np.minimum(centre - low, high - centre)
        for centre, low, high in zip(centres, box[:2], box[2:], strict=True)
    ]
    depth = np.minimum(*inside)
    assert shown[depth > 1e-3].all()
    assert not shown[depth < -1e-3].any()


@given(scenes())
@settings(max_examples=100)
def test_boxes_cover_the_pixels_they_were_drawn_around(scene: Any) -> None:
    size, placement, boxes = scene
    stored = [[side / size[i % 2] for i, side in enumerate(box)] for box in boxes]
    feature = rs.Boxes(unit="pixel")
    made, rows = begun(feature, records([stored]), Images([size], [placement]))
    assert not rows.failures
    kept = dict(zip(made["x_labels"][0].tolist(), made["x"][0].tolist(), strict=True))
    assert made["x_lengths"].tolist() == [len(kept)]
    assert list(kept) == sorted(kept)
    for label, box in enumerate(boxes, 1):
        shown = drawn_and_moved(size, box, placement)
        if label in kept:
            assert_covers(kept[label], shown)
            ymin, xmin, ymax, xmax = kept[label]
            assert 0 <= ymin < ymax <= placement.frame_height
            assert 0 <= xmin < xmax <= placement.frame_width
        else:
            assert not shown.any()
    fractions, _ = begun(rs.Boxes(), records([stored]), Images([size], [placement]))
    frame = np.array([placement.frame_height, placement.frame_width] * 2)
    np.testing.assert_allclose(fractions["x"] * frame, made["x"], rtol=1e-5)


fractions = st.floats(0.0, 1.0, width=32)


def test_every_row_has_a_placement_of_its_own() -> None:
    box = [0.25, 0.5, 0.75, 1.0]
    boxes: list[list[Any]] = [[box], [], [box, [0.0, 0.0, 0.5, 0.5]], [box], [box]]
    placements = [
        whole(20, 10),
        whole(20, 10),
        whole(20, 10, is_mirrored=True),
        whole(20, 10)._replace(top=10, height=10),  # the lower half
        None,  # its image cannot be read
    ]
    sizes = [(20, 10)] * 4 + [None]
    made, rows = begun(rs.Boxes(unit="pixel"), records(boxes), Images(sizes, placements))
    assert made["x_lengths"].tolist()[:4] == [1, 0, 2, 1]
    assert made["x"].dtype == np.float32
    assert made["x_labels"].dtype == made["x_lengths"].dtype == np.int64
    assert made["x"].tolist()[:4] == [
        [[25, 50, 75, 100], [0, 0, 0, 0]],
        [[0, 0, 0, 0], [0, 0, 0, 0]],
        [[25, 0, 75, 50], [0, 50, 50, 100]],
        [[0, 50, 50, 100], [0, 0, 0, 0]],
    ]
    assert made["x_labels"].tolist()[:4] == [[1, -1], [-1, -1], [1, 2], [1, -1]]
    assert not rows.failures


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("yxyx", [10, 20, 40, 60]),
        ("xyxy", [20, 10, 60, 40]),
        ("xywh", [20, 10, 40, 30]),
        ("cxcywh", [40, 25, 40, 30]),
    ],
)
def test_orders_of_numbers(order: Any, expected: list[float]) -> None:
    boxes, images = records([[[0.1, 0.2, 0.4, 0.6]]]), Images([(10, 10)], [whole(10, 10)])
    made, _ = begun(rs.Boxes(order=order, unit="pixel"), boxes, images)
    np.testing.assert_allclose(made["x"][0, 0], expected, rtol=1e-6)
    made, _ = begun(rs.Boxes(order=order), boxes, images)
    np.testing.assert_allclose(made["x"][0, 0], np.array(expected) / 100, rtol=1e-6)


def test_without_an_image_boxes_are_of_the_stored_image() -> None:
    made, _ = begun(rs.Boxes(order="xyxy"), records([[[0.25, 0.5, 0.75, 1.0]], []]))
    assert made["x"].tolist() == [[[0.5, 0.25, 1.0, 0.75]], [[0.0] * 4]]
    assert made["x_lengths"].tolist() == [1, 0]


def test_what_is_dropped() -> None:
    """The left half is cut away: of the boxes, 0, 1/4, 1/2 and all are left; one had no area."""
    boxes = [
        [0.0, 0.0, 1.0, 0.5],
        [0.0, 0.2, 1.0, 0.6],
        [0.0, 0.4, 1.0, 0.6],
        [0.0, 0.5, 1.0, 0.6],
        [0.0, 0.7, 1.0, 0.7],
    ]
    images = Images([(10, 10)], [Placement(0, 5, 10, 5, 10, 5, 0, 0, 10, 5)])

    def kept(min_visible: float) -> Any:
        feature = rs.Boxes(min_visible=min_visible)
        return begun(feature, records([boxes]), images)[0]["x_labels"].tolist()[0]

    assert kept(0.0) == [2, 3, 4]
    assert kept(0.24) == [2, 3, 4]
    assert kept(0.26) == [3, 4]
    assert kept(0.5) == [3, 4]
    assert kept(1.0) == [4]


@given(edge=st.integers(1, 99), size=st.integers(100, 60_000), scale=st.sampled_from([1, 7, 100]))
def test_what_rounding_leaves_is_dropped(edge: int, size: int, scale: int) -> None:
    """A box ends in the very pixel where the part that is taken begins."""
    side = edge * size // 100
    images = Images(
        [(size, size)],
        [
            Placement(
                0, side, size, size - side, 10 * scale, 10 * scale, 0, 0, 10 * scale, 10 * scale
            )
        ],
    )
    made, _ = begun(rs.Boxes(), records([[[0.0, 0.0, 1.0, side / size]]]), images)
    assert made["x_lengths"].tolist() == [0]
    all_of_it = records([[[0.0, side / size, 1.0, 1.0]]])
    made, _ = begun(rs.Boxes(min_visible=1.0), all_of_it, images)
    assert made["x_lengths"].tolist() == [1]


# -- rotated boxes ---------------------------------------------------------------------------------


def rotated(center: Any, sides: Any, degrees: float) -> Any:
    """The corners of a rotated box, (4, 2), x and y: clockwise from the unturned top left."""
    turn = np.radians(degrees)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    return np.asarray(center) + (signs * np.asarray(sides) / 2) @ matrix.T


@pytest.mark.parametrize("flips", [(), ("is_mirrored",), ("is_upside_down",), ("both",)])
@pytest.mark.parametrize("min_visible", [0.0, 0.5, 1.0])
def test_rotated_boxes(flips: Any, min_visible: float) -> None:
    """A box turned by an angle is one turned by the opposite angle in a flipped image; those stay
    of which enough is visible."""
    rng = np.random.default_rng(len(flips))
    size, frame = np.array([60, 40]), np.array([90, 80])  # of x and y
    low, high = np.array([10, 4]), np.array([55, 36])  # the part that is taken
    part = np.float32([low, (high[0], low[1]), high, (low[0], high[1])])
    scale = frame / (high - low)
    mirrored, upside_down = (
        flips in ((name,), ("both",)) for name in ("is_mirrored", "is_upside_down")
    )
    placement = Placement(4, 10, 32, 45, 80, 90, 0, 0, 80, 90, mirrored, upside_down)
    stored, shares, expected = [], [], []
    for number in range(200):
        center, sides = rng.uniform(0, 1, 2) * size, rng.uniform(1, 30, 2)
        degrees = 0.0 if number % 5 == 0 else rng.uniform(-180, 180)
        corners = rotated(center, sides, degrees)
        stored.append(corners)
        area, _ = cv2.intersectConvexConvex(np.float32(corners), part)
        shares.append(area / sides.prod())
        flip = np.array([mirrored, upside_down])
        center = np.where(flip, low + high - center, center)
        turned = rotated(center, sides, -degrees if mirrored != upside_down else degrees)
        expected.append((turned - low) * scale)
    relative = np.array(stored) / size
    upright = np.concatenate([relative.min(axis=1), relative.max(axis=1)], axis=1).clip(0, 1)
    columns = records([upright[:, [1, 0, 3, 2]].tolist()])
    for at, key in enumerate((CORNER_X, CORNER_Y)):
        columns[key] = ragged([relative[..., at].ravel().tolist()])
    feature = rs.Boxes(corners=True, unit="pixel", order="xyxy", min_visible=min_visible)
    made, rows = begun(feature, columns, Images([(40, 60)], [placement]))
    assert not rows.failures
    is_kept = np.array(shares) >= min_visible * (1 - 1e-4) if min_visible else np.array(shares) > 0
    assert 20 < is_kept.sum() < 200
    assert made["x_labels"][0].tolist() == (np.flatnonzero(is_kept) + 1).tolist()
    assert made["x_corners"].dtype == np.float32
    corners = made["x_corners"][0]
    np.testing.assert_allclose(corners, np.array(expected)[is_kept], atol=1e-3)
    around = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    near = (around >= -1e-3).all(axis=1) & (around[:, 2:] <= frame + 1e-3).all(axis=1)
    np.testing.assert_allclose(made["x"][0][near], around[near], atol=1e-3)
    shares_of_frame, _ = begun(rs.Boxes(corners=True, min_visible=min_visible), columns,
                               Images([(40, 60)], [placement]))  # fmt: skip
    np.testing.assert_allclose(shares_of_frame["x_corners"][0] * frame, corners, atol=1e-3)


@pytest.mark.parametrize("values", [[0.1] * 7, [0.1] * 7 + [np.nan], [0.1] * 7 + [400.0]])
def test_invalid_corners_fail_their_row_alone(values: list[float]) -> None:
    good = [0.1, 0.5, 0.5, 0.1]
    columns = records([[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.0, 1.0, 1.0]] * 2])
    columns |= {
        CORNER_X: ragged([good, values]),
        CORNER_Y: ragged([sorted(good), sorted(good) * 2]),
    }
    made, rows = begun(rs.Boxes(corners=True, length=2), columns)
    assert [*rows.failures] == [1]
    assert made["x_lengths"].tolist() == [1, 0]


# -- room, labels ----------------------------------------------------------------------------------

MANY = [[[0.0, 0.0, 0.5, 0.5]], [[0.0, 0.0, 0.1 * n, 0.5] for n in range(1, 4)], []]


def test_room_for_boxes() -> None:
    made, rows = begun(rs.Boxes(length=4, fill=-2, label_fill=99), records(MANY))
    assert made["x"].shape == (3, 4, 4)
    assert (made["x"][0, 1:] == -2).all()
    assert made["x_labels"].tolist() == [[1, 99, 99, 99], [1, 2, 3, 99], [99] * 4]
    assert made["x_lengths"].tolist() == [1, 3, 0]
    made, rows = begun(rs.Boxes(length=2, too_long="cut"), records(MANY))
    assert made["x_labels"].tolist() == [[1, -1], [1, 2], [-1, -1]]
    assert made["x_lengths"].tolist() == [1, 2, 0]
    assert not rows.failures
    _, rows = begun(rs.Boxes(length=2), records(MANY))
    assert list(rows.failures) == [1]
    error = rows.failures[1]
    assert isinstance(error, CorruptDataError)
    assert error.defect is Defect.FEATURE_SHAPE
    assert (error.found, error.expected) == ("3 boxes", "at most 2")


def test_no_boxes_and_no_rows() -> None:
    made, _ = begun(rs.Boxes(), records([[], []]))
    assert made["x"].shape == (2, 0, 4)
    assert made["x_labels"].shape == (2, 0)
    made, _ = begun(rs.Boxes(), records([]))
    assert made["x"].shape == (0, 0, 4)
    assert made["x_lengths"].shape == (0,)


def test_features_of_unequal_length_fail_their_row_alone() -> None:
    columns = records(MANY, labels=[[1], [1, 2], []])
    made, rows = begun(rs.Boxes(), columns)
    assert list(rows.failures) == [1]
    error = rows.failures[1]
    assert isinstance(error, CorruptDataError)
    assert error.defect is Defect.FEATURE_SHAPE
    assert "'image/object/bbox/ymin' 3" in error.detail
    assert "'image/object/class/label' 2" in error.detail
    assert made["x_lengths"].tolist() == [1, 0, 0]
    assert made["x"].tolist()[0] == [[0.0, 0.0, 0.5, 0.5]]


@pytest.mark.parametrize(
    "box",
    [
        [np.nan, 0, 1, 1],
        [0, 0, np.inf, 1],
        [0.5, 0, 0.4, 1],
        [0, 0, 300, 200],
        [-1.1, 0, 1, 1],
    ],
)
def test_numbers_that_are_no_box_fail_their_row_alone(box: list[float]) -> None:
    good = [0.0, 0.0, 0.5, 0.5]
    made, rows = begun(rs.Boxes(), records([[good], [good, box], [good]]))
    assert list(rows.failures) == [1]
    error = rows.failures[1]
    assert isinstance(error, CorruptDataError)
    assert error.defect is Defect.FEATURE_VALUE
    assert "expected fractions" in error.detail
    assert f"'image/object/bbox/ymin' {box[0]:g}" in error.detail
    assert made["x_lengths"].tolist() == [1, 0, 1]
    assert made["x"][2].tolist() == [good]


# -- whose boxes -----------------------------------------------------------------------------------


def test_of_which_image() -> None:
    two = {"image": Image(), "other": Image()}
    for feature, images in (
        (rs.Boxes(), {}),
        (rs.Boxes(), {"image": Image()}),
        (rs.Boxes(of="other"), two),
    ):
        feature.check("x", {"x": feature, **images})
    for feature, images, words in (
        (rs.Boxes(), two, "'image' or 'other'. Pass of='image' or of='other'"),
        (rs.Boxes(of="imag"), two, "'imag' is not an Image or Patches; did you mean 'image'"),
        (rs.Boxes(of="q"), two, "available: image, other"),
        (rs.Boxes(of="x"), {}, "has no Image"),
        (rs.Boxes(unit="pixel"), {}, "unit='pixel' needs an Image"),
    ):
        with pytest.raises(OptionError, match=words):
            feature.check("x", {"x": feature, **images})
