"""Samples of listings that may have millions: created on access from arrays."""

from __future__ import annotations

import bisect
import itertools
import json
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import eq
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import BytesArray
from recordsmith.sources.samples import Sample
from recordsmith.support.buffers import Int64Array
from recordsmith.support.permutation import finalize_bits

Coding: TypeAlias = tuple[Sequence[str], npt.NDArray[np.int32]]
"""Names, and for each row which of them it has; -1: none."""

References: TypeAlias = Callable[[int], "Mapping[str, Any] | None"]
"""Returns the reference of the sample with a number."""

_Item = TypeVar("_Item")
_STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64
_ROWS_AT_ONCE = 1 << 16
_SAMPLES_AT_ONCE = 4096


class LazySequence(Sequence[_Item]):
    """A sequence whose items are created on access."""

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def _item(self, number: int) -> _Item: ...

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_Item]: ...
    def __getitem__(self, index: int | slice) -> _Item | Sequence[_Item]:
        if isinstance(index, int) and 0 <= index < len(self):
            return self._item(index)
        numbers = range(len(self))[index]
        return (
            tuple(map(self._item, numbers)) if isinstance(numbers, range) else self._item(numbers)
        )

    def __iter__(self) -> Iterator[_Item]:
        return map(self._item, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether the other is a sequence of the same type with equal items."""
        if type(other) is not type(self):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))


class RowNames(LazySequence[str]):
    """Names of the rows of some tables: `rows.csv/0000017`, counted in each from 0."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        """`counts`: how many rows each table has, by its name."""
        self.tables = tuple(counts)
        self._starts = tuple(itertools.accumulate(counts.values(), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The name and the number of rows of each table."""
        counts = [stop - start for start, stop in itertools.pairwise(self._starts)]
        return list(zip(self.tables, counts, strict=True))

    def hashes(self, number_of: Callable[[str], int]) -> npt.NDArray[np.uint64]:
        """A pseudorandom number for each row: from the number of its table's name, and the row.

        The name of a single table does not count, so that its format does not change the order.
        """
        hashes = np.empty(len(self), np.uint64)
        bounds = itertools.pairwise(self._starts)
        for table, (start, stop) in zip(self.tables, bounds, strict=True):
            number = np.uint64(number_of(table if len(self.tables) > 1 else ""))
            for first in range(start, stop, _ROWS_AT_ONCE):
                rows = np.arange(first, min(first + _ROWS_AT_ONCE, stop), dtype=np.uint64)
                rows -= np.uint64(start)
                hashes[first : first + len(rows)] = finalize_bits(number + rows * _STEP)
        return hashes

    def locate(self, number: int) -> tuple[int, int]:
        """(number of the table, number of the row in it)."""
        table = bisect.bisect_right(self._starts, number) - 1
        return table, number - self._starts[table]

    def reference(self, number: int) -> Mapping[str, Any]:
        """The reference of one row: its table, and its number in it from 0."""
        table, row = self.locate(number)
        return {"file": self.tables[table], "row": row}

    def _item(self, number: int) -> str:
        table, row = self.locate(number)
        return f"{self.tables[table]}/{row:07d}"


class Names(LazySequence[str]):
    """Names of any kind, held as bytes."""

    def __init__(self, encoded: BytesArray) -> None:
        self.encoded = encoded

    def __len__(self) -> int:
        return len(self.encoded)

    def _item(self, number: int) -> str:
        return str(self.encoded[number], "utf-8", "surrogateescape")

    def select(self, numbers: Int64Array) -> list[str]:
        return [str(name, "utf-8", "surrogateescape") for name in self.encoded[numbers].views()]


class SampleTable(LazySequence[Sample]):
    """The samples of a listing in arrays, which are kept as they are given.

    names: by sample.
    sizes: int64, (samples,): size of each in bytes.
    labels: int32, (samples,): -1 where there is none; None without labels.
    rarest: where samples have several labels, the rarest one of each instead of `labels`, as these.
    splits, groups: the names, and which each sample has.
    versions: one for all samples, or int64, (samples,).
    references: makes the reference of a sample from its number.
    listed: int64, (samples,): the numbers in the listing of which these are some; None for all.
    """

    listed: Int64Array | None = None

    def __init__(
        self,
        names: Sequence[str],
        sizes: Int64Array,
        *,
        labels: npt.NDArray[np.int32] | None = None,
        splits: Coding | None = None,
        groups: Coding | None = None,
        version: int | Int64Array | None = None,
        references: References | None = None,
        rarest: npt.NDArray[np.int32] | None = None,
    ) -> None:
        self.names = names
        self.sizes = sizes
        self.labels = labels
        self.splits = splits
        self.groups = groups
        self.versions = version
        self.references = references
        self.rarest = rarest

    @property
    def strata(self) -> npt.NDArray[np.int32] | None:
        """The labels by which samples are divided, or the rarest ones."""
        return self.labels if self.rarest is None else self.rarest

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"SampleTable({len(self)} samples)"

    def _item(self, number: int) -> Sample:
        return next(self.select((number,)))

    def __iter__(self) -> Iterator[Sample]:
        return self.select(range(len(self)))

    def subset(self, numbers: Int64Array) -> SampleTable:
        """Return some of the samples."""
        names, references = self.names, self.references
        part = SampleTable(
            Names(names.encoded[numbers])
            if isinstance(names, Names)
            else [names[number] for number in numbers.tolist()],
            self.sizes[numbers],
            labels=None if self.labels is None else self.labels[numbers],
            splits=None if self.splits is None else (self.splits[0], self.splits[1][numbers]),
            groups=None if self.groups is None else (self.groups[0], self.groups[1][numbers]),
            version=self.versions[numbers]
            if isinstance(self.versions, np.ndarray)
            else self.versions,
            references=None if references is None else lambda row: references(int(numbers[row])),
            rarest=None if self.rarest is None else self.rarest[numbers],
        )
        part.listed = numbers if self.listed is None else self.listed[numbers]
        return part

    def select(self, numbers: Sequence[int] | Int64Array) -> Iterator[Sample]:
        for start in range(0, len(numbers), _SAMPLES_AT_ONCE):
            portion = np.asarray(numbers[start : start + _SAMPLES_AT_ONCE], np.int64)
            rows = portion.tolist()
            labels = repeat(-1) if self.labels is None else self.labels[portion].tolist()
            names, versions = self.names, self.versions
            yield from map(
                Sample,
                names.select(portion) if isinstance(names, Names) else map(names.__getitem__, rows),
                self.sizes[portion].tolist(),
                (None if label < 0 else label for label in labels),
                _names_of(self.splits, portion),
                _names_of(self.groups, portion),
                versions[portion].tolist()
                if isinstance(versions, np.ndarray)
                else repeat(versions),
                repeat(None) if self.references is None else map(self.references, rows),
            )


def split_coding(splits: Sequence[str | None], counts: Sequence[int]) -> Coding:
    """The splits of consecutive samples, of which so many have each split."""
    names = tuple(dict.fromkeys(split for split in splits if split is not None))
    numbers = [-1 if split is None else names.index(split) for split in splits]
    return names, np.repeat(np.array(numbers, np.int32), counts)


def _names_of(coding: Coding | None, rows: Int64Array) -> Iterator[str | None]:
    if coding is None:
        return repeat(None)
    names, numbers = coding
    return (names[number] if number >= 0 else None for number in numbers[rows].tolist())


def collect(samples: Iterable[Sample]) -> SampleTable:
    """Return samples in arrays; those that are in arrays already are not copied."""
    if isinstance(samples, SampleTable):
        return samples
    names, references = bytearray(), bytearray()
    name_ends, reference_ends = array("q", [0]), array("q", [0])
    sizes, versions = array("q"), array("q")
    labels, of_split, of_group = array("i"), array("i"), array("i")
    splits: dict[str | None, int] = {None: -1}
    groups: dict[str | None, int] = {None: -1}
    has_versions = True
    for sample in samples:
        names += sample.name.encode("utf-8", "surrogateescape")
        name_ends.append(len(names))
        if sample.reference is not None:
            references += json.dumps(sample.reference, separators=(",", ":")).encode()
        reference_ends.append(len(references))
        sizes.append(sample.size_bytes)
        labels.append(-1 if sample.label is None else sample.label)
        of_split.append(splits.setdefault(sample.split, len(splits) - 1))
        of_group.append(groups.setdefault(sample.group, len(groups) - 1))
        has_versions &= sample.version is not None
        versions.append(sample.version or 0)
    documents = BytesArray(references, np.frombuffer(reference_ends, np.int64))

    def reference(number: int) -> Mapping[str, Any] | None:
        document = bytes(documents[number])
        return json.loads(document) if document else None

    return SampleTable(
        Names(BytesArray(names, np.frombuffer(name_ends, np.int64))),
        np.frombuffer(sizes, np.int64),
        labels=np.frombuffer(labels, np.int32),
        splits=_coding(splits, of_split),
        groups=_coding(groups, of_group),
        version=np.frombuffer(versions, np.int64) if has_versions else None,
        references=reference if references else None,
    )


def _coding(numbers: Mapping[str | None, int], of_sample: array[int]) -> Coding | None:
    names = [name for name in numbers if name is not None]
    return (names, np.frombuffer(of_sample, np.int32)) if names else None
