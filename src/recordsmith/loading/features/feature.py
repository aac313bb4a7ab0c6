"""The interface of features.

A feature requests columns of the records and makes arrays of them, whose first axis counts the rows
of the batch. A `ValueFeature` makes its arrays directly from the columns. A `RowFeature` works
row by row, such as decoding an image, in several threads: it allocates arrays, fills them, and
finishes. Masks and boxes follow an `ImageFeature`: they are transformed as its images are.

Features are immutable and independent of datasets, order and threads.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.example import Column, Kind
from recordsmith.image.geometry.fit import Placement
from recordsmith.loading.memory import Allocate
from recordsmith.permutation import mix_bits

NUMBERS: tuple[Kind, ...] = ("int64", "float")


@dataclass(frozen=True)
class ColumnRequest:
    """A column that a feature reads.

    kinds: the allowed kinds; all records must have the same.
    shape: of the values of a record; "ragged" for any number.
    default: the value for records without the feature; without it, a fixed shape is required, and
        a ragged row is empty.
    """

    kinds: tuple[Kind, ...]
    shape: tuple[int, ...] | Literal["ragged"] = ()
    default: Any = None


class Feature(ABC):
    """An entry of a batch, as a user declares it."""

    @abstractmethod
    def requests(self) -> Mapping[str, ColumnRequest]:
        """Return the columns to read, by key."""

    def presence_of(self) -> tuple[str, ...]:
        """Return the keys of which it reads not the column, but which records have them."""
        return ()

    def outputs(self, name: str) -> tuple[str, ...]:
        """Return the names of the entries that it makes when declared as `name`."""
        return (name,)

    def check(self, name: str, features: Mapping[str, Feature]) -> None:  # noqa: B027 - most need none
        """Raise OptionError if it conflicts with the other features."""


class ValueFeature(Feature):
    """A feature that is ready when its columns are decoded."""

    @abstractmethod
    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        """Return its entries of the batch, by the names of `outputs`.

        Args:
            name: the name that it is declared as.
            columns: the columns of the records, by key; for a feature with `presence_of`, bool,
                (batch,), by key.
            positions: int64, (batch,): the positions of the records in the dataset.
        """


class RowFeature(Feature):
    """A feature with work for each row, or one that follows such a feature.

    has_pixels: whether its arrays are pixels, which take most of the time and memory.
    """

    has_pixels: ClassVar[bool] = True

    def leader(self, name: str, features: Mapping[str, Feature]) -> str | None:
        """Return the name of the feature that it follows, if any; that one begins first."""
        return None

    @abstractmethod
    def begin(self, name: str, rows: BatchRows) -> BatchBuffer:
        """Allocate arrays for all rows. Errors of single rows go to `BatchRows.fail`."""


class ImageFeature(RowFeature):
    """A feature with images, which masks and boxes can follow."""

    @property
    @abstractmethod
    def is_random(self) -> bool:
        """Whether images are cropped or flipped at random."""

    @abstractmethod
    def begin(self, name: str, rows: BatchRows) -> ImageBuffer:
        """Allocate the images, and compute their sizes and placements."""


@dataclass
class BatchRows:
    """The rows of a batch in the making.

    count: how many rows.
    columns: the columns of the records, by key.
    random_numbers: the random numbers of the rows.
    allocate: allocates the arrays to fill.
    buffers: of the row features that began before.
    failures: the errors of rows, which need not be filled.
    """

    count: int
    columns: Mapping[str, Column]
    random_numbers: RandomNumbers
    allocate: Allocate
    buffers: dict[str, BatchBuffer] = field(default_factory=dict)
    failures: dict[int, Exception] = field(default_factory=dict)

    def fail(self, row: int, error: Exception) -> None:
        """Record the error of a row; the first one counts."""
        self.failures.setdefault(row, error)


class BatchBuffer(ABC):
    """The arrays of a row feature in the making."""

    @abstractmethod
    def fill(self, row: int) -> None:
        """Fill one row. Threads call it for different rows at the same time."""

    @abstractmethod
    def example(self, row: int) -> dict[str, Any]:
        """Return views of the entries of a filled row, for the user's map."""

    @abstractmethod
    def finish(self) -> dict[str, Column]:
        """Return the entries of the batch, when all rows are filled or have failed."""


class ImageBuffer(BatchBuffer):
    """The images of a batch in the making.

    sizes: height and width of each stored image; None for failed rows.
    placements: the placement of each image in its frame, or of each patch of all images, row by
        row; None for failed rows.
    frame: height and width of the frame.
    patch_count: how many patches each image has; None if rows are images, without an axis of
        patches.
    decoded_counts: how many pixels of each stored image were decoded, also at a reduced size; 0 for
        raw pixels and failed rows. Empty if nothing is decoded.
    """

    sizes: list[tuple[int, int] | None]
    placements: list[Placement | None]
    frame: tuple[int, int]
    patch_count: int | None = None
    decoded_counts: Sequence[int] = ()

    def pixel_counts(self) -> tuple[int, int]:
        """Return how many pixels the decoded images have, and how many of these were decoded."""
        image_pixels = sum(
            size[0] * size[1]
            for size, decoded in zip(self.sizes, self.decoded_counts, strict=False)
            if size is not None and decoded
        )
        return image_pixels, sum(self.decoded_counts)


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
        """Return the random numbers of some of the rows."""
        return RandomNumbers(self._seed, self._epoch, self.places[rows])

    def _key(self, purpose: str) -> np.uint64:
        text = f"{self._seed}/{self._epoch}/{purpose}"
        digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"draws").digest()
        return np.uint64(int.from_bytes(digest, "little"))
