"""Divides the records of each split among files, whose names have their number and count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from recordsmith.building import check_shard_options, shard_bounds, shard_counts
from recordsmith.dataset import DEFAULT_TEMPLATE, Dataset, records_of


class RecordFiles:
    """The files of one split, written one after the other, with equal numbers of records."""

    def __init__(self, names: Sequence[str], record_count: int) -> None:
        self.lengths = [0] * len(names)
        self._names = names
        self._stops = shard_bounds(record_count, len(names))[1:]
        self._written = 0
        self._number = -1

    @abstractmethod
    def begin(self, name: str) -> None:
        """Begin a file."""

    @abstractmethod
    def write(self, payload: bytes) -> None:
        """Write a record to the file that was begun last."""

    @abstractmethod
    def end(self, name: str) -> None:
        """Complete the file that was begun last."""

    def add(self, payload: bytes) -> None:
        """Write one record to the file that it belongs to."""
        while self._number < 0 or self._written >= self._stops[self._number]:
            self._begin_next()
        self.write(payload)
        self.lengths[self._number] += 1
        self._written += 1

    def finish(self) -> None:
        """Complete the last file; records that were skipped may leave files without records."""
        while self._number < len(self._names):
            self._begin_next()

    def _begin_next(self) -> None:
        if self._number >= 0:
            self.end(self._names[self._number])
        self._number += 1
        if self._number < len(self._names):
            self.begin(self._names[self._number])


def count_files(dataset: Dataset, shard_size_bytes: int | None) -> dict[str, tuple[int, int]]:
    """For each split the number of records, and of files of about this size.

    Raises:
        OptionError: the size is invalid.
    """
    check_shard_options(None, shard_size_bytes, DEFAULT_TEMPLATE)
    counts, sizes = {}, {}
    for split, part in dataset.splits.items():
        used = records_of(part).used_shards()
        total = max(1, sum(shard.record_count for shard in used))
        counts[split] = len(part)
        sizes[split] = sum(shard.size_bytes for shard in used) * len(part) // total
    files = shard_counts(counts, sizes, None, shard_size_bytes)
    return {split: (count, max(1, files[split])) for split, count in counts.items()}
