"""Objects of an example (boxes with classes), and decimal numbers that restore their edges.

Features follow TensorFlow's object detection API: edges are float32, relative to the stored image.
Annotation files hold pixels (VOC, COCO) or centre and size (YOLO) as decimals. A reader computes
`float32(number / size)` in float64 and rounds once. The numbers have the fewest digits with which
that gives the original value.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from recordsmith.dataset import LABEL_MAP_NAME, Dataset, class_names_of, label_map_to_bytes
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import FolderExporter
from recordsmith.exporting.images import (
    IMAGE_KEYS,
    MASK_KEYS,
    ExportedImage,
    Warn,
    read_image,
    read_mask,
)
from recordsmith.format.example import Features
from recordsmith.format.example.feature_values import (
    all_floats,
    all_ints,
    all_texts,
    first_value,
    object_values,
)
from recordsmith.format.example.keys import (
    BOX,
    CORNER_X,
    CORNER_Y,
    KEYPOINT,
    OBJECT_LABEL,
    OBJECT_TEXT,
)
from recordsmith.support.errors import OptionError, SourceError

OBJECT_KEYS = frozenset((*BOX, OBJECT_LABEL, OBJECT_TEXT))
_MAX_DIGITS = 20
_FLOAT32 = struct.Struct("f")


@dataclass
class Object:
    """One object.

    xmin, ymin, xmax, ymax: float32 values, relative to the image.
    label, name: of its class.
    corners: x and y of the four corners, those of the box without others.
    points: x, y and visibility of its keypoints.
    """

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    label: int
    name: str
    corners: Sequence[float]
    points: Sequence[Sequence[float]]


_NO_BOXES = (
    "no record has boxes, so the annotations are empty; to keep the class of each image, export to "
    "the format folder, or huggingface if images have several"
)


class BoxSample(NamedTuple):
    """An example and what was read of it; `objects` is None without features for boxes."""

    example: Features
    split: str
    image: ExportedImage
    mask: ExportedImage | None
    objects: list[Object] | None


class BoxFolder(FolderExporter):
    """Writes images with their boxes and masks.

    also_kept: features that the format holds in addition to image, mask and boxes.
    """

    also_kept: frozenset[str]

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        self._is_empty = True
        self._classes = LabelNames.known(dataset.class_names)

    def add(self, example: Features, split: str, position: int) -> None:
        out = self._out
        image = read_image(example, out.warn)
        mask = read_mask(example, image, out.warn)
        has_objects = any(key in example for key in BOX)  # features for boxes, even if empty
        objects = read_objects(example, self._classes, out.warn) if has_objects else None
        self._is_empty &= mask is None and objects is None
        self.write(BoxSample(example, split, image, mask, objects))
        out.count_dropped(example, IMAGE_KEYS | MASK_KEYS | OBJECT_KEYS | self.also_kept)

    def finish(self) -> None:
        if self._is_empty:
            self._out.tally.problems.add(_NO_BOXES)

    def write_label_map(self, names: Mapping[int, str]) -> None:
        """Write the class numbers, which the annotation files of the format lack."""
        if not names:
            return
        try:
            known = class_names_of(names)
        except OptionError as error:
            self._out.tally.problems.add(f"{LABEL_MAP_NAME} was not written: {error}")
        else:
            self._out.write(LABEL_MAP_NAME, label_map_to_bytes(known))

    @abstractmethod
    def write(self, sample: BoxSample) -> None:
        """Write an example; raises as `add`."""


def read_objects(example: Features, classes: LabelNames, warn: Warn) -> list[Object]:
    for key in BOX:
        if first_value(example, key) is not None and not len(all_floats(example, key)):
            raise SourceError(f"{key} is not a float feature; expected edges from 0 to 1")
    edges = [all_floats(example, key) for key in BOX]
    labels, names = all_ints(example, OBJECT_LABEL), all_texts(example, OBJECT_TEXT)
    lists: tuple[Sized, ...] = (*edges, labels, names)
    keys = (*BOX, OBJECT_LABEL, OBJECT_TEXT)
    lengths = {key: len(values) for key, values in zip(keys, lists, strict=True)}
    count = max(lengths.values())
    without_classes = {key for key in (OBJECT_LABEL, OBJECT_TEXT) if not lengths[key]}
    if any(length != count for key, length in lengths.items() if key not in without_classes):
        counts = ", ".join(f"{length} {key}" for key, length in lengths.items())
        raise SourceError(f"the features of its objects differ in length: {counts}")
    xs, ys = all_floats(example, CORNER_X), all_floats(example, CORNER_Y)
    if len(xs) != len(ys) or len(xs) not in (0, 4 * count):
        found = f"{len(xs)} {CORNER_X}, {len(ys)} {CORNER_Y}"
        raise SourceError(f"the corners of its {count} objects are not 4 of each: {found}")
    if not all(np.isfinite(values).all() for values in (*edges, xs, ys)):
        raise SourceError("an edge or corner of a box is not a finite number")
    quads = np.stack([xs, ys], axis=1).reshape(-1, 8).tolist()
    objects = []
    points = object_values(example, KEYPOINT, count)
    if points is None or not np.isfinite(points).all():
        raise SourceError(f"the keypoints of its {count} objects are incomplete or not numbers")
    for number in range(count):
        label, name = classes.of(
            int(labels[number]) if len(labels) else None, names[number] if names else None, warn
        )
        ymin, xmin, ymax, xmax = (float(values[number]) for values in edges)
        upright = [xmin, ymin, xmax, ymin, xmax, ymax, xmin, ymax]
        quad = quads[number] if quads else upright
        own = points[number].tolist()
        objects.append(Object(xmin, ymin, xmax, ymax, label, name, quad, own))
        if not (0 <= xmin < xmax <= 1 and 0 <= ymin < ymax <= 1):
            warn(f"box {number} ({name}) is empty, inverted or outside the image")
        labelled = points[number, points[number, :, 2] > 0, :2]
        if ((labelled < 0) | (labelled > 1)).any():
            warn(f"a keypoint of box {number} ({name}) is outside the image")
    return objects


@dataclass
class LabelNames:
    """Class names by label: those of the dataset, then those found in records."""

    names: dict[int, str] = field(default_factory=dict)
    _labels: dict[str, int] = field(default_factory=dict)
    _largest: int = 0

    @classmethod
    def known(cls, class_names: Sequence[str | None] | None) -> LabelNames:
        names = {label: name for label, name in enumerate(class_names or ()) if name is not None}
        labels = {name: label for label, name in names.items()}
        return cls(names, labels, max(names, default=0))

    def of(self, label: int | None, name: str | None, warn: Warn) -> tuple[int, str]:
        """Complete the label and name of a class; one of them may be missing."""
        if label is None:
            name = name or "object"
            if name not in self._labels:
                self._add(self._largest + 1, name)
            return self._labels[name], name
        known = self.names.get(label)
        if name is None:
            return label, str(label) if known is None else known
        if known is None:
            self._add(label, name)
        elif known != name:
            warn(f"class {label} is named {name!r} here but {known!r} elsewhere")
        return label, name

    def _add(self, label: int, name: str) -> None:
        self.names[label] = name
        self._largest = max(self._largest, label)
        self._labels.setdefault(name, label)


def pixels(edge: float, size: int) -> float:
    """The shortest `p` with `float32(p / size) == edge`; an int if possible."""
    return _shortest(edge * size, lambda p: is_same(p / size, edge))


def pixel_extent(start: float, edge: float, size: int) -> float:
    """The shortest `w` with `float32((start + w) / size) == edge`; `start` is in pixels."""
    return _shortest(edge * size - start, lambda w: is_same((start + w) / size, edge))


def centre_and_extent(low: float, high: float) -> tuple[float, float]:
    """Short `c`, `w` with `float32(c - w / 2) == low` and `float32(c + w / 2) == high`.

    If no such numbers exist (one edge is less than 1e-8 of the other), returns the nearest ones.
    """
    for digits in range(1, _MAX_DIGITS):
        extent = round(high - low, digits)
        for exact in ((low + high) / 2, low + extent / 2, high - extent / 2):
            centre = round(exact, digits)
            if is_same(centre - extent / 2, low) and is_same(centre + extent / 2, high):
                return centre, extent
    return (low + high) / 2, high - low


def inner_rectangle(corners: Sequence[float]) -> list[float]:
    """The corners of the rectangle around the part of a quadrilateral that is inside the image.

    Empty if no part is.
    """
    points = [*zip(corners[::2], corners[1::2], strict=True)]
    for axis, edge, sign in ((0, 0, 1), (0, 1, -1), (1, 0, 1), (1, 1, -1)):
        kept = []
        for start, stop in zip(points, (*points[1:], *points[:1]), strict=True):
            before, after = (sign * (point[axis] - edge) for point in (start, stop))
            if before >= 0:
                kept.append(start)
            if before * after < 0:
                share = before / (before - after)
                x, y = (a + share * (b - a) for a, b in zip(start, stop, strict=True))
                kept.append((edge, y) if axis == 0 else (x, edge))
        points = kept
    if not points:
        return []
    rounded = np.array(points, np.float32)
    (left, top), (right, bottom) = rounded.min(axis=0).tolist(), rounded.max(axis=0).tolist()
    is_empty = left == right or top == bottom
    return [] if is_empty else [left, top, right, top, right, bottom, left, bottom]


def decimal(number: float) -> str:
    """Format a number without an exponent; integers without a dot."""
    if number == int(number):
        return str(int(number))
    return format(Decimal(repr(float(number))), "f")


def shortest_float(value: np.float32) -> float:
    """The float64 with the fewest digits that rounds to this float32."""
    return float(str(value))


def _shortest(exact: float, fits: Callable[[float], bool]) -> float:
    for digits in range(_MAX_DIGITS):
        candidate = round(exact, digits)
        if fits(candidate):
            return int(candidate) if candidate.is_integer() else candidate
    return exact


def is_same(number: float, edge: float) -> bool:
    """Whether both numbers round to the same float32."""
    try:
        return _FLOAT32.pack(number + 0.0) == _FLOAT32.pack(edge + 0.0)  # -0.0 is 0.0
    except OverflowError:
        return False
