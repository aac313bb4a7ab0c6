"""Rasterize COCO's polygons and run lengths to masks, pixel for pixel like pycocotools; read PNGs.

A polygon is drawn on a grid five times as fine: its edges become chains of grid points, and where a
chain passes the middle of a pixel column, the column changes between outside and inside. Run
lengths go down the columns, zeros first; the compressed form has five bits per character from "0"
on, and from the third run on the difference to the run before the last.
"""

from __future__ import annotations

import base64
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.image import decode_mask, probe_mask
from recordsmith.support.errors import CorruptDataError

Mask: TypeAlias = npt.NDArray[np.uint8]
_FIRST_CHARACTER = 48
_LONGEST_RUN_BITS = 60
_GRID = 5  # grid points along one pixel
_MIDDLE = _GRID // 2  # the chain changes a column between its grid points 2 and 3
MAX_COORDINATE = 1_000_000  # pixels; the grid of pycocotools overflows where coordinates are larger
MAX_CROSSINGS = 1 << 20  # of one object: each takes some dozen bytes
MAX_POLYGONS = 4096  # of one object: each takes a tenth of a millisecond


class RegionError(ValueError):
    """A segmentation is not valid polygons, run lengths or a PNG, or does not fit its image."""


def rasterize(segmentation: Any, height: int, width: int) -> Mask:
    """Rasterize polygons (x1, y1, x2, y2, ...), run lengths (`size`, `counts`), or a PNG.

    Run lengths go along the rows if they have `by_row`. Of a PNG, `png` is its base64. Either may
    have `x` and `y`, where it begins, and is then smaller than the image.

    Returns uint8, (height, width), 0 or 1.
    """
    if isinstance(segmentation, dict) and not segmentation.keys().isdisjoint(("png", "x")):
        return _from_part(segmentation, height, width)
    if isinstance(segmentation, dict):
        return _from_runs(segmentation, height, width)
    if not isinstance(segmentation, list) or not segmentation:
        raise RegionError(
            f"invalid segmentation {str(segmentation)[:60]}; expected polygons or run lengths"
        )
    if len(segmentation) > MAX_POLYGONS:
        raise RegionError(f"more than {MAX_POLYGONS:,} polygons")
    mask = np.zeros((height, width), np.uint8)
    left = MAX_CROSSINGS
    for points in map(_points, segmentation):
        if len(points) > 2:  # two have a box, but no inside
            left -= _fill(mask, points, left)
    return mask


