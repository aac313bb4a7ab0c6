"""Samples by number: what a listing holds of a million rows, without an object for each.

Names, sizes and labels lie in arrays; a Sample is made when it is asked for.
"""

from __future__ import annotations

import bisect
import itertools
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.dataset.labels import LARGEST_LABEL, ClassNames, class_names_of
from recordsmith.errors import OptionError, SourceError
from recordsmith.example import BytesArray
from recordsmith.files import PathLike, accessing
from recordsmith.sources.contract import Sample
from recordsmith.sources.splits import in_split_order
from recordsmith.wire import crc32c


@dataclass(frozen=True, slots=True)
class NumberedSample(Sample):
    """A sample that knows its place in the listing."""

    number: int = -1


class RowNames(Sequence[str]):
    """Names of the rows of some tables: `rows.csv/0000017`, counted in each from 0."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        """`counts`: how many rows each table has, by its name."""
        self._tables = tuple(counts)
        self._starts = tuple(itertools.accumulate(counts.values(), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        table, row = self.locate(range(len(self))[index])
        return f"{self._tables[table]}/{row:07d}"

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


class Mark(Protocol):
    """Hears of one column of a table, row by row, while the table is listed."""

    def append(self, value: str | None, table: int) -> None:
        """The value in the next row, None where it has none; `table` is the number of the file."""
        ...


class Coded:
    """Text values, one for each row, as numbers of distinct ones: four bytes a row."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._numbers = array("i")

    def append(self, value: str | None, table: int = 0) -> None:
        """Add the value of the next row; None where it has none."""
        number = -1 if value is None else self._codes.setdefault(value, len(self._codes))
        self._numbers.append(number)

    @property
    def values(self) -> list[str]:
        """The distinct values, in the order in which they appeared."""
        return list(self._codes)

    @property
    def missing_count(self) -> int:
        return self._numbers.count(-1)

    def numbers(self) -> npt.NDArray[np.int32]:
        """int32, (rows,): the place of each row's value in `values`, -1 where it has none."""
        return np.array(self._numbers, np.int32)

    def numbered_by(self, numbers: Mapping[str, int]) -> npt.NDArray[np.int32]:
        """int32, (rows,): the number that each row's value has in `numbers`, or -1."""
        table = np.array([*(numbers[value] for value in self._codes), -1], np.int32)
        return table[self.numbers()]


def mark_text(value: Any) -> str | None:
    """A value that names a split, a group or a class, as text; None for one that cannot."""
    if isinstance(value, (bytes, bytearray)):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    return str(value) if isinstance(value, (str, int, np.integer)) and value != "" else None


class NumberedSamples(Sequence[Sample]):
    """The samples of a listing. Its memory: names, and 4 bytes for each thing that is told."""

    def __init__(
        self,
        names: Sequence[str],
        sizes: Int64Array,
        *,
        labels: npt.NDArray[np.int32] | None = None,
        splits: tuple[Sequence[str], npt.NDArray[np.int32]] | None = None,
        groups: tuple[Sequence[str], npt.NDArray[np.int32]] | None = None,
        version: int | None = None,
    ) -> None:
        """`labels` are -1 where there is none; splits and groups: names, and which each has.

        The version is that of all samples together.
        """
        self._names = names
        # arrays of Python give numbers of Python three times as fast as NumPy's
        limited = np.minimum(sizes, np.iinfo(np.uint32).max).astype(np.uint32)
        self._sizes = array("I", limited.tobytes())
        self._labels = (
            None if labels is None else array("i", labels.astype(np.int32, copy=False).tobytes())
        )
        self._splits = None if splits is None else _Named(*splits)
        self._groups = None if groups is None else _Named(*groups)
        self._version = version

    def __len__(self) -> int:
        return len(self._sizes)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(len(self))[index])
        number = range(len(self))[index]
        return self._sample(number, self._names[number])

    def __iter__(self) -> Iterator[Sample]:
        return itertools.starmap(self._sample, enumerate(self._names))

    def _sample(self, number: int, name: str) -> Sample:
        label = -1 if self._labels is None else self._labels[number]
        return NumberedSample(
            name,
            self._sizes[number],
            None if label < 0 else label,
            None if self._splits is None else self._splits.name_of(number),
            None if self._groups is None else self._groups.name_of(number),
            self._version,
            number,
        )

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


class _Named:
    """One of some names for each sample, or none."""

    def __init__(self, names: Sequence[str], numbers: npt.NDArray[np.int32]) -> None:
        self._names = tuple(names)
        self._numbers = array("i", numbers.astype(np.int32, copy=False).tobytes())

    def name_of(self, number: int) -> str | None:
        place = self._numbers[number]
        return self._names[place] if place >= 0 else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Named) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def version_of_files(paths: Iterable[PathLike]) -> int:
    """A number that is another one when one of the files has been changed."""
    times = bytearray()
    for path in paths:
        with accessing(path):
            times += os.stat(path).st_mtime_ns.to_bytes(16, "little", signed=True)
    return crc32c(times)


class Names(Sequence[str]):
    """Names of any kind, held as bytes."""

    def __init__(self, names: BytesArray) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        return bytes(self._names[index]).decode("utf-8", "surrogateescape")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Names)
            and np.array_equal(self._names.offsets, other._names.offsets)
            and np.array_equal(self._names.buffer, other._names.buffer)
        )

    __hash__ = None  # type: ignore[assignment]


def number_of(sample: Sample) -> int:
    """The place of a sample in the listing that it is from."""
    if not isinstance(sample, NumberedSample):
        raise OptionError(f"{sample!r} is not from a listing of this source")
    return sample.number


def as_splits(values: Coded) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Names of splits in order, and which each row has: the first, if it has none.

    Rows without a split cannot be read, so that does not matter.
    """
    names = list(in_split_order(values.values))
    numbers = values.numbered_by({name: place for place, name in enumerate(names)})
    return names, np.maximum(numbers, 0)


def as_labels(values: Coded, *, are_integers: bool) -> tuple[npt.NDArray[np.int32], ClassNames]:
    """The label of each row, and the names of classes.

    Whole numbers from 0 on are labels as they are, and each is its own name. Others, and texts,
    are sorted and counted from 0.

    Raises:
        SourceError: the name of a class has a line break, which `labels.txt` cannot hold.
    """
    names = values.values
    for name in names:
        if "\n" in name or "\r" in name:
            raise SourceError(
                f"the class {name!r} has a line break in its name, which labels.txt cannot hold; "
                "rename it"
            )
    if not are_integers:
        numbers = {name: place for place, name in enumerate(sorted(names))}
    elif all(0 <= int(name) <= LARGEST_LABEL for name in names):
        numbers = {name: int(name) for name in names}
    else:
        numbers = {name: place for place, name in enumerate(sorted(names, key=int))}
    class_names = class_names_of({number: name.strip() for name, number in numbers.items()})
    return values.numbered_by(numbers), class_names
