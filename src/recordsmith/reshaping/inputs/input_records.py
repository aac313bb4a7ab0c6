"""The records of all inputs: their numbers, and access to each.

Only the indexes of the latest shards are in memory; they take eight bytes per record.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from recordsmith.dataset import SelectedRecords, Shard, joined_shards
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.reshaping.inputs.cache import LruCache
from recordsmith.reshaping.inputs.input_shards import InputShard
from recordsmith.stores import Location, ObjectInfo, as_place
from recordsmith.wire import FRAME_BYTES
from recordsmith.work import Work

_REMEMBERED = 32 << 20  # indexed records in memory: 256 MiB


class InputRecords:
    """The records of all inputs. Thread-safe.

    counts: number of records of each input.
    sizes: their size in bytes with framing, before compression.
    """

    def __init__(
        self,
        shards: Sequence[InputShard],
        unpacked: Mapping[int, Location],
        work: Work,
        *,
        scratch: object = None,
    ) -> None:
        """
        Args:
            shards: the inputs.
            unpacked: the decompressed file of each compressed shard, by number.
            work: for counting in parallel.
            scratch: owns these files; None for files that others remove.
        """
        self._scratch = scratch
        self._shards = tuple(shards)
        self._unpacked = unpacked
        self._lock = threading.Lock()
        self._everything: SelectedRecords | None = None
        self._recent: LruCache[Shard] = LruCache(lambda number, _: self.counts[number], _REMEMBERED)
        measured = work.each(self._measure, self._shards)
        self.counts = [count for count, _ in measured]
        self.sizes = [size for _, size in measured]

    def __len__(self) -> int:
        return len(self._shards)

    def to_json(self, number: int) -> dict[str, Any]:
        """Return an input as plain JSON values, for a worker."""
        shard = self._shards[number]
        unpacked = self._unpacked.get(number)
        return {
            "location": str(shard.location.absolute()),
            "unpacked": None if unpacked is None else str(unpacked.absolute()),
            "split": shard.split,
            "compression": shard.compression,
            "size_bytes": shard.size_bytes,
            "version": shard.version,
            "records": self.counts[number],
        }

    @classmethod
    def from_json(cls, documents: Sequence[Mapping[str, Any]], work: Work) -> InputRecords:
        """Open the inputs of a task, from `to_json` of each."""
        shards = [
            InputShard(
                number,
                as_place(each["location"]),
                each["split"],
                each["compression"],
                each["size_bytes"],
                each["version"],
                each["records"],
            )
            for number, each in enumerate(documents)
        ]
        unpacked = {
            number: as_place(each["unpacked"])
            for number, each in enumerate(documents)
            if each["unpacked"] is not None
        }
        return cls(shards, unpacked, work)

    def location(self, number: int) -> Location:
        """Return the given file, for messages."""
        return self._shards[number].location

    def input_path(self, path: str) -> str:
        """Return the given file, for the path of a file that may be a decompressed one."""
        return next(
            (
                str(self.location(number))
                for number, plain in self._unpacked.items()
                if str(plain) == path
            ),
            path,
        )

    def shard(self, number: int) -> Shard:
        """Return the shard to read input `number` from."""
        return self._recent.get(number, lambda number: self._open(self._shards[number]))

    def everything(self) -> SelectedRecords:
        """Return all inputs as one dataset, which keeps all indexes in memory.

        Raises:
            CorruptDataError: the number of records differs from the manifest.
        """
        with self._lock:
            if self._everything is None:
                self._everything = self._joined()
        return self._everything

    def _joined(self) -> SelectedRecords:
        shards = [self._open(shard) for shard in self._shards]
        for number, shard in enumerate(shards):
            if shard.index.record_count != self.counts[number]:
                raise self.count_error(number, shard.index.record_count)
        return joined_shards(shards)

    def check_unchanged(self) -> None:
        """Check that no input was modified since the job began.

        Raises:
            CorruptDataError: one was.
            FileAccessError: one was removed.
        """
        for shard in self._shards:
            shard.check_unchanged()

    def count_error(self, number: int, found: int) -> CorruptDataError:
        """Return the error for an input with a wrong number of records."""
        return CorruptDataError(
            Defect.RECORD_COUNT,
            "the shard was modified after it was packed, or while it was read",
            found=f"{found} records",
            expected=f"{self.counts[number]} records",
            remedy="Fetch it again.",
            path=self.location(number),
        )

    def _open(self, shard: InputShard) -> Shard:
        unpacked = self._unpacked.get(shard.number)
        if unpacked is None:
            info = ObjectInfo(shard.location.key, shard.size_bytes, shard.version)
            return Shard(shard.location, shard.split, compression="none", listed=info)
        return Shard(unpacked, shard.split, compression="none", keeps_index=False)

    def _measure(self, shard: InputShard) -> tuple[int, int]:
        """Return the number of records and their size; reads the index only if necessary."""
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
                "the shard is too small for the number of records in its manifest",
                found=f"{size} bytes",
                expected=f"{count} records",
                remedy="Fetch it again.",
                path=shard.location,
            )
        return count, size
