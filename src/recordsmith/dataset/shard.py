"""One shard, with sequential reading and random access through its index.

Sequential reading streams the file through a small buffer, compressed or not. Random access uses
the index (see `frames`) and verifies each record against it and its checksums.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.frames import (
    SMALL_BYTES,
    FrameRows,
    HeldFrames,
    OpenFrames,
    open_frames,
    walk,
)
from recordsmith.dataset.layers import LAYER_REMEDY, ShardEntry, join_blocks
from recordsmith.dataset.shard_index import (
    KEEP_FROM_BYTES,
    ShardIndex,
    cache_index,
    load_index,
    max_bytes,
    save_index,
    saved_record_count,
)
from recordsmith.format.wire import (
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
from recordsmith.format.wire.framing import describe_defect
from recordsmith.stores import ObjectInfo, ObjectReader, PlaceLike, as_location
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    MissingFileError,
    OptionError,
    accessing,
    located,
)
from recordsmith.support.threads import renew_in_children


class Shard:
    """One `.tfrecord` file, with the layers of its records. Thread-safe.

    Attributes:
        layers: the shards of its layers, whose records are read behind its own. Size, index and
            file are those of the shard alone.
        features: what a layer has, if this is a shard of one.
        is_held: whether a file over a network is read once, and kept in memory.
    """

    def __init__(
        self,
        location: PlaceLike,
        split: str,
        *,
        entry: ShardEntry | None = None,
        compression: Compression | None = None,
        keeps_index: bool = True,
        listed: ObjectInfo | None = None,
        may_have_index: bool = True,
        features: frozenset[str] = frozenset(),
    ) -> None:
        """
        Args:
            entry: the entry of the shard in a manifest.
            compression: the compression, if it is known.
            keeps_index: False for a temporary file, whose index is not saved.
            listed: size and version of the file, if its folder was listed just now. A file over a
                network is read in this version.
            may_have_index: False if its folder, over a network, has no folder for indexes.
        """
        self.location = as_location(location)
        self.is_remote = self.location.store.is_remote
        self.keeps_index = keeps_index
        self._listed_bytes = None if listed is None else listed.size_bytes
        self.may_have_index = may_have_index
        self._info = listed if self.is_remote and listed is not None and listed.version else None
        self.split = split
        self.entry = entry
        self.layers: tuple[Shard, ...] = ()
        self.features = features
        self.is_held = False
        # what is known without reading
        self.known_record_count = None if entry is None else entry.record_count
        self.known_compression = compression
        self.known_offset: tuple[int, int] | None = None
        self._reset()

    def _reset(self) -> None:
        self._index: ShardIndex | None = None
        self._frames: OpenFrames | None = None
        self._may_be_mapped = self._has_read_again = False
        self.renew_lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        """Replace the lock with a new, unlocked one."""
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the index, the open file and the lock."""
        not_pickled = ("_index", "_frames", "_may_be_mapped", "_lock")
        return {name: value for name, value in vars(self).items() if name not in not_pickled}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset()

    def __repr__(self) -> str:
        return f"Shard({str(self.location)!r}, split={self.split!r})"

    @property
    def size_bytes(self) -> int:
        """The size of the file; over a network, of the version that is read."""
        if not self.is_remote:
            return self.location.size()
        if self._info is None and self.entry is not None and not self.location.store.can_list:
            return self.entry.size_bytes
        return self.info().size_bytes

    def info(self) -> ObjectInfo:
        """Return size and version of the file; over a network, of the version that is read."""
        if not self.is_remote:
            return self.location.info()
        if self._info is None:
            info = self.location.info()
            if self.entry is not None and not self.location.store.can_list:
                self._compare_size(info.size_bytes)
            self._info = info
        return self._info

    def open_read(self) -> ObjectReader:
        """Open the file for reading; over a network, in the version of `info`."""
        with self._advising_to_open_again():
            return self.location.open_read(self.info() if self.is_remote else None)

    @contextmanager
    def _advising_to_open_again(self) -> Iterator[None]:
        try:
            yield
        except MissingFileError as error:
            if self.features:  # files of shards keep their names
                error.advise("If a job has changed the layers meanwhile, open the dataset again.")
            raise

    @property
    def compression(self) -> Compression:
        """none, gzip or zlib, detected from the first bytes."""
        if self.known_compression is None:
            self.known_compression = detect_compression(self.location.read(0, HEAD_BYTES))
        return self.known_compression

    def _detect_compression(self, file: ObjectReader) -> Compression:
        """Detect the compression, from a file that is then read in order."""
        if self.known_compression is None:
            self.known_compression = detect_compression(file.read_head(HEAD_BYTES))
        return self.known_compression

    def check_size(self) -> None:
        """Compare the size of the file with the manifest, and with the number of records."""
        if self.entry is None:
            return
        size = self.size_bytes if self._listed_bytes is None else self._listed_bytes
        self._listed_bytes = None
        self._compare_size(size)
        for layer in self.layers:
            layer.check_size()
        max_count = max_bytes(size, self.compression) // FRAME_BYTES
        if self.entry.record_count > max_count:
            raise CorruptDataError(
                Defect.RECORD_COUNT,
                f"the manifest has more records than fit into the {size} bytes of the file",
                found=f"{self.entry.record_count} records",
                expected=f"at most {max_count}",
                remedy="Fetch the manifest again, or open the shard by name.",
                path=self.location,
            )

    @property
    def has_listed_size(self) -> bool:
        return self.entry is not None and self._listed_bytes == self.entry.size_bytes

    def _compare_size(self, size: int) -> None:
        if self.entry is not None and size != self.entry.size_bytes:
            raise CorruptDataError(
                Defect.SHARD_SIZE,
                "the shard was changed after it was packed",
                found=f"{size} bytes",
                expected=f"{self.entry.size_bytes} bytes",
                remedy=LAYER_REMEDY
                if self.features
                else f"Copy or pack it again, or open only this file: {self.location}",
                path=self.location,
            )

    @property
    def record_count(self) -> int:
        """The number of records; builds the index if the number is unknown."""
        if self.known_record_count is None:
            count = None
            if self._index is None and self.keeps_index and not self.is_remote:
                count = saved_record_count(self.location)
                if count is None:  # there is no index to load
                    with self._lock:
                        if self._index is None:
                            self._index = self._build_index()
            self.known_record_count = self.index.record_count if count is None else count
        return self.known_record_count

    def assume_record_count(self, count: int | None) -> None:
        """Take a number of records as known, such as that of a shard that cannot be read."""
        self.known_record_count = count

    def assign_split(self, split: str) -> None:
        """Put the shard into another split."""
        self.split = split

    def portable(self, number: int = 0) -> Shard:
        """Return a copy that another process, in any folder, reads from this record on.

        It needs no index for that, if this shard has the index in memory.
        """
        other, index = copy(self), self._index
        other.location = self.location.absolute()
        other.layers = tuple(layer.portable(number) for layer in self.layers)
        if index is not None and number < index.record_count:
            other.known_offset = number, int(index.offsets[number])
        return other

    def alone(self) -> Shard:
        """Return the shard without its layers."""
        if not self.layers:
            return self
        other = copy(self)
        other.layers = ()
        return other

    def reading(self, keys: Iterable[str]) -> Shard:
        """Return the shard with only the files that have the values of some features."""
        left, layers = {*keys}, list[Shard]()
        for layer in reversed(self.layers):
            if left & layer.features:
                layers.insert(0, layer)
            left -= layer.features
        if not left and layers:
            first = layers.pop(0)
        elif len(layers) == len(self.layers):
            return self
        else:
            first = self
        other: Shard = copy(first)
        other._index, other.layers = first._index, tuple(layers)
        return other if layers or first is self else first

    def holding(self, key: str) -> Shard:
        """Return the file with the values of a feature: the last layer with it, or the shard."""
        having = (layer for layer in reversed(self.layers) if key in layer.features)
        return next(having, None) or self.alone()

    def _offset_of(self, number: int) -> int:
        if self.known_offset is not None and self.known_offset[0] == number:
            return self.known_offset[1]
        if number > self.index.record_count:
            raise self._count_error(self.index.record_count, number)
        return int(self.index.offsets[number])

    @property
    def is_prepared(self) -> bool:
        """Whether its index is in memory and, over a network, its version is known."""
        if not all(layer.is_prepared for layer in self.layers):
            return False
        return self._index is not None and not (self._info is None and self.is_remote)

    def prepare(self) -> None:
        """Read what random access needs: the index and, over a network, the version."""
        if self.is_remote:
            self.info()
        _ = self.index
        for layer in self.layers:
            layer.prepare()

    @property
    def index(self) -> ShardIndex:
        """The offsets of its records; built and saved on first use."""
        with self._lock:
            if self._index is None and self.is_held:
                lengths = self._held().lengths()
                if lengths is None and self._read_held_again():
                    lengths = self._held().lengths()
                if lengths is None:
                    for _ in self._own_blocks(0, None, check_payloads=False):
                        pass  # raises the specific error
                else:
                    self._index = ShardIndex.from_lengths(lengths, "none")
            if self._index is None and self.keeps_index:
                self._index = self._load_index()
            if self._index is None:
                self._index = self._build_index()
            return self._index

    def _load_index(self) -> ShardIndex | None:
        info = self.info() if self.is_remote else None
        saved = load_index(self.location, info, is_next_to_it=self.may_have_index)
        if saved is None:
            return None
        index, location = saved
        if info is not None and self.known_compression is None:
            self.known_compression = index.compression  # if it is wrong, records fail verification
        if index.compression != self.compression:
            return None
        # keep it where the shard is kept: the next process needs it, too
        if info is not None and self.location.store.keeps_reads and location.store.is_remote:
            cache_index(self.location, index, info)
        return index

    def blocks(
        self, start: int = 0, stop: int | None = None, *, check_payloads: bool = True
    ) -> Iterator[RecordBlock]:
        """Yield the records start:stop in order; block positions count from the shard's start.

        A defect is raised after all records before it. Without `stop`, reads to the end and
        compares the number of records with the manifest.
        """
        own = self._own_blocks(start, stop, check_payloads=check_payloads)
        if not self.layers:
            return own
        others = (shard.blocks(start, stop, check_payloads=check_payloads) for shard in self.layers)
        return join_blocks([own, *others])

    def _own_blocks(
        self, start: int, stop: int | None, *, check_payloads: bool
    ) -> Iterator[RecordBlock]:
        compression = self.known_compression
        skip_bytes = 0
        if start and self.compression == "none":
            skip_bytes = self._offset_of(start)
            compression = "none"
        position = start if skip_bytes else 0  # number of the first record to read
        seen = position
        is_held = self.is_held and (stop is None or isinstance(self._frames, HeldFrames))
        with (
            self._held().open() if is_held else self.open_read() as file,
            located(self.location, position, skip_bytes),
            accessing(self.location),
        ):
            if skip_bytes:
                file.seek(skip_bytes)
            elif isinstance(file, ObjectReader) and self.is_remote:
                compression = self._detect_compression(file)
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
        expected = self.known_record_count if stop is None else stop
        if expected is not None and (seen < expected or (stop is None and seen > expected)):
            raise self._count_error(seen, expected)

    def decompress(
        self,
        put: Callable[[RecordBlock], object],
        advance: Callable[[int], None] = lambda _: None,
    ) -> list[str]:
        """Pass all records to `put`, block by block; return notices.

        A compressed shard without its end mark is read to its end, as in TensorFlow.
        """
        notices: list[str] = []

        def collect(error: DataError) -> None:
            if error.defect is not Defect.TRUNCATED_COMPRESSION:
                raise error
            error.path = str(self.location)
            notices.append(str(error))

        seen = reported = 0
        with self.open_read() as file, located(self.location), accessing(self.location):
            for block in read_blocks(file, compression=self.compression, on_defect=collect):
                put(block)
                seen += len(block)
                place = file.tell()
                advance(place - reported)
                reported = place
        if self.known_record_count is not None and self.known_record_count != seen:
            raise self._count_error(seen, self.known_record_count)
        return notices

    def read(self, number: int) -> memoryview:
        """Read the payload of one record, as a read-only copy.

        Over a network, a record that fails verification is read again.
        """
        if self.layers:
            parts = [self._read_own(number), *(layer.read(number) for layer in self.layers)]
            return memoryview(b"".join(parts))
        return self._read_own(number)

    def _read_own(self, number: int) -> memoryview:
        self._check_plain()
        if self.is_remote:
            with suppress(DataError):
                return self._read_at(number)
            self._read_held_again()
        return self._read_at(number)

    def sizes(self, numbers: Int64Array) -> Int64Array:
        """The payload sizes of some records according to the indexes: int64, (count,)."""
        sizes = self.own_sizes(numbers)
        for layer in self.layers:
            sizes += layer.own_sizes(numbers)
        return sizes

    def own_sizes(self, numbers: Int64Array) -> Int64Array:
        """The sizes of some records without those of layers: int64, (count,)."""
        offsets = self._offsets_of(numbers)
        return offsets[numbers + 1] - offsets[numbers] - FRAME_BYTES

    def _offsets_of(self, numbers: Int64Array) -> Int64Array:
        """The offsets of all records, after a check that these numbers exist."""
        index = self.index
        if len(numbers) and int(numbers.max()) >= index.record_count:
            raise self._changed_error(int(numbers.max()))
        return index.offsets

    def frame_rows(self, numbers: Int64Array, places: Int64Array) -> FrameRows:
        """Return where records are according to the index, and their places in an output."""
        self._check_plain()
        offsets = self._offsets_of(numbers)
        return FrameRows(offsets[numbers], offsets[numbers + 1], places)

    def copy_again(
        self, number: int, size: int, place: int, out: npt.NDArray[np.uint8], *, whole: bool
    ) -> None:
        """Copy a record that failed verification to out[place:], if its size is as expected."""
        self._read_held_again()
        payload = self._read_at(number)
        if len(payload) != size:
            raise self._changed_error(number)
        copied = np.frombuffer(encode_record(payload) if whole else payload, np.uint8)
        out[place : place + len(copied)] = copied

    @property
    def maps_well(self) -> bool:
        """Whether random access is much faster with a memory map."""
        index = self.index
        return self.compression == "none" and bool(
            index.offsets[-1] <= index.record_count * SMALL_BYTES
        )

    def allow_map(self) -> None:
        """Allow mapping of the file until `close`."""
        with self._lock:
            if not self._may_be_mapped:
                self.close()
                self._may_be_mapped = True

    def keep_readable(self) -> DataError | None:
        """Keep only the records before the first break of the framing; return its defect.

        Of an intact shard, keeps all and returns None.
        """
        try:
            _ = self.index
        except DataError as error:
            lengths = self._readable_lengths()
            with self._lock:
                self._index = ShardIndex.from_lengths(lengths, self.known_compression or "none")
                self.known_record_count = self._index.record_count
            return error
        return None

    def _readable_lengths(self) -> Int64Array:
        with self.open_read() as file, accessing(self.location):
            if self._detect_compression(file) == "none":
                return walk(file, is_remote=self.is_remote)[0]
            pieces = [np.empty(0, np.int64)]
            with suppress(DataError):
                pieces += (block.lengths for block in read_blocks(file, check_payloads=False))
            return np.concatenate(pieces)

    def close(self) -> None:
        """Close the file; it is opened again on demand."""
        with self._lock:
            self._frames = None
            self._may_be_mapped = False

    def _check_plain(self) -> None:
        if self.compression != "none":
            raise OptionError(
                f"{self.location} is compressed with {self.compression}, so its records can only "
                "be read in order",
                option="paths",
                value=str(self.location),
                remedy="Iterate over the dataset, or write it uncompressed for random access.",
            )

    def _changed_error(self, number: int) -> DataError:
        return CorruptDataError(
            Defect.SHARD_SIZE,
            f"record {number} is not where the index has it, because the file was changed",
            remedy="Open the dataset again. If the error stays, replace the index with "
            f"`recordsmith index {self.location} --overwrite`.",
            path=self.location,
        )

    def _count_error(self, found: int, expected: int) -> DataError:
        return CorruptDataError(
            Defect.RECORD_COUNT,
            "the shard was changed after it was packed or opened",
            found=f"{found} records",
            expected=f"{expected} records",
            remedy=LAYER_REMEDY
            if self.features
            else "Fetch it again, or open it again by name, without the manifest.",
            path=self.location,
        )

    def _read_at(self, number: int) -> memoryview:
        index = self.index
        if number >= index.record_count:
            raise self._changed_error(number)
        begin, end = int(index.offsets[number]), int(index.offsets[number + 1])
        view = self.open_frames().view(begin, end)
        if view is None:
            raise self._changed_error(number)
        frames = scan(view)
        if len(frames.starts) == 1 and frames.stop == len(view):
            return view[HEADER_BYTES : HEADER_BYTES + end - begin - FRAME_BYTES]
        if frames.defect is Defect.PAYLOAD_CRC and frames.stop == 0:
            length = int.from_bytes(view[:8], "little")
            if length + FRAME_BYTES == len(view):
                error = describe_defect(frames, view, record=number, offset=begin)
                error.path = str(self.location)
                raise error
        raise self._changed_error(number)

    def open_frames(self) -> OpenFrames:
        """Return what reads frames of the file at random."""
        with self._lock, self._advising_to_open_again():
            if self._frames is None:
                if self.is_held:
                    return self._held()
                info = self.info() if self.is_remote else None
                self._frames = open_frames(self.location, may_map=self._may_be_mapped, info=info)
            return self._frames

    def _held(self) -> HeldFrames:
        """Return the file in memory, which is read once."""
        with self._lock:
            if not isinstance(self._frames, HeldFrames):
                key, size, version = self.info()
                self._frames = HeldFrames(self.location.store.read(key, 0, size, version))
            return self._frames

    def _read_held_again(self) -> bool:
        """Forget a damaged file in memory, once; return whether it is read again."""
        with self._lock:
            if not isinstance(self._frames, HeldFrames) or self._has_read_again:
                return False
            self._frames, self._has_read_again = None, True
            return True

    def walk(self) -> ShardIndex:
        """Build the index of the current file without saving it.

        Reads only the headers of an uncompressed file, but all of a compressed one.
        """
        if self.size_bytes == 0:
            return ShardIndex(np.zeros(1, np.int64), "none")
        with self.open_read() as file, accessing(self.location):
            if self._detect_compression(file) == "none":
                lengths, is_whole = walk(file, is_remote=self.is_remote)
                if not is_whole:
                    with located(self.location):
                        file.seek(0)  # raises the specific error
                        for _ in read_blocks(file, check_payloads=False):
                            pass
                    raise self._count_error(len(lengths), len(lengths) + 1)
            else:
                with located(self.location):
                    pieces = [block.lengths for block in read_blocks(file)]
                lengths = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
        return ShardIndex.from_lengths(lengths, self.compression)

    def _build_index(self) -> ShardIndex:
        info = self.info() if self.keeps_index else None  # before it is read: it may change
        index = self.walk()
        if info is not None and info.size_bytes >= KEEP_FROM_BYTES:
            if self.is_remote:
                cache_index(self.location, index, info)
            else:
                save_index(self.location, index, info)
        return index
