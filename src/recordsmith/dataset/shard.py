"""One shard: its records in order by reading, or any of them by its index.

Reading in order streams the file through a small buffer, compressed or not. Reading by position
goes where the index says (see `frames`); each record is checked against it and its checksums.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.dataset.forks import renew_in_children
from recordsmith.dataset.frames import FrameReader, MappedFrames, ReadFrames, maps_well, walk
from recordsmith.dataset.manifest import ShardEntry
from recordsmith.dataset.shard_index import (
    KEEP_FROM_BYTES,
    ShardIndex,
    load_index,
    most_bytes,
    save_index,
)
from recordsmith.errors import CorruptDataError, Defect, OptionError, located
from recordsmith.files import accessing, open_file, read_head, size_of
from recordsmith.wire import (
    FRAME_BYTES,
    HEAD_BYTES,
    HEADER_BYTES,
    Compression,
    RecordBlock,
    detect_compression,
    encode_record,
    read_blocks,
    scan,
)
from recordsmith.wire.framing import describe_defect


class Shard:
    """One `.tfrecord` file. May be used from several threads."""

    def __init__(
        self,
        path: Path,
        split: str,
        *,
        entry: ShardEntry | None = None,
        compression: Compression | None = None,
        keeps_index: bool = True,
    ) -> None:
        """
        Args:
            entry: what a manifest says of it.
            compression: given where that is known.
            keeps_index: False for a temporary file, whose index nobody needs another time.
        """
        self.path = path
        self._keeps_index = keeps_index
        self.split = split
        self.entry = entry
        self._record_count = None if entry is None else entry.record_count
        self._compression = compression
        self._forget()

    def _forget(self) -> None:
        """What can be had again from the file."""
        self._index: ShardIndex | None = None
        self._is_index_kept = False  # from another time, so that it may speak of an older file
        self._has_moved = False  # the file is another one than that of the index
        self._frames: FrameReader | None = None
        self._may_be_mapped = False
        self.renew_lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        """Have a lock that nobody holds."""
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """A shard travels to another process without its index, open file and lock."""
        left_behind = (
            "_index",
            "_is_index_kept",
            "_has_moved",
            "_frames",
            "_may_be_mapped",
            "_lock",
        )
        return {name: value for name, value in vars(self).items() if name not in left_behind}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def __repr__(self) -> str:
        return f"Shard({str(self.path)!r}, split={self.split!r})"

    @property
    def size_bytes(self) -> int:
        """The size of the file."""
        return size_of(self.path)

    @property
    def compression(self) -> Compression:
        """none, gzip or zlib, as its first bytes say."""
        if self._compression is None:
            self._compression = detect_compression(read_head(self.path, HEAD_BYTES))
        return self._compression

    def check_size(self) -> None:
        """Compare its size with what its manifest says, and that with the count of records.

        Raises:
            CorruptDataError: shard-size-mismatch; record-count-mismatch, where the file could not
                hold as many records.
        """
        if self.entry is None:
            return
        size = self.size_bytes
        if size != self.entry.size_bytes:
            raise CorruptDataError(
                Defect.SHARD_SIZE,
                f"the shard has {size} bytes, its manifest says {self.entry.size_bytes}. It was "
                "cut, grown or replaced after it was packed; fetch it again, or open it by its "
                "own name.",
                path=self.path,
            )
        most = most_bytes(size, self.compression) // FRAME_BYTES
        if self.entry.record_count > most:
            raise CorruptDataError(
                Defect.RECORD_COUNT,
                f"a file of {size} bytes has {most} records at most, but its manifest says "
                f"{self.entry.record_count}. Fetch the manifest again, or open the shard by its "
                "own name.",
                path=self.path,
            )

    @property
    def known_record_count(self) -> int | None:
        """How many records it has, if that is known without looking."""
        return self._record_count

    @property
    def record_count(self) -> int:
        """How many records it has; the index is built if that is not known.

        Raises:
            CorruptDataError: it cannot be counted, as its frames are damaged.
        """
        if self._record_count is None:
            self._record_count = self.index.record_count
        return self._record_count

    @property
    def index(self) -> ShardIndex:
        """Where its records begin; built and kept when it is first asked for.

        Raises:
            CorruptDataError: frames are damaged.
        """
        with self._lock:
            if self._index is None:
                kept = load_index(self.path) if self._keeps_index else None
                if kept is not None and kept.compression == self.compression:
                    self._index, self._is_index_kept = kept, True
            if self._index is None:
                self._index = self._build_index()
            return self._index

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        check_payloads: bool = True,
    ) -> Iterator[RecordBlock]:
        """Its records start:stop in order; block positions count from the start of the shard.

        Without `stop`, to its end, which must be where a manifest says.

        Raises:
            CorruptDataError: at the first defect, with path, position and offset, after every
                record before it was handed on; record-count-mismatch if there are not as many
                records as were asked for or promised.
        """
        compression = self._compression
        skip_bytes = 0
        if start and self.compression == "none":
            if start > self.index.record_count:
                raise self._count_error(self.index.record_count, start)
            skip_bytes = int(self.index.offsets[start])
            compression = "none"
        position = start if skip_bytes else 0  # of the first record that is read
        seen = position
        with (
            open_file(self.path) as file,
            located(self.path, position, skip_bytes),
            accessing(self.path),
        ):
            if skip_bytes:
                file.seek(skip_bytes)
            for block in read_blocks(file, compression=compression, check_payloads=check_payloads):
                first = block.position + position
                seen = first + len(block)
                if stop is not None and first >= stop:
                    return
                low = max(0, start - first)
                high = len(block) if stop is None else min(len(block), stop - first)
                if low < high:
                    yield RecordBlock(
                        block.buffer,
                        block.starts[low:high],
                        block.lengths[low:high],
                        first + low,
                        block.offset + skip_bytes,
                    )
        expected = self._record_count if stop is None else stop
        if expected is not None and (seen < expected or (stop is None and seen > expected)):
            raise self._count_error(seen, expected)

    def read(self, number: int) -> memoryview:
        """The payload of one record, read-only.

        It may be a view of the mapped file, which it keeps alive. Do not cut a file while views of
        it are in use: the operating system ends a program that touches mapped bytes which are no
        longer there.

        Raises:
            OptionError: the shard is compressed.
            CorruptDataError: the record is damaged, or the file was cut since it was opened.
        """
        self._check_plain()
        payload = self._read_at(number)
        if payload is None and self._renew_index():
            payload = self._read_at(number)
        if payload is None:
            raise self._moved(number)
        return payload

    def _renew_index(self) -> bool:
        """Whether there is another index, after a record was not where it should be: once, if it
        was a kept one. An index that was built since the dataset was opened stays: with that of
        another file, records would be read that are not those which were opened.

        Raises:
            CorruptDataError: frames are damaged.
        """
        with self._lock:
            if self._has_moved:
                return False
            self.close()
            index = self._build_index()
            if not self._is_index_kept:
                self._has_moved = True
                return False
            self._index, self._is_index_kept = index, False
            return True

    def sizes(self, numbers: Int64Array) -> Int64Array:
        """int64, (count,): how long the payloads of some records are, as the index tells."""
        offsets = self._offsets_of(numbers)
        return offsets[numbers + 1] - offsets[numbers] - FRAME_BYTES

    def _offsets_of(self, numbers: Int64Array) -> Int64Array:
        """The offsets of all records, if they have those of these numbers."""
        index = self.index
        if len(numbers) and int(numbers.max()) >= index.record_count:
            raise self._moved(int(numbers.max()))
        return index.offsets

    def gather(
        self,
        numbers: Int64Array,
        places: Int64Array,
        out: npt.NDArray[np.uint8],
        *,
        whole: bool = False,
    ) -> None:
        """Copy the payloads of some records to out[places[i]:], with both checksums.

        Args:
            numbers: int64, (count,): which records, in any order.
            places: int64, (count,).
            out: uint8, with room for all.
            whole: copy the frames, not only their payloads.

        Raises:
            OptionError, CorruptDataError: as `read`.
        """
        self._check_plain()
        offsets = self._offsets_of(numbers)
        begins, ends = offsets[numbers], offsets[numbers + 1]
        done = self._open_frames().gather(begins, ends, places, out, whole=whole)
        for i in range(done, len(numbers)):  # one by one: that tells what is wrong
            payload = self.read(int(numbers[i]))
            if len(payload) != ends[i] - begins[i] - FRAME_BYTES:
                raise self._moved(int(numbers[i]))
            copied = np.frombuffer(encode_record(payload) if whole else payload, np.uint8)
            out[places[i] : places[i] + len(copied)] = copied

    @property
    def maps_well(self) -> bool:
        """Whether reading by position is much faster where the file is mapped."""
        return self.compression == "none" and maps_well(
            int(self.index.offsets[-1]), self.index.record_count
        )

    def allow_map(self) -> None:
        """Let the file be mapped, until `close`."""
        with self._lock:
            if not self._may_be_mapped:
                self.close()
                self._may_be_mapped = True

    def close(self) -> None:
        """Let go of the file; it is opened again when it is needed."""
        with self._lock:
            self._frames = None
            self._may_be_mapped = False

    def _check_plain(self) -> None:
        if self.compression != "none":
            raise OptionError(
                f"{self.path} is compressed with {self.compression}, so its records can only be "
                "read in order: iterate over the dataset, or write it uncompressed for random "
                "access"
            )

    def _moved(self, number: int) -> CorruptDataError:
        return CorruptDataError(
            Defect.SHARD_SIZE,
            f"record {number} is not where it was: the file was changed since it was opened. "
            "Open the dataset again.",
            path=self.path,
        )

    def _count_error(self, found: int, expected: int) -> CorruptDataError:
        return CorruptDataError(
            Defect.RECORD_COUNT,
            f"the shard has {found} records, expected {expected}: it was changed after it was "
            "packed or opened. Fetch it again, or open it anew by its own name.",
            path=self.path,
        )

    def _read_at(self, number: int) -> memoryview | None:
        """None if the file does not have this record where the index says."""
        index = self.index
        if number >= index.record_count:
            return None
        begin, end = int(index.offsets[number]), int(index.offsets[number + 1])
        view = self._open_frames().view(begin, end)
        if view is None:
            return None
        frames = scan(view)
        if len(frames.starts) == 1 and frames.stop == len(view):
            return view[HEADER_BYTES : HEADER_BYTES + end - begin - FRAME_BYTES]
        if frames.defect is Defect.PAYLOAD_CRC and frames.stop == 0:
            length = int.from_bytes(view[:8], "little")
            if length + FRAME_BYTES == len(view):
                error = describe_defect(frames, view, position=number, offset=begin)
                error.path = str(self.path)
                raise error
        return None

    def _open_frames(self) -> FrameReader:
        with self._lock:
            if self._frames is None:
                form = MappedFrames if self._may_be_mapped else ReadFrames
                self._frames = form(self.path)
            return self._frames

    def walk(self, tell: Callable[[int], None] | None = None) -> ShardIndex:
        """The index of the file as it is now, which is not kept. Of a plain file only the headers
        are read, of a compressed one all.

        Args:
            tell: told how many bytes of a plain file are walked.

        Raises:
            CorruptDataError: frames are damaged.
        """
        if self.size_bytes == 0:
            return ShardIndex(np.zeros(1, np.int64), "none")
        if self.compression == "none":
            with open_file(self.path) as file, accessing(self.path):
                lengths, is_whole = walk(file.fileno(), tell)
                if not is_whole:
                    with located(self.path):
                        for _ in read_blocks(file, check_payloads=False):  # raises it in words
                            pass
                    raise self._count_error(len(lengths), len(lengths) + 1)
        else:
            with open_file(self.path) as file, located(self.path), accessing(self.path):
                pieces = [block.lengths for block in read_blocks(file)]
            lengths = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
        return ShardIndex.from_lengths(lengths, self.compression)

    def _build_index(self) -> ShardIndex:
        index = self.walk()
        if self._keeps_index and self.size_bytes >= KEEP_FROM_BYTES:
            save_index(self.path, index)
        return index


def empty_file(path: Path) -> CorruptDataError:
    """The error for a file that should hold records and has no bytes."""
    return CorruptDataError(
        Defect.EMPTY_FILE,
        "the file has 0 bytes, so no records. Its writer may have been stopped before it wrote "
        "anything, or the copy failed.",
        path=path,
    )
