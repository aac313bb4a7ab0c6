"""The records of all inputs: how many each has, and any of them to be read.

What is known of few shards is in memory at a time: their indexes take eight bytes a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from recordsmith.dataset import Dataset, Shard
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.reshaping.inputs import InputShard
from recordsmith.reshaping.recent import Recent
from recordsmith.wire import FRAME_BYTES
from recordsmith.work import Work

_REMEMBERED = 32 << 20  # records of which the indexes are in memory: 256 MiB


class Records:
    """The records of all inputs. Safe to use from several threads.

    counts: how many records each input has.
    sizes: how many bytes they take, framing included, not compressed.
    """

    def __init__(
        self,
        shards: Sequence[InputShard],
        unpacked: Mapping[int, Path],
        work: Work,
    ) -> None:
        """
        Args:
            unpacked: for the number of each compressed shard the file that has its records.
            work: counts the records of several shards at once.
        """
        self._shards = tuple(shards)
        self._unpacked = unpacked
        self._recent: Recent[Shard] = Recent(lambda number, _: self.counts[number], _REMEMBERED)
        measured = work.each(self._measure, self._shards)
        self.counts = [count for count, _ in measured]
        self.sizes = [size for _, size in measured]

    def __len__(self) -> int:
        return len(self._shards)

    def path(self, number: int) -> Path:
        """The file that was given, for messages."""
        return self._shards[number].path

    def given(self, path: Path) -> Path:
        """The file that was given, of which this is what is read."""
        return next(
            (self.path(number) for number, plain in self._unpacked.items() if plain == path), path
        )

    def shard(self, number: int) -> Shard:
        """The file to read input `number` from; it knows its index once that was asked for."""
        return self._recent.get(number, lambda number: self._open(self._shards[number]))

    def joined(self) -> Dataset:
        """All inputs as one sequence; their indexes stay in memory as long as that is in use.

        Raises:
            CorruptDataError: one has not as many records as its manifest says.
        """
        shards = [self._open(shard) for shard in self._shards]
        for number, shard in enumerate(shards):
            if shard.index.record_count != self.counts[number]:
                raise self.count_error(number, shard.index.record_count)
        return Dataset(shards)

    def count_error(self, number: int, found: int) -> CorruptDataError:
        """An input has not as many records as it should."""
        return CorruptDataError(
            Defect.RECORD_COUNT,
            f"the shard has {found} records, expected {self.counts[number]}: it was changed after "
            "it was packed, or while it was read. Fetch it again.",
            path=self.path(number),
        )

    def _open(self, shard: InputShard) -> Shard:
        path = self._unpacked.get(shard.number)
        if path is None:
            return Shard(shard.path, shard.split, compression="none")
        return Shard(path, shard.split, compression="none", keeps_index=False)

    def _measure(self, shard: InputShard) -> tuple[int, int]:
        """How many records, in how many bytes; read from the index only if nothing else tells."""
        if not shard.size_bytes:
            return 0, 0
        opened = self._open(shard)
        count = shard.record_count
        if count is None:
            count = opened.index.record_count
        size = opened.size_bytes
        if size < FRAME_BYTES * count:
            raise CorruptDataError(
                Defect.RECORD_COUNT,
                f"the shard has {size} bytes, too few for the {count} records that its manifest "
                "speaks of. Fetch it again.",
                path=shard.path,
            )
        return count, size
