"""Statistics of keypoints: how many are labelled, visible and hidden, by class and point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordsmith.checking.statistics.class_counts import NamedLabel, name_of
from recordsmith.checking.statistics.feature_blocks import FeatureBlock
from recordsmith.checking.statistics.sampling import Builder
from recordsmith.checking.statistics.table_cells import CLASS_ROWS, short
from recordsmith.dataset import MAX_KEYPOINTS, ClassNames, KeypointClasses
from recordsmith.format.example.keys import KEYPOINT_VISIBILITY, OBJECT_LABEL
from recordsmith.support.reports import Bar, ReportTable
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count

_OTHER_LABELS = 1000  # greater ones are counted together


@dataclass(frozen=True)
class KeypointCount(NamedLabel):
    """A keypoint of the objects of a class.

    point: its name, or its number.
    unlabelled, hidden, visible: how many objects have it with visibility 0, 1 and 2.
    """

    point: str
    unlabelled: int
    hidden: int
    visible: int


@dataclass(frozen=True, repr=False)
class KeypointStats(Report):
    """The keypoints of objects.

    count: number of objects in records whose objects all have as many keypoints.
    labelled: how many of them have a labelled keypoint.
    points: those of each class with labelled keypoints.
    """

    count: int
    labelled: int
    points: tuple[KeypointCount, ...]

    def table(self) -> ReportTable:
        most = max((point.hidden + point.visible for point in self.points), default=1)
        rows = [
            (
                f"{point}: {short(point.point)}",
                f"{labelled:,}",
                f"{labelled / (labelled + point.unlabelled):.1%}",
                f"{point.visible / labelled:.1%}" if labelled else "",
                Bar(labelled / most),
            )
            for point in self.points
            for labelled in [point.hidden + point.visible]
        ]
        title = f"keypoints of {self.labelled:,} of {format_count(self.count, 'object')}"
        heads = (title, "labelled", "of its class", "visible", "")
        return ReportTable("", heads, rows, heads[1:4], ("",), terminal_rows=CLASS_ROWS)


class KeypointBuilder(Builder):
    """Counts keypoints."""

    def __init__(self) -> None:
        self._count = self._labelled = 0
        self._points: Counter[int] = Counter()  # by `_code`

    def add(self, blocks: Mapping[str, FeatureBlock], record_count: int) -> None:
        keys = (KEYPOINT_VISIBILITY, OBJECT_LABEL)
        columns = [blocks[key].numbers("int64") if key in blocks else None for key in keys]
        if None in columns:
            return
        (visible, rows), (labels, owners) = columns  # type: ignore[misc]
        values, objects = (np.bincount(of, minlength=record_count) for of in (rows, owners))
        each = values // np.maximum(objects, 1)
        is_even = (each * objects == values) & (each > 0)
        labels, each = labels[is_even[owners]], each[owners][is_even[owners]]
        visible = visible[is_even[rows]].clip(0, 2)
        starts = np.cumsum(each) - each
        points = np.minimum(np.arange(len(visible)) - np.repeat(starts, each), MAX_KEYPOINTS - 1)
        self._count += len(labels)
        if len(labels):
            self._labelled += int(np.count_nonzero(np.maximum.reduceat(visible, starts)))
        known = np.repeat(labels.clip(-1, _OTHER_LABELS), each)
        codes, counts = np.unique(_code(known, points, visible), return_counts=True)
        self._points.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))

    def finish(
        self, class_names: ClassNames | None, keypoint_classes: KeypointClasses
    ) -> KeypointStats | None:
        if not self._count:
            return None
        points = []
        last = {code // 3 // MAX_KEYPOINTS: code // 3 for code in sorted(self._points) if code % 3}
        for label, stop in ((label - 1, code % MAX_KEYPOINTS) for label, code in last.items()):
            known = keypoint_classes.get(label)
            names = [*map(str, range(stop + 1))] if known is None else known.names
            for number, name in enumerate(names):
                counts = (self._points[_code(label, number, seen)] for seen in range(3))
                points.append(KeypointCount(label, name_of(label, class_names), name, *counts))
        return KeypointStats(self._count, self._labelled, tuple(points))


def _code(label: Any, point: Any, visibility: Any) -> Any:
    return ((label + 1) * MAX_KEYPOINTS + point) * 3 + visibility
