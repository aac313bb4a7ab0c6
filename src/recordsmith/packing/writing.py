"""Writes the shards of a plan in threads.

A shard is written under a temporary name, synced, read back with every checksum, and noted as
complete. A shard that an interrupted job completed is only verified. The bytes depend on the plan
only, not on threads or earlier runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, closing
from functools import partial
from itertools import starmap
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.building import (
    Occurrences,
    ShardResult,
    VersionHash,
    complete_shard,
    merge_notes,
    survey_written,
)
from recordsmith.dataset import ShardWriter
from recordsmith.errors import MAX_PROBLEMS, DataError, FileAccessError, SourceError
from recordsmith.example import SchemaSurvey
from recordsmith.packing.planning import PackShard, Plan
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.sample_encoder import SampleEncoder
from recordsmith.sources import Listing, Sample
from recordsmith.sources.numbered import SampleTable
from recordsmith.sources.problems import Fault
from recordsmith.sources.samples_ahead import SamplesAhead, SampleToRead
from recordsmith.stores import Location
from recordsmith.threads import wait_for
from recordsmith.wire import FRAME_BYTES, HEADER_BYTES
from recordsmith.work import Work

_AT_ONCE = 1 << 18
_COPIED_BYTES = 32 << 20  # measured: fewer bytes cost more passes over a temporary file
_AHEAD = 2  # samples in preparation for each thread, so that no thread waits for another


class StoredFrames(Protocol):
    """Samples that are records already: encoded rows, here or in the store."""

    faults: Mapping[int, Fault]

    def read_frames(self, numbers: Int64Array) -> tuple[npt.NDArray[np.uint8], Int64Array]:
        """Copy the frames of some samples; return them with the sizes of their payloads."""
        ...


class ShardJobs:
    """Writes the shards of a plan."""

    def __init__(
        self,
        listing: Listing,
        plan: Plan,
        folder: Location,
        recipe: Recipe,
        work: Work,
        *,
        notes: Mapping[str, Occurrences] | None = None,
    ) -> None:
        """`notes`: about the samples, from reading them before."""
        self._listing = listing
        self._plan = plan
        self._folder = folder
        self._recipe = recipe
        self._work = work
        self._notes = notes or {}
        self._executor: Executor | None = None
        self._ahead = _AHEAD
        self._frames: StoredFrames | None = None
        encoder = recipe.encoder(listing)
        self._is_heavy = encoder.is_heavy
        if encoder.keeps_records and hasattr(listing.reader, "frames"):
            self._frames = listing.reader.frames()

    def run(
        self,
        *,
        shards: Sequence[PackShard] | None = None,
        trusting: bool = True,
        keeps_skipped: bool = True,
    ) -> list[ShardResult]:
        """Write shards, or verify them if they are complete.

        Returns:
            The results in the order of the shards.
        """
        shards = self._plan.shards if shards is None else shards
        self._work.total = sum(len(shard.samples) for shard in shards)
        threads = self._work.threads
        at_once = min(threads, max(1, len(shards)))
        with ExitStack() as stack:
            self._samples_ahead = stack.enter_context(SamplesAhead(self._listing.reader, at_once))
            if self._is_heavy:
                self._executor = stack.enter_context(self._work.pool())
            self._ahead = _AHEAD * -(-threads // at_once)
            return self._work.each(
                lambda shard: self._complete(shard, trusting, keeps_skipped), shards
            )

    def _complete(self, shard: PackShard, trusting: bool, keeps_skipped: bool) -> ShardResult:
        """Write one shard under its temporary name, unless it is complete."""
        result, is_new = complete_shard(
            self._folder,
            shard.file,
            self._plan.compression,
            lambda writer: self._write(shard, writer),
            fingerprint=self._plan.fingerprint,
            versions=lambda: _hash_versions(self._plan.samples, shard),
            trusting=trusting,
            keeps_skipped=keeps_skipped,
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
        encoder = self._recipe.encoder(self._listing)
        for encoded in self._encoded(shard, encoder):
            versions.add(encoded.sample.version)
            for what, noted in encoded.notes.items():
                notes.setdefault(what, Occurrences()).extend(noted)
            if encoded.payload is None:
                skipped[self._plan.number_in_listing(encoded.number)] = encoded.failure
                if len(skipped) == 2 * MAX_PROBLEMS:
                    skipped = _first(skipped)
            else:
                writer.write(encoded.payload)
                bytes_in += encoded.sample.size_bytes
            self._work.advance(1)
        schema = survey_written(writer)
        result = ShardResult.from_writer(
            writer,
            schema,
            bytes_in,
            skipped=_first(skipped),
            notes=merge_notes((self._notes, notes)),
            images=encoder.images_seen(),
        )
        return result, versions.hexdigest()

    def _copy(
        self, shard: PackShard, writer: ShardWriter, source: StoredFrames
    ) -> tuple[ShardResult, str | None]:
        """Copy samples that are records already, as `_write` does."""
        bytes_in = 0
        survey = SchemaSurvey()
        is_verified = self._plan.compression == "none"  # as copying verifies frames
        skipped: dict[int, str] = {}
        faults = np.array(sorted(source.faults), np.int64)
        samples = np.asarray(shard.samples, np.int64)
        for numbers in _portions(samples, self._plan.samples.sizes):
            self._work.check()
            is_fault = np.isin(numbers, faults)
            faulty = numbers[is_fault]
            for number in faulty.tolist():
                in_listing = self._plan.number_in_listing(number)
                skipped[in_listing] = source.faults[number].error().unnamed
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
        result = ShardResult.from_writer(
            writer,
            schema,
            bytes_in,
            skipped=skipped,
            notes=self._notes,
        )
        return result, _hash_versions(self._plan.samples, shard)

    def _encoded(self, shard: PackShard, encoder: SampleEncoder) -> Iterator[_Encoded]:
        """Yield the prepared samples of a shard in order, prepared here or ahead in threads."""
        samples = self._plan.samples.select(shard.samples)
        with closing(self._samples_ahead.each(samples)) as reads:
            items = zip(shard.samples, reads, strict=True)
            if self._executor is None:
                yield from starmap(partial(self._encode, encoder), items)
                return
            waiting: deque[Future[_Encoded]] = deque()
            try:
                for number, item in items:
                    waiting.append(self._executor.submit(self._encode, encoder, number, item))
                    if len(waiting) >= self._ahead:
                        yield wait_for(waiting.popleft())
                while waiting:
                    yield wait_for(waiting.popleft())
            finally:
                for future in waiting:
                    future.cancel()

    def _encode(self, encoder: SampleEncoder, number: int, item: SampleToRead) -> _Encoded:
        self._work.check()
        notes: dict[str, Occurrences] = {}

        def note(what: str, where: str) -> None:
            notes.setdefault(what, Occurrences()).add(where)

        try:
            content = item.read(note)
            payload = encoder.payload(content, note)
        except (DataError, FileAccessError, SourceError) as error:
            return _Encoded(number, item.sample, None, error.unnamed, notes)
        return _Encoded(number, item.sample, payload, "", notes)


class _Encoded(NamedTuple):
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
    return dict(sorted(skipped.items())[:MAX_PROBLEMS])


def _hash_versions(samples: SampleTable, shard: PackShard) -> str | None:
    """The hash of the versions of a shard's samples; None if they have none."""
    if samples.versions is None:
        return None
    versions = VersionHash()
    of_all = np.broadcast_to(np.asarray(samples.versions, np.int64), (len(samples),))
    numbers = np.asarray(shard.samples, np.int64)
    for start in range(0, len(numbers), _AT_ONCE):
        versions.add_all(of_all[numbers[start : start + _AT_ONCE]])
    return versions.hexdigest()
