"""Keypoints of objects, such as the joints of people, transformed with their image and its boxes.

In a flipped image, left and right points change places, so that a left eye remains one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from recordsmith.dataset import KeypointClasses, join_keypoint_classes
from recordsmith.format.example import FeatureSpec, RaggedArray
from recordsmith.format.example.keys import KEYPOINT
from recordsmith.loading.features.feature import (
    BatchBuffer,
    BatchRows,
    ColumnRequest,
    Feature,
    RowFeature,
)
from recordsmith.loading.features.images.boxes import (
    OUTSIDE,
    Boxes,
    BoxUnit,
    boxes_to_follow,
    check_frame,
    check_lengths,
    followed_boxes,
    ragged,
)
from recordsmith.loading.features.images.patches import Patches
from recordsmith.loading.features.numbers import corrupt, pad
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError, option
from recordsmith.support.explaining import check_option, check_word
from recordsmith.support.number_options import count_number, is_whole
from recordsmith.support.words import count as counted
from recordsmith.support.words import first_of

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset


@dataclass(frozen=True)
class Keypoints(RowFeature):
    """Keypoints of the objects of `Boxes`: float32, (batch, n, k, 2), x and y in the frame.

    Adds `<name>_visible`, int64, (batch, n, k): 2 for a visible point, 1 for a hidden one, and 0
    for one that is not labelled or not in the image, whose x and y are 0. Rows are those of the
    boxes in the batch, padded with 0; k is the number of points of the class with the most. Those
    of `Patches` are (batch, count, n, k, 2) and (batch, count, n, k).

    In a flipped image, x becomes width - x, and left and right points change places: by the pairs
    in the manifest, or else by names that differ in "left" and "right". If neither shows the pairs
    and images are flipped, a loader raises OptionError.

    Attributes:
        keys: the keys of x, y (fractions of the stored image) and visibility: k for every object.
        of: the name of the Boxes, or of their Image or Patches. Default: the only one.
        unit: a `fraction` of the frame's width and height, or a `pixel` of the frame.
        count: `padded`, or `ragged`: RaggedArrays of (objects, k, 2) and (objects, k).
        points: k. Default: as in the manifest; without one, it is required.
        outside: `zero` makes points outside the visible part of the image unlabelled; or `keep`.
        flip_pairs: the numbers, from 0, of points that change places in a flipped image, such as
            [(1, 2), (3, 4)]; () if none do. Default: those of the dataset, by class.

    Example:
        >>> Keypoints(flip_pairs=[(1, 2), (3, 4)], unit="pixel").flip_pairs
        ((1, 2), (3, 4))
    """

    has_pixels: ClassVar[bool] = False

    keys: tuple[str, str, str] = KEYPOINT
    of: str | None = None
    _: KW_ONLY
    unit: BoxUnit = "fraction"
    count: Literal["padded", "ragged"] = "padded"
    points: int | None = None
    outside: Literal["zero", "keep"] = "zero"
    flip_pairs: Sequence[tuple[int, int]] | None = None
    orders: Sequence[tuple[Int64Array, list[int]]] = field(
        default=(), init=False, repr=False, compare=False
    )
    unpaired: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        are_keys = isinstance(self.keys, tuple) and len(set(self.keys)) == 3
        check_option(are_keys, "keys", self.keys, "a tuple with the keys of x, y and visibility")
        check_word("unit", self.unit, get_args(BoxUnit))
        check_word("count", self.count, ("padded", "ragged"))
        check_word("outside", self.outside, ("zero", "keep"))
        if self.points is not None:
            count_number("points", self.points, 65_536)
        if self.flip_pairs is not None:
            object.__setattr__(self, "flip_pairs", _checked_pairs(self.flip_pairs))

    def requests(self) -> dict[str, ColumnRequest]:
        kinds: Any = zip(self.keys, ("float", "float", "int64"), strict=True)
        return {key: ColumnRequest((kind,), "ragged") for key, kind in kinds}

    def outputs(self, name: str) -> tuple[str, ...]:
        return (name, f"{name}_visible")

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        boxes = features.get(boxes_to_follow(name, self.of, features) or "")
        if not isinstance(boxes, Boxes):
            problem = f"feature {name!r}: Keypoints need Boxes, whose objects have the points"
            raise OptionError(problem, option="of", value=self.of, remedy="Declare Boxes, too.")
        image: Any = check_frame(name, self, boxes.of, features)
        if self.count == "ragged" and isinstance(image, Patches):
            problem = f"feature {name!r}: keypoints of Patches cannot be ragged"
            raise OptionError(problem, option="count", value=self.count, expected="'padded'")
        are_mixed = len(self.orders) > 1 and boxes.labels is None
        unpaired = "objects without labels" if are_mixed else self.unpaired
        if unpaired and getattr(image, "flip", None) is not None:
            raise OptionError(
                f"feature {name!r}: images are flipped at random, but which points of {unpaired} "
                "are left and right is unknown",
                option="flip_pairs",
                remedy=f"Pass {option('flip_pairs', [(1, 2)])} if points 1 and 2, counted from 0, "
                f"change places, and so on, or {option('flip_pairs', ())} if none do.",
            )

    def of_datasets(
        self, datasets: Sequence[Dataset], specs: Mapping[str, FeatureSpec]
    ) -> Keypoints:
        """Return this feature with what the datasets have on the points of each class."""
        classes: KeypointClasses = {}
        for dataset in datasets:
            classes = join_keypoint_classes(
                classes, dataset.keypoint_classes, "another dataset of the mix"
            )
        count = self.points or max((len(known.names) for known in classes.values()), default=0)
        if not count and any(map(len, datasets)):
            problem = f"feature {self.keys[0]!r}: the number of points of each object is unknown"
            raise OptionError(problem, option="points", remedy=f"Pass {option('points', 17)}.")
        pairs: dict[int, Any] = {label: known.pairs() for label, known in classes.items()}
        if self.flip_pairs is not None:
            pairs = {0: self.flip_pairs}
        unknown = [label for label, of_class in pairs.items() if of_class is None]
        labels: dict[Any, list[int]] = {}  # by the pairs of these classes
        for label, of_class in pairs.items():
            labels.setdefault(of_class or (), []).append(label)
        feature = replace(self, points=count or None)
        orders = [(_order(own, count), those) for own, those in labels.items() if count]
        object.__setattr__(feature, "orders", orders)
        unpaired = "" if pairs else "the objects"
        if unknown:
            unpaired = f"label {unknown[0]} ({first_of(classes[unknown[0]].names, 9)})"
        object.__setattr__(feature, "unpaired", unpaired)
        return feature

    def begin(self, name: str, rows: BatchRows) -> BatchBuffer:
        boxes = followed_boxes(self.of, rows)
        assert boxes is not None
        frames, kept, count = boxes.frames.in_unit(self.unit), boxes.kept, self.points or 0
        columns = {key: ragged(rows.columns[key]) for key in self.keys}
        expected = f"{counted(count, 'point')} for each object"
        is_good = check_lengths(rows, columns, [count] * 3, kept.counts, expected)
        lengths = kept.numbers.lengths
        frame_of = np.repeat(np.arange(len(lengths)), lengths)
        row_of = frame_of // math.prod(boxes.shape[1:])
        is_kept = is_good[row_of]
        frame_of, row_of, numbers = (
            of_kept[is_kept] for of_kept in (frame_of, row_of, kept.numbers.values)
        )
        lengths = np.bincount(frame_of, minlength=len(lengths)).astype(np.int64)
        numbered = numbers[:, np.newaxis] * count + np.arange(count)
        x, y, visible = (
            column.values[column.row_splits[row_of][:, np.newaxis] + numbered]
            for column in columns.values()
        )
        stored = np.stack([y, x], axis=-1).astype(np.float64)
        self._check_values(rows, row_of, stored, visible)
        points = frames.place(frame_of, stored)
        if self.outside == "zero":
            first, last = (side[frame_of, np.newaxis] for side in (frames.first, frames.last))
            visible = visible * ((points >= first) & (points <= last)).all(axis=-1)
        points = np.where(visible[..., np.newaxis] != 0, points[..., ::-1], 0).astype(np.float32)
        # an image that is flipped in both directions is only rotated
        is_flipped = frames.is_flipped[frame_of].sum(axis=1) == 1
        for order, labels in self.orders:
            chosen = is_flipped
            if len(self.orders) > 1 and boxes.labels is not None:
                of_objects = ragged(rows.columns[boxes.labels])
                label = of_objects.values[of_objects.row_splits[row_of] + numbers]
                chosen = is_flipped & np.isin(label, labels)
            points[chosen], visible[chosen] = points[chosen][:, order], visible[chosen][:, order]
        entries: dict[str, Any] = {}
        for output, values in zip(self.outputs(name), (points, visible), strict=True):
            if self.count == "ragged":
                entries[output] = RaggedArray(values, offsets_from_lengths(lengths))
            else:
                padded, _ = pad(values, lengths, kept.width, 0)
                entries[output] = padded.reshape(boxes.shape + padded.shape[1:])
        return BatchBuffer(entries)

    def _check_values(self, rows: BatchRows, row_of: Int64Array, points: Any, visible: Any) -> None:
        """Let the rows with invalid points fail."""
        are_near = ((points >= -OUTSIDE) & (points <= 1 + OUTSIDE)).all(axis=-1)  # never of NaN
        is_right = (visible == 0) | (are_near & (visible > 0) & (visible <= 2))
        wrong = np.argwhere(~is_right)
        failed, firsts = np.unique(row_of[wrong[:, 0]], return_index=True)
        for row, at in zip(failed.tolist(), map(tuple, wrong[firsts]), strict=True):
            y, x = points[at].tolist()
            found = f"x {x:.7g}, y {y:.7g}, visibility {visible[at]}"
            expected = "fractions of the image from 0 to 1, and visibility 0, 1 or 2"
            rows.fail(row, corrupt(self.keys[0], "has an invalid point", row, found, expected))


def _order(pairs: Sequence[tuple[int, int]], count: int) -> Int64Array:
    """Return the order of points in a flipped image."""
    order = np.arange(count)
    for pair in pairs:
        expected = f"numbers of points from 0 to {count - 1}"
        check_option(max(pair) < count, "flip_pairs", pairs, expected)
        order[list(pair)] = pair[::-1]
    return order


def _checked_pairs(pairs: Any) -> tuple[tuple[int, int], ...]:
    try:
        checked = tuple((one, other) for one, other in pairs)
    except (TypeError, ValueError):  # not a list of two each
        checked = ((-1, -1),)
    numbers = [number for pair in checked for number in pair]
    is_right = all(is_whole(number) and number >= 0 for number in numbers)
    is_right = is_right and len(set(numbers)) == len(numbers)
    expected = "pairs of different numbers of points, such as [(1, 2), (3, 4)]"
    check_option(is_right, "flip_pairs", pairs, expected)
    return checked
