"""Compute how an image fits into a frame of another size. Geometry only, no pixels.

`Fit.place` returns a `Placement`: the part of the image to crop, its target size, and its position
in the frame. Image, mask and boxes use the same placement. Random numbers are passed in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

FitKind = Literal["resize", "crop-or-pad", "center-crop", "contain", "random-crop", "pad"]
Flip = Literal["horizontal", "vertical", "both"]
CROP_AREA = (0.08, 1.0)
CROP_RATIO = (3 / 4, 4 / 3)
_CROP_TRIES = 10


class Placement(NamedTuple):
    """Where an image lies in its frame.

    top, left, height, width: the cropped part of the image, in its pixels.
    to_height, to_width: the size that this part is resized to.
    at_top, at_left: its position in the frame.
    frame_height, frame_width: the size of the frame.
    is_mirrored: whether the whole frame is then flipped horizontally.
    is_upside_down: whether the whole frame is then flipped vertically.
    """

    top: int
    left: int
    height: int
    width: int
    to_height: int
    to_width: int
    at_top: int
    at_left: int
    frame_height: int
    frame_width: int
    is_mirrored: bool = False
    is_upside_down: bool = False


@dataclass(frozen=True)
class Fit:
    """How images are brought to the requested size.

    kind: `resize` stretches the whole image. `crop-or-pad` crops or pads evenly on both sides
        without scaling, like TensorFlow's resize_with_crop_or_pad. `center-crop` keeps the aspect
        ratio and crops the excess. `contain` keeps the aspect ratio and pads, like TensorFlow's
        resize_with_pad. `random-crop` crops a random part and stretches it. `pad` has no size: the
        frame is as large as the largest image of a batch.
    size: height and width of the frame; None for `pad`.
    shorter_side: for `center-crop` and `pad`, the length to scale the shorter side to first.
    longer_side: for `pad`, the length to scale the longer side to. If both sides are given, the
        smaller result is used.
    crop_area: for `random-crop`, the minimum and maximum share of the image's area.
    crop_ratio: for `random-crop`, the minimum and maximum ratio of width to height.
    flip: the direction to flip in, with a probability of 0.5.
    """

    kind: FitKind
    size: tuple[int, int] | None = None
    shorter_side: int | None = None
    longer_side: int | None = None
    crop_area: tuple[float, float] = CROP_AREA
    crop_ratio: tuple[float, float] = CROP_RATIO
    flip: Flip | None = None

    @property
    def crops(self) -> bool:
        """Whether it may use less than the whole image."""
        return self.kind in ("random-crop", "center-crop", "crop-or-pad")

    @property
    def number_count(self) -> int:
        """How many random numbers `place` needs for an image."""
        return (2 * _CROP_TRIES + 2) * (self.kind == "random-crop") + 2 * (self.flip is not None)

    def place(self, height: int, width: int, numbers: Sequence[float] = ()) -> Placement:
        """Place an image of this size. For `pad`, the frame has the size of the scaled image."""
        place = getattr(self, f"_{self.kind.replace('-', '_')}")  # the method of the kind
        placement = place(height, width, numbers)
        if self.flip is not None:
            mirrors = self.flip != "vertical" and numbers[-1] < 0.5
            overturns = self.flip != "horizontal" and numbers[-2] < 0.5
            if mirrors or overturns:
                placement = placement._replace(is_mirrored=mirrors, is_upside_down=overturns)
        return placement  # type: ignore[no-any-return]

    def _resize(self, height: int, width: int, _: object) -> Placement:
        rows, columns = self._frame
        return Placement(0, 0, height, width, rows, columns, 0, 0, rows, columns)

    def _crop_or_pad(self, height: int, width: int, _: object) -> Placement:
        (top, at_top, rows) = _crop_or_pad(height, self._frame[0])
        (left, at_left, columns) = _crop_or_pad(width, self._frame[1])
        return Placement(top, left, rows, columns, rows, columns, at_top, at_left, *self._frame)

    def _center_crop(self, height: int, width: int, _: object) -> Placement:
        frame_height, frame_width = self._frame
        scale = max(frame_height / height, frame_width / width)
        if self.shorter_side is not None:
            scale = self.shorter_side / min(height, width)
        rows, to_height = _covered(height, scale, frame_height)
        columns, to_width = _covered(width, scale, frame_width)
        return Placement(
            (height - rows) // 2,
            (width - columns) // 2,
            rows,
            columns,
            to_height,
            to_width,
            (frame_height - to_height) // 2,
            (frame_width - to_width) // 2,
            frame_height,
            frame_width,
        )

    def _contain(self, height: int, width: int, _: object) -> Placement:
        """Uses float32 as TensorFlow does: 223.99998 rows become 223."""
        frame_height, frame_width = self._frame
        sides = np.array((height, width), np.float32)
        frame = np.array(self._frame, np.float32)
        fitted = sides / (sides / frame).max()
        to_height, to_width = np.maximum(np.floor(fitted), 1).astype(int).tolist()
        at_top, at_left = np.maximum((frame - fitted) // 2, 0).astype(int).tolist()
        return Placement(
            0, 0, height, width, to_height, to_width, at_top, at_left, frame_height, frame_width
        )

    def _random_crop(self, height: int, width: int, numbers: Sequence[float]) -> Placement:
        """Like torchvision's RandomResizedCrop: the first random part that fits into the image, or
        else the largest central part with an allowed aspect ratio.
        """
        narrowest, widest = self.crop_ratio
        smallest, largest = self.crop_area
        low, high = math.log(narrowest), math.log(widest)
        for attempt in range(_CROP_TRIES):
            area = height * width * (smallest + (largest - smallest) * numbers[2 * attempt])
            ratio = math.exp(low + (high - low) * numbers[2 * attempt + 1])
            rows, columns = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if 0 < rows <= height and 0 < columns <= width:
                top = int(numbers[2 * _CROP_TRIES] * (height - rows + 1))
                left = int(numbers[2 * _CROP_TRIES + 1] * (width - columns + 1))
                break
        else:
            rows, columns = height, width
            if width < height * narrowest:
                rows = max(1, min(height, round(width / narrowest)))
            elif width > height * widest:
                columns = max(1, min(width, round(height * widest)))
            top, left = (height - rows) // 2, (width - columns) // 2
        return Placement(top, left, rows, columns, *self._frame, 0, 0, *self._frame)

    def _pad(self, height: int, width: int, _: object) -> Placement:
        scales = []
        if self.shorter_side is not None:
            scales.append(self.shorter_side / min(height, width))
        if self.longer_side is not None:
            scales.append(self.longer_side / max(height, width))
        scale = min(scales, default=1.0)
        rows, columns = max(1, round(height * scale)), max(1, round(width * scale))
        return Placement(0, 0, height, width, rows, columns, 0, 0, rows, columns)

    @property
    def _frame(self) -> tuple[int, int]:
        assert self.size is not None
        return self.size


def in_frame(placement: Placement, frame_height: int, frame_width: int) -> Placement:
    """Move a placement to the top left of a larger frame, also if it is flipped."""
    return placement._replace(
        at_top=frame_height - placement.to_height if placement.is_upside_down else 0,
        at_left=frame_width - placement.to_width if placement.is_mirrored else 0,
        frame_height=frame_height,
        frame_width=frame_width,
    )


def _crop_or_pad(side: int, frame_side: int) -> tuple[int, int, int]:
    """The start of the part in the image, its start in the frame, and its length."""
    if side > frame_side:
        return (side - frame_side) // 2, 0, frame_side
    return 0, (frame_side - side) // 2, side


def _covered(side: int, scale: float, frame_side: int) -> tuple[int, int]:
    """The length of a side that is cropped, and the length that it is resized to."""
    scaled = max(1, round(side * scale))
    if scaled <= frame_side:
        return side, scaled
    return max(1, round(side * frame_side / scaled)), frame_side
