"""Random access to the records of a compressed shard, which can only be read in order."""

from __future__ import annotations

import io
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from recordsmith.dataset import RecordLocation, Shard
from recordsmith.format.wire import HEADER_BYTES, RecordBlock, read_blocks
from recordsmith.support.errors import DataError, FileAccessError, OptionError, RecordsmithError

Payload: TypeAlias = bytes | RecordsmithError
"""The payload of a record, or why it cannot be read."""

_KEPT_BYTES = 64 << 20  # of records


class CompressedStream:
    """The records of a compressed shard; keeps those that were read last. Thread-safe."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard.alone()
        self._layers = shard.layers  # which are not compressed
        self._blocks: Iterator[RecordBlock] | None = None
        self._next = 0  # the first record that is not read
        self._kept: OrderedDict[int, list[Payload]] = OrderedDict()
        self._kept_bytes = 0
        self._error: RecordsmithError | None = None
        self._lock = threading.Lock()

    def read(self, numbers: Sequence[int]) -> list[Payload]:
        """Return the payloads of some records; each that cannot be read is the error."""
        with self._lock:
            by_number = {number: self._find(number) for number in sorted(numbers)}
        return [self._with_layers(by_number[number], number) for number in numbers]

    def _with_layers(self, payload: Payload, number: int) -> Payload:
        if not self._layers or not isinstance(payload, bytes):
            return payload
        try:
            return b"".join([payload, *(layer.read(number) for layer in self._layers)])
        except RecordsmithError as error:
            return error

    def _find(self, number: int) -> Payload:
        for start, records in self._kept.items():
            if start <= number < start + len(records):
                self._kept.move_to_end(start)
                return records[number - start]
        if self._error is not None and number >= self._next:
            return self._error
        if self._blocks is None or number < self._next:
            self._blocks, self._next = self._shard.blocks(check_payloads=False), 0
        try:
            for block in self._blocks:
                self._next = block.position + len(block)
                if number < self._next:
                    self._keep(block)
                    return self._kept[block.position][number - block.position]
        except (DataError, FileAccessError) as error:
            self._error = error
            return error
        return OptionError(f"{self._shard.location} has no record {number}")

    def _keep(self, block: RecordBlock) -> None:
        records = self._checked(block)
        self._kept[block.position] = records
        self._kept_bytes += sum(map(sys.getsizeof, records))
        while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= sum(map(sys.getsizeof, self._kept.popitem(last=False)[1]))

    def _checked(self, block: RecordBlock) -> list[Payload]:
        """Return the payloads of a block; of each with a wrong checksum, the error."""
        records: list[Payload] = list(block.records())
        start = block.offset + int(block.starts[0]) - HEADER_BYTES

        def note(error: DataError) -> None:
            number, offset = error.record or 0, start + (error.offset or 0)
            path = str(self._shard.location)
            records[number] = RecordLocation(path, block.position + number, offset).located(error)

        for _ in read_blocks(io.BytesIO(block.frames()), compression="none", on_defect=note):
            pass
        return records
