"""Statistics of boxes: against NumPy and pycocotools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.format.example.keys import BOX, HEIGHT, WIDTH

YMIN, XMIN, YMAX, XMAX = BOX


def boxes_of(*boxes: tuple[float, float, float, float]) -> dict[str, Any]:
    """A record with boxes (ymin, xmin, ymax, xmax)."""
    sides = np.array(boxes, np.float32).reshape(-1, 4).T
    return dict(zip(BOX, sides, strict=True))


def random_records(count: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    records = []
    for number in range(count):
        start = rng.uniform(0, 0.5, (int(rng.integers(0, 6)), 2))
        stop = start + rng.gamma(1, 0.15, start.shape).clip(0.001, 0.5)
        record = boxes_of(*np.hstack([start, stop]))
        if number % 4:
            record |= {HEIGHT: int(rng.integers(50, 500)), WIDTH: int(rng.integers(50, 500))}
        records.append(record if number % 5 else {})
    return records


@pytest.mark.parametrize("threads", [1, 3])
def test_numbers_and_sizes(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr("recordsmith.checking.statistics.stats_report._READ_TOGETHER_BYTES", 1)
    records = random_records(90)
    for shard in range(3):
        path = tmp_path / f"train-{shard:05}-of-00004.tfrecord"
        write(path, [record or {"other": 1} for record in records[shard::3]])
    write(tmp_path / "train-00003-of-00004.tfrecord", [{"other": 1}] * 5)
    found = rs.stats(tmp_path, threads=threads).boxes
    assert found is not None
    per_record = [len(record.get(YMIN, ())) for record in records] + [0] * 5
    assert found.count == sum(per_record)
    assert found.per_image.count == 95
    assert found.per_image.sample is not None
    assert dict(found.per_image.sample.top) == dict(zip(*np.unique(per_record, return_counts=True)))  # noqa: B905
    full = [record for record in records if record]
    heights = np.concatenate([record[YMAX] - record[YMIN] for record in full])
    widths = np.concatenate([record[XMAX] - record[XMIN] for record in full])
    for numbers, expected in (
        (found.heights, heights),
        (found.widths, widths),
        (found.areas, heights * widths),
    ):
        assert numbers.count == len(expected)
        assert numbers.sample is not None
        for share, value in numbers.sample.quantiles.items():
            wanted = np.quantile(expected, share, method="inverted_cdf")
            assert value == pytest.approx(wanted, rel=1e-5)
    assert (found.degenerate, found.outside, found.mismatched) == (0, 0, 0)


def test_sizes_in_pixels_are_those_of_coco(write, tmp_path: Path) -> None:
    """Every box is found by pycocotools in the area range that counts it."""
    params = pytest.importorskip("pycocotools.cocoeval").Params("bbox")
    records = random_records(200)
    found = rs.stats(write(tmp_path / "a.tfrecord", [each or {"x": 1} for each in records])).boxes
    assert found is not None
    areas = np.concatenate(
        [
            (record[YMAX] - record[YMIN]).astype(float) * record[HEIGHT]
            * (record[XMAX] - record[XMIN]).astype(float) * record[WIDTH]
            for record in records
            if HEIGHT in record
        ]
    )  # fmt: skip
    ranges = dict(zip(params.areaRngLbl, params.areaRng, strict=True))
    for name in ("small", "medium", "large"):
        low, high = ranges[name]
        assert getattr(found, name) == np.count_nonzero((areas >= low) & (areas <= high)) > 0
    assert found.small + found.medium + found.large == len(areas) < found.count


def test_invalid_boxes(write, tmp_path: Path) -> None:
    records = [
        boxes_of((0, 0, 1, 1), (0.2, 0.3, 0.4, 0.5)),
        boxes_of((0.5, 0.1, 0.5, 0.9)),  # no height
        boxes_of((0.1, 0.9, 0.5, 0.1), (0, 0, 1, float("nan"))),  # swapped, NaN
        boxes_of((10, 20, 30, 40), (-0.00001, 0, 0.5, 1.00001)),  # pixels; rounding
        boxes_of((0, 0, 1, 1)) | {XMAX: [0.5, 0.6]},
        {YMIN: [0.1]},
        boxes_of(),
    ]
    path = write(tmp_path / "a.tfrecord", records)
    found = rs.stats(path)
    boxes = found.boxes
    assert boxes is not None
    assert (boxes.count, boxes.degenerate, boxes.outside, boxes.mismatched) == (7, 3, 1, 2)
    assert boxes.areas.count == 4
    assert boxes.per_image.count == 5
    assert (boxes.small, boxes.medium, boxes.large) == (0, 0, 0)
    (finding,) = (each for each in found.findings if each.kind == "invalid-boxes")
    assert finding.text.startswith("of 7 boxes, 3 without area; 1 beyond the image")


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_reason(write, tmp_path: Path) -> None:
    inf, huge = float("inf"), 3e38
    records = [
        boxes_of((-inf, 0, inf, 1), (inf, 0, inf, 1), (-huge, -huge, huge, huge)),
        {
            key: np.array([value])
            for key, value in zip(BOX, (0, -(2**63), 1, 2**63 - 1), strict=True)
        },
    ]
    sizes = [{HEIGHT: 0, WIDTH: 2**63 - 1}, {HEIGHT: -5, WIDTH: 7}]
    for number, record in enumerate(records):
        path = tmp_path / f"{number}.tfrecord"
        found = rs.stats(write(path, [record | size for size in sizes])).boxes
        assert found is not None
        assert found.degenerate + found.outside == found.count == 2 * len(record[YMIN])
        json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("record", [{"a": 1}, {"image/object/class/label": [1]}])
def test_no_boxes(write, tmp_path: Path, record: dict[str, Any]) -> None:
    assert rs.stats(write(tmp_path / "a.tfrecord", [record])).boxes is None


def test_boxes_that_are_not_floats(write, tmp_path: Path) -> None:
    whole = {key: np.array([value]) for key, value in zip(BOX, (0, 0, 1, 1), strict=True)}
    text = {key: [b"1"] for key in BOX}
    found = rs.stats(write(tmp_path / "a.tfrecord", [whole, whole])).boxes
    assert found is not None
    assert (found.count, found.areas.max) == (2, 1)
    none = rs.stats(write(tmp_path / "b.tfrecord", [text])).boxes
    assert none is not None
    assert none.count == 0
