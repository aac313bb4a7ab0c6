"""A batch on a page: the pixels of the arrays are the pixels of the page."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.dataset import KeypointClass
from recordsmith.stores import Location

RED, BLUE = (200, 10, 20), (10, 20, 210)


def _batch() -> np.ndarray:
    batch = np.zeros((2, 96, 96, 3), np.uint8)
    batch[0, :, :48], batch[0, :, 48:] = RED, BLUE
    batch[1] = BLUE
    return batch


def _share(path: Location, colour: tuple[int, int, int]) -> float:
    """How much of the page has about this colour, in tiles of 288 by 288."""
    with Image.open(io.BytesIO(path.read())) as image:
        page = np.asarray(image.convert("RGB")).astype(int)
    return float((np.abs(page - colour).max(axis=2) < 6).sum() / 288**2)


@pytest.mark.parametrize(
    "change",
    [
        lambda batch: batch,
        lambda batch: batch.transpose(0, 3, 1, 2),
        lambda batch: batch.astype(np.uint16) * 257,
        lambda batch: (batch / 255).astype(np.float32),
        lambda batch: np.concatenate([batch, np.full((2, 96, 96, 1), 255, np.uint8)], axis=3),
    ],
    ids=["uint8", "channels first", "uint16", "float32", "alpha"],
)
def test_images_are_drawn_as_they_are(change: Any, place: Location) -> None:
    path = rs.draw_batch(change(_batch()), place / "page.png")
    assert _share(path, RED) == pytest.approx(0.5, abs=0.02)
    assert _share(path, BLUE) == pytest.approx(1.5, abs=0.02)


def test_normalised_images_are_stretched(tmp_path: Path) -> None:
    grey = np.linspace(-2.1, 2.6, 96 * 96, dtype=np.float32).reshape(1, 96, 96, 1)
    path = rs.draw_batch(grey, tmp_path / "page.png")
    assert _share(path, (2, 2, 2)) > 0.02
    assert _share(path, (253, 253, 253)) > 0.02


def test_masks_and_boxes_are_drawn_over_their_images(tmp_path: Path) -> None:
    masks = np.zeros((2, 96, 96), np.uint8)
    masks[1, :, :48] = 1
    plain = rs.draw_batch(_batch(), tmp_path / "plain.png")
    masked = rs.draw_batch(_batch(), tmp_path / "masked.png", masks=masks)
    assert _share(plain, BLUE) - _share(masked, BLUE) == pytest.approx(0.5, abs=0.02)
    boxes = np.array([[[0, 0, 0, 0], [0.25, 0.25, 0.75, 0.75]], [[0, 0, 0, 0], [0, 0, 0, 0]]])
    boxed = rs.draw_batch(
        _batch(), tmp_path / "boxed.png", boxes=boxes, box_labels=[[0, 1], [0, 0]]
    )
    assert _share(boxed, (240, 110, 20)) > 0.01  # the colour of class 1
    assert _share(plain, (240, 110, 20)) == 0


def test_boxes_have_the_names_of_their_classes(tmp_path: Path) -> None:
    boxes, labels = [np.array([[0.2, 0.1, 0.9, 0.9]])] * 2, [[1], [7]]

    def drawn(name: str, **options: Any) -> np.ndarray:
        path = rs.draw_batch(_batch(), tmp_path / name, boxes=boxes, box_labels=labels, **options)
        return np.asarray(Image.open(io.BytesIO(path.read())))

    plain = drawn("a.png")
    named = drawn("b.png", class_names=("daisy", "rose"))
    halves = np.array_split(named != plain, 2, axis=1)
    assert [half.any() for half in halves] == [True, False]  # no class has the number 7


def test_corners_and_keypoints_are_those_of_the_boxes(tmp_path: Path) -> None:
    """An empty box is skipped with its corners and points; lines need the skeletons."""
    boxes = np.array([[[0, 0, 0, 0], [0.1, 0.1, 0.9, 0.9]]] * 2)
    corners = np.array([[[(0, 0)] * 4, [(0.5, 0.1), (0.9, 0.5), (0.5, 0.9), (0.1, 0.5)]]] * 2)
    points = np.array([[[(0.2, 0.2, 2)] * 2, [(0.4, 0.5, 2), (0.6, 0.5, 2)]]] * 2)
    own = {"boxes": boxes, "box_labels": [[2, 1]] * 2}

    def drawn(name: str, **more: Any) -> np.ndarray:
        path = rs.draw_batch(_batch(), tmp_path / name, **own, **more)
        return np.asarray(Image.open(io.BytesIO(path.read()))).astype(int)

    upright, rotated = drawn("a.png"), drawn("b.png", corners=corners)
    pointed = drawn("c.png", corners=corners, points=points)
    classes = {1: KeypointClass(("a", "b"), ((0, 1),))}
    joined = drawn("d.png", corners=corners, points=points, keypoint_classes=classes)
    assert np.count_nonzero(upright != rotated) > np.count_nonzero(rotated != pointed) > 100
    assert np.count_nonzero(pointed != joined) > 100
    assert np.array_equal(rotated, drawn("e.png", corners=corners, points=points * [1, 1, 0]))


def test_captions_and_an_empty_batch(tmp_path: Path) -> None:
    rs.draw_batch(_batch(), tmp_path / "a.png", captions=[b"daisy", 3])
    rs.draw_batch(_batch(), tmp_path / "b.png", captions=["rose", 4])
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()
    assert rs.draw_batch(_batch()[:0], tmp_path / "none.png").exists()
    assert rs.draw_batch(np.full((1, 8, 8, 3), np.nan), tmp_path / "nan.png").exists()


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (np.zeros((2, 8, 8)), {}, r"shape \(2, 8, 8\)"),
        (np.zeros((2, 8, 8, 2)), {}, "uint8, uint16 or floats"),
        (np.zeros((2, 4, 8, 8, 3)), {}, r"pass images.reshape\(-1, \*images.shape\[2:\]\)"),
        (np.zeros((2, 8, 8, 3), np.int64), {}, "dtype int64"),
        (np.zeros((2, 0, 8, 3)), {}, r"shape \(2, 0, 8, 3\)"),
        ([np.zeros((8, 8, 3)), np.zeros((9, 8, 3))], {}, r"shape \(2,\)"),
        (np.zeros((2, 8, 8, 3)), {"boxes": np.full((2, 1, 4), 7)}, "up to 7"),
        (
            np.zeros((2, 8, 8, 3)),
            {"masks": np.zeros((1, 8, 8))},
            "masks has 1 .* 2 ",
        ),
        (np.zeros((2, 8, 8, 3)), {"captions": "abc"}, "captions has 3 .* 2 "),
        (np.zeros((2, 8, 8, 3)), {"points": "abc"}, "points has 3 .* 2 "),
        (np.zeros((2, 8, 8, 3)), {"columns": 0}, "columns must be"),
    ],
)
def test_invalid_batches(images: Any, options: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(rs.OptionError, match=message):
        rs.draw_batch(images, tmp_path / "page.png", **options)
    assert not list(tmp_path.iterdir())
