"""Statistics of images: formats, channels and sizes, read from headers without decoding.

Sizes are compared with the height and width in the record, if it has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.examining.stats.feature_blocks import FeatureBlock
from recordsmith.examining.stats.number_stats import NumberBuilder, NumberStats
from recordsmith.examining.stats.sampling import Builder, FirstPlace, Hashes, Places
from recordsmith.example import BytesArray
from recordsmith.image import jpeg_variant, read_image_header, starts_like_image
from recordsmith.reports import Place
from recordsmith.summaries import Report

_LARGEST_SIDE = 2**31 - 1


class DeclaredSizes(NamedTuple):
    """The sizes of images given in their records, (count,) each; `is_known`: which are given."""

    heights: Int64Array
    widths: Int64Array
    is_known: npt.NDArray[np.bool_]

    def of(self, rows: Int64Array) -> DeclaredSizes:
        """Return the sizes for some records."""
        return DeclaredSizes(self.heights[rows], self.widths[rows], self.is_known[rows])


def declared_sizes(
    blocks: Mapping[str, FeatureBlock], height_key: str, width_key: str, record_count: int
) -> DeclaredSizes:
    """Return the image size of each record that has one height and one width."""
    sides, is_known = [], np.ones(record_count, bool)
    for key in (height_key, width_key):
        given = blocks.get(key)
        values: Any = np.zeros(record_count, np.int64)
        if given is None or "int64" not in given.values:
            is_known[:] = False
        else:
            rows = given.rows["int64"]
            values[rows] = given.values["int64"]
            is_known &= np.bincount(rows, minlength=record_count) == 1
        sides.append(values)
    return DeclaredSizes(sides[0], sides[1], is_known)


class ImageSize(NamedTuple):
    """The size of images in pixels, and how often it occurs."""

    width: int
    height: int
    count: int  # type: ignore[assignment] # hides tuple.count


@dataclass(frozen=True, repr=False)
class ImageStats(Report):
    """Statistics of images.

    count: number of images with a readable header.
    unreadable: number of values that begin like an image but have no readable header.
    formats, channels: number of images by format (named as in TensorFlow) and by channels.
    variants: number of progressive and tiled jpeg, animated gif and webp, and 16-bit png.
    heights, widths, pixels: sizes in pixels, as stored.
    sizes: the most frequent sizes, with their counts in the sample of `pixels`.
    largest_place: place of the first of the largest images; None without images.
    declared: number of images whose record has a height and width.
    differing: how many of them differ from the header.
    turned: how many of those have height and width swapped.
    differing_place: place of the first that differs.
    """

    count: int
    unreadable: int
    formats: dict[str, int]
    channels: dict[int, int]
    variants: dict[str, int]
    heights: NumberStats
    widths: NumberStats
    pixels: NumberStats
    sizes: tuple[ImageSize, ...]
    largest_place: Place | None
    declared: int
    differing: int
    turned: int
    differing_place: Place | None


class ImageBuilder(Builder):
    """Collects encoded images."""

    def __init__(self) -> None:
        self._formats: Counter[str] = Counter()
        self._channels: Counter[int] = Counter()
        self._variants: Counter[str] = Counter()
        self._heights, self._widths, self._pixels = (NumberBuilder() for _ in range(3))
        self._sizes = NumberBuilder()
        self._unreadable = self._declared = self._differing = self._turned = 0
        self._largest, self._first_differing = FirstPlace(), FirstPlace()

    def add(
        self, values: BytesArray, hashes: Hashes, places: Int64Array, declared: DeclaredSizes
    ) -> Int64Array:
        """Add those of some values that begin like images; return the indices of the images.

        `places` and `declared` are the place and the sizes in the record of each value.
        """
        indices, sides = [], []
        for number, view in enumerate(values.views()):
            if not starts_like_image(view):
                continue
            header = read_image_header(view)
            if header is None or max(header.height, header.width) > _LARGEST_SIDE:
                self._unreadable += 1
                continue
            self._formats[header.format] += 1
            self._channels[header.channels] += 1
            variant = jpeg_variant(view) if header.format == "jpeg" else header.variant
            if variant:
                self._variants[f"{variant} {header.format}"] += 1
            indices.append(number)
            sides.append((header.height, header.width))
        chosen = np.array(indices, np.int64)
        if indices:
            heights, widths = np.array(sides, np.int64).T
            self._add_sizes(heights, widths, hashes[chosen], places[chosen])
            self._compare(heights, widths, declared.of(chosen), places[chosen])
        return chosen

    def _add_sizes(
        self, heights: Int64Array, widths: Int64Array, hashes: Hashes, places: Int64Array
    ) -> None:
        pixels = heights * widths
        self._heights.add(heights, hashes)
        self._widths.add(widths, hashes)
        self._pixels.add(pixels, hashes)
        self._sizes.add(widths << 32 | heights, hashes)
        largest = int(pixels.argmax())
        self._largest.add(int(places[largest]), rank=int(pixels[largest]))

    def _compare(
        self,
        heights: Int64Array,
        widths: Int64Array,
        given: DeclaredSizes,
        places: Int64Array,
    ) -> None:
        self._declared += int(np.count_nonzero(given.is_known))
        differs = (heights != given.heights) | (widths != given.widths)
        differs &= given.is_known
        if differs.any():
            swapped = differs & (heights == given.widths) & (widths == given.heights)
            self._differing += int(np.count_nonzero(differs))
            self._turned += int(np.count_nonzero(swapped))
            self._first_differing.add(int(places[differs].min()))

    def finish(self, places: Places) -> ImageStats:
        """Return the statistics."""
        heights, sizes = self._heights.finish(), self._sizes.finish().sample
        top = [] if sizes is None else [(int(size), count) for size, count in sizes.top]
        return ImageStats(
            count=heights.count,
            unreadable=self._unreadable,
            formats=dict(self._formats.most_common()),
            channels=dict(self._channels.most_common()),
            variants=dict(self._variants.most_common()),
            heights=heights,
            widths=self._widths.finish(),
            pixels=self._pixels.finish(),
            sizes=tuple(ImageSize(size >> 32, size & 0xFFFFFFFF, count) for size, count in top),
            largest_place=self._largest.finish(places),
            declared=self._declared,
            differing=self._differing,
            turned=self._turned,
            differing_place=self._first_differing.finish(places),
        )
