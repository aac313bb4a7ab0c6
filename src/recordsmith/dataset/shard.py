"""One shard: its records in order by reading, or any of them by its index.

Reading in order streams the file through a small buffer, compressed or not. Reading by position
maps the file into memory; each record is checked against its index and its checksums.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

import numpy as np

from recordsmith.dataset.index import KEEP_FROM_BYTES, ShardIndex, load_index, save_index
from recordsmith.errors import CorruptDataError, Defect, OptionError, located
from recordsmith.files import accessing, open_file, read_head, size_of
from recordsmith.wire import (
    FRAME_BYTES,
    HEADER_BYTES,
    Compression,
    RecordBlock,
    read_blocks,
    scan,
)
from recordsmith.wire.compression import HEAD_BYTES, detect_compression
from recordsmith.wire.framing import describe_defect
from recordsmith.wire.stream import DefectHandler


class Shard:
    """One `.tfrecord` file. May be used from several threads."""

    def __init__(
        self,
        path: Path,
        split: str,
        *,
        record_count: int | None = None,
        compression: Compression | None = None,
    ) -> None:
        """`record_count` and `compression` are given where a manifest knows them."""
        self.path = path
        self.split = split
        self._record_count = record_count
        self._compression = compression
        self._index: ShardIndex | None = None
        self._map: mmap.mmap | None = None
        self._lock = threading.RLock()

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
                self._index = load_index(self.path) or self._build_index()
            return self._index

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        check_payloads: bool = True,
        on_defect: DefectHandler | None = None,
        stream: BinaryIO | None = None,
    ) -> Iterator[RecordBlock]:
        """Its records start:stop in order; block positions count from the start of the shard.

        `stream` stands in for the file, to look at the bytes on their way; it is not closed.

        Raises:
            CorruptDataError: at the first defect, with path, position and offset, after every
                record before it was handed on; unless `on_defect` takes it.
        """
        skip_bytes = 0
        compression = self._compression
        if start and self.compression == "none":
            skip_bytes = int(self.index.offsets[start])
            compression = "none"
        position = 0 if skip_bytes == 0 else start
        source = nullcontext(stream) if stream else open_file(self.path)
        with source as file, located(self.path, position, skip_bytes), accessing(self.path):
            if skip_bytes:
                file.seek(skip_bytes)
            for block in read_blocks(
                file, compression=compression, check_payloads=check_payloads, on_defect=on_defect
            ):
                first = block.position + position
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

    def read(self, number: int) -> memoryview:
        """The payload of one record, as a view of the mapped file.

        The view keeps the map alive. Do not truncate a file while views of it are in use: the
        operating system ends a program that touches mapped bytes which are no longer there.

        Raises:
            OptionError: the shard is compressed.
            CorruptDataError: the record is damaged, or the file was cut since it was opened.
        """
        if self.compression != "none":
            raise OptionError(
                f"{self.path} is compressed with {self.compression}, so its records can only be "
                "read in order: iterate over the dataset, or write it uncompressed for random "
                "access"
            )
        payload = self._read_at(number)
        if payload is None:  # the index may speak of an older file: build it anew, once
            with self._lock:
                self.close()
                self._index = self._build_index()
            if number < self._index.record_count:
                payload = self._read_at(number)
        if payload is None:
            raise CorruptDataError(
                Defect.SHARD_SIZE,
                f"record {number} is not where it was: the file was changed since it was opened. "
                "Open the dataset again.",
                path=self.path,
            )
        return payload

    def close(self) -> None:
        """Let go of the map; it comes back when it is needed."""
        with self._lock:
            self._map = None

    def _read_at(self, number: int) -> memoryview | None:
        """None if the file does not have this record where the index says."""
        index = self.index
        begin, end = int(index.offsets[number]), int(index.offsets[number + 1])
        mapped = self._mapped()
        if end > len(mapped) or mapped.size() < end:
            return None
        view = memoryview(mapped)[begin:end]
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

    def _mapped(self) -> mmap.mmap:
        with self._lock:
            if self._map is None:
                with open_file(self.path) as file, accessing(self.path):
                    if size_of(self.path) == 0:
                        raise CorruptDataError(
                            Defect.SHARD_SIZE, "the file is empty now", path=self.path
                        )
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return self._map

    def _build_index(self) -> ShardIndex:
        """By walking the frames: of a plain file only the headers, of a compressed one all."""
        if self.size_bytes == 0:
            return ShardIndex(np.zeros(1, np.int64), "none")
        if self.compression == "none":
            mapped = self._mapped()
            frames = scan(memoryview(mapped), check_payloads=False)
            if frames.defect is not None:
                for _ in self.blocks(check_payloads=False):  # raises it in words
                    pass
            lengths = frames.lengths
        else:
            pieces = [block.lengths for block in self.blocks()]
            lengths = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
        index = ShardIndex.from_lengths(lengths, self.compression)
        if self.size_bytes >= KEEP_FROM_BYTES:
            save_index(self.path, index)
        return index
