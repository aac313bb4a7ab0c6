"""Bounding boxes, transformed with their image: cropped, resized, padded and flipped.

All boxes of a batch are transformed at once: mapped into the frame and clipped to the image. Boxes
with too little visible area are dropped with their labels. The image feature provides the
placement of each image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Column, RaggedArray
from recordsmith.format.example.keys import BOX, OBJECT_LABEL
from recordsmith.loading.features.feature import (
    BatchBuffer,
    BatchRows,
    ColumnRequest,
    Feature,
    ImageBuffer,
    Kept,
    RowFeature,
    images_in,
)
from recordsmith.loading.features.images.image_lists import check_leader, leading
from recordsmith.loading.features.numbers import TooLong, check_room, pad, too_long
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, DataError, Defect, OptionError, option
from recordsmith.support.explaining import check_option, check_word
from recordsmith.support.number_options import is_whole

BoxOrder = Literal["yxyx", "xyxy", "xywh", "cxcywh"]
"""ymin, xmin, ymax, xmax; xmin, ymin, xmax, ymax; xmin, ymin, width, height; center x, center y,
width, height."""

BoxUnit = Literal["fraction", "pixel"]

_Sides = npt.NDArray[np.float64]  # (boxes, 4): ymin, xmin, ymax, xmax

_OUTSIDE = 1.0  # image sizes that a box may reach beyond the edge; further it is in other units
_SLIVER = 1e-6  # of a side of the image: what rounding leaves of a box outside the image
_ROUNDING = 1e-4  # of a box's area


@dataclass(frozen=True)
class Boxes(RowFeature):
    """Bounding boxes in the frame of their image: float32, (batch, n, 4), padded.

    Adds `<name>_labels`, int64, (batch, n), and `<name>_lengths`, int64, (batch,): the number of
    boxes in each row. Boxes of `Patches` are those of each patch: (batch, count, n, 4),
    (batch, count, n) and (batch, count).

    Attributes:
        keys: the keys of ymin, xmin, ymax and xmax, as fractions of the stored image.
        labels: the key of the label of each box; None for boxes without labels.
        of: the name of the Image or Patches that they belong to. Default: the only one; without
            one, boxes are those of the stored image.
        order: the numbers of a box and their order.
        unit: a `fraction` of the frame's height and width, or a `pixel` of the frame.
        length: the number of boxes in each row, or patch. Default: that of the longest of the
            batch.
        fill, label_fill: the padding.
        too_long: for a row with more than `length` boxes: an `error`, or `cut` the rest.
        min_visible: the share of a box's area, from 0 to 1, that must be visible in the frame.
            Other boxes, and invisible ones, are dropped with their labels.

    Example:
        >>> Boxes(length=10, too_long="cut").length
        10
    """

    has_pixels: ClassVar[bool] = False

    keys: tuple[str, str, str, str] = BOX
    labels: str | None = OBJECT_LABEL
    of: str | None = None
    _: KW_ONLY
    order: BoxOrder = "yxyx"
    unit: BoxUnit = "fraction"
    length: int | None = None
    fill: float = 0
    label_fill: int = -1
    too_long: TooLong = "error"
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        check_room(self.length, self.too_long)
        is_right = isinstance(self.keys, tuple) and len(set(self.keys)) == 4
        expected = "a tuple with the keys of ymin, xmin, ymax and xmax"
        check_option(is_right, "keys", self.keys, expected)
        check_word("order", self.order, get_args(BoxOrder))
        check_word("unit", self.unit, get_args(BoxUnit))
        is_right = isinstance(self.min_visible, (int, float)) and 0 <= self.min_visible <= 1
        check_option(is_right, "min_visible", self.min_visible, "a number from 0 to 1")
        check_option(isinstance(self.fill, (int, float)), "fill", self.fill, "a number")
        check_option(is_whole(self.label_fill), "label_fill", self.label_fill, "an integer")

    def requests(self) -> dict[str, ColumnRequest]:
        requests = dict.fromkeys(self.keys, ColumnRequest(("float",), "ragged"))
        if self.labels is not None:
            requests[self.labels] = ColumnRequest(("int64",), "ragged")
        return requests

    def outputs(self, name: str) -> tuple[str, ...]:
        labels = () if self.labels is None else (f"{name}_labels",)
        return (name, *labels, f"{name}_lengths")

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        check_leader(name, self.of, features)
        images = images_in(features)
        leader = images.get(self.of or next(iter(images), ""))
        if leader is not None and leader.image_count not in (None, 1):
            raise OptionError(
                f"feature {name!r}: Boxes cannot follow several images of a record", option="of"
            )
        if self.unit == "pixel" and not images:
            raise OptionError(
                f"feature {name!r}: {option('unit', 'pixel')} needs an Image",
                option="unit",
                value=self.unit,
                remedy=f"Declare an Image, or pass {option('unit', 'fraction')}.",
            )

    def begin(self, name: str, rows: BatchRows) -> BoxBuffer:
        images = leading(self.of, rows)
        patches = () if images is None else images.patches
        per_row = math.prod(patches)
        frame_count = rows.count * per_row
        frames = _Frames.of(images, rows.count, per_row)
        row_of, numbers, sides, labels = self._stored(rows)
        frame_of = row_of
        if per_row > 1:  # each patch has all boxes of its image, of which most are not visible
            frame_of = np.add.outer(np.arange(per_row), row_of * per_row).ravel()
            order = np.argsort(frame_of, kind="stable")
            boxes = np.tile(np.arange(len(row_of)), per_row)[order]
            frame_of, numbers, sides = frame_of[order], numbers[boxes], sides[boxes]
            labels = labels[boxes]
        sides, is_kept = self._moved(frames, frame_of, sides)
        lengths = np.bincount(frame_of[is_kept], minlength=frame_count).astype(np.int64)
        width = self.length
        for error in too_long(self, self.keys[0], lengths, "box", "boxes"):
            error.record //= per_row  # type: ignore[operator]
            rows.fail(error.record, error)
        moved = self._numbers(frames, frame_of[is_kept], sides[is_kept]).astype(np.float32)
        arrays = list(pad(moved, lengths, width, self.fill))
        if self.labels is not None:
            arrays.insert(1, pad(labels[is_kept], lengths, width, self.label_fill)[0])
        shaped = [array.reshape(rows.count, *patches, *array.shape[1:]) for array in arrays]
        counts = _ragged(rows.columns[self.keys[0]]).lengths
        buffer = BoxBuffer(dict(zip(self.outputs(name), shaped, strict=True)))
        buffer.images = images
        buffer.kept = Kept.cut(numbers[is_kept], lengths, counts, width)
        return buffer

    # -- the steps ---------------------------------------------------------------------------------

    def _stored(
        self, rows: BatchRows
    ) -> tuple[Int64Array, Int64Array, _Sides, npt.NDArray[np.int64]]:
        """Return the row, the number in its row, the sides and the label of each box of all rows.

        Rows with invalid boxes fail, and are left out.
        """
        columns = {key: _ragged(rows.columns[key]) for key in self.requests()}
        lengths = np.stack([column.lengths for column in columns.values()])
        is_bad = (lengths != lengths[0]).any(axis=0)
        for row in np.flatnonzero(is_bad).tolist():
            counts = ", ".join(f"{key!r} {len(column[row])}" for key, column in columns.items())
            rows.fail(
                row,
                CorruptDataError(
                    Defect.FEATURE_SHAPE,
                    "the features of boxes have different numbers of values",
                    found=counts,
                    expected="one for each box",
                    record=row,
                ),
            )
        good = np.flatnonzero(~is_bad)
        values = {
            key: column[good].values if is_bad.any() else column.values
            for key, column in columns.items()
        }
        row_of = np.repeat(good, lengths[0][good])
        numbers: Any = Kept.first(lengths[0][good], None).numbers.values
        sides = np.stack([values[key] for key in self.keys], axis=-1).astype(np.float64)
        low, high = sides[:, :2], sides[:, 2:]
        is_box = (low >= -_OUTSIDE) & (high <= 1 + _OUTSIDE) & (low <= high)  # never of NaN
        wrong = np.flatnonzero(~is_box.all(axis=1))
        for box in wrong.tolist():
            rows.fail(int(row_of[box]), self._invalid_box(int(row_of[box]), sides[box]))
        labels: Any = np.zeros(len(sides), np.int64)
        if self.labels is not None:
            labels = values[self.labels]
        if len(wrong):
            is_good = ~np.isin(row_of, row_of[wrong])
            row_of, numbers, sides = row_of[is_good], numbers[is_good], sides[is_good]
            labels = labels[is_good]
        return row_of, numbers, sides, labels

    def _invalid_box(self, row: int, sides: _Sides) -> DataError:
        found = ", ".join(
            f"{key!r} {value:.7g}" for key, value in zip(self.keys, sides.tolist(), strict=True)
        )
        return CorruptDataError(
            Defect.FEATURE_VALUE,
            "a box is invalid",
            found=found,
            expected="fractions of the image from 0 to 1, minimum before maximum",
            record=row,
        )

    def _moved(
        self, frames: _Frames, frame_of: Int64Array, sides: _Sides
    ) -> tuple[_Sides, npt.NDArray[np.bool_]]:
        """Return the boxes in pixels of their frames, clipped to the image; and which to keep."""
        scale, shift = frames.scale[frame_of], frames.shift[frame_of]
        first, last = frames.first[frame_of], frames.last[frame_of]
        whole = np.concatenate([sides[:, :2] * scale + shift, sides[:, 2:] * scale + shift], axis=1)
        low, high = np.clip(whole[:, :2], first, last), np.clip(whole[:, 2:], first, last)
        visible = high - low
        wanted = (whole[:, 2:] - whole[:, :2]).prod(axis=1) * (self.min_visible * (1 - _ROUNDING))
        is_kept = (visible > _SLIVER * scale).all(axis=1) & (visible.prod(axis=1) >= wanted)
        is_flipped, size = frames.is_flipped[frame_of], frames.size[frame_of]
        low, high = np.where(is_flipped, size - high, low), np.where(is_flipped, size - low, high)
        return np.concatenate([low, high], axis=1), is_kept

    def _numbers(self, frames: _Frames, frame_of: Int64Array, sides: _Sides) -> _Sides:
        """Return the boxes in the declared order and unit."""
        low, high = sides[:, :2], sides[:, 2:]
        if self.unit == "fraction":
            size = frames.size[frame_of]
            low, high = low / size, high / size
        if self.order == "yxyx":
            return np.concatenate([low, high], axis=1)
        low, high = low[:, ::-1], high[:, ::-1]  # x before y
        if self.order == "xyxy":
            return np.concatenate([low, high], axis=1)
        begin = low if self.order == "xywh" else (low + high) / 2
        return np.concatenate([begin, high - low], axis=1)


class BoxBuffer(BatchBuffer):
    """The boxes of a batch, which masks of objects can follow.

    images: those that the boxes follow; None for boxes of the stored images.
    kept: which boxes of their records the rows have.
    """

    images: ImageBuffer | None
    kept: Kept


class _Frames(NamedTuple):
    """The placement of images or patches in their frames; two numbers, y and x, for each frame.

    scale, shift: a fraction of the image times scale plus shift is a place in the frame.
    first, last: the visible part of the image.
    size: of the frame.
    is_flipped: whether the frame is flipped afterwards.
    """

    scale: _Sides
    shift: _Sides
    first: _Sides
    last: _Sides
    size: _Sides
    is_flipped: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, images: ImageBuffer | None, row_count: int, per_row: int) -> _Frames:
        """Create the frames of some rows; without images, frames are the images."""
        count = row_count * per_row
        sizes = np.ones((count, 2))
        placements = np.tile(np.array([0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0], np.float64), (count, 1))
        if images is not None:
            for frame, placement in enumerate(images.placements):
                if placement is not None:
                    sizes[frame], placements[frame] = images.sizes[frame // per_row], placement
        # pairs of y and x in the order of Placement, where "mirrored" comes before "upside down"
        begin, part, to, at, size = (placements[:, i : i + 2] for i in range(0, 10, 2))
        ratio = to / part
        return cls(
            scale=sizes * ratio,
            shift=at - begin * ratio,
            first=np.clip(at, 0, size),
            last=np.clip(at + to, 0, size),
            size=size,
            is_flipped=placements[:, 11:9:-1] != 0,
        )


def _ragged(column: Column) -> RaggedArray:
    assert isinstance(column, RaggedArray)
    return column
