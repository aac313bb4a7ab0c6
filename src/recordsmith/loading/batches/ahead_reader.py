"""Reads records over a network before the steps that use them.

The records of neighbouring steps are read in rounds, several at the same time, in threads of their
own. The sizes in the indexes bound what is read ahead.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

import numpy as np

from recordsmith.buffers import AllocateBytes, Int64Array, empty_bytes
from recordsmith.dataset import Faults
from recordsmith.errors import CorruptDataError, FileAccessError
from recordsmith.example import BytesArray
from recordsmith.loading.batches.engine import Engine
from recordsmith.loading.batches.runs import Runs, Segment, segments
from recordsmith.loading.memory import RecycledMemory
from recordsmith.loading.order.schedule import Step

AHEAD_BYTES = 64 << 20
"""How many bytes of records are read ahead of the steps, or one round if that has more."""

_ROUND_BYTES = 4 << 20  # a round ends after so many bytes, at the end of a step and a run
_ROUND_PIECES = 48  # or so many pieces of the shards, which are requests
_RUN_BYTES = AHEAD_BYTES // 4  # a longer run is not read in one round
_ROUNDS_AT_ONCE = 8
_ROUNDS_AHEAD = 32  # of tiny records


class Records(Protocol):
    """The records of a dataset or a mix."""

    def read_records(
        self, positions: Int64Array, allocate: AllocateBytes, faults: Faults | None
    ) -> BytesArray:
        """Return the payloads at many positions; errors of damaged records go to `faults`."""

    def record_sizes(self, positions: Int64Array) -> Int64Array:
        """Return the sizes of the payloads at many positions: int64, (count,)."""


class AheadReader:
    """Reads the records of the steps of an iteration, before they are requested."""

    def __init__(self, records: Records, runs: Runs) -> None:
        """`runs`: which records are best read in one round."""
        self._records = records
        self._runs = runs

    def read(self, steps: Iterable[Step]) -> FetchedSteps:
        """Return the steps with their records, in order."""
        return FetchedSteps(self._records, segments(steps, self._runs))


class FetchedRecords:
    """The records of one step.

    seconds: how long the step waited for them.
    """

    def __init__(self, positions: Int64Array, parts: list[_Fetched], seconds: float) -> None:
        """`parts`: the records in the order of the positions."""
        self.seconds = seconds
        self._positions = positions
        self._parts = parts

    def read_records(
        self,
        positions: Int64Array,
        allocate: AllocateBytes = empty_bytes,  # noqa: ARG002 - as of a dataset
    ) -> BytesArray:
        """Return the payloads at positions of the step: at all of them, or at some.

        Raises:
            CorruptDataError: one of them is damaged.
        """
        if len(self._parts) == 1 and positions is self._positions:
            fetched = self._parts[0]
            if not fetched.faults:
                return fetched.payloads
        place = {
            position: (fetched, row)
            for position, (fetched, row) in zip(self._positions.tolist(), self._rows(), strict=True)
        }
        found = [place[position] for position in positions.tolist()]
        for fetched, row in found:
            if row in fetched.faults:
                raise copy(fetched.faults[row])  # a raised error keeps its frames alive
        return BytesArray.from_values([fetched.payloads[row] for fetched, row in found])

    def _rows(self) -> Iterator[tuple[_Fetched, int]]:
        for fetched in self._parts:
            for row in range(len(fetched.payloads)):
                yield fetched, row


class FetchedSteps:
    """An iterator over steps and their records, which can be closed from any thread."""

    def __init__(self, records: Records, found: Iterator[Segment]) -> None:
        self._room = _Room(AHEAD_BYTES)
        memory = RecycledMemory(2)
        jobs = (_RoundJob(records, one, memory) for one in _rounds(records, found, self._room))
        self._engine: Engine[_Round] = Engine(
            jobs, threads=_ROUNDS_AT_ONCE, prefetch=_ROUNDS_AHEAD, upstream=self._room
        )
        self._ready: deque[tuple[Segment, _Fetched | Exception]] = deque()
        self._parts: list[_Fetched] = []  # of the next step
        self._round_bytes = 0

    def __iter__(self) -> FetchedSteps:
        return self

    def __next__(self) -> tuple[Step, FetchedRecords]:
        """Return the next step and its records.

        Raises:
            FileAccessError: they cannot be read.
        """
        begun = time.perf_counter()
        while True:
            if not self._ready:
                self._room.give_back(self._round_bytes)
                self._round_bytes = 0
                fetched = next(self._engine)
                self._round_bytes = fetched.byte_count
                self._ready.extend(fetched.parts)
            segment, part = self._ready.popleft()
            if isinstance(part, Exception):
                raise part
            self._parts.append(part)
            if segment.completes_step:
                step, parts, self._parts = segment.step, self._parts, []
                return step, FetchedRecords(step.positions, parts, time.perf_counter() - begun)

    def close(self) -> None:
        """Stop reading ahead."""
        self._engine.close()

    def abandon(self) -> None:
        """Let the threads end, without waiting for them and without a lock."""
        self._engine.abandon()


class _Fetched(NamedTuple):
    """The records of a segment; those with an error have no valid bytes."""

    payloads: BytesArray
    faults: Faults


@dataclass
class _Round:
    """Segments whose records are read in one parallel round."""

    segments: list[Segment]
    byte_count: int
    parts: list[tuple[Segment, _Fetched | Exception]]


class _Room:
    """Counts the bytes that are read ahead; one thread takes, and another gives back."""

    def __init__(self, byte_count: int) -> None:
        self._limit = byte_count
        self._taken = 0
        self._returned: SimpleQueue[int | None] = SimpleQueue()  # None: closed

    def take(self, byte_count: int) -> bool:
        """Wait for room; the first to take has it in any case. Return False if it is closed."""
        while self._taken and self._taken + byte_count > self._limit:
            returned = self._returned.get()
            if returned is None:
                return False
            self._taken -= returned
        self._taken += byte_count
        return True

    def give_back(self, byte_count: int) -> None:
        """Return bytes that are no longer ahead."""
        self._returned.put(byte_count)

    def close(self) -> None:
        """End all waiting."""
        self._returned.put(None)

    abandon = close


def _rounds(records: Records, found: Iterator[Segment], room: _Room) -> Iterator[_Round]:
    """Yield rounds when there is room for their records. The first one is one segment."""
    collected: list[Segment] = []
    byte_count = piece_count = 0
    is_first = True
    for segment in found:
        if collected:
            is_same_run = segment.run == collected[-1].run
            is_full = byte_count >= _RUN_BYTES or (
                not is_same_run and (byte_count >= _ROUND_BYTES or piece_count >= _ROUND_PIECES)
            )
            if is_first or (is_full and not segment.begin) or (is_full and not is_same_run):
                if not room.take(byte_count):
                    return
                yield _Round(collected, byte_count, [])
                collected, byte_count, piece_count, is_first = [], 0, 0, False
        collected.append(segment)
        byte_count += _size(records, segment.positions)
        piece_count += _piece_count(segment.positions)
    if collected and room.take(byte_count):
        yield _Round(collected, byte_count, [])


def _size(records: Records, positions: Int64Array) -> int:
    try:
        return int(records.record_sizes(positions).sum())
    except CorruptDataError:  # an index cannot be built; reading reports which records are lost
        return 0


def _piece_count(positions: Int64Array) -> int:
    """Return in how many pieces records lie, if neighbours lie next to each other."""
    return 1 + int(np.count_nonzero(np.diff(np.sort(positions)) > 1))


class _RoundJob:
    """Reads the records of a round, as a job of an engine."""

    def __init__(self, records: Records, planned: _Round, memory: RecycledMemory) -> None:
        self._records = records
        self._round = planned
        self._memory = memory

    def begin(self) -> int:
        chosen = self._round.segments
        try:
            parts: list[Any] = self._read(chosen)
        except (CorruptDataError, FileAccessError):
            parts = [self._read_alone(segment) for segment in chosen]
        self._round.parts = list(zip(chosen, parts, strict=True))
        return 0

    def fill(self, start: int, stop: int) -> None:
        """Do nothing: a round has no rows."""

    def finish(self) -> _Round:
        return self._round

    def _read(self, chosen: list[Segment]) -> list[_Fetched]:
        """Read segments together; their payloads share the memory."""
        positions = np.concatenate([segment.positions for segment in chosen])
        faults: Faults = {}
        payloads = self._records.read_records(positions, self._allocate, faults)
        parts = []
        begin = 0
        for segment in chosen:
            end = begin + len(segment.positions)
            offsets = payloads.offsets[begin : end + 1]
            own = BytesArray(payloads.buffer[offsets[0] : offsets[-1]], offsets - offsets[0])
            of_segment = {row - begin: faults[row] for row in faults if begin <= row < end}
            parts.append(_Fetched(own, of_segment))
            begin = end
        return parts

    def _read_alone(self, segment: Segment) -> _Fetched | Exception:
        """Read a segment of a round that failed; return its error where that is not a record's."""
        try:
            return self._read([segment])[0]
        except FileAccessError as error:
            return error.with_traceback(None)
        except CorruptDataError:  # an index cannot be built
            return self._read_singly(segment.positions)

    def _read_singly(self, positions: Int64Array) -> _Fetched:
        values, faults = [], {}
        for row, position in enumerate(positions):
            try:
                one = self._records.read_records(position[np.newaxis], empty_bytes, None)
                values.append(one.buffer.tobytes())
            except CorruptDataError as error:
                values.append(b"")
                faults[row] = error.with_traceback(None)
        return _Fetched(BytesArray.from_values(values), faults)

    def _allocate(self, byte_count: int) -> Any:
        return self._memory.empty("", (byte_count,), np.uint8)
