"""Write one shard: whole under its final name, or not there at all.

Records go to a temporary file beside it, which is synced and then renamed. Checksum, size and
index are counted on the way, so nothing is read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from recordsmith.buffers import BytesLike, as_view
from recordsmith.dataset.index import ShardIndex, save_index
from recordsmith.dataset.shard import Shard
from recordsmith.errors import FileAccessError, OptionError
from recordsmith.example import Column, Kind, encode_columns, encode_example
from recordsmith.files import PathLike, accessing, publish, remove, sync_folder
from recordsmith.wire import RecordBlock, RecordWriter, check_compression, crc32c, encode_slices
from recordsmith.wire.framing import encode_record

if TYPE_CHECKING:
    from typing_extensions import Self

_BUFFER_BYTES = 1 << 20
_ROWS_AT_A_TIME = 1 << 14


class ShardWriter:
    """Writes one `.tfrecord` file; a context manager. Not for use by two threads at once.

    On leaving without an exception the file gets its name; with one, nothing is left behind.

        with ShardWriter("train.tfrecord") as writer:
            writer.write_example({"label": 3, "name": "daisy"})
    """

    def __init__(
        self,
        path: PathLike,
        *,
        compression: str | None = None,
        overwrite: bool = False,
        temporary: PathLike | None = None,
    ) -> None:
        """Open a new shard.

        Args:
            path: the final name.
            compression: none, gzip or zlib.
            overwrite: replace a file of that name; else it is refused.
            temporary: where the bytes go until then, on the same file system.

        Raises:
            OptionError: the file exists, or the compression is unknown.
            FileAccessError: the folder is missing or cannot be written.
        """
        self.path = Path(path)
        self.compression = check_compression(compression)
        if self.path.exists() and not overwrite:
            raise OptionError(f"{self.path} exists already; say overwrite=True to replace it")
        hidden = f".{self.path.name}.{os.getpid()}.partial"
        self._temporary = Path(temporary or self.path.with_name(hidden))
        self._lengths: list[Any] = []
        self._pending: list[BytesLike] = []
        self._pending_bytes = 0
        self._is_finished = False
        self.record_count = 0
        with accessing(self._temporary, "write"):
            self._file = _CountedFile(self._temporary)
        self._records = RecordWriter(cast(BinaryIO, self._file), compression=self.compression)

    @property
    def size_bytes(self) -> int:
        """How many bytes the file has so far."""
        return self._file.size_bytes

    @property
    def crc32c(self) -> int:
        """CRC-32C over the bytes of the file so far."""
        return self._file.crc32c

    def write(self, payload: BytesLike) -> None:
        """Write one record."""
        self._add(encode_record(payload))
        self._lengths.append(len(payload))
        self.record_count += 1

    def write_example(
        self, features: Mapping[str, Any], kinds: Mapping[str, Kind] | None = None
    ) -> None:
        """Write a dict as an Example; values and kinds as in `encode_example`."""
        self.write(encode_example(features, kinds))

    def write_columns(self, columns: Mapping[str, Column | Sequence[Any]]) -> None:
        """Write one Example for each row of some columns, as in `encode_columns`."""
        data, offsets = encode_columns(columns)
        for first in range(0, len(offsets) - 1, _ROWS_AT_A_TIME):
            piece = offsets[first : first + _ROWS_AT_A_TIME + 1]
            self._add(encode_slices(data, piece))
            self._lengths.extend(np.diff(piece).tolist())
            self.record_count += len(piece) - 1

    def finish(self) -> None:
        """Write what is held back and sync; the file still has its temporary name."""
        if self._is_finished:
            return
        self._flush()
        with accessing(self.path, "write"):
            self._records.finish()
            self._file.sync()
            self._file.close()
        self._is_finished = True

    def written_blocks(self) -> Iterator[RecordBlock]:
        """Finish, and read what was written back from the file, with every checksum."""
        self.finish()
        return Shard(self._temporary, "", compression=self.compression).blocks()

    def publish(self) -> None:
        """Give the finished file its name, and keep its index."""
        self.finish()
        publish(self._temporary, self.path)
        sync_folder(self.path.parent)
        lengths = np.asarray(self._lengths, np.int64)
        save_index(self.path, ShardIndex.from_lengths(lengths, self.compression))

    def discard(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError):
            self._file.close()
        with suppress(FileAccessError):
            remove(self._temporary)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.discard()
            return
        try:
            self.publish()
        except BaseException:
            self.discard()
            raise

    def _add(self, frames: BytesLike) -> None:
        self._pending.append(frames)
        self._pending_bytes += len(frames)
        if self._pending_bytes >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        with accessing(self.path, "write"):
            if len(self._pending) == 1:
                self._records.write_frames(self._pending[0])
            else:
                self._records.write_frames(b"".join(map(as_view, self._pending)))
        self._pending.clear()
        self._pending_bytes = 0


class _CountedFile:
    """An unbuffered file that knows size and checksum of what was written to it."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - closed by close()
        self.size_bytes = 0
        self.crc32c = 0

    def write(self, data: BytesLike) -> int:
        view = as_view(data)
        written = 0
        while written < len(view):
            written += self._file.write(view[written:])
        self.size_bytes += written
        self.crc32c = crc32c(view, self.crc32c) if written else self.crc32c
        return written

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
