"""Samples of listings that may have millions: created on access from arrays, or listed again."""

from __future__ import annotations

import bisect
import itertools
import json
import sys
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.example import BytesArray
from recordsmith.sources.source import Sample

Coding: TypeAlias = tuple[Sequence[str], npt.NDArray[np.int32]]
"""Names, and for each row which of them it has; -1: none."""

_Item = TypeVar("_Item")
_STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64
_ROWS_AT_ONCE = 1 << 16
_SAMPLES_AT_ONCE = 4096
_SAMPLE_BYTES = 100  # of a sample while it is planned, in addition to its name and reference


class LazySequence(Sequence[_Item]):
    """A sequence whose items are created on access."""

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
        found = np.empty(len(self), np.uint64)
        bounds = itertools.pairwise(self._starts)
        for table, (start, stop) in zip(self.tables, bounds, strict=True):
            number = np.uint64(number_of(table if len(self.tables) > 1 else ""))
            for at in range(start, stop, _ROWS_AT_ONCE):
                rows = np.arange(at, min(at + _ROWS_AT_ONCE, stop), dtype=np.uint64)
                rows -= np.uint64(start)
                found[at : at + len(rows)] = _mixed(number + rows * _STEP)
        return found

    def locate(self, number: int) -> tuple[int, int]:
        """(number of the table, number of the row in it)."""
        table = bisect.bisect_right(self._starts, number) - 1
        return table, number - self._starts[table]

    def references(self) -> ComputedReferences:
        """The references of the rows: their table, and their number in it from 0."""
        return ComputedReferences(len(self), self.reference)

    def reference(self, number: int) -> Mapping[str, Any]:
        """The reference of one row."""
        table, row = self.locate(number)
        return {"file": self.tables[table], "row": row}

    def _item(self, number: int) -> str:
        table, row = self.locate(number)
        return f"{self.tables[table]}/{row:07d}"


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of SplitMix64: every bit of the result depends on every bit of a number."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


class Names(LazySequence[str]):
    """Names of any kind, held as bytes."""

    def __init__(self, encoded: BytesArray) -> None:
        self.encoded = encoded

    def __len__(self) -> int:
        return len(self.encoded)

    def _item(self, number: int) -> str:
        return str(self.encoded[number], "utf-8", "surrogateescape")

    def select(self, numbers: Int64Array) -> list[str]:
        """Return some names."""
        return [str(name, "utf-8", "surrogateescape") for name in self.encoded[numbers].views()]


class StoredReferences(LazySequence[Mapping[str, Any] | None]):
    """References of any kind, held as JSON."""

    def __init__(self, documents: BytesArray) -> None:
        """`documents`: empty for None."""
        self.documents = documents

    def __len__(self) -> int:
        return len(self.documents)

    def _item(self, number: int) -> Mapping[str, Any] | None:
        document = bytes(self.documents[number])
        return json.loads(document) if document else None


