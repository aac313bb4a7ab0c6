"""Samples on disk: sorted in runs that fit into memory, then merged in the order of a plan.

Hashes are uniform, so samples whose hashes are in a small range are a small part of each run. They
are read from all runs, sorted, and appended to the splits that they belong to. Samples take 64
bytes each in addition to their names and references, twice while they are merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, offsets_from_lengths
from recordsmith.example import BytesArray
from recordsmith.packing.division import Division
from recordsmith.packing.sample_keys import SampleKeys
from recordsmith.sources import Sample
from recordsmith.sources.numbered import LazySequence, Names, SampleTable, StoredReferences
from recordsmith.stores.local.scratch import ScratchFile

_ROW = np.dtype(
    [
        ("hash", "<u8"),
        ("group", "<u8"),
        ("number", "<i8"),
        ("size", "<i8"),
        ("version", "<i8"),
        ("text", "<i8"),  # where its name is, followed by its reference
        ("name", "<i4"),  # their lengths
        ("reference", "<i4"),
        ("label", "<i4"),
        ("split", "<i4"),
    ]
)
Rows: TypeAlias = npt.NDArray[np.void]
"""Of _ROW."""

Places: TypeAlias = Sequence[int] | Int64Array

_RANGES = 1 << 12  # of hashes
_MERGED_PART = 4  # of a run, in memory at a time
_ROWS_AT_ONCE = 1 << 16
_BLOCK_ROWS = 1024
_BLOCKS = 64


class _SampleFile:
    """Rows of samples on disk, and the texts that they refer to."""

    def __init__(self) -> None:
        self._rows = ScratchFile()
        self._texts = ScratchFile()
        self.text_bytes = 0

    def write(self, start: int, rows: Rows, texts: BytesLike) -> None:
        """Write rows at a place, and their texts in the same order."""
        lengths = _text_lengths(rows)
        offsets = offsets_from_lengths(lengths)
        rows["text"] = self.text_bytes + offsets[:-1]
        self._rows.write_at(rows.view(np.uint8), start * _ROW.itemsize)
        self._texts.append(texts)
        self.text_bytes += int(offsets[-1])

    def rows(self, start: int, stop: int) -> Rows:
        """Read rows."""
        data = self._rows.read_at(start * _ROW.itemsize, stop * _ROW.itemsize)
        return np.frombuffer(data, _ROW)

    def texts(self, rows: Rows) -> bytes:
        """Read the texts of consecutive rows."""
        if not len(rows):
            return b""
        ends = rows["text"] + _text_lengths(rows)
        breaks = np.flatnonzero(rows["text"][1:] != ends[:-1])
        starts = rows["text"][[0, *(breaks + 1)]].tolist()
        stops = ends[[*breaks, -1]].tolist()
        return b"".join(map(self._texts.read_at, starts, stops))


class SpilledTable:
    """All samples of a listing, added in runs.

    Attributes as `DivisibleSamples`.
    """

    def __init__(self, split_count: int, run_bytes: int, *, shuffle: bool) -> None:
        self.has_groups = False
        self.split_counts: Int64Array = np.zeros(split_count, np.int64)
        self._has_versions = True
        self._part_bytes = max(run_bytes // _MERGED_PART, 1)
        self._shuffle = shuffle
        self._file = _SampleFile()
        self._count = 0
        self._bounds: list[Int64Array] = []  # for each run, where each range of hashes begins

    def __len__(self) -> int:
        return self._count

    def add(self, keys: SampleKeys) -> None:
        """Add the next samples, as from `sample_tables`."""
        count = len(keys.samples)
        order = np.arange(count)
        if self._shuffle:
            order = np.argsort(keys.hashes, kind="stable")
            firsts = np.arange(_RANGES, dtype=np.uint64) << np.uint64(52)
            bounds = np.append(np.searchsorted(keys.hashes, firsts, sorter=order), count)
            self._bounds.append(bounds + self._count)
        for start in range(0, count, _ROWS_AT_ONCE):
            some = order[start : start + _ROWS_AT_ONCE]
            self._file.write(self._count + start, *_rows_of(keys, some, self._count))
        if keys.splits is not None:
            self.split_counts += np.bincount(keys.splits, minlength=len(self.split_counts))
        self._has_versions &= keys.samples.versions is not None
        self.has_groups |= keys.groups is not None
        self._count += count

    def portions(self) -> Iterator[Rows]:
        step = self._rows_at_once()
        for start in range(0, self._count, step):
            yield self._file.rows(start, min(start + step, self._count))

    def arrange(self, division: Division) -> SpilledSamples:
        file = _SampleFile()
        first = offsets_from_lengths(division.counts)
        ends = first[:-1].copy()
        sizes = [0] * len(division.splits)
        for rows, texts in self._sorted():
            parts = division.parts(rows)
            for part in range(len(division.splits)):
                chosen = np.flatnonzero(parts == part)
                file.write(int(ends[part]), rows[chosen], texts[chosen].packed().buffer)
                sizes[part] += int(rows["size"][chosen].sum())
                ends[part] += len(chosen)
        del self._file
        return SpilledSamples(file, first, sizes, has_versions=self._has_versions)

    def _sorted(self) -> Iterator[tuple[Rows, BytesArray]]:
        """Yield all samples in order, some at a time."""
        for spans in self._spans():
            of_runs = [self._file.rows(start, stop) for start, stop in spans]
            texts = b"".join(map(self._file.texts, of_runs))
            rows = np.concatenate(of_runs)
            array = BytesArray(texts, offsets_from_lengths(_text_lengths(rows)))
            if self._shuffle:  # of equal hashes, those of earlier runs are first
                order = np.argsort(rows["hash"], kind="stable")
                rows, array = rows[order], array[order]
            yield rows, array

    def _spans(self) -> Iterator[list[tuple[int, int]]]:
        """Yield which rows to sort together: start and stop in each run."""
        step = self._rows_at_once()
        if not self._shuffle:
            for start in range(0, self._count, step):
                yield [(start, min(start + step, self._count))]
            return
        bounds = np.array(self._bounds)
        ranges = max(1, _RANGES * step // self._count)
        for low in range(0, _RANGES, ranges):
            high = min(low + ranges, _RANGES)
            yield list(zip(bounds[:, low].tolist(), bounds[:, high].tolist(), strict=True))

    def _rows_at_once(self) -> int:
        byte_count = self._count * _ROW.itemsize + self._file.text_bytes
        return max(1, self._count * self._part_bytes // byte_count)


class SpilledSamples(LazySequence[Sample]):
    """Samples on disk in the order of a plan, split by split; without splits and groups.

    counts, size_bytes: of each split.
    """

    def __init__(
        self, file: _SampleFile, first: Int64Array, size_bytes: list[int], *, has_versions: bool
    ) -> None:
        """`first`: where each split begins, and the number of samples."""
        self.counts: list[int] = np.diff(first).tolist()
        self.size_bytes = size_bytes
        self._file = file
        self._first: list[int] = first.tolist()
        self._block = lru_cache(_BLOCKS)(
            partial(_read_block, file, self._first[-1], has_versions=has_versions)
        )

    @property
    def samples(self) -> Sequence[Sample]:
        return self

    def __len__(self) -> int:
        return self._first[-1]

    @property
    def spilled_bytes(self) -> int:
        """The bytes of all samples on disk."""
        return len(self) * _ROW.itemsize + self._file.text_bytes

    def places(self, split: int, start: int, stop: int) -> range:
        return range(self._first[split] + start, self._first[split] + stop)

    def numbers(self, places: Places) -> Int64Array:
        at = np.arange(places.start, places.stop) if isinstance(places, range) else places
        if not len(at):
            return np.zeros(0, np.int64)
        wanted = np.asarray(at, np.int64)
        start = int(wanted.min())
        found: Int64Array = self._file.rows(start, int(wanted.max()) + 1)["number"]
        return found[wanted - start]

    def _item(self, number: int) -> Sample:
        block, at = divmod(number, _BLOCK_ROWS)
        return self._block(block)[at]


def _read_block(file: _SampleFile, count: int, number: int, *, has_versions: bool) -> SampleTable:
    """Read `_BLOCK_ROWS` of the samples of a file, which has `count`."""
    start = number * _BLOCK_ROWS
    rows = file.rows(start, min(start + _BLOCK_ROWS, count))
    lengths = np.stack([rows["name"], rows["reference"]], axis=1).ravel()
    texts = BytesArray(file.texts(rows), offsets_from_lengths(lengths))
    return SampleTable(
        Names(texts[::2]),
        rows["size"],
        labels=rows["label"],
        version=rows["version"] if has_versions else None,
        references=StoredReferences(texts[1::2]),
    )


def _rows_of(keys: SampleKeys, numbers: Int64Array, first: int) -> tuple[Rows, bytes]:
    """Return some samples as rows, and their texts; `first` is the number of the first of all."""
    samples = keys.samples
    rows = np.zeros(len(numbers), _ROW)
    rows["hash"] = keys.hashes[numbers]
    rows["group"] = ~rows["hash"] if keys.groups is None else keys.groups[numbers]
    rows["number"] = numbers + first
    rows["size"] = samples.sizes[numbers]
    rows["label"] = keys.labels[numbers]
    if keys.splits is not None:
        rows["split"] = keys.splits[numbers]
    if isinstance(samples.versions, np.ndarray):
        rows["version"] = samples.versions[numbers]
    assert isinstance(samples.names, Names)
    texts = [samples.names.encoded[numbers]]
    rows["name"] = texts[0].lengths
    if samples.references is not None:
        assert isinstance(samples.references, StoredReferences)
        texts.append(samples.references.documents[numbers])
        rows["reference"] = texts[1].lengths
    views = zip(*(text.views() for text in texts), strict=True)
    return rows, b"".join(chain.from_iterable(views))


def _text_lengths(rows: Rows) -> Int64Array:
    lengths: Int64Array = rows["name"].astype(np.int64) + rows["reference"]
    return lengths
