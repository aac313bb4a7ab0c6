"""Writes the new shards of a plan, each completely or not at all.

Consecutive records are read in blocks, verified and written byte for byte; others are gathered,
many at a time. If images get tiles, records are rewritten in the blocks. Shards with changed or
compressed records are read back and verified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.building import Occurrences, ShardResult, complete_shard, survey_written
from recordsmith.dataset import RecordLocation, SelectedRecords, ShardWriter, joined_shards
from recordsmith.errors import DataError
from recordsmith.example import SchemaSurvey
from recordsmith.reshaping.edits import Edits, RecordOptionError
from recordsmith.reshaping.inputs import InputRecords
from recordsmith.reshaping.plan import ReshardedShard, Span
from recordsmith.reshaping.tiled_images import TiledImages
from recordsmith.stores import Location
from recordsmith.wire import FRAME_BYTES, HEADER_BYTES, Compression, RecordBlock
from recordsmith.work import Work

_READ_BYTES = 4 << 20  # per read of scattered records in one file
_SCATTERED_BYTES = 16 << 20  # in many files, which may have to be opened

Spans: TypeAlias = Callable[[ReshardedShard], Iterable[Span]]
"""Returns where the records of a shard are, in order."""


class _Piece(NamedTuple):
    """Some records; `place` returns the origin of a record of the block."""

    block: RecordBlock
    place: Callable[[int], RecordLocation]


@dataclass(frozen=True)
class ShardCopies:
    """Writes new shards.

    versions: a hash of the versions of the inputs.
    surveyed: the splits whose schemas are not known yet.
    tiles: whether to divide JPEGs into tiles.
    trusting: whether to keep complete shards of an earlier run.
    """

    folder: Location
    fingerprint: str
    compression: Compression
    records: InputRecords
    spans: Spans
    versions: str
    surveyed: Collection[str]
    edits: Edits | None = None
    tiles: bool = False
    trusting: bool = True

    def run(
        self, shards: Sequence[ReshardedShard], work: Work, *, checks_inputs: bool = False
    ) -> list[ShardResult]:
        """Write shards under temporary names; return a result per shard, in order.

        Args:
            checks_inputs: whether to check the inputs also before a shard is noted as complete. A
                worker may see other inputs than the job, which a rerun cannot notice.
        """

        def complete(shard: ReshardedShard) -> ShardResult:
            def write(writer: ShardWriter) -> tuple[ShardResult, str]:
                result = self._write(shard, writer, work)
                if checks_inputs:
                    self.records.check_unchanged()
                return result, self.versions

            result, is_new = complete_shard(
                self.folder,
                shard.file,
                self.compression,
                write,
                fingerprint=self.fingerprint,
                versions=lambda: self.versions,
                trusting=self.trusting,
            )
            if not is_new:
                work.advance(result.bytes_in)
            return result

        results = work.each(complete, shards)
        self.records.check_unchanged()
        return results

    def _write(self, shard: ReshardedShard, writer: ShardWriter, work: Work) -> ShardResult:
        """Write the records. The schema of the result is empty if not needed."""
        survey = SchemaSurvey()
        notes: dict[str, Occurrences] = {}
        is_copied = self.edits is None and not self.tiles
        is_as_checked = is_copied and self.compression == "none"
        is_surveyed = shard.split in self.surveyed
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
                if is_surveyed and is_as_checked:
                    survey.update(block.buffer, block.starts, block.lengths)
            except DataError as error:
                error.path, error.record, error.offset = piece.place(error.record or 0)
                raise
            except RecordOptionError as refused:
                where = piece.place(refused.number)
                located = copy(refused.error)
                located.problem = f"{where.path}, record {where.number}: {located.problem}"
                raise located from None
            bytes_in += len(frames)
            work.advance(len(frames))
        schema = survey.finish()
        if is_as_checked:
            writer.seal()
        else:
            written = survey_written(writer)
            schema = written if is_surveyed else schema
        return ShardResult.from_writer(writer, schema, bytes_in, notes=notes)

    def _rewritten(
        self, piece: _Piece, notes: dict[str, Occurrences]
    ) -> Iterator[tuple[memoryview, Int64Array]]:
        """Yield the payloads of a block with edits and tiles, and note changes of images."""
        if not self.tiles:
            assert self.edits is not None
            yield from self.edits.rewrite(piece.block)
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
        if self.edits is None:
            yield block.buffer, block.starts, block.lengths
        else:
            for data, offsets in self.edits.rewrite(block):
                yield data, offsets[:-1], np.diff(offsets)

    def _pieces(self, shard: ReshardedShard) -> Iterator[_Piece]:
        records = self.records
        for number, positions in self.spans(shard):
            if isinstance(positions, range):
                assert number is not None
                yield from _consecutive(records, number, positions)
            elif number is None:
                yield from _gathered(records, records.everything(), positions, _SCATTERED_BYTES)
            else:
                of_input = joined_shards((records.shard(number),))
                yield from _gathered(records, of_input, positions, _READ_BYTES)


def _consecutive(records: InputRecords, number: int, numbers: range) -> Iterator[_Piece]:
    """Yield consecutive records of an input in blocks."""
    path = str(records.location(number))
    is_to_end = numbers.stop == records.counts[number]
    seen = numbers.start
    for block in records.shard(number).blocks(seen, None if is_to_end else numbers.stop):
        seen = block.position + len(block)

        def place(at: int, block: RecordBlock = block) -> RecordLocation:
            offset = block.offset + int(block.starts[at]) - HEADER_BYTES
            return RecordLocation(path, block.position + at, offset)

        yield _Piece(block, place)
    if seen != numbers.stop:
        raise records.count_error(number, seen)


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
