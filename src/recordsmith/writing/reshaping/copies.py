"""Writes the new shards of a plan, each completely or not at all, in threads or as tasks.

Verified frames are written byte for byte. Shards with changed or compressed records are read back
and verified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from recordsmith.dataset import Manifest, ShardPlan, ShardWriter, is_valid_file_name
from recordsmith.format.example import SchemaSurvey
from recordsmith.format.wire import Compression
from recordsmith.stores import Location, as_folder
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import DataError, OptionError
from recordsmith.support.tasks import Engine, Task, run_on
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building.claims import claim
from recordsmith.writing.building.shards import (
    ShardResult,
    check_written,
    complete_shard,
    survey_written,
)
from recordsmith.writing.reshaping.edits import Edits, RecordOptionError
from recordsmith.writing.reshaping.inputs import InputRecords, check_unchanged

Spans: TypeAlias = Iterable[range | Int64Array]
"""The positions of the records of a shard, in order."""


@dataclass(frozen=True)
class CopyJob:
    """What is the same for all new shards of a job; it is pickled for tasks.

    versions: a hash of the versions of the inputs.
    surveyed: the splits whose schemas are not known yet.
    trusting: whether to keep complete shards of an earlier run.
    """

    fingerprint: str
    compression: Compression
    versions: str
    surveyed: Collection[str]
    edits: Edits | None = None
    trusting: bool = True

    def run(
        self,
        shards: Sequence[ShardPlan],
        spans: Callable[[ShardPlan], Spans],
        records: InputRecords,
        folder: Location,
        workers: WorkerPool,
        engine: Engine | None = None,
        earlier: Manifest | None = None,
    ) -> list[ShardResult]:
        """Write shards under temporary names; return a result per shard, in order.

        On an engine, `earlier` is the manifest of the dataset that is replaced.
        """

        def tasks() -> Iterator[Task]:
            for number, shard in enumerate(shards):
                inputs, size = _inputs_for_task(records, list(spans(shard)))
                content = {"job": self, "out": str(folder.absolute()), "shard": shard, **inputs}
                yield Task(_write_task, number, shard.file, size, content)

        if engine is None:
            results = workers.each(
                lambda shard: self.write_shard(shard, spans(shard), records, folder, workers),
                shards,
            )
        else:
            by_number = run_on(engine, tasks(), workers.advance)
            results = [by_number[number] for number in range(len(shards))]
            check_written(folder, results, earlier)
        check_unchanged(records.given, records.infos)
        return results

    def write_shard(
        self,
        shard: ShardPlan,
        spans: Spans,
        records: InputRecords,
        folder: Location,
        workers: WorkerPool,
        *,
        checks_inputs: bool = False,
    ) -> ShardResult:
        """Write a shard, unless an earlier run has completed it."""

        def write(writer: ShardWriter) -> ShardResult:
            is_surveyed = shard.split in self.surveyed
            result = self._write(spans, records, writer, workers, is_surveyed=is_surveyed)
            if checks_inputs:
                check_unchanged(records.given, records.infos)
            return result

        result, is_new = complete_shard(
            folder,
            shard.file,
            self.compression,
            write,
            fingerprint=self.fingerprint,
            versions=lambda: self.versions,
            trusting=self.trusting,
        )
        if not is_new:
            workers.advance(result.bytes_in)
        return result

    def _write(
        self,
        spans: Spans,
        records: InputRecords,
        writer: ShardWriter,
        workers: WorkerPool,
        *,
        is_surveyed: bool,
    ) -> ShardResult:
        """Write the records. The schema of the result is empty if not needed."""
        survey = SchemaSurvey()
        is_as_checked = self.edits is None and self.compression == "none"
        bytes_in = 0
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
                error.path, error.record, error.offset = records.locate(located, error.record or 0)
                raise
            except RecordOptionError as refused:
                where, unfit = records.locate(located, refused.number), copy(refused.error)
                unfit.problem = f"{where.path}, record {where.number}: {unfit.problem}"
                raise unfit from None
            bytes_in += len(frames)
            workers.advance(len(frames))
        schema = survey.finish()
        if is_as_checked:
            writer.seal()
        else:
            written = survey_written(writer)
            schema = written if is_surveyed else schema
        return ShardResult(writer.entry(), schema.packed(), bytes_in)


def _inputs_for_task(
    records: InputRecords, spans: Sequence[range | Int64Array]
) -> tuple[dict[str, Any], int]:
    """Return the inputs of a shard and the positions of its records in them, and their size."""
    counts = np.zeros(len(records), np.int64)  # of the records of each input
    for positions in spans:
        if isinstance(positions, range):
            counts[records.numbers_of(np.array(positions[:1]))] += len(positions)
        else:
            counts += np.bincount(records.numbers_of(positions), minlength=len(records))
    used = np.flatnonzero(counts)
    shifts = np.zeros(len(records), np.int64)
    shifts[used] = offsets_from_lengths(np.array(records.counts)[used])[:-1] - records.starts[used]
    moved: list[range | Int64Array] = []
    for positions in spans:
        if isinstance(positions, range):
            shift = int(shifts[records.numbers_of(np.array(positions[:1]))[0]])
            moved.append(range(positions.start + shift, positions.stop + shift))
        else:
            moved.append(positions + shifts[records.numbers_of(positions)])
    record_bytes = np.array(records.sizes) / np.maximum(1, records.counts)
    inputs = [records.to_task(number) for number in used.tolist()]
    return {"inputs": inputs, "spans": moved}, int((record_bytes * counts).sum())


def _write_task(content: dict[str, Any]) -> ShardResult:
    job: CopyJob = content["job"]
    shard: ShardPlan = content["shard"]
    if not is_valid_file_name(shard.file):
        raise OptionError(option="file", value=shard.file, expected="a name of a shard")
    folder = claim(as_folder(content["out"]), job.fingerprint, [shard.file])
    workers = WorkerPool(1, None)
    records = InputRecords.from_task(content["inputs"], workers)
    return job.write_shard(shard, content["spans"], records, folder, workers, checks_inputs=True)
