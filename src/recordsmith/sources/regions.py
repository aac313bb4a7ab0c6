"""COCO's polygons and run lengths -> masks, as NumPy arrays.

A polygon has the pixels whose centres lie inside of it (even-odd rule), so the polygon
(10, 10)-(20, 20) has exactly 100 pixels. Run lengths go down the columns, zeros first; the short
form writes them in characters from "0" on, five bits each, from the third on as a difference to
the one before the last. No array is made before the sizes are known to agree.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Mask: TypeAlias = npt.NDArray[np.uint8]
_FIRST_CHARACTER = 48
_LONGEST_RUN_BITS = 60


class RegionError(ValueError):
    """A segmentation is no polygon and no run lengths, or does not fit; says how."""


def rasterize(segmentation: Any, height: int, width: int) -> Mask:
    """The mask of one object.

    Args:
        segmentation: a list of polygons (x1, y1, x2, y2, ...), or `size` and `counts`.

    Returns:
        uint8, (height, width), 0 or 1.

    Raises:
        RegionError: it is neither, or of another size.
    """
    if isinstance(segmentation, dict):
        return _from_runs(segmentation, height, width)
    if not isinstance(segmentation, list) or not segmentation:
        raise RegionError(
            f"its segmentation is {str(segmentation)[:60]}; expected polygons or run lengths"
        )
    mask = np.zeros((height, width), np.uint8)
    for polygon in segmentation:
        _fill(mask, _points(polygon))
    return mask


def _points(polygon: Any) -> npt.NDArray[np.float64]:
    try:
        values = np.array(polygon, np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    if values.ndim != 1 or len(values) < 6 or len(values) % 2 or not np.isfinite(values).all():
        raise RegionError(
            f"its polygon is {str(polygon)[:60]}; expected at least three points, x1, y1, x2, y2, "
            "x3, y3"
        )
    return values.reshape(-1, 2)


def _fill(mask: Mask, points: npt.NDArray[np.float64]) -> None:
    """Where each edge crosses the middle of a row, what lies right of it changes sides."""
    height, width = mask.shape
    x1, y1 = points.T
    x2, y2 = np.roll(points, -1, axis=0).T
    upper, lower = np.minimum(y1, y2), np.maximum(y1, y2)
    first = np.clip(np.ceil(upper - 0.5), 0, height).astype(np.int64)
    stop = np.clip(np.ceil(lower - 0.5), 0, height).astype(np.int64)
    counts = np.maximum(stop - first, 0)
    edges = np.repeat(np.arange(len(points)), counts)
    if not len(edges):
        return
    rows = np.arange(len(edges)) - np.repeat(np.cumsum(counts) - counts, counts) + first[edges]
    slope = (x2 - x1)[edges] / (y2 - y1)[edges]
    crossings = x1[edges] + (rows + 0.5 - y1[edges]) * slope
    columns = np.clip(np.ceil(crossings - 0.5), 0, width).astype(np.int64)
    top, left = int(rows.min()), int(columns.min())
    bottom, right = int(rows.max()) + 1, int(columns.max()) + 1
    changes = np.zeros((bottom - top, right - left), np.uint8)
    np.add.at(changes.ravel(), (rows - top) * (right - left) + columns - left, 1)
    inside = np.add.accumulate(changes, axis=1, dtype=np.uint8) & 1  # overflow keeps it even or odd
    mask[top:bottom, left:right] |= inside[:, : width - left]


def _from_runs(segmentation: dict[str, Any], height: int, width: int) -> Mask:
    size, counts = segmentation.get("size"), segmentation.get("counts")
    if size != [height, width]:
        raise RegionError(
            f"its run lengths are of the size {str(size)[:60]}; expected [{height}, {width}], the "
            "picture's height and width"
        )
    if isinstance(counts, str):
        counts = _runs_of_text(counts, height * width)
    if not isinstance(counts, list) or not all(type(run) is int and run >= 0 for run in counts):
        raise RegionError(
            f"its run lengths are {str(counts)[:60]}; expected a string, or numbers from 0"
        )
    if sum(counts) != height * width:
        raise RegionError(
            f"its run lengths add up to {sum(counts):,}; expected {height * width:,}, the "
            "picture's pixels"
        )
    values = np.zeros(len(counts), np.uint8)
    values[1::2] = 1
    pixels = np.repeat(values, np.array(counts, np.int64))
    return np.ascontiguousarray(pixels.reshape(width, height).T)


def _runs_of_text(text: str, pixel_count: int) -> list[int]:
    """The short form of run lengths, as COCO's own files have it for crowds."""
    runs: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - _FIRST_CHARACTER
        if not 0 <= bits < 64 or shift > _LONGEST_RUN_BITS:
            raise RegionError(f"its run lengths hold {character!r}, which cannot be there")
        value |= (bits & 0x1F) << shift
        shift += 5
        if bits & 0x20:  # more follow
            continue
        if bits & 0x10:  # negative
            value -= 1 << shift
        if len(runs) > 2:
            value += runs[-2]
        if not 0 <= value <= pixel_count:
            raise RegionError(f"its run lengths hold {value:,}; the picture has {pixel_count:,}")
        runs.append(value)
        value = shift = 0
    if shift:
        raise RegionError("its run lengths end too early")
    return runs


class ClassMask:
    """One mask of labels from those of objects; where they overlap, the smaller one is on top."""

    def __init__(self, height: int, width: int, *, is_deep: bool) -> None:
        """`is_deep`: labels go up to 65,535, not only to 255."""
        self._whole: Any = np.zeros((height, width), np.uint16 if is_deep else np.uint8)
        self._patches: list[tuple[int, int, int, Mask, int]] = []

    def add(self, mask: Mask, label: int) -> None:
        """Take the mask of one object; only the part that has pixels is kept."""
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        if len(rows):
            top, left = int(rows[0]), int(columns[0])
            patch = mask[top : int(rows[-1]) + 1, left : int(columns[-1]) + 1].copy()
            self._patches.append((int(np.count_nonzero(patch)), top, left, patch, label))

    def draw(self) -> npt.NDArray[np.uint8] | npt.NDArray[np.uint16]:
        """The mask, (height, width); 0 where no object is."""
        for _, top, left, patch, label in sorted(
            self._patches, key=lambda patch: patch[0], reverse=True
        ):
            height, width = patch.shape
            self._whole[top : top + height, left : left + width][patch != 0] = label
        return self._whole  # type: ignore[no-any-return]
