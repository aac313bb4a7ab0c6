"""Feature lists of SequenceExamples: a feature for each step, of all steps or of chosen ones."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.format.example import BytesArray, Column, FeatureSpec, RaggedArray, Schema
from recordsmith.loading.features.bytes import Raw, Text
from recordsmith.loading.features.feature import (
    BatchRows,
    ColumnRequest,
    Feature,
    ImageFeature,
    Kept,
    RandomNumbers,
    ValueFeature,
)
from recordsmith.loading.features.numbers import Ragged, TooLong, check_room, pad, too_long
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, DataError, Defect, option
from recordsmith.support.explaining import check_option, check_word
from recordsmith.support.number_options import count_number

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset

_LARGEST_FRAMES = 1 << 16
_RAGGED = "'ragged' for steps of different lengths"
_PADDED = "Use rs.Padded for one length of all steps."


@dataclass(frozen=True)
class Steps(ValueFeature):
    """The steps of a feature list of SequenceExamples, padded: (batch, steps, ...).

    Each step is what the feature makes of a record: `Steps(Raw("rgb", (1024,), "uint8"))` is uint8,
    (batch, steps, 1024). `Steps(Image("frames", 64))` is (batch, steps, 64, 64, 3); the images of a
    record are cropped and flipped alike. Padding is 0, empty bytes, empty text, or black; that of
    `Padded` is its `fill`. A record without the list has no steps.

    Adds `<name>_lengths`, int64, (batch,): the number of steps of each record; for steps of
    `Padded`, also `<name>_step_lengths`, int64, (batch, steps).

    With `length="ragged"`, or steps of ragged features, it is a RaggedArray with a row for each
    record, whose values are those of all steps: an array (steps, ...), or another RaggedArray.
    `Text` then has a list for each record.

    Attributes:
        feature: of one step, such as Scalar, Tensor, Padded, Ragged, Bytes, Text, Raw or Image.
        length: the number of steps of all rows, or "ragged". Default: that of the longest row of
            the batch.
        frames: use only so many steps of longer records, in order; (batch, frames, ...).
        choose: which frames. `even`: frame i is step floor((2 i + 1) steps / (2 frames)), the
            middle of each of `frames` parts of equal length. `random`: different steps, all equally
            likely; features of one loader choose the same ones if they have as many.
        too_long: for a record with more than `length` steps: an `error`, or `cut` the rest.

    Raises:
        OptionError: `feature` is not of single steps, or options exclude each other.

    Example:
        with rs.ShardWriter("videos.tfrecord") as writer:
            for steps in (2, 3):
                lists = {"rgb": [bytes(1024)] * steps}
                writer.write(rs.encode_sequence_example({"id": b"a"}, lists))
        features = {"rgb": rs.Steps(rs.Raw("rgb", (1024,), "uint8"), length=300)}
        batch = next(iter(rs.Loader(rs.open("videos.tfrecord"), features, batch_size=2)))
        print(batch["rgb"].shape, batch["rgb_lengths"])  # (2, 300, 1024) [2 3]
    """

    feature: Feature
    length: int | Literal["ragged"] | None = None
    _: KW_ONLY
    frames: int | None = None
    choose: Literal["even", "random"] = "even"
    too_long: TooLong = "error"

    def __post_init__(self) -> None:
        _check_feature(self.feature)
        check_room(None if self.length == "ragged" else self.length, self.too_long)
        is_usual = not isinstance(self.length, int) or not self.is_ragged
        check_option(is_usual, "length", self.length, _RAGGED, _PADDED)
        check_word("choose", self.choose, ("even", "random"))
        if self.frames is None:
            expected = f"a number for {option('choose', 'random')}"
            check_option(self.choose == "even", "frames", None, expected)
            return
        object.__setattr__(self, "frames", count_number("frames", self.frames, _LARGEST_FRAMES))
        is_alone = not isinstance(self.length, int)
        check_option(is_alone, "frames", self.frames, f"None with a {option('length')}")

    @property
    def key(self) -> str:
        """The key of the feature list."""
        return getattr(self.feature, "key", "")

    @property
    def is_image(self) -> bool:
        return not isinstance(self.feature, ValueFeature)

    @property
    def is_ragged(self) -> bool:
        """Whether it makes RaggedArrays, without `<name>_lengths`."""
        shape = getattr(self.feature, "shape", None)
        is_open = isinstance(shape, tuple) and None in shape  # of Serialized
        return "ragged" in (self.length, shape) or is_open or isinstance(self.feature, Ragged)

    @property
    def width(self) -> int | None:
        """The number of steps of each row; None if it differs by batch."""
        return self.frames if self.length in (None, "ragged") else self.length  # type: ignore[return-value]

    def scaling_digest(self) -> str | None:
        return self.feature.scaling_digest()

    def requests(self) -> dict[str, ColumnRequest]:
        most = self.length if isinstance(self.length, int) and self.too_long == "error" else None
        return {
            key: msgspec.structs.replace(request, in_steps=True, max_steps=most)
            for key, request in self.feature.requests().items()
            if request is not None
        }

    def outputs(self, name: str) -> tuple[str, ...]:
        lengths = f"{name}_lengths"
        inner = (
            f"{name}_step_lengths" if entry == lengths else entry
            for entry in self.feature.outputs(name)
        )
        return (*inner,) if self.is_ragged else (*inner, lengths)

    def for_schema(self, schema: Schema) -> Feature:
        if self.is_image:
            return self.feature.of_steps(self)  # type: ignore[attr-defined, no-any-return]
        return replace(self, feature=self.feature.for_schema(schema))

    def of_datasets(self, datasets: Sequence[Dataset], specs: Mapping[str, FeatureSpec]) -> Steps:
        return replace(self, feature=self.feature.of_datasets(datasets, specs))

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        columns: dict[str, Any] = {key: rows.columns[key] for key in self.requests()}
        for error in self.errors({key: column.lengths for key, column in columns.items()}):
            raise error
        first = next(iter(columns.values()))
        numbers = self.keep(first.lengths, rows.random_numbers).numbers
        within, counts = numbers.values, numbers.lengths
        row_of = np.repeat(np.arange(rows.count), counts)
        if len(within) < len(first.values):
            places = first.row_splits[row_of] + within
            columns = {key: RaggedArray(column.values[places], numbers.row_splits)
                       for key, column in columns.items()}  # fmt: skip
        if not self.keeps_columns:
            arrays = self._arrays(columns[self.key].values, counts, rows)
            if arrays is not None:
                return arrays, counts
        of_steps = BatchRows(
            rows.positions[row_of],
            rows.random_numbers.select(row_of),
            columns={key: column.values for key, column in columns.items()},
        )
        try:
            entries = self.feature.values(of_steps)  # type: ignore[attr-defined]
        except DataError as error:
            if error.record is not None:
                number, error.record = error.record, int(row_of[error.record])
                error.problem = f"step {within[number]}: {error.problem}"
            raise
        if self.is_ragged:
            return tuple(_ragged(entry, numbers.row_splits) for entry in entries)
        fill: Any = "" if isinstance(self.feature, Text) else getattr(self.feature, "fill", 0)
        fills = [fill] + [0] * (len(entries) - 1)  # others are lengths
        padded = (
            _padded(entry, counts, self.width, fill)
            for entry, fill in zip(entries, fills, strict=True)
        )
        return (*padded, counts)

    @property
    def keeps_columns(self) -> bool:
        return self.is_ragged or not isinstance(self.feature, Raw)

    def _arrays(
        self, steps: BytesArray, counts: Int64Array, rows: BatchRows
    ) -> npt.NDArray[Any] | None:
        """Copy arrays of one size straight into their places; None if they must be converted."""
        raw = self.feature
        assert isinstance(raw, Raw)
        dtype = np.dtype(raw.dtype)
        size = math.prod(raw.shape) * dtype.itemsize
        starts, stops = steps.spans()
        is_converted = dtype.kind == "b" or not dtype.isnative or sys.byteorder != "little"
        if is_converted or raw.count or not size * starts.size or (stops - starts != size).any():
            return None
        width = counts.max(initial=0) if self.width is None else self.width
        arrays = rows.allocate(f"{self.key}/steps", (rows.count, width, size), np.uint8)
        steps.copy_padded(counts, arrays)
        return arrays.view(dtype).reshape(rows.count, width, *raw.shape)

    def errors(self, counts_of: Mapping[str, Int64Array]) -> Iterator[DataError]:
        """Yield an error for each row with too many steps, or with different numbers of them."""
        (first, counts), *others = counts_of.items()
        for other, of_other in others:
            for row in np.flatnonzero(of_other != counts).tolist():
                yield CorruptDataError(
                    Defect.FEATURE_SHAPE,
                    "feature lists have different numbers of steps",
                    found=f"{first!r} {counts[row]}, {other!r} {of_other[row]}",
                    expected="as many steps in each",
                    feature=other,
                    record=row,
                )
        yield from too_long(self, first, counts, "step")

    def keep(self, counts: Int64Array, random_numbers: RandomNumbers) -> Kept:
        """Return which steps are used of rows with so many of them."""
        kept = Kept.first(counts, self.width)
        numbers, lengths = kept.numbers, kept.numbers.lengths
        if self.frames is not None and self.choose == "even":
            all_counts, used = np.repeat(counts, lengths), np.repeat(lengths, lengths)
            numbers.values[:] = (2 * numbers.values + 1) * all_counts // (2 * used)
        elif self.frames is not None:
            draws = random_numbers.uniform("steps/frames", self.frames)
            for row in np.flatnonzero(lengths < counts).tolist():
                numbers[row][:] = _drawn(draws[row], int(counts[row]))
        return kept


def _drawn(numbers: npt.NDArray[np.float64], count: int) -> list[int]:
    """Draw different integers below `count`, one for each random number, sorted (Floyd)."""
    drawn: set[int] = set()
    for last, number in enumerate(numbers.tolist(), count - len(numbers)):
        place = int(number * (last + 1))
        drawn.add(last if place in drawn else place)
    return sorted(drawn)


def _check_feature(feature: object) -> None:
    """Raise OptionError unless a feature can be that of one step."""
    is_usable = isinstance(feature, ValueFeature) and not isinstance(feature, Steps)
    if isinstance(feature, ImageFeature):
        from recordsmith.loading.features.images.image import Image

        is_usable = isinstance(feature, Image) and feature.count is None
    requests: Mapping[str, ColumnRequest | None] = feature.requests() if is_usable else {}  # type: ignore[attr-defined]
    are_alone = isinstance(feature, ValueFeature) or len(requests) == 1
    is_usable = are_alone and all(
        request is not None and request.default is None for request in requests.values()
    )
    expected = "a feature of one step without a default, such as Scalar(key), Raw(key, shape, "
    expected += "dtype), or Image(key) without a count or keys of sides"
    check_option(requests and is_usable, "feature", feature, expected)


def _ragged(entry: Any, splits: Int64Array) -> Column:
    if not isinstance(entry, np.ndarray) or entry.dtype != object:
        return RaggedArray(entry, splits)
    lists = np.empty(len(splits) - 1, object)
    for row in range(len(lists)):
        lists[row] = entry[splits[row] : splits[row + 1]].tolist()
    return lists


def _padded(entry: Any, counts: Int64Array, width: int | None, fill: Any) -> Column:
    """Pad the steps of rows, which are end to end: (rows, width, ...)."""
    check_option(not isinstance(entry, RaggedArray), "length", width, _RAGGED, _PADDED)
    if not isinstance(entry, BytesArray):
        return pad(entry, counts, width, fill)[0]
    places = np.arange(math.prod(entry.shape)).reshape(entry.shape)
    places, _ = pad(places, counts, width, -1)
    flat = entry.reshape(-1) if len(entry) else BytesArray.from_values([b""])
    cleared: BytesArray = flat[places].cleared(places < 0)
    return cleared
