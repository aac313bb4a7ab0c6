"""Writes the shards of a job in threads.

A shard is written under a temporary name, synced, read back with every checksum (uncompressed
copies of rows: their frames are verified as they are copied), and noted as complete. A shard that
an interrupted job completed is only verified. The bytes depend on the assignment only, not on
threads or earlier runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from typing import NamedTuple

import numpy as np

from recordsmith.dataset import ColumnSurvey, ShardPlan, ShardWriter
from recordsmith.format.example import SchemaSurvey, keys
from recordsmith.format.wire import FRAME_BYTES, HEADER_BYTES
from recordsmith.sources import (
    EncodedRows,
    Flaw,
    Sample,
    SampleReader,
    SamplesAhead,
    SampleTable,
    SampleToRead,
)
from recordsmith.stores import Location
from recordsmith.support.ahead import map_ahead
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import DataError, FileAccessError, SourceError
from recordsmith.support.problems import MAX_PROBLEMS
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building.shards import (
    Occurrences,
    ShardResult,
    add_notes,
    complete_shard,
    survey_written,
)
from recordsmith.writing.packing.pack_options import PackOptions, SampleEncoder
from recordsmith.writing.packing.shard_assignment import ShardAssignment

_LABELS = (keys.OBJECT_LABEL, keys.CLASS_LABEL)
_AT_ONCE = 1 << 18
_COPIED_BYTES = 32 << 20  # measured: fewer bytes cost more passes over a temporary file
_AHEAD = 2  # samples in preparation for each thread, so that no thread waits for another


class ShardPacker:
    """Writes the shards of a job."""

    def __init__(
        self,
        reader: SampleReader,
        assignment: ShardAssignment,
        folder: Location,
        options: PackOptions,
        workers: WorkerPool,
    ) -> None:
        self._reader = reader
        self._assignment = assignment
        self._folder = folder
        self._kept = options.kept_columns()
        self._compression = options.shard_compression
        self._workers = workers
        self._executor: Executor | None = None
        self._ahead = _AHEAD
        self._frames: EncodedRows | None = None
        self._encoder = SampleEncoder(options, reader.kinds())
        self._has_objects = keys.OBJECT_LABEL in reader.kinds()
        if self._encoder.keeps_records and hasattr(reader, "frames"):
            self._frames = reader.frames()

    def run(self, *, trusting: bool = True, keeps_skipped: bool = True) -> list[ShardResult]:
        """Write the shards, or verify them if they are complete; return the results in order."""
        shards = self._assignment.shards
        self._workers.total = sum(shard.sample_count for shard in shards)
        threads = self._workers.threads
        at_once = min(threads, max(1, len(shards)))
        with ExitStack() as stack:
            self._samples_ahead = stack.enter_context(SamplesAhead(self._reader, at_once))
            if self._encoder.is_heavy:
                self._executor = stack.enter_context(self._workers.pool())
            self._ahead = _AHEAD * -(-threads // at_once)
            return self._workers.each(
                lambda shard: self._complete(shard, trusting, keeps_skipped), shards
            )

    def _complete(self, shard: ShardPlan, trusting: bool, keeps_skipped: bool) -> ShardResult:
        result, is_new = complete_shard(
            self._folder,
            shard.file,
            self._compression,
            lambda writer: self._write(shard, writer),
            fingerprint=self._assignment.fingerprint,
            versions=lambda: _hash_versions(
                self._assignment.samples, self._assignment.numbers(shard)
            ),
            trusting=trusting,
            keeps_skipped=keeps_skipped,
        )
        if not is_new:
            self._workers.advance(shard.sample_count)
        return result

    def _write(self, shard: ShardPlan, writer: ShardWriter) -> ShardResult:
        if self._frames is not None:
            return self._copy(shard, writer, self._frames)
        bytes_in = label_count = 0
        skipped: dict[int, str] = {}
        notes: dict[str, Occurrences] = {}
        for encoded in self._encoded(shard):
            add_notes(notes, encoded.notes)
            if encoded.payload is None:
                skipped[self._assignment.number_in_listing(encoded.number)] = encoded.failure
                if len(skipped) == 2 * MAX_PROBLEMS:
                    skipped = _first(skipped)
            else:
                writer.write(encoded.payload)
                bytes_in += encoded.sample.size_bytes
                label_count += encoded.label_count
            self._workers.advance(1)
        schema = survey_written(writer, self._kept)
        return ShardResult(
            writer.entry(),
            schema.packed(),
            bytes_in,
            _first(skipped),
            notes,
            label_count if self._has_objects else None,
        )

    def _copy(self, shard: ShardPlan, writer: ShardWriter, source: EncodedRows) -> ShardResult:
        """Copy samples that are records already, as `_write` does."""
        bytes_in = 0
        survey, columns = SchemaSurvey(), ColumnSurvey(self._kept)
        is_verified = self._compression == "none"  # as copying verifies frames
        skipped: dict[int, str] = {}
        faults = np.array(sorted(source.faults), np.int64)
        listed = self._assignment.samples.listed
        for own in _portions(self._assignment.numbers(shard), self._assignment.samples.sizes):
            self._workers.check()
            numbers = own if listed is None else listed[own]
            is_fault = np.isin(numbers, faults)
            for number in numbers[is_fault].tolist():
                skipped[number] = source.faults[number].error().unnamed
            skipped = _first(skipped)
            frames, lengths = source.read_frames(numbers[~is_fault])
            writer.write_frames(frames, lengths)
            if is_verified:
                starts = offsets_from_lengths(lengths + FRAME_BYTES)[:-1] + HEADER_BYTES
                survey.update(frames, starts, lengths)
                columns.update(frames, starts, lengths)
            bytes_in += int(lengths.sum())
            self._workers.advance(len(numbers))
        if is_verified:
            writer.seal()
            schema = survey.finish()
            writer.columns = columns
        else:
            schema = survey_written(writer, self._kept)
        return ShardResult(writer.entry(), schema.packed(), bytes_in, skipped)

    def _encoded(self, shard: ShardPlan) -> Iterator[_Encoded]:
        """Yield the prepared samples of a shard in order, prepared here or ahead in threads."""
        numbers = self._assignment.numbers(shard)
        samples = self._assignment.samples.select(numbers)
        with closing(self._samples_ahead.each(samples)) as reads:
            items = zip(map(int, numbers), reads, strict=True)
            if self._executor is None:
                yield from map(self._encode, items)
                return
            with closing(map_ahead(self._executor, self._encode, items, self._ahead)) as encoded:
                yield from encoded

    def _encode(self, numbered: tuple[int, SampleToRead]) -> _Encoded:
        self._workers.check()
        number, item = numbered
        notes: dict[str, Occurrences] = {}

        def note(what: str, where: str) -> None:
            left_out = what.left_out if isinstance(what, Flaw) else None
            notes.setdefault(what, Occurrences()).add(where, left_out)

        try:
            content = item.read(note)
            folds = self._assignment.folds
            fold = None if folds is None else int(folds[number])
            payload = self._encoder.payload(content, note, fold)
        except (DataError, FileAccessError, SourceError) as error:
            return _Encoded(number, item.sample, None, error.unnamed, notes)
        label_count = 0
        if self._has_objects and isinstance(content, Mapping):
            label_count = sum(np.size(content.get(key, ())) for key in _LABELS)
        return _Encoded(number, item.sample, payload, "", notes, label_count)


class _Encoded(NamedTuple):
    """A prepared sample; without a payload, `failure` is the reason."""

    number: int
    sample: Sample
    payload: bytes | None
    failure: str
    notes: dict[str, Occurrences]
    label_count: int = 0


def _portions(samples: Int64Array, sizes: Int64Array) -> Iterator[Int64Array]:
    """Divide samples into portions of about `_COPIED_BYTES`; `sizes` are those of all samples."""
    for start in range(0, len(samples), _AT_ONCE):
        numbers = samples[start : start + _AT_ONCE]
        portion = (np.cumsum(sizes[numbers] + FRAME_BYTES) - 1) // _COPIED_BYTES
        yield from np.split(numbers, np.flatnonzero(np.diff(portion)) + 1)


def _first(skipped: dict[int, str]) -> dict[int, str]:
    """The first unreadable samples, in the order of the listing."""
    return dict(sorted(skipped.items())[:MAX_PROBLEMS])


def _hash_versions(samples: SampleTable, numbers: Int64Array) -> str | None:
    if samples.versions is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    all_versions = np.broadcast_to(np.asarray(samples.versions, np.int64), (len(samples),))
    for start in range(0, len(numbers), _AT_ONCE):
        digest.update(all_versions[numbers[start : start + _AT_ONCE]].astype("<i8").tobytes())
    return digest.hexdigest()
