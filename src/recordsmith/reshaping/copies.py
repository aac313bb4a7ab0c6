"""Writes the new shards of a plan, each completely or not at all.

Verified frames are written byte for byte. Shards with changed or compressed records are read back
and verified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TypeAlias

from recordsmith.buffers import Int64Array
from recordsmith.building import ShardResult, complete_shard, survey_written
from recordsmith.dataset import ShardWriter
from recordsmith.errors import DataError
from recordsmith.example import SchemaSurvey
from recordsmith.reshaping.edits import Edits, RecordOptionError
from recordsmith.reshaping.inputs import InputRecords
from recordsmith.reshaping.plan import ReshardedShard
from recordsmith.stores import Location
from recordsmith.wire import Compression
from recordsmith.work import Work

Spans: TypeAlias = Callable[[ReshardedShard], Iterable[range | Int64Array]]
"""Returns the positions of the records of a shard, in order."""


@dataclass(frozen=True)
class ShardCopies:
    """Writes new shards.

    versions: a hash of the versions of the inputs.
    surveyed: the splits whose schemas are not known yet.
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
        is_as_checked = self.edits is None and self.compression == "none"
        is_surveyed = shard.split in self.surveyed
        records, bytes_in = self.records, 0
        spans = self.spans(shard)
        for located in (located for span in spans for located in records.blocks(span)):
            block = located.block
            frames = block.frames()
            try:
                if self.edits is None:
                    writer.write_frames(frames, block.lengths)
                else:
                    for payloads in self.edits.rewrite(block):
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
        return ShardResult.from_writer(writer, schema, bytes_in)
