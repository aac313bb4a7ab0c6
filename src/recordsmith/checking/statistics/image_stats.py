"""Statistics of images: formats, channels and sizes, read from headers without decoding."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recordsmith.checking.statistics.number_stats import NumberBuilder, NumberStats
from recordsmith.checking.statistics.sampling import Builder, Hashes
from recordsmith.checking.statistics.table_cells import format_number, short, spread, spread_table
from recordsmith.format.example import BytesArray
from recordsmith.image import find_image_header, starts_like_image
from recordsmith.support.buffers import Int64Array
from recordsmith.support.reports import ReportTable
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count
from recordsmith.support.words import size as format_size

_LARGEST_SIDE = 2**31 - 1
_TOP_SHOWN = 4


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
    heights, widths, pixels: sizes in pixels, as stored.
    sizes: the most frequent sizes, with their counts in the sample of `pixels`.
    """

    count: int
    unreadable: int
    formats: dict[str, int]
    channels: dict[int, int]
    heights: NumberStats
    widths: NumberStats
    pixels: NumberStats
    sizes: tuple[ImageSize, ...]

    def table(self, key: str, file_sizes: NumberStats) -> ReportTable:
        formats = ", ".join(f"{count:,} {name}" for name, count in self.formats.items())
        channels = ", ".join(
            f"{count:,} with {format_count(number, 'channel')}"
            for number, count in self.channels.items()
        )
        often = [size for size in self.sizes if size.count > 1 or self.count == 1][:_TOP_SHOWN]
        sizes = ", ".join(f"{width} x {height} ({count:,})" for width, height, count in often)
        note = f"{formats or 'none with a valid header'}; {channels or 'unknown channels'}"
        note += f"; most frequent: {sizes}" if sizes else ""
        rows = [
            spread("width", self.widths, format_number),
            spread("height", self.heights, format_number),
            spread("file size", file_sizes, format_size),
        ]
        return spread_table(f"images in {short(key)}", rows, note)


class ImageBuilder(Builder):
    """Collects encoded images."""

    def __init__(self) -> None:
        self._formats: Counter[str] = Counter()
        self._channels: Counter[int] = Counter()
        self._heights, self._widths, self._pixels = (NumberBuilder() for _ in range(3))
        self._sizes = NumberBuilder()
        self._unreadable = 0

    def add(self, values: BytesArray, hashes: Hashes) -> tuple[Int64Array, Int64Array]:
        """Add those of some values that begin like images; return the indices of the images, and
        of those that cannot be read.
        """
        indices, sides, unreadable = [], [], []
        for number, view in enumerate(values.views()):
            if not starts_like_image(view):
                continue
            header = find_image_header(view)
            if header is None or max(header.height, header.width) > _LARGEST_SIDE:
                unreadable.append(number)
                continue
            self._formats[header.format] += 1
            self._channels[header.channels] += 1
            indices.append(number)
            sides.append((header.height, header.width))
        chosen = np.array(indices, np.int64)
        if indices:
            heights, widths = np.array(sides, np.int64).T
            hashes = hashes[chosen]
            self._heights.add(heights, hashes)
            self._widths.add(widths, hashes)
            self._pixels.add(heights * widths, hashes)
            self._sizes.add(widths << 32 | heights, hashes)
        self._unreadable += len(unreadable)
        return chosen, np.array(unreadable, np.int64)

    def finish(self) -> ImageStats:
        heights, sizes = self._heights.finish(), self._sizes.finish().sample
        top = [] if sizes is None else [(int(size), count) for size, count in sizes.top]
        return ImageStats(
            count=heights.count,
            unreadable=self._unreadable,
            formats=dict(self._formats.most_common()),
            channels=dict(self._channels.most_common()),
            heights=heights,
            widths=self._widths.finish(),
            pixels=self._pixels.finish(),
            sizes=tuple(ImageSize(size >> 32, size & 0xFFFFFFFF, count) for size, count in top),
        )
