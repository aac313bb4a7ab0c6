"""Writes the shards of a plan in threads.

A shard is written under a temporary name, synced, read back with every checksum, and noted as
complete. A shard that an interrupted job completed is only verified. The bytes depend on the plan
only, not on threads or earlier runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from recordsmith.building import (
    Occurrences,
    ShardResult,
    VersionHash,
    complete_shard,
    survey_written,
)
from recordsmith.dataset import ShardWriter
from recordsmith.errors import MOST_PROBLEMS, CorruptDataError, FileAccessError, SourceError
from recordsmith.packing.planning import PackShard, Plan
from recordsmith.packing.preparing import Preparation
from recordsmith.sources import Listing, Sample, Source
from recordsmith.work import Work

_AHEAD = 2  # samples in preparation for each thread, so that no thread waits for another


class ShardJobs:
    """Writes the shards of a plan."""

    def __init__(
        self,
        source: Source,
        listing: Listing,
        plan: Plan,
        folder: Path,
        preparation: Preparation,
        work: Work,
    ) -> None:
        self._source = source
        self._listing = listing
        self._plan = plan
        self._folder = folder
        self._preparation = preparation
        self._work = work
        self._executor: Executor | None = None
        self._ahead = _AHEAD

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
        with ExitStack() as stack:
            if self._preparation.is_heavy:
                self._executor = stack.enter_context(ThreadPoolExecutor(threads))
            at_once = min(threads, max(1, len(shards)))
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

    def _prepared(self, shard: PackShard) -> Iterator[_Prepared]:
        """Yield the prepared samples of a shard in order, prepared here or ahead in threads."""
        if self._executor is None:
            yield from map(self._prepare, shard.samples)
            return
        waiting: deque[Future[_Prepared]] = deque()
        try:
            for number in shard.samples:
                waiting.append(self._executor.submit(self._prepare, number))
                if len(waiting) >= self._ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def _prepare(self, number: int) -> _Prepared:
        self._work.check()
        sample = self._listing.samples[number]
        notes: dict[str, Occurrences] = {}

        def note(what: str, where: str) -> None:
            notes.setdefault(what, Occurrences()).add(where)

        try:
            content = self._source.read_sample(sample, note)
            payload = self._preparation.payload(content, note)
        except (CorruptDataError, FileAccessError, SourceError) as error:
            return _Prepared(number, sample, None, "; ".join(error.lines), notes)
        return _Prepared(number, sample, payload, "", notes)


class _Prepared(NamedTuple):
    """A prepared sample; without a payload, `failure` is the reason."""

    number: int
    sample: Sample
    payload: bytes | None
    failure: str
    notes: dict[str, Occurrences]


def _first(skipped: dict[int, str]) -> dict[int, str]:
    """The first unreadable samples, in the order of the listing."""
    return dict(sorted(skipped.items())[:MOST_PROBLEMS])


def _hash_versions(listing: Listing, shard: PackShard) -> str | None:
    """The hash of the versions of a shard's samples."""
    versions = VersionHash()
    for number in shard.samples:
        versions.add(listing.samples[number].version)
    return versions.hexdigest()
