"""Write the shards of a plan, each whole or not at all, in threads.

A shard is written under a temporary name, synced, and read back with every checksum; then a note
says that it is done. A shard that is done already, from a job that was stopped, is only checked.
Bytes hang on the plan alone: not on threads, not on what was done before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from recordsmith.building import (
    Noted,
    ShardResult,
    Versions,
    complete_shard,
    read_back,
)
from recordsmith.dataset import ShardWriter
from recordsmith.errors import CorruptDataError, FileAccessError, SourceError
from recordsmith.packing.planning import Plan, PlannedShard
from recordsmith.packing.preparing import Preparation
from recordsmith.sources import Listing, Sample, Source
from recordsmith.work import Work

_AHEAD = 2  # samples in preparation for each thread: enough that none waits for another


class ShardJobs:
    """All shards of one plan, while they are written."""

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
        self._helpers: Executor | None = None
        self._ahead = _AHEAD

    def run(
        self,
        *,
        shards: Sequence[PlannedShard] | None = None,
        trusting: bool = True,
    ) -> list[ShardResult]:
        """Write, or check, every shard; the results are in the order of the plan.

        Args:
            shards: those that are to be written; None for all of the plan.
            trusting: whether work of an earlier job is used though the source does not tell
                whether its samples have changed since.
        """
        shards = self._plan.shards if shards is None else shards
        self._work.total = sum(len(shard.samples) for shard in shards)
        threads = self._work.threads
        with ExitStack() as stack:
            if self._preparation.is_heavy:
                self._helpers = stack.enter_context(ThreadPoolExecutor(threads))
            at_once = min(threads, max(1, len(shards)))
            self._ahead = _AHEAD * -(-threads // at_once)
            return self._work.each(lambda shard: self._complete(shard, trusting=trusting), shards)

    def _complete(self, shard: PlannedShard, *, trusting: bool) -> ShardResult:
        """Write one shard under its temporary name, unless that is done already."""
        result, is_new = complete_shard(
            self._folder,
            shard.file,
            self._plan.compression,
            lambda writer: self._write(shard, writer),
            fingerprint=self._plan.fingerprint,
            versions=lambda: _versions_of(self._listing, shard),
            trusting=trusting,
        )
        if not is_new:
            self._work.advance(len(shard.samples))
        return result

    def _write(self, shard: PlannedShard, writer: ShardWriter) -> tuple[ShardResult, str | None]:
        """What came of it, and the hash of its samples' versions."""
        bytes_in = 0
        versions = Versions()
        skipped: dict[int, str] = {}
        notes: dict[str, Noted] = {}
        for prepared in self._prepared(shard):
            versions.add(prepared.sample.version)
            for what, where in prepared.notes:
                notes.setdefault(what, Noted()).add(where)
            if prepared.payload is None:
                skipped[prepared.number] = prepared.failure
            else:
                writer.write(prepared.payload)
                bytes_in += prepared.sample.size_bytes
            self._work.advance(1)
        schema = read_back(writer)
        result = ShardResult.of(writer, schema, bytes_in, skipped=skipped, notes=notes)
        return result, versions.hexdigest()

    def _prepared(self, shard: PlannedShard) -> Iterator[_Prepared]:
        """The samples of a shard in its order, prepared here or by helpers ahead of time."""
        if self._helpers is None:
            yield from map(self._prepare, shard.samples)
            return
        waiting: deque[Future[_Prepared]] = deque()
        try:
            for number in shard.samples:
                waiting.append(self._helpers.submit(self._prepare, number))
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
        notes: list[tuple[str, str]] = []

        def note(what: str, where: str) -> None:
            notes.append((what, where))

        try:
            content = self._source.read_sample(sample, note)
            payload = self._preparation.payload(content, note)
        except (CorruptDataError, FileAccessError, SourceError) as error:
            return _Prepared(number, sample, None, str(error), notes)
        return _Prepared(number, sample, payload, "", notes)


class _Prepared(NamedTuple):
    """One sample on its way into a shard; without a payload, `failure` says why."""

    number: int
    sample: Sample
    payload: bytes | None
    failure: str
    notes: list[tuple[str, str]]


def _versions_of(listing: Listing, shard: PlannedShard) -> str | None:
    """What `Versions` says of the samples of a shard."""
    versions = Versions()
    for number in shard.samples:
        versions.add(listing.samples[number].version)
    return versions.hexdigest()
