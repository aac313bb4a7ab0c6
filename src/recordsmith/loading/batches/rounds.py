"""Plans rounds: the records of neighbouring steps that are read together over a network.

The sizes of records are in the indexes, which are loaded in threads, several at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from recordsmith.buffers import AllocateBytes, Int64Array
from recordsmith.dataset import Faults
from recordsmith.errors import DataError
from recordsmith.example import BytesArray
from recordsmith.loading.batches.engine import BatchEngine
from recordsmith.loading.batches.runs import StepPart

AHEAD_BYTES = 64 << 20
"""Rounds are read ahead of the steps up to so many bytes, and one more: of two long runs, one is
read while the steps use the other. A longer round is read alone."""

_ROUND_BYTES = 4 << 20  # a round ends after so many bytes
_ROUND_PIECES = 48  # or so many pieces of the shards, which are requests
_RUN_BYTES = AHEAD_BYTES  # longer runs are not read in one round
_SIZED_AT_ONCE = 8
_SIZED_AHEAD = 64


class PlannedRecords(Protocol):
    """The records of a dataset or a mix."""

    def read_records(
        self, positions: Int64Array, allocate: AllocateBytes, faults: Faults | None
    ) -> BytesArray:
        """Return the payloads at many positions; errors of damaged records go to `faults`."""

    def record_sizes(self, positions: Int64Array) -> Int64Array:
        """Return the sizes of the payloads at many positions: int64, (count,)."""


@dataclass
class Round:
    """Parts of steps whose records are read in one parallel round.

    piece_count: in how many pieces of the shards the records of each part lie, added up.
    """

    parts: list[StepPart] = field(default_factory=list)
    byte_count: int = 0
    piece_count: int = 0


class Rounds:
    """An iterator over rounds, which can be closed from any thread.

    A round is returned when there is room for its records.
    """

    def __init__(self, records: PlannedRecords, parts: Iterable[StepPart]) -> None:
        self._room = _Room(AHEAD_BYTES)
        jobs = (_SizeJob(records, part) for part in parts)
        self._sized = BatchEngine(jobs, threads=_SIZED_AT_ONCE, prefetch=_SIZED_AHEAD)
        self._rounds = (one for one in _joined(self._sized) if self._room.take(one.byte_count))

    def __iter__(self) -> Iterator[Round]:
        return self

    def __next__(self) -> Round:
        return next(self._rounds)

    def finish(self, one: Round) -> None:
        """Make room for other rounds, when the records of a round are no longer ahead."""
        self._room.give_back(one.byte_count)

    def close(self) -> None:
        """Stop planning, also while it waits for room."""
        self._room.close()
        self._sized.close()

    def abandon(self) -> None:
        """Let the threads end, without waiting for them and without a lock."""
        self._room.close()
        self._sized.abandon()


class _Room:
    """Counts the bytes that are read ahead; one thread takes, and another gives back."""

    def __init__(self, byte_count: int) -> None:
        self._limit = byte_count
        self._taken = 0
        self._returned: SimpleQueue[int | None] = SimpleQueue()  # None: closed
        self._is_closed = False

    def take(self, byte_count: int) -> bool:
        """Wait until not all room is taken; what is larger is alone. Return False if closed."""
        room = self._limit if byte_count <= self._limit else 1
        while self._taken >= room and not self._is_closed:
            returned = self._returned.get()
            if returned is not None:
                self._taken -= returned
        self._taken += byte_count
        return not self._is_closed

    def give_back(self, byte_count: int) -> None:
        """Return bytes that are no longer ahead."""
        self._returned.put(byte_count)

    def close(self) -> None:
        """End all waiting."""
        self._is_closed = True
        self._returned.put(None)


class _SizeJob:
    """Counts the bytes and pieces of the records of a part, as a job of an engine."""

    def __init__(self, records: PlannedRecords, part: StepPart) -> None:
        self._records = records
        self._round = Round([part])

    def begin(self) -> int:
        positions = self._round.parts[0].positions
        # a CorruptDataError: an index cannot be built; reading reports which records are lost
        with suppress(DataError):
            self._round.byte_count = int(self._records.record_sizes(positions).sum())
        ascending = np.sort(positions)
        self._round.piece_count = 1 + int(np.count_nonzero(np.diff(ascending) > 1))
        return 0

    def fill(self, start: int, stop: int) -> None:
        """Do nothing: there are no rows."""

    def finish(self) -> Round:
        return self._round


def _joined(sized: Iterable[Round]) -> Iterator[Round]:
    """Join the parts of neighbouring steps to rounds.

    Runs are read in one round unless they are too long. The first round is one part, so that the
    first batch comes soon.
    """
    joined = Round()
    is_first, has_long_runs = True, False
    for one in sized:
        if joined.parts:
            is_in_run = not has_long_runs and one.parts[0].run == joined.parts[-1].run
            if is_in_run and joined.byte_count >= _RUN_BYTES:
                is_in_run, has_long_runs = False, True
            is_full = joined.byte_count >= _ROUND_BYTES or joined.piece_count >= _ROUND_PIECES
            if is_first or (is_full and not is_in_run):
                yield joined
                joined, is_first = Round(), False
        joined.parts += one.parts
        joined.byte_count += one.byte_count
        joined.piece_count += one.piece_count
    if joined.parts:
        yield joined
