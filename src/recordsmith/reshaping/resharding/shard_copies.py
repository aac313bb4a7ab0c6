"""Write the new shards of a plan, each completely or not at all.

Consecutive records are read in blocks, verified and written byte for byte; others are gathered,
many at a time. If images get tiles, records are rewritten in the blocks. Shards with changed or
compressed records are read back and verified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.building import Occurrences, ShardResult, complete_shard, survey_written
from recordsmith.dataset import RecordLocation, SelectedRecords, ShardWriter, joined_shards
from recordsmith.errors import DataError, OptionError
from recordsmith.example import SchemaSurvey
from recordsmith.reshaping.editing.edits import Edits, RecordOptionError
from recordsmith.reshaping.inputs.input_records import InputRecords
from recordsmith.reshaping.resharding.record_selection import Pool
from recordsmith.reshaping.resharding.reshard_plan import ReshardedShard, ReshardPlan
from recordsmith.reshaping.resharding.tiled_images import TiledImages
from recordsmith.stores import Location
from recordsmith.wire import FRAME_BYTES, HEADER_BYTES, Compression, RecordBlock
from recordsmith.work import Work

_POSITIONS = 1 << 16  # per lookup
_READ_BYTES = 4 << 20  # per read of scattered records in one file
_SCATTERED_BYTES = 16 << 20  # in many files, which may have to be opened


class Consecutive(NamedTuple):
    """The records start:stop of one input."""

    number: int
    start: int
    stop: int


class Scattered(NamedTuple):
    """Some records of one input, or of all.

    number: of the input; None: positions among the records of all inputs.
    positions: int64, (count,).
    """

    number: int | None
    positions: Int64Array


class _Piece(NamedTuple):
    """Some records; `place` returns the origin of a record of the block."""

    block: RecordBlock
    place: Callable[[int], RecordLocation]


class ShardCopies:
    """Writes new shards."""

    def __init__(
        self,
        folder: Location,
        fingerprint: str,
        compression: Compression,
        records: InputRecords,
        spans: Callable[[ReshardedShard], Iterable[Consecutive | Scattered]],
        work: Work,
        *,
        versions: str,
        surveyed: Collection[str],
        edits: Edits | None = None,
        tiles: bool = False,
    ) -> None:
        """
        Args:
            spans: returns where the records of a shard are, in order.
            versions: a hash of the versions of the inputs.
            surveyed: the splits whose schemas are not known yet.
            tiles: whether to divide JPEGs into tiles.
        """
        self._folder = folder
        self._fingerprint = fingerprint
        self._compression = compression
        self._records = records
        self._spans = spans
        self._versions = versions
        self._work = work
        self._surveyed = surveyed
        self._edits = edits
        self._tiles = tiles

    def run(
        self,
        shards: Sequence[ReshardedShard],
        *,
        trusting: bool = True,
        checks_inputs: bool = False,
    ) -> list[ShardResult]:
        """Write shards under temporary names.

        Args:
            trusting: whether to keep complete shards of an earlier run.
            checks_inputs: whether to check the inputs also before a shard is noted as complete. A
                worker may see other inputs than the job, which a rerun cannot notice.

        Returns:
            A result per shard, in order.

        Raises:
            CorruptDataError: an input is damaged, or was modified during the job.
            OptionError: an edit does not fit a record.
            FileAccessError: a file cannot be read or written.
        """

        def write(shard: ReshardedShard, writer: ShardWriter) -> tuple[ShardResult, str]:
            result = self._write(shard, writer)
            if checks_inputs:
                self._records.check_unchanged()
            return result, self._versions

        results = self._work.each(lambda shard: self._complete(shard, write, trusting), shards)
        self._records.check_unchanged()
        return results

    def _complete(
        self,
        shard: ReshardedShard,
        write: Callable[[ReshardedShard, ShardWriter], tuple[ShardResult, str]],
        trusting: bool,
    ) -> ShardResult:
        """Write one shard under its temporary name, unless it is complete."""
        result, is_new = complete_shard(
            self._folder,
            shard.file,
            self._compression,
            lambda writer: write(shard, writer),
            fingerprint=self._fingerprint,
            versions=lambda: self._versions,
            trusting=trusting,
        )
        if not is_new:
            self._work.advance(result.bytes_in)
        return result

    def _write(self, shard: ReshardedShard, writer: ShardWriter) -> ShardResult:
        """Write the records. The schema of the result is empty if not needed."""
        survey = SchemaSurvey()
        notes: dict[str, Occurrences] = {}
        is_copied = self._edits is None and not self._tiles
        is_as_checked = is_copied and self._compression == "none"
        is_surveyed = shard.split in self._surveyed and is_as_checked
        bytes_in = 0
        for piece in self._pieces(shard):
            block = piece.block
            frames = block.frames()
            try:
                if is_copied:
                    writer.write_frames(frames, block.lengths)
                else:
                    for payloads in self._rewritten(piece, notes):
                        writer.write_slices(*payloads)
                if is_surveyed:
                    survey.update(block.buffer, block.starts, block.lengths)
            except DataError as error:
                error.path, error.record, error.offset = piece.place(error.record or 0)
                raise
            except RecordOptionError as refused:
                raise _located(refused, piece.place(refused.number)) from None
            bytes_in += len(frames)
            self._work.advance(len(frames))
        if is_as_checked:
            writer.seal()
            schema = survey.finish()
        else:
            schema = survey_written(writer)
            if shard.split not in self._surveyed:
                schema = survey.finish()
        return ShardResult.from_writer(writer, schema, bytes_in, notes=notes)

    def _rewritten(
        self, piece: _Piece, notes: dict[str, Occurrences]
    ) -> Iterator[tuple[memoryview, Int64Array]]:
        """Yield the payloads of a block with edits and tiles, and note changes of images."""
        if not self._tiles:
            assert self._edits is not None
            yield from self._edits.rewrite(piece.block)
            return
        first = 0

        def note(change: str, number: int) -> None:
            location = piece.place(first + number)
            where = f"{location.path}, record {location.number}"
            notes.setdefault(change, Occurrences()).add(where)

        tiled = TiledImages(note)
        for payloads in self._edited(piece.block):
            yield from tiled.rewrite(*payloads)
            first += len(payloads[1])

    def _edited(self, block: RecordBlock) -> Iterator[tuple[BytesLike, Int64Array, Int64Array]]:
        """Yield the payloads of a block as (buffer, starts, lengths) in pieces, with edits."""
        if self._edits is None:
            yield block.buffer, block.starts, block.lengths
        else:
            for data, offsets in self._edits.rewrite(block):
                yield data, offsets[:-1], np.diff(offsets)

    def _pieces(self, shard: ReshardedShard) -> Iterator[_Piece]:
        records = self._records
        for span in self._spans(shard):
            if isinstance(span, Consecutive):
                yield from _consecutive(records, *span)
            elif span.number is None:
                everything = records.everything()
                yield from _gathered(records, everything, span.positions, _SCATTERED_BYTES)
            else:
                dataset = joined_shards((records.shard(span.number),))
                yield from _gathered(records, dataset, span.positions, _READ_BYTES)


def _located(refused: RecordOptionError, where: RecordLocation) -> OptionError:
    """Return the error of an edit with the place of the record."""
    error = copy(refused.error)
    error.problem = f"{where.path}, record {where.number}: {error.problem}"
    return error


def _consecutive(records: InputRecords, number: int, start: int, stop: int) -> Iterator[_Piece]:
    """Yield the records start:stop of an input in blocks.

    Raises:
        CorruptDataError: a record is damaged, or the file has too few or too many.
    """
    path = str(records.location(number))
    is_to_end = stop == records.counts[number]
    seen = start
    for block in records.shard(number).blocks(start, None if is_to_end else stop):
        seen = block.position + len(block)

        def place(at: int, block: RecordBlock = block) -> RecordLocation:
            offset = block.offset + int(block.starts[at]) - HEADER_BYTES
            return RecordLocation(path, block.position + at, offset)

        yield _Piece(block, place)
    if seen != stop:
        raise records.count_error(number, seen)


class PlannedSpans:
    """Where the records of each shard of a plan are."""

    def __init__(self, plan: ReshardPlan, records: InputRecords) -> None:
        self._plan = plan
        # random orders need the positions of all records
        self._positions = {
            split: _Positions(records, pool)
            for split, pool in plan.pools.items()
            if plan.orders[split].permutation is not None
        }

    def of(self, shard: ReshardedShard) -> Iterator[Consecutive | Scattered]:
        """Yield them in the order of the shard."""
        positions = self._positions.get(shard.split)
        if positions is not None:
            order = self._plan.orders[shard.split]
            for start in range(shard.start, shard.stop, _POSITIONS):
                ranks = order.ranks(start, min(start + _POSITIONS, shard.stop))
                yield Scattered(None, positions.of(ranks))
            return
        pool = self._plan.pools[shard.split]
        first = int(np.searchsorted(pool.starts, shard.start, side="right")) - 1
        for at in range(first, len(pool.inputs)):
            low, high = int(pool.starts[at]), int(pool.starts[at + 1])
            start, stop = max(low, shard.start) - low, min(high, shard.stop) - low
            if low >= shard.stop:
                return
            if start < stop and pool.has_all_records_at(at):
                yield Consecutive(pool.inputs[at], start, stop)
            elif start < stop:
                numbers = pool.numbers(at)[start:stop]
                for begin in range(0, len(numbers), _POSITIONS):
                    yield Scattered(pool.inputs[at], numbers[begin : begin + _POSITIONS])


class _Positions:
    """Positions of the records of a pool among those of all inputs."""

    def __init__(self, records: InputRecords, pool: Pool) -> None:
        firsts = np.cumsum([0, *records.counts[:-1]])[list(pool.inputs)]
        self._starts = pool.starts
        self._shifts = firsts - pool.starts[:-1]
        self._chosen: Int64Array | None = None  # by rank, if the pool is not whole
        if not pool.has_all_records:
            self._chosen = np.concatenate(
                [pool.numbers(at) + first for at, first in enumerate(firsts.tolist())]
            )

    def of(self, ranks: Int64Array) -> Int64Array:
        """Return the positions of ranks, int64."""
        if self._chosen is not None:
            return self._chosen[ranks]
        at = np.searchsorted(self._starts, ranks, side="right") - 1
        return ranks + self._shifts[at]


def _gathered(
    records: InputRecords, dataset: SelectedRecords, positions: Int64Array, read_bytes: int
) -> Iterator[_Piece]:
    """Yield scattered records, about `read_bytes` at a time."""
    stops = np.cumsum(dataset.record_sizes(positions) + FRAME_BYTES)
    begin = 0
    while begin < len(positions):
        before = int(stops[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(stops, before + read_bytes, side="right")))
        frames = dataset.read_frames(positions[begin:end])
        offsets = frames.offsets

        def place(at: int, begin: int = begin) -> RecordLocation:
            location = dataset.locate_record(int(positions[begin + at]))
            return location._replace(path=records.input_path(location.path))

        lengths = np.diff(offsets) - FRAME_BYTES
        yield _Piece(
            RecordBlock(as_view(frames.buffer), offsets[:-1] + HEADER_BYTES, lengths, 0, 0), place
        )
        begin = end
