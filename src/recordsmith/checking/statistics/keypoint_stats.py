"""Statistics of keypoints: how many are labelled, visible and hidden, by class and point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recordsmith.checking.statistics.class_counts import NamedLabel, name_of
from recordsmith.checking.statistics.feature_blocks import FeatureBlock
from recordsmith.checking.statistics.sampling import Builder
from recordsmith.checking.statistics.table_cells import CLASS_ROWS, short
from recordsmith.dataset import MAX_KEYPOINTS, ClassNames, KeypointClasses
from recordsmith.format.example.keys import KEYPOINT_VISIBILITY, OBJECT_LABEL
from recordsmith.support.buffers import Int64Array
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
        self._points: dict[int, Int64Array] = {}  # by label: (point, visibility)

    def add(self, blocks: Mapping[str, FeatureBlock], record_count: int) -> None:
        if KEYPOINT_VISIBILITY not in blocks or OBJECT_LABEL not in blocks:
            return
        of_points = blocks[KEYPOINT_VISIBILITY].numbers("int64")
        of_objects = blocks[OBJECT_LABEL].numbers("int64")
        if of_points is None or of_objects is None:
            return
        (visible, rows), (labels, owners) = of_points, of_objects
        values, objects = (np.bincount(of, minlength=record_count) for of in (rows, owners))
        each = values // np.maximum(objects, 1)
        is_even = each * objects == values
        numbers = np.arange(len(rows)) - (np.cumsum(values) - values)[rows]  # in their records
        chosen = np.flatnonzero(is_even[rows])
        visible, rows, numbers = visible[chosen].clip(0, 2), rows[chosen], numbers[chosen]
        index = (np.cumsum(objects) - objects)[rows] + numbers // each[rows]
        points = np.minimum(numbers % each[rows], MAX_KEYPOINTS - 1)
        self._count += int(objects[is_even & (each > 0)].sum())
        self._labelled += len(np.unique(index[visible > 0]))
        known = labels[index].clip(-1, _OTHER_LABELS)
        for label in np.unique(known).tolist():
            counts = np.zeros((MAX_KEYPOINTS, 3), np.int64)
            np.add.at(counts, (points[known == label], visible[known == label]), 1)
            self._points[label] = self._points.get(label, 0) + counts

    def finish(
        self, class_names: ClassNames | None, keypoint_classes: KeypointClasses
    ) -> KeypointStats | None:
        if not self._count:
            return None
        points = []
        for label, counts in sorted(self._points.items()):
            last = int(np.flatnonzero(counts[:, 1:].any(axis=1)).max(initial=-1)) + 1
            known = keypoint_classes.get(label)
            names = [*map(str, range(last))] if known is None else known.names
            points += [
                KeypointCount(label, name_of(label, class_names), name, *numbers)
                for name, numbers in zip(names if last else (), counts.tolist(), strict=False)
            ]
        return KeypointStats(self._count, self._labelled, tuple(points))
