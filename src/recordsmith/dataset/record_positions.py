"""Positions in a whole dataset, and the digest that changes when they mean other records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from recordsmith.dataset.dataset import Dataset, records_of
from recordsmith.dataset.locating.located import Located
from recordsmith.dataset.locating.paths import locate_each
from recordsmith.dataset.manifest import listed_digest
from recordsmith.dataset.shard import Shard
from recordsmith.stores import Location, as_location
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import DataError, FileAccessError


class _Listed(NamedTuple):
    """A shard as its dataset lists it: what is None is not known."""

    location: Location
    split: str
    record_count: int | None = None
    size_bytes: int | None = None
    crc32c: int | None = None
    shard: Shard | None = None


class RecordPositions:
    """The positions of the records of all splits of a dataset, as `rs.open` counts them.

    digest: of its shards as the manifest lists them; else of their names, sizes and known counts.
    """

    def __init__(self, parts: Sequence[Located]) -> None:
        self._shards = [listed for part in parts for listed in _listed_in(part)]
        self.digest = listed_digest(
            (one.split, one.location.name, one.record_count, one.size_bytes, one.crc32c)
            for one in self._shards
        )
        self._numbers: dict[str, int | None] = {
            str(one.location.absolute()): number for number, one in enumerate(self._shards)
        }
        self._starts: list[int | None] = [0]

    @classmethod
    def of(cls, dataset: Dataset) -> RecordPositions:
        """Return the positions in the dataset that another one is a split or a selection of."""
        return cls(locate_each(dataset.view.origin.places))

    def find(self, path: object, record: int) -> tuple[int | None, str]:
        """Return the position of a record of a file, None if it is not known, and its split."""
        number = self._number(str(path))
        if number is None:
            return None, ""
        start = self._start(number)
        return None if start is None else start + record, self._shards[number].split

    def in_dataset(self, dataset: Dataset) -> Int64Array:
        """Return the positions of the records of a dataset, in its order: int64, (records,)."""
        pieces = [np.empty(0, np.int64)]
        for part in records_of(dataset).parts():
            numbers = part.numbers
            rows = np.arange(part.record_count) if numbers is None else np.asarray(numbers)
            start = self.find(part.location, 0)[0]
            assert start is not None  # of a dataset that was opened
            pieces.append(rows + start)
        return np.concatenate(pieces)

    def __len__(self) -> int:
        count = self._start(len(self._shards))
        return 0 if count is None else count

    def _number(self, path: str) -> int | None:
        if path not in self._numbers:
            self._numbers[path] = self._numbers.get(str(as_location(path).absolute()))
        return self._numbers[path]

    def _start(self, number: int) -> int | None:
        """The position of the first record of a shard; None behind one that cannot be counted."""
        while len(self._starts) <= number:
            one, start = self._shards[len(self._starts) - 1], self._starts[-1]
            count = one.record_count
            if count is None and start is not None and one.shard is not None:
                with suppress(DataError, FileAccessError):
                    count = one.shard.record_count
            self._starts.append(None if count is None or start is None else start + count)
        return self._starts[number]


def _listed_in(part: Located) -> Iterator[_Listed]:
    if part.manifest is not None and part.folder is not None:
        for split, entries in part.manifest.splits.items():
            for entry in entries:
                known = entry.record_count, entry.size_bytes, entry.crc32c
                yield _Listed(part.folder / entry.file, split, *known)
        return
    for shard in part.shards:
        size, count = None, part.record_counts.get(shard.location)
        with suppress(FileAccessError):
            size = shard.size_bytes
        yield _Listed(shard.location, shard.split, count, size, shard=shard)
    for missing in part.missing:
        yield _Listed(missing.location, missing.split)
