"""YOLO in the layout of Ultralytics: images, text files with boxes, and `data.yaml`.

    images/<split>/<name>, labels/<split>/<name>.txt, masks/<split>/<name>.png, data.yaml

A line has class, centre and size, relative to the image, with enough decimals to restore the same
float32 for every edge; then x, y and visibility of each keypoint, if the dataset has any. If one
edge of a box is less than 1e-8 of the other, float64 has no such centre, and the nearest edge is
restored. Classes are renumbered from 0 without gaps if necessary.
In `data.yaml`, the splits are train, val and test, as Ultralytics expects: `val` has the images of
the split valid or validation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from recordsmith.dataset import Dataset, standard_name
from recordsmith.exporting.boxes import (
    BoxFolder,
    BoxSample,
    Object,
    centre_and_extent,
    decimal,
    inner_rectangle,
    is_same,
    shortest_float,
)
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.format.example.keys import (
    CORNER_X,
    CORNER_Y,
    KEYPOINT,
    KEYPOINT_NUM,
    OBJECT_LABEL,
    SOURCE_ID,
)
from recordsmith.support.errors import SourceError
from recordsmith.support.explaining import check_word
from recordsmith.support.words import count

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_BATCH = 1024
_CLIPPED = "beyond the edge of its image became the rectangle around the part inside"
_OUTSIDE = "outside of its image left out"


class YoloFiles(BoxFolder):
    options = (*BoxFolder.options, "yolo_task")

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        super().begin(dataset, out)
        features = dataset.schema.features
        kept = {"obb": (CORNER_X, CORNER_Y), "pose": (*KEYPOINT, KEYPOINT_NUM), "detect": ()}
        found = (task for task, keys in kept.items() if not keys or keys[0] in features)
        self._task = next(found) if self.yolo_task is None else self.yolo_task
        check_word("yolo_task", self._task, tuple(kept))
        self.also_kept = frozenset((SOURCE_ID, *kept[self._task]))
        self._moved: Counter[str] = Counter()
        labels = set(self._classes.names)
        if OBJECT_LABEL in features and not labels:
            labels = _find_labels(dataset)
        self._numbers = {label: number for number, label in enumerate(sorted(labels))}
        self._points = dataset.keypoint_classes
        self._point_count = max((len(known.names) for known in self._points.values()), default=0)

    def write(self, sample: BoxSample) -> None:
        example, split, image, mask, objects = sample
        out = self._out
        lines = self._lines(objects or ())
        part = out.split_name(split)
        name, _ = out.write_image(
            example,
            image,
            f"images/{part}",
            mask=mask,
            masks=f"masks/{part}",
            companions=[(f"labels/{part}", ".txt")],
        )
        out.write(f"labels/{part}/{name}.txt", "".join(lines).encode())

    def finish(self) -> None:
        super().finish()
        for what, number in self._moved.items():
            self._out.tally.problems.add(f"{count(number, 'object')} {what}")
        moved = [(label, number) for label, number in self._numbers.items() if number != label - 1]
        if moved and moved != [(label, label) for label in self._numbers]:
            self._out.tally.problems.add(
                "classes were renumbered from 0 without gaps: "
                + ", ".join(f"{label} became {number}" for label, number in moved[:3])
                + (f" and {len(moved) - 3:,} more" if len(moved) > 3 else "")
            )
        lines = self._split_lines()
        lines.append("names:\n" if self._numbers else "names: {}\n")
        lines += [
            f"  {number}: {_quoted(self._classes.names.get(label, str(label)))}\n"
            for label, number in self._numbers.items()
        ]
        self._out.write("data.yaml", "".join([*lines, *self._point_lines()]).encode())

    def _split_lines(self) -> list[str]:
        """Return the lines of `data.yaml` with the folders of the splits.

        Ultralytics reads train, val and test, each of which is a folder or a list of folders.
        """
        folders: dict[str, list[str]] = {}
        for split in self._out.splits:
            key = standard_name(split)
            if key == "trainval" or (key is None and len(self._out.splits) == 1):
                key = "train"
            if key is None:
                self._out.tally.problems.add(
                    f"Ultralytics does not read the split {split!r}, only train, val and test"
                )
            folders.setdefault(key or split, []).append(
                _quoted(f"images/{self._out.split_name(split)}")
            )
        return [
            f"{key if _PLAIN.fullmatch(key) else _quoted(key)}: "
            f"{paths[0] if len(paths) == 1 else '[' + ', '.join(paths) + ']'}\n"
            for key, paths in folders.items()
        ]

    def _lines(self, objects: Sequence[Object]) -> list[str]:
        lines = []
        for number, obj in enumerate(objects):
            label = self._numbers.setdefault(obj.label, len(self._numbers))
            if self._task == "obb":
                lines += self._corner_line(label, obj.corners)
                continue
            numbers = []
            for low, high in ((obj.xmin, obj.xmax), (obj.ymin, obj.ymax)):
                centre, extent = centre_and_extent(low, high)
                numbers.append((centre, extent))
                if not is_same(centre - extent / 2, low) or not is_same(centre + extent / 2, high):
                    self._out.warn(f"box {number}: its edges cannot be restored exactly")
            (x, width), (y, height) = numbers
            points = self._point_numbers(obj) if self._task == "pose" else ()
            lines.append(f"{label} {' '.join(map(decimal, (x, y, width, height, *points)))}\n")
        return lines

    def _point_numbers(self, obj: Object) -> Iterator[float]:
        """Yield x, y and visibility of all keypoints, as many for each object of the dataset."""
        self._point_count = self._point_count or len(obj.points)
        if len(obj.points) != self._point_count:
            raise SourceError(
                f"an object has {len(obj.points)} keypoints, others have {self._point_count}"
            )
        for x, y, visibility in obj.points:
            yield from (shortest_float(np.float32(x)), shortest_float(np.float32(y)), visibility)

    def _point_lines(self) -> list[str]:
        """Return the lines of `data.yaml` about keypoints."""
        if self._task != "pose" or not self._point_count:
            return []
        lines = [f"kpt_shape: [{self._point_count}, 3]\n"]
        pairs = {known.pairs() for known in self._points.values()}
        if len(pairs) == 1 and (swapped := pairs.pop()) is not None:
            others = dict(swapped) | {other: one for one, other in swapped}
            numbers = [others.get(number, number) for number in range(self._point_count)]
            lines.append(f"flip_idx: {numbers}\n")
        else:
            self._out.tally.problems.add(
                "data.yaml has no flip_idx, so Ultralytics does not flip images: which keypoints "
                "change places is unknown, or differs between classes"
            )
        lines += ["kpt_names:\n"] if self._points else []
        lines += [
            f"  {self._numbers[label]}: [{', '.join(map(_quoted, known.names))}]\n"
            for label, known in self._points.items()
            if label in self._numbers
        ]
        if any(known.skeleton for known in self._points.values()):
            self._out.tally.problems.add("YOLO has no skeletons, so they are left out")
        return lines

    def _corner_line(self, label: int, corners: Sequence[float]) -> list[str]:
        """The line of a rotated box; Ultralytics refuses numbers that are not from 0 to 1."""
        if not 0 <= min(corners) <= max(corners) <= 1:
            corners = inner_rectangle(corners)
            self._moved[_CLIPPED if corners else _OUTSIDE] += 1
        numbers = (decimal(shortest_float(np.float32(value))) for value in corners)
        return [f"{label} {' '.join(numbers)}\n"] if corners else []


def _find_labels(dataset: Dataset) -> set[int]:
    """The labels of all records, read in one pass, for a dataset without a list of classes."""
    labels: set[int] = set()
    for batch in dataset.batches(_BATCH, [OBJECT_LABEL]):
        column = batch[OBJECT_LABEL]
        labels.update(np.unique(getattr(column, "values", column)).tolist())  # type: ignore[arg-type]
    return labels


def _quoted(text: str) -> str:
    """A YAML string in double quotes, whose escapes include those of JSON."""
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
