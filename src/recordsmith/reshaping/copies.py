"""Writes the new shards of a plan, each completely or not at all.

Verified frames are written byte for byte. If images get tiles, records are rewritten in the blocks.
Shards with changed or compressed records are read back and verified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.building import Occurrences, ShardResult, complete_shard, survey_written
from recordsmith.dataset import LocatedBlock, ShardWriter
from recordsmith.errors import DataError
from recordsmith.example import SchemaSurvey
from recordsmith.reshaping.edits import Edits, RecordOptionError
from recordsmith.reshaping.inputs import InputRecords
from recordsmith.reshaping.plan import ReshardedShard
from recordsmith.reshaping.tiled_images import TiledImages
from recordsmith.stores import Location
from recordsmith.wire import Compression, RecordBlock
from recordsmith.work import Work

Spans: TypeAlias = Callable[[ReshardedShard], Iterable[range | Int64Array]]
"""Returns the positions of the records of a shard, in order."""


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
        """Write shards under temporary names; return a result per shard, in order."""

        def complete(shard: ReshardedShard) -> ShardResult:
            def write(writer: ShardWriter) -> ShardResult:
                result = self._write(shard, writer, work)
                if checks_inputs:
                    self.records.check_unchanged()
                return result

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
        records, bytes_in = self.records, 0
        spans = self.spans(shard)
        for located in (located for span in spans for located in records.blocks(span)):
            block = located.block
            frames = block.frames()
            try:
                if is_copied:
                    writer.write_frames(frames, block.lengths)
                else:
                    for payloads in self._rewritten(located, notes):
                        writer.write_slices(*payloads)
                if is_surveyed and is_as_checked:
                    survey.update(block.buffer, block.starts, block.lengths)
            except DataError as error:
                error.path, error.record, error.offset = records.place(located, error.record or 0)
                raise
            except RecordOptionError as refused:
                where, unfit = records.place(located, refused.number), copy(refused.error)
                unfit.problem = f"{where.path}, record {where.number}: {unfit.problem}"
                raise unfit from None
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
        self, located: LocatedBlock, notes: dict[str, Occurrences]
    ) -> Iterator[tuple[memoryview, Int64Array]]:
        """Yield the payloads of a block with edits and tiles, and note changes of images."""
        if not self.tiles:
            assert self.edits is not None
            yield from self.edits.rewrite(located.block)
            return
        first = 0

        def note(change: str, number: int) -> None:
            location = self.records.place(located, first + number)
            where = f"{location.path}, record {location.number}"
            notes.setdefault(change, Occurrences()).add(where)

        tiled = TiledImages(note)
        for payloads in self._edited(located.block):
            yield from tiled.rewrite(*payloads)
            first += len(payloads[1])

    def _edited(self, block: RecordBlock) -> Iterator[tuple[BytesLike, Int64Array, Int64Array]]:
        """Yield the payloads of a block as (buffer, starts, lengths) in pieces, with edits."""
        if self.edits is None:
            yield block.buffer, block.starts, block.lengths
        else:
            for data, offsets in self.edits.rewrite(block):
                yield data, offsets[:-1], np.diff(offsets)
