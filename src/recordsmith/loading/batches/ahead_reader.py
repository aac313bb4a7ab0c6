"""Reads records over a network before the steps that use them.

The rounds that `rounds` plans are read in threads of their own, several at the same time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from recordsmith.buffers import AllocateBytes, Int64Array, empty_bytes
from recordsmith.dataset import Faults
from recordsmith.errors import DataError, FileAccessError
from recordsmith.example import BytesArray
from recordsmith.loading.batches.engine import BatchEngine
from recordsmith.loading.batches.rounds import PlannedRecords, Round, Rounds
from recordsmith.loading.batches.runs import Runs, StepPart, step_parts
from recordsmith.loading.memory import RecycledMemory
from recordsmith.loading.order.schedule import Step

_ROUNDS_AT_ONCE = 8
_ROUNDS_AHEAD = 32  # of tiny records


class AheadReader:
    """Reads the records of the steps of an iteration, before they are requested."""

    def __init__(self, records: PlannedRecords, runs: Runs) -> None:
        """`runs`: which records are best read in one round."""
        self._records = records
        self._runs = runs

    def read(self, steps: Iterable[Step]) -> FetchedSteps:
        """Return the steps with their records, in order."""
        return FetchedSteps(self._records, step_parts(steps, self._runs))


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
        place = dict(zip(self._positions.tolist(), self._rows(), strict=True))
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

    def __init__(self, records: PlannedRecords, parts: Iterable[StepPart]) -> None:
        self._rounds = Rounds(records, parts)
        memory = RecycledMemory(2)
        self._engine: BatchEngine[tuple[Round, list[_FetchedPart]]] = BatchEngine(
            (_RoundJob(records, one, memory) for one in self._rounds),
            threads=_ROUNDS_AT_ONCE,
            prefetch=_ROUNDS_AHEAD,
            upstream=self._rounds,
        )
        self._ready: deque[_FetchedPart] = deque()
        self._begun: list[_Fetched] = []  # parts of the next step
        self._round: Round | None = None

    def __iter__(self) -> FetchedSteps:
        return self

    def __next__(self) -> tuple[Step, FetchedRecords]:
        """Return the next step and its records.

        Raises:
            FileAccessError: they cannot be read.
        """
        asked_at = time.perf_counter()
        while True:
            if not self._ready:
                if self._round is not None:
                    self._rounds.finish(self._round)
                self._round, fetched = next(self._engine)
                self._ready.extend(fetched)
            part, records = self._ready.popleft()
            if isinstance(records, Exception):
                raise records
            self._begun.append(records)
            if part.completes_step:
                parts, self._begun = self._begun, []
                waited = time.perf_counter() - asked_at
                return part.step, FetchedRecords(part.step.positions, parts, waited)

    def close(self) -> None:
        """Stop reading ahead."""
        self._engine.close()

    def abandon(self) -> None:
        """Let the threads end, without waiting for them and without a lock."""
        self._engine.abandon()


class _Fetched(NamedTuple):
    """The records of a part of a step; those with an error have no valid bytes."""

    payloads: BytesArray
    faults: Faults


class _FetchedPart(NamedTuple):
    """A part of a step with its records, or why they cannot be read."""

    part: StepPart
    records: _Fetched | FileAccessError


class _RoundJob:
    """Reads the records of a round, as a job of an engine."""

    def __init__(self, records: PlannedRecords, planned: Round, memory: RecycledMemory) -> None:
        self._records = records
        self._round = planned
        self._memory = memory
        self._fetched: list[_FetchedPart] = []

    def begin(self) -> int:
        parts = self._round.parts
        try:
            self._fetched += map(_FetchedPart, parts, self._read(parts))
        except (DataError, FileAccessError):
            self._fetched = [_FetchedPart(part, self._read_alone(part)) for part in parts]
        return 0

    def fill(self, start: int, stop: int) -> None:
        """Do nothing: a round has no rows."""

    def finish(self) -> tuple[Round, list[_FetchedPart]]:
        return self._round, self._fetched

    def _read(self, parts: list[StepPart]) -> Iterator[_Fetched]:
        """Read parts together; their payloads share the memory."""
        positions = np.concatenate([part.positions for part in parts])
        faults: Faults = {}
        payloads = self._records.read_records(positions, self._allocate, faults)
        begin = 0
        for part in parts:
            end = begin + len(part.positions)
            offsets = payloads.offsets[begin : end + 1]
            own = BytesArray(payloads.buffer[offsets[0] : offsets[-1]], offsets - offsets[0])
            yield _Fetched(own, {row - begin: faults[row] for row in faults if begin <= row < end})
            begin = end

    def _read_alone(self, part: StepPart) -> _Fetched | FileAccessError:
        """Read a part of a round that failed, or return why it cannot be read."""
        try:
            return next(self._read([part]))
        except FileAccessError as error:
            return error.with_traceback(None)
        except DataError:  # an index cannot be built
            return self._read_singly(part.positions)

    def _read_singly(self, positions: Int64Array) -> _Fetched:
        values: list[bytes] = []
        faults: Faults = {}
        for row, position in enumerate(positions):
            try:
                one = self._records.read_records(position[np.newaxis], empty_bytes, None)
                values.append(one.buffer.tobytes())
            except DataError as error:
                values.append(b"")
                faults[row] = error.with_traceback(None)
        return _Fetched(BytesArray.from_values(values), faults)

    def _allocate(self, byte_count: int) -> Any:
        return self._memory.empty("", (byte_count,), np.uint8)
