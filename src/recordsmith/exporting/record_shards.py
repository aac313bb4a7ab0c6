"""Divides records among files, whose names have their number and count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from recordsmith.building import check_shard_options, shard_bounds, shard_counts
from recordsmith.dataset import DEFAULT_TEMPLATE, Dataset, records_of
from recordsmith.exporting.export_writer import ExportWriter


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


def name_files(
    dataset: Dataset,
    shard_size_bytes: int | None,
    out: ExportWriter,
    part_names: Callable[[str, int], Sequence[str]],
) -> dict[str, tuple[Sequence[str], int]]:
    """For each split the names of its files of about this size, and its number of records.

    Args:
        part_names: as `Divisible.part_names`.

    Raises:
        OptionError: the size is invalid.
    """
    if out.part is not None:
        return dict.fromkeys(out.splits, ([out.part.name], out.part.record_count))
    check_shard_options(None, shard_size_bytes, DEFAULT_TEMPLATE)
    counts, sizes = {}, {}
    for split, part in dataset.splits.items():
        used = records_of(part).used_shards()
        total = max(1, sum(shard.record_count for shard in used))
        counts[split] = len(part)
        sizes[split] = sum(shard.size_bytes for shard in used) * len(part) // total
    files = shard_counts(counts, sizes, None, shard_size_bytes)
    return {
        split: (part_names(out.split_name(split), max(1, files[split])), count)
        for split, count in counts.items()
    }


def numbered_names(split: str, count: int, suffix: str) -> list[str]:
    """Return the names of so many files of a split."""
    return [f"{split}-{number:05d}-of-{count:05d}{suffix}" for number in range(count)]
