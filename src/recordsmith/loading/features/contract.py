"""What a feature of a batch promises.

A feature says which columns of the records it reads, and makes arrays of them whose first axis
counts the rows of the batch. There are two sorts. A `ValueFeature` makes its arrays at once from
the columns. A `PixelFeature` has work for each row, such as decoding a picture, which threads share
out: it begins with arrays to be filled, fills them row by row, and finishes. Of these a
`PictureFeature` can be followed: masks and boxes are moved as its pictures are.

Features are immutable and know nothing of datasets, order or threads.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.example import Column, Kind
from recordsmith.image.fit import Placement
from recordsmith.loading.draws import Draws

Allocate: TypeAlias = Callable[[str, tuple[int, ...], Any], npt.NDArray[Any]]
"""(name, shape, dtype) -> an array whose content does not matter."""

NUMBERS: tuple[Kind, ...] = ("int64", "float")
_ALIGNMENT = 64


@dataclass(frozen=True)
class Request:
    """A column that a feature reads.

    kinds: what the records may have, of which one must be what all of them have.
    shape: of one record's values; "ragged" for any number of them.
    default: stands in where a record lacks the feature; without it, one that has a fixed shape
        must be there, and one that is ragged is empty.
    """

    kinds: tuple[Kind, ...]
    shape: tuple[int, ...] | Literal["ragged"] = ()
    default: Any = None


class Feature(ABC):
    """One entry of a batch, as a user declares it."""

    @abstractmethod
    def requests(self) -> Mapping[str, Request]:
        """The columns that it reads, by the records' keys."""

    def outputs(self, name: str) -> tuple[str, ...]:
        """The entries of the batch that it makes, when it is declared as `name`."""
        return (name,)

    def check(self, name: str, features: Mapping[str, Feature]) -> None:  # noqa: B027 - most need none
        """Raise OptionError if it does not go together with the others that are declared."""


class ValueFeature(Feature):
    """A feature that is ready when its columns are decoded."""

    @abstractmethod
    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        """Its entries of the batch, by the names that `outputs` gives.

        Args:
            name: what it is declared as.
            columns: what was read of the records, by their keys.
            positions: int64, (batch,): where the records stand in the dataset.

        Raises:
            CorruptDataError: a row is not what was declared; `position` is the row.
        """


class PixelFeature(Feature):
    """A feature that has work for each row, or that follows one which has.

    has_pixels: whether its arrays are pixels, which is where the time and the memory go.
    """

    has_pixels: ClassVar[bool] = True

    def leader(self, name: str, features: Mapping[str, Feature]) -> str | None:
        """The name of the feature that must begin before this one, if it follows another."""
        return None

    @abstractmethod
    def begin(self, name: str, rows: Rows) -> Filling:
        """Arrays for all rows, to be filled. What is wrong with single rows: see `Rows.fail`."""


class PictureFeature(PixelFeature):
    """A feature that makes pictures, which masks and boxes can follow."""

    @abstractmethod
    def begin(self, name: str, rows: Rows) -> PictureFilling:
        """As of every feature with work for each row; sizes and placements are ready then."""


@dataclass
class Rows:
    """The rows of a batch while they are made.

    count: how many there are.
    columns: what was read of them, by the records' keys.
    draws: their random numbers.
    allocate: what gives the arrays to be filled.
    fillings: of the pixel features that began before.
    failures: row -> what is wrong with it; such rows need not be filled.
    """

    count: int
    columns: Mapping[str, Column]
    draws: Draws
    allocate: Allocate
    fillings: dict[str, Filling] = field(default_factory=dict)
    failures: dict[int, Exception] = field(default_factory=dict)

    def fail(self, row: int, error: Exception) -> None:
        """Note that a row cannot be made; the first error of a row is the one that counts."""
        self.failures.setdefault(row, error)


class Filling(ABC):
    """The arrays of one pixel feature while they are filled."""

    @abstractmethod
    def fill(self, row: int) -> None:
        """Do the work of one row. Threads call it for different rows at the same time.

        Raises:
            CorruptDataError: the row's data are damaged or not what was declared.
        """

    @abstractmethod
    def example(self, row: int) -> dict[str, Any]:
        """The entries of one row that is filled, as views: what a user's function gets."""

    @abstractmethod
    def finish(self) -> dict[str, Column]:
        """The entries of the batch, when all rows are filled or have failed."""


class PictureFilling(Filling):
    """The pictures of a batch while they are decoded.

    sizes: height and width of each picture as it is stored; None where a row has failed.
    placements: how each comes to lie in its frame; None where a row has failed.
    frame: height and width of what they come to lie in.
    """

    sizes: list[tuple[int, int] | None]
    placements: list[Placement | None]
    frame: tuple[int, int]


def empty(name: str, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
    """The usual `Rows.allocate`: memory of its own for each array.

    It begins at a multiple of 64 bytes: then JAX and TensorFlow take it as it is, without a copy.
    """
    byte_count = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(byte_count + _ALIGNMENT - 1, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array: npt.NDArray[Any] = memory[start : start + byte_count].view(dtype).reshape(shape)
    return array
