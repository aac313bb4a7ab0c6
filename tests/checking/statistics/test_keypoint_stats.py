"""Statistics of keypoints, against plain loops over the records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import KeypointClass

from ...keypoints import set_keypoint_classes

NAMES = ("nose", "left eye", "right eye")


def random_record(rng: Any) -> dict[str, Any]:
    """Objects of classes 1 with 3, 2 with 2 and 3 without keypoints; some records have none."""
    count = int(rng.integers(0, 5))
    labels = rng.integers(1, 4, count)
    visible = rng.integers(0, 3, (count, 3)) * (np.arange(3) < (4 - labels[:, None]))
    visible[labels == 3] = 0
    if rng.random() < 0.1:
        visible = np.zeros((count, 0), np.int64)
    return {"image/object/class/label": labels, "image/object/keypoint/visibility": visible.ravel()}


@pytest.mark.parametrize("threads", [1, 3])
def test_counts(write: Any, tmp_path: Path, monkeypatch: Any, threads: int) -> None:
    monkeypatch.setattr("recordsmith.checking.statistics.stats_report._READ_TOGETHER_BYTES", 1)
    rng = np.random.default_rng(0)
    records = [random_record(rng) for _ in range(300)]
    wrong = {"image/object/class/label": [1, 1], "image/object/keypoint/visibility": [2, 2, 2]}
    (tmp_path / "old").mkdir()
    for shard in range(3):
        path = tmp_path / f"old/train-{shard:05}-of-00003.tfrecord"
        write(path, [*records[shard::3], wrong, {"other": 1}])
    rs.reshard(tmp_path / "old", tmp_path / "new", shards=3)
    set_keypoint_classes(tmp_path / "new", {1: KeypointClass(NAMES), 3: KeypointClass(("a",))})
    found = rs.stats(tmp_path / "new", threads=threads)
    objects = [
        (label, row)
        for labels, visible in map(dict.values, records)
        if len(visible)
        for label, row in zip(labels.tolist(), visible.reshape(-1, 3).tolist(), strict=True)
    ]
    expected = Counter((label, *cell) for label, row in objects for cell in enumerate(row))
    stats = found.keypoints
    assert stats is not None
    assert (stats.count, stats.labelled) == (len(objects), sum(any(row) for _, row in objects))
    names = [(point.label, point.point) for point in stats.points]
    assert names == [*((1, name) for name in NAMES), (2, "0"), (2, "1")]
    for point in stats.points:
        number = NAMES.index(point.point) if point.label == 1 else int(point.point)
        counts = [point.unlabelled, point.hidden, point.visible]
        assert counts == [expected[point.label, number, value] for value in range(3)]
    (table,) = [t for t in found.content().tables if "keypoints of" in t.heads[0]]
    assert [row[0] for row in table.rows][:4] == [*(f"1: {name}" for name in NAMES), "2: 0"]
    assert found.to_json()["keypoints"]["points"][0]["visible"] == stats.points[0].visible


def test_without_keypoints(write: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [{"image/object/class/label": [1]}])
    assert rs.stats(tmp_path / "a.tfrecord").keypoints is None
