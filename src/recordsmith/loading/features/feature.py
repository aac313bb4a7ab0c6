"""The interface of features.

A feature requests columns of the records and makes entries of the batch of them: arrays whose first
axis counts the rows. A `ValueFeature` makes its entries directly from the columns. A `RowFeature`
works row by row, such as decoding an image, in several threads: it allocates arrays and fills
them. Masks and boxes follow an `ImageFeature`: they are transformed as its images are.

Features are immutable and independent of datasets, order and threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Column, FeatureSpec, Kind, RaggedArray, Schema
from recordsmith.loading.memory import Allocate, empty
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.permutation import mix_bits

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset
    from recordsmith.image import Placement

NUMBERS: tuple[Kind, ...] = ("int64", "float")
ImageCount: TypeAlias = int | Literal["ragged", "padded"] | None


class ColumnRequest(msgspec.Struct, frozen=True):
    """A column that a feature reads.

    kinds: the allowed kinds; all records must have the same.
    shape: of the values of a record; "ragged" for any number.
    default: the value for records without the feature, or a dict of values by kind; without it, a
        fixed shape is required, and a ragged row is empty.
    in_steps: whether it is a feature list of SequenceExamples, of whose steps `shape` is; the
        column is a RaggedArray with a row for each record, whose values are the steps. A record
        without the list has no steps.
    max_steps: the most steps that a record may have; None for any number.
    needs_value: whether a ragged row without values is an error, unless there is a default.
    """

    kinds: tuple[Kind, ...]
    shape: tuple[int, ...] | Literal["ragged"] = ()
    default: Any = None
    in_steps: bool = False
    max_steps: int | None = None
    needs_value: bool = False


class Feature(ABC):
    """An entry of a batch, as a user declares it."""

    @abstractmethod
    def requests(self) -> Mapping[str, ColumnRequest | None]:
        """Return the columns to read, by key; None to read only which records have the key."""

    def outputs(self, name: str) -> tuple[str, ...]:
        """Return the names of the entries that it makes when declared as `name`."""
        return (name,)

    def for_schema(self, schema: Schema) -> Feature:
        """Return this feature with the defaults that the schema of the records has."""
        return self

    def of_datasets(self, datasets: Sequence[Dataset], specs: Mapping[str, FeatureSpec]) -> Feature:
        """Return this feature with what it needs to know of the datasets and their columns."""
        return self

    def scaling_digest(self) -> str | None:
        """Return a hash of the statistics to normalise with; None without them."""
        return None

    def check(self, name: str, features: Mapping[str, Feature]) -> None:  # noqa: B027 - most need none
        """Raise OptionError if it conflicts with the other features."""


class ValueFeature(Feature):
    """A feature that is ready when its columns are decoded.

    keeps_columns: whether its entries may share the memory of the columns, so that these must be
        copies of what the records have.
    """

    @property
    def keeps_columns(self) -> bool:
        return True

    @abstractmethod
    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        """Return its entries of the batch, in the order of `outputs`."""


class RowFeature(Feature):
    """A feature with work for each row, or one that follows an `ImageFeature`, which begins first.

    has_pixels: whether its arrays are pixels, which take most of the time and memory.
    follows_boxes: whether it may follow boxes, which begin before it.
    """

    has_pixels: ClassVar[bool] = True
    follows_boxes: ClassVar[bool] = True

    @abstractmethod
    def begin(self, name: str, rows: BatchRows) -> BatchBuffer:
        """Allocate arrays for all rows. Errors of single rows go to `BatchRows.fail`."""


class ImageFeature(RowFeature):
    """A feature with images, which masks and boxes can follow.

    raw_shape: of images stored as raw pixels; None for files, which are decoded.
    """

    raw_shape: Sequence[int | str] | None = None

    @property
    @abstractmethod
    def is_random(self) -> bool:
        """Whether images are cropped or flipped at random."""

    @property
    def image_count(self) -> ImageCount:
        """How many images each row has, or ragged or padded; None if rows are images."""
        return None

    @abstractmethod
    def begin(self, name: str, rows: BatchRows) -> ImageBuffer:
        """Allocate the images, and compute their sizes and placements."""


class BatchRows(msgspec.Struct):
    """The rows of a batch in the making.

    positions: int64, (batch,): of the records in the dataset.
    random_numbers: the random numbers of the rows.
    allocate: allocates the arrays to fill.
    columns: the columns of the records, by key.
    presence: which records have a feature, bool, (batch,), by key.
    buffers: of the row features that began before.
    failures: the errors of rows, which need not be filled.
    """

    positions: Int64Array
    random_numbers: RandomNumbers
    allocate: Allocate = empty
    columns: Mapping[str, Column] = msgspec.field(default_factory=dict)
    presence: Mapping[str, Column] = msgspec.field(default_factory=dict)
    buffers: dict[str, BatchBuffer] = msgspec.field(default_factory=dict)
    failures: dict[int, Exception] = msgspec.field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.positions)

    def fail(self, row: int, error: Exception) -> None:
        """Record the error of a row; the first one counts."""
        self.failures.setdefault(row, error)


class BatchBuffer:
    """The entries of a row feature, which are ready when all rows are filled or have failed."""

    def __init__(self, entries: dict[str, npt.NDArray[Any]]) -> None:
        """`entries`: arrays by name; the first axis counts the rows."""
        self.entries = entries

    def fill(self, row: int) -> None:
        """Fill one row. Threads call it for different rows at the same time."""


class Kept(NamedTuple):
    """Which images or objects of its record each row of a batch has, or each patch of a row.

    numbers: a row for each row of the batch, or for each patch, row by row: numbers in the record.
    counts: int64, (rows,): how many the record has.
    length: the number that rows are padded to; None for that of the longest.
    """

    numbers: RaggedArray
    counts: Int64Array
    length: int | None

    @classmethod
    def first(cls, counts: Int64Array, length: int | None) -> Kept:
        """Keep all images of rows, or the first `length`."""
        starts = offsets_from_lengths(counts)
        numbers = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        return cls.cut(numbers, counts, counts, length)

    @classmethod
    def cut(
        cls, numbers: Int64Array, lengths: Int64Array, counts: Int64Array, length: int | None
    ) -> Kept:
        """Keep the first `length` numbers of rows that have `lengths` of them, end to end."""
        if length is not None:
            places = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            numbers, lengths = numbers[places < length], np.minimum(lengths, length)
        return cls(RaggedArray(numbers, offsets_from_lengths(lengths)), counts, length)

    @property
    def width(self) -> int:
        longest = int(self.numbers.lengths.max(initial=0))
        return longest if self.length is None else self.length


class ImageBuffer(BatchBuffer):
    """The images of a batch in the making.

    sizes: height and width of each stored image, row by row; None for failed rows and for images
        without bytes.
    placements: the placement of each image in its frame, or of each patch of all images, row by
        row; None as in `sizes`.
    frame: height and width of the frame.
    count: how many images each row has, as the feature declares it.
    kept: which images these are.
    patches: how many patches each image has; empty if rows are images, without such an axis.
    decoded_counts: how many pixels of each stored image were decoded, also at a reduced size; 0 for
        raw pixels and failed rows. Empty if nothing is decoded.
    """

    sizes: list[tuple[int, int] | None]
    placements: list[Placement | None]
    frame: tuple[int, int]
    count: ImageCount = None
    kept: Kept
    patches: tuple[int, ...] = ()
    decoded_counts: Sequence[int] = ()

    def pixel_counts(self) -> tuple[int, int]:
        """Return how many pixels the decoded images have, and how many of these were decoded."""
        image_pixels = sum(
            size[0] * size[1]
            for size, decoded in zip(self.sizes, self.decoded_counts, strict=False)
            if size is not None and decoded
        )
        return image_pixels, sum(self.decoded_counts)


def number_of_images(count: ImageCount, key: str, schema: Schema) -> ImageCount:
    """Return the declared number of images of a row; by default, that of all records if not 1."""
    known = schema.columns.get(key)
    if known is None or known.kind == "none":
        return count
    shape = known.shape or known.shape_if_present
    return shape[0] if count is None and shape else count


class RandomNumbers:
    """The random numbers of the rows of a batch."""

    def __init__(self, seed: int, epoch: int, places: Int64Array) -> None:
        """`places`: of the rows in the order of the epoch."""
        self._seed = seed
        self._epoch = epoch
        self.places = places

    def uniform(self, purpose: str, count: int) -> npt.NDArray[np.float64]:
        """Return `count` numbers in [0, 1) for each row: (rows, count)."""
        numbers = mix_bits(self.places.astype(np.uint64), self._key(purpose))
        bits = mix_bits(numbers[:, np.newaxis], np.arange(count, dtype=np.uint64))
        # the highest 53 bits are what a float64 between 0 and 1 can hold
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def generator(self, purpose: str, row: int | None = None) -> np.random.Generator:
        """Return a generator for one row, or for the batch."""
        key = int(self._key(purpose))
        first = 0 if row is None else row
        place = int(self.places[first]) if first < len(self.places) else 0  # an empty batch
        return np.random.Generator(np.random.Philox(key=[key, place]))

    def select(self, rows: Int64Array) -> RandomNumbers:
        return RandomNumbers(self._seed, self._epoch, self.places[rows])

    def _key(self, purpose: str) -> np.uint64:
        text = f"{self._seed}/{self._epoch}/{purpose}"
        import hashlib

        digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"draws").digest()
        return np.uint64(int.from_bytes(digest, "little"))


def images_in(features: Mapping[str, Feature]) -> dict[str, ImageFeature]:
    """Return the features that make images, by name."""
    return {
        name: feature for name, feature in features.items() if isinstance(feature, ImageFeature)
    }
