"""Parts of shards, which are read like shards, and both for other processes."""

from __future__ import annotations

import bisect
import errno
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_sequence import ShardSequence, scattered_blocks
from recordsmith.errors import FileAccessError, MissingFileError
from recordsmith.stores import ObjectInfo, as_location
from recordsmith.wire import FRAME_BYTES, RecordBlock


class ShardPart:
    """Some records of a shard, in order, which are read like a shard that has only these."""

    def __init__(
        self,
        shard: Shard,
        numbers: range | Int64Array,
        records: ShardSequence | None = None,
        first: int = 0,
    ) -> None:
        """
        Args:
            numbers: int64 or a range, ascending and not empty.
            records: the sequence that the shard belongs to.
            first: the position of the shard's first record in it.
        """
        self.shard = shard
        self.location = shard.location
        self.split = shard.split
        self._records = ShardSequence([shard]) if records is None else records
        self._first = first
        self._numbers = numbers
        self._is_run = isinstance(numbers, range) and numbers.step == 1

    @property
    def record_count(self) -> int:
        return len(self._numbers)

    def numbers(self) -> range | Int64Array:
        """Return the numbers in the file of all records."""
        return self._numbers

    def number_of(self, number: int) -> int:
        """Return the number in the file of a record of this part."""
        return int(self._numbers[number])

    @property
    def compression(self) -> str:
        return self.shard.compression

    @property
    def size_bytes(self) -> int:
        """The size of the records with their frames, before compression."""
        if self._is_run:
            offsets = self.shard.index.offsets
            return int(offsets[self._numbers[-1] + 1] - offsets[self._numbers[0]])
        sizes = self.shard.sizes(np.asarray(self._numbers, np.int64))
        return int(sizes.sum()) + FRAME_BYTES * len(self._numbers)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[RecordBlock]:
        """Yield the records start:stop of this part in blocks; positions count in the part."""
        numbers = self._numbers[start:stop]
        if not len(numbers):
            return
        done = 0  # bytes: at the end of each block, they are its offset and the size of its buffer
        if not self._is_run and self.compression == "none":
            for block, _ in scattered_blocks(self._records, self._first + np.asarray(numbers)):
                done += int(block.lengths.sum()) + FRAME_BYTES * len(block)
                offset = done - len(block.buffer)
                yield RecordBlock(block.buffer, block.starts, block.lengths, start, offset)
                start += len(block)
            return
        for block in self.shard.blocks(int(numbers[0]), int(numbers[-1]) + 1):
            low = bisect.bisect_left(numbers, block.position)
            high = bisect.bisect_left(numbers, block.position + len(block))
            if low == high:
                continue
            rows: Any = slice(None)
            if not self._is_run:
                rows = np.asarray(numbers[low:high]) - block.position
            starts, lengths = block.starts[rows], block.lengths[rows]
            done += int(lengths.sum()) + FRAME_BYTES * len(lengths)
            yield RecordBlock(block.buffer, starts, lengths, start + low, done - len(block.buffer))


AnyShard: TypeAlias = Shard | ShardPart


def cut_part(part: AnyShard, max_bytes: int) -> Iterator[AnyShard]:
    """Yield a shard or part, or pieces of at most so many bytes if it is large and plain."""
    shard = part.shard if isinstance(part, ShardPart) else part
    size = shard.size_bytes if shard.compression == "none" else 0
    if part is shard and size <= max_bytes:
        yield shard
        return
    numbers = part.numbers()
    count = len(numbers)
    pieces = min(count, -(-size * count // (max_bytes * max(1, shard.record_count)))) or 1
    for piece in range(pieces):
        yield ShardPart(shard, numbers[count * piece // pieces : count * (piece + 1) // pieces])


# -- for other processes ---------------------------------------------------------------------------


def shard_for_task(shard: Shard) -> dict[str, Any]:
    """Return where a shard is, without credentials, and which version of it."""
    size_bytes = version = None
    try:
        _, size_bytes, version = shard.info()
    except FileAccessError as error:
        if error.errno == errno.EINVAL:
            error.advise("Run the job without an engine: other processes read only files.")
            raise
        # a shard that cannot be read is a finding of some jobs
    return {
        "path": str(shard.location.absolute()),
        "split": shard.split,
        "entry": shard.entry,
        "size_bytes": size_bytes,
        "version": version,
        "may_have_index": shard.may_have_index,
    }


def shard_from_task(task: Mapping[str, Any]) -> Shard:
    """Open a shard in another process, in the version of `shard_for_task`."""
    location = as_location(task["path"])
    store, size_bytes, listed = location.store, task["size_bytes"], None
    if size_bytes is not None and store.is_remote:
        listed = ObjectInfo(location.key, size_bytes, task["version"])
    elif size_bytes is not None:
        try:
            info = location.info()
        except MissingFileError as error:
            error.advise("The worker must see it under the same path. Or pass a URL.")
            raise
        here, there = map(store.version_number, (info.version, task["version"]))
        if info.size_bytes != size_bytes or here != there:
            raise FileAccessError(
                errno.ESTALE,
                f"the worker sees another version of it, with {info.size_bytes} bytes instead "
                f"of {size_bytes}",
                str(location),
                remedy="Check that nothing writes to it, and that all machines see the same disk.",
            )
    may_have_index = task["may_have_index"]
    return Shard(
        location, task["split"], entry=task["entry"], listed=listed, may_have_index=may_have_index
    )


def part_for_task(part: AnyShard) -> dict[str, Any]:
    """Return a shard, or the part of one, for `part_from_task`."""
    if isinstance(part, Shard):
        return shard_for_task(part)
    return {**shard_for_task(part.shard), "numbers": part.numbers()}


def part_from_task(task: Mapping[str, Any]) -> AnyShard:
    """Open a shard, or the part of one; errors as `shard_from_task`."""
    shard = shard_from_task(task)
    return ShardPart(shard, task["numbers"]) if "numbers" in task else shard
