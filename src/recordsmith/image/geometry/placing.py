"""Crop, resize, pad and flip pixels into a frame, as a `Placement` from `fit` specifies.

OpenCV writes directly into the frame and releases the interpreter lock.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from recordsmith.image.geometry.fit import Placement
from recordsmith.support.buffers import Int64Array

Interpolation = Literal["auto", "linear", "area", "nearest", "cubic"]
Number = TypeVar("Number", bound=np.generic)

_CHANNELS = 4  # of an image, for all of OpenCV's functions
_MIN_ROWS = 16  # below this, different divisors give the same size


def divisor_for(placement: Placement, height: int, width: int) -> int:
    """The largest divisor (8, 4, 2 or 1) at which the image can be decoded.

    The cropped part is still at least as large as its target.
    """
    if height < _MIN_ROWS or width < _MIN_ROWS:
        return 1
    factor = min(placement.height // placement.to_height, placement.width // placement.to_width)
    return 8 if factor >= 8 else 4 if factor >= 4 else 2 if factor >= 2 else 1


def place_image(
    pixels: npt.NDArray[Any],
    placement: Placement,
    frame: npt.NDArray[Any],
    *,
    top: int = 0,
    left: int = 0,
    divisor: int = 1,
    interpolation: Interpolation = "auto",
) -> None:
    """Write the part of an image that a placement selects into a frame.

    Args:
        pixels: uint8, uint16 or float32, (height, width, channels): the image, or a part of it that
            contains what is placed, decoded at 1/`divisor` of its size.
        frame: (frame_height, frame_width, channels), overwritten entirely; it may be `pixels`
            itself if nothing is cut, resized or padded. It has the dtype of the pixels, or float32,
            to which they are converted before resizing.
        top, left: where `pixels` begin in the image, multiples of `divisor`.
        interpolation: `auto` is `area` if the part shrinks on both sides and has more than four
            times the pixels of its target, otherwise `linear`. `nearest` selects the same pixels
            as for masks.
    """
    part = _crop(pixels, placement.top - top, placement.left - left, placement, divisor)
    target = frame
    to_height, to_width = placement.to_height, placement.to_width
    if frame.shape[:2] != (to_height, to_width):
        top, left = placement.at_top, placement.at_left
        _blacken_around(frame, placement)
        target = frame[top : top + to_height, left : left + to_width]
    if part is target:
        pass
    elif part.shape == target.shape:
        np.copyto(target, part)
    else:
        _resize(part, target, interpolation)
    if placement.is_mirrored or placement.is_upside_down:
        _flip(frame, placement)


def place_mask(
    numbers: npt.NDArray[Number],
    placement: Placement,
    frame: npt.NDArray[Any],
    *,
    top: int = 0,
    left: int = 0,
    fill: int,
) -> None:
    """Write class numbers into a frame by nearest neighbour, as `resize_nearest` does.

    Args:
        numbers: (height, width): the mask, or a part of it that contains what is placed.
        frame: (frame_height, frame_width), overwritten entirely, with a dtype that holds the
            numbers.
        top, left: where `numbers` begin in the mask.
        fill: the value of the padding.
    """
    rows = placement.top - top + nearest(placement.height, placement.to_height)
    columns = placement.left - left + nearest(placement.width, placement.to_width)
    part = _take(_take(numbers, rows, 0), columns, 1)
    frame = _flipped(frame, placement)
    if part.shape != frame.shape:
        frame.fill(fill)
    at_top, at_left = placement.at_top, placement.at_left
    frame[at_top : at_top + placement.to_height, at_left : at_left + placement.to_width] = part


def _crop(
    pixels: npt.NDArray[Any], top: int, left: int, placement: Placement, divisor: int
) -> npt.NDArray[Any]:
    height, width = placement.height, placement.width
    if pixels.shape[:2] == (height, width) and divisor == 1:
        return pixels
    bottom, right = top + height, left + width
    if divisor > 1:  # round to the nearest pixel of the smaller image
        half = divisor // 2
        top, left = (top + half) // divisor, (left + half) // divisor
        bottom, right = (bottom + half) // divisor, (right + half) // divisor
    return pixels[top:bottom, left:right]


def _resize(part: npt.NDArray[Any], target: npt.NDArray[Any], interpolation: str) -> None:
    from recordsmith.support.libraries import cv2

    height, width = target.shape[:2]
    if interpolation == "nearest":
        rows, columns = nearest(part.shape[0], height), nearest(part.shape[1], width)
        target[...] = part.take(rows, axis=0).take(columns, axis=1)
        return
    if interpolation == "auto":
        shrinks = part.shape[0] >= height and part.shape[1] >= width
        is_much = part.shape[0] * part.shape[1] > 4 * height * width
        interpolation = "area" if shrinks and is_much else "linear"
    method = {
        "linear": cv2.INTER_LINEAR,
        "area": cv2.INTER_AREA,
        "cubic": cv2.INTER_CUBIC,
    }[interpolation]
    channels = target.shape[2]
    if channels > _CHANNELS:
        for first in range(0, channels, _CHANNELS):
            some = np.ascontiguousarray(part[:, :, first : first + _CHANNELS])
            resized = np.empty((*target.shape[:2], some.shape[2]), target.dtype)
            _resize(some, resized, interpolation)
            target[:, :, first : first + _CHANNELS] = resized
        return
    if channels == 1:  # OpenCV has no axis for a single channel
        part, target = part[:, :, 0], target[:, :, 0]
    if part.dtype != target.dtype:
        part = part.astype(target.dtype)
    written = cv2.resize(part, (width, height), dst=target, interpolation=method)
    if written is not target:  # OpenCV silently allocated another array
        target[...] = written


def _blacken_around(frame: npt.NDArray[Any], placement: Placement) -> None:
    top, left = placement.at_top, placement.at_left
    bottom, right = top + placement.to_height, left + placement.to_width
    frame[:top] = 0
    frame[bottom:] = 0
    frame[top:bottom, :left] = 0
    frame[top:bottom, right:] = 0


def _flip(frame: npt.NDArray[Any], placement: Placement) -> None:
    from recordsmith.support.libraries import cv2

    if frame.shape[2] > _CHANNELS:
        frame[:] = _flipped(frame, placement).copy()
        return
    code = 1 if not placement.is_upside_down else -1 if placement.is_mirrored else 0
    whole = frame[:, :, 0] if frame.shape[2] == 1 else frame
    written = cv2.flip(whole, code, dst=whole)
    if written is not whole:
        whole[...] = written


def _flipped(frame: npt.NDArray[Any], placement: Placement) -> npt.NDArray[Any]:
    """Return a view of a frame as it is before or after it is flipped."""
    rows, columns = -1 if placement.is_upside_down else 1, -1 if placement.is_mirrored else 1
    return frame[::rows, ::columns]


def _take(numbers: npt.NDArray[Number], places: Int64Array, axis: int) -> npt.NDArray[Number]:
    """Return some rows or columns, without a copy if they follow each other."""
    first, count = int(places[0]), len(places)
    if int(places[-1]) - first != count - 1:  # they ascend, so others are scaled
        return numbers.take(places, axis=axis)
    return numbers[first : first + count] if axis == 0 else numbers[:, first : first + count]


@lru_cache(maxsize=64)  # masks of the objects of one image
def nearest(length: int, to_length: int) -> npt.NDArray[np.int64]:
    """For each of `to_length` pixels, the index of the source pixel that contains its centre."""
    places: npt.NDArray[np.int64] = (2 * np.arange(to_length) + 1) * length // (2 * to_length)
    places.flags.writeable = False
    return places
