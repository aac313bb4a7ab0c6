"""Writes the shards of a plan in threads.

A shard is written under a temporary name, synced, read back with every checksum, and noted as
complete. A shard that an interrupted job completed is only verified. The bytes depend on the plan
only, not on threads or earlier runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import starmap
from typing import NamedTuple

import numpy as np

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.building import (
    Occurrences,
    ShardResult,
    VersionHash,
    complete_shard,
    survey_written,
)
from recordsmith.dataset import ShardWriter
from recordsmith.errors import MOST_PROBLEMS, CorruptDataError, FileAccessError, SourceError
from recordsmith.example import SchemaSurvey
from recordsmith.packing.planning import PackShard, Plan
from recordsmith.packing.preparing import Preparation
from recordsmith.sources import Listing, Sample
from recordsmith.sources.numbered import NumberedSamples
from recordsmith.sources.samples_ahead import SamplesAhead, SampleToRead
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.stores import Location
from recordsmith.wire import FRAME_BYTES, HEADER_BYTES
from recordsmith.work import Work

_AT_ONCE = 1 << 18
_COPIED_BYTES = 32 << 20  # measured: fewer bytes cost more passes over a temporary file
_AHEAD = 2  # samples in preparation for each thread, so that no thread waits for another


class ShardJobs:
    """Writes the shards of a plan."""

    def __init__(
        self,
        listing: Listing,
        plan: Plan,
        folder: Location,
        preparation: Preparation,
        work: Work,
    ) -> None:
        self._listing = listing
        self._plan = plan
        self._folder = folder
        self._preparation = preparation
        self._work = work
        self._executor: Executor | None = None
        self._ahead = _AHEAD
        self._frames: EncodedRows | None = None
        if preparation.keeps_records and hasattr(listing.reader, "frames"):
            self._frames = listing.reader.frames()
        if self._frames is not None:
            assert isinstance(listing.samples, NumberedSamples)
            self._sizes = listing.samples.sizes

    def run(
        self,
        *,
        shards: Sequence[PackShard] | None = None,
        trusting: bool = True,
    ) -> list[ShardResult]:
        """Write shards, or verify them if they are complete.

        Args:
            shards: the shards to write; None for all shards of the plan.
            trusting: whether to keep shards of an interrupted job if the source has no version
                information that shows whether its samples have changed.

        Returns:
            The results in the order of the shards.
        """
        shards = self._plan.shards if shards is None else shards
        self._work.total = sum(len(shard.samples) for shard in shards)
        threads = self._work.threads
        at_once = min(threads, max(1, len(shards)))
        with ExitStack() as stack:
            self._samples_ahead = stack.enter_context(SamplesAhead(self._listing.reader, at_once))
            if self._preparation.is_heavy:
                self._executor = stack.enter_context(ThreadPoolExecutor(threads))
            self._ahead = _AHEAD * -(-threads // at_once)
            return self._work.each(lambda shard: self._complete(shard, trusting=trusting), shards)

    def _complete(self, shard: PackShard, *, trusting: bool) -> ShardResult:
        """Write one shard under its temporary name, unless it is complete."""
        result, is_new = complete_shard(
            self._folder,
            shard.file,
            self._plan.compression,
            lambda writer: self._write(shard, writer),
            fingerprint=self._plan.fingerprint,
            versions=lambda: _hash_versions(self._listing, shard),
            trusting=trusting,
        )
        if not is_new:
            self._work.advance(len(shard.samples))
        return result

    def _write(self, shard: PackShard, writer: ShardWriter) -> tuple[ShardResult, str | None]:
        """Write the records; return the result and the hash of the samples' versions."""
        if self._frames is not None:
            return self._copy(shard, writer, self._frames)
        bytes_in = 0
        versions = VersionHash()
        skipped: dict[int, str] = {}
        notes: dict[str, Occurrences] = {}
        for prepared in self._prepared(shard):
            versions.add(prepared.sample.version)
            for what, noted in prepared.notes.items():
                notes.setdefault(what, Occurrences()).extend(noted)
            if prepared.payload is None:
                skipped[prepared.number] = prepared.failure
                if len(skipped) == 2 * MOST_PROBLEMS:
                    skipped = _first(skipped)
            else:
                writer.write(prepared.payload)
                bytes_in += prepared.sample.size_bytes
            self._work.advance(1)
        schema = survey_written(writer)
        result = ShardResult.from_writer(
            writer, schema, bytes_in, skipped=_first(skipped), notes=notes
        )
        return result, versions.hexdigest()

    def _copy(
        self, shard: PackShard, writer: ShardWriter, source: EncodedRows
    ) -> tuple[ShardResult, str | None]:
        """Copy samples that are records already, as `_write` does."""
        bytes_in = 0
        survey = SchemaSurvey()
        is_verified = self._plan.compression == "none"  # as copying verifies frames
        skipped: dict[int, str] = {}
        faults = np.array(sorted(source.faults), np.int64)
        samples = np.frombuffer(shard.samples, np.int64)
        for numbers in _portions(samples, self._sizes):
            self._work.check()
            is_fault = np.isin(numbers, faults)
            for number in numbers[is_fault].tolist():
                skipped[number] = "; ".join(source.faults[number].error().lines)
            skipped = _first(skipped)
            frames, lengths = source.read_frames(numbers[~is_fault])
            writer.write_frames(frames, lengths)
            if is_verified:
                starts = offsets_from_lengths(lengths + FRAME_BYTES)[:-1] + HEADER_BYTES
                survey.update(frames, starts, lengths)
            bytes_in += int(lengths.sum())
            self._work.advance(len(numbers))
        if is_verified:
            writer.seal()
            schema = survey.finish()
        else:
            schema = survey_written(writer)
        result = ShardResult.from_writer(writer, schema, bytes_in, skipped=skipped)
        return result, _hash_versions(self._listing, shard)

    def _prepared(self, shard: PackShard) -> Iterator[_Prepared]:
        """Yield the prepared samples of a shard in order, prepared here or ahead in threads."""
        samples = map(self._listing.samples.__getitem__, shard.samples)
        with closing(self._samples_ahead.each(samples)) as reads:
            items = zip(shard.samples, reads, strict=True)
            if self._executor is None:
                yield from starmap(self._prepare, items)
                return
            waiting: deque[Future[_Prepared]] = deque()
            try:
                for number, item in items:
                    waiting.append(self._executor.submit(self._prepare, number, item))
                    if len(waiting) >= self._ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _prepare(self, number: int, item: SampleToRead) -> _Prepared:
        self._work.check()
        notes: dict[str, Occurrences] = {}

        def note(what: str, where: str) -> None:
            notes.setdefault(what, Occurrences()).add(where)

        try:
            content = item.read(note)
            payload = self._preparation.payload(content, note)
        except (CorruptDataError, FileAccessError, SourceError) as error:
            return _Prepared(number, item.sample, None, "; ".join(error.lines), notes)
        return _Prepared(number, item.sample, payload, "", notes)


