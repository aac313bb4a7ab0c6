"""The boxes of objects, moved as their picture was: cropped, resized, padded and mirrored with it.

All boxes of a batch are moved at once. First they are laid into the frame as the picture is, then
cut off where the picture is; those of which too little is left are dropped with their labels.
Nothing is decoded here: how each picture lies in its frame is told by its feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import Column, RaggedArray
from recordsmith.example.keys import BOX, OBJECT_LABEL
from recordsmith.image.options import check_word
from recordsmith.loading.features.contract import (
    Feature,
    Filling,
    PictureFilling,
    PixelFeature,
    Request,
    Rows,
)
from recordsmith.loading.features.following import check_leader, leading, pictures_in
from recordsmith.loading.features.padded import TooLong, check_room, pad, too_long
from recordsmith.loading.options import is_whole

BoxOrder = Literal["yxyx", "xyxy", "xywh", "cxcywh"]
"""ymin, xmin, ymax, xmax; xmin, ymin, xmax, ymax; xmin, ymin, width, height; the centre's x and y,
width, height."""

BoxUnit = Literal["fraction", "pixel"]

_Sides = npt.NDArray[np.float64]  # (boxes, 4): ymin, xmin, ymax, xmax

_OUTSIDE = 1.0  # how many pictures beyond the edge a box may reach; further it is in other units
_SLIVER = 1e-6  # of a side of the picture: what rounding leaves where a box is cut off at its edge
_ROUNDING = 1e-4  # of a box's area


@dataclass(frozen=True)
class Boxes(PixelFeature):
    """The boxes of a picture's objects, as they lie in its frame: float32, (batch, n, 4).

    `<name>_labels` is int64, (batch, n), and `<name>_lengths` int64, (batch,): how many boxes each
    row has; behind them rows are filled up. A record without boxes has none.

    keys: the features ymin, xmin, ymax, xmax in the records, fractions of the stored picture.
    labels: the feature with a number for each box; None for none, then there is no
        `<name>_labels`.
    of: the name of the Image whose pictures they follow; if not said, the only one. Without any
        they are those of the stored picture.
    order: which numbers a box has.
    unit: a `fraction` of the frame's height and width, or a `pixel` of the frame.
    length: how many boxes there is room for in each row; as many as the batch's fullest row has, if
        not said.
    fill, label_fill: what stands behind the boxes of a row.
    too_long: whether a row with more than `length` boxes is an `error`, or is `cut`.
    min_visible: how much of a box's area must be left in the frame, from 0 to 1. Boxes of which
        less is left, or nothing, are dropped with their labels.
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
        if not isinstance(self.keys, tuple) or len(set(self.keys)) != 4:
            raise OptionError(f"keys is {self.keys!r}; expected those of ymin, xmin, ymax, xmax")
        check_word("order", self.order, get_args(BoxOrder))
        check_word("unit", self.unit, get_args(BoxUnit))
        if not isinstance(self.min_visible, (int, float)) or not 0 <= self.min_visible <= 1:
            raise OptionError(f"min_visible is {self.min_visible!r}; expected 0 to 1")
        if not isinstance(self.fill, (int, float)):
            raise OptionError(f"fill is {self.fill!r}; expected a number")
        if not is_whole(self.label_fill):
            raise OptionError(f"label_fill is {self.label_fill!r}; expected a whole number")

    def requests(self) -> dict[str, Request]:
        requests = dict.fromkeys(self.keys, Request(("float",), "ragged"))
        if self.labels is not None:
            requests[self.labels] = Request(("int64",), "ragged")
        return requests

    def outputs(self, name: str) -> tuple[str, ...]:
        labels = () if self.labels is None else (f"{name}_labels",)
        return (name, *labels, f"{name}_lengths")

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        check_leader(name, self.of, features)
        if self.unit == "pixel" and not pictures_in(features):
            raise OptionError(
                f"feature {name!r}: unit is 'pixel', which is one of a frame, but there is no "
                "Image; say 'fraction'"
            )

    def leader(self, name: str, features: Mapping[str, Feature]) -> str | None:
        return self.of or next(iter(pictures_in(features)), None)

    def begin(self, name: str, rows: Rows) -> BoxFilling:
        frames = _Frames.of(leading(self.of, rows), rows.count)
        row_of, sides, labels = self._stored(rows)
        sides, is_kept = self._moved(frames, row_of, sides)
        lengths = np.bincount(row_of[is_kept], minlength=rows.count).astype(np.int64)
        width = self.length
        if width is not None and self.too_long == "error":
            for row in np.flatnonzero(lengths > width).tolist():
                boxes = "1 box" if lengths[row] == 1 else f"{lengths[row]} boxes"
                rows.fail(row, too_long(f"there are {boxes} in the frame", width, row))
        numbers = self._numbers(frames, row_of[is_kept], sides[is_kept]).astype(np.float32)
        arrays = list(pad(numbers, lengths, width, self.fill))
        if self.labels is not None:
            arrays.insert(1, pad(labels[is_kept], lengths, width, self.label_fill)[0])
        return BoxFilling(dict(zip(self.outputs(name), arrays, strict=True)))

    # -- the steps ---------------------------------------------------------------------------------

    def _stored(self, rows: Rows) -> tuple[Int64Array, _Sides, npt.NDArray[np.int64]]:
        """The boxes of all rows end to end: the row, the sides and the label of each.

        Rows whose boxes are none fail, and have none here.
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
                    f"the features of boxes have different numbers of values: {counts}; expected "
                    "one for each box in all of them",
                    position=row,
                ),
            )
        good = np.flatnonzero(~is_bad)
        values = {
            key: column[good].values if is_bad.any() else column.values
            for key, column in columns.items()
        }
        row_of = np.repeat(good, lengths[0][good])
        sides = np.stack([values[key] for key in self.keys], axis=-1).astype(np.float64)
        low, high = sides[:, :2], sides[:, 2:]
        is_box = (low >= -_OUTSIDE) & (high <= 1 + _OUTSIDE) & (low <= high)  # never of NaN
        wrong = np.flatnonzero(~is_box.all(axis=1))
        for box in wrong.tolist():
            rows.fail(int(row_of[box]), self._no_box(int(row_of[box]), sides[box]))
        labels: Any = np.zeros(len(sides), np.int64)
        if self.labels is not None:
            labels = values[self.labels]
        if len(wrong):
            is_good = ~np.isin(row_of, row_of[wrong])
            row_of, sides, labels = row_of[is_good], sides[is_good], labels[is_good]
        return row_of, sides, labels

    def _no_box(self, row: int, sides: _Sides) -> CorruptDataError:
        found = ", ".join(
            f"{key!r} {value:.7g}" for key, value in zip(self.keys, sides.tolist(), strict=True)
        )
        return CorruptDataError(
            Defect.FEATURE_VALUE,
            f"a box has {found}; expected fractions of the picture, from 0 to 1, no minimum above "
            "its maximum",
            position=row,
        )

    def _moved(
        self, frames: _Frames, row_of: Int64Array, sides: _Sides
    ) -> tuple[_Sides, npt.NDArray[np.bool_]]:
        """The boxes in pixels of their frames, cut off where the picture is; and which are kept."""
        scale, shift = frames.scale[row_of], frames.shift[row_of]
        first, last = frames.first[row_of], frames.last[row_of]
        whole = np.concatenate([sides[:, :2] * scale + shift, sides[:, 2:] * scale + shift], axis=1)
        low, high = np.clip(whole[:, :2], first, last), np.clip(whole[:, 2:], first, last)
        visible = high - low
        wanted = (whole[:, 2:] - whole[:, :2]).prod(axis=1) * (self.min_visible * (1 - _ROUNDING))
        is_kept = (visible > _SLIVER * scale).all(axis=1) & (visible.prod(axis=1) >= wanted)
        is_turned, size = frames.is_turned[row_of], frames.size[row_of]
        low, high = np.where(is_turned, size - high, low), np.where(is_turned, size - low, high)
        return np.concatenate([low, high], axis=1), is_kept

    def _numbers(self, frames: _Frames, row_of: Int64Array, sides: _Sides) -> _Sides:
        """The boxes in the order and unit that are asked for."""
        low, high = sides[:, :2], sides[:, 2:]
        if self.unit == "fraction":
            size = frames.size[row_of]
            low, high = low / size, high / size
        if self.order == "yxyx":
            return np.concatenate([low, high], axis=1)
        low, high = low[:, ::-1], high[:, ::-1]  # x before y
        if self.order == "xyxy":
            return np.concatenate([low, high], axis=1)
        begin = low if self.order == "xywh" else (low + high) / 2
        return np.concatenate([begin, high - low], axis=1)


class _Frames(NamedTuple):
    """How the pictures of a batch lie in their frames; for each row two numbers, of y and x.

    scale, shift: a fraction of the picture, times scale, plus shift, is a place in the frame.
    first, last: between which of them the picture is seen.
    size: of the frame.
    is_turned: whether it is turned over, after all of that.
    """

    scale: _Sides
    shift: _Sides
    first: _Sides
    last: _Sides
    size: _Sides
    is_turned: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, pictures: PictureFilling | None, count: int) -> _Frames:
        """Of the pictures of `count` rows; without pictures, all frames are the pictures."""
        sizes = np.ones((count, 2))
        placements = np.tile(np.array([0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0], np.float64), (count, 1))
        if pictures is not None:
            for row, placement in enumerate(pictures.placements):
                if placement is not None:
                    sizes[row], placements[row] = pictures.sizes[row], placement
        # pairs of y and x in the order of Placement, where "mirrored" comes before "upside down"
        begin, part, to, at, size = (placements[:, i : i + 2] for i in range(0, 10, 2))
        ratio = to / part
        return cls(
            scale=sizes * ratio,
            shift=at - begin * ratio,
            first=np.clip(at, 0, size),
            last=np.clip(at + to, 0, size),
            size=size,
            is_turned=placements[:, 11:9:-1] != 0,
        )


class BoxFilling(Filling):
    """The boxes of a batch: ready when they are begun."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._arrays = arrays

    def fill(self, row: int) -> None:
        pass

    def example(self, row: int) -> dict[str, Any]:
        return {name: array[row] for name, array in self._arrays.items()}

    def finish(self) -> dict[str, Column]:
        return dict(self._arrays)


def _ragged(column: Column) -> RaggedArray:
    assert isinstance(column, RaggedArray)
    return column
