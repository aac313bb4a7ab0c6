"""Keypoints of objects, such as the joints of people, transformed with their image and its boxes.

In a flipped image, left and right points change places, so that a left eye remains one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from recordsmith.dataset import PREVIEW_COUNT
from recordsmith.format.example import FeatureSpec, RaggedArray, decode_columns
from recordsmith.format.example.keys import KEYPOINT, OBJECT_LABEL
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
    ImageFrames,
    boxes_to_follow,
    check_frame,
    followed_boxes,
    ragged,
)
from recordsmith.loading.features.images.patches import Patches
from recordsmith.loading.features.numbers import corrupt, pad
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import DataError, Defect, OptionError, option
from recordsmith.support.explaining import check_option, check_word
from recordsmith.support.number_options import count_number, is_whole
from recordsmith.support.words import count as counted
from recordsmith.support.words import first_of

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset, KeypointClass

_Pairs = tuple[tuple[int, int], ...]

_SIDE = re.compile(r"left|right|(?<![a-z0-9])[lr](?![a-z0-9])")
_OTHER_SIDE = {"left": "right", "right": "left", "l": "r", "r": "l"}


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
        labels: the key of the label of each object; None for objects without labels.
        of: the name of the Boxes, or of their Image or Patches. Default: the only one.
        unit: a `fraction` of the frame's width and height, or a `pixel` of the frame.
        count: `padded`, or `ragged`: RaggedArrays of (objects, k, 2) and (objects, k).
        points: k. Default: as in the manifest; without one, that of most of the first records.
        outside: `zero` makes points outside the visible part of the image unlabelled; or `keep`.
        flip_pairs: the numbers, from 0, of points that change places in a flipped image, such as
            [(1, 2), (3, 4)]; () if none do. Default: those of the dataset, by class.

    Example:
        >>> Keypoints(flip_pairs=[(1, 2), (3, 4)], unit="pixel").flip_pairs
        ((1, 2), (3, 4))
    """

    has_pixels: ClassVar[bool] = False

    keys: tuple[str, str, str] = KEYPOINT
    labels: str | None = OBJECT_LABEL
    of: str | None = None
    _: KW_ONLY
    unit: BoxUnit = "fraction"
    count: Literal["padded", "ragged"] = "padded"
    points: int | None = None
    outside: Literal["zero", "keep"] = "zero"
    flip_pairs: Sequence[tuple[int, int]] | None = None
    flips: _Flips | None = field(default=None, init=False, repr=False, compare=False)

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
        kinds: Any = dict(zip(self.keys, ("float", "float", "int64"), strict=True))
        if self.labels is not None:
            kinds[self.labels] = "int64"
        return {key: ColumnRequest((kind,), "ragged") for key, kind in kinds.items()}

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
        if self.flips is None or getattr(image, "flip", None) is None:
            return
        unpaired = self.flips.unpaired
        if self.labels is None and len(self.flips.orders) > 1:
            unpaired = "objects without labels"
        if unpaired:
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
        own = [dataset.keypoint_classes for dataset in datasets if dataset.keypoint_classes]
        if any(classes != own[0] for classes in own):
            problem = "the datasets of the mix have different keypoints"
            raise OptionError(problem, option="features", remedy="Make a loader for each.")
        classes = own[0] if own else {}
        points = self.points or max((len(one.names) for one in classes.values()), default=0)
        points = points or self._count_in_first(datasets, specs)
        pairs: dict[int, Any] = {label: _pairs_of(one) for label, one in classes.items()}
        if self.flip_pairs is not None:
            pairs = {0: self.flip_pairs}
        unpaired = "" if pairs else "the objects"
        unknown = [label for label, found in pairs.items() if found is None]
        if unknown:
            unpaired = f"label {unknown[0]} ({first_of(classes[unknown[0]].names, 9)})"
        swaps: dict[_Pairs, int] = {}
        numbers = {at: swaps.setdefault(own or (), len(swaps)) for at, own in pairs.items()}
        feature = replace(self, points=points or None)
        flips = _Flips(_orders(swaps if points else (), points), numbers, unpaired)
        object.__setattr__(feature, "flips", flips)
        return feature

    def _count_in_first(self, datasets: Sequence[Dataset], specs: Mapping[str, FeatureSpec]) -> int:
        """Return how many points most of the first records have for each object."""
        counts: Counter[int] = Counter()
        wanted, start = {key: specs[key] for key in self.requests()}, np.zeros(1, np.int64)
        for dataset in datasets if self.labels is not None else ():
            with suppress(DataError):  # a loader reports it
                for payload in islice(dataset.records(), PREVIEW_COUNT):
                    columns: Any = decode_columns(payload, start, start + len(payload), wanted)
                    if objects := len(columns[self.labels].values):
                        counts[len(columns[self.keys[0]].values) // objects] += 1
        if not counts and any(map(len, datasets)):
            problem = f"feature {self.keys[0]!r}: the number of points of each object is unknown"
            raise OptionError(problem, option="points", remedy=f"Pass {option('points')}.")
        return max(counts, key=counts.__getitem__, default=0)

    def begin(self, name: str, rows: BatchRows) -> BatchBuffer:
        boxes = followed_boxes(self.of, rows)
        assert boxes is not None
        patches = () if boxes.images is None else boxes.images.patches
        per_row = math.prod(patches)
        frames = ImageFrames.of(boxes.images, rows.count, per_row)
        columns = {key: ragged(rows.columns[key]) for key in self.requests()}
        kept, counts, count = boxes.kept, boxes.kept.counts, self.points or 0
        is_good = np.ones(rows.count, np.bool_)
        for key, column in columns.items():
            per_object = count if key in self.keys else 1
            for row in np.flatnonzero(column.lengths != counts * per_object).tolist():
                is_good[row] = False
                problem = f"does not have {counted(per_object, 'value')} for each object"
                found = f"{len(column[row])} for {counted(counts[row], 'object')}"
                rows.fail(row, corrupt(key, problem, row, found, defect=Defect.FEATURE_SHAPE))
        frame_of = np.repeat(np.arange(rows.count * per_row), kept.numbers.lengths)
        is_kept = is_good[frame_of // per_row]
        frame_of, numbers = frame_of[is_kept], kept.numbers.values[is_kept]
        row_of = frame_of // per_row
        x, y, visible = (
            column.values[
                (column.row_splits[row_of] + numbers * count)[:, np.newaxis] + np.arange(count)
            ]
            for column in map(columns.__getitem__, self.keys)
        )
        stored = np.stack([y, x], axis=-1).astype(np.float64)
        self._check_values(rows, row_of, stored, visible)
        points = frames.place(frame_of, stored)
        if self.outside == "zero":
            first, last = (side[frame_of, np.newaxis] for side in (frames.first, frames.last))
            visible = visible * ((points >= first) & (points <= last)).all(axis=-1)
        points = frames.in_unit(self.unit, frame_of, frames.flip(frame_of, points))
        points = np.where(visible[..., np.newaxis] != 0, points[..., ::-1], 0).astype(np.float32)
        # an image that is flipped in both directions is only rotated
        (flipped,) = np.nonzero(frames.is_flipped[frame_of].sum(axis=1) == 1)
        if len(flipped) and self.flips is not None:
            number = np.zeros(len(flipped), np.int64)
            if len(self.flips.orders) > 1 and self.labels is not None:
                column = columns[self.labels]
                labels = column.values[column.row_splits[row_of[flipped]] + numbers[flipped]]
                number = np.array([self.flips.numbers.get(one, 0) for one in labels.tolist()])
            order = self.flips.orders[number]
            points[flipped] = np.take_along_axis(points[flipped], order[..., np.newaxis], axis=1)
            visible[flipped] = np.take_along_axis(visible[flipped], order, axis=1)
        lengths = np.bincount(frame_of, minlength=rows.count * per_row).astype(np.int64)
        entries: dict[str, Any] = {}
        for output, values in zip(self.outputs(name), (points, visible), strict=True):
            if self.count == "ragged":
                entries[output] = RaggedArray(values, offsets_from_lengths(lengths))
            else:
                padded, _ = pad(values, lengths, kept.width, 0)
                entries[output] = padded.reshape(rows.count, *patches, *padded.shape[1:])
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


class _Flips(NamedTuple):
    """Orders of points in a flipped image, the number of that of a label, and whose is unknown."""

    orders: Int64Array
    numbers: Mapping[int, int]
    unpaired: str


def _pairs_of(known: KeypointClass) -> _Pairs | None:
    """Return the pairs of a class, or those that its names show; None if they show none."""
    if known.flip_pairs is not None:
        return known.flip_pairs
    names = [name.casefold() for name in known.names]
    numbers = {name: number for number, name in enumerate(names)}
    others = [numbers.get(_SIDE.sub(lambda side: _OTHER_SIDE[side[0]], name)) for name in names]
    pairs = tuple((one, other) for one, other in enumerate(others) if other and one < other)
    return pairs if pairs and {*others} == {*range(len(others))} else None


def _orders(swaps: Collection[_Pairs], count: int) -> Int64Array:
    """Return the order of `count` points in a flipped image for each list of pairs."""
    orders = np.tile(np.arange(count), (len(swaps), 1))
    for order, pairs in zip(orders, swaps, strict=True):
        for pair in pairs:
            expected = f"numbers of points from 0 to {count - 1}"
            check_option(max(pair) < count, "flip_pairs", pairs, expected)
            order[list(pair)] = pair[::-1]
    return orders


def _checked_pairs(pairs: Any) -> _Pairs:
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
