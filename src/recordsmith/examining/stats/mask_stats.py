"""Statistics of masks: pixels per class, from a sample of the masks if there are many.

The sample consists of the masks with the smallest hashes, as many as the limits below allow. It
does not depend on the order of the masks, so all threads share it, and decodes few other masks.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.dataset.labels import ClassNames
from recordsmith.errors import DataError
from recordsmith.examining.stats.class_counts import name_of
from recordsmith.examining.stats.sketches import Hashes
from recordsmith.example import BytesArray
from recordsmith.image import MaskValues, decode_mask
from recordsmith.summaries import Report

MOST_MASKS = 10_000
MOST_PIXELS = 1 << 28
"""About two seconds of decoding."""

MOST_COUNTS = 1 << 20
"""How many counts of a class in a mask are kept: 16 bytes each."""

_STRIP = 1 << 20  # np.bincount makes a copy of 8 bytes per pixel
_ALL = 1 << 64

DecodeMask = Callable[[memoryview], MaskValues]


@dataclass(frozen=True)
class MaskClass:
    """A class in the sampled masks.

    label: the pixel value.
    name: its name in `labels.txt`; None if it has no name.
    pixels: number of its pixels.
    masks: number of masks that have it.
    """

    label: int
    name: str | None
    pixels: int
    masks: int

    def __str__(self) -> str:
        return str(self.label) if self.name is None else f"{self.label} {self.name}"


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


@dataclass
class CountedMask:
    """Masks with the same bytes. Without labels if they cannot be decoded."""

    count: int
    labels: Int64Array
    pixels: Int64Array


class MaskSample:
    """Collects the masks of one feature. Thread-safe."""

    def __init__(self) -> None:
        self._count = 0
        self._masks: dict[int, CountedMask] = {}
        self._largest: list[int] = []  # a heap of the negative hashes
        self._limit = _ALL  # hashes from here on are outside of the sample
        self._pixels = self._counts = 0
        self._lock = threading.Lock()

    def add(self, values: BytesArray, hashes: Hashes, decode: DecodeMask = decode_mask) -> None:
        """Add masks and their hashes; decodes those that may belong to the sample."""
        with self._lock:
            self._count += len(hashes)
            limit = self._limit
        near = np.flatnonzero(hashes <= np.uint64(limit - 1))
        distinct, places, counts = np.unique(hashes[near], return_index=True, return_counts=True)
        found = zip(distinct.tolist(), near[places].tolist(), counts.tolist(), strict=True)
        for key, place, count in found:
            if not self._add_known(key, count):
                view = next(values[place : place + 1].views())
                self._add_new(key, _count_pixels(view, count, decode))

    def _add_known(self, key: int, count: int) -> bool:
        """Count a mask without decoding it; False if it must be decoded."""
        with self._lock:
            if key < self._limit and key not in self._masks:
                return False
            if key < self._limit:
                self._masks[key].count += count
            return True

    def _add_new(self, key: int, mask: CountedMask) -> None:
        with self._lock:
            if key >= self._limit:
                return
            if key in self._masks:  # another thread was faster
                self._masks[key].count += mask.count
                return
            self._masks[key] = mask
            heapq.heappush(self._largest, -key)
            self._pixels += int(mask.pixels.sum())
            self._counts += len(mask.pixels)
            while len(self._masks) > 1 and (
                len(self._masks) > MOST_MASKS
                or self._pixels > MOST_PIXELS
                or self._counts > MOST_COUNTS
            ):
                self._limit = self._drop_largest()

    def _drop_largest(self) -> int:
        """Drop the mask with the largest hash, and return the hash."""
        key = -heapq.heappop(self._largest)
        dropped = self._masks.pop(key)
        self._pixels -= int(dropped.pixels.sum())
        self._counts -= len(dropped.pixels)
        return key

    def merge(self, other: MaskSample) -> None:
        """Add everything that another sample has, of another process."""
        with self._lock:
            self._count += other._count
            self._limit = min(self._limit, other._limit)
            while self._largest and -self._largest[0] >= self._limit:
                self._drop_largest()
        for key, mask in other._masks.items():
            self._add_new(key, mask)

    def finish(self, class_names: ClassNames | None) -> MaskStats:
        """Return the statistics of everything added so far."""
        masks = list(self._masks.values())
        often = np.repeat([mask.count for mask in masks], [len(mask.labels) for mask in masks])
        none = np.empty(0, np.int64)
        each = np.concatenate([none, *(mask.labels for mask in masks)])
        pixels = np.concatenate([none, *(mask.pixels for mask in masks)]) * often
        labels, places = np.unique(each, return_inverse=True)
        classes = []
        for number, label in enumerate(labels.tolist()):
            chosen = places == number
            classes.append(
                MaskClass(
                    label,
                    name_of(label, class_names),
                    int(pixels[chosen].sum()),
                    int(often[chosen].sum()),
                )
            )
        return MaskStats(
            count=self._count,
            sampled=sum(mask.count for mask in masks),
            unreadable=sum(mask.count for mask in masks if not len(mask.labels)),
            pixels=int(pixels.sum()),
            classes=tuple(classes),
        )


def decode_raw(dtype: str) -> DecodeMask:
    """Return a decoder of masks that store rows of values."""

    def decode(data: memoryview) -> MaskValues:
        values: MaskValues = np.frombuffer(data, np.dtype(dtype).newbyteorder("<"))
        return values

    return decode


def _count_pixels(data: memoryview, count: int, decode: DecodeMask) -> CountedMask:
    try:
        values: npt.NDArray[np.uint16] = decode(data).reshape(-1)  # type: ignore[assignment]
    except (DataError, ValueError):
        return CountedMask(count, *np.empty((2, 0), np.int64))
    pixels = np.zeros(1, np.int64)
    for start in range(0, len(values), _STRIP):
        some = np.bincount(values[start : start + _STRIP], minlength=len(pixels))
        some[: len(pixels)] += pixels
        pixels = some
    labels = np.flatnonzero(pixels)
    return CountedMask(count, labels, pixels[labels])
