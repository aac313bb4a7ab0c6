"""Samples in arrays of names, sizes and labels, as a listing may have millions.

A Sample is created on access.
"""

from __future__ import annotations

import bisect
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class NumberedSample(Sample):
    """A sample with its place in the listing."""

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
    """A sequence whose items are created on access."""

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

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The name and the number of rows of each table."""
        counts = [stop - start for start, stop in itertools.pairwise(self._starts)]
        return list(zip(self._tables, counts, strict=True))

    def hashes(self, number_of: Callable[[str], int]) -> npt.NDArray[np.uint64]:
        """A pseudorandom number for each row: from the number of its table's name, and the row.

        The name of a single table does not count, so that its format does not change the order.
        """
        found = np.empty(len(self), np.uint64)
        bounds = itertools.pairwise(self._starts)
        for table, (start, stop) in zip(self._tables, bounds, strict=True):
            number = np.uint64(number_of(table if len(self._tables) > 1 else ""))
            for at in range(start, stop, _ROWS_AT_ONCE):
                rows = np.arange(at, min(at + _ROWS_AT_ONCE, stop), dtype=np.uint64)
                rows -= np.uint64(start)
                found[at : at + len(rows)] = _mixed(number + rows * _STEP)
        return found

    def locate(self, number: int) -> tuple[int, int]:
        """(number of the table, number of the row in it)."""
        table = bisect.bisect_right(self._starts, number) - 1
        return table, number - self._starts[table]

    def _item(self, number: int) -> str:
        table, row = self.locate(number)
        return f"{self._tables[table]}/{row:07d}"


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of SplitMix64: every bit of the result depends on every bit of a number."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


class Names(_LazySequence[str]):
    """Names of any kind, held as bytes."""

    def __init__(self, names: BytesArray) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    def _item(self, number: int) -> str:
        return bytes(self._names[number]).decode("utf-8", "surrogateescape")


class NumberedSamples(_LazySequence[Sample]):
    """The samples of a listing; keeps the given arrays.

    names: by sample.
    sizes: int64, (samples,): size of each in bytes.
    labels: int32, (samples,): -1 where there is none; None without labels.
    splits, groups: the names, and which each sample has.
    version: one for all samples, or int64, (samples,).
    """

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
        self.names = names
        self.sizes = sizes
        self.labels = labels
        self.splits = splits
        self.groups = groups
        self.versions = version

    def __len__(self) -> int:
        return len(self.sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NumberedSamples):
            return NotImplemented
        return len(self) == len(other) and all(map(Sample.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"NumberedSamples({len(self)} samples)"

    def _item(self, number: int) -> Sample:
        label = -1 if self.labels is None else int(self.labels[number])
        versions = self.versions
        return NumberedSample(
            self.names[number],
            int(self.sizes[number]),
            None if label < 0 else label,
            _name_of(self.splits, number),
            _name_of(self.groups, number),
            int(versions[number]) if isinstance(versions, np.ndarray) else versions,
            number,
        )


def _name_of(coding: Coding | None, number: int) -> str | None:
    if coding is None:
        return None
    place = coding[1][number]
    return coding[0][place] if place >= 0 else None
