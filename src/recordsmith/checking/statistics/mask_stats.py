"""Statistics of masks: pixels per class, from a sample of the masks if there are many.

The sample has the masks with the smallest hashes of their positions, as many as the limits allow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recordsmith.checking.statistics.class_counts import NamedLabel, name_of
from recordsmith.checking.statistics.sampling import Hashes
from recordsmith.checking.statistics.table_cells import CLASS_ROWS, short
from recordsmith.dataset import ClassNames
from recordsmith.format.example import BytesArray
from recordsmith.image import MaskValues, decode_mask
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import DataError
from recordsmith.support.reports import Bar, ReportTable
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count

MAX_MASKS = 1000
MAX_PIXELS = 1 << 28
"""About two seconds of decoding. Each class in a mask counts as 256 pixels: it takes memory."""

_PIXELS_OF_CLASS = 256
_STRIP = 1 << 20  # np.bincount makes a copy of 8 bytes per pixel
_ALL = 1 << 64

DecodeMask = Callable[[memoryview], MaskValues]


@dataclass(frozen=True)
class MaskClass(NamedLabel):
    """A class in the sampled masks; its label is the pixel value.

    pixels: number of its pixels.
    masks: number of masks that have it.
    """

    pixels: int
    masks: int


@dataclass(frozen=True, repr=False)
class MaskStats(Report):
    """The classes of the masks in a feature.

    count: number of masks.
    sampled: how many of them were decoded; all other figures are of these.
    unreadable: how many cannot be decoded, or store colours instead of class numbers.
    pixels: number of pixels.
    classes: the classes by label.
    """

    count: int
    sampled: int
    unreadable: int
    pixels: int
    classes: tuple[MaskClass, ...]

    def table(self, key: str) -> ReportTable:
        ordered = sorted(self.classes, key=lambda mask_class: -mask_class.pixels)
        rows = [
            (
                str(mask_class),
                f"{mask_class.pixels / self.pixels:.2%}",
                f"{mask_class.masks:,}",
                Bar(mask_class.pixels / ordered[0].pixels),
            )
            for mask_class in ordered
        ]
        decoded = format_count(self.count, "mask")
        if self.sampled < self.count:
            decoded = f"{self.sampled:,} of {self.count:,} masks, sampled"
        heads = (f"{decoded} in {short(key)}", "pixels", "masks", "")
        note = f"{self.unreadable:,} unreadable" if self.unreadable else ""
        return ReportTable("", heads, rows, heads[1:3], ("",), (), note, CLASS_ROWS)


CountedMask = tuple[int, Int64Array, Int64Array]
"""The hash of its position, its labels and their pixels; no labels if it cannot be decoded."""


class MaskBuilder:
    """Collects the masks of one feature.

    limit: masks whose hashes are at least this are outside of the sample. It may be lowered to that
        of another part of the data, so that fewer masks are decoded.
    """

    def __init__(self) -> None:
        self.limit = _ALL
        self._count = self._size = 0
        self._masks: list[CountedMask] = []

    def add(self, values: BytesArray, hashes: Hashes, decode: DecodeMask = decode_mask) -> None:
        """Add masks; decodes those that may belong to the sample."""
        self._count += len(hashes)
        near = np.flatnonzero(hashes <= np.uint64(self.limit - 1))
        for index in near[np.argsort(hashes[near])].tolist():
            if int(hashes[index]) < self.limit:
                view = next(values[index : index + 1].views())
                self._append((int(hashes[index]), *_count_pixels(view, decode)))

    def merge(self, other: MaskBuilder) -> None:
        self._count += other._count
        self.limit = min(self.limit, other.limit)
        for mask in other._masks:
            self._append(mask)
        self._shrink()

    def _append(self, mask: CountedMask) -> None:
        self._masks.append(mask)
        self._size += _size_of(mask)
        if len(self._masks) > 2 * MAX_MASKS or self._size > 2 * MAX_PIXELS:
            self._shrink()

    def _shrink(self) -> None:
        """Keep the masks with the smallest hashes within the limits, and at least one."""
        masks = sorted(self._masks, key=lambda mask: mask[0])
        self._masks, self._size = [], 0
        for mask in masks:
            size = self._size + _size_of(mask)
            if self._masks and (len(self._masks) == MAX_MASKS or size > MAX_PIXELS):
                self.limit = min(self.limit, mask[0])
            if mask[0] >= self.limit:
                return
            self._masks.append(mask)
            self._size = size

    def __getstate__(self) -> dict[str, object]:
        self._shrink()
        return vars(self)

    def finish(self, class_names: ClassNames | None) -> MaskStats:
        self._shrink()
        none = np.empty(0, np.int64)
        labels = np.concatenate([none, *(mask[1] for mask in self._masks)])
        pixels = np.concatenate([none, *(mask[2] for mask in self._masks)])
        known, indices = np.unique(labels, return_inverse=True)
        pixels_of, masks_of = np.zeros((2, len(known)), np.int64)
        np.add.at(pixels_of, indices, pixels)
        np.add.at(masks_of, indices, 1)
        classes = zip(known.tolist(), pixels_of.tolist(), masks_of.tolist(), strict=True)
        return MaskStats(
            count=self._count,
            sampled=len(self._masks),
            unreadable=sum(not len(mask[1]) for mask in self._masks),
            pixels=int(pixels.sum()),
            classes=tuple(
                MaskClass(label, name_of(label, class_names), area, masks)
                for label, area, masks in classes
            ),
        )


def _size_of(mask: CountedMask) -> int:
    return int(mask[2].sum()) + _PIXELS_OF_CLASS * len(mask[1])


def decode_raw(dtype: str) -> DecodeMask:
    """Return a decoder of masks that store rows of values."""

    def decode(data: memoryview) -> MaskValues:
        values: MaskValues = np.frombuffer(data, np.dtype(dtype).newbyteorder("<"))
        return values

    return decode


def _count_pixels(data: memoryview, decode: DecodeMask) -> tuple[Int64Array, Int64Array]:
    try:
        values: npt.NDArray[np.uint16] = decode(data).reshape(-1)  # type: ignore[assignment]
    except (DataError, ValueError):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    pixels = np.zeros(1, np.int64)
    for start in range(0, len(values), _STRIP):
        some = np.bincount(values[start : start + _STRIP], minlength=len(pixels))
        some[: len(pixels)] += pixels
        pixels = some
    labels = np.flatnonzero(pixels)
    return labels, pixels[labels]
