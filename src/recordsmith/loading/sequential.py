"""Records of shards that can only be read in order: compressed ones.

What a rank wants of a run of records is read before the steps that need it, going forward through
each shard, which stays open where it was left. While the steps of a run are handed out, the next
run is read piece by piece, so that no batch waits for a whole one. Steps, runs and positions are
`order`'s and `schedule`'s matter; a shard is read again from its start only for records that it has
passed: in the next epoch, after resuming, and for the first records of an epoch that fill up its
last step.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from copy import copy
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import SelectedRecords, Shard
from recordsmith.errors import CorruptDataError, Defect, located
from recordsmith.example import BytesArray
from recordsmith.files import accessing, open_file
from recordsmith.loading.schedule import Step
from recordsmith.wire import RecordBlock, read_blocks

Runs: TypeAlias = Callable[[int, Int64Array], Int64Array]
"""(epoch, places) -> the number of each place's run."""

_Kept: TypeAlias = dict[int, bytes | CorruptDataError]
"""What was read, by position: payloads, and why there is none."""

_OPEN_SHARDS = 4  # more than one run touches at once, if shards are not tiny


class HeldRecords:
    """The records of one step: those that were read before it, and those that can be picked.

    seconds: how long was read before it was handed out, for it or for later ones.
    """

    def __init__(self, dataset: SelectedRecords, kept: _Kept) -> None:
        self.seconds = 0.0
        self._dataset = dataset
        self._kept = kept

    def read_records(self, positions: Int64Array) -> BytesArray:
        """The payloads at many positions, which are of the step.

        Raises:
            CorruptDataError: one of them could not be read.
        """
        return BytesArray.from_values([self._payload(at) for at in positions.tolist()])

    def _payload(self, position: int) -> bytes:
        payload = self._kept.get(position)
        if payload is None:
            return self._dataset.read_record(position)
        if isinstance(payload, CorruptDataError):
            raise copy(payload)  # one that was raised would keep alive what it passed
        return payload