class _Prepared(NamedTuple):
    """A prepared sample; without a payload, `failure` is the reason."""

    number: int
    sample: Sample
    payload: bytes | None
    failure: str
    notes: dict[str, Occurrences]


def _portions(samples: Int64Array, sizes: Int64Array) -> Iterator[Int64Array]:
    """Divide samples into portions of about `_COPIED_BYTES`; `sizes` are those of all samples."""
    for start in range(0, len(samples), _AT_ONCE):
        numbers = samples[start : start + _AT_ONCE]
        portion = (np.cumsum(sizes[numbers] + FRAME_BYTES) - 1) // _COPIED_BYTES
        yield from np.split(numbers, np.flatnonzero(np.diff(portion)) + 1)


def _first(skipped: dict[int, str]) -> dict[int, str]:
    """The first unreadable samples, in the order of the listing."""
    return dict(sorted(skipped.items())[:MOST_PROBLEMS])


def _hash_versions(listing: Listing, shard: PackShard) -> str | None:
    """The hash of the versions of a shard's samples."""
    versions = VersionHash()
    if isinstance(listing.samples, NumberedSamples) and listing.samples.versions is not None:
        found = np.asarray(listing.samples.versions, np.int64)
        of_all = np.broadcast_to(found, (len(listing.samples),))
        numbers = np.frombuffer(shard.samples, np.int64)
        for start in range(0, len(numbers), _AT_ONCE):
            versions.add_all(of_all[numbers[start : start + _AT_ONCE]])
        return versions.hexdigest()
    for number in shard.samples:
        versions.add(listing.samples[number].version)
    return versions.hexdigest()
