"""Writes one shard atomically.

Records go to a temporary file next to it, which is synced and renamed at the end. Checksum, size
and index are computed while writing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self, cast

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.arrow.library import ArrowStream
from recordsmith.dataset.layers import ShardEntry
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_index import (
    KEEP_FROM_BYTES,
    ShardIndex,
    index_locations,
    index_pieces,
    save_index,
)
from recordsmith.format.example import Column, ColumnEncoder, Kind, encode_example
from recordsmith.format.wire import (
    FRAME_BYTES,
    RecordBlock,
    RecordWriter,
    check_compression,
    crc32c,
    encode_record,
    encode_record_into,
    encode_slices,
)
from recordsmith.stores import Location, ObjectInfo, ObjectWriter, PlaceLike, as_location
from recordsmith.support.buffers import BytesLike, Int64Array, as_view
from recordsmith.support.errors import FileAccessError, OptionError, accessing, option

if TYPE_CHECKING:
    from recordsmith.dataset.column_file import ColumnSurvey

_BUFFER_BYTES = 1 << 20
_ROWS_AT_A_TIME = 1 << 13  # measured: fewer rows cost more calls, more rows exceed the cache


class ShardWriter:
    """Writes one `.tfrecord` file; a context manager. Not thread-safe.

    The file gets its final name on `close`, or at the end of the `with` block. If the block raises,
    no file is left.

    Example:
        with ShardWriter("train.tfrecord") as writer:
            writer.write_example({"label": 3, "name": "daisy"})
    """

    def __init__(
        self,
        path: PlaceLike,
        *,
        compression: str | None = None,
        overwrite: bool = False,
        temporary: Location | None = None,
    ) -> None:
        """Open a new shard.

        Args:
            path: the final path or URL.
            compression: none, gzip or zlib.
            overwrite: replace an existing file.
            temporary: where `publish` leaves the file instead, in the same store.

        Raises:
            OptionError: the file exists, or the compression is unsupported.
            FileAccessError: the folder is missing or cannot be written.
        """
        self.is_open = False
        self.location = as_location(path)
        self.compression = check_compression(compression)
        if temporary is None:
            self.location.check_target(overwrite=overwrite)
        self._lengths = array("q")
        self._frames = bytearray()  # a buffer for records, filled up to _used; allocated on demand
        self._used = 0
        self._file = _CountedFile(
            (temporary or self.location).open_write(overwrite=overwrite or temporary is not None)
        )
        self._records = RecordWriter(cast(BinaryIO, self._file), compression=self.compression)
        self.is_open = True  # neither closed nor discarded
        self._is_sealed = False
        self.columns: ColumnSurvey | None = None  # of numbers of its records, to be kept
        self._overwrites = overwrite
        self._info: ObjectInfo | None = None  # of the file over a network that was read back

    @property
    def record_count(self) -> int:
        """The number of records written so far."""
        return len(self._lengths)

    @property
    def size_bytes(self) -> int:
        """The number of bytes written to the file so far."""
        return self._file.size_bytes

    @property
    def crc32c(self) -> int:
        """CRC-32C of the bytes written to the file so far."""
        return self._file.crc32c

    def write(self, payload: BytesLike) -> None:
        """Write one record."""
        self._check_open()
        if not isinstance(payload, bytes):
            if not isinstance(payload, (bytearray, memoryview, np.ndarray)):
                raise OptionError(
                    option="payload", value=payload, expected="bytes or another buffer"
                )
            payload = bytes(payload)  # contiguous, for any item type and strides
        if not self._frames:
            self._frames = bytearray(_BUFFER_BYTES)
        stop = encode_record_into(payload, self._frames, self._used)
        if stop is None:
            self._flush()
            stop = encode_record_into(payload, self._frames, 0)
        if stop is None:
            self._write_frames(encode_record(payload))
        else:
            self._used = stop
        self._lengths.append(len(payload))

    def write_example(
        self, features: Mapping[str, Any], kinds: Mapping[str, Kind] | None = None
    ) -> None:
        """Write a dict as an Example; values and kinds as in `encode_example`.

        A feature with the value None is left out. Arrays of two or more axes raise an OptionError:
        encode images as JPEG or PNG, and store other arrays as `tobytes()` and the shape.
        """
        self.write(encode_example(features, kinds))

    def write_columns(
        self,
        columns: Mapping[str, Column | Sequence[Any]] | ArrowStream,
        validity: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        """Write one Example for each row of columns.

        Args:
            columns: as in `encode_columns`; or a table with `__arrow_c_stream__`, such as one of
                pyarrow, Polars, pandas or DuckDB, where null means that the record lacks the
                feature.
            validity: as in `encode_columns`.

        Raises:
            OptionError: the columns cannot be encoded; of a stream, earlier batches are written.
            MissingExtraError: an Arrow table needs pyarrow.

        Example:
            with rs.ShardWriter("rows.tfrecord") as writer:
                writer.write_columns({"x": [1, 2], "tags": [["a"], ["b", "c"]]})
        """
        if isinstance(columns, ArrowStream):
            from recordsmith.dataset.arrow.columns import read_stream

            for part, valid in read_stream(columns):
                self._write_columns(part, valid)
        else:
            self._write_columns(columns, validity)

    def _write_columns(
        self,
        columns: Mapping[str, Column | Sequence[Any]],
        validity: Mapping[str, npt.ArrayLike] | None,
    ) -> None:
        self._check_open()
        encoder = ColumnEncoder(columns, validity)
        for start in range(0, encoder.row_count, _ROWS_AT_A_TIME):
            stop = min(start + _ROWS_AT_A_TIME, encoder.row_count)
            self.write_slices(*encoder.encode(start, stop))

    def write_slices(self, data: BytesLike, offsets: Int64Array) -> None:
        """Write many payloads at once: data[offsets[i]:offsets[i + 1]].

        Args:
            data: the payloads, end to end.
            offsets: int64, (count + 1,), ascending.
        """
        self._check_open()
        self._flush()
        self._write_frames(encode_slices(data, offsets))
        self._add_lengths(np.diff(offsets))

    def write_frames(self, frames: BytesLike, lengths: Int64Array) -> None:
        """Write records that are already framed, such as those of another shard, unchanged.

        Args:
            frames: end to end; their checksums are not verified.
            lengths: int64, (count,): the sizes of the payloads.

        Raises:
            OptionError: the size of `frames` does not match the lengths.
        """
        self._check_open()
        expected = int(lengths.sum()) + FRAME_BYTES * len(lengths)
        if as_view(frames).nbytes != expected:
            raise OptionError(
                f"{option('frames')} has {as_view(frames).nbytes} bytes",
                option="frames",
                expected=f"{expected} bytes for {len(lengths)} records of these lengths",
            )
        self.write_piece(frames, lengths)

    def close(self) -> None:
        """Complete the file and give it its final name. May be called twice.

        Raises:
            OptionError: a file of that name was created meanwhile, and `overwrite` is false.
            FileAccessError: the disk is full, or the folder cannot be written.
        """
        if not self.is_open:
            return
        if self._overwrites or not self.location.store.is_remote:  # numbers of an earlier file
            index_locations(self.location, suffix=".columns")[0].delete()
        self.publish()
        self.location.store.sync(self.location.parent.key)
        if self.size_bytes >= KEEP_FROM_BYTES:
            save_index(self.location, self._index(), is_own=True)

    def seal(self) -> None:
        """Write buffered records and sync; the file keeps its temporary name."""
        if self._is_sealed:
            return
        self._check_open()
        self._flush()
        with accessing(self.location, "write"):
            self._records.finish()
        self._sealed = Location(self.location.store, self._file.writer.seal())
        self._is_sealed = True

    def written_blocks(self) -> Iterator[RecordBlock]:
        """Seal, and read the file back with every checksum."""
        self.seal()
        if self._sealed.store.is_remote:
            self._info = self._sealed.info()
        shard = Shard(self._sealed, "", compression=self.compression, listed=self._info)
        return shard.blocks()

    def publish(self) -> None:
        """Seal, and give the file its name."""
        self.seal()
        self._file.writer.publish()
        self.discard()

    def entry(self) -> ShardEntry:
        """Seal, and return the entry of the shard in a manifest."""
        self.seal()
        return ShardEntry(self.location.name, self.record_count, self.size_bytes, self.crc32c)

    def index_pieces(self) -> tuple[bytes | memoryview, ...]:
        """Seal, and return the content of the index file."""
        self.seal()
        info, self._info = self._info, None  # asked again if it was replaced meanwhile
        return index_pieces(self._sealed, self._index(), info, is_own=True)

    def write_piece(self, frames: BytesLike, lengths: Int64Array) -> None:
        """Write a piece of a stream of valid frames.

        Args:
            frames: continues where the last piece ended.
            lengths: int64, (count,): payload sizes of the frames that end in this piece.
        """
        self._check_open()
        self._flush()
        self._write_frames(frames)
        self._add_lengths(lengths)

    def discard(self) -> None:
        """Close the writer; remove the file unless it was published."""
        self.is_open = False
        with suppress(FileAccessError):
            self._file.writer.discard()

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
            self.close()
        except BaseException:
            self.discard()
            raise

    def __del__(self) -> None:
        if self.is_open:  # never closed, so the file may be incomplete
            self.discard()

    def _check_open(self) -> None:
        if not self.is_open or self._is_sealed:
            raise OptionError(f"{self.location} is closed, so no more records can be written")

    def _index(self) -> ShardIndex:
        return ShardIndex.from_lengths(np.asarray(self._lengths, np.int64), self.compression)

    def _add_lengths(self, lengths: Int64Array) -> None:
        self._lengths.frombytes(as_view(np.ascontiguousarray(lengths, np.int64).view(np.uint8)))

    def _flush(self) -> None:
        if self._used:
            self._write_frames(memoryview(self._frames)[: self._used])
            self._used = 0

    def _write_frames(self, frames: BytesLike) -> None:
        with accessing(self.location, "write"):
            self._records.write_frames(frames)


class _CountedFile:
    """A new file that counts its size and checksum."""

    def __init__(self, writer: ObjectWriter) -> None:
        self.writer = writer
        self.size_bytes = 0
        self.crc32c = 0

    def write(self, data: BytesLike) -> int:
        view = as_view(data)
        written = self.writer.write(view)
        self.size_bytes += written
        self.crc32c = crc32c(view, self.crc32c) if written else self.crc32c
        return written
