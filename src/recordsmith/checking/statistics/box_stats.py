"""Statistics of boxes: number per image, sizes, and boxes that are invalid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recordsmith.checking.statistics.feature_blocks import FeatureBlock
from recordsmith.checking.statistics.number_stats import NumberBuilder, NumberStats
from recordsmith.checking.statistics.sampling import Builder, hash_positions
from recordsmith.checking.statistics.table_cells import format_number, spread, spread_table
from recordsmith.format.example import Kind
from recordsmith.format.example.keys import BOX, HEIGHT, WIDTH
from recordsmith.support.buffers import Int64Array
from recordsmith.support.reports import ReportTable
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count

COCO_SIDES = (32, 96)
"""Boxes below 32 x 32 pixels are small, from 96 x 96 they are large (as in pycocotools)."""

_ROUNDING = 1e-4  # coordinates are float32, and often rounded


@dataclass(frozen=True, repr=False)
class BoxStats(Report):
    """Statistics of the boxes in `image/object/bbox/`.

    count: number of boxes.
    per_image: number of boxes of each Example.
    widths, heights, areas: as shares of the image, of boxes that are not degenerate.
    small, medium, large: number of boxes by their area in pixels, below 32 x 32, below 96 x 96 and
        above, in records that have the size of their image.
    degenerate: number of boxes without area: xmin >= xmax, ymin >= ymax, or NaN.
    outside: number of the other boxes with coordinates below 0 or above 1.
    mismatched: number of records whose coordinates have different numbers of values; their boxes
        are not counted.
    """

    count: int
    per_image: NumberStats
    widths: NumberStats
    heights: NumberStats
    areas: NumberStats
    small: int
    medium: int
    large: int
    degenerate: int
    outside: int
    mismatched: int

    def table(self) -> ReportTable:
        note = ""
        if self.small + self.medium + self.large:
            low, high = COCO_SIDES
            note = (
                f"{self.small:,} small (below {low} x {low} pixels), {self.medium:,} medium (below "
                f"{high} x {high}), {self.large:,} large"
            )
        rows = [
            spread("boxes per record", self.per_image, format_number),
            spread("width (of the image)", self.widths, "{:.1%}".format),
            spread("height", self.heights, "{:.1%}".format),
            spread("area", self.areas, "{:.2%}".format),
        ]
        return spread_table(format_count(self.count, "box", "boxes"), rows, note)


class BoxBuilder(Builder):
    """Collects boxes."""

    def __init__(self) -> None:
        self._per_image = NumberBuilder()
        self._widths, self._heights, self._areas = (NumberBuilder() for _ in range(3))
        self._counts: Counter[str] = Counter()  # the counts of BoxStats by name

    def add(self, blocks: Mapping[str, FeatureBlock], places: Int64Array) -> Int64Array:
        """Add the boxes of some records; `places` numbers the records.

        Returns the places of records with an invalid box.
        """
        if not any(key in blocks for key in BOX):
            self._per_image.add(np.zeros(len(places), np.int64), hash_positions(places))
            return places[:0]
        sides, rows_of = zip(*(_coordinates(blocks.get(key)) for key in BOX), strict=True)
        per_record = [np.bincount(rows, minlength=len(places)) for rows in rows_of]
        is_even = np.all([counts == per_record[0] for counts in per_record], axis=0)
        counts, rows = per_record[0], rows_of[0][is_even[rows_of[0]]]
        ymin, xmin, ymax, xmax = (
            side[is_even[rows]] for side, rows in zip(sides, rows_of, strict=True)
        )
        self._per_image.add(counts[is_even], hash_positions(places[is_even]))
        with np.errstate(all="ignore"):  # NaN, infinite and very large numbers
            heights, widths = ymax - ymin, xmax - xmin
            is_box = (heights > 0) & (widths > 0)
            within = (np.minimum(ymin, xmin) >= -_ROUNDING) & (
                np.maximum(ymax, xmax) <= 1 + _ROUNDING
            )
            is_outside = is_box & ~within
            hashes = hash_positions(places[rows])[is_box]
            self._heights.add(heights[is_box].astype(np.float32), hashes)
            self._widths.add(widths[is_box].astype(np.float32), hashes)
            self._areas.add((heights * widths)[is_box].astype(np.float32), hashes)
            pixels = heights * widths
            for key in (HEIGHT, WIDTH):
                pixels = pixels * _image_side(blocks.get(key), len(places))[rows]
            sizes = np.digitize(pixels[is_box & ~np.isnan(pixels)], [n * n for n in COCO_SIDES])
        small, medium, large = np.bincount(sizes, minlength=3).tolist()
        self._counts.update(
            count=len(rows),
            small=small,
            medium=medium,
            large=large,
            degenerate=len(rows) - int(np.count_nonzero(is_box)),
            outside=int(np.count_nonzero(is_outside)),
            mismatched=len(places) - int(np.count_nonzero(is_even)),
        )
        return np.concatenate([places[rows[~is_box | is_outside]], places[~is_even]])

    def finish(self) -> BoxStats | None:
        if not self._counts:
            return None
        return BoxStats(
            per_image=self._per_image.finish(),
            widths=self._widths.finish(),
            heights=self._heights.finish(),
            areas=self._areas.finish(),
            **self._counts,
        )


def _coordinates(block: FeatureBlock | None) -> tuple[npt.NDArray[np.float64], Int64Array]:
    """Return one side of all boxes, and the record of each; empty if they are not numbers."""
    kinds: tuple[Kind, ...] = ("float", "int64")
    for kind in kinds:
        if block is not None and (numbers := block.numbers(kind)) is not None:
            return np.asarray(numbers[0], np.float64), numbers[1]
    return np.empty(0), np.empty(0, np.int64)


def _image_side(block: FeatureBlock | None, record_count: int) -> npt.NDArray[np.float64]:
    """Return the height or width of the image of each record; NaN if it has not exactly one."""
    sides = np.full(record_count, np.nan)
    if block is not None and "int64" in block.values:
        rows = block.rows["int64"]
        sides[rows] = block.values["int64"]
        sides[np.bincount(rows, minlength=record_count) != 1] = np.nan
    return sides
