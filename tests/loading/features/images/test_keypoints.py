"""Keypoints lie where their pixels are, and are those of the boxes in the batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.images import encode, noise
from tests.keypoints import set_keypoint_classes
from tests.loading.features.images.test_boxes import Images, ragged
from tests.loading.features.images.test_object_masks import FITS, example
from tests.raising import raises
from tests.reading import only_batch, written

import recordsmith as rs
from recordsmith.dataset import KeypointClass
from recordsmith.format.example.keys import (
    BOX,
    CORNER_X,
    CORNER_Y,
    KEYPOINT,
    OBJECT_LABEL,
    OBJECT_MASK,
)
from recordsmith.image import Placement
from recordsmith.loading import BatchRows
from recordsmith.loading.features.feature import RandomNumbers
from recordsmith.support.errors import CorruptDataError, OptionError

PEOPLE = [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 14), (15, 16)]
FLIP_INDEX = [0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15]


# -- references: plain readings of the published functions, points are (n, 17, 3) in pixels --------


def flip_of_torchvision(points: Any, width: float) -> Any:
    """`_flip_coco_person_keypoints` of the detection reference."""
    flipped = points[:, FLIP_INDEX].copy()
    flipped[..., 0] = width - flipped[..., 0]
    flipped[flipped[..., 2] == 0] = 0
    return flipped


def place_of_ultralytics(points: Any, p: Placement) -> Any:
    """`Instances`: scale, add_padding, clip, then fliplr and flipud with `flip_idx`."""
    points = points.copy()
    places, visible = points[..., :2], points[..., 2]
    places -= [p.left, p.top]
    places *= [p.to_width / p.width, p.to_height / p.height]
    visible[((places < 0) | (places > [p.to_width, p.to_height])).any(axis=-1)] = 0
    places += [p.at_left, p.at_top]
    frame = p.frame_width, p.frame_height
    visible[((places < 0) | (places > frame)).any(axis=-1)] = 0
    for axis, is_flipped in enumerate((p.is_mirrored, p.is_upside_down)):
        if is_flipped:
            points[..., axis] = frame[axis] - points[..., axis]
            points = points[:, FLIP_INDEX]
    points[points[..., 2] == 0] = 0
    return points


# -- the geometry ----------------------------------------------------------------------------------


def people(count: int, size: tuple[int, int], seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 1, (count, 17, 3)) * [size[1], size[0], 1]
    points[..., 2] = rng.integers(0, 3, (count, 17))
    points[points[..., 2] == 0] = 0
    return points


def begun(people: list[Any], sizes: Any, placements: Any, **options: Any) -> Any:
    """The points of rows, (objects, k, 3), moved: x, y and visibility by row; and the rows."""
    shares = [row / [size[1], size[0], 1] for row, size in zip(people, sizes, strict=True)]
    columns: dict[str, Any] = {
        key: ragged([row[..., at].ravel().tolist() for row in shares], dtype)
        for at, (key, dtype) in enumerate(zip(KEYPOINT, ("f4", "f4", "i8"), strict=True))
    }
    columns |= {key: ragged([[float("max" in key)] * len(row) for row in people]) for key in BOX}
    places = np.arange(len(people))
    rows = BatchRows(places, RandomNumbers(0, 0, places), columns=columns)
    rows.buffers["image"] = Images(sizes, placements)
    rows.buffers["boxes"] = rs.Boxes(labels=None).begin("boxes", rows)
    feature = rs.Keypoints(unit="pixel", points=17, **options).of_datasets([], {})
    entries = feature.begin("x", rows).entries
    both = [entries["x"], entries["x_visible"][..., np.newaxis]]
    return np.concatenate(both, axis=-1), rows


def test_ten_thousand_points_are_where_others_put_them() -> None:
    """Flips and stretching as torchvision; crops, padding and both flips as ultralytics."""
    rng, points, sizes, placements = np.random.default_rng(1), [], [], []
    for row in range(100):
        height, width = rng.integers(20, 700, 2).tolist()
        top, left = rng.integers(0, height // 2), rng.integers(0, width // 2)
        part = (height - top - row % 7, width - left - row % 5) if row % 2 else (height, width)
        start = (top, left) if row % 2 else (0, 0)
        to, at, frame = rng.integers(9, 400, 2), rng.integers(-8, 40, 2), rng.integers(50, 400, 2)
        flips = bool(row & 4), bool(row & 8)
        placements.append(Placement(*start, *part, *to, *at, *frame, *flips))
        sizes.append((height, width))
        points.append(people(6, (height, width), row))
    moved, rows = begun(points, sizes, placements, flip_pairs=PEOPLE)
    assert not rows.failures
    assert moved.size // 3 > 10_000
    expected = [place_of_ultralytics(*row) for row in zip(points, placements, strict=True)]
    np.testing.assert_allclose(moved, expected, atol=1e-3)
    np.testing.assert_array_equal(moved[..., 2], np.array(expected)[..., 2])
    cut_away = (moved[..., 2] == 0) & (np.array(points)[..., 2] > 0)
    assert 1000 < cut_away.sum() < 5000

    kept, _ = begun(points, sizes, placements, flip_pairs=PEOPLE, outside="keep")
    inside = moved[..., 2] > 0
    np.testing.assert_array_equal(kept[inside], moved[inside])
    assert kept[..., 2].sum() == np.array(points)[..., 2].sum()
    stretched = Placement(0, 0, 50, 80, 75, 20, 0, 0, 75, 20, is_mirrored=True)
    points = people(600, (50, 80))
    (moved,), _ = begun([points], [(50, 80)], [stretched], flip_pairs=PEOPLE)
    expected = flip_of_torchvision(points * [20 / 80, 75 / 50, 1], 20)
    np.testing.assert_allclose(moved, expected, atol=1e-4)


@pytest.mark.slow  # to import it
def test_albumentations_counts_pixels() -> None:
    """Its x is the number of a column: (width - 1) - x, which is half a pixel from ours."""
    geometry = pytest.importorskip("albumentations.augmentations.geometric.functional")
    points = people(600, (50, 80))
    points[..., 2] = 2
    whole = [Placement(0, 0, 50, 80, 50, 80, 0, 0, 50, 80, is_mirrored=True)]
    moved, _ = begun([points], [(50, 80)], whole, flip_pairs=())
    flat = np.concatenate([points[..., :2] - 0.5, np.zeros((600, 17, 3))], axis=-1).reshape(-1, 5)
    theirs = geometry.keypoints_hflip(flat, 80)[:, :2] + 0.5
    np.testing.assert_allclose(moved[0, ..., :2].reshape(-1, 2), theirs, atol=1e-4)


# -- with boxes, masks and images ------------------------------------------------------------------


def with_points(number: int, images: Any, **more: Any) -> dict[str, Any]:
    """`example`, with the corners of its boxes, and three points in each: in its middle, on the
    left, on the right."""
    record = example(number, images, **more)
    low_y, low_x, high_y, high_x = (np.asarray(record[key], np.float64) for key in BOX)
    x = low_x[:, np.newaxis] + (high_x - low_x)[:, np.newaxis] * [0.5, 0.3, 0.7]
    y = ((low_y + high_y) / 2).repeat(3)
    visible = np.array([2, 1, 2] * len(low_x), np.int64)
    corners = {CORNER_X: (low_x, high_x, high_x, low_x), CORNER_Y: (low_y, low_y, high_y, high_y)}
    record |= {key: np.stack(sides, axis=-1).ravel() for key, sides in corners.items()}
    return {**record, **dict(zip(KEYPOINT, (x.ravel(), y, visible), strict=True))}


@pytest.fixture
def dataset(tmp_path: Path, images: Any) -> rs.Dataset:
    return written(tmp_path, [with_points(number, images) for number in range(14)])


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("boxes", [{}, {"min_visible": 0.6}, {"length": 2, "too_long": "cut"}])
def test_each_point_lies_on_the_object_of_its_box(
    dataset: rs.Dataset, fit: dict[str, Any], boxes: dict[str, Any]
) -> None:
    """A left point stays on the left of the right one, as both change places in a flipped image."""
    own: dict[str, Any] = {"points": 3, "flip_pairs": [(1, 2)]}
    features = {
        "points": rs.Keypoints(unit="pixel", **own),
        "ragged": rs.Keypoints(of="boxes", count="ragged", **own),
        "outside": rs.Keypoints(of="image", unit="pixel", outside="keep", **own),
        "boxes": rs.Boxes(**boxes),
        "masks": rs.Mask(OBJECT_MASK),
        "image": rs.Image(**fit, flip="horizontal", channels=1),
    }
    batch = only_batch(dataset, features, seed=5)
    points, visible, grey = batch["points"], batch["points_visible"], batch["image"][..., 0]
    assert points.shape == (*batch["boxes"].shape[:2], 3, 2)
    assert (points.dtype, visible.dtype) == (np.float32, np.int64)
    frame = np.array(grey.shape[:0:-1])
    is_row = np.arange(points.shape[1]) < batch["boxes_lengths"][:, np.newaxis]
    assert batch["ragged"].lengths.tolist() == batch["masks"].lengths.tolist()
    np.testing.assert_allclose(batch["ragged"].values * frame, points[is_row], atol=1e-3)
    np.testing.assert_array_equal(batch["ragged_visible"].values, visible[is_row])
    assert not points[visible == 0].any()
    assert not visible[~is_row].any()
    outside = batch["outside"][is_row]
    in_frame = ((outside >= 0) & (outside <= frame)).all(axis=-1)
    assert (visible[is_row] == np.where(in_frame, batch["outside_visible"][is_row], 0)).all()
    assert (visible[visible[..., 0] > 0][:, 0] == 2).all()
    assert (outside[:, 1, 0] < outside[:, 2, 0]).all()
    row, number, point = np.nonzero(visible)
    x, y = np.minimum(points[row, number, point].astype(int), frame - 1).T
    expected = 20 * batch["boxes_labels"][row, number]
    assert np.mean(grey[row, y, x] == expected) > 0.97  # others lie on the edge of a pixel


def test_points_of_patches(dataset: rs.Dataset) -> None:
    features = {
        "image": rs.Patches(20, 3, flip="horizontal", channels=1),
        "points": rs.Keypoints(unit="pixel", points=3, flip_pairs=[(1, 2)]),
        "boxes": rs.Boxes(),
    }
    batch = only_batch(dataset, features)
    points, visible = batch["points"], batch["points_visible"]
    assert points.shape == (*batch["boxes"].shape[:3], 3, 2)
    *at, number, point = np.nonzero(visible)
    x, y = np.minimum(points[(*at, number, point)].astype(int), 19).T
    labels = batch["boxes_labels"][(*at, number)]
    assert len(x) > 20
    assert (batch["image"][..., 0][(*at, y, x)] == 20 * labels).all()


# -- what the datasets show ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        ("nose left_eye right_eye", [(1, 2)]),
        ("lShoulder rShoulder leftEye rightEye LHip RHip", [(0, 1), (2, 3), (4, 5)]),
        ("handL Lamp handR Ramp", [(0, 2)]),
        ("Right-Ear tail Left-Ear", [(0, 2)]),
        ("l_hand r_hand hip_L hip_R", [(0, 1), (2, 3)]),
        ("nose tail", None),
        ("left_thumb left_index", None),
        ("left_eye right_eye right_ear", None),
        ("rear lid", None),
        ("0 1 2", None),
        ("thumb", []),
    ],
)
def test_pairs_by_name(names: str, pairs: Any) -> None:
    """Names that show no pairs, or not of all sides, leave them unknown."""
    known = KeypointClass(tuple(names.split()))
    assert known.pairs() == (None if pairs is None else tuple(pairs))
    assert known._replace(flip_pairs=()).pairs() == ()


def test_each_class_has_its_pairs(tmp_path: Path) -> None:
    """From the manifest: those of `flip_idx`, or by name; k is that of the class with the most."""
    points = [[1, 1, 2, 2, 2, 2, 3, 3, 1, 7, 7, 2], [1, 1, 2, 6, 2, 2, 3, 3, 1, 0, 0, 0]]
    record: dict[str, Any] = {"image": encode(noise(8, 8), "PNG"), OBJECT_LABEL: [1, 2]}
    record |= {key: [float("max" in key)] * 2 for key in BOX}
    x, y, visible = np.reshape(points, (-1, 3)).T
    record |= dict(zip(KEYPOINT, (x / 8, y / 8, visible), strict=True))
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example(record)
    rs.reshard(tmp_path / "a.tfrecord", tmp_path / "packed")
    classes = {1: KeypointClass(tuple("abcd")), 2: KeypointClass(("r_i", "o", "l_i"))}
    set_keypoint_classes(tmp_path / "packed", classes)
    features: dict[str, Any] = {
        "image": rs.Image("image", flip="horizontal"),
        "boxes": rs.Boxes(),
        "x": rs.Keypoints(unit="pixel"),
    }

    def joined() -> set[str]:
        batches = rs.Loader(rs.open(tmp_path / "packed"), features, batch_size=1, epochs=9)
        found = set()
        for batch in batches:
            together = np.concatenate([batch["x"], batch["x_visible"][..., np.newaxis]], axis=-1)
            found.add(str(together[0].astype(int).reshape(2, -1).tolist()))
        return found

    with raises(OptionError, option="flip_pairs", match="a, b, c, d"):
        joined()
    set_keypoint_classes(
        tmp_path / "packed", {**classes, 1: classes[1]._replace(flip_pairs=((0, 3),))}
    )
    flipped = [[1, 7, 2, 6, 2, 2, 5, 3, 1, 7, 1, 2], [5, 3, 1, 2, 2, 2, 7, 1, 2, 0, 0, 0]]
    assert joined() == {str(points), str(flipped)}
    features["boxes"] = rs.Boxes(labels=None)
    with raises(OptionError, option="flip_pairs", match="without labels"):
        joined()
    features["x"] = rs.Keypoints(flip_pairs=[(0, 4)])
    with raises(OptionError, option="flip_pairs", match="0 to 3"):
        joined()


# -- errors ----------------------------------------------------------------------------------------

IMAGE, BOXES = rs.Image(size=8), rs.Boxes()


@pytest.mark.parametrize(
    ("features", "option"),
    [
        ({"x": rs.Keypoints()}, "of"),
        ({"x": rs.Keypoints(of="image"), "image": IMAGE, "other": IMAGE}, "of"),
        ({"x": rs.Keypoints(), "a": BOXES, "b": BOXES}, "of"),
        ({"x": rs.Keypoints(of="c"), "a": BOXES}, "of"),
        ({"x": rs.Keypoints(unit="pixel"), "a": BOXES}, "unit"),
        (
            {"x": rs.Keypoints(points=3), "a": BOXES, "i": rs.Image(size=8, flip="both")},
            "flip_pairs",
        ),
        ({"x": rs.Keypoints(), "a": BOXES}, "points"),
        ({"x": rs.Keypoints(count="ragged", points=3), "a": BOXES, "i": rs.Patches(8, 2)}, "count"),
        ({"x": rs.Keypoints(points=2, flip_pairs=[(1, 2)]), "a": BOXES}, "flip_pairs"),
    ],
)
def test_options_that_conflict(dataset: rs.Dataset, features: Any, option: str) -> None:
    with raises(OptionError, option=option):
        rs.Loader(dataset, features, batch_size=2)


def test_rows_with_invalid_points_fail_alone() -> None:
    """Another number of them, or a labelled one that is no place; what is not labelled may be."""
    rows: list[Any] = [people(1, (9, 9), row) for row in range(7)]
    rows[1] = rows[1][:, :16]
    for row, (at, value) in enumerate([(0, np.nan), (1, 30.0), (2, 3), (2, -1)], 2):
        rows[row][0, 4] = 2
        rows[row][0, 4, at] = value
    rows[6][0, 4] = np.nan, np.inf, 0
    whole = [Placement(0, 0, 9, 9, 9, 9, 0, 0, 9, 9)] * 7
    moved, batch = begun(rows, [(9, 9)] * 7, whole)
    assert [*batch.failures] == [1, 2, 3, 4, 5]
    assert all(isinstance(error, CorruptDataError) for error in batch.failures.values())
    np.testing.assert_allclose(moved[0], rows[0], atol=1e-4)
    assert moved[6, 0, 4].tolist() == [0, 0, 0]


def test_no_objects_and_no_rows(dataset: rs.Dataset) -> None:
    features = {"x": rs.Keypoints(points=3), "boxes": rs.Boxes(length=2, too_long="cut")}
    assert rs.Loader(dataset, features, batch_size=2).spec()["x"].shape == (None, 2, 3, 2)
    assert rs.Loader(dataset[:0], features, batch_size=2).spec()["x"].shape == (None, 2, 3, 2)
    assert only_batch(dataset[:1], features)["x"].shape == (1, 2, 3, 2)
