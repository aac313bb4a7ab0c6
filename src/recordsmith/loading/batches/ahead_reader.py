"""Reads records over a network before the steps that use them.

`Rounds` plans rounds, which threads of their own read, several at the same time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from typing import NamedTuple

import msgspec
import numpy as np

from recordsmith.dataset import Faults
from recordsmith.format.example import BytesArray
from recordsmith.loading.batches.job_runner import Call, JobRunner
from recordsmith.loading.memory import RecycledMemory
from recordsmith.loading.order.inputs import FetchedRecords, RecordSource, fetch_records
from recordsmith.loading.order.schedule import Step
from recordsmith.loading.order.shuffle import PositionOrder
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import DataError, FileAccessError

AHEAD_BYTES = 64 << 20
"""Rounds are read ahead of the steps up to so many bytes, and one more: of two long runs, one is
read while the steps use the other. A longer round is read alone."""

_ROUND_BYTES = 4 << 20  # a round ends after so many bytes
_ROUND_PIECES = 48  # or so many pieces of the shards, which are requests
_RUN_BYTES = AHEAD_BYTES  # longer runs are not read in one round
_SIZED_AT_ONCE = 8
_SIZED_AHEAD = 64
_ROUNDS_AT_ONCE = 8
_ROUNDS_AHEAD = 32  # of tiny records


class StepRun(NamedTuple):
    """The records begin:end of a step, which are in one run."""

    step: Step
    begin: int
    end: int
    run: object

    @property
    def positions(self) -> Int64Array:
        return self.step.positions[self.begin : self.end]


def step_parts(steps: Iterable[Step], order: PositionOrder) -> Iterator[StepRun]:
    """Yield the parts of steps, one after the other; without runs, each step is one part."""
    run: object = None
    for number, step in enumerate(steps):
        of_places = order.runs(step.epoch, step.places)
        if of_places is None or not len(of_places):
            run = run if of_places is not None else number
            yield StepRun(step, 0, len(step.positions), run)
            continue
        cuts = [0, *(np.flatnonzero(np.diff(of_places)) + 1).tolist(), len(of_places)]
        for begin, end in pairwise(cuts):
            run = (step.epoch, int(of_places[begin]))
            yield StepRun(step, begin, end, run)


class Round(msgspec.Struct):
    """Parts of steps whose records are read in one parallel round.

    piece_count: in how many pieces of the shards the records of each part lie, added up.
    """

    parts: list[StepRun] = msgspec.field(default_factory=list)
    byte_count: int = 0
    piece_count: int = 0


class Rounds:
    """The rounds of an iteration, each when there is room for its records.

    One thread iterates, another one makes room, and any can close. Not `begin_ahead`: the limit is
    in bytes that are known only when a round is planned, and the steps that use them make room.
    """

    def __init__(self, records: RecordSource, parts: Iterable[StepRun]) -> None:
        jobs = (Call(partial(_sized, records, part)) for part in parts)
        self._sized = JobRunner(jobs, threads=_SIZED_AT_ONCE, prefetch=_SIZED_AHEAD)
        self._returned: SimpleQueue[int] = SimpleQueue()
        self._is_closed = False

    def __iter__(self) -> Iterator[Round]:
        taken = 0
        for planned in _joined(self._sized):
            room = AHEAD_BYTES if planned.byte_count <= AHEAD_BYTES else 1  # a large one is alone
            while taken >= room and not self._is_closed:
                taken -= self._returned.get()
            if self._is_closed:
                return
            taken += planned.byte_count
            yield planned

    def finish(self, planned: Round) -> None:
        """Make room for other rounds, when the records of a round are no longer ahead."""
        self._returned.put(planned.byte_count)

    def close(self) -> None:
        """Stop planning, also while it waits for room."""
        self._is_closed = True
        self._returned.put(0)
        self._sized.close()

    def abandon(self) -> None:
        """Let the threads end, without waiting for them and without a lock."""
        self._is_closed = True
        self._returned.put(0)
        self._sized.abandon()


def _sized(records: RecordSource, part: StepRun) -> Round:
    sized = Round([part])
    # a CorruptDataError: an index cannot be built; reading reports which records are lost
    with suppress(DataError):
        sized.byte_count = int(records.record_sizes(part.positions).sum())
    ascending = np.sort(part.positions)
    sized.piece_count = 1 + int(np.count_nonzero(np.diff(ascending) > 1))
    return sized


def _joined(sized: Iterable[Round]) -> Iterator[Round]:
    """Join the parts of neighbouring steps to rounds.

    Runs are read in one round unless they are too long. The first round is one part, so that the
    first batch comes soon.
    """
    joined = Round()
    is_first, has_long_runs = True, False
    for planned in sized:
        if joined.parts:
            is_in_run = not has_long_runs and planned.parts[0].run == joined.parts[-1].run
            if is_in_run and joined.byte_count >= _RUN_BYTES:
                is_in_run, has_long_runs = False, True
            is_full = joined.byte_count >= _ROUND_BYTES or joined.piece_count >= _ROUND_PIECES
            if is_first or (is_full and not is_in_run):
                yield joined
                joined, is_first = Round(), False
        joined.parts += planned.parts
        joined.byte_count += planned.byte_count
        joined.piece_count += planned.piece_count
    if joined.parts:
        yield joined


class AheadReader:
    """An iterator over steps and their records, which can be closed from any thread."""

    def __init__(self, records: RecordSource, order: PositionOrder, steps: Iterable[Step]) -> None:
        """`order`: of the steps; its runs are best read in one round."""
        rounds = Rounds(records, step_parts(steps, order))
        self._finish = rounds.finish
        memory = RecycledMemory(2)
        self._runner: JobRunner[tuple[Round, list[FetchedRecords | FileAccessError]]] = JobRunner(
            (Call(partial(_read_round, records, planned, memory)) for planned in rounds),
            threads=_ROUNDS_AT_ONCE,
            prefetch=_ROUNDS_AHEAD,
            upstream=rounds,
        )
        self._ready: deque[tuple[StepRun, FetchedRecords | FileAccessError]] = deque()
        self._begun: list[FetchedRecords] = []  # parts of the next step
        self._round: Round | None = None

    def __iter__(self) -> AheadReader:
        return self

    def __next__(self) -> tuple[Step, FetchedRecords]:
        asked_at = time.perf_counter()
        while True:
            if not self._ready:
                if self._round is not None:
                    self._finish(self._round)
                self._round, fetched = next(self._runner)
                self._ready.extend(zip(self._round.parts, fetched, strict=True))
            part, records = self._ready.popleft()
            if isinstance(records, Exception):
                raise records
            self._begun.append(records)
            if part.end == len(part.step.positions):
                parts, self._begun = self._begun, []
                waited = time.perf_counter() - asked_at
                return part.step, _put_together(parts)._replace(seconds=waited)

    def close(self) -> None:
        """Stop reading ahead."""
        self._runner.close()

    def abandon(self) -> None:
        """Let the threads end, without waiting for them and without a lock."""
        self._runner.abandon()


def _put_together(parts: list[FetchedRecords]) -> FetchedRecords:
    if len(parts) == 1:
        return parts[0]
    faults: Faults = {}
    row_count = 0
    for part in parts:
        faults |= {row_count + row: error for row, error in part.faults.items()}
        row_count += len(part.payloads)
    values = [payload for part in parts for payload in part.payloads]
    read_byte_count = sum(part.read_byte_count for part in parts)
    return FetchedRecords(BytesArray.from_values(values), faults, read_byte_count)


def _read_round(
    records: RecordSource, planned: Round, memory: RecycledMemory
) -> tuple[Round, list[FetchedRecords | FileAccessError]]:
    """Read the records of a round: of each of its parts, or why that cannot be read.

    Its parts are read together, and share the memory. If one fails, each is read alone.
    """

    def read(positions: Int64Array) -> FetchedRecords:
        return fetch_records(
            records, positions, lambda byte_count: memory.empty("", (byte_count,), np.uint8)
        )

    parts: list[FetchedRecords | FileAccessError] = []
    begin = 0
    try:
        payloads, faults, read_byte_count, _ = read(
            np.concatenate([part.positions for part in planned.parts])
        )
    except FileAccessError:
        for part in planned.parts:
            try:
                parts.append(read(part.positions))
            except FileAccessError as error:
                parts.append(error.with_traceback(None))
        return planned, parts
    for part in planned.parts:
        end = begin + len(part.positions)
        offsets = payloads.offsets[begin : end + 1]
        own = BytesArray(payloads.buffer[offsets[0] : offsets[-1]], offsets - offsets[0])
        own_faults = {row - begin: faults[row] for row in faults if begin <= row < end}
        parts.append(FetchedRecords(own, own_faults, 0 if parts else read_byte_count))
        begin = end
    return planned, parts
