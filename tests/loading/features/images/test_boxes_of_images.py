"""Boxes and the images of a loader move together: what is seen in a box is what was drawn in it.

The images are black with one white rectangle, around which the box is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.reading import written

import recordsmith as rs
from recordsmith.format.example.keys import BOX

IMAGES: list[tuple[int, int, tuple[int, int, int, int]]] = [
    # height, width, the rectangle: ymin, xmin, ymax, xmax
    (40, 60, (8, 30, 24, 52)),
    (64, 32, (40, 4, 60, 12)),
    (50, 50, (20, 20, 30, 30)),
    (33, 77, (0, 0, 33, 20)),
]


@pytest.fixture
def dataset(tmp_path: Path, images: Any) -> rs.Dataset:
    examples = []
    for height, width, (ymin, xmin, ymax, xmax) in IMAGES:
        pixels = np.zeros((height, width), np.uint8)
        pixels[ymin:ymax, xmin:xmax] = 255
        sides = ymin / height, xmin / width, ymax / height, xmax / width
        examples.append(
            {
                "image/encoded": images.encode(Image.fromarray(pixels), "PNG"),
                "image/object/class/label": [3],
                **dict(zip(BOX, ([side] for side in sides), strict=True)),
            }
        )
    return written(tmp_path, examples)


@pytest.mark.parametrize(
    "options",
    [
        {"size": (48, 32)},
        {"size": (48, 32), "flip": "both"},
        {"size": 32, "fit": "crop-or-pad"},
        {"size": 32, "fit": "crop-or-pad", "flip": "horizontal"},
        {"size": 32, "fit": "center-crop"},
        {"size": (30, 45), "fit": "contain", "flip": "vertical"},
        {"size": 40, "fit": "random-crop", "flip": "both"},
        {"fit": "pad"},
        {"fit": "pad", "shorter_side": 45, "flip": "both"},
    ],
)
def test_boxes_lie_on_what_they_were_drawn_around(dataset: Any, options: dict[str, Any]) -> None:
    features = {
        "image": rs.Image("image/encoded", channels=1, **options),
        "boxes": rs.Boxes(unit="pixel"),
    }
    seen = 0
    loader = rs.Loader(dataset, features, batch_size=4, shuffle=True, epochs=6, threads=0)
    for batch in loader:
        is_white = batch["image"][..., 0] > 127
        for row, count in enumerate(batch["boxes_lengths"].tolist()):
            if not count:
                assert is_white[row].sum() <= is_white[row].shape[0]  # a line that is not quite cut
                continue
            seen += 1
            assert batch["boxes_labels"][row].tolist()[0] == 3
            ymin, xmin, ymax, xmax = batch["boxes"][row, 0].tolist()
            rows, columns = np.nonzero(is_white[row])
            if not len(rows):  # less than a pixel is left
                assert min(ymax - ymin, xmax - xmin) < 1.5
                continue
            found = (rows.min(), columns.min(), rows.max() + 1, columns.max() + 1)
            np.testing.assert_allclose((ymin, xmin, ymax, xmax), found, atol=1.01)
    assert seen > 8


def test_boxes_alone_are_no_pixels(dataset: Any) -> None:
    with rs.Loader(dataset, {"boxes": rs.Boxes()}, batch_size=4, threads=0) as loader:
        list(loader)
        assert not loader.stats().has_pixels