def _points(polygon: Any) -> npt.NDArray[np.float64]:
    try:
        values = np.array(polygon, np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    if values.ndim != 1 or len(values) < 4 or len(values) % 2 or not np.isfinite(values).all():
        raise RegionError(
            f"invalid polygon {str(polygon)[:60]}; expected at least two points x1, y1, x2, y2"
        )
    farthest = max(values.min(), values.max(), key=abs)
    if abs(farthest) > MAX_COORDINATE:
        raise RegionError(
            f"polygon coordinate {farthest:g} out of range; expected {-MAX_COORDINATE:,} to "
            f"{MAX_COORDINATE:,}"
        )
    return values.reshape(-1, 2)


def _fill(mask: Mask, points: npt.NDArray[np.float64], max_crossings: int) -> int:
    """Add the inside of a polygon; return how often it crosses pixel columns."""
    height, width = mask.shape
    x, y = (points.T * _GRID + 0.5).astype(np.int64)  # toward zero, as a cast in C
    left, right = (_pixel(edge, width) for edge in (x.min(), x.max()))
    top, bottom = (_pixel(edge, height) for edge in (y.min(), y.max()))
    if left == right or top == bottom:
        return 0
    entered = np.zeros((bottom - top + 1, right - left), np.uint8)  # or left, so often
    columns, rows = _crossings(x, y, left, right, max_crossings)
    below = np.minimum(np.maximum(rows, top), bottom) - top
    np.add.at(entered.ravel(), below * entered.shape[1] + columns - left, 1)
    inside = np.add.accumulate(entered, axis=0, dtype=np.uint8)[:-1]  # overflow is intended
    mask[top:bottom, left:right] |= inside & 1
    return len(columns)


def _pixel(coordinate: Any, size: int) -> int:
    """The first pixel whose middle lies at a grid point or behind it."""
    return min(max((int(coordinate) + _MIDDLE) // _GRID, 0), size)


def _crossings(x: Any, y: Any, left: int, right: int, max_count: int) -> tuple[Any, Any]:
    """Where the edges of a polygon on the grid cross the middles of the columns left to right.

    Columns and rows are the pixels from which on the inside changes; rows may lie outside.
    """
    x2, y2 = (np.concatenate((side[1:], side[:1])) for side in (x, y))
    first, stop = (
        np.minimum(np.maximum((edge + _MIDDLE) // _GRID, left), right)
        for edge in (np.minimum(x, x2), np.maximum(x, x2))
    )
    counts = stop - first
    total = int(counts.sum())
    if total > max_count:
        raise RegionError(f"the outline crosses pixel columns more than {MAX_CROSSINGS:,} times")
    dx, dy = x2 - x, y2 - y
    is_steep = np.abs(dx) < np.abs(dy)
    # chains are made from the smaller coordinate on, so that both directions give the same points
    is_turned = np.where(is_steep, dy, dx) < 0
    x, y = np.where(is_turned, x2, x), np.where(is_turned, y2, y)
    with np.errstate(divide="ignore", invalid="ignore"):  # of edges that cross nothing
        slope = np.where(is_steep, dx / dy, dy / dx)
    edges = np.repeat(np.arange(len(x)), counts)
    columns = np.arange(total) + (first - np.cumsum(counts) + counts)[edges]
    before = columns * _GRID + _MIDDLE
    rows = np.empty_like(columns)
    for row_of, chosen in ((_steep, is_steep[edges]), (_flat, ~is_steep[edges])):
        edge = edges[chosen]
        rows[chosen] = row_of(before[chosen], x[edge], y[edge], slope[edge])
    return columns, (rows + _MIDDLE) // _GRID


def _flat(before: Any, x: Any, y: Any, slope: Any) -> Any:
    """The upper of the two chain points on both sides of a crossing."""
    step = before - x
    return np.minimum(_rounded(y, slope, step), _rounded(y, slope, step + 1))


def _steep(before: Any, x: Any, y: Any, slope: Any) -> Any:
    """The same for edges with a point in each row of the grid: the last one before the crossing."""
    is_left = slope < 0
    step = np.ceil((before + 0.5 - x) / slope).astype(np.int64)  # exact except for rounding
    step -= (_rounded(x, slope, step - 1) > before) != is_left
    step += (_rounded(x, slope, step) > before) == is_left
    return y + step - 1


def _rounded(start: Any, slope: Any, step: Any) -> Any:
    """A chain coordinate after some steps, rounded and truncated as in C."""
    return (start + slope * step + 0.5).astype(np.int64)


def _from_runs(segmentation: dict[str, Any], height: int, width: int) -> Mask:
    size, counts = segmentation.get("size"), segmentation.get("counts")
    if size != [height, width]:
        raise RegionError(
            f"the run lengths have size {str(size)[:60]}; expected the image size [{height}, "
            f"{width}]"
        )
    if isinstance(counts, str):
        counts = _parse_runs(counts, height * width)
    if not isinstance(counts, list) or not all(type(run) is int and run >= 0 for run in counts):
        raise RegionError(
            f"invalid run lengths {str(counts)[:60]}; expected a string or numbers from 0"
        )
    if sum(counts) != height * width:
        raise RegionError(
            f"the run lengths add up to {sum(counts):,} pixels; expected {height * width:,}"
        )
    values = np.zeros(len(counts), np.uint8)
    values[1::2] = 1
    pixels = np.repeat(values, np.array(counts, np.int64))
    if segmentation.get("by_row"):
        return pixels.reshape(height, width)
    return np.ascontiguousarray(pixels.reshape(width, height).T)


def _from_part(segmentation: dict[str, Any], height: int, width: int) -> Mask:
    """The mask of a part of the image: a PNG, or run lengths."""
    try:
        data = (
            base64.b64decode(segmentation["png"], validate=True) if "png" in segmentation else b""
        )
        info = probe_mask(data) if data else None
        size = (info.height, info.width) if info else segmentation["size"]
        x, y, rows, columns = part = segmentation["x"], segmentation["y"], *size
        if not all(type(value) is int for value in part):
            raise TypeError
        is_inside = min(part) >= 0 and x + columns <= width and y + rows <= height
        pixels = decode_mask(data) != 0 if data and is_inside else None
    except CorruptDataError as error:
        raise RegionError(f"invalid mask: {error}") from None
    except (KeyError, TypeError, ValueError):
        raise RegionError("invalid mask: expected run lengths or a PNG, at a point") from None
    if not is_inside:
        raise RegionError(
            f"the mask of {columns}x{rows} pixels at {x}, {y} is outside the image; "
            f"expected it within {width}x{height}"
        )
    mask = np.zeros((height, width), np.uint8)
    mask[y : y + rows, x : x + columns] = (
        _from_runs(segmentation, rows, columns) if pixels is None else pixels
    )
    return mask


def _parse_runs(text: str, pixel_count: int) -> list[int]:
    """Decode compressed run lengths, which COCO uses for crowds."""
    runs: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - _FIRST_CHARACTER
        if not 0 <= bits < 64 or shift > _LONGEST_RUN_BITS:
            raise RegionError(f"invalid character {character!r} in the run lengths")
        value |= (bits & 0x1F) << shift
        shift += 5
        if bits & 0x20:  # more follow
            continue
        if bits & 0x10:  # negative
            value -= 1 << shift
        if len(runs) > 2:
            value += runs[-2]
        if not 0 <= value <= pixel_count:
            raise RegionError(f"run length {value:,} out of range; expected 0 to {pixel_count:,}")
        runs.append(value)
        value = shift = 0
    if shift:
        raise RegionError("truncated run lengths")
    return runs


class ClassMask:
    """One mask of labels from masks of objects, with smaller objects on top."""

    def __init__(self, height: int, width: int, *, is_deep: bool) -> None:
        """`is_deep`: labels go up to 65,535 instead of 255."""
        self._whole: Any = np.zeros((height, width), np.uint16 if is_deep else np.uint8)
        self._patches: list[tuple[int, int, int, Mask, int]] = []

    def add(self, mask: Mask, label: int) -> None:
        """Add the mask of one object; only its bounding box is kept."""
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        if len(rows):
            top, left = int(rows[0]), int(columns[0])
            patch = mask[top : int(rows[-1]) + 1, left : int(columns[-1]) + 1].copy()
            self._patches.append((int(np.count_nonzero(patch)), top, left, patch, label))

    def draw(self) -> npt.NDArray[np.uint8] | npt.NDArray[np.uint16]:
        """The mask, (height, width); 0 outside objects."""
        for _, top, left, patch, label in sorted(
            self._patches, key=lambda patch: patch[0], reverse=True
        ):
            height, width = patch.shape
            self._whole[top : top + height, left : left + width][patch != 0] = label
        return self._whole  # type: ignore[no-any-return]
