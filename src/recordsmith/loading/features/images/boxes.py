"""Bounding boxes, transformed with their image: cropped, resized, padded and flipped.

All boxes of a batch are transformed at once: mapped into the frame and clipped to the image. Boxes
with too little visible area are dropped with their labels. The image feature provides the
placement of each image. Masks and keypoints of objects follow the boxes that stay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Column, RaggedArray
from recordsmith.format.example.keys import BOX, CORNER_X, CORNER_Y, OBJECT_LABEL
from recordsmith.loading.features.feature import (
    BatchBuffer,
    BatchRows,
    ColumnRequest,
    Feature,
    ImageBuffer,
    ImageFeature,
    Kept,
    RowFeature,
    images_in,
)
from recordsmith.loading.features.images.image_lists import ambiguous, check_leader, leading
from recordsmith.loading.features.numbers import TooLong, check_room, pad, too_long
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, DataError, Defect, OptionError, option
from recordsmith.support.explaining import check_option, check_word
from recordsmith.support.number_options import is_whole
from recordsmith.support.words import count

BoxOrder = Literal["yxyx", "xyxy", "xywh", "cxcywh"]
"""ymin, xmin, ymax, xmax; xmin, ymin, xmax, ymax; xmin, ymin, width, height; center x, center y,
width, height."""

BoxUnit = Literal["fraction", "pixel"]

Floats = npt.NDArray[np.float64]

OUTSIDE = 1.0  # image sizes that a box may reach beyond the edge; further it is in other units
_CORNERS_OUTSIDE = 100.0  # corners of a tile may be those of an object in the whole image
_CORNERS = (CORNER_X, CORNER_Y)
_SLIVER = 1e-6  # of a side of the image: what rounding leaves of a box outside the image
_ROUNDING = 1e-4  # of a box's area


@dataclass(frozen=True)
class Boxes(RowFeature):
    """Bounding boxes in the frame of their image: float32, (batch, n, 4), padded.

    Adds `<name>_labels`, int64, (batch, n), and `<name>_lengths`, int64, (batch,): the number of
    boxes in each row. Boxes of `Patches` are those of each patch: (batch, count, n, 4),
    (batch, count, n) and (batch, count).

    With `corners`, adds `<name>_corners`, float32, (batch, n, 4, 2): x and y of the corners of
    rotated boxes, clockwise from what was the top left corner before the rotation, also in flipped
    images. They may lie outside the frame; the upright box around them is clipped.

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
            Other boxes, and invisible ones, are dropped with their labels. With `corners`, the area
            is that of the rotated box.
        corners: whether to read the corners that `pack` stores for rotated boxes.

    Example:
        >>> Boxes(length=10, too_long="cut").length
        10
    """

    has_pixels: ClassVar[bool] = False
    follows_boxes: ClassVar[bool] = False

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
    corners: bool = False

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
        check_option(isinstance(self.corners, bool), "corners", self.corners, "True or False")

    def requests(self) -> dict[str, ColumnRequest]:
        keys = (*self.keys, *_CORNERS) if self.corners else self.keys
        requests = dict.fromkeys(keys, ColumnRequest(("float",), "ragged"))
        if self.labels is not None:
            requests[self.labels] = ColumnRequest(("int64",), "ragged")
        return requests

    def outputs(self, name: str) -> tuple[str, ...]:
        labels = () if self.labels is None else (f"{name}_labels",)
        corners = (f"{name}_corners",) if self.corners else ()
        return (name, *labels, *corners, f"{name}_lengths")

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        check_frame(name, self, self.of, features)

    def begin(self, name: str, rows: BatchRows) -> BoxBuffer:
        images = leading(self.of, rows)
        patches = () if images is None else images.patches
        per_row = math.prod(patches)
        of_images = ImageFrames.of(images, rows.count, per_row)
        frames = of_images.in_unit(self.unit)
        stored = self._stored(rows)
        frame_of = stored.row_of
        if per_row > 1:  # each patch has all boxes of its image, of which most are not visible
            frame_of = np.add.outer(np.arange(per_row), frame_of * per_row).ravel()
            order = np.argsort(frame_of, kind="stable")
            stored = stored.take(np.tile(np.arange(len(stored.row_of)), per_row)[order])
            frame_of = frame_of[order]
        sides, corners, is_kept = self._moved(frames, frame_of, stored)
        stored, frame_of = stored.take(is_kept), frame_of[is_kept]
        lengths = np.bincount(frame_of, minlength=rows.count * per_row).astype(np.int64)
        width = self.length
        for error in too_long(self, self.keys[0], lengths, "box", "boxes"):
            error.record //= per_row  # type: ignore[operator]
            rows.fail(error.record, error)
        sides = self._ordered(sides[is_kept])
        arrays = list(pad(sides.astype(np.float32), lengths, width, self.fill))
        if self.labels is not None:
            arrays.insert(1, pad(stored.labels, lengths, width, self.label_fill)[0])
        if self.corners:
            corners = corners[is_kept, :, ::-1]  # x first
            arrays.insert(-1, pad(corners.astype(np.float32), lengths, width, self.fill)[0])
        shape = (rows.count, *patches)
        shaped = [array.reshape(shape + array.shape[1:]) for array in arrays]
        counts = ragged(rows.columns[self.keys[0]]).lengths
        buffer = BoxBuffer(dict(zip(self.outputs(name), shaped, strict=True)))
        buffer.images, buffer.labels, buffer.frames = images, self.labels, of_images
        buffer.shape = shape
        buffer.kept = Kept.cut(stored.numbers, lengths, counts, width)
        return buffer

    # -- the steps ---------------------------------------------------------------------------------

    def _stored(self, rows: BatchRows) -> _Stored:
        """Return the boxes of all rows; those with invalid boxes fail, and are left out."""
        columns = {key: ragged(rows.columns[key]) for key in self.requests()}
        counts = columns[self.keys[0]].lengths
        per_box = [4 if key in _CORNERS else 1 for key in columns]
        expected = "one for each box" + (", and 4 corners" if self.corners else "")
        is_good = check_lengths(rows, columns, per_box, counts, expected)
        good = np.flatnonzero(is_good)
        values: dict[str, Any] = {
            key: column.values if is_good.all() else column[good].values
            for key, column in columns.items()
        }
        sides = np.stack([values[key] for key in self.keys], axis=-1).astype(np.float64)
        sides = sides.reshape(-1, 2, 2)
        corners = np.empty((len(sides), 0, 2))
        if self.corners:
            corners = np.stack([values[CORNER_Y], values[CORNER_X]], axis=-1)
            corners = corners.astype(np.float64).reshape(-1, 4, 2)
        stored = _Stored(
            np.repeat(good, counts[good]),
            Kept.first(counts[good], None).numbers.values,
            sides,
            np.zeros(len(sides), np.int64) if self.labels is None else values[self.labels],
            corners,
        )
        low, high = sides[:, 0], sides[:, 1]
        is_box = (low >= -OUTSIDE) & (high <= 1 + OUTSIDE) & (low <= high)  # never of NaN
        are_near = np.abs(corners) <= _CORNERS_OUTSIDE
        wrong = np.flatnonzero(~(is_box.all(axis=1) & are_near.all(axis=(1, 2))))
        for box in wrong.tolist():
            row = int(stored.row_of[box])
            rows.fail(row, self._invalid_box(row, sides[box], corners[box]))
        if not len(wrong):
            return stored
        return stored.take(~np.isin(stored.row_of, stored.row_of[wrong]))

    def _invalid_box(self, row: int, sides: Floats, corners: Floats) -> DataError:
        numbers = [*sides.ravel().tolist(), *corners.ravel().tolist()]
        keys = (*self.keys, *reversed(_CORNERS * len(corners)))
        found = (f"{key!r} {value:.7g}" for key, value in zip(keys, numbers, strict=True))
        return CorruptDataError(
            Defect.FEATURE_VALUE,
            "a box is invalid",
            found=", ".join(found),
            expected="fractions of the image from 0 to 1, minimum before maximum",
            record=row,
        )

    def _moved(
        self, frames: ImageFrames, frame_of: Int64Array, stored: _Stored
    ) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
        """Return the boxes in their frames, clipped to the image; and which to keep.

        Their corners are not clipped.
        """
        scale, first, last = (of[frame_of] for of in (frames.scale, frames.first, frames.last))
        whole = np.sort(frames.place(frame_of, stored.sides), axis=1)
        sides = np.clip(whole, first[:, np.newaxis], last[:, np.newaxis])
        visible = sides[:, 1] - sides[:, 0]
        area, inside = (whole[:, 1] - whole[:, 0]).prod(axis=1), visible.prod(axis=1)
        is_kept = (visible > _SLIVER * np.abs(scale)).all(axis=1)
        corners = stored.corners
        if self.corners:
            corners = frames.place(frame_of, corners)
            area = np.abs(np.linalg.det(corners[:, 2:] - corners[:, :2])) / 2  # of the diagonals
            inside = _area_inside(corners, first, last)
            is_kept &= inside > _SLIVER**2 * np.abs(scale.prod(axis=1))
            is_flipped = frames.is_flipped[frame_of, :, np.newaxis]
            order = np.arange(4) ^ (3 * is_flipped[:, 0]) ^ is_flipped[:, 1]
            corners = np.take_along_axis(corners, order[..., np.newaxis], axis=1)
        is_kept &= inside >= area * (self.min_visible * (1 - _ROUNDING))
        return sides, corners, is_kept

    def _ordered(self, sides: Floats) -> Floats:
        """Return the numbers of boxes in the declared order: (boxes, 4)."""
        if self.order == "yxyx":
            return sides.reshape(-1, 4)
        sides = sides[..., ::-1]  # x before y
        low, high = sides[:, 0], sides[:, 1]
        if self.order == "xyxy":
            return sides.reshape(-1, 4)
        begin = low if self.order == "xywh" else (low + high) / 2
        return np.concatenate([begin, high - low], axis=1)


class _Stored(NamedTuple):
    """Boxes as they are stored, of all rows: the row of each, its number there, and its values.

    sides: (boxes, 2, 2): y and x of the minimum and the maximum.
    corners: (boxes, 4, 2): y and x of each; (boxes, 0, 2) where they are not read.
    """

    row_of: Int64Array
    numbers: Int64Array
    sides: Floats
    labels: npt.NDArray[np.int64]
    corners: Floats

    def take(self, boxes: npt.NDArray[Any]) -> _Stored:
        return _Stored(*(values[boxes] for values in self))


class BoxBuffer(BatchBuffer):
    """The boxes of a batch, which masks and keypoints of objects can follow.

    images: those that the boxes follow; None for boxes of the stored images.
    kept: which boxes of their records the rows have.
    labels: the key of their labels.
    frames: where they are; `shape` is that of the frames: (rows,) or (rows, patches).
    """

    images: ImageBuffer | None
    kept: Kept
    labels: str | None
    frames: ImageFrames
    shape: tuple[int, ...]


class ImageFrames(NamedTuple):
    """The placement of images or patches in their frames; two numbers, y and x, for each frame.

    scale, shift: a fraction of the image times scale plus shift is a place in the frame, flipped
        if this is: x becomes width - x.
    first, last: the visible part of the image.
    size: of the frame.
    is_flipped: whether the frame is flipped.
    """

    scale: Floats
    shift: Floats
    first: Floats
    last: Floats
    size: Floats
    is_flipped: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, images: ImageBuffer | None, row_count: int, per_row: int) -> ImageFrames:
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
        scale, shift = sizes * ratio, at - begin * ratio
        first, last = np.clip(at, 0, size), np.clip(at + to, 0, size)
        flips = placements[:, 11:9:-1] != 0
        return cls(
            scale=np.where(flips, -scale, scale),
            shift=np.where(flips, size - shift, shift),
            first=np.where(flips, size - last, first),
            last=np.where(flips, size - first, last),
            size=size,
            is_flipped=flips,
        )

    def place(self, frame_of: Int64Array, points: Floats) -> Floats:
        """Return points of images, (n, m, 2), in their frames."""
        return points * self.scale[frame_of, np.newaxis] + self.shift[frame_of, np.newaxis]

    def in_unit(self, unit: BoxUnit) -> ImageFrames:
        """Return the frames in pixels, as they are created, or as fractions of their sizes."""
        if unit == "pixel":
            return self
        scale, shift, first, last = (values / self.size for values in self[:4])
        return ImageFrames(scale, shift, first, last, self.size, self.is_flipped)


def _area_inside(polygons: Floats, low: Floats, high: Floats) -> npt.NDArray[np.float64]:
    """Return the area of polygons, (n, corners, 2), inside of rectangles.

    Each edge is cut where it crosses a side of the rectangle; what is outside moves onto the side,
    where it has no area.
    """
    for axis in range(2):
        limits = np.stack([low[:, axis], high[:, axis]], axis=-1)[:, np.newaxis]
        edges = np.roll(polygons, -1, axis=1) - polygons
        step = edges[..., axis, np.newaxis]
        cuts = (limits - polygons[..., axis, np.newaxis]) / np.where(step == 0, 1, step)
        cuts = np.sort(np.clip(np.insert(cuts, 0, 0, axis=-1), 0, 1), axis=-1)[..., np.newaxis]
        points = polygons[:, :, np.newaxis] + cuts * edges[:, :, np.newaxis]
        polygons = points.reshape(len(points), 3 * polygons.shape[1], 2)
        polygons[..., axis] = np.clip(polygons[..., axis], limits[..., 0], limits[..., 1])
    y, x = np.moveaxis(polygons - low[:, np.newaxis], -1, 0)
    area: Any = np.abs((x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)) / 2
    return area  # type: ignore[no-any-return]


def check_lengths(
    rows: BatchRows,
    columns: Mapping[str, RaggedArray],
    per_object: Sequence[int],
    counts: Int64Array,
    expected: str,
) -> npt.NDArray[np.bool_]:
    """Return which rows have `per_object` values of each column; let the others fail."""
    lengths = np.stack([column.lengths for column in columns.values()])
    is_right = lengths == np.multiply.outer(per_object, counts)
    is_good: npt.NDArray[np.bool_] = is_right.all(axis=0)
    for row in np.flatnonzero(~is_good).tolist():
        found = (f"{key!r} {length}" for key, length in zip(columns, lengths[:, row], strict=True))
        error = CorruptDataError(
            Defect.FEATURE_SHAPE,
            "the features of objects have different numbers of values",
            found=f"{', '.join(found)}; {count(counts[row], 'object')}",
            expected=expected,
            record=row,
            feature=[*columns][int(is_right[:, row].argmin())],
        )
        rows.fail(row, error)
    return is_good


def ragged(column: Column) -> RaggedArray:
    assert isinstance(column, RaggedArray)
    return column


# -- what follows boxes ----------------------------------------------------------------------------


def check_frame(
    name: str, feature: Any, of: str | None, features: Mapping[str, Feature]
) -> ImageFeature | None:
    """Check and return the images that boxes or keypoints follow; None for the stored image."""
    check_leader(name, of, features)
    images = images_in(features)
    leader = images.get(of or next(iter(images), ""))
    if leader is not None and leader.image_count not in (None, 1):
        raise OptionError(
            f"feature {name!r}: Boxes cannot follow several images of a record", option="of"
        )
    if feature.unit == "pixel" and leader is None:
        raise OptionError(
            f"feature {name!r}: {option('unit', 'pixel')} needs an Image",
            option="unit",
            value=feature.unit,
            remedy=f"Declare an Image, or pass {option('unit', 'fraction')}.",
        )
    return leader


def boxes_to_follow(name: str, of: str | None, features: Mapping[str, Feature]) -> str | None:
    """Return the name of the boxes whose objects a feature has; None if all objects stay."""
    every = {other: boxes for other, boxes in features.items() if isinstance(boxes, Boxes)}
    images = [*images_in(features), None]
    followed = [of] if of in every else [
        other for other, boxes in every.items() if of is None or (boxes.of or images[0]) == of
    ]  # fmt: skip
    if len(followed) > 1:
        raise ambiguous(name, followed)
    return followed[0] if followed else None


def followed_boxes(of: str | None, rows: BatchRows) -> BoxBuffer | None:
    """Return the boxes of `boxes_to_follow`, already begun."""
    images = None if of is None else rows.buffers[of]
    every = [buffer for buffer in rows.buffers.values() if isinstance(buffer, BoxBuffer)]
    return next((one for one in every if images in (None, one, one.images)), None)