class ComputedReferences(LazySequence[Mapping[str, Any]]):
    """References that are made when they are accessed."""

    def __init__(self, count: int, make: Callable[[int], Mapping[str, Any]]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    def _item(self, number: int) -> Mapping[str, Any]:
        return self._make(number)


class NumberedSamples(LazySequence[Sample]):
    """The samples of a listing; keeps the given arrays.

    names: by sample.
    sizes: int64, (samples,): size of each in bytes.
    labels: int32, (samples,): -1 where there is none; None without labels.
    splits, groups: the names, and which each sample has.
    version: one for all samples, or int64, (samples,).
    references: by sample.
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
        references: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> None:
        self.names = names
        self.sizes = sizes
        self.labels = labels
        self.splits = splits
        self.groups = groups
        self.versions = version
        self.references = references

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
        label = -1 if self.labels is None else self.labels.item(number)
        versions = self.versions
        return Sample(
            self.names[number],
            self.sizes.item(number),
            None if label < 0 else label,
            None if self.splits is None else _name_of(self.splits, number),
            None if self.groups is None else _name_of(self.groups, number),
            versions.item(number) if isinstance(versions, np.ndarray) else versions,
            None if self.references is None else self.references[number],
        )

    def select(self, numbers: Sequence[int]) -> Iterator[Sample]:
        """Yield some samples, as by number but in less time."""
        for start in range(0, len(numbers), _SAMPLES_AT_ONCE):
            portion = np.asarray(numbers[start : start + _SAMPLES_AT_ONCE], np.int64)
            rows = portion.tolist()
            labels = repeat(-1) if self.labels is None else self.labels[portion].tolist()
            names, versions, references = self.names, self.versions, self.references
            yield from map(
                Sample,
                names.select(portion) if isinstance(names, Names) else map(names.__getitem__, rows),
                self.sizes[portion].tolist(),
                (None if label < 0 else label for label in labels),
                _names_of(self.splits, rows),
                _names_of(self.groups, rows),
                versions[portion].tolist()
                if isinstance(versions, np.ndarray)
                else repeat(versions),
                repeat(None) if references is None else map(references.__getitem__, rows),
            )


def _names_of(coding: Coding | None, numbers: Iterable[int]) -> Iterator[str | None]:
    return repeat(None) if coding is None else (_name_of(coding, each) for each in numbers)


def _name_of(coding: Coding, number: int) -> str | None:
    names, numbers = coding
    place = numbers.item(number)
    return names[place] if place >= 0 else None


class StreamedSamples(LazySequence[Sample]):
    """Samples that are listed again each time they are iterated, so that none is held.

    The length, an index and comparisons collect them once into arrays.
    """

    def __init__(self, walk: Callable[[], Iterator[Sample]]) -> None:
        """`walk` yields all samples, the same at each call."""
        self._walk = walk
        self._collected: NumberedSamples | None = None
        self._started: Iterator[Sample] | None = None
        self._is_listed = False

    def __iter__(self) -> Iterator[Sample]:
        if self._collected is not None:
            return iter(self._collected)
        started, self._started = self._started, None
        return self._walk() if started is None else started

    def __bool__(self) -> bool:
        """Whether there is a sample; the next iteration goes on from there."""
        if self._collected is None:
            walk = iter(self)
            first = list(itertools.islice(walk, 1))
            self._started = itertools.chain(first, walk)
            return bool(first)
        return len(self._collected) > 0

    def __len__(self) -> int:
        return len(self.collected())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamedSamples) and self.collected() == other.collected()

    __hash__ = None  # type: ignore[assignment]

    def collected(self) -> NumberedSamples:
        """All samples in arrays: about 32 bytes each in addition to names and references."""
        if self._collected is None:
            [*_] = self.runs(sys.maxsize)
            assert self._collected is not None
        return self._collected

    def runs(self, most_bytes: int) -> Iterator[tuple[NumberedSamples, bool]]:
        """Yield all samples as `collect_runs`; a single run is kept."""
        if self._collected is not None:
            yield self._collected, True
            return
        is_first = True
        for samples, is_last in _runs(iter(self), most_bytes):
            self._is_listed = is_last
            if is_first and is_last:
                self._collected = samples
            yield samples, is_last
            del samples  # before the next ones are collected
            is_first = False

    def list_all(self) -> None:
        """Iterate all samples, unless that has been done."""
        if not self._is_listed:
            self.collected()

    def _item(self, number: int) -> Sample:
        return self.collected()[number]


class LazyNotices(LazySequence[str]):
    """Notices of a listing, which are known when all samples were listed."""

    def __init__(self, samples: StreamedSamples, make: Callable[[], Sequence[str]]) -> None:
        """`make` returns the notices after the samples were iterated."""
        self._samples = samples
        self._make = make

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())

    def _item(self, number: int) -> str:
        return self._all()[number]

    def _all(self) -> Sequence[str]:
        self._samples.list_all()
        return self._make()


def collect(samples: Iterable[Sample]) -> NumberedSamples:
    """Collect samples into arrays."""
    ((collected, _),) = collect_runs(samples, sys.maxsize)
    return collected


def collect_runs(
    samples: Iterable[Sample], most_bytes: int
) -> Iterator[tuple[NumberedSamples, bool]]:
    """Collect samples into arrays, as many at a time as fit into about `most_bytes`.

    Samples that are in arrays are not divided.
    """
    if isinstance(samples, NumberedSamples):
        return iter([(samples, True)])
    if isinstance(samples, StreamedSamples):
        return samples.runs(most_bytes)
    return _runs(iter(samples), most_bytes)


def _runs(samples: Iterator[Sample], most_bytes: int) -> Iterator[tuple[NumberedSamples, bool]]:
    first: list[Sample] = []
    while True:
        run = _run(itertools.chain(first, samples), most_bytes)
        first = [*itertools.islice(samples, 1)]
        yield run, not first
        if not first:
            return
        del run


def _run(samples: Iterator[Sample], most_bytes: int) -> NumberedSamples:
    """Collect samples, as many as fit."""
    names, references = bytearray(), bytearray()
    name_ends, reference_ends = array("q", [0]), array("q", [0])
    sizes, versions = array("q"), array("q")
    labels, of_split, of_group = array("i"), array("i"), array("i")
    splits: dict[str | None, int] = {None: -1}
    groups: dict[str | None, int] = {None: -1}
    has_versions = True
    at_once = min(_SAMPLES_AT_ONCE, most_bytes // _SAMPLE_BYTES + 1)
    count = -1
    while len(sizes) > count and _byte_count(names, references, sizes) < most_bytes:
        count = len(sizes)
        for sample in itertools.islice(samples, at_once):
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
    return NumberedSamples(
        Names(BytesArray(names, np.frombuffer(name_ends, np.int64))),
        np.frombuffer(sizes, np.int64),
        labels=np.frombuffer(labels, np.int32),
        splits=_coding(splits, of_split),
        groups=_coding(groups, of_group),
        version=np.frombuffer(versions, np.int64) if has_versions else None,
        references=StoredReferences(BytesArray(references, np.frombuffer(reference_ends, np.int64)))
        if references
        else None,
    )


def _byte_count(names: bytearray, references: bytearray, sizes: array[int]) -> int:
    return len(names) + len(references) + _SAMPLE_BYTES * len(sizes)


def _coding(numbers: Mapping[str | None, int], of_sample: array[int]) -> Coding | None:
    names = [name for name in numbers if name is not None]
    return (names, np.frombuffer(of_sample, np.int32)) if names else None
