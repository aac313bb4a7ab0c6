"""The records of what is viewed: read at any position, at once, while they are still counted.

A viewer opens any files: shards whose records are not counted, compressed ones, damaged ones. The
records of the shards that are counted so far have positions, counted from 0 in the order of the
files, as in `recordsmith head --at`.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from msgspec.structs import replace

from recordsmith.dataset import (
    Dataset,
    Faults,
    Paths,
    SelectedRecords,
    Shard,
    View,
    dataset_of,
    joined_shards,
    kept_values,
    open_around_defects,
    reading_threads,
    records_of,
)
from recordsmith.format.example import RaggedArray, Schema, SchemaSurvey
from recordsmith.format.wire import FRAME_BYTES, RecordBlock
from recordsmith.image import reserve_memory
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import (
    DataError,
    Defect,
    FileAccessError,
    OptionError,
    RecordsmithError,
)
from recordsmith.support.work import WorkerPool
from recordsmith.viewing.compressed_stream import CompressedStream, Payload

Columns: TypeAlias = Mapping[str, RaggedArray]
"""Features of some records, by name."""

_FIRST_COUNT = 256  # records that are read before a file is counted
_FIRST_BYTES = 16 << 20
_WAIT_SECONDS = 0.05  # for the count of the first file, before its first records are read
_SURVEYED = 64
_KEPT_ROWS = 1 << 18  # of columns, at a time
_OPEN_STREAMS = 4  # of compressed shards
_MAX_DEFECTS = 100
_GIVEN_WAY = 20  # hundredths of a second, at each step
_FIRST_SECONDS = 1.0  # in which a page asks for its first screen
_MAX_RESUMED = 100  # after damaged records in a shard; more are not verified
_LARGE_BYTES = 16 << 20  # of a record that is read alone, in memory that all threads share
_TOGETHER_BYTES = 64 << 20  # of records that are read at once
_COPIES = 3  # of a record: as it is read, its values, and what is made of them


class ViewedRecords:
    """The records of files or of a Dataset. Thread-safe."""

    def __init__(
        self,
        paths_or_dataset: Paths | Dataset,
        split: str | None = None,
        only: Sequence[int] | None = None,
    ) -> None:
        """
        `only` are the positions of the records that views have; None for all.

        Raises:
            FileAccessError, OptionError: as in `recordsmith.open`.
            CorruptDataError: no record can be read.
        """
        self.defects: list[RecordsmithError] = []
        if isinstance(paths_or_dataset, Dataset) or split is not None:
            dataset = dataset_of(paths_or_dataset, split)
        else:
            dataset, defects = open_around_defects(paths_or_dataset)
            self.defects += defects[:_MAX_DEFECTS]
        self.view: View = dataset.view
        self.shards = records_of(dataset).all_shards
        self._changed = threading.Condition()
        self._urgent = 0  # how many readers a user waits for
        self._first_until = time.monotonic() + _FIRST_SECONDS
        self._is_closed = False
        self._first: list[bytes] = []
        self._stream_of = lru_cache(_OPEN_STREAMS)(CompressedStream)
        self._broken: dict[Shard, RecordsmithError] = {}
        self._only = None if only is None else np.unique(np.array(only, np.int64))
        self._numbers: dict[str, int] | None = None  # of the shards, by their paths
        self._starts = [0]
        self._prefix: tuple[int, SelectedRecords] | None = None
        self._is_selection = not records_of(dataset).has_all
        counts = [shard.known_record_count for shard in self.shards]
        if self._is_selection:
            _ = len(records_of(dataset))
            self._starts = []
        elif None not in counts:
            self._starts = [0, *itertools.accumulate(map(int, counts))]  # type: ignore[arg-type]
        else:
            threading.Thread(target=self._count, name="counting", daemon=True).start()
            self._read_first()
        self.schema = self._survey()

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Let counting and scanning wait a little while the block runs: a user waits for it."""
        with self._changed:
            self._urgent += 1
        try:
            yield
        finally:
            with self._changed:
                self._urgent -= 1
            self._first_until = 0.0

    def _give_way(self) -> None:
        for _ in range(_GIVEN_WAY):
            if not self._urgent and time.monotonic() > self._first_until:
                return
            time.sleep(0.01)

    def close(self) -> None:
        self._is_closed = True

    # -- counting ------------------------------------------------------------------------------

    @property
    def is_counting(self) -> bool:
        """Whether the records of some shards are not counted yet."""
        return not self._is_selection and len(self._starts) <= len(self.shards)

    def __len__(self) -> int:
        """The number of records that are counted so far."""
        if self._is_selection:
            return len(self.view.records)
        return max(self._starts[-1], len(self._first) if len(self._starts) == 1 else 0)

    @property
    def records(self) -> SelectedRecords:
        """The records of the shards that are counted so far."""
        if self._is_selection or not self.is_counting:
            return self.view.records
        count = len(self._starts) - 1
        prefix = self._prefix
        if prefix is None or prefix[0] != count:
            self._prefix = prefix = count, joined_shards(self.shards[:count])
        return prefix[1]

    def positions(self, split: str | None = None) -> range | Int64Array:
        """Return the positions of a split, or of all records, that are counted so far.

        Raises:
            OptionError: the split does not exist.
        """
        if self._only is None:
            return self._positions(split)
        positions = self._positions(split)
        return self._only[np.isin(self._only, np.asarray(positions, np.int64))]

    def _positions(self, split: str | None) -> range | Int64Array:
        if not split:
            return range(len(self))
        if split not in self.view.split_names:
            raise OptionError(
                option="split",
                value=split,
                expected=f"one of {', '.join(self.view.split_names) or 'no splits'}",
            )
        if self._is_selection:
            return np.flatnonzero(self.view.records.are_in_split(split))
        starts = self._starts
        if len(starts) == 1:
            return range(len(self) if self.shards[0].split == split else 0)
        runs = [
            range(starts[number], starts[number + 1])
            for number, shard in enumerate(self.shards[: len(starts) - 1])
            if shard.split == split
        ]
        if not runs:
            return range(0)
        if all(run.stop == after.start for run, after in itertools.pairwise(runs)):
            return range(runs[0].start, runs[-1].stop)
        return np.concatenate([np.arange(run.start, run.stop, dtype=np.int64) for run in runs])

    def _count(self) -> None:
        workers = WorkerPool(reading_threads(None, self.shards), None)
        counts = workers.in_order(self._count_shard, self.shards, ahead=2 * workers.threads)
        with closing(counts):
            for count in counts:
                with self._changed:
                    self._starts.append(self._starts[-1] + count)
                    self._changed.notify_all()
                if self._is_closed:
                    return

    def _count_shard(self, shard: Shard) -> int:
        if self._starts[-1] >= _FIRST_COUNT:
            self._give_way()
        if self._is_closed:
            return 0
        try:
            return shard.record_count
        except FileAccessError as error:
            self._note(shard, error)
            shard.assume_record_count(0)
            return 0
        except DataError as error:
            with suppress(RecordsmithError):
                shard.keep_readable()
            shard.assume_record_count(shard.known_record_count or 0)
            self._note(shard, error)
            return shard.known_record_count or 0

    def _note(self, shard: Shard, error: RecordsmithError) -> None:
        with self._changed:
            if shard not in self._broken:
                self._broken[shard] = error
                if len(self.defects) < _MAX_DEFECTS:
                    self.defects.append(error)

    def wait_counted(self, shard_count: int, seconds: float | None = None) -> bool:
        """Wait until so many shards are counted, and return whether they are."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._is_closed or len(self._starts) > shard_count, seconds
            )

    def _read_first(self) -> None:
        """Read the first records, unless the first shard is counted very soon."""
        if self.wait_counted(1, _WAIT_SECONDS):
            return
        first: list[bytes] = []
        size = 0
        with suppress(DataError, FileAccessError):
            records = (record for block in self.shards[0].blocks() for record in block.records())
            for record in itertools.islice(records, _FIRST_COUNT):
                first.append(record)
                size += len(record)
                if size > _FIRST_BYTES:
                    break
        self._first = first
        if not first:  # damaged, or empty: the count is all that is known
            self.wait_counted(1)

    def _survey(self) -> Schema:
        known = self.view.schema or self.view.outer_schema
        if known is not None and known.features and known.is_complete:
            return known
        while not len(self) and self.is_counting:
            self.wait_counted(len(self._starts))
        if not len(self) and self.defects and not self._is_selection:
            raise self.defects[0]

        def payloads() -> Iterator[Payload]:
            for chunk in self.chunks(range(min(_SURVEYED, len(self)))):
                with self.memory(chunk):
                    yield from self.read(chunk)

        return survey(payloads())

    # -- at any position -----------------------------------------------------------------------

    def chunks(self, positions: Sequence[int], counts: Sequence[int] = (32,)) -> list[list[int]]:
        """Cut positions into what is read together: so many, the last number again and again.

        Large records are alone.
        """
        chunks: list[list[int]] = [[]]
        left = _TOGETHER_BYTES
        for position, size in zip(positions, self._sizes(positions), strict=True):
            most = counts[min(len(chunks), len(counts)) - 1]
            if chunks[-1] and (size > min(left, _LARGE_BYTES) or len(chunks[-1]) == most):
                chunks.append([])
                left = _TOGETHER_BYTES
            chunks[-1].append(position)
            left = left - size if size <= _LARGE_BYTES else 0
        return chunks if chunks[-1] else []

    def memory(self, positions: Sequence[int]) -> AbstractContextManager[None]:
        """Wait for the memory of large records, which all threads share, and hold it."""
        large = [size for size in self._sizes(positions) if size > _LARGE_BYTES]
        return reserve_memory(_COPIES * sum(large))

    def is_large(self, positions: Sequence[int]) -> bool:
        """Whether records are read in memory that all threads share."""
        return max(self._sizes(positions), default=0) > _LARGE_BYTES

    def _sizes(self, positions: Sequence[int]) -> list[int]:
        """Return the bytes of records; 0 if they are not known, as those of compressed shards."""
        sizes = np.zeros(len(positions), np.int64)
        if len(self._starts) != 1 and len(positions):
            places = np.asarray(positions, np.int64)
            for shard, members, numbers, _ in self.records.by_shard(places):
                with suppress(RecordsmithError, IndexError):
                    if shard.compression == "none":
                        sizes[members] = shard.sizes(numbers) + FRAME_BYTES
        return sizes.tolist()

    def read(self, positions: Sequence[int] | Int64Array) -> list[Payload]:
        """Read the records at some positions; each that cannot be read is the error."""
        first = self._first
        if len(self._starts) == 1 and len(positions) and max(positions) < len(first):
            return [first[position] for position in positions]
        places = np.asarray(positions, np.int64)
        records = self.records
        result: list[Payload] = [b""] * len(places)
        plain: list[int] = []
        for shard, members, numbers, _ in records.by_shard(places):
            rows = np.arange(len(places))[members].tolist()
            try:
                is_plain = shard.compression == "none"
            except RecordsmithError as error:
                for row in rows:
                    result[row] = error
                continue
            if is_plain:
                plain += rows
                continue
            payloads = self._stream_of(shard).read(numbers.tolist())
            for row, payload in zip(rows, payloads, strict=True):
                result[row] = payload
        if plain:
            for row, payload in zip(plain, self._read_plain(records, places[plain]), strict=True):
                result[row] = payload
        return result

    def _read_plain(self, records: SelectedRecords, positions: Int64Array) -> list[Payload]:
        faults: Faults = {}
        try:
            read = records.read_records(positions, faults=faults)
            return [faults.get(row) or read[row] for row in range(len(positions))]
        except (DataError, FileAccessError) as error:
            if len(positions) == 1:
                return [self._read_broken(records, int(positions[0]), error)]
        # an index cannot be built, or a file cannot be read: the others can
        return [
            payload
            for row in range(len(positions))
            for payload in self._read_plain(records, positions[row : row + 1])
        ]

    def _read_broken(
        self, records: SelectedRecords, position: int, error: RecordsmithError
    ) -> Payload:
        """Read a record of a shard whose framing is broken, if it is before the break."""
        shard, _, numbers, _ = records.by_shard([position])[0]
        if isinstance(error, DataError) and shard not in self._broken:
            count = shard.known_record_count
            with suppress(RecordsmithError):
                for file in (shard, *shard.layers):
                    broken = file.keep_readable()
                    if broken is not None:
                        self._note(shard, broken)
            shard.assume_record_count(count)  # the positions of the others stay
        defect = self._broken.get(shard)
        if defect is None:
            return error
        try:
            if numbers[0] < shard.index.record_count:
                return bytes(shard.read(int(numbers[0])))
        except RecordsmithError as unreadable:
            return unreadable
        return defect

    def locate(self, position: int) -> tuple[Shard, int, int | None]:
        """Return the shard of a record, its number there, and its offset if that is known."""
        if len(self._starts) == 1:
            return self.shards[0], position, None
        group = self.records.by_shard([position])[0]
        number = int(group.numbers[0])
        with suppress(RecordsmithError, IndexError):
            return group.shard, number, int(group.shard.index.offsets[number])
        return group.shard, number, None

    def position_of(self, path: str, number: int) -> int | None:
        """Return the position of a record by its file; None if it is not among these."""
        if self._numbers is None:
            self._numbers = {str(shard.location): k for k, shard in enumerate(self.shards)}
        shard = self._numbers.get(path)
        starts = self._starts
        if shard is None or shard + 1 >= len(starts) or number >= starts[shard + 1] - starts[shard]:
            return None
        return starts[shard] + number

    # -- in order ------------------------------------------------------------------------------

    def blocks(
        self, split: str | None = None, keys: Collection[str] = ()
    ) -> Iterator[tuple[Int64Array, RecordBlock | Columns]]:
        """Yield the records of views in blocks, each with their positions.

        Waits for shards that are not counted yet. Damaged records are skipped. Where the values of
        all features `keys` are kept next to a shard, yields these, and reads no record.

        Raises:
            OptionError: a selection of records in a compressed shard is not in order.
        """
        chosen = self._selected_blocks(split) if self._is_selection else None
        for positions, block in chosen or self._file_blocks(split, keys):
            if self._urgent:
                time.sleep(0.005)
            if self._only is None:
                yield positions, block
                del block
                continue
            rows = np.flatnonzero(np.isin(positions, self._only))
            if isinstance(block, RecordBlock):
                yield positions[rows], rows_of(block, rows)
            else:
                yield positions[rows], {key: column[rows] for key, column in block.items()}
            del block

    def kept_keys(self, split: str | None, keys: Collection[str]) -> set[str]:
        """Return the features whose values are kept next to the first shard."""
        for number, shard in enumerate(() if self._is_selection else self.shards):
            if not split or shard.split == split:
                self.wait_counted(number + 1)
                return {*kept_values(shard, keys)}
        return set()

    def _file_blocks(
        self, split: str | None, keys: Collection[str]
    ) -> Iterator[tuple[Int64Array, RecordBlock | Columns]]:
        are_kept = 0 < len(keys) == len(self.kept_keys(split, keys))
        for number, shard in enumerate(self.shards):
            if split and shard.split != split:
                continue
            self.wait_counted(number + 1)
            if self._is_closed:
                return
            start, stop = self._starts[number : number + 2]
            kept = kept_values(shard, keys) if are_kept else {}
            if are_kept and len(kept) == len(keys):
                for first in range(start, stop, _KEPT_ROWS):
                    rows = slice(first - start, first - start + _KEPT_ROWS)
                    positions = np.arange(first, min(stop, first + _KEPT_ROWS))
                    yield positions, {key: column.rows(rows) for key, column in kept.items()}
                continue
            for block in self._shard_blocks(shard):
                first = start + block.position
                yield np.arange(first, first + len(block)), block
                del block

    def _selected_blocks(self, split: str | None) -> Iterator[tuple[Int64Array, RecordBlock]]:
        records = self.view.records
        chosen = np.arange(len(records))
        if split:
            chosen = np.flatnonzero(records.are_in_split(split))
            records = records.pick(chosen)
        start = 0
        for selected in records.blocks():
            yield chosen[start : start + len(selected.block)], selected.block
            start += len(selected.block)

    def _shard_blocks(self, shard: Shard) -> Iterator[RecordBlock]:
        for start, stop, size in _runs(shard, shard.known_record_count or 0):
            with reserve_memory(_COPIES * size):
                yield from self._blocks_between(shard, start, stop)

    def _blocks_between(self, shard: Shard, start: int, stop: int) -> Iterator[RecordBlock]:
        resumed = 0
        while start < stop:
            try:
                for block in shard.blocks(start, stop, check_payloads=resumed < _MAX_RESUMED):
                    yield block
                    start = block.position + len(block)
                    del block  # its memory may be for another thread by now
                start = stop
            except FileAccessError:
                return
            except DataError as error:
                if shard.compression != "none":
                    return
                start += 1
                resumed += 1
                if error.defect is Defect.RECORD_COUNT or resumed > 2 * _MAX_RESUMED:
                    return  # the file was cut or replaced: no record is found there


def _runs(shard: Shard, count: int) -> Iterator[tuple[int, int, int]]:
    """Cut a shard into runs of records, and large ones alone: first, end, and bytes to reserve."""
    start = 0
    with suppress(RecordsmithError):
        if shard.size_bytes > _LARGE_BYTES or shard.compression != "none":
            sizes = shard.sizes(np.arange(count))
            if shard.compression != "none":  # read in order, by one thread at a time
                largest = int(sizes.max(initial=0))
                yield 0, count, largest if largest > _LARGE_BYTES else 0
                return
            for large in np.flatnonzero(sizes > _LARGE_BYTES).tolist():
                if start < large:
                    yield start, large, 0
                yield large, large + 1, int(sizes[large])
                start = large + 1
    yield start, count, 0


def rows_of(block: RecordBlock, rows: Any) -> RecordBlock:
    """Return some records of a block."""
    return replace(block, starts=block.starts[rows], lengths=block.lengths[rows])


def survey(payloads: Iterable[Payload]) -> Schema:
    """Return the schema of some records, without those that cannot be read or parsed."""
    builder = SchemaSurvey()
    for payload in payloads:
        if isinstance(payload, bytes):
            with suppress(DataError):
                start, length = np.zeros(1, np.int64), np.array([len(payload)])
                SchemaSurvey().update(payload, start, length)  # raises before damage is counted
                builder.update(payload, start, length)
    return builder.finish()