class SequentialReader:
    """Reads the compressed shards of a dataset for the steps of an iteration, in their order."""

    def __init__(self, dataset: SelectedRecords, runs: Runs | None = None) -> None:
        """`runs`: which records are read together; those of one step, if the order has no runs."""
        self._dataset = dataset
        self._runs = runs

    def read(self, steps: Iterable[Step]) -> Iterator[tuple[Step, HeldRecords]]:
        """Each step with its records, in order."""
        with _OpenShards() as shards, closing(self._read(steps, shards)) as each:
            begun = time.perf_counter()
            for step, held in each:
                held.seconds = time.perf_counter() - begun
                yield step, held
                begun = time.perf_counter()

    def _read(
        self, steps: Iterable[Step], shards: _OpenShards
    ) -> Generator[tuple[Step, HeldRecords], None, None]:
        kept: _Kept = {}
        ready: deque[tuple[Step, HeldRecords]] = deque()
        for complete, positions, begun in self._by_run(steps):
            ready_count, seen_count = len(ready), 0
            for count in self._read_run(shards, positions, kept):
                seen_count += count
                # as much of what is ready is handed out as of what comes next was read
                while ready and (ready_count - len(ready)) * len(positions) < (
                    ready_count * seen_count
                ):
                    yield ready.popleft()
            while ready:
                yield ready.popleft()
            ready.extend((step, self._held(step, kept)) for step in complete)
            still_wanted = [] if begun is None else begun.positions.tolist()
            kept = {at: kept[at] for at in still_wanted if at in kept}
        yield from ready

    def _held(self, step: Step, kept: _Kept) -> HeldRecords:
        own = {at: kept[at] for at in step.positions.tolist() if at in kept}
        return HeldRecords(self._dataset, own)

    def _by_run(
        self, steps: Iterable[Step]
    ) -> Iterator[tuple[list[Step], Int64Array, Step | None]]:
        """For each run: the steps that are complete with it, the positions that are wanted of it,
        and the step that goes on in the next run.
        """
        current: object = None
        complete: list[Step] = []
        wanted: list[Int64Array] = [np.empty(0, np.int64)]
        for number, step in enumerate(steps):
            if self._runs is None:
                runs = np.full(len(step.places), number)
            else:
                runs = self._runs(step.epoch, step.places)
            cuts = [0, *(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(runs)]
            for begin, end in pairwise(cuts):
                if begin == end:  # a step without records
                    continue
                run = (step.epoch, int(runs[begin]))
                if run != current:
                    yield complete, np.concatenate(wanted), step if begin else None
                    current, complete, wanted = run, [], []
                wanted.append(step.positions[begin:end])
            complete.append(step)
        yield complete, np.concatenate(wanted), None

    def _read_run(self, shards: _OpenShards, positions: Int64Array, kept: _Kept) -> Iterator[int]:
        """Read what is wanted; says after each piece of work how many records it kept."""
        for shard, members, numbers in self._dataset.by_shard(positions):
            if shard.compression == "none":
                continue  # these can be picked when they are needed
            ascending = numbers.argsort(kind="stable")
            yield from shards.read(
                shard, numbers[ascending].tolist(), positions[members][ascending].tolist(), kept
            )


class _OpenShards:
    """The shards that were read to some place."""

    def __init__(self) -> None:
        self._open: OrderedDict[int, _OpenShard] = OrderedDict()

    def __enter__(self) -> _OpenShards:  # noqa: PYI034 - Self is for Python 3.11 and later
        return self

    def __exit__(self, *_: object) -> None:
        for opened in self._open.values():
            opened.close()

    def read(
        self, shard: Shard, numbers: list[int], positions: list[int], kept: _Kept
    ) -> Iterator[int]:
        """Read records of a shard, by ascending numbers, and keep them by their positions."""
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
            kept[position] = opened.payload(number)
            seen += 1
        yield seen


class _OpenShard:
    """A compressed shard, read forward block by block.

    first, stop: the numbers of the records that it can tell about now.
    """

    def __init__(self, shard: Shard) -> None:
        self.first = self.stop = 0
        self._shard = shard
        self._blocks = self._read()
        self._block: RecordBlock | None = None
        self._faults: dict[int, CorruptDataError] = {}
        self._end: CorruptDataError | None = None

    def close(self) -> None:
        self._blocks.close()

    def advance(self) -> bool:
        """Go on to the next block; False at the end."""
        self._block = None  # its memory is used again
        self._block = next(self._blocks, None)
        if self._block is None:
            self.first = self.stop
            return False
        self.first, self.stop = self._block.position, self._block.position + len(self._block)
        return True

    def payload(self, number: int) -> bytes | CorruptDataError:
        """The payload of a record that is not passed yet, or why there is none."""
        block = self._block
        if block is not None and self.first <= number < self.stop:
            begin = int(block.starts[number - self.first])
            return bytes(block.buffer[begin : begin + int(block.lengths[number - self.first])])
        return self._faults.get(number) or self._lost(number)

    def _read(self) -> Generator[RecordBlock, None, None]:
        path = self._shard.path
        self._shard.check_size()  # another file may lie there since the records were counted
        with open_file(path) as file, located(path), accessing(path):
            yield from read_blocks(file, compression=self._shard.compression, on_defect=self._note)

    def _note(self, error: CorruptDataError) -> None:
        """A record that is damaged is passed; other defects are the end of what can be read."""
        error.path = str(self._shard.path)
        if error.defect is Defect.PAYLOAD_CRC and error.record is not None:
            self._faults[error.record] = error
        elif error.defect is not Defect.TRUNCATED_COMPRESSION:  # that alone loses no record
            self._end = error

    def _lost(self, number: int) -> CorruptDataError:
        """A record that comes after the end of what can be read."""
        if self._end is not None:
            return CorruptDataError(
                self._end.defect,
                f"the shard is unreadable from record {self.stop} on: {self._end.detail}",
                path=self._shard.path,
                record=number,
            )
        return CorruptDataError(
            Defect.RECORD_COUNT,
            "the shard was changed after it was packed or opened",
            found=f"{self.stop} records",
            expected=f"more than {number}",
            remedy="Fetch it again, or open it again by its own name.",
            path=self._shard.path,
            record=number,
        )
