"""Parts of shards, and shards and parts for other processes."""

from __future__ import annotations

import bisect
import errno
import os
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence, Sized
from itertools import chain, islice
from typing import Any

import numpy as np
from msgspec.structs import replace

from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_sequence import OpenShards, ShardSequence, scattered_blocks
from recordsmith.format.wire import FRAME_BYTES, RecordBlock
from recordsmith.stores import ObjectInfo, as_location
from recordsmith.support.ahead import begin_ahead
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import FileAccessError, MissingFileError
from recordsmith.support.threads import stoppable_pool, wait_for


class ShardRange:
    """The records of a shard, or some of them, in order; positions in blocks count in the part."""

    def __init__(
        self,
        shard: Shard,
        numbers: range | Int64Array | None = None,
        opened: OpenShards | None = None,
    ) -> None:
        """`numbers`: int64 or a range, ascending, not empty; `opened`: of the shard's sequence."""
        self.shard = shard
        self.location = shard.location
        self.split = shard.split
        self.numbers = numbers
        self._opened = opened
        self._is_run = isinstance(numbers, range) and numbers.step == 1

    @property
    def record_count(self) -> int:
        return self.shard.record_count if self.numbers is None else len(self.numbers)

    @property
    def compression(self) -> str:
        return self.shard.compression

    @property
    def size_bytes(self) -> int:
        """The size of the file; of some records, that with their frames before compression."""
        if self.numbers is None:
            return self.shard.size_bytes
        if self._is_run:
            offsets = self.shard.index.offsets
            return int(offsets[self.numbers[-1] + 1] - offsets[self.numbers[0]])
        sizes = self.shard.sizes(np.asarray(self.numbers, np.int64))
        return int(sizes.sum()) + FRAME_BYTES * len(self.numbers)

    def number_of(self, position: int) -> int:
        return position if self.numbers is None else int(self.numbers[position])

    def portable(self) -> ShardRange:
        """Return a part that another process reads: see `Shard.portable`."""
        return ShardRange(self.shard.portable(self.number_of(0)), self.numbers)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[RecordBlock]:
        if self.numbers is None:
            return self.shard.blocks(start, stop)
        return self._selected_blocks(self.numbers[start:stop], start)

    def _selected_blocks(self, numbers: range | Int64Array, start: int) -> Iterator[RecordBlock]:
        if not len(numbers):
            return
        done = 0  # bytes: at the end of each block, they are its offset and the size of its buffer
        if not self._is_run and self.compression == "none":
            records = ShardSequence([self.shard], self._opened)
            for block, _ in scattered_blocks(records, np.asarray(numbers)):
                done += int(block.lengths.sum()) + FRAME_BYTES * len(block)
                offset = done - len(block.buffer)
                yield replace(block, position=start, offset=offset)
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
            offset = done - len(block.buffer)
            yield replace(
                block, starts=starts, lengths=lengths, position=start + low, offset=offset
            )


def cut_part(part: ShardRange, max_bytes: int) -> Iterator[ShardRange]:
    """Yield a part, or pieces of at most so many bytes if its shard is large and plain."""
    shard, numbers = part.shard, part.numbers
    size = shard.size_bytes if shard.compression == "none" else 0
    if numbers is None and size <= max_bytes:
        yield part
        return
    numbers = range(shard.record_count) if numbers is None else numbers
    count = len(numbers)
    pieces = min(count, -(-size * count // (max_bytes * max(1, shard.record_count)))) or 1
    for piece in range(pieces):
        yield ShardRange(shard, numbers[count * piece // pieces : count * (piece + 1) // pieces])


def blocks_of(parts: Sequence[ShardRange]) -> Iterator[tuple[ShardRange, RecordBlock]]:
    """Yield the blocks of parts in order, each with its part.

    Over a network, the first blocks of the next parts are read meanwhile: of twice as many after
    each part that was read to its end, so that reading only the beginning costs no more.
    """
    if len(parts) < 3 or not parts[0].shard.is_remote:
        for part in parts:
            for block in part.blocks():
                yield part, block
        return
    yield from _read_ahead(parts)


def _read_ahead(parts: Sequence[ShardRange]) -> Generator[tuple[ShardRange, RecordBlock]]:
    for block in parts[0].blocks():
        yield parts[0], block
    process, rest = os.getpid(), iter(parts[1:])
    most, ahead = parts[0].location.store.concurrency, 1
    stopping = threading.Event()
    pool = stoppable_pool(most, stopping)

    def has_room(begun: Sized) -> bool:
        return len(begun) < ahead and os.getpid() == process

    try:
        begun = begin_ahead(pool, _begin, rest, has_room)
        for part, request in chain(begun, ((part, None) for part in rest)):
            is_forked = os.getpid() != process  # the threads exist in the parent only
            for block in part.blocks() if request is None or is_forked else wait_for(request):
                yield part, block
            ahead = min(most, 2 * ahead)
    finally:
        if os.getpid() == process:
            stopping.set()
            pool.shutdown(cancel_futures=True)


def _begin(part: ShardRange) -> Iterator[RecordBlock]:
    blocks = part.blocks()
    return chain(list(islice(blocks, 1)), blocks)


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
        "layers": [
            {**shard_for_task(layer), "features": layer.features, "is_held": layer.is_held}
            for layer in shard.layers
        ],
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
    shard = Shard(
        location,
        task["split"],
        entry=task["entry"],
        listed=listed,
        may_have_index=may_have_index,
        features=task.get("features", frozenset()),
    )
    shard.layers = tuple(map(shard_from_task, task["layers"]))
    shard.is_held = task.get("is_held", False)
    return shard


def part_for_task(part: ShardRange) -> dict[str, Any]:
    """Return a part of a shard for `part_from_task`."""
    return {**shard_for_task(part.shard), "numbers": part.numbers}


def part_from_task(task: Mapping[str, Any]) -> ShardRange:
    """Open a part of a shard; errors as `shard_from_task`."""
    return ShardRange(shard_from_task(task), task["numbers"])
