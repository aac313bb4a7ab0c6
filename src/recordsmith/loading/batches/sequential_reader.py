"""Reads compressed shards, which support only sequential reads.

The records that a rank needs from a run are read before the steps that use them, forward through
each shard, which stays open. While the steps of a run are returned, the next run is read piece by
piece, so that no batch waits for a whole run. A shard is read again from its start only for records
before the current place: in the next epoch, after resuming, and for the first records of an epoch
that complete its last step.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from copy import copy
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from recordsmith.buffers import AllocateBytes, Int64Array, empty_bytes
from recordsmith.dataset import SelectedRecords, Shard
from recordsmith.errors import CorruptDataError, DataError, Defect, accessing, located
from recordsmith.example import BytesArray
from recordsmith.loading.order.schedule import Step
from recordsmith.wire import RecordBlock, read_blocks

Runs: TypeAlias = Callable[[int, Int64Array], "Int64Array | None"]
"""Called as `runs(epoch, places)`; returns the number of the run of each place, None if there are
no runs."""


class StepPart(NamedTuple):
    """The records begin:end of a step, which are in one run."""

    step: Step
    begin: int
    end: int
    run: object

    @property
    def positions(self) -> Int64Array:
        """The positions of its records."""
        return self.step.positions[self.begin : self.end]

    @property
    def completes_step(self) -> bool:
        """Whether it is the last part of its step."""
        return self.end == len(self.step.positions)


def step_parts(steps: Iterable[Step], runs: Runs) -> Iterator[StepPart]:
    """Yield the parts of steps, in order; without runs, each step is one part."""
    run: object = None
    for number, step in enumerate(steps):
        of_places = runs(step.epoch, step.places)
        if of_places is None or not len(of_places):
            run = run if of_places is not None else number
            yield StepPart(step, 0, len(step.positions), run)
            continue
        cuts = [0, *(np.flatnonzero(np.diff(of_places)) + 1).tolist(), len(of_places)]
        for begin, end in pairwise(cuts):
            run = (step.epoch, int(of_places[begin]))
            yield StepPart(step, begin, end, run)


_Payloads: TypeAlias = dict[int, bytes | DataError]
"""By position: the payload, or why it cannot be read."""

_OPEN_SHARDS = 4  # more than one run needs at once, unless shards are tiny


class SequentialRecords:
    """The records of one step: those read in advance, and those that support random access.

    seconds: how long reading took before the step was returned, for it or for later ones.
    """

    def __init__(self, dataset: SelectedRecords, payloads: _Payloads) -> None:
        self.seconds = 0.0
        self._dataset = dataset
        self._payloads = payloads

    def read_records(
        self,
        positions: Int64Array,
        allocate: AllocateBytes = empty_bytes,  # noqa: ARG002 - as of a dataset
    ) -> BytesArray:
        """Return the payloads at many positions of the step."""
        found = dict(self._payloads)
        others = [at for at in positions.tolist() if at not in found]
        if others:
            found |= zip(others, self._dataset.read_records(others), strict=True)
        payloads = []
        for at in positions.tolist():
            payload = found[at]
            if isinstance(payload, DataError):
                raise copy(payload)  # a raised error keeps the frames that it passed alive
            payloads.append(payload)
        return BytesArray.from_values(payloads)


class SequentialReader:
    """Reads the compressed shards of a dataset for the steps of an iteration, in their order."""

    def __init__(self, dataset: SelectedRecords, runs: Runs) -> None:
        """`runs`: which records are read together; without runs, those of one step."""
        self._dataset = dataset
        self._runs = runs

    def read(self, steps: Iterable[Step]) -> Iterator[tuple[Step, SequentialRecords]]:
        """Yield each step with its records, in order."""
        with _OpenShards() as shards, closing(self._read(steps, shards)) as each:
            begun = time.perf_counter()
            for step, held in each:
                held.seconds = time.perf_counter() - begun
                yield step, held
                begun = time.perf_counter()

    def _read(
        self, steps: Iterable[Step], shards: _OpenShards
    ) -> Generator[tuple[Step, SequentialRecords], None, None]:
        payloads: _Payloads = {}
        ready: deque[tuple[Step, SequentialRecords]] = deque()
        for complete, positions, begun in self._by_run(steps):
            ready_count, seen_count = len(ready), 0
            for count in self._read_run(shards, positions, payloads):
                seen_count += count
                # return ready steps at the rate at which the next run is read
                while ready and (ready_count - len(ready)) * len(positions) < (
                    ready_count * seen_count
                ):
                    yield ready.popleft()
            while ready:
                yield ready.popleft()
            ready.extend((step, self._held(step, payloads)) for step in complete)
            still_needed = [] if begun is None else begun.positions.tolist()
            payloads = {at: payloads[at] for at in still_needed if at in payloads}
        yield from ready

    def _held(self, step: Step, payloads: _Payloads) -> SequentialRecords:
        own = {at: payloads[at] for at in step.positions.tolist() if at in payloads}
        return SequentialRecords(self._dataset, own)

    def _by_run(
        self, steps: Iterable[Step]
    ) -> Iterator[tuple[list[Step], Int64Array, Step | None]]:
        """Yield for each run the steps that it completes, the positions to read from it, and the
        step that continues in the next run.
        """
        current: object = None
        complete: list[Step] = []
        needed: list[Int64Array] = [np.empty(0, np.int64)]
        for part in step_parts(steps, self._runs):
            if part.run != current:
                yield complete, np.concatenate(needed), part.step if part.begin else None
                current, complete, needed = part.run, [], []
            needed.append(part.positions)
            if part.completes_step:
                complete.append(part.step)
        yield complete, np.concatenate(needed), None

    def _read_run(
        self, shards: _OpenShards, positions: Int64Array, payloads: _Payloads
    ) -> Iterator[int]:
        """Read the records at some positions; yield the number of records after each piece."""
        for shard, members, numbers, _ in self._dataset.by_shard(positions):
            if shard.compression == "none":
                continue  # they support random access
            ascending = numbers.argsort(kind="stable")
            yield from shards.read(
                shard, numbers[ascending].tolist(), positions[members][ascending].tolist(), payloads
            )


class _OpenShards:
    """The shards that are being read."""

    def __init__(self) -> None:
        self._open: OrderedDict[int, _OpenShard] = OrderedDict()

    def __enter__(self) -> _OpenShards:  # noqa: PYI034 - Self is for Python 3.11 and later
        return self

    def __exit__(self, *_: object) -> None:
        for opened in self._open.values():
            opened.close()

    def read(
        self, shard: Shard, numbers: list[int], positions: list[int], payloads: _Payloads
    ) -> Iterator[int]:
        """Read records of a shard, by ascending numbers, into a dict by position."""
        opened = self._open.pop(id(shard), None)
        if opened is not None and numbers[0] < opened.first:
            opened.close()
            opened = None
        opened = self._open[id(shard)] = opened or _OpenShard(shard)
        if len(self._open) > _OPEN_SHARDS:
            self._open.popitem(last=False)[1].close()
        seen = 0
        for number, position in zip(numbers, positions, strict=True):
            while number >= opened.stop and opened.advance():
                yield seen
                seen = 0
            payloads[position] = opened.payload(number)
            seen += 1
        yield seen


class _OpenShard:
    """A compressed shard, read forward block by block.

    first, stop: the numbers of the records of the current block.
    """

    def __init__(self, shard: Shard) -> None:
        self.first = self.stop = 0
        self._shard = shard
        self._blocks = self._read()
        self._block: RecordBlock | None = None
        self._faults: dict[int, DataError] = {}
        self._end: DataError | None = None

    def close(self) -> None:
        self._blocks.close()

    def advance(self) -> bool:
        """Read the next block; return False at the end."""
        self._block = None  # its memory is reused
        self._block = next(self._blocks, None)
        if self._block is None:
            self.first = self.stop
            return False
        self.first, self.stop = self._block.position, self._block.position + len(self._block)
        return True

    def payload(self, number: int) -> bytes | DataError:
        """Return the payload of a record at or after `first`, or why it cannot be read."""
        block = self._block
        if block is not None and self.first <= number < self.stop:
            begin = int(block.starts[number - self.first])
            return bytes(block.buffer[begin : begin + int(block.lengths[number - self.first])])
        return self._faults.get(number) or self._lost(number)

    def _read(self) -> Generator[RecordBlock, None, None]:
        location = self._shard.location
        self._shard.check_size()  # the file may have been replaced since the records were counted
        with location.open_read() as file, located(location), accessing(location):
            yield from read_blocks(file, compression=self._shard.compression, on_defect=self._note)

    def _note(self, error: DataError) -> None:
        """Skip a damaged record; other defects end what can be read."""
        error.path = str(self._shard.location)
        if error.defect is Defect.PAYLOAD_CRC and error.record is not None:
            self._faults[error.record] = error
        elif error.defect is not Defect.TRUNCATED_COMPRESSION:  # it alone loses no record
            self._end = error

    def _lost(self, number: int) -> DataError:
        """Return the error of a record after the end of what can be read."""
        if self._end is not None:
            return CorruptDataError(
                self._end.defect,
                f"the shard is unreadable from record {self.stop} on: {self._end.detail}",
                path=self._shard.location,
                record=number,
            )
        return CorruptDataError(
            Defect.RECORD_COUNT,
            "the shard was changed after it was packed or opened",
            found=f"{self.stop} records",
            expected=f"more than {number}",
            remedy="Fetch it again, or open it again by its own name.",
            path=self._shard.location,
            record=number,
        )
