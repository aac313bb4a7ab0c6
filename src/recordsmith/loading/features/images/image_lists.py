"""The images or masks of each row: one, a number of them, or lists that are ragged or padded.

An image of a batch is stored in its record; padding is an image without bytes. Masks follow the
images of a row one by one, or, as those of objects, the boxes that a batch keeps.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import RaggedArray
from recordsmith.image import Placement
from recordsmith.loading.features.feature import (
    BatchRows,
    Feature,
    ImageBuffer,
    ImageCount,
    Kept,
    images_in,
)
from recordsmith.loading.features.images.frames import LARGEST_ROW, inner_sizes
from recordsmith.loading.features.images.stored_pixels import StoredPixels, stored_images
from recordsmith.loading.features.numbers import pad, too_long
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import CorruptDataError, DataError, Defect, OptionError, option
from recordsmith.support.words import count as counted
from recordsmith.support.words import suggest_names

Result = TypeVar("Result")


def image_outputs(name: str, fit: str | None, count: ImageCount) -> tuple[str, ...]:
    """Return the names of the entries of images or masks."""
    sizes = (f"{name}_sizes",) if fit == "pad" else ()
    return (name, *sizes, *((f"{name}_lengths",) if count == "padded" else ()))


class ImageLists:
    """The images of a batch, end to end, and the rows that they belong to.

    stored: the data of each image; empty for padding.
    kept: which images of their records they are.
    frames: the row of each image; its patch, row by row, if rows have patches; -1 for padding.
    row_splits: int64, (rows + 1,): the images of row i are row_splits[i] to row_splits[i + 1].
    """

    def __init__(
        self,
        rows: BatchRows,
        feature: Any,
        noun: str,
        keep: Callable[[Int64Array], Kept],
        patches: tuple[int, ...] = (),
    ) -> None:
        """`patches`: the number of patches of each row, if what is kept has those.

        feature: an Image or Mask.
        noun: what errors call an image.
        keep: returns which images are kept of rows with so many of them.
        """
        data, starts = stored_images(rows.columns[feature.key], feature.stored())
        counts = np.diff(starts)
        self.kept = kept = keep(counts)
        self._starts, self._counts = starts, counts
        row_count, numbers, lengths = len(counts), kept.numbers.values, kept.numbers.lengths
        per_row = math.prod(patches)
        frames = np.repeat(np.arange(len(lengths)), lengths)
        rows_of = frames // max(1, per_row)
        is_there = numbers < counts[rows_of]  # in rows with too few, which have failed, not all
        sources: Any = np.where(is_there, starts[rows_of] + numbers, -1)
        self.row_splits = kept.numbers.row_splits
        if feature.count != "ragged":
            sources = pad(sources, lengths, kept.width, -1)[0].ravel()
            frames = np.repeat(np.arange(len(lengths)), kept.width)
            self.row_splits = np.arange(row_count + 1) * (per_row * kept.width)
        width = () if feature.count is None else (kept.width,)
        self._shape = (row_count, *patches, *width)
        self._sources, self._splits = sources, self.row_splits.tolist()
        data.append(memoryview(b""))  # for padding
        self._noun, self._feature = noun, feature
        images = [data[source] for source in sources.tolist()]
        self.stored = StoredPixels(feature, rows.columns, images, noun)
        self.frames: list[int] = np.where(sources < 0, -1, frames).tolist()
        self._lengths = lengths.reshape(row_count, *patches)

    def each(
        self, rows: BatchRows, function: Callable[[int], Result | None]
    ) -> list[Result | None]:
        """Call a function for each image; None where it raises DataError, or the row has failed."""
        results: list[Result | None] = [None] * len(self.frames)
        for row in range(rows.count):
            if row in rows.failures:
                continue
            try:
                for number in self.of_row(row):
                    results[number] = self.call(function, number)
            except DataError as error:
                rows.fail(row, error)
        return results

    def of_row(self, row: int) -> range:
        return range(self._splits[row], self._splits[row + 1])

    def call(self, function: Callable[[int], Result], number: int) -> Result:
        """Call a function for an image; an error is of that image of its row."""
        try:
            return function(number)
        except DataError as error:
            if self._feature.count is not None:
                row = bisect_right(self._splits, number) - 1
                place = f"{self._sources[number] - self._starts[row]} of {self._counts[row]}"
                error.problem = f"{self._noun} {place}: {error.problem}"
            error.feature = error.feature or self._feature.key
            raise

    def entries(
        self, name: str, images: npt.NDArray[Any], placements: Sequence[Placement | None]
    ) -> dict[str, Any]:
        """Return the entries of a batch from arrays of all images: (images, ...)."""
        entries = {name: self._shaped(images)}
        if self._feature.fit == "pad":
            entries[f"{name}_sizes"] = self._shaped(inner_sizes(placements))
        if self._feature.count == "padded":
            entries[f"{name}_lengths"] = self._lengths
        return entries

    def _shaped(self, images: npt.NDArray[Any]) -> Any:
        if self._feature.count == "ragged":
            return RaggedArray(images, self.row_splits)
        return images.reshape(*self._shape, *images.shape[1:])


def keep_images(rows: BatchRows, counts: Int64Array, feature: Any, noun: str, area: int) -> Kept:
    """Return which of their images rows keep; rows with too many, of so many pixels each, fail."""
    if not isinstance(feature.count, str):
        return Kept.first(counts, feature.count or 1)
    for error in too_long(feature, feature.key, counts, noun):
        rows.fail(error.record, error)  # type: ignore[arg-type]
    return limited(Kept.first(counts, feature.length), rows, feature.key, noun, area)


def limited(kept: Kept, rows: BatchRows, key: str, noun: str, area: int) -> Kept:
    """Keep nothing of rows whose images would need too much memory, and let them fail."""
    lengths = kept.numbers.lengths
    per_row = len(lengths) // max(1, rows.count)
    totals = lengths.reshape(rows.count, per_row).sum(axis=1)
    is_good = totals * area <= LARGEST_ROW
    for row in np.flatnonzero(~is_good).tolist():
        error = CorruptDataError(
            Defect.FEATURE_SHAPE,
            f"feature {key!r} has too many {noun}s",
            found=f"{counted(totals[row], noun)} of {area:,} pixels",
            expected=f"at most {LARGEST_ROW:,} pixels in all",
            feature=key,
            record=row,
        )
        rows.fail(row, error)
    if is_good.all():
        return kept
    is_kept = np.repeat(is_good, per_row)
    numbers = kept.numbers.values[np.repeat(is_kept, lengths)]
    return kept._replace(numbers=RaggedArray(numbers, offsets_from_lengths(lengths * is_kept)))


# -- what masks and boxes follow -------------------------------------------------------------------


def check_leader(name: str, of: str | None, features: Mapping[str, Feature]) -> None:
    """Raise OptionError if the images that the feature `name` follows are missing or ambiguous."""
    images = images_in(features)
    if of is not None and of not in images:
        hint = suggest_names(of, images, "the loader has no Image")
        raise OptionError(
            f"feature {name!r}: {of!r} is not an Image or Patches; {hint}",
            option="of",
            value=of,
        )
    if of is None and len(images) > 1:
        raise ambiguous(name, list(images))


def ambiguous(name: str, leaders: Sequence[str | None]) -> OptionError:
    """Return the error for a feature that could follow several."""
    return OptionError(
        f"feature {name!r} could follow {' or '.join(map(repr, leaders))}",
        option="of",
        remedy=f"Pass {' or '.join(option('of', leader) for leader in leaders)}.",
    )


def leading(of: str | None, rows: BatchRows) -> ImageBuffer | None:
    """Return the images to follow, already begun; None without images."""
    images = {
        name: buffer for name, buffer in rows.buffers.items() if isinstance(buffer, ImageBuffer)
    }
    return next(iter(images.values()), None) if of is None else images[of]
