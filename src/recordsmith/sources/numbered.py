"""Samples by number: what a listing holds of a million rows, without an object for each.

Names, sizes and labels lie in arrays; a Sample is made when it is asked for.
"""

from __future__ import annotations

import bisect
import itertools
from abc import abstractmethod
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.example import BytesArray
from recordsmith.sources.source import Sample, unlisted_error

Coding: TypeAlias = tuple[Sequence[str], npt.NDArray[np.int32]]
"""Names, and for each row which of them it has; -1: none."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class NumberedSample(Sample):
    """A sample that knows its place in the listing."""

    number: int = -1


def sample_number(sample: Sample) -> int:
    """The place of a sample in the listing that it is from.

    Raises:
        OptionError: it is from no such listing.
    """
    if not isinstance(sample, NumberedSample):
        raise unlisted_error(sample)
    return sample.number


class _LazySequence(Sequence[_Item]):
    """A sequence whose items are made when they are asked for."""

    @abstractmethod
    def _item(self, number: int) -> _Item: ...

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_Item]: ...
    def __getitem__(self, index: int | slice) -> _Item | Sequence[_Item]:
        numbers = range(len(self))[index]
        return (
            tuple(map(self._item, numbers)) if isinstance(numbers, range) else self._item(numbers)
        )

    def __iter__(self) -> Iterator[_Item]:
        return map(self._item, range(len(self)))


class RowNames(_LazySequence[str]):
    """Names of the rows of some tables: `rows.csv/0000017`, counted in each from 0."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        """`counts`: how many rows each table has, by its name."""
        self._tables = tuple(counts)
        self._starts = tuple(itertools.accumulate(counts.values(), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[str]:
        for table, (start, stop) in zip(
            self._tables, itertools.pairwise(self._starts), strict=True
        ):
            for row in range(stop - start):
                yield f"{table}/{row:07d}"

    def locate(self, number: int) -> tuple[int, int]:
        """(number of the table, number of the row in it)."""
        table = bisect.bisect_right(self._starts, number) - 1
        return table, number - self._starts[table]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowNames) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def _item(self, number: int) -> str:
        table, row = self.locate(number)
        return f"{self._tables[table]}/{row:07d}"


class Names(_LazySequence[str]):
    """Names of any kind, held as bytes."""

    def __init__(self, names: BytesArray) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Names)
            and np.array_equal(self._names.offsets, other._names.offsets)
            and np.array_equal(self._names.buffer, other._names.buffer)
        )

    __hash__ = None  # type: ignore[assignment]

    def _item(self, number: int) -> str:
        return bytes(self._names[number]).decode("utf-8", "surrogateescape")


class NumberedSamples(_LazySequence[Sample]):
    """The samples of a listing. It takes the names and 4 bytes per other field."""

    def __init__(
        self,
        names: Sequence[str],
        sizes: Int64Array,
        *,
        labels: npt.NDArray[np.int32] | None = None,
        splits: Coding | None = None,
        groups: Coding | None = None,
        version: int | Int64Array | None = None,
    ) -> None:
        """
        Args:
            sizes: int64, (rows,): size of each in bytes.
            labels: int32, (rows,): -1 where there is none.
            version: that of all samples together, or int64, (rows,).
        """
        self._names = names
        # arrays of Python give numbers of Python three times as fast as NumPy's
        limited = np.minimum(sizes, np.iinfo(np.uint32).max).astype(np.uint32)
        self._sizes = array("I", limited.tobytes())
        self._labels = None if labels is None else _as_array(labels)
        self._splits = None if splits is None else _Named(*splits)
        self._groups = None if groups is None else _Named(*groups)
        self._version = (
            array("q", version.tobytes()) if isinstance(version, np.ndarray) else version
        )

    def __len__(self) -> int:
        return len(self._sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NumberedSamples):
            return NotImplemented
        return (
            self._names == other._names
            and self._sizes == other._sizes
            and self._labels == other._labels
            and self._splits == other._splits
            and self._groups == other._groups
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"NumberedSamples({len(self)} samples)"

    def __iter__(self) -> Iterator[Sample]:
        return itertools.starmap(self._sample, enumerate(self._names))

    def _item(self, number: int) -> Sample:
        return self._sample(number, self._names[number])

    def _sample(self, number: int, name: str) -> Sample:
        label = -1 if self._labels is None else self._labels[number]
        version = self._version
        return NumberedSample(
            name,
            self._sizes[number],
            None if label < 0 else label,
            None if self._splits is None else self._splits.name_of(number),
            None if self._groups is None else self._groups.name_of(number),
            version[number] if isinstance(version, array) else version,
            number,
        )


class _Named:
    """One of some names for each sample, or none."""

    def __init__(self, names: Sequence[str], numbers: npt.NDArray[np.int32]) -> None:
        self._names = tuple(names)
        self._numbers = _as_array(numbers)

    def name_of(self, number: int) -> str | None:
        place = self._numbers[number]
        return self._names[place] if place >= 0 else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Named) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def _as_array(numbers: npt.NDArray[np.int32]) -> array[int]:
    return array("i", numbers.astype(np.int32, copy=False).tobytes())
