"""What `lint` finds about keypoints and corners, in records and in annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from ...images import encode, noise
from ...keypoints import random_coco

CHECKS = ["keypoint-outside", "keypoints-together", "keypoint-at-origin", "empty-corners"]
GOOD = [(0.1, 0.1, 2), (0.9, 0.9, 1), (0, 0, 0)]
SQUARE = [(0.1, 0.1), (0.9, 0.1), (0.9, 0.9), (0.1, 0.9)]
CASES: list[tuple[Any, Any, list[str]]] = [
    (GOOD, SQUARE, []),
    (GOOD, [(1.5, -1), (2, -1), (2, 0.5), (1.5, 0.5)], []),  # rotated boxes may leave the image
    ([(0, 0, 0)] * 3, SQUARE, []),
    ([(0.5, 0.5, 2), (0, 0, 0), (0, 0, 0)], SQUARE, []),
    ([(1.5, 0.1, 2), (0.9, -0.1, 1), (7, 7, 0)], SQUARE, CHECKS[:1]),
    ([(0.5, 0.5, 2), (0, 0, 0), (0.5, 0.5, 1)], SQUARE, CHECKS[1:2]),
    ([(0, 0, 2)] * 3, SQUARE, CHECKS[1:2]),
    ([(0, 0, 1), *GOOD[1:]], SQUARE, CHECKS[2:3]),
    (GOOD, [(0.1, 0.1), (0.5, 0.5), (0.9, 0.9), (0.1, 0.1)], CHECKS[3:]),
    (GOOD, [(0.5, 0.5)] * 4, CHECKS[3:]),
    (GOOD[:2], SQUARE[:3], []),  # not as many for each object: not checked here
]


@pytest.mark.parametrize(("points", "corners", "expected"), CASES)
def test_records(tmp_path: Path, points: Any, corners: Any, expected: list[str]) -> None:
    """The second object of a record is at fault, whose box is known."""
    features: dict[str, Any] = {
        f"image/object/keypoint/{key}": [*column]
        for key, column in zip(
            ("x", "y", "visibility"), zip(*GOOD, *points, strict=True), strict=True
        )
    }
    features |= {
        f"image/object/corner/{key}": [*map(float, column)]
        for key, column in zip("xy", zip(*SQUARE, *corners, strict=True), strict=True)
    }
    features |= {f"image/object/bbox/{side}": [0.0, 0.25] for side in ("ymin", "xmin")}
    features |= {f"image/object/bbox/{side}": [0.5, 0.75] for side in ("ymax", "xmax")}
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example(features | {"image/encoded": encode(noise(8, 8), "PNG")})
    report = rs.lint(tmp_path / "a.tfrecord", only=CHECKS)
    assert [str(found.check) for found in report.findings] == expected
    for found in report.findings:
        (example,) = found.examples
        assert (example.place, example.box) == ("object 2", (0.25, 0.25, 0.75, 0.75))
    page = rs.save_html(rs.lint(tmp_path / "a.tfrecord"), tmp_path / "lint.html")
    assert ("data:image" in page.read().decode()) == bool(expected)


def test_annotations(tmp_path: Path) -> None:
    """Keypoints that cannot be packed are errors, with the place in their file."""
    document = random_coco(tmp_path, 3, keypoints=["a", "b"])
    first, _, third = document["annotations"]
    first["keypoints"], third["keypoints"] = [1, 1, 2, 9999, 1, 2], [1, 1, 2]
    (tmp_path / "annotations/instances_train.json").write_text(json.dumps(document))
    findings = rs.lint(tmp_path, only=[*CHECKS, "keypoint-count"]).findings
    assert {str(found.check) for found in findings} == {"keypoint-count", "keypoint-outside"}
    assert all("instances_train.json" in found.examples[0].place for found in findings)
